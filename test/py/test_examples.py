#!/usr/bin/python3
"""The examples that are psql scripts keep their promises, in small."""
import pathlib
import subprocess
import tempfile

from harness import Checks

EXAMPLES = pathlib.Path(__file__).resolve().parent.parent.parent / "examples"
SHORT = ["-v", "n=20000", "-v", "words=20000"]

checks = Checks()


def run(script):
    """Exit status, promises as (text, kept), and what was said besides"""
    done = subprocess.run(["psql", "-X", "-A", "-P", "footer=off", *SHORT, "-f", script], text=True,
                          capture_output=True, check=False)
    promises = [line.rsplit("|", 1) for line in done.stdout.rpartition("Promises\npromise|kept\n")[2].splitlines()]
    return done.returncode, promises, done.stderr


def example(script):
    status, promises, said = run(script)
    for promise, kept in promises:
        checks.equal(kept, "t", f"{script.stem}: {promise}")
    checks.check(len(promises) >= 3 and status == 0,
                 f"{script.stem}: {len(promises)} promises, exit status {status}")
    checks.equal(said, "", f"{script.stem}: errors and warnings")
    checks.check((script.parent / "README.md").exists(), f"{script.stem}: has a README")


def broken():
    """A promise that is not kept is an error."""
    text = (EXAMPLES / "urls" / "urls.sql").read_text(encoding="utf-8")
    with tempfile.NamedTemporaryFile("w", suffix=".sql", encoding="utf-8") as script:
        script.write(text.replace("DELETE FROM unsafe", "INSERT INTO promises VALUES ('a lie', false);\nDELETE FROM unsafe"))
        script.flush()
        status, promises, said = run(script.name)
    checks.check(status == 3 and ["a lie", "f"] in promises and "a promise is broken" in said,
                 f"a broken promise: exit status {status}")


def main():
    for script in sorted(EXAMPLES.glob("*/*.sql")):
        if script.stem == script.parent.name:
            checks.part(example, script)
    checks.part(broken)
    checks.close()


if __name__ == "__main__":
    main()
