#!/usr/bin/python3
"""The clients of examples/urls ask for what the server would ask for."""
import os
import pathlib
import subprocess
import sys
import tempfile

from harness import Checks, query

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
URLS = TOP / "examples" / "urls"
CLIENTS = {"Python": [sys.executable, URLS / "check.py"], "JavaScript": ["node", URLS / "check.mjs"]}

checks = Checks()


def clients():
    subprocess.run(["psql", "-X", "-q", "-v", "n=20000", "-f", URLS / "urls.sql"], stdout=subprocess.DEVNULL, check=True)
    visits = [row[0] for row in query("SELECT url FROM example_urls.visit ORDER BY id").rows]
    asked = sorted(tuple(row) for row in query(
        "SELECT p, url FROM example_urls.visit, example_urls.patterns_of(url) p,"
        " (SELECT filter AS f FROM example_urls.shipped OFFSET 0) s WHERE f @> p").rows)
    unsafe = {row[0] for row in query("SELECT pattern FROM example_urls.unsafe").rows}
    checks.check(0 < len(asked) < 1000, f"of {len(visits)} visits {len(asked)} patterns to ask for")
    with tempfile.NamedTemporaryFile("w") as file:
        file.write(query("SELECT filter FROM example_urls.shipped").value)
        file.flush()
        for name, command in CLIENTS.items():
            lines = subprocess.run(command + [file.name], input="\n".join(visits), text=True, capture_output=True,
                                   env=os.environ | {"PYTHONPATH": str(TOP / "clients" / "python")},
                                   check=True).stdout.splitlines()
            told = [line.split(" ") for line in lines]
            checks.check(sorted(tuple(t[1:]) for t in told if t[0] == "ask") == asked, f"{name}: asks for the same")
            passed = {t[1] for t in told if t[0] == "safe"}
            checks.equal(len(passed | {t[2] for t in told if t[0] == "ask"}), len(set(visits)), f"{name}: answers")
    blocked = {url for pattern, url in asked if pattern in unsafe}
    checks.check(blocked and not blocked & passed, f"{len(blocked)} unsafe visits, none of which is passed")


checks.part(clients)
checks.close()
