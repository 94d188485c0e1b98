"""Join filters change no result: random queries over random schemas, each run
with bloomfilter.join_filter off and on, under the same settings of the planner.

    test_joinfilter.py [--seed N] [--queries N] [--library PATH] [--mutant]

Everything random comes from the seed, which is printed.  A query that differs is
made smaller, and printed with what it takes to run it again.

--library PATH  load this build of the module in place of the installed one, and
                have the extension's functions in this database use it
--mutant        the library is a broken one: pass if a query finds it out
"""
import argparse
import collections
import contextlib
import random
import re
import socket
import struct
import sys
import threading
import time

import harness
import joinqueries as jq
import psycopg
from psycopg import pq

SCHEMA = "joinfilter"
ROLE = "joinfilter_reader"
ENABLE = "bloomfilter.join_filter"
FORCE = "bloomfilter.join_filter_force"     # whatever the estimates say
PROBE = r"Custom Scan \(BloomProbe\)"               # in EXPLAIN, of a plan with a filter
DROPPED = r"Dropped: (\d+)"                   # in EXPLAIN ANALYZE
TIMEOUT = "57014"
STATEMENT_MS = 600          # what takes longer is left,
MOST_ROWS = 100_000         # and what returns more
EPILOGUE = "ROLLBACK; RESET ROLE; DEALLOCATE ALL; CLOSE ALL"

QUERIES = 25_000 if harness.SLOW else 2_000
PER_SCHEMA = 60
SHRINK_SECONDS = 20


class Crash(Exception):
    """The server went away"""


class Session:
    """One connection, as superuser, with the module loaded"""

    def __init__(self, library):
        self.conn = psycopg.connect(autocommit=True)
        self.version = self.conn.info.server_version
        self.notices = []
        self.conn.add_notice_handler(lambda d: self.notices.append(d.message_primary))
        self.must(f"LOAD '{library}'; SET search_path = {SCHEMA}, public;"
                  " SET client_min_messages = notice")

    def run(self, sql):
        """The last statement's rows, each one bytes; or an error (code, message)"""
        pgconn = self.conn.pgconn
        rows, error, canceled = [], None, False
        complete = False        # rows: those to come are another statement's
        try:
            pgconn.send_query(sql.encode())
            pgconn.set_single_row_mode()
            while (result := pgconn.get_result()) is not None:
                if complete:
                    rows, complete = [], False
                if result.status == pq.ExecStatus.SINGLE_TUPLE:
                    if len(rows) < MOST_ROWS:
                        rows.append(b"|".join(
                            b"(null)" if (v := result.get_value(0, j)) is None else v
                            for j in range(result.nfields)))
                    elif not canceled:
                        pgconn.get_cancel().cancel()
                        canceled = True
                elif result.status in (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK,
                                       pq.ExecStatus.EMPTY_QUERY):
                    complete = True
                else:
                    if pgconn.status != pq.ConnStatus.OK:
                        raise Crash(result.error_message.decode())
                    error = (result.error_field(pq.DiagnosticField.SQLSTATE).decode(),
                             result.error_field(pq.DiagnosticField.MESSAGE_PRIMARY).decode())
        except psycopg.OperationalError as gone:
            raise Crash(str(gone)) from gone
        if canceled:
            error = TIMEOUT, "more rows than are looked at"
        return (None, error) if error else (rows, None)

    def must(self, sql):
        rows, error = self.run(sql)
        if error is not None:
            raise RuntimeError(f"{error[0]}: {error[1]}\n{sql}")
        return [row.decode() for row in rows]

    def close(self):
        self.conn.close()


# ---------------------------------------------------------------------------
# Cases
# ---------------------------------------------------------------------------

ROWS = "rows"           # compared as a multiset
LIST = "list"           # compared in order
MORE = "more"           # as a multiset, together with those of the step before
QUIET = "quiet"         # not compared


class Case:
    """Statements that are run in one transaction, off and on"""

    def __init__(self, kind, settings, steps, explain=None, force=True, role=None):
        self.kind = kind
        self.settings = settings
        self.steps = steps          # (tree, how to compare)
        self.explain = explain      # (steps before it, tree): its plan tells of a probe
        self.force = force
        self.role = role

    def prologue(self, on, without=()):
        chosen = {k: v for k, v in self.settings.items() if k not in without}
        chosen[ENABLE] = "on" if on else "off"
        chosen[FORCE] = "on" if self.force else "off"
        return "; ".join([f"SELECT setval('{SCHEMA}.ticks', 1, false); BEGIN",
                          f"SET LOCAL statement_timeout = {STATEMENT_MS}"] +
                         [f"SET LOCAL {k} = {v}" for k, v in chosen.items()] +
                         ([f"SET LOCAL ROLE {self.role}"] if self.role else []))

    def statements(self, gone=frozenset()):
        return [(jq.render(tree, gone), how) for tree, how in self.steps]

    def run(self, session, on, gone=frozenset(), without=()):
        """What it returns, in a form that can be compared"""
        session.must(self.prologue(on, without))
        outcome = []
        for sql, how in self.statements(gone):
            rows, error = session.run(sql)
            if error is not None:
                outcome.append(("error", error))
                break
            if how == MORE:
                outcome[-1] = (ROWS, sorted(outcome[-1][1] + rows))
            elif how != QUIET:
                outcome.append((how, sorted(rows) if how == ROWS else rows))
        self.end(session)
        if not any(how == "error" for how, _ in outcome):
            outcome.append((LIST, session.must(f"SELECT last_value, is_called FROM {SCHEMA}.ticks")))
        return outcome

    @staticmethod
    def end(session):
        """Leave the transaction, and its limit of time, before the rest"""
        session.run("ROLLBACK")
        session.must(EPILOGUE)

    def plan(self, session, analyze=False):
        """EXPLAIN's text with the filter on, or None"""
        if self.explain is None:
            return None
        session.must(self.prologue(True))
        how = "ANALYZE, COSTS off, TIMING off, SUMMARY off" if analyze else "COSTS off"
        before, tree = self.explain
        for sql, _ in self.steps[:before]:
            session.run(jq.render(sql))
        rows, error = session.run(f"EXPLAIN ({how}) {jq.render(tree)}")
        self.end(session)
        return None if error else b"\n".join(rows).decode()


def timed_out(outcome):
    return any(how == "error" and what[0] == TIMEOUT for how, what in outcome)


class Cases:
    """Random cases over one schema"""

    KINDS = (["digest"] * 30 + ["rows"] * 12 + ["ordered"] * 8 + ["prepared"] * 8 + ["cursor"] * 6 +
             ["hold"] * 2 + ["function"] * 5 + ["update"] * 4 + ["delete"] * 4 + ["merge"] * 3 +
             ["insert"] * 2 + ["lock"] * 4 + ["created"] * 2)

    def __init__(self, rng, schema, version):
        self.rng = rng
        self.schema = schema
        self.version = version

    def make(self):
        rng = self.rng
        kind = rng.choice(self.KINDS)
        parallel = rng.random() < 0.12
        queries = jq.Queries(rng, self.schema, self.version)
        queries.volatile = not parallel
        case = None
        while case is None:
            case = getattr(self, kind)(queries)
        steps, explain = case
        chosen = jq.settings(rng, self.version, parallel)
        if kind == "prepared":
            chosen["plan_cache_mode"] = rng.choice(("auto", "force_generic_plan",
                                                    "force_custom_plan"))
        role = ROLE if kind not in ("function", "created") and rng.random() < 0.2 else None
        return Case(kind, chosen, steps, explain, rng.random() < 0.9, role)

    # each returns its steps, and the tree that EXPLAIN takes

    def columns(self, cols):
        return ", ".join(c.canonical for c in cols)

    def digest(self, queries):
        """A large result as two numbers"""
        body, cols = queries.query()
        sql = [f"SELECT count(*), sum(hashtextextended(ROW({self.columns(cols)})::text, 0))"
               " FROM (", body, ") q"]
        return [(sql, ROWS)], (0, sql)

    def rows(self, queries):
        body, cols = queries.query()
        sql = [f"SELECT {self.columns(cols)} FROM (", body, ") q"]
        return [(sql, ROWS)], (0, sql)

    def ordered(self, queries):
        body, cols = queries.query()
        order = ", ".join(str(i) + self.rng.choice(("", " DESC", " NULLS FIRST"))
                          for i in range(1, len(cols) + 1))
        limit = self.rng.choice(("", " LIMIT 1", " LIMIT 10", " LIMIT 50 OFFSET 5",
                                 " FETCH FIRST 7 ROWS ONLY"))
        sql = [f"SELECT {self.columns(cols)} FROM (", body, f") q ORDER BY {order}", limit]
        return [(sql, LIST)], (0, sql)

    def prepared(self, queries):
        """One plan for several executions, or several plans"""
        queries.parameter = "$1"
        body, cols = queries.query()
        sql = [f"PREPARE p (int) AS SELECT {self.columns(cols)} FROM (", body, ") q"]
        values = [self.rng.choice(("0", "3", "7", "20", "40", "NULL"))
                  for _ in range(self.rng.choice((2, 3, 7)))]
        runs = [(f"EXECUTE p ({v})", ROWS) for v in values]
        return [(sql, QUIET)] + runs, (1, f"EXECUTE p ({values[0]})")

    def cursor(self, queries):
        """Fetched in parts, beside another query, and backward"""
        body, cols = queries.query()
        how = self.rng.choice(("", "SCROLL ", "SCROLL ", "NO SCROLL "))
        sql = [f"DECLARE c {how}CURSOR FOR SELECT {self.columns(cols)} FROM (", body, ") q"]
        steps = [(sql, QUIET), ("FETCH 3 FROM c", ROWS)]
        if self.rng.random() < 0.3:
            steps.append(("SELECT count(*) FROM generate_series(1, 3)", QUIET))
        steps += [("FETCH 10 FROM c", MORE), ("FETCH ALL FROM c", MORE)]
        if how == "SCROLL ":
            steps += [("FETCH BACKWARD ALL FROM c", ROWS), ("FETCH ALL FROM c", ROWS),
                      ("MOVE ABSOLUTE 0 IN c", QUIET), ("FETCH ALL FROM c", ROWS)]
        return steps, (0, sql)

    def hold(self, queries):
        """A cursor that outlives its transaction"""
        body, cols = queries.query()
        sql = [f"DECLARE c CURSOR WITH HOLD FOR SELECT {self.columns(cols)} FROM (", body, ") q"]
        return [(sql, QUIET), ("FETCH 5 FROM c", ROWS), ("COMMIT", QUIET), ("FETCH ALL FROM c", MORE),
                ("CLOSE c; BEGIN", QUIET)], (0, sql)

    def function(self, queries):
        """A query in a function, of its parameter; called for several rows"""
        queries.parameter = "x"
        body, cols = queries.query()
        digest = f"count(*)::text || ' ' || coalesce(sum(hashtextextended(ROW({self.columns(cols)})::text," \
                 " 0)), 0)"
        form = self.rng.choice(("loop", "into", "sql"))
        if form == "sql":
            make = ["CREATE FUNCTION f(x int) RETURNS text LANGUAGE sql AS $$",
                    f"SELECT {digest} FROM (", body, ") q $$"]
        elif form == "into":
            make = ["CREATE FUNCTION f(x int) RETURNS text LANGUAGE plpgsql AS $$ DECLARE t text; BEGIN ",
                    f"SELECT {digest} INTO t FROM (", body, ") q; RETURN t; END $$"]
        else:
            make = ["CREATE FUNCTION f(x int) RETURNS text LANGUAGE plpgsql AS $$ DECLARE n int := 0;"
                    f" s numeric := 0; r record; BEGIN FOR r IN SELECT {self.columns(cols)} FROM (",
                    body, ") q LOOP n := n + 1; s := s + hashtext(r::text); END LOOP;"
                    " RETURN n || ' ' || s; END $$"]
        calls = [("SELECT v, f(v) FROM unnest(ARRAY[0, 5, 20, NULL]) v", ROWS)] * \
            self.rng.choice((1, 2))
        return [(make, QUIET)] + calls, None

    def target(self):
        """A table to change, and an alias"""
        table = self.rng.choice(self.schema.tables)
        return table, [jq.Col(f"m.{name}", family) for name, family, _ in table.columns]

    def source(self, queries, cols):
        """FROM's part of a change: SQL, and conditions"""
        other, others = queries.relation(1)
        keys = queries.keys(cols, others)
        if keys is None:
            return None
        conditions = [keys[0]] + [jq.Opt(k, other="true") for k in keys[1:]]
        if self.rng.random() < 0.6:
            conditions.append(jq.Opt(queries.restriction(others), other="true"))
        if self.rng.random() < 0.5:
            third, more = queries.relation(0)
            keys = queries.keys(others, more)
            if keys is not None:
                other = [other, ", ", third]
                conditions += [keys[0]] + [jq.Opt(queries.restriction(more), other="true")]
        return other, conditions

    def contents(self, table):
        """All of a table"""
        cols = [jq.Col(name, family) for name, family, _ in table.columns]
        return (f"SELECT tableoid::regclass, {self.columns(cols)} FROM {table.name}", ROWS)

    def update(self, queries):
        table, cols = self.target()
        found = self.source(queries, cols)
        if found is None:
            return None
        sql = [f"UPDATE {table.name} m SET n = m.n + {self.rng.choice((0, 1, 7))} FROM ", found[0],
               " WHERE ", jq.joined(" AND ", found[1]),
               jq.Opt(self.rng.choice(("", " RETURNING m.id")))]
        return [(sql, ROWS), self.contents(table)], (0, sql)

    def delete(self, queries):
        table, cols = self.target()
        found = self.source(queries, cols)
        if found is None:
            return None
        sql = [f"DELETE FROM {table.name} m USING ", found[0], " WHERE ",
               jq.joined(" AND ", found[1]), jq.Opt(self.rng.choice(("", " RETURNING m.id, m.n")))]
        return [(sql, ROWS), self.contents(table)], (0, sql)

    def merge(self, queries):
        table, cols = self.target()
        families = [c.family for c in cols]
        sub, subcols = queries.select(1, families=self.rng.sample(families, 1))
        if sub is None:
            return None
        found = [jq.Col(f"s.{c.expr}", c.family) for c in subcols]
        condition = queries.equality(self.rng.choice([c for c in cols if c.family is found[0].family]),
                                     found[0])
        actions = self.rng.choice(("", " WHEN MATCHED AND m.id % 3 = 0 THEN DELETE")) + \
            self.rng.choice(("", " WHEN MATCHED THEN UPDATE SET n = m.n + 1")) + \
            self.rng.choice((" WHEN NOT MATCHED AND s.c1 IS NULL THEN DO NOTHING",
                             " WHEN NOT MATCHED THEN INSERT (id, n) VALUES (-1, 3)"))
        # several matches of a row are an error: mostly avoided
        distinct = "DISTINCT " if self.rng.random() < 0.9 else ""
        sql = [f"MERGE INTO {table.name} m USING (SELECT {distinct}* FROM (", sub, ") u) s ON ",
               condition, actions]
        return [(sql, QUIET), self.contents(table)], (0, sql)

    def insert(self, queries):
        table, _ = self.target()
        sub, _ = queries.select(1, families=[jq.INT, jq.INT])
        if sub is None:
            return None
        sql = [f"INSERT INTO {table.name} (id, n) SELECT -1 - abs(q.c1 % 1000)::int,"
               " abs(q.c2 % 40)::int FROM (", sub, ") q", jq.Opt(" RETURNING id, n")]
        return [(sql, ROWS), self.contents(table)], (0, sql)

    def lock(self, queries):
        """SELECT … FOR UPDATE"""
        table, cols = self.target()
        found = self.source(queries, cols)
        if found is None:
            return None
        how = self.rng.choice(("UPDATE OF m", "SHARE OF m", "KEY SHARE OF m",
                               "NO KEY UPDATE OF m SKIP LOCKED"))
        sql = [f"SELECT m.id, {self.columns(cols)} FROM {table.name} m, ", found[0], " WHERE ",
               jq.joined(" AND ", found[1]), jq.Opt(f" FOR {how}")]
        return [(sql, ROWS)], (0, sql)

    def created(self, queries):
        """CREATE TABLE AS"""
        body, cols = queries.query()
        sql = ["CREATE TEMPORARY TABLE made AS ", body]
        return [(sql, QUIET), (f"SELECT {self.columns(cols)} FROM made", ROWS)], (0, sql)


# ---------------------------------------------------------------------------
# A difference: made smaller, and shown
# ---------------------------------------------------------------------------

def shrink(case, differs):
    """Parts and settings that can be left out while it still differs"""
    until = time.monotonic() + SHRINK_SECONDS
    gone, without = frozenset(), ()
    again = True
    while again:
        again = False
        for option in [o for tree, _ in case.steps for o in jq.options(tree)]:
            if id(option) in gone or time.monotonic() > until:
                continue
            if differs(gone | {id(option)}, without):
                gone, again = gone | {id(option)}, True
        for name in case.settings:
            if name in without or time.monotonic() > until:
                continue
            if differs(gone, without + (name,)):
                without, again = without + (name,), True
    return gone, without


def show(case, schema, outcomes, gone, without, number):
    """What it takes to see it again"""
    print(f"--- query {number}, kind {case.kind}: differs. Setup:")
    for line in schema.setup:
        print(line.format(schema=SCHEMA, role=ROLE).strip() + ";")
    print(f"--- with {ENABLE} = on, against off:")
    print(case.prologue(True, without).replace("; ", ";\n") + ";")
    for sql, _ in case.statements(gone):
        print(sql + ";")
    print("ROLLBACK;")
    for (how, off), (_, on) in zip(*outcomes):
        if off == on:
            continue
        if how == ROWS and isinstance(on, list):
            off, on = collections.Counter(off), collections.Counter(on)
            print(f"--- missing with the filter: {list((off - on).elements())[:10]}")
            print(f"--- only with the filter: {list((on - off).elements())[:10]}")
        else:
            print(f"--- off: {str(off)[:500]}\n--- on:  {str(on)[:500]}")
    sys.stdout.flush()


class Run:
    """Random queries until there are enough of them"""

    def __init__(self, seed, library):
        self.seed = seed
        self.library = library
        self.session = None
        self.schema = None
        self.counts = collections.Counter()

    def connect(self):
        until = time.monotonic() + 30
        while True:
            try:
                self.session = Session(self.library)
                return
            except psycopg.OperationalError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.5)

    def extra_families(self):
        """Where the server has ICU, and citext"""
        extra = []
        if self.session.must("SELECT 1 FROM pg_collation WHERE collprovider = 'i' LIMIT 1"):
            extra.append(jq.CASELESS)
        if self.session.must("SELECT 1 FROM pg_available_extensions WHERE name = 'citext'"):
            extra.append(jq.CITEXT)
        return extra

    def set_up(self, rng):
        """A schema of random tables, in a session of its own: its temporary
        tables go with it"""
        if self.session is not None:
            self.session.close()
        self.connect()
        self.session.must(f"SET client_min_messages = warning; DROP SCHEMA IF EXISTS {SCHEMA} CASCADE;"
                          f" CREATE SCHEMA {SCHEMA}; SET client_min_messages = notice")
        self.schema = jq.Schema(rng, self.extra_families())
        for sql in self.schema.setup:
            self.session.must(sql.format(schema=SCHEMA, role=ROLE) if "{role}" in sql else sql)

    def differs(self, case, gone, without):
        off = case.run(self.session, False, gone, without)
        on = case.run(self.session, True, gone, without)
        if timed_out(off) or timed_out(on):
            return False
        return off != on

    def one(self, case, number):
        """True if off and on agree"""
        self.counts[case.kind] += 1
        self.counts["queries"] += 1
        off = case.run(self.session, False)
        on = None if timed_out(off) else case.run(self.session, True)
        if on is None or timed_out(on):
            self.counts["timeouts"] += 1
            return True
        failed = any(how == "error" for how, _ in off)
        self.counts["errors"] += failed
        self.counts["empty"] += all(rows in ([], [b"0|(null)"]) for how, rows in off[:-1])
        if off != on:
            if case.run(self.session, False) != off:
                self.counts["unstable"] += 1
                return True
            self.counts["differences"] += 1
            gone, without = shrink(case, lambda g, w: self.differs(case, g, w))
            outcomes = [case.run(self.session, on, gone, without) for on in (False, True)]
            show(case, self.schema, outcomes, gone, without, number)
            return False
        plan = None if failed else case.plan(self.session, analyze=number % 8 == 0)
        if plan is not None and case.force:
            self.counts["explained"] += 1
            probed = re.search(PROBE, plan) is not None
            self.counts["hash"] += "Hash Cond" in plan
            self.counts["probed"] += probed
            if number % 8 == 0:
                self.counts["analyzed"] += 1
                self.counts["dropped"] += any(int(n) > 0 for n in re.findall(DROPPED, plan))
        return True

    def queries(self, count, stop_after):
        """Run them; True if none differs.  Every schema has a generator of its
        own, so that --seed SEED:SCHEMA starts with that one."""
        seed, _, first = str(self.seed).partition(":")
        number = int(first or 0) * PER_SCHEMA
        last = number + count
        failed = 0
        while number < last:
            if self.counts["queries"] and self.counts["queries"] % 3000 == 0:
                print(f"        {self.counts['queries']} queries, {failed} differ", flush=True)
            rng = random.Random(f"{seed}:{number // PER_SCHEMA}")
            self.set_up(rng)
            cases = Cases(rng, self.schema, self.session.version)
            for _ in range(min(PER_SCHEMA, last - number)):
                case = cases.make()
                try:
                    agreed = self.one(case, number)
                except Crash as crash:
                    print(f"--- query {number} (--seed {seed}:{number // PER_SCHEMA}):"
                             f" the server crashed: {crash}")
                    print("\n".join([case.prologue(True)] + [s for s, _ in case.statements()]))
                    self.connect()
                    agreed = False
                if not agreed:
                    print(f"--- again: --seed {seed}:{number // PER_SCHEMA}"
                             f" --queries {number % PER_SCHEMA + 1}")
                    failed += 1
                    if failed >= stop_after:
                        return False
                number += 1
        return failed == 0


# ---------------------------------------------------------------------------
# Wrong answers that filters have given, and what random queries do not reach
# ---------------------------------------------------------------------------

FORCED = f"SET {ENABLE} = {{}}; SET {FORCE} = on; SET max_parallel_workers_per_gather = 0;"

SMALL_TABLES = """
    CREATE TABLE outside AS SELECT i AS v FROM generate_series(1, 8) i;
    CREATE TABLE inside AS SELECT i AS v FROM generate_series(1, 5) i;
    CREATE TABLE probed AS SELECT i AS k, i % 5 AS c FROM generate_series(1, 200) i;
    CREATE TABLE built AS SELECT i AS k, i % 8 + 1 AS a FROM generate_series(1, 40) i;
    CREATE TABLE many AS SELECT i AS k FROM generate_series(1, 5000) i;
    CREATE TABLE nothing AS SELECT * FROM many;
    CREATE SEQUENCE ticks;
    ANALYZE outside, inside, probed, built, many, nothing;
    DELETE FROM nothing;
"""

NO_LOOPS = "SET enable_nestloop = off; SET enable_mergejoin = off; SET join_collapse_limit = 1;" \
    " SET enable_material = off; SET enable_memoize = off; "

# (what, settings, query)
WRONG_ONCE = [
    ("a filter is built anew before the outer side of its join is read again", NO_LOOPS,
     """SELECT count(*), sum(k) FROM outside o CROSS JOIN LATERAL (
            SELECT s.k FROM inside i CROSS JOIN LATERAL (
                SELECT p.k FROM probed p JOIN built b USING (k)
                WHERE p.c + 1 = i.v AND b.a = o.v OFFSET 0) s OFFSET 0) t"""),
    ("the same, where the outer side was empty the last time", NO_LOOPS,
     """SELECT count(*), sum(k) FROM outside o CROSS JOIN LATERAL (
            SELECT s.k FROM inside i CROSS JOIN LATERAL (
                SELECT p.k FROM probed p JOIN (SELECT * FROM built WHERE k % 5 <> 4) b USING (k)
                WHERE p.c + 1 = i.v AND b.a = o.v OFFSET 0) s OFFSET 0) t"""),
    ("an aggregate below a join keeps no groups that an older filter let through",
     NO_LOOPS + "SET enable_sort = off",
     """SELECT o.v, (SELECT count(*) FROM (SELECT k, count(*) FROM probed GROUP BY k) p
                     JOIN built b USING (k) WHERE b.a = o.v) FROM outside o ORDER BY 1"""),
    ("a hash table below a join keeps no rows that an older filter let through", NO_LOOPS,
     """SELECT o.v, (SELECT count(*) FROM (probed q JOIN probed p USING (k))
                     JOIN built b ON b.k = p.k WHERE b.a = o.v) FROM outside o ORDER BY 1"""),
    ("a kept hash table's filter does not fit other outer rows", NO_LOOPS,
     """SELECT i.v, s.n FROM inside i CROSS JOIN LATERAL (
            SELECT count(*) AS n FROM (SELECT k FROM probed p WHERE p.c + 1 = i.v GROUP BY k) p
            JOIN built b USING (k)) s ORDER BY 1"""),
    ("a join's key has a parameter in it", NO_LOOPS,
     """SELECT o.v, (SELECT count(*) FROM probed p JOIN (SELECT * FROM built WHERE k < 4) b
                     ON p.k = b.k + o.v * 10 OFFSET 0) FROM outside o"""),
    ("nextval in a scan's target list runs for every row", NO_LOOPS,
     """SELECT count(*) FROM (SELECT nextval('ticks'), k FROM probed OFFSET 0) p
        JOIN built b USING (k) WHERE b.a = 3"""),
    ("nextval in a join's target list runs for every row", NO_LOOPS,
     """SELECT count(*) FROM (SELECT nextval('ticks'), p.k FROM probed p JOIN probed q USING (k)
        OFFSET 0) p JOIN built b USING (k) WHERE b.a = 3"""),
    ("as many rows of a volatile scan are read before a join finds nothing on its other side",
     NO_LOOPS,
     """SELECT count(*) FROM ((SELECT nextval('ticks'), k, k % 1000 AS c FROM many OFFSET 0) p
        JOIN nothing USING (k)) JOIN (SELECT a + 900 AS c FROM built) z USING (c)"""),
    ("a volatile CTE runs although all outer rows of its join are dropped", NO_LOOPS,
     """WITH v AS MATERIALIZED (SELECT k, nextval('ticks') FROM many)
        SELECT count(*) FROM (probed p LEFT JOIN v USING (k)) JOIN
        (SELECT -a AS c FROM built) z USING (c)"""),
    ("a volatile InitPlan runs although all outer rows of its join are dropped", NO_LOOPS,
     """SELECT count(*) FROM (many p LEFT JOIN
        (SELECT k FROM many WHERE k < (SELECT nextval('ticks'))) v USING (k)) JOIN
        (SELECT -a AS k FROM built) z USING (k)"""),
]


def wrong_once(checks, library):
    for what, settings, query in WRONG_ONCE:
        session = Session(library)
        session.must(settings)
        got = []
        for state in ("off", "on"):
            session.must(FORCED.format(state))
            session.must("SELECT setval('ticks', 1, false)")
            rows = session.must(query)
            got.append(rows + session.must("SELECT last_value, is_called FROM ticks"))
        off, on = got
        session.close()
        checks.check(on == off, what if on == off else f"{what}: {on}, not {off}")


# What another session does to a row while a query waits for it
CHANGES = [
    "UPDATE e SET v = v + 1 WHERE id <= 3",
    "UPDATE e SET k = 7 WHERE id <= 3",             # matches another row
    "UPDATE e SET k = 1000 WHERE id <= 3",          # matches no row
    "UPDATE e SET k = NULL WHERE id <= 3",
    "UPDATE e SET k = k + 1 WHERE id <= 3",
    "DELETE FROM e WHERE id <= 3",
    "UPDATE d SET used = NOT used WHERE k <= 3",
]
WAITING = [
    "UPDATE e SET v = v + 100 FROM d WHERE e.k = d.k AND d.used",
    "UPDATE e SET v = v + 100 FROM d, f WHERE e.k = d.k AND d.used AND f.k = d.k",
    "DELETE FROM e USING d WHERE e.k = d.k AND d.used",
    "SELECT e.* FROM e JOIN d ON e.k = d.k WHERE d.used ORDER BY e.id FOR UPDATE OF e",
    "SELECT e.id, e.k, e.v, f.k FROM f JOIN e ON e.k = f.k JOIN d ON e.k = d.k WHERE d.used"
    " ORDER BY e.id FOR UPDATE",
    "UPDATE e SET v = v + 100 WHERE k IN (SELECT k FROM d WHERE used)",
    "UPDATE e SET v = e.v + 100 FROM (SELECT k, count(*) AS n FROM e GROUP BY k) g, d"
    " WHERE g.k = d.k AND d.used AND e.k = g.k",
    "MERGE INTO e USING (SELECT * FROM d WHERE used) s ON e.k = s.k"
    " WHEN MATCHED THEN UPDATE SET v = e.v + 100",
]


def changed_meanwhile(checks, library):
    """A row is changed by another session while a query waits for it: the query
    looks at it again (EvalPlanQual)"""
    def one(change, query, state):
        mine, other = Session(library), Session(library)
        with contextlib.closing(mine), contextlib.closing(other):
            mine.must("""DROP TABLE IF EXISTS d, e, f;
                CREATE TABLE e AS SELECT i AS id, i % 20 AS k, 0 AS v FROM generate_series(1, 60) i;
                CREATE TABLE d AS SELECT i AS k, i % 4 > 1 AS used FROM generate_series(0, 19) i;
                CREATE TABLE f AS SELECT i AS k FROM generate_series(0, 30) i;
                ANALYZE d, e, f;""")
            mine.must("SET enable_nestloop = off; SET enable_mergejoin = off;" + FORCED.format(state))
            pid = mine.must("SELECT pg_backend_pid()")[0]
            other.must(f"BEGIN; {change}")
            outcome = []
            thread = threading.Thread(target=lambda: outcome.append(mine.run(query)))
            thread.start()
            until = time.monotonic() + 5
            while thread.is_alive() and time.monotonic() < until and not other.must(
                    f"SELECT 1 WHERE cardinality(pg_blocking_pids({pid})) > 0"):
                time.sleep(0.002)
            waited = thread.is_alive()
            other.must("COMMIT")
            thread.join()
            return outcome + [mine.must("SELECT * FROM e ORDER BY id"),
                              mine.must("SELECT * FROM d ORDER BY k")], waited

    waited = 0
    for query in WAITING:
        differ = []
        for change in CHANGES:
            (off, one_waited), (on, _) = (one(change, query, s) for s in ("off", "on"))
            waited += one_waited
            if off != on:
                differ.append(f"after {change}: {on}, not {off}")
        checks.check(not differ, "; ".join([query] + differ))
    checks.check(waited > len(CHANGES) * len(WAITING) / 2, f"{waited} queries waited")


def behind_barriers(checks, library):
    """A function that tells what it sees is shown no row that it is not shown
    without the filter"""
    harness.query(f"""
        CREATE TABLE secret AS SELECT i AS k, i % 3 AS owner FROM generate_series(1, 300) i;
        CREATE VIEW mine WITH (security_barrier) AS SELECT * FROM secret WHERE owner = 1;
        CREATE TABLE rows_of AS SELECT * FROM secret;
        ALTER TABLE rows_of ENABLE ROW LEVEL SECURITY;
        CREATE POLICY p ON rows_of USING (owner = 1);
        CREATE TABLE wanted AS SELECT i AS k FROM generate_series(1, 300, 20) i;
        CREATE FUNCTION tell(k int) RETURNS bool IMMUTABLE LANGUAGE plpgsql COST 0.0001 AS $$
            BEGIN RAISE NOTICE '%', k; RETURN true; END $$;
        ANALYZE secret, rows_of, wanted;
        GRANT USAGE ON SCHEMA {SCHEMA} TO {ROLE};
        GRANT SELECT ON mine, rows_of, wanted TO {ROLE};""")
    for relation in ("mine", "rows_of"):
        seen = {}
        for state in ("off", "on"):
            session = Session(library)
            session.must(f"SET ROLE {ROLE}; SET enable_nestloop = off; SET enable_mergejoin = off;"
                         + FORCED.format(state))
            session.must(f"SELECT count(*) FROM {relation} JOIN wanted USING (k) WHERE tell(k)")
            seen[state] = collections.Counter(session.notices)
            session.close()
        checks.check(seen["off"] and not seen["on"] - seen["off"],
                     f"{relation}: {seen['off'].total()} rows shown, with the filter"
                     f" {seen['on'].total()}")


class Protocol:
    """A session's connection, for messages that libpq does not send"""

    def __init__(self, session):
        self.socket = socket.socket(fileno=socket.dup(session.conn.pgconn.socket))
        self.socket.setblocking(True)
        self.file = self.socket.makefile("rb")

    def send(self, *messages):
        """Messages of a type and strings each, and a Sync; the rows, each its last column"""
        for kind, *strings in (*messages, (b"S",)):
            body = b"".join(strings)
            self.socket.sendall(kind + struct.pack("!i", len(body) + 4) + body)
        rows = []
        while True:
            kind, length = struct.unpack("!ci", self.file.read(5))
            body = self.file.read(length - 4)
            if kind == b"E":
                raise RuntimeError(body.replace(b"\0", b" ").decode())
            if kind == b"D":
                rows.append(body[6:].decode())
            if kind == b"Z":
                return rows

    def statement(self, sql):
        return self.send((b"P", b"\0", sql.encode(), b"\0\0\0"),
                         (b"B", bytes(8)), (b"E", bytes(5)))


def switched_meanwhile(checks, library):
    """A portal is opened with the setting on, and run with it off: its workers build
    no filter"""
    session = Session(library)
    with contextlib.closing(session):
        session.must("""DROP TABLE IF EXISTS e, d;
            CREATE TABLE e AS SELECT i AS id, i % 20000 AS k FROM generate_series(1, 100000) i;
            CREATE TABLE d AS SELECT i AS k, i % 5 = 0 AS used FROM generate_series(0, 19999) i;
            -- so that nobody reads all of it before the others come
            CREATE OR REPLACE FUNCTION slowly(k int) RETURNS bool IMMUTABLE PARALLEL SAFE
                LANGUAGE plpgsql COST 1 AS $$ BEGIN
                    IF k % 500 = 0 THEN PERFORM pg_sleep(0.005); END IF; RETURN true; END $$;
            ANALYZE e, d;""")
        session.must("SET enable_nestloop = off; SET enable_mergejoin = off; SET parallel_setup_cost = 0;"
                     "SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;" + FORCED.format("on")
                     + "SET max_parallel_workers_per_gather = 2")
        query = "SELECT count(*), sum(id) FROM e JOIN d USING (k) WHERE used AND slowly(d.k)"
        plan = "\n".join(session.must(f"EXPLAIN {query}"))
        checks.check("Parallel Custom Scan (BloomJoinFilter)" in plan, "workers build the filter")
        wanted = session.must(query)[0].split("|")[1]
        protocol = Protocol(session)
        protocol.statement("BEGIN")
        protocol.send((b"P", b"s\0", query.encode(), b"\0\0\0"), (b"B", b"p\0s\0", bytes(6)))
        protocol.statement(f"SET {ENABLE} = off")
        rows = protocol.send((b"E", b"p\0", bytes(4)))
        checks.check(len(rows) == 1 and rows[0].endswith(wanted),
                     f"switched off while a portal is open: {rows}, its end {wanted}")


def without_workers(checks, library):
    """A portal is run for a row at a time, so without parallelism: a Parallel Hash
    is built after the first outer row has been read.  Nothing that may fail is
    computed of a group that the filter takes rows from by then."""
    session = Session(library)
    with contextlib.closing(session):
        session.must("""DROP TABLE IF EXISTS e, d, f;
            CREATE TABLE e AS SELECT i / 5 % 1000 AS k, i / 5 AS j FROM generate_series(0, 99999) i;
            CREATE INDEX ON e (j, k);
            CREATE TABLE d AS SELECT i * 50 + 7 AS k FROM generate_series(0, 19999) i;
            CREATE TABLE f AS SELECT i AS j FROM generate_series(0, 199999) i;
            CREATE INDEX ON f (j);""")
        session.must("VACUUM ANALYZE d, e, f")
        session.must("SET enable_nestloop = off; SET enable_sort = off; SET enable_hashagg = off;"
                     "SET enable_material = off; SET join_collapse_limit = 1; SET parallel_setup_cost = 0;"
                     "SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;"
                     "SET min_parallel_index_scan_size = 0;" + FORCED.format("on")
                     + "SET max_parallel_workers_per_gather = 2")
        query = ("SELECT sum(c) FROM (f JOIN (SELECT j, k, 1 / (count(*) - 1) AS c FROM e GROUP BY j, k) g"
                 " ON f.j = g.j) JOIN d ON d.k = g.k")
        plan = " ".join(session.must(f"EXPLAIN (COSTS OFF) {query}"))
        checks.check(re.search(r"Parallel Hash Join.* Merge Join.*GroupAggregate.*BloomJoinFilter", plan),
                     "the plan has a Parallel Hash Join above a GroupAggregate")
        protocol = Protocol(session)
        rows = protocol.send((b"P", b"s\0", query.encode(), b"\0\0\0"), (b"B", b"p\0s\0", bytes(6)),
                             (b"E", b"p\0", bytes(3), b"\1"))
        checks.equal(rows, ["0"], "a portal that is run for one row")


# ---------------------------------------------------------------------------

def use_library(path):
    """Have the extension's functions in this database call another build"""
    if path != "bloomfilter":
        harness.query(f"UPDATE pg_proc SET probin = '{path}' WHERE probin = '$libdir/bloomfilter'")


def random_queries(checks, run, count):
    agreed = run.queries(count, stop_after=3)
    counts = run.counts
    print(f"        {dict(counts)}")
    checks.check(agreed, f"{counts['queries']} random queries, seed {run.seed}")
    if count >= 500:
        for what, part, of, least in [("probe a filter", "probed", "explained", 0.3),
                                      ("drop rows", "dropped", "analyzed", 0.1)]:
            share = counts[part] / max(counts[of], 1)
            checks.check(share >= least, f"{share:.0%} of the plans {what}, at least {least:.0%}")
        for what, most in [("errors", 0.05), ("timeouts", 0.1), ("unstable", 0.002)]:
            share = counts[what] / counts["queries"]
            checks.check(share <= most, f"{what}: {share:.1%} of the queries, at most {most:.1%}")


def found_out(checks, run, count):
    """A broken library differs somewhere"""
    agreed = run.queries(count, stop_after=1)
    checks.check(not agreed, f"found out after {run.counts['queries']} queries, seed {run.seed}")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", default="1", help="of everything random; SEED:N starts at schema N")
    parser.add_argument("--queries", type=int, default=QUERIES)
    parser.add_argument("--library", default="bloomfilter")
    parser.add_argument("--mutant", action="store_true")
    args = parser.parse_args()

    checks = harness.Checks()
    run = Run(args.seed, args.library)
    with harness.schema(SCHEMA):
        harness.query(f"DO $$ BEGIN CREATE ROLE {ROLE}; EXCEPTION WHEN duplicate_object THEN END $$")
        use_library(args.library)
        if args.mutant:
            checks.part(found_out, checks, run, args.queries)
        else:
            harness.query(SMALL_TABLES)
            checks.part(wrong_once, checks, args.library)
            checks.part(changed_meanwhile, checks, args.library)
            checks.part(behind_barriers, checks, args.library)
            checks.part(switched_meanwhile, checks, args.library)
            checks.part(without_workers, checks, args.library)
            checks.part(random_queries, checks, run, args.queries)
    # another database's run may need it still
    harness.query(f"DROP OWNED BY {ROLE}; DO $$ BEGIN DROP ROLE {ROLE};"
                  " EXCEPTION WHEN dependent_objects_still_exist THEN END $$")
    checks.close()


if __name__ == "__main__":
    main()
