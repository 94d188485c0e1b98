"""What the live filter costs, against a btree on the same column.

Ratios of alternated runs.  The CPU time of the server's process, since that is
what a busy machine does not change much; wall time where there are workers.
The server must run on this machine, with shared_buffers for all of it.

    live.py [suite ...]        suites: size build insert probe large
"""
import statistics
import subprocess
import sys
import time

RUNS = 5
TICK = 10                       # milliseconds of /proc

# column of the table keys -> what is in it
COLUMNS = {
    "bigint, in order": "i",
    "bigint, random": "r",
    "text, random": "s",
}


class Session:
    """psql, and the server's process behind it."""

    def __init__(self):
        # pylint: disable=consider-using-with
        self.psql = subprocess.Popen(
            ["psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.run("SET client_min_messages = warning")
        self.run("SET max_parallel_workers_per_gather = 0")
        self.run("SET jit = off")
        self.pid = int(self.run("SELECT pg_backend_pid()"))

    def run(self, sql):
        """What it prints."""
        self.psql.stdin.write(f"{sql};\n\\echo done\n")
        self.psql.stdin.flush()
        lines = []
        for line in self.psql.stdout:
            if line == "done\n":
                return "".join(lines).strip()
            lines.append(line)
        sys.exit(f"failed: {sql}")

    def cpu(self):
        """Milliseconds so far."""
        with open(f"/proc/{self.pid}/stat", encoding="ascii") as file:
            fields = file.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) * TICK

    def timed(self, sql):
        """Milliseconds: (CPU, wall)"""
        cpu, wall = self.cpu(), time.monotonic()
        self.run(sql)
        return self.cpu() - cpu, (time.monotonic() - wall) * 1000


def report(what, times, against, bar, unit="ms"):
    """times, against: of alternated runs"""
    ratios = sorted(a / b for a, b in zip(times, against))
    print(f"{what:52}{statistics.median(times):8.0f}{statistics.median(against):8.0f} {unit:3}"
          f"{statistics.median(ratios):7.2f}  {ratios[0]:.2f}-{ratios[-1]:.2f}   {bar}", flush=True)


def size(db):
    for name, column in COLUMNS.items():
        db.run(f"CREATE INDEX b ON keys ({column})")
        db.run(f"CREATE INDEX f ON keys USING bloomfilter ({column}) WITH (capacity = 1000000)")
        sizes = [int(db.run(f"SELECT pg_relation_size('{index}')")) / 1024 for index in "fb"]
        db.run("DROP INDEX b, f")
        report(f"size over the btree's, 1M keys: {name}", sizes[:1], sizes[1:], "at most 0.1", "kB")


def build(db):
    for workers in (0, 2):
        db.run(f"SET max_parallel_maintenance_workers = {workers}")
        for name, column in COLUMNS.items():
            build_both(db, "keys", column, name, workers, RUNS)


def build_both(db, table, column, name, workers, runs):
    kind = 1 if workers else 0
    btree, live = [], []
    for _ in range(runs + 1):
        btree.append(db.timed(f"CREATE INDEX b ON {table} ({column})")[kind])
        live.append(db.timed(f"CREATE INDEX f ON {table} USING bloomfilter ({column})")[kind])
        db.run("DROP INDEX b, f")
    report(f"btree's build over the filter's: {name}" + (", workers" if workers else ""),
           btree[1:], live[1:], "at least 3")


def insert(db):
    for name, column in COLUMNS.items():
        kind = "text" if column == "s" else "bigint"
        tables = {"none": None, "btree": "(k)",
                  "live": "USING bloomfilter (k) WITH (capacity = 1000000)"}
        times, wal = {}, {}
        for table, index in tables.items():
            db.run(f"CREATE TABLE {table} (k {kind})")
            if index:
                db.run(f"CREATE INDEX ON {table} {index}")
        for _ in range(RUNS):
            for table in tables:
                db.run(f"TRUNCATE {table}")
                db.run("CHECKPOINT")
                lsn = db.run("SELECT pg_current_wal_insert_lsn()")
                times.setdefault(table, []).append(
                    db.timed(f"INSERT INTO {table} SELECT {column} FROM keys")[0])
                wal.setdefault(table, []).append(float(db.run(
                    f"SELECT (pg_current_wal_insert_lsn() - '{lsn}') / 1e6")))
        report(f"insert of 1M over the btree's: {name}", times["live"], times["btree"], "at most 1.2")
        print(f"    without an index {statistics.median(times['none']):.0f} ms; WAL, MB: " +
              ", ".join(f"{table} {statistics.median(mb):.0f}" for table, mb in wal.items()))
        again = {"none": [], "live": []}
        for _ in range(RUNS):
            for table, ms in again.items():
                ms.append(db.timed(f"INSERT INTO {table} SELECT {column} FROM keys")[0])
        report(f"insert of keys that it has, over no index: {name}", again["live"], again["none"], "")
        db.run("DROP TABLE none, btree, live")


def probe(db):
    """Above x > 0, which calls a C function that does nothing, for 1M rows:
    milliseconds are nanoseconds a probe."""
    for capacity in (10 ** 5, 10 ** 6, 10 ** 7, 10 ** 8):
        db.run(f"CREATE INDEX f ON keys USING bloomfilter (r) WITH (capacity = {capacity})")
        probe_index(db, f"one layer for {capacity:,} keys", 1)
        db.run("DROP INDEX f")
    db.run("CREATE TABLE grown (r bigint)")
    db.run("CREATE INDEX f ON grown USING bloomfilter (r) WITH (capacity = 20000)")
    for layers in range(1, 7):
        db.run("TRUNCATE grown")
        db.run(f"INSERT INTO grown SELECT r FROM keys LIMIT {20000 * (2 ** layers - 1) * 0.9}")
        found = int(db.run("SELECT layers FROM bloom_index_info('f')"))
        probe_index(db, f"{found} layers", found)
    db.run("DROP TABLE grown")


def probe_index(db, name, layers):
    queries = {"none": "i > 0", "absent": "bloom_index_contains('f', i)",
               "present": "bloom_index_contains('f', r)"}
    times = {kind: [] for kind in queries}
    for _ in range(RUNS + 1):
        for kind, condition in queries.items():
            times[kind].append(db.timed(f"SELECT count(*) FROM keys WHERE {condition}")[0])
    above = {kind: statistics.median(a - b for a, b in zip(ms[1:], times["none"][1:]))
             for kind, ms in times.items()}
    print(f"probe, {name}: {above['absent']:.0f} ns absent, {above['present']:.0f} ns present, "
          f"above x > 0   at most {1000 + 300 * (layers - 1)}", flush=True)


def large(db):
    """More keys than maintenance_work_mem holds: by files."""
    db.run("CREATE TABLE many AS SELECT hashint8extended(i, 1) AS r"
           " FROM generate_series(1::bigint, 20000000) i")
    db.run("VACUUM ANALYZE many")
    db.run("SET max_parallel_maintenance_workers = 0")
    db.run("SET maintenance_work_mem = '16MB'")
    build_both(db, "many", "r", "20M, by files", 0, 2)
    db.run("DROP TABLE many")


SUITES = {"size": size, "build": build, "insert": insert, "probe": probe, "large": large}


def main():
    db = Session()
    db.run("CREATE EXTENSION IF NOT EXISTS bloomfilter")
    db.run("DROP TABLE IF EXISTS keys, none, btree, live, grown, many")
    db.run("CREATE TABLE keys AS SELECT i, hashint8extended(i, 1) AS r,"
           " 'SP-' || lpad((hashint8extended(i, 2) & 1099511627775)::text, 13, '0') AS s"
           " FROM generate_series(1::bigint, 1000000) i")
    db.run("VACUUM ANALYZE keys")
    for suite in sys.argv[1:] or list(SUITES):
        SUITES[suite](db)
    db.run("DROP TABLE keys")


if __name__ == "__main__":
    main()
