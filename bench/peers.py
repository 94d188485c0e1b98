#!/usr/bin/python3
"""Against what one would take instead, in one run on one machine.

    peers.py [--quick] [--output FILE] [suite ...]

Suites: rates bits build distinct probe point space stored joins.  Prints a line
for each figure; FILE gets all of them, with the kind of machine, for charts.py.
--quick is a hundredth of the size, to see that everything runs.

Peers: btree, hash, BRIN bloom and contrib/bloom indexes; IN, EXISTS, = ANY and a
join; count(DISTINCT) and postgresql-hll; Redis sets; a Python set, and the
textbook filter in a few lines of Python.

Times are medians of alternated runs, serial, without JIT, tables in memory.
"ms" is the wall clock's, "cpu" CPU time: of the server's process, of both sides
where there is a client that waits.  On a busy machine the second is the one to
look at.
"""
import argparse
import contextlib
import datetime
import gc
import hashlib
import json
import math
import os
import pathlib
import platform
import random
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import tracemalloc

import numpy
import psycopg
import redis

import joins as by_hand

TOP = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TOP / "clients" / "python"), str(TOP / "test" / "py")]

# pylint: disable=wrong-import-position
import reference                                # noqa: E402
from bloomfilter_pg import BloomFilter          # noqa: E402

RUNS = 5
SCALE = 1                   # --quick: a hundredth
LAYOUTS = ("blocked", "standard", "cuckoo", "counting")
GROWING = "blocked, growing"

results = {}


def scaled(n):
    return max(int(n * SCALE), 1)


def record(suite, **figures):
    """A row of results, and a line on the screen."""
    figures = {name: float(f"{value:.4g}") if isinstance(value, float) else value
               for name, value in figures.items()}
    results.setdefault(suite, []).append(figures)
    print(f"{suite:9}" + "".join(f"  {name} {value:,}" if isinstance(value, (int, float))
                                 else f"  {value:26}" for name, value in figures.items()), flush=True)


# ---------------------------------------------------------------------------
# Measuring
# ---------------------------------------------------------------------------

def cpu_of(pid):
    """Seconds of CPU time that a process has had."""
    return int(pathlib.Path(f"/proc/{pid}/schedstat").read_text(encoding="ascii").split()[0]) / 1e9


class Session:
    """A connection, and the CPU time of the process behind it."""

    def __init__(self):
        self.conn = psycopg.connect(autocommit=True)
        self.conn.prepare_threshold = None
        self.pid = self.conn.info.backend_pid
        self.run("SET client_min_messages = warning; SET jit = off; SET max_parallel_workers_per_gather = 0;"
                 " SET max_parallel_maintenance_workers = 0; SET work_mem = '256MB'; SET maintenance_work_mem = '1GB';"
                 " CREATE SCHEMA IF NOT EXISTS peers; SET search_path = peers, public")

    def run(self, sql):
        cursor = self.conn.execute(sql)
        return cursor.fetchall() if cursor.description else []

    def value(self, sql):
        return self.run(sql)[0][0]

    def timer(self, *statements):
        """A function that runs the statements and returns the first one's
        milliseconds, wall and CPU."""
        def measure():
            began, cpu = time.perf_counter(), cpu_of(self.pid)
            self.run(statements[0])
            times = (1000 * (time.perf_counter() - began), 1000 * (cpu_of(self.pid) - cpu))
            for statement in statements[1:]:
                self.run(statement)
            return times
        return measure


def timer(function):
    """The same for a function of this process."""
    def measure():
        gc.collect()
        began, cpu = time.perf_counter(), time.process_time()
        function()
        return 1000 * (time.perf_counter() - began), 1000 * (time.process_time() - cpu)
    return measure


def alternate(cases, runs=RUNS):
    """Run all in turn, runs + 1 times, of which the first does not count.
    name -> medians, and the extremes of the wall clock"""
    times = {name: [] for name in cases}
    for _ in range(runs + 1):
        for name, measure in cases.items():
            times[name].append(measure())
    return {name: {"ms": statistics.median(t[0] for t in all_of[1:]),
                   "cpu": statistics.median(t[1] for t in all_of[1:]),
                   "min": min(t[0] for t in all_of[1:]), "max": max(t[0] for t in all_of[1:])}
            for name, all_of in times.items()}


# ---------------------------------------------------------------------------
# Peers outside the server
# ---------------------------------------------------------------------------

class FewLines:
    """The textbook filter as one writes it in Python: BLAKE2b, double hashing."""

    def __init__(self, n, p):
        self.bits = bytearray(math.ceil(-n * math.log(p) / math.log(2) ** 2 / 8))
        self.k = max(1, round(8 * len(self.bits) / n * math.log(2)))

    def positions(self, key):
        d = hashlib.blake2b(key.encode(), digest_size=16).digest()
        h1, h2 = int.from_bytes(d[:8], "little"), int.from_bytes(d[8:], "little") | 1
        m = 8 * len(self.bits)
        return ((h1 + i * h2) % m for i in range(self.k))

    def add(self, key):
        for i in self.positions(key):
            self.bits[i >> 3] |= 1 << (i & 7)

    def __contains__(self, key):
        return all(self.bits[i >> 3] >> (i & 7) & 1 for i in self.positions(key))


def few_lines(keys):
    built = FewLines(len(keys), 0.01)
    for key in keys:
        built.add(key)
    return built


def client_filter(keys):
    built = BloomFilter(len(keys), 0.01)
    built.update(keys)
    return built


def traced(make):
    """What make returns, and the memory that it took."""
    gc.collect()
    tracemalloc.start()
    made = make()
    size = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return made, size


@contextlib.contextmanager
def redis_server():
    """A Redis of one's own, without persistence: (process, port, socket).
    In Debian the program is in redis-tools as well, under another name."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    program = shutil.which("redis-server") or "/usr/bin/redis-check-rdb"
    with tempfile.TemporaryDirectory() as directory:
        path = directory + "/redis"
        with subprocess.Popen(["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--unixsocket", path,
                               "--save", "", "--appendonly", "no", "--dir", directory],
                              executable=program, stdout=subprocess.DEVNULL) as process:
            try:
                for _ in range(200):
                    with contextlib.suppress(redis.ConnectionError):
                        redis.Redis(port=port).ping()
                        break
                    time.sleep(0.05)
                else:
                    sys.exit("redis-server does not answer")
                yield process.pid, port, path
            finally:
                process.terminate()


# ---------------------------------------------------------------------------
# Rates and sizes
# ---------------------------------------------------------------------------

def template(n, p, layout):
    if layout == GROWING:
        return f"bloomfilter({n}, {p}, expansion => 2)"
    return f"bloomfilter({n}, {p}, layout => '{layout}')"


def shape(session, n, p, layout):
    """Bits and hashes that the server takes."""
    return session.run(f"SELECT bits, hashes FROM bloom_sizing({n}, {p}) WHERE layout = '{layout}'")[0]


def theory(session, layout, capacity, p, n):
    """False-positive rate of n elements, by formulas that are not the server's."""
    if layout == GROWING:
        none, layer = 1, 0
        while n > 0:
            size, rate = capacity * 2 ** layer, 0.15 * p * 0.85 ** layer
            m, k = shape(session, size, rate, "blocked")
            none *= 1 - reference.theory("blocked", m, k, min(n, size))
            n, layer = n - size, layer + 1
        return 1 - none
    m, k = shape(session, capacity, p, layout)
    if layout == "cuckoo":
        # f - 1 bits a slot and 95% of the slots; f is the least that meets p
        f = next(f for f in range(4, 64) if 1 - (1 - 1 / (2 ** f - 1)) ** 7.6 <= p)
        slots = m / (f - 1)
        return 1 - (1 - 1 / (2 ** f - 1)) ** (8 * n / slots)
    if layout == "counting":
        return reference.theory("standard", m // 4, k, n)       # counters of 4 bits
    return reference.theory(layout, m, k, n)


def measured_rate(session, layout, capacity, p, n, probes):
    passed, expected = session.run(f"""
        WITH made AS MATERIALIZED (SELECT bloom_agg(i, {template(capacity, p, layout)}) AS f FROM generate_series(1, {n}) i)
        SELECT (SELECT count(*) FROM generate_series(-{probes}, -1) i WHERE (SELECT f FROM made) @> i),
               bloom_expected_fpr(f) FROM made""")[0]
    return passed / probes, expected


def rates():
    """False positives against load."""
    session, capacity, probes = Session(), scaled(100_000), scaled(1_000_000)
    session.run("SET client_min_messages = error")      # overfilled on purpose
    for layout in LAYOUTS + (GROWING,):
        for load in (0.25, 0.5, 0.75, 1, 1.25, 1.5, 1.75, 2, 2.5, 3, 3.5, 4):
            if layout == "cuckoo" and load > 1:
                break                                   # it is full
            n = int(capacity * load)
            rate, expected = measured_rate(session, layout, capacity, 0.01, n, probes)
            record("rates", layout=layout, load=load, measured=rate, expected=expected,
                   theory=theory(session, layout, capacity, 0.01, n))


def bits():
    """Bits a key against the rate, and the limit that no filter gets below."""
    session, n = Session(), scaled(100_000)
    for layout in LAYOUTS:
        for exponent in (1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5, 5.5, 6):
            p = float(f"{10 ** -exponent:.3g}")
            m, _ = shape(session, 1_000_000, p, layout)
            figures = {"bits": m / 1_000_000, "limit": math.log2(1 / p)}
            if p >= 1e-4:
                figures["measured"], _ = measured_rate(session, layout, n, p, n, scaled(int(max(2e5, 200 / p))))
            record("bits", layout=layout, p=p, **figures)


# ---------------------------------------------------------------------------
# Time against n
# ---------------------------------------------------------------------------

SIZES = (10_000, 100_000, 1_000_000, 10_000_000)
PYTHON_MAX = 1_000_000      # past that, what is slow takes many minutes


def sizes():
    return [scaled(n) for n in SIZES]


def key_table(session, n):
    """n random bigints, every second number odd; even ones are nobody's."""
    if session.value(f"SELECT to_regclass('keys_{n}')") is None:
        session.run(f"CREATE UNLOGGED TABLE keys_{n} AS SELECT hashint8extended(i, 1) | 1 AS x"
                    f" FROM generate_series(1::bigint, {n}) i")
        session.run(f"VACUUM ANALYZE keys_{n}")
    return f"keys_{n}"


def python_keys(n):
    return [f"SP-{i:010}" for i in range(n)]


def build():
    session = Session()
    session.run("CREATE EXTENSION IF NOT EXISTS hll SCHEMA public")
    for n in sizes():
        table = key_table(session, n)
        cases = {what: session.timer(f"SELECT {expression} FROM {table}") for what, expression in {
            "count(x)": "count(x)",
            "count(DISTINCT x)": "count(DISTINCT x)",
            "hll": "hll_cardinality(hll_add_agg(hll_hash_bigint(x)))",
            "bloom_agg(x, n)": f"bloom_cardinality(bloom_agg(x, {n}))",
            "bloom_agg(x)": "bloom_cardinality(bloom_agg(x))",
            "bloom_agg, standard": f"bloom_cardinality(bloom_agg(x, {template(n, 0.01, 'standard')}))",
            "bloom_agg, cuckoo": f"bloom_cardinality(bloom_agg(x, {template(n, 0.01, 'cuckoo')}))",
        }.items()}
        for what, index in {"btree index": "(x)", "live index": f"USING bloomfilter (x) WITH (capacity = {max(n, 100)})"}.items():
            cases[what] = session.timer(f"CREATE INDEX built ON {table} {index}", "DROP INDEX built")
        if n <= PYTHON_MAX:
            cases["hash index"] = session.timer(f"CREATE INDEX built ON {table} USING hash (x)", "DROP INDEX built")
            keys = python_keys(n)
            cases |= {"Python set": timer(lambda k=keys: set(k)), "Python client": timer(lambda k=keys: client_filter(k)),
                      "Python, few lines": timer(lambda k=keys: few_lines(k))}
        for what, times in alternate(cases, 3 if n >= 1_000_000 else RUNS).items():
            record("build", what=what, n=n, **times)


def distinct():
    """How many distinct ones: time and error."""
    session, n = Session(), scaled(1_000_000)
    session.run("CREATE EXTENSION IF NOT EXISTS hll SCHEMA public")
    session.run(f"CREATE UNLOGGED TABLE repeated AS SELECT hashint8extended(i % {n}, 1) AS x"
                f" FROM generate_series(1::bigint, {3 * n}) i; ANALYZE repeated")
    queries = {"count(DISTINCT x)": "count(DISTINCT x)",
               "hll": "hll_cardinality(hll_add_agg(hll_hash_bigint(x)))",
               "bloom_agg(x, n)": f"bloom_cardinality(bloom_agg(x, {n}))",
               "bloom_agg(x)": "bloom_cardinality(bloom_agg(x))"}
    times = alternate({what: session.timer(f"SELECT {q} FROM repeated") for what, q in queries.items()})
    for what, q in queries.items():
        error = abs(float(session.value(f"SELECT {q} FROM repeated")) / n - 1)
        record("distinct", what=what, rows=3 * n, error=error, **times[what])
    session.run("DROP TABLE repeated")


def probe():
    """Many probes in one query, one in ten of a key: nanoseconds each."""
    session, probes = Session(), scaled(500_000)
    session.run("""CREATE FUNCTION any_of(keys bigint[]) RETURNS bigint LANGUAGE plpgsql AS $$
        DECLARE n bigint; BEGIN
        EXECUTE format('SELECT count(*) FROM probes WHERE x = ANY (%L::bigint[])', keys) INTO n;
        RETURN n; END $$""")
    for n in sizes():
        table = key_table(session, n)
        session.run(f"CREATE UNIQUE INDEX ON {table} (x)")
        session.run("DROP TABLE IF EXISTS probes, stored")
        session.run(f"""CREATE UNLOGGED TABLE probes AS
            SELECT hashint8extended(1 + i % {n}, 1) & ~1::bigint | (i % 10 = 0)::int AS x
            FROM generate_series(1::bigint, {probes}) i""")
        session.run(f"CREATE TABLE stored AS SELECT bloom_agg(x, {n}) AS f,"
                    f" bloom_agg(x, {template(n, 0.01, 'standard')}) AS s,"
                    f" bloom_agg(x, {template(n, 0.01, 'cuckoo')}) AS c FROM {table}")
        session.run("VACUUM ANALYZE probes")
        session.run("VACUUM ANALYZE stored")
        exists = f"SELECT count(*) FROM probes p WHERE EXISTS (SELECT FROM {table} k WHERE k.x = p.x)"
        cases = {what: session.timer(q) for what, q in {
            "x > 0": "SELECT count(*) FROM probes WHERE x > 0",
            "stored filter": "SELECT count(*) FROM probes WHERE (SELECT f FROM stored) @> x",
            "stored filter, standard": "SELECT count(*) FROM probes WHERE (SELECT s FROM stored) @> x",
            "stored filter, cuckoo": "SELECT count(*) FROM probes WHERE (SELECT c FROM stored) @> x",
            "IN": f"SELECT count(*) FROM probes WHERE x IN (SELECT x FROM {table})",
            "EXISTS": exists,
            "hash join": f"SELECT count(*) FROM probes JOIN {table} USING (x)",
        }.items()}
        if n <= PYTHON_MAX:
            cases["= ANY(array)"] = session.timer(f"SELECT any_of(ARRAY(SELECT x FROM {table}))")

        def lookups(query=exists):
            session.run("SET enable_hashjoin = off; SET enable_mergejoin = off")
            times = session.timer(query)()
            session.run("RESET enable_hashjoin; RESET enable_mergejoin")
            return times

        cases["btree lookup"] = lookups
        times = alternate(cases, 3 if n <= PYTHON_MAX else 2)
        rows = {session.value(q) for q in (exists, f"SELECT count(*) FROM probes JOIN {table} USING (x)")}
        assert rows == {session.value("SELECT count(*) FROM probes WHERE x & 1 = 1")}
        if n <= PYTHON_MAX:
            python_probe(n, times)
        for what, figures in times.items():
            figures = {name: value * 1e6 / probes for name, value in figures.items()}
            record("probe", what=what, n=n, ns=figures["ms"], cpu_ns=figures["cpu"])
    session.run("DROP TABLE probes, stored; DROP FUNCTION any_of")


def python_probe(n, times):
    """The same in this process; of as many probes as the server's."""
    count = scaled(500_000)
    keys, draw = python_keys(n), random.Random(1)
    asked = [keys[draw.randrange(n)] if i % 10 == 0 else f"SP-{n + i:010}" for i in range(count)]
    held = {"Python set": set(keys), "Python client": client_filter(keys), "Python, few lines": few_lines(keys)}
    array = numpy.array(asked)
    cases = {what: timer(lambda h=h: sum(key in h for key in asked)) for what, h in held.items()}
    cases["Python client, array"] = timer(lambda: held["Python client"].contains_many(array).sum())
    times |= alternate(cases, 1)


# ---------------------------------------------------------------------------
# Single checks by a client
# ---------------------------------------------------------------------------

BATCH = 1000

INDEXES = {
    "btree": "USING btree (k)", "hash": "USING hash (k)",
    # a range's filter must fit a page, so a range has at most 6,000 of these keys
    "BRIN bloom": "USING brin (k text_bloom_ops (n_distinct_per_range = 5920)) WITH (pages_per_range = 32)",
    "contrib/bloom": "USING bloom (k)",
}


def code_table(session, n):
    """n codes, SP-0000000001 and on, stored in random order."""
    session.run("DROP TABLE IF EXISTS codes")
    session.run(f"CREATE TABLE codes AS SELECT 'SP-' || lpad(i::text, 10, '0') AS k FROM generate_series(1, {n}) i"
                " ORDER BY hashint4(i)")
    session.run("VACUUM ANALYZE codes")


def code_filters(session, n):
    session.run("DROP TABLE IF EXISTS filters; CREATE TABLE filters (name text PRIMARY KEY, f bloomfilter);"
                f" INSERT INTO filters SELECT 'codes', bloom_agg(k, {n}) FROM codes")
    session.run("VACUUM ANALYZE filters")


def live_index(session, n):
    session.run(f"CREATE INDEX codes_live ON codes USING bloomfilter (k) WITH (capacity = {max(n, 100)})")


class Asked:
    """Questions to a server, one after the other: microseconds of each, the
    median of the wall clock's and the mean CPU time of both sides."""

    def __init__(self, ask, pid, keys):
        self.ask, self.pid, self.keys = ask, pid, keys

    def __call__(self):
        walls, cpu = [], time.process_time() + (cpu_of(self.pid) if self.pid else 0)
        for key in self.keys:
            began = time.perf_counter()
            self.ask(key)
            walls.append(time.perf_counter() - began)
        cpu = time.process_time() + (cpu_of(self.pid) if self.pid else 0) - cpu
        return 1e6 * statistics.median(walls), 1e6 * cpu / len(self.keys)


def point():
    session, n = Session(), scaled(1_000_000)
    code_table(session, n)
    code_filters(session, n)
    live_index(session, n)
    session.run("CREATE EXTENSION IF NOT EXISTS bloom SCHEMA public")
    keys = python_keys(n + 1)[1:]
    draw = random.Random(2)
    asked = {"absent": [f"SP-{n + draw.randrange(n) + 1:010}" for _ in range(3000)],
             "present": draw.sample(keys, min(n, 3000))}

    def ask(sql, as_list=False):
        def run(key):
            return session.conn.execute(sql, (key,), prepare=True).fetchall()
        run(["x"] if as_list else "x")
        return run

    exists = ask("SELECT EXISTS (SELECT FROM codes WHERE k = %s)")

    with redis_server() as (redis_pid, port, path):
        over = {"loopback": redis.Redis(port=port), "socket": redis.Redis(unix_socket_path=path)}
        for i in range(0, n, 10_000):
            over["socket"].sadd("codes", *keys[i:i + 10_000])
        for kind, probes in asked.items():
            held = {"Python set": set(keys), "Python client": client_filter(keys), "Python, few lines": few_lines(keys)}
            cases = {what: Asked(h.__contains__, None, probes) for what, h in held.items()}
            cases |= {f"Redis set, {by}": Asked(lambda key, r=r: r.sismember("codes", key), redis_pid, probes)
                      for by, r in over.items()}
            cases["stored filter"] = Asked(ask("SELECT f @> %s::text FROM filters WHERE name = 'codes'"), session.pid, probes)
            cases["live index"] = Asked(ask("SELECT bloom_index_contains('codes_live', %s::text)"), session.pid, probes)
            cases["SELECT true"] = Asked(ask("SELECT %s::text IS NOT NULL"), session.pid, probes)
            of_lists = {
                "stored filter": (ask("SELECT bloom_contains_each(f, %s::text[]) FROM filters WHERE name = 'codes'", True),
                                  session.pid),
                "live index": (ask("SELECT bloom_index_contains_each('codes_live', %s::text[])", True), session.pid),
                "Redis set, loopback": (lambda some: over["loopback"].smismember("codes", some), redis_pid),
                "Redis set, socket": (lambda some: over["socket"].smismember("codes", some), redis_pid),
                "Python client": (held["Python client"].contains_many, None),
            }
            lists = [probes[i:i + BATCH] for i in range(0, len(probes), BATCH)] * 3
            cases |= {("batch", what): Asked(run, pid, lists) for what, (run, pid) in of_lists.items()}
            point_rows(kind, alternate(cases, 3))
            for what, index in INDEXES.items():
                few = probes if what in ("btree", "hash") else probes[:scaled(100)]
                session.run(f"CREATE INDEX codes_tried ON codes {index}")
                session.run("SET enable_seqscan = off")
                cases = {what: Asked(exists, session.pid, few)}
                if what == "btree":
                    any_of = ask("SELECT k FROM codes WHERE k = ANY (%s)", True)
                    cases["batch", "btree"] = Asked(any_of, session.pid, lists)
                point_rows(kind, alternate(cases, 3))
                session.run("DROP INDEX codes_tried; RESET enable_seqscan")


def point_rows(kind, times):
    for what, t in times.items():
        batch = BATCH if isinstance(what, tuple) else 1
        record("point", what=what[1] if batch > 1 else what, kind=kind, batch=batch,
               us=t["ms"] / batch, cpu_us=t["cpu"] / batch)


def space():
    """Bytes a key of 13 characters."""
    session, n = Session(), scaled(1_000_000)
    code_table(session, n)
    session.run("CREATE EXTENSION IF NOT EXISTS bloom SCHEMA public")
    record("space", what="the table", bytes=session.value("SELECT pg_relation_size('codes')") / n)
    for what, index in INDEXES.items():
        session.run(f"CREATE INDEX codes_tried ON codes {index}")
        record("space", what=what, bytes=session.value("SELECT pg_relation_size('codes_tried')") / n)
        session.run("DROP INDEX codes_tried")
    live_index(session, n)
    record("space", what="live index", bytes=session.value("SELECT pg_relation_size('codes_live')") / n)
    for layout in LAYOUTS:
        size = session.value(f"SELECT (bloom_info(bloom_agg(k, {template(n, 0.01, layout)}))).bytes FROM codes")
        record("space", what=f"filter, {layout}", bytes=size / n)
    record("space", what="Python set", bytes=traced(lambda: set(python_keys(n)))[1] / n)
    record("space", what="Python, few lines", bytes=len(FewLines(n, 0.01).bits) / n)
    with redis_server() as (_, port, _):
        server = redis.Redis(port=port)
        before, keys = server.info("memory")["used_memory"], python_keys(n)
        for i in range(0, n, 10_000):
            server.sadd("codes", *keys[i:i + 10_000])
        record("space", what="Redis set", bytes=(server.info("memory")["used_memory"] - before) / n)


# ---------------------------------------------------------------------------
# Stored filters, and joins
# ---------------------------------------------------------------------------

LOOP = """CREATE FUNCTION {name}(wanted float8, n int) RETURNS void LANGUAGE plpgsql AS $$
DECLARE found {type};
BEGIN
    FOR i IN 1 .. n LOOP
        SELECT {expression} INTO found FROM filters WHERE capacity = wanted;
    END LOOP;
END $$"""


def stored():
    """A probe of one row's filter by slices, and of the whole value."""
    session, probes = Session(), scaled(10_000)
    session.run("DROP TABLE IF EXISTS filters; CREATE TABLE filters (capacity float8 PRIMARY KEY, f bloomfilter)")
    for name, kind, expression in (("ask", "boolean", "f @> -i"), ("row_of", "boolean", "f IS NULL"),
                                   ("whole", "boolean", "f::bytea::bloomfilter @> -i")):
        session.run(LOOP.format(name=name, type=kind, expression=expression))
    capacities = [scaled(c) for c in (1e4, 1e5, 1e6, 1e7, 1e8, 4e8)]
    for capacity in capacities:
        session.run(f"INSERT INTO filters SELECT {capacity}, bloom_agg(i, {capacity})"
                    f" FROM generate_series(1, {min(capacity, 1_000_000)}) i")
    session.run("VACUUM ANALYZE filters")
    for capacity in capacities:
        size = session.value(f"SELECT (bloom_info(f)).bytes FROM filters WHERE capacity = {capacity}")
        reads = max(2, int(min(1000, 4e8 / size)) // (1 if SCALE == 1 else 10))
        times = alternate({"a probe": session.timer(f"SELECT ask({capacity}, {probes})"),
                           "its row": session.timer(f"SELECT row_of({capacity}, {probes})"),
                           "read whole": session.timer(f"SELECT whole({capacity}, {reads})")}, 3)
        for what, t in times.items():
            each = 1000 / (reads if what == "read whole" else probes)
            record("stored", what=what, bytes=size, us=t["ms"] * each, cpu_us=t["cpu"] * each)
    session.run("DROP FUNCTION ask, row_of, whole")


def joins():
    """A query as one writes it, with a filter by hand, and with
    bloomfilter.join_filter: CPU time and wall clock."""
    session = Session()
    session.run("LOAD 'bloomfilter'")
    rows, keys = scaled(2_000_000), scaled(by_hand.KEYS)
    session.run("SELECT setseed(0.5)")
    for script in [by_hand.FACT.format(rows=rows, keys=keys)] + [
            by_hand.DIMENSION.format(name=name, factor=factor, keys=keys)
            for name, factor in by_hand.DIMENSIONS.items()]:
        for statement in script.split(";"):
            if statement.strip():
                session.run(statement)
    for work_mem in by_hand.WORK_MEM:
        session.run(f"SET work_mem = '{work_mem}'")
        for suite in ("join", "star", "group", "latest"):
            _, what, plain, filtered, _ = by_hand.HERE[suite]
            answers = {str(session.run(q)) for q in (plain, filtered)}

            def automatic(query=plain):
                session.run("SET bloomfilter.join_filter = on")
                times = session.timer(query)()
                session.run("SET bloomfilter.join_filter = off")
                return times

            times = alternate({"plain": session.timer(plain), "by hand": session.timer(filtered),
                               "automatic": automatic}, 3)
            session.run("SET bloomfilter.join_filter = on")
            answers.add(str(session.run(plain)))
            session.run("SET bloomfilter.join_filter = off")
            if len(answers) != 1:
                sys.exit(f"{what}: answers differ: {answers}")
            for way, t in times.items():
                record("joins", what=what, work_mem=work_mem, way=way, **t)
    session.run("DROP TABLE fact, d1, d2, d3")


# ---------------------------------------------------------------------------

SUITES = {f.__name__: f for f in (rates, bits, build, distinct, probe, point, space, stored, joins)}


def machine():
    """Its kind; nothing that tells which it is."""
    cpu = [line.split(":")[1].strip() for line in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
           if line.startswith("model name")]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {"cpu": cpu[0] if cpu else platform.machine(), "cores": os.cpu_count(), "memory_gb": round(memory / 1e9),
            "system": platform.freedesktop_os_release().get("PRETTY_NAME", ""),
            "postgresql": Session().value("SHOW server_version"), "python": platform.python_version(),
            "numpy": numpy.__version__}


def write(path, head):
    """All that has been measured so far."""
    if path:
        lines = [f'"{name}": {json.dumps(value)}' for name, value in head.items()]
        lines += [f'"{suite}": [\n  ' + ",\n  ".join(json.dumps(row) for row in rows) + "\n]"
                  for suite, rows in results.items()]
        path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def main():
    global SCALE                                        # pylint: disable=global-statement
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suites", nargs="*", choices=[[], *SUITES])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--output", type=pathlib.Path)
    args = parser.parse_args()
    if args.quick:
        SCALE = 0.01
    session = Session()
    session.run("CREATE EXTENSION IF NOT EXISTS bloomfilter SCHEMA public")
    with redis_server() as (_, port, _):
        redis_version = redis.Redis(port=port).info("server")["redis_version"]
    head = {"machine": machine() | {"redis": redis_version},
            "date": datetime.date.today().isoformat(), "load": {}}
    for name in args.suites or SUITES:
        began, load = time.monotonic(), os.getloadavg()[0]
        SUITES[name]()
        head["load"][name] = [round(load, 1), round(os.getloadavg()[0], 1)]
        print(f"{name}: {time.monotonic() - began:.0f} s; load of the machine {load:.1f} to {os.getloadavg()[0]:.1f}",
              flush=True)
        write(args.output, head)
    session.run("DROP SCHEMA peers CASCADE")


if __name__ == "__main__":
    main()
