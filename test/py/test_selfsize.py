#!/usr/bin/python3
"""Filters that size themselves: rates at a million elements, and memory.

Of T probes of absent values at most T q + 3 sqrt(T q (1 - q)) may pass, q
being the higher of the rate asked for and the rate that theory gives.

Memory is what a statement adds to the peak of a new backend (VmHWM), where
/proc shows the server's processes; elsewhere those checks are left out.
"""
import re
import subprocess

import reference
from harness import PSQL, SLOW, Checks, query, schema

MILLION = 1_000_000
MB = 1024 * 1024
LAYOUTS = ("blocked", "standard")

SERIAL = "SET max_parallel_workers_per_gather = 0;"
PARALLEL = """
    SET max_parallel_workers_per_gather = 2;
    SET parallel_setup_cost = 0;
    SET parallel_tuple_cost = 0;
    SET min_parallel_table_scan_size = 0;"""
# memory for all digests, for a quarter of them, and for hardly any
BUDGETS = {"in memory": "256MB", "beyond memory": "4MB",
           "far beyond memory": "64kB"}

checks = Checks()


def processes(parallel):
    return PARALLEL if parallel else SERIAL


def is_parallel(setup, aggregate):
    rows = query(f"{setup} EXPLAIN (COSTS OFF) {aggregate}").rows
    plan = "\n".join("|".join(row) for row in rows)
    return "Partial Aggregate" in plan and "Workers Planned" in plan


def build(name, aggregate, setup, n):
    """Keep the filter in table f; its m and k."""
    result = query(f"""
        {setup}
        DROP TABLE IF EXISTS f;
        CREATE TABLE f AS {aggregate};
        SELECT bits, hashes, capacity FROM f, bloom_info(filter);
        SELECT count(*) FROM pg_ls_tmpdir()
        WHERE substring(name FROM '\\d+')::int NOT IN
            (SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid());
        """)
    (m, k, capacity), (files,) = result.rows
    checks.equal(result.warnings, [], f"{name}: warnings")
    checks.equal(files, "0", f"{name}: temporary files left")
    checks.check(float(capacity) >= 0.99 * n, f"{name}: capacity {capacity}")
    return int(m), int(k)


def check_filter(name, layout, m, k, n, size_limit):
    """Contents 1 to n, size, and rate."""
    missed, passed = map(int, query(f"""
        {SERIAL}
        SELECT count(*) FILTER (WHERE x <= {n} AND NOT f @> x),
               count(*) FILTER (WHERE x > {n} AND f @> x)
        FROM (SELECT filter::bytea::bloomfilter AS f FROM f OFFSET 0) f,
             generate_series(1, 2 * {n}) x""").rows[0])
    size = {"blocked": reference.blocked_size,
            "standard": reference.standard_size}[layout](n, 0.01)[0]
    rate = float(reference.theory(layout, m, k, n))
    limit = reference.bound(n, max(0.01, rate))
    checks.equal(missed, 0, f"{name}: members missed")
    checks.check(m <= size * size_limit,
                 f"{name}: {m / size:.3f} x the sized filter")
    checks.check(passed <= limit,
                 f"{name}: {passed / n:.3%} pass (theory {rate:.3%})")


def rates(layout, duplicates):
    """A million distinct, shuffled.

    Past memory, a parallel build whose processes have very different shares
    may end one size larger.
    """
    n = MILLION
    rows = n * duplicates
    query(f"""
        DROP TABLE IF EXISTS t;
        CREATE UNLOGGED TABLE t WITH (parallel_workers = 2) AS
            SELECT 1 + i * 7919 % {rows} % {n} AS x
            FROM generate_series(1, {rows}::bigint) i;
        ANALYZE t;""")
    aggregate = f"""SELECT bloom_agg(x, bloomfilter(layout => '{layout}'))
                    AS filter FROM t"""
    for parallel in (False, True):
        for budget, work_mem in BUDGETS.items():
            name = (f"{layout}, {duplicates} each, "
                    f"{'parallel' if parallel else 'serial'}, {budget}")
            setup = f"""{processes(parallel)} SET work_mem = '{work_mem}';
                        SET hash_mem_multiplier = 1;"""
            checks.equal(is_parallel(setup, aggregate), parallel,
                         f"{name}: partial plan")
            m, k = build(name, aggregate, setup, n)
            check_filter(name, layout, m, k, n,
                         1.03 if budget == "in memory" else
                         4.2 if parallel else 2.1)


def small_numbers():
    """Many filters of few elements, each probed a hundred times or so."""
    for n, count in ((1, 20_000), (2, 20_000), (3, 10_000), (10, 10_000),
                     (1000, 1000)):
        repeats = 10 if n < 1000 else 2
        for layout in LAYOUTS:
            passed, missed, m, k = map(int, query(f"""
                {SERIAL}
                SELECT sum(p), sum(r), min(b), min(h)
                FROM (SELECT bloom_agg(g * 10000::bigint + x % {n},
                          bloomfilter(layout => '{layout}')) AS f, g
                      FROM generate_series(1, {count}) g,
                           generate_series(1, {n * repeats}) x
                      GROUP BY g) s,
                LATERAL (SELECT
                    count(*) FILTER (WHERE x >= {n} AND
                                     f @> g * 10000::bigint + x) AS p,
                    count(*) FILTER (WHERE x < {n} AND NOT
                                     f @> g * 10000::bigint + x) AS r
                    FROM generate_series(0, {n + max(n, 100)} - 1) x) c,
                LATERAL (SELECT bits AS b, hashes AS h FROM bloom_info(f)) i
                """).rows[0])
            rate = float(reference.theory(layout, m, k, n))
            probes = count * max(n, 100)
            limit = reference.bound(probes, max(0.01, rate))
            name = f"{layout}, {count} filters of {n}"
            checks.equal(missed, 0, f"{name}: members missed")
            checks.check(passed <= limit, f"{name}: {passed / probes:.3%} "
                         f"pass (theory {rate:.3%})")


# -- memory


class Session:
    """One backend, whose peak /proc tells."""

    def __init__(self):
        self.psql = subprocess.Popen(
            PSQL, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = int(self.run("SELECT pg_backend_pid();"))

    def run(self, sql):
        """The rows, as text."""
        self.psql.stdin.write(f"{sql}\n\\echo done\n")
        self.psql.stdin.flush()
        lines = []
        for line in self.psql.stdout:
            if line == "done\n":
                return "".join(lines).strip()
            lines.append(line)
        raise RuntimeError("psql ended: " + "".join(lines))

    def peak(self):
        """Without the shared buffers that it touched."""
        with open(f"/proc/{self.pid}/status", encoding="ascii") as file:
            fields = dict(re.findall(r"^(\w+):\s+(\d+) kB", file.read(),
                                     re.MULTILINE))
        return 1024 * (int(fields["VmHWM"]) - int(fields["RssShmem"]))

    def close(self):
        self.psql.stdin.close()
        self.psql.wait()


def peak_of(setup, sql):
    """A statement's result, and the bytes that it adds to the peak."""
    session = Session()
    try:
        # what a backend takes once, before anything is measured
        session.run(f"""{setup}
            SELECT bloom_agg(x) IS NULL, count(DISTINCT x) IS NULL
            FROM generate_series(1, 1000) x;""")
        before = session.peak()
        return session.run(sql), session.peak() - before
    finally:
        session.close()


def can_measure():
    session = Session()
    try:
        with open(f"/proc/{session.pid}/comm", encoding="ascii") as file:
            return "postgres" in file.read()
    except OSError:
        return False
    finally:
        session.close()


def memory(n, parallel):
    """At the default work_mem.

    The leader of a parallel plan has a filter of its own, one that arrives,
    and the union.
    """
    budget = int(query("""
        SELECT (pg_size_bytes(current_setting('work_mem')) *
            current_setting('hash_mem_multiplier')::float8)::bigint""").value)
    # rows that no tuplestore has to hold
    source = f"(SELECT generate_series(1, {n}::bigint) AS x) s"
    if parallel:
        query(f"""DROP TABLE IF EXISTS t;
                  CREATE UNLOGGED TABLE t AS SELECT x FROM {source};
                  ANALYZE t;""")
        source = "t"
    result, peak = peak_of(processes(parallel), f"""
        SELECT (bloom_info(f)).bytes, (bloom_info(f)).capacity
        FROM (SELECT bloom_agg(x) AS f FROM {source} OFFSET 0) s;""")
    size, capacity = map(int, result.split("|"))
    limit = 3 * budget + (8 if parallel else 6) * size + 40 * MB
    name = f"{n // MILLION}M distinct, {'parallel' if parallel else 'serial'}"
    print(f"        {name}: filter {size / MB:.1f} MB (for {capacity}),"
          f" hash memory {budget / MB:.0f} MB,"
          f" all digests {16 * n / MB:.0f} MB")
    checks.check(peak <= limit, f"{name}: peak {peak / MB:.1f} MB"
                 f" of at most {limit / MB:.1f}")


def groups():
    """10^5 groups of three, each with a state in one hash table."""
    n = 100_000
    peaks = {}
    for aggregate in ("bloom_agg", "array_agg"):
        result, peaks[aggregate] = peak_of(
            f"{SERIAL} SET work_mem = '1GB';", f"""
            SELECT count(*) FROM (SELECT {aggregate}(x)
            FROM (SELECT generate_series(1, {3 * n}) AS x) s
            GROUP BY x % {n} OFFSET 0) s;""")
        checks.equal(result, str(n), f"{aggregate}: groups")
    checks.check(peaks["bloom_agg"] <= 2 * peaks["array_agg"],
                 "a group of 3 takes {bloom_agg:.0f} bytes, with array_agg "
                 "{array_agg:.0f}".format(
                     **{name: peak / n for name, peak in peaks.items()}))


def nested_rows():
    """What is looked up for a row does not pile up."""
    peaks = [peak_of(SERIAL, f"""
        SELECT bloom_agg(ROW(x, ROW(x, ARRAY[(x, 'a')::pair])), 1000) IS NULL
        FROM (SELECT generate_series(1, {n}) % 1000 AS x) s;""")[1]
             for n in (20_000, 400_000)]
    checks.check(peaks[1] - peaks[0] < 2 * MB,
                 f"nested rows: peak {peaks[0] / MB:.1f} MB, of 20 times as"
                 f" many {peaks[1] / MB:.1f}")


with schema("test_selfsize"):
    query("CREATE TYPE pair AS (a int, b text)")
    checks.part(small_numbers)
    checks.part(rates, "blocked", 1)
    checks.part(rates, "standard", 1)
    checks.part(rates, "blocked", 10)
    if SLOW:
        checks.part(rates, "standard", 10)
    if can_measure():
        checks.part(memory, 10 * MILLION, False)
        checks.part(memory, 10 * MILLION, True)
        checks.part(groups)
        checks.part(nested_rows)
        if SLOW:
            checks.part(memory, 100 * MILLION, False)
            checks.part(memory, 100 * MILLION, True)
    else:
        print("        no memory is measured: /proc does not show the server")
checks.close()
