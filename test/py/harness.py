"""What the tests share: SQL through psql, and counting checks.

The server is the one that the PG* environment variables name.  What a test
makes there is in a schema of its own, which is dropped at the end.
"""
import contextlib
import os
import re
import subprocess
import sys
import time
import traceback

os.environ["PGCLIENTENCODING"] = "UTF8"
PGOPTIONS = os.environ.get("PGOPTIONS", "")
SLOW = os.environ.get("BLOOM_SLOW") == "1"

PSQL = ["psql", "-X", "-q", "-A", "-t",
        "-v", "ON_ERROR_STOP=1", "-v", "VERBOSITY=verbose"]


class SqlError(Exception):
    """An error of the server, by its SQLSTATE."""

    def __init__(self, sqlstate, text):
        super().__init__(f"{sqlstate}: {text}")
        self.sqlstate = sqlstate
        self.text = text


class Result:
    """Rows as lists of strings, and the warnings that came with them."""

    def __init__(self, out, err):
        self.rows = [line.split("|") for line in out.splitlines()]
        self.warnings = re.findall(r"WARNING:  \w{5}: (.*)", err)

    @property
    def value(self):
        (row,) = self.rows
        (value,) = row
        return value


def run(args, stdin):
    done = subprocess.run(PSQL + args, input=stdin, capture_output=True,
                          check=False)
    err = done.stderr.decode()
    if done.returncode != 0:
        found = re.search(r"ERROR:  (\w{5}): (.*)", err, re.DOTALL)
        if found is None:
            raise RuntimeError(f"psql: {err}")
        raise SqlError(*found.groups())
    return done.stdout, err


def query(sql):
    """Run a script in a session of its own."""
    out, err = run(["-f", "-"], sql.encode())
    return Result(out.decode(), err)


def copy_in(command, data):
    """COPY ... FROM STDIN"""
    run(["-c", command], data)


def copy_out(command):
    """COPY ... TO STDOUT"""
    return run(["-c", command], b"")[0]


def copy_across(source, target):
    """One session's COPY ... TO STDOUT into another's COPY ... FROM STDIN,
    without room for the data in this process."""
    with subprocess.Popen(PSQL + ["-c", source], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as out:
        done = subprocess.run(PSQL + ["-c", target], stdin=out.stdout,
                              capture_output=True, check=False)
        out.stdout.close()      # or the source would wait for a reader
        errors = (out.stderr.read() + done.stderr).decode()
    if out.returncode != 0 or done.returncode != 0:
        raise RuntimeError(f"psql: {errors}")


@contextlib.contextmanager
def schema(name):
    """The extension, and an empty schema for tables of one's own."""
    os.environ["PGOPTIONS"] = (f"{PGOPTIONS} -c search_path={name},public"
                               " -c client_min_messages=warning")
    query(f"""CREATE EXTENSION IF NOT EXISTS bloomfilter SCHEMA public;
              DROP SCHEMA IF EXISTS {name} CASCADE;
              CREATE SCHEMA {name};""")
    try:
        yield
    finally:
        query(f"DROP SCHEMA {name} CASCADE")


class Checks:
    """One line a check, and a closing line."""

    def __init__(self):
        self.passed = 0
        self.failed = 0

    def check(self, ok, what):
        if ok:
            self.passed += 1
        else:
            self.failed += 1
        print("ok     " if ok else "FAILED ", what, flush=True)

    def equal(self, got, want, what):
        self.check(got == want, f"{what}: {got}" if got == want else
                   f"{what}: {got}, not {want}")

    def part(self, run_part, *args):
        """A part that breaks off is a failure; the others still run."""
        began = time.monotonic()
        try:
            run_part(*args)
        except Exception:
            traceback.print_exc(file=sys.stdout)
            self.check(False, f"{run_part.__name__} broke off")
        print(f"        {run_part.__name__}: "
              f"{time.monotonic() - began:.1f} s", flush=True)

    def close(self):
        print(f"{self.passed} passed, {self.failed} failed")
        sys.exit(self.failed > 0)
