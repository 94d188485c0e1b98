#!/usr/bin/python3
"""docs/benchmarks.md says what bench/results/peers.json has, which was measured
in one run, and tells the kind of machine and no more."""
import json
import pathlib
import socket
import subprocess
import sys
import tempfile

from harness import Checks

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
CHARTS = TOP / "bench" / "charts.py"
RESULTS = TOP / "bench" / "results" / "peers.json"
SUITES = ["rates", "bits", "build", "distinct", "probe", "point", "space", "stored", "joins"]

checks = Checks()


def check_tables(path):
    done = subprocess.run([sys.executable, CHARTS, "--check", path], text=True, capture_output=True, check=False)
    return done.returncode, (done.stdout + done.stderr).strip()


def tables():
    status, said = check_tables(RESULTS)
    checks.check(status == 0, said)
    text = RESULTS.read_text(encoding="utf-8")
    changed = json.loads(text)
    changed["stored"][0]["cpu_us"] *= 2
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(changed, file)
        file.flush()
        status, said = check_tables(file.name)
    checks.check(status == 1 and "are not those of" in said, f"another figure is found: {said}")


def results():
    data = json.loads(RESULTS.read_text(encoding="utf-8"))
    checks.equal(list(data), ["machine", "date", "load"] + SUITES, "suites")
    checks.equal(sorted(data["machine"]), ["cores", "cpu", "memory_gb", "numpy", "postgresql", "python", "redis", "system"],
                 "what it says of the machine")
    checks.check(socket.gethostname() not in json.dumps(data["machine"]), "not its name")
    for suite in SUITES:
        negative = [row for row in data[suite] for value in row.values() if isinstance(value, (int, float)) and value < 0]
        checks.check(data[suite] and not negative, f"{suite}: {len(data[suite])} rows, none negative")


def charts():
    text = (TOP / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    for name in ("rates", "bits", "times", "stored", "joins"):
        svg = (TOP / "docs" / "images" / f"{name}.svg").read_text(encoding="utf-8")
        checks.check(f"](images/{name}.svg)" in text, f"{name}.svg is in the document")
        checks.check("<image" not in svg and "prefers-color-scheme:dark" in svg and len(svg) < 100_000,
                     f"{name}.svg: {len(svg)} bytes, no raster, dark as well")


for part in (tables, results, charts):
    checks.part(part)
checks.close()
