"""Compare the results of the server's own regression tests, run without and
with join filters: all but what EXPLAIN prints must agree.

    server_suite.py OFF ON      two output directories of pg_regress
"""
import difflib
import pathlib
import re
import sys

# the head of a result that shows plans, by EXPLAIN or by a function around it
PLAN = re.compile(r"^ *(QUERY PLAN|\w*explain\w*) *$", re.IGNORECASE)
RULE = re.compile(r"^-+$")
END = re.compile(r"^\(\d+ rows?\)$")


def without_plans(text):
    """A test's output, without its plans"""
    lines = text.splitlines()
    kept = []
    at = 0
    while at < len(lines):
        if PLAN.match(lines[at]) and at + 1 < len(lines) and RULE.match(lines[at + 1]):
            while at < len(lines) and not END.match(lines[at]):
                at += 1
            kept.append("(a plan)")
        else:
            kept.append(lines[at])
        at += 1
    return kept


def main():
    off, on = (pathlib.Path(arg) / "results" for arg in sys.argv[1:3])
    passed = failed = filters = 0
    for with_filters in sorted(on.glob("*.out")):
        texts = [(d / with_filters.name).read_text(encoding="utf-8", errors="replace")
                 for d in (off, on)]
        filters += texts[1].count("Custom Scan (BloomProbe)")
        diff = list(difflib.unified_diff(*map(without_plans, texts), "off", "on", lineterm="", n=8))
        passed += not diff
        failed += bool(diff)
        if diff:
            print(f"FAILED  {with_filters.stem}", *diff, sep="\n")
    print(f"{filters} probes in plans")
    if filters == 0:
        failed += 1
    print(f"{passed} passed, {failed} failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
