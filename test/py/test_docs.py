"""Every ```sql block of the documentation runs, in order, and says what it
promises: a line that ends in "; -- true" (or false, NULL, a number, an array),
perhaps with a colon and more words behind, is a query with that answer.

Each document gets a database of its own, with the tables that it speaks of.
"""
import os
import re
import subprocess

from harness import Checks, PSQL, query

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")

CODES = """
    CREATE TABLE codes AS SELECT 'SP-' || lpad(i::text, 5, '0') AS code
        FROM generate_series(1, 1000) i;
    CREATE TABLE new_codes AS SELECT 'NW-' || lpad(i::text, 5, '0') AS code
        FROM generate_series(1, 200) i;
"""

EVENTS = """
    CREATE EXTENSION bloomfilter;
    CREATE TABLE events (day date, device integer) PARTITION BY RANGE (day);
    CREATE TABLE events_1 PARTITION OF events
        FOR VALUES FROM ('2024-01-01') TO ('2024-01-02');
    CREATE TABLE events_2 PARTITION OF events
        FOR VALUES FROM ('2024-01-02') TO ('2024-01-03');
    INSERT INTO events
        SELECT date '2024-01-01' + i % 2, i FROM generate_series(1, 1000) i;
"""

# what is there before the first block
BEFORE = {
    "README.md": CODES + """
        CREATE TABLE vip AS SELECT i AS id FROM generate_series(1, 1000, 10) i;
        CREATE TABLE orders AS SELECT i AS customer_id
            FROM generate_series(1, 1000) i;
    """,
    "docs/clients.md": CODES + """
        CREATE EXTENSION bloomfilter;
        CREATE TABLE filters AS
            SELECT 'codes' AS name, bloom_agg(code) AS filter FROM codes;
    """,
    "docs/live.md": CODES + EVENTS,
    "docs/operations.md": CODES + EVENTS,
}

# what must be so after the last: query, answer
AFTER = {
    "README.md": [
        ("SELECT count(*) FROM new_codes, filters"
         " WHERE name = 'codes' AND NOT filter @> code", "0"),
    ],
    "docs/operations.md": [
        ("SELECT string_agg(name, ' ' ORDER BY name) FROM filters",
         "codes live"),
        ("SELECT count(*) FROM codes, filters WHERE NOT filter @> code", "0"),
        ("SELECT count(*) FROM codes", "1199"),
        ("SELECT capacity FROM filters, bloom_info(filter)"
         " WHERE name = 'codes'", "2000000"),
        ("SELECT bool_and(part = events.tableoid::regclass::text) FROM events, parts"
         " WHERE filter @> device AND device < 5", "t"),
        ("SELECT count(*) FROM events_of(16) UNION ALL"
         " SELECT count(*) FROM events_of(1001)", "1\n0"),
        ("SELECT count(*) FROM seen", "1"),
    ],
}

PROMISE = re.compile(r";\s+-- (true|false|NULL|\d+|\{.*\})(:.*)?$")

checks = Checks()


def documents():
    """README.md and docs/*.md, those that have ```sql blocks."""
    names = ["README.md"] + sorted("docs/" + name
                                   for name in os.listdir(os.path.join(TOP, "docs")))
    for name in names:
        if name.endswith(".md"):
            with open(os.path.join(TOP, name), encoding="utf-8") as file:
                lines = file.read().splitlines()
            blocks = list(blocks_of(lines))
            if blocks:
                yield name, lines, blocks


def blocks_of(lines):
    """(first line, line past the last), from 1, of each ```sql block."""
    start = None
    for number, line in enumerate(lines, 1):
        if start is None and line.strip() == "```sql":
            start = number + 1
        elif start is not None and line.strip() == "```":
            yield start, number
            start = None
    assert start is None, "a block has no end"


def script_of(lines, blocks):
    """The blocks alone, on their lines of the document, so that psql's
    messages bear its line numbers.  A promised answer is printed behind the
    number of its line."""
    script = [""] * len(lines)
    promises = {}
    for start, end in blocks:
        for number in range(start, end):
            line = lines[number - 1]
            found = PROMISE.search(line)
            if found:
                promises[number] = found.group(1)
                line = (line[:found.start()] +
                        f" \\g | sed 's/^/{number}=/'")
            script[number - 1] = line
    return "\n".join(script) + "\n", promises


def test_document(name, lines, blocks):
    script, promises = script_of(lines, blocks)
    database = "docs_" + re.sub(r"\W", "_", name).lower()
    maintenance = os.environ.get("PGDATABASE", "postgres")
    query(f"DROP DATABASE IF EXISTS {database}")
    query(f"CREATE DATABASE {database} TEMPLATE template0 ENCODING 'UTF8'")
    os.environ["PGDATABASE"] = database
    try:
        query(BEFORE.get(name, "CREATE EXTENSION bloomfilter;"))
        done = subprocess.run(
            PSQL + ["-v", "ON_ERROR_STOP=0", "-v", "VERBOSITY=default",
                    "-P", "null=NULL", "-f", "-"],
            input=script.encode(), capture_output=True, check=False)
        err = done.stderr.decode()
        errors = [(int(number), text) for number, text in re.findall(
            r"psql:<stdin>:(\d+): (?:ERROR|FATAL): +(.*)", err)]
        if done.returncode != 0:
            checks.check(False, f"{name}: psql: {err}")
        for start, end in blocks:
            wrong = [text for number, text in errors if start <= number <= end]
            checks.check(not wrong, f"{name}:{start}" +
                         "".join(": " + text for text in wrong))
        answers = dict(re.findall(r"^(\d+)=(.*)$", done.stdout.decode(), re.MULTILINE))
        for number, promised in promises.items():
            checks.equal(answers.get(str(number)),
                         {"true": "t", "false": "f"}.get(promised, promised),
                         f"{name}:{number}")
        for sql, wanted in AFTER.get(name, []):
            checks.equal("\n".join("|".join(row) for row in query(sql).rows), wanted,
                         f"{name}: afterwards: {sql}")
    finally:
        os.environ["PGDATABASE"] = maintenance
        query(f"DROP DATABASE {database}")


def main():
    os.environ["PGOPTIONS"] = os.environ.get("PGOPTIONS", "") + " -c timezone=UTC"
    for document in documents():
        checks.part(test_document, *document)
    for name in list(BEFORE) + list(AFTER):
        if not os.path.exists(os.path.join(TOP, name)):
            checks.check(False, f"{name}: there is no such document")
    checks.close()


if __name__ == "__main__":
    main()
