"""What it costs: ratios of two queries, each pair run in turn in one session.

Machines are noisy: a ratio of medians over several alternated runs is quoted,
never one absolute time.  Serial, without JIT, tables in memory.

    bench.py [suite ...]        suites: build probe self groups keys stored initplan many

joins.py has more suites, and measures them with compare().
"""
import statistics
import subprocess
import sys

RUNS = 7

TABLES = {
    "t1": "SELECT (random() * 1e12)::bigint AS x FROM generate_series(1, 1000000)",
    "t5": "SELECT (random() * 1e12)::bigint AS x FROM generate_series(1, 5000000)",
    "t10": "SELECT (random() * 1e12)::bigint AS x FROM generate_series(1, 10000000)",
    "small": "SELECT x FROM t5 LIMIT 100000",
    "grouped": "SELECT i % 100000 AS g, (random() * 1e12)::bigint AS x"
               " FROM generate_series(1, 1000000) i",
    "keys": "SELECT i, i::text AS t, gen_random_uuid() AS u, i::numeric / 7 AS n"
            " FROM generate_series(1, 1000000) i",
}

# a loop inside the server, where no client's wake-ups drown what is measured
LOOP = """CREATE FUNCTION {name}(wanted text, n int, first int DEFAULT 1) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    found {type};
BEGIN
    FOR i IN first .. first + n - 1 LOOP
        SELECT {expression} INTO found FROM filters WHERE name = wanted;
    END LOOP;
END $$;"""

# suite -> what it needs besides
SETUP = {
    "stored": [
        "CREATE TABLE filters (name text PRIMARY KEY, filter bloomfilter);",
        "INSERT INTO filters SELECT '1.2 MB', bloom_agg(i, 1e6) FROM generate_series(1, 1000000) i;",
        "INSERT INTO filters SELECT '120 MB', bloom_agg(i, 1e8) FROM generate_series(1, 1000000) i;",
        "VACUUM ANALYZE filters;",
        LOOP.format(name="ask", type="boolean", expression="filter @> i"),
        LOOP.format(name="find", type="boolean", expression="filter IS NULL"),
        LOOP.format(name="read", type="int", expression="length(filter::bytea)"),
    ],
    "initplan": [
        "CREATE TABLE kept AS SELECT bloom_agg(x, 1e6) AS filter"
        " FROM (SELECT x FROM small LIMIT 1000) s;",
        "VACUUM ANALYZE kept;",
    ],
    "many": [
        "CREATE TABLE many AS SELECT i, bloom_agg(i * 10 + j, 6600) AS filter"
        " FROM generate_series(1, 10000) i, generate_series(0, 9) j GROUP BY i;",
        "VACUUM ANALYZE many;",
    ],
}

COUNT = "SELECT count(x) FROM {}"

# suite -> (what, table names, query, queries that it is compared with: (name, query, bar))
SUITES = {
    "build": [
        ("bloom_agg(x, 1e6), 1M", "SELECT bloom_cardinality(bloom_agg(x, 1e6)) FROM t1",
         [("count(x)", COUNT.format("t1"), "at most 1.5")]),
        ("bloom_agg(x, 1e7), 10M", "SELECT bloom_cardinality(bloom_agg(x, 1e7)) FROM t10",
         [("count(x)", COUNT.format("t10"), "at most 1.4"),
          ("hll_add_agg", "SELECT hll_cardinality(hll_add_agg(hll_hash_bigint(x))) FROM t10",
           "at most 1.0")]),
        ("the same, blake2b",
         "SELECT bloom_cardinality(bloom_agg(x, bloomfilter(1e6, hash => 'blake2b'))) FROM t1",
         [("count(x)", COUNT.format("t1"), "")]),
        ("the same, standard",
         "SELECT bloom_cardinality(bloom_agg(x, bloomfilter(1e6, layout => 'standard'))) FROM t1",
         [("count(x)", COUNT.format("t1"), "")]),
    ],
    "probe": [
        ("filter @> x, 5M rows, 100,000 keys",
         "SELECT count(*) FROM t5 WHERE (SELECT bloom_agg(x, 1e5) FROM small) @> x",
         [("x > 0", "SELECT count(*) FROM t5 WHERE x > 0", "at most 1.25"),
          ("x IN (SELECT)", "SELECT count(*) FROM t5 WHERE x IN (SELECT x FROM small)",
           "at most 0.33")]),
    ],
    "self": [
        ("bloom_agg(x), 1M", "SELECT bloom_cardinality(bloom_agg(x)) FROM t1",
         [("count(x)", COUNT.format("t1"), "at most 2.5"),
          ("count(DISTINCT x)", "SELECT count(DISTINCT x) FROM t1", "at most 1.0")]),
        ("bloom_agg(x), 10M", "SELECT bloom_cardinality(bloom_agg(x)) FROM t10",
         [("count(x)", COUNT.format("t10"), "at most 2.5"),
          ("count(DISTINCT x)", "SELECT count(DISTINCT x) FROM t10", "at most 1.0")]),
    ],
    "groups": [
        ("10^5 groups of 10",
         "SELECT count(f) FROM (SELECT g, bloom_agg(x) AS f FROM grouped GROUP BY g) s",
         [("array_agg",
           "SELECT count(f) FROM (SELECT g, array_agg(x) AS f FROM grouped GROUP BY g) s",
           "at most 2.0")]),
    ],
    "keys": [
        (f"bloom_agg({name}), 1M",
         f"SELECT bloom_cardinality(bloom_agg({expr})) FROM keys",
         [(f"count({name})", f"SELECT count({expr}) FROM keys", "")])
        for name, expr in [("text", "t"), ("uuid", "u"), ("numeric", "n"), ("(int, text)", "(i, t)")]
    ],
    "stored": [
        (f"10,000 probes of 120 MB, {keys}", f"SELECT ask('120 MB', 10000, {first})",
         [("of 1.2 MB", f"SELECT ask('1.2 MB', 10000, {first})", "at most 1.2"),
          ("the row alone", "SELECT find('120 MB', 10000)", "at most 80 ms more")])
        for keys, first in [("absent", -10000), ("present", 1)]
    ] + [
        ("1.2 MB read whole 1,000 times", "SELECT read('1.2 MB', 1000)",
         [("1,000 probes", "SELECT ask('1.2 MB', 1000)", "at least 20")]),
    ],
    "initplan": [
        ("stored filter @> x, 1M rows", "SELECT count(*) FROM t1 WHERE (SELECT filter FROM kept) @> x",
         [("from bloom_agg", "SELECT count(*) FROM t1 WHERE"
           " (SELECT bloom_agg(x, 1e6) FROM (SELECT x FROM small LIMIT 1000) s) @> x",
           "at most 1.15")]),
    ],
    "many": [
        ("10,000 filters of 8 kB @> 77", "SELECT count(*) FROM many WHERE filter @> 77",
         [("their headers", "SELECT count(*) FROM many WHERE bloom_cardinality(filter) > 0",
           "at most 1.3")]),
    ],
}


PREPARE = ["\\set ON_ERROR_STOP on", "\\pset tuples_only on", "\\pset format unaligned",
           "SET client_min_messages = warning;",
           "CREATE EXTENSION IF NOT EXISTS bloomfilter;",
           "SET max_parallel_workers_per_gather = 0;", "SET jit = off;"]


def psql(script):
    """Run lines of psql in one session; what it prints."""
    out = subprocess.run(["psql", "-X", "-q"], input="\n".join(script), text=True,
                         capture_output=True, check=False)
    if out.returncode:
        sys.exit(out.stderr)
    return out.stdout


def compare(script, cases, runs=RUNS):
    """Run the script, then each case's queries in turn, and print a line for
    each pair.  Of runs + 1 rounds the first does not count."""
    script = PREPARE + script + ["\\timing on"]
    for _, query, others in cases:
        for _ in range(runs + 1):
            script += [query + ";"] + [o[1] + ";" for o in others]
    times = [float(line.split()[1]) for line in psql(script).splitlines()
             if line.startswith("Time:")]

    at = 0
    print(f"{'query':38}{'ms':>8}   {'against':20}{'ms':>8}{'ratio':>8}{'  min-max':14} bar")
    for name, _, others in cases:
        width = 1 + len(others)
        rows = [times[at + i * width:at + (i + 1) * width] for i in range(runs + 1)][1:]
        at += width * (runs + 1)
        for j, (other, _, bar) in enumerate(others, 1):
            ratios = sorted(r[0] / r[j] for r in rows)
            print(f"{name:38}{statistics.median(r[0] for r in rows):8.0f}   {other:20}"
                  f"{statistics.median(r[j] for r in rows):8.0f}"
                  f"{statistics.median(ratios):8.2f}  {ratios[0]:.2f}-{ratios[-1]:.2f}"
                  f"     {bar}", flush=True)


def main():
    suites = sys.argv[1:] or list(SUITES)
    cases = [case for s in suites for case in SUITES[s]]
    queries = [q for _, query, others in cases for q in [query] + [o[1] for o in others]]
    script = []
    if any("hll" in q for q in queries):
        script.append("CREATE EXTENSION IF NOT EXISTS hll;")
    for table, query in TABLES.items():
        if any(f" {table}" in q for q in queries + [TABLES["small"]]):
            script.append(f"CREATE TABLE {table} AS {query}; VACUUM ANALYZE {table};")
    script += [sql for s in suites for sql in SETUP.get(s, [])]
    compare(script, cases)


if __name__ == "__main__":
    main()
