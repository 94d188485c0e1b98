"""What filters save before joins: ratios of a query as one writes it and the
same with a filter, on a 5M-row fact table and 1M-row dimensions, and on tables
of another server.  Both must give the same answer.

    joins.py [suite ...]        suites: join group star latest distinct anti merge fdw

A row of the fact table is 250 bytes wide, one of a dimension 230; a dimension
has a primary key, and an index from which the filter's keys are read.  The
suites of one server run at the default work_mem and at 256 MB; fdw uses the
servers behind the sockets that REMOTE_PORTS names, as bench/run starts them.
"""
import json
import os
import socket
import sys
import threading

from bench import PREPARE, compare, psql

RUNS = 5
WORK_MEM = ["4MB", "256MB"]

ROWS, KEYS = 5000000, 1000000       # of the fact table, of a dimension

FACT = """CREATE TABLE fact AS SELECT i AS id, (random() * {keys})::int AS a, (random() * {keys})::int AS b,
    (random() * {keys})::int AS c, (random() * 1000)::int AS amount, repeat(md5(i::text), 6) AS note
    FROM generate_series(1, {rows}) i;
VACUUM ANALYZE fact;"""

# one in a hundred rows for each value of kind, spread over the table
DIMENSION = """CREATE TABLE {name} AS SELECT i AS id, (i * {factor}::bigint % 100)::int AS kind,
    md5(i::text) AS name, repeat(md5(i::text), 5) AS address FROM generate_series(1, {keys}) i;
ALTER TABLE {name} ADD PRIMARY KEY (id);
CREATE INDEX ON {name} (kind, id);
VACUUM ANALYZE {name};"""

DIMENSIONS = {"d1": 1, "d2": 7919, "d3": 104729}

URLS = """CREATE TABLE archive AS SELECT 'https://example.org/' || md5(i::text) AS url
    FROM generate_series(1, 5000000) i;
CREATE TABLE crawl AS SELECT 'https://example.org/' || md5(i::text) AS url
    FROM generate_series(4900001, 5900000) i;
CREATE UNIQUE INDEX ON archive (url);
CREATE TABLE filters AS SELECT bloom_agg(url, 6e6) AS archive FROM archive;
VACUUM ANALYZE archive; VACUUM ANALYZE crawl; VACUUM ANALYZE filters;"""

# a table without an index on its key
STAGING = """CREATE TABLE staging AS SELECT i * 97 AS id, i AS amount FROM generate_series(1, 60000) i;
VACUUM ANALYZE staging;"""

OF_KIND = "(SELECT bloom_agg(id) FROM {} WHERE kind < {})"

JOIN = """SELECT count(f.note), sum(f.id), count(d1.address) FROM fact f JOIN d1 ON d1.id = f.a
    WHERE d1.kind < 5 {}"""
GROUP = """SELECT count(*), sum(n), sum(s) FROM
    (SELECT a, count(*) AS n, sum(amount) AS s, min(b) AS b, max(c) AS c FROM fact {} GROUP BY a) g
    JOIN d1 ON d1.id = g.a WHERE d1.kind < 1"""
STAR = """SELECT count(*), sum(f.id), count(d1.address), count(d2.address), count(d3.address)
    FROM fact f JOIN d1 ON d1.id = f.a JOIN d2 ON d2.id = f.b JOIN d3 ON d3.id = f.c
    WHERE d1.kind < 10 AND d2.kind < 10 AND d3.kind < 10 {}"""
LATEST = """SELECT count(l.note), sum(l.id) FROM
    (SELECT DISTINCT ON (a) a, id, note FROM fact {} ORDER BY a, id DESC) l
    JOIN d1 ON d1.id = l.a WHERE d1.kind < 1"""
DISTINCT = """SELECT count(*), sum(b) FROM (SELECT DISTINCT a, b FROM fact {}) s
    JOIN d1 ON d1.id = s.a WHERE d1.kind < 1"""
# run it, count, undo it
MERGED = """CREATE FUNCTION merged(command text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    n bigint;
BEGIN
    EXECUTE command;
    GET DIAGNOSTICS n = ROW_COUNT;
    RAISE 'undo';
EXCEPTION WHEN raise_exception THEN
    RETURN n;
END $$;"""
MERGE = """SELECT merged('MERGE INTO fact t USING staging s ON t.id = s.id {}
    WHEN MATCHED THEN UPDATE SET amount = s.amount
    WHEN NOT MATCHED THEN INSERT (id, amount) VALUES (s.id, s.amount)')"""

ANTI = """SELECT count(*), min(url) FROM crawl c
    WHERE NOT EXISTS (SELECT FROM archive a WHERE a.url = c.url)"""
ANTI_IN_TWO = """SELECT count(*), min(url) FROM
    (SELECT url FROM crawl WHERE ((SELECT archive FROM filters) @> url) IS NOT TRUE UNION ALL
     SELECT url FROM crawl c WHERE (SELECT archive FROM filters) @> url
        AND NOT EXISTS (SELECT FROM archive a WHERE a.url = c.url)) s"""

STAR_FILTERS = "".join(f" AND {OF_KIND.format(d, 10)} @> f.{column}"
                       for d, column in zip(DIMENSIONS, "abc"))

# suite -> tables, (what, query, with a filter, bar at the default work_mem)
HERE = {
    "join": ("fact d1", "selective join, 1 in 20", JOIN.format(""),
             JOIN.format(f"AND {OF_KIND.format('d1', 5)} @> f.a"), "at least 3"),
    "group": ("fact d1", "GROUP BY, then a join", GROUP.format(""),
              GROUP.format(f"WHERE {OF_KIND.format('d1', 1)} @> a"), "at least 4"),
    "star": ("fact d1 d2 d3", "star, 1 in 10 of 3 dimensions", STAR.format(""),
             STAR.format(STAR_FILTERS), "at least 2"),
    "latest": ("fact d1", "DISTINCT ON, then a join", LATEST.format(""),
               LATEST.format(f"WHERE {OF_KIND.format('d1', 1)} @> a"), ""),
    "distinct": ("fact d1", "DISTINCT, then a join", DISTINCT.format(""),
                 DISTINCT.format(f"WHERE {OF_KIND.format('d1', 1)} @> a"), ""),
    "anti": ("urls", "anti-join, 9 in 10 new", ANTI, ANTI_IN_TWO, ""),
    "merge": ("fact staging", "MERGE of 60,000 rows", MERGE.format(""),
              MERGE.format("AND (SELECT bloom_agg(id) FROM staging) @> t.id"), ""),
}

# ---------------------------------------------------------------------------
# Other servers
# ---------------------------------------------------------------------------

THERE_SETUP = """CREATE TABLE orders AS SELECT i AS id, i % 100000 AS customer, i % 1000 AS amount, md5(i::text) AS note
    FROM generate_series(1, 1000000) i;
CREATE TABLE none (id int);
VACUUM ANALYZE orders; VACUUM ANALYZE none;
{parts}"""

# one row in four, by customer
ONE_PART = """CREATE TABLE orders_{part} AS SELECT * FROM orders WHERE customer % 4 = {part};
VACUUM ANALYZE orders_{part};"""

COLUMNS = "(id int, customer int, amount bigint, note text)"

FOREIGN_TABLES = f"""CREATE FOREIGN TABLE {{schema}}.orders {COLUMNS}
    SERVER {{schema}}_0 OPTIONS (schema_name 'public');
CREATE FOREIGN TABLE {{schema}}.none (id int) SERVER {{schema}}_0 OPTIONS (schema_name 'public');
CREATE TABLE {{schema}}.parted {COLUMNS} PARTITION BY LIST ((customer % 4));
""" + "".join(f"""CREATE FOREIGN TABLE {{schema}}.orders_{part}
    PARTITION OF {{schema}}.parted FOR VALUES IN ({part})
    SERVER {{schema}}_{part % 2} OPTIONS (schema_name 'public');
""" for part in range(4)) + """ANALYZE {schema}.orders, {schema}.none, {schema}.parted;"""

THERE = """SELECT count(*), sum(o.amount), count(o.note) FROM {}.{} o JOIN vip ON vip.id = o.customer {}"""
VIP_FILTER = "AND (SELECT bloom_agg(id) FROM vip) @> o.customer"
VIP_ARRAY = "AND o.customer = ANY (ARRAY(SELECT id FROM vip))"
AGG_THERE = """SELECT bloom_cardinality(bloom_agg(customer, 1e5)) FROM direct.orders"""
AGG_HERE = """SELECT bloom_cardinality(bloom_agg(customer, 1e5)) FROM (SELECT customer FROM direct.orders OFFSET 0) o"""
ORDERS_10 = """SELECT count(*), sum(o.amount), count(o.note) FROM direct.orders o JOIN vip_10 ON vip_10.id = o.id {}"""
SHIPPED = "SELECT count(*) FROM direct.none WHERE (SELECT {} FROM shipped) @> id"

SETUP_FDW = """CREATE EXTENSION postgres_fdw;
CREATE TABLE vip AS SELECT i * 100 AS id FROM generate_series(1, 1000) i;
CREATE TABLE shipped AS SELECT bloom_agg(i, 1e6) AS million, bloomfilter(1e6) AS empty
    FROM generate_series(1, 1000000) i;
CREATE TABLE vip_10 AS SELECT i * 10 AS id FROM generate_series(1, 100000) i;
VACUUM ANALYZE vip; VACUUM ANALYZE vip_10; VACUUM ANALYZE shipped;"""


class Counted:
    """A relay to a server's socket that counts the bytes, both ways."""

    def __init__(self, path):
        self.bytes = 0
        self.path = path
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            near, _ = self.listener.accept()
            far = socket.socket(socket.AF_UNIX)
            far.connect(self.path)
            for pair in (near, far), (far, near):
                threading.Thread(target=self.relay, args=pair, daemon=True).start()

    def relay(self, source, target):
        try:
            while data := source.recv(1 << 16):
                self.bytes += len(data)
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:     # the other end has gone
            pass


def make_server(name, host, port, fetch_size):
    return f"""CREATE SERVER {name} FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '{host}', port '{port}',
    dbname 'postgres', extensions 'bloomfilter', async_capable 'true', fetch_size '{fetch_size}');
CREATE USER MAPPING FOR PUBLIC SERVER {name} OPTIONS (user 'postgres');"""


def foreign_rows(plan):
    """Rows that came from other servers, in a plan and below it."""
    rows = plan["Actual Rows"] * plan["Actual Loops"] if plan["Node Type"] == "Foreign Scan" else 0
    return rows + sum(foreign_rows(child) for child in plan.get("Plans", []))


def moved(query, relays):
    """Rows that came from other servers, and bytes that went over the wire."""
    explained = json.loads(psql(PREPARE + [f"EXPLAIN (ANALYZE, FORMAT JSON) {query};"]))
    for relay in relays:
        relay.bytes = 0
    psql(PREPARE + [query + ";"])
    return foreign_rows(explained[0]["Plan"]), sum(relay.bytes for relay in relays)


def same_answer(query, other):
    """Both queries' answers, which must be equal."""
    answers = [psql(PREPARE + [q + ";"]) for q in (query, other)]
    if answers[0] != answers[1]:
        sys.exit(f"{query}: {answers[0]}\n{other}: {answers[1]}")


def measure_here(suites):
    tables = {table for s in suites for table in HERE[s][0].split()}
    script = []
    for table, sql in ("fact", FACT.format(rows=ROWS, keys=KEYS)), ("urls", URLS), ("staging", STAGING + MERGED):
        if table in tables:
            script.append(sql)
    script += [DIMENSION.format(name=name, factor=factor, keys=KEYS)
               for name, factor in DIMENSIONS.items() if name in tables]
    psql(PREPARE + script)
    for s in suites:
        same_answer(HERE[s][2], HERE[s][3])
    for work_mem in WORK_MEM:
        print(f"\nwork_mem {work_mem}")
        compare([f"SET work_mem = '{work_mem}';"],
                [(what, query, [("with a filter", filtered, bar if work_mem == WORK_MEM[0] else "")])
                 for what, query, filtered, bar in (HERE[s][1:] for s in suites)], RUNS)


def measure_there():
    here = os.environ["PGHOST"]
    ports = os.environ["REMOTE_PORTS"].split()
    main_port = os.environ["PGPORT"]
    for at, port in enumerate(ports):
        os.environ["PGPORT"] = port
        psql(PREPARE + [THERE_SETUP.format(parts="".join(
            ONE_PART.format(part=part) for part in range(at, 4, len(ports))))])
    os.environ["PGPORT"] = main_port

    relays = [Counted(f"{here}/.s.PGSQL.{port}") for port in ports]
    script = [SETUP_FDW]
    for schema, fetch_size in ("small", 100), ("direct", 10000), ("counted", 10000):
        script.append(f"CREATE SCHEMA {schema};")
        for at, (port, relay) in enumerate(zip(ports, relays)):
            script.append(make_server(f"{schema}_{at}", "127.0.0.1", relay.port, fetch_size)
                          if schema == "counted" else
                          make_server(f"{schema}_{at}", here, port, fetch_size))
        script.append(FOREIGN_TABLES.format(schema=schema))
    psql(PREPARE + script)

    print("\npostgres_fdw, fetch_size 10000 unless it says otherwise")
    cases = []
    for what, schema, table in [("remote 1M rows, 1 in 100", "direct", "orders"),
                                ("fetch_size 100", "small", "orders"),
                                ("4 partitions on 2 servers", "direct", "parted")]:
        plain, filtered, array = (THERE.format(schema, table, condition)
                                  for condition in ("", VIP_FILTER, VIP_ARRAY))
        same_answer(plain, filtered)
        same_answer(plain, array)
        cases.append((what, plain, [("with a filter", filtered, "at least 3"),
                                    ("with an array", array, "")]))
    cases.append(("remote 1M rows, 100,000 keys", ORDERS_10.format(""),
                  [("with a filter", ORDERS_10.format("AND (SELECT bloom_agg(id) FROM vip_10) @> o.id"), ""),
                   ("with an array", ORDERS_10.format("AND o.id = ANY (ARRAY(SELECT id FROM vip_10))"), "")]))
    same_answer(AGG_HERE, AGG_THERE)
    cases.append(("bloom_agg of remote rows", AGG_HERE, [("pushed down", AGG_THERE, "")]))
    cases.append(("a filter of 1.2 MB, to no row", SHIPPED.format("million"),
                  [("an empty filter", SHIPPED.format("empty"), "")]))
    compare([], cases, RUNS)

    print(f"\n{'moved':30}{'rows':>10}{'kB':>10}   with a filter{'rows':>8}{'kB':>8}{'ratio':>8}{'':4}bar")
    for what, table in ("remote 1M rows", "orders"), ("4 partitions on 2 servers", "parted"):
        plain, filtered = (moved(THERE.format("counted", table, condition), relays)
                           for condition in ("", VIP_FILTER))
        print(f"{what:30}{plain[0]:10.0f}{plain[1] / 1000:10.0f}   {'':13}{filtered[0]:8.0f}"
              f"{filtered[1] / 1000:8.0f}{plain[0] / filtered[0]:8.1f}    at least 20", flush=True)


def main():
    suites = sys.argv[1:] or list(HERE) + ["fdw"]
    here = [s for s in suites if s in HERE]
    if here:
        measure_here(here)
    if "fdw" in suites:
        measure_there()


if __name__ == "__main__":
    main()
