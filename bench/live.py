"""What the live filter costs, against a btree on the same column.

Ratios of medians over alternated runs, serial unless it says otherwise, with
the tables in memory.

    live.py [suite ...]        suites: size build insert probe large

large takes 100 million keys' room, and minutes.
"""
import statistics
import subprocess
import sys

RUNS = 5

# column of the table keys -> what is in it
COLUMNS = {
    "bigint, in order": "i",
    "bigint, random": "r",
    "text, random": "s",
}


def psql(statements):
    """Run them in one session.  (what they print, milliseconds of each that is
    marked by a leading "@")"""
    script = ["\\set ON_ERROR_STOP on", "\\pset tuples_only on", "\\pset format unaligned",
              "SET client_min_messages = warning;", "SET jit = off;",
              "SET max_parallel_workers_per_gather = 0;"]
    for statement in statements:
        if statement.startswith("@"):
            script += ["\\timing on", statement[1:] + ";", "\\timing off"]
        else:
            script.append(statement + ";")
    done = subprocess.run(["psql", "-X", "-q"], input="\n".join(script), text=True,
                          capture_output=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    lines = done.stdout.splitlines()
    return ([line for line in lines if line and not line.startswith("Time:")],
            [float(line.split()[1]) for line in lines if line.startswith("Time:")])


def report(what, times, against, bar, unit="ms"):
    """times, against: of alternated runs"""
    ratios = sorted(a / b for a, b in zip(times, against))
    print(f"{what:44}{statistics.median(times):9.0f}{statistics.median(against):9.0f} {unit:3}"
          f"{statistics.median(ratios):7.2f}  {ratios[0]:.2f}-{ratios[-1]:.2f}   {bar}", flush=True)


def prepare():
    psql(["CREATE EXTENSION IF NOT EXISTS bloomfilter",
          "DROP TABLE IF EXISTS keys",
          "CREATE TABLE keys AS SELECT i, hashint8extended(i, 1) AS r,"
          " 'SP-' || lpad((hashint8extended(i, 2) & 1099511627775)::text, 13, '0') AS s"
          " FROM generate_series(1::bigint, 1000000) i"])
    psql(["VACUUM ANALYZE keys"])


def size():
    for name, column in COLUMNS.items():
        sizes = psql([f"CREATE INDEX b ON keys ({column})",
                      f"CREATE INDEX f ON keys USING bloomfilter ({column}) WITH (capacity = 1000000)",
                      "SELECT pg_relation_size('f')", "SELECT pg_relation_size('b')",
                      "DROP INDEX b, f"])[0]
        report(f"size, 1M keys: {name}", [int(sizes[0]) / 1024], [int(sizes[1]) / 1024],
               "at most 0.1", "kB")


def build():
    for name, column in COLUMNS.items():
        for workers in (0, 2):
            statements = [f"SET max_parallel_maintenance_workers = {workers}"]
            for _ in range(RUNS + 1):
                statements += [f"@CREATE INDEX b ON keys ({column})",
                               f"@CREATE INDEX f ON keys USING bloomfilter ({column})"
                               " WITH (capacity = 1000000)", "DROP INDEX b, f"]
            times = psql(statements)[1][2:]
            report(f"btree's build over the filter's: {name}, {workers} workers",
                   times[0::2], times[1::2], "at least 3")


def insert():
    for name, column in COLUMNS.items():
        kind = "text" if column == "s" else "bigint"
        statements = []
        for table, index in (("none", None), ("btree", "({})"),
                             ("filter", "USING bloomfilter ({}) WITH (capacity = 1000000)")):
            statements.append(f"DROP TABLE IF EXISTS {table}_t; CREATE TABLE {table}_t (k {kind})")
            if index:
                statements.append(f"CREATE INDEX ON {table}_t {index.format('k')}")
        for _ in range(RUNS):
            for table in ("none", "btree", "filter"):
                statements += [f"TRUNCATE {table}_t", "CHECKPOINT",
                               "SELECT pg_current_wal_insert_lsn() AS lsn \\gset\n",
                               f"@INSERT INTO {table}_t SELECT {column} FROM keys",
                               f"SELECT '{table}', pg_current_wal_insert_lsn() - :'lsn'::pg_lsn"]
        rows, times = psql(statements)
        report(f"insert of 1M over the btree's: {name}", times[2::3], times[1::3], "at most 1.2")
        wal = {table: statistics.median(float(row.split("|")[1]) / 1e6 for row in rows
                                        if row.startswith(table))
               for table in ("none", "btree", "filter")}
        print(f"    without an index {statistics.median(times[0::3]):.0f} ms; "
              "WAL: " + ", ".join(f"{table} {mb:.0f} MB" for table, mb in wal.items()), flush=True)
    # keys that are there already write nothing
    times = []
    for _ in range(RUNS):
        times += psql(["CHECKPOINT", "@INSERT INTO none_t SELECT s FROM keys",
                       "CHECKPOINT", "@INSERT INTO filter_t SELECT s FROM keys"])[1]
    report("insert of keys that it has over no index", times[1::2], times[0::2], "")
    psql(["DROP TABLE none_t, btree_t, filter_t"])


def probe():
    """Nanoseconds above x > 0, which calls a C function that does nothing."""
    for capacity in (10 ** 5, 10 ** 6, 10 ** 7, 10 ** 8):
        probe_index(f"one layer for {capacity:.0e}", capacity, "keys", 1)
    psql(["DROP TABLE IF EXISTS grown", "CREATE TABLE grown (r bigint)"])
    for layers in range(1, 7):
        psql(["TRUNCATE grown", "DROP INDEX IF EXISTS f",
              "CREATE INDEX f ON grown USING bloomfilter (r) WITH (capacity = 20000)",
              f"INSERT INTO grown SELECT r FROM keys LIMIT 20000 * (2 ^ {layers} - 1) * 0.9"])
        probe_asked(f"{layers} layers", layers)
    psql(["DROP TABLE grown"])


def probe_index(name, capacity, table, layers):
    psql(["DROP INDEX IF EXISTS f",
          f"CREATE INDEX f ON {table} USING bloomfilter (r) WITH (capacity = {capacity})"])
    probe_asked(name, layers)
    psql(["DROP INDEX f"])


def probe_asked(name, layers):
    found = int(psql(["SELECT layers FROM bloom_index_info('f')"])[0][0])
    statements = []
    for _ in range(RUNS + 1):
        statements += ["@SELECT count(*) FROM keys WHERE i > 0",
                       "@SELECT count(*) FROM keys WHERE bloom_index_contains('f', i)",
                       "@SELECT count(*) FROM keys WHERE bloom_index_contains('f', r)"]
    times = psql(statements)[1][3:]
    absent = statistics.median(a - b for a, b in zip(times[1::3], times[0::3]))
    present = statistics.median(a - b for a, b in zip(times[2::3], times[0::3]))
    print(f"probe, {name} ({found} found): absent {absent:5.0f} ns, present {present:5.0f} ns above x > 0"
          f"    at most {1000 + 300 * (layers - 1)}", flush=True)


def large():
    """More than maintenance_work_mem: by files."""
    psql(["DROP TABLE IF EXISTS many",
          "CREATE TABLE many AS SELECT hashint8extended(i, 1) AS r FROM generate_series(1::bigint, 20000000) i"])
    psql(["VACUUM ANALYZE many"])
    statements = ["SET maintenance_work_mem = '16MB'", "SET max_parallel_maintenance_workers = 0"]
    for _ in range(3):
        statements += ["@CREATE INDEX b ON many (r)",
                       "@CREATE INDEX f ON many USING bloomfilter (r)", "DROP INDEX b, f"]
    times = psql(statements)[1]
    report("btree's build over the filter's: 20M, files", times[0::2], times[1::2], "at least 3")
    psql(["DROP TABLE many"])


SUITES = {"size": size, "build": build, "insert": insert, "probe": probe, "large": large}


def main():
    prepare()
    print(f"{'what':44}{'':9}{'against':>9}{'ratio':>11}  min-max     bar")
    for suite in sys.argv[1:] or list(SUITES):
        SUITES[suite]()


if __name__ == "__main__":
    main()
