"""Every ```sql block of the documentation runs, in order, and says what it
promises: a line that ends in "; -- true" (or false, NULL, a number, an array),
perhaps with a colon and more words behind, is a query with that answer.  A
```text block right behind a ```sql block is what its last statement prints;
"..." in it stands for anything.

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

FOREIGN = """
    -- servers that a document creates are this one
    CREATE FUNCTION here() RETURNS event_trigger LANGUAGE plpgsql AS $$
    DECLARE
        server text;
    BEGIN
        FOR server IN SELECT srvname FROM pg_foreign_server WHERE srvoptions::text NOT LIKE '%port=%' LOOP
            EXECUTE format('ALTER SERVER %I OPTIONS (SET host %L, ADD port %L, SET dbname %L)',
                           server, split_part(current_setting('unix_socket_directories'), ',', 1),
                           current_setting('port'), current_database());
            EXECUTE format('CREATE USER MAPPING FOR PUBLIC SERVER %I OPTIONS (user %L)', server, current_user);
        END LOOP;
    END $$;
    CREATE EVENT TRIGGER here ON ddl_command_end WHEN TAG IN ('CREATE SERVER')
        EXECUTE FUNCTION here();
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
    "docs/join-filter.md": """
        CREATE TABLE shops AS SELECT i AS id, i % 10 AS region
            FROM generate_series(1, 2000) i;
        CREATE TABLE sales AS SELECT 1 + i % 20000 AS shop, i AS amount
            FROM generate_series(1, 200000) i;
        ANALYZE shops, sales;
    """,
    "docs/live.md": CODES + EVENTS,
    "docs/operations.md": CODES + EVENTS,
}

BEFORE["docs/joins.md"] = """
    CREATE EXTENSION bloomfilter;
    SELECT setseed(0.5);
    CREATE TABLE customers (id int PRIMARY KEY, region int NOT NULL, name text NOT NULL);
    INSERT INTO customers SELECT i, i % 100, 'customer ' || i FROM generate_series(1, 10000) i;
    CREATE TABLE products (id int PRIMARY KEY, kind text NOT NULL);
    INSERT INTO products SELECT i, (ARRAY['book', 'toy', 'tool', 'food', 'wine'])[1 + i % 5] || i % 4
        FROM generate_series(1, 10000) i;
    CREATE TABLE orders (id int NOT NULL, customer int, product int, amount int, at timestamptz, note text);
    INSERT INTO orders SELECT i, CASE WHEN i % 100 > 0 THEN 1 + (i * 7919::bigint) % 20000 END,
        1 + (i * 104729::bigint) % 10000, i % 1000, timestamptz '2024-01-01' + i * interval '1 minute', 'note ' || i
        FROM generate_series(1, 50000) i;
    CREATE TABLE new_customers AS SELECT i AS id, i % 100 AS region, 'new ' || i AS name
        FROM generate_series(9001, 11000) i;
    CREATE TABLE pages (url text PRIMARY KEY, seen timestamptz NOT NULL DEFAULT now());
    INSERT INTO pages SELECT 'https://example.org/' || i FROM generate_series(1, 20000) i;
    CREATE TABLE links AS SELECT 'https://example.org/' || i AS url FROM generate_series(19501, 24500) i;
    INSERT INTO links SELECT url FROM links LIMIT 100;
    CREATE TABLE requests AS SELECT 'https://example.org/' || i * 3 AS url FROM generate_series(1, 10000) i;
    CREATE TABLE filters (name text PRIMARY KEY, filter bloomfilter NOT NULL);
    CREATE TABLE banned AS SELECT i AS id FROM generate_series(1, 20000, 10) i;
    CREATE SCHEMA shop;
    CREATE TYPE shop.mood AS ENUM ('sad', 'ok', 'happy');
    CREATE DOMAIN shop.code AS text;
    CREATE TABLE shop.sales AS SELECT id, customer, amount, note FROM orders WHERE customer IS NOT NULL;
    CREATE TABLE shop.sales_0 AS SELECT * FROM shop.sales WHERE customer % 4 = 0;
    CREATE TABLE shop.sales_1 AS SELECT * FROM shop.sales WHERE customer % 4 = 1;
    CREATE TABLE shop.sales_2 AS SELECT * FROM shop.sales WHERE customer % 4 = 2;
    CREATE TABLE shop.sales_3 AS SELECT * FROM shop.sales WHERE customer % 4 = 3;
    CREATE TABLE shop.tickets AS SELECT i AS id, i % 10 AS tenant, (enum_range(NULL::shop.mood))[1 + i % 3] AS feeling,
        ('c-' || i)::shop.code AS code FROM generate_series(1, 1000) i;
    CREATE TABLE stock (sku text PRIMARY KEY);
    INSERT INTO stock SELECT 'sku-' || i FROM generate_series(1, 1100) i;
    CREATE TABLE shop.catalogue AS SELECT 'sku-' || i AS sku FROM generate_series(101, 2000) i;
    ANALYZE;
""" + FOREIGN

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

PROMISE = re.compile(r";\s+-- (true|false|NULL|\d+(?:\.\d+)?|\{.*\})(:.*)?$")

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


def printed_after(lines, end):
    """The lines of a ```text block that begins behind line end, or None."""
    at = end + 1
    while at <= len(lines) and not lines[at - 1].strip():
        at += 1
    if at > len(lines) or lines[at - 1].strip() != "```text":
        return None
    text = []
    while lines[at].strip() != "```":
        text.append(lines[at])
        at += 1
    return text


def of_any_version(line):
    """A line of a plan as PostgreSQL 15 prints it, without its indentation."""
    line = re.sub(r"^(InitPlan \d+) \(returns \$\d+\)$", r"\1", line.strip())
    return re.sub(r"\(InitPlan (\d+)\)\.col1", lambda m: f"${int(m.group(1)) - 1}", line)


def agrees(line, wanted):
    pattern = ".*".join(re.escape(part) for part in wanted.split("..."))
    return re.fullmatch(pattern, line) is not None


def script_of(lines, blocks):
    """The blocks alone, on their lines of the document, so that psql's
    messages bear its line numbers.  A promised answer is printed behind the
    number of its line."""
    script = [""] * len(lines)
    promises = {}
    for start, end in blocks:
        printed = printed_after(lines, end)
        if printed is not None:
            promises[end - 1] = printed
        for number in range(start, end):
            line = lines[number - 1]
            found = PROMISE.search(line)
            if number in promises:
                assert line.endswith(";"), f"line {number} ends no statement"
                line = line[:-1] + f" \\g | sed 's/^/{number}=/'"
            elif found:
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
        answers = {}
        for number, line in re.findall(r"^(\d+)=(.*)$", done.stdout.decode(), re.MULTILINE):
            answers.setdefault(int(number), []).append(line)
        for number, promised in promises.items():
            answer = answers.get(number, [])
            if isinstance(promised, str):
                checks.equal("\n".join(answer), {"true": "t", "false": "f"}.get(promised, promised),
                             f"{name}:{number}")
                continue
            answer = [of_any_version(line) for line in answer]
            promised = [of_any_version(line) for line in promised]
            checks.check(len(answer) == len(promised) and all(map(agrees, answer, promised)),
                         f"{name}:{number}: prints" + "".join("\n            " + line for line in answer))
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
