#!/usr/bin/python3
"""Random SQL over everything that the extension makes, with arguments at the
bounds of their types: whatever is asked, the server answers or raises an error
that is meant for users.  Never does it crash, and never is the error an
internal one (XX000) or one of corrupt data.

Functions, operators, aggregates and settings are those that the catalogs list,
so that what is new is tried as well.

    BLOOM_SEED=n        another sequence than the first
    BLOOM_STATEMENTS=n  so many instead of 6,000 (with BLOOM_SLOW=1: 200,000)
"""
import os
import random
import re
import subprocess

from harness import PSQL, SLOW, Checks, query, schema

SEED = int(os.environ.get("BLOOM_SEED", "1"))
STATEMENTS = int(os.environ.get("BLOOM_STATEMENTS", "200000" if SLOW else "6000"))
BATCH = 250
FORBIDDEN = re.compile(r"(XX\w{3}|57P\w\d|08\w{3}|58\w{3})$")

checks = Checks()

SETUP = """
    CREATE TYPE mood AS ENUM ('sad', 'so, "so"', 'happy');
    CREATE TYPE pair AS (a integer, b text);
    CREATE TYPE nest AS (p pair, q pair[], m mood);
    CREATE DOMAIN positive AS integer CHECK (value > 0);
    CREATE DOMAIN pairs AS pair[];
    CREATE TABLE one (id integer PRIMARY KEY, filter bloomfilter);
    INSERT INTO one VALUES
        (1, (SELECT bloom_agg(i) FROM generate_series(1, 20000) i)),
        (2, (SELECT bloom_agg(i, 20000, 0.001) FROM generate_series(1, 20000) i)),
        (3, (SELECT bloom_agg(i, bloomfilter(20000, layout => 'standard'))
             FROM generate_series(1, 20000) i)),
        (4, (SELECT bloom_agg(i, bloomfilter(20000, layout => 'counting'))
             FROM generate_series(1, 20000) i)),
        (5, (SELECT bloom_agg(i, bloomfilter(20000, layout => 'cuckoo'))
             FROM generate_series(1, 20000) i)),
        (6, (SELECT bloom_agg(i, bloomfilter(100, expansion => 2))
             FROM generate_series(1, 20000) i)),
        (7, (SELECT bloom_agg(i, bloomfilter(100, layout => 'cuckoo', expansion => 4))
             FROM generate_series(1, 20000) i)),
        (8, (SELECT bloom_agg(i::text, bloomfilter(3000, hash => 'blake2b', key => 'k'))
             FROM generate_series(1, 3000) i)),
        (9, (SELECT bloom_agg(ROW(i, i::text), 300) FROM generate_series(1, 300) i)),
        (10, bloomfilter()), (11, NULL);
    CREATE TABLE packed (id integer PRIMARY KEY, filter bloomfilter);
    ALTER TABLE packed ALTER filter SET STORAGE EXTENDED;
    INSERT INTO packed SELECT id, filter FROM one;
    CREATE TABLE element AS
        SELECT i, i::text AS t, i * 0.5 AS n, i::bigint AS b, md5(i::text)::uuid AS u
        FROM generate_series(1, 3000) i;
    ANALYZE element;
    CREATE INDEX live_i ON element USING bloomfilter (i);
    CREATE INDEX live_t ON element USING bloomfilter (t);
    CREATE INDEX live_two ON element USING bloomfilter (b, u);
    CREATE TABLE parts (i integer, t text) PARTITION BY LIST (i);
    CREATE TABLE parts_1 PARTITION OF parts FOR VALUES IN (1);
    CREATE TABLE parts_2 PARTITION OF parts FOR VALUES IN (2, 7);
    INSERT INTO parts VALUES (1, 'a'), (2, ''), (7, NULL);
    CREATE INDEX live_parts ON parts USING bloomfilter (i);
"""

# ---------------------------------------------------------------------------
# Values at the bounds, by type
# ---------------------------------------------------------------------------
VALUES = {
    "boolean": ["true", "false"],
    "smallint": ["32767::int2", "(-32768)::int2", "0::int2"],
    "integer": ["0", "1", "-1", "7", "2147483647", "(-2147483648)", "64", "17", "16", "65"],
    "bigint": ["0::int8", "9223372036854775807", "(-9223372036854775808)", "4294967296",
               "1::int8"],
    "oid": ["0::oid", "4294967295::oid", "'pg_class'::regclass::oid"],
    "regclass": ["'live_i'::regclass", "'live_t'::regclass", "'live_two'::regclass",
                 "'live_parts'::regclass", "'one'::regclass", "'pg_class'::regclass", "0::oid::regclass",
                 "4294967295::oid::regclass", "'one_pkey'::regclass", "'element'::regclass",
                 "(SELECT max(oid) FROM pg_class WHERE relkind = 'i')::regclass"],
    "regtype": ["'integer'::regtype", "0::oid::regtype"],
    "regproc": ["0::oid::regproc"],
    "real": ["'NaN'::float4", "3.4e38::float4", "'-Infinity'::float4", "'-0'::float4"],
    "double precision": [
        "0::float8", "1::float8", "-1::float8", "0.01", "0.5", "1e-6", "1e-8", "1e-9",
        "0.9999999999999999::float8", "1e6", "1e9", "1e15", "9007199254740992::float8",
        "9007199254740994::float8", "1e300::float8", "5e-324::float8", "'NaN'::float8",
        "'Infinity'::float8", "'-Infinity'::float8", "'-0'::float8", "100", "10000", "1.5",
        "536870912::float8", "536870976::float8", "NULL::float8", "20000"],
    "numeric": ["0.0", "'NaN'::numeric", "'Infinity'::numeric", "'-Infinity'::numeric",
                "1e1000", "1e-1000", "-5.00", "5", "10::numeric ^ 100000",
                "1 / 10::numeric ^ 16000"],
    "text": ["''::text", "'a'::text", "repeat('x', 200000)", "E'\\u00e9\\U0001F600'::text",
             "'blocked'::text", "'standard'::text", "'counting'::text", "'cuckoo'::text",
             "'scalable'::text", "'xxh3'::text", "'blake2b'::text", "'BLOCKED'::text",
             "'%s%n%d'::text", "'1'::text", "'b' COLLATE \"C\"", "'public.one'::text",
             "'one'::text"],
    "character varying": ["''::varchar", "'a'::varchar(1)"],
    "character": ["'a'::char(10)", "''::char(1)"],
    "name": ["''::name", "repeat('n', 63)::name"],
    '"char"': ["''::\"char\"", "'a'::\"char\"", "'\\377'::\"char\""],
    "cstring": ["'QkYB'::cstring", "''::cstring", "repeat('A', 100000)::cstring"],
    "bytea": ["''::bytea", "'\\x00'::bytea", "'secret'::bytea",
              "decode(repeat('ff', 32), 'hex')", "decode(repeat('ff', 33), 'hex')",
              "decode(repeat('00', 100000), 'hex')", "'BF'::bytea",
              "bloomfilter(10)::bytea", "bloom_add(bloomfilter(10), 1)::bytea"],
    "uuid": ["'00000000-0000-0000-0000-000000000000'::uuid",
             "'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid"],
    "date": ["'infinity'::date", "'-infinity'::date", "'4713-01-01 BC'::date",
             "'5874897-12-31'::date"],
    "time without time zone": ["'00:00'::time", "'24:00'::time"],
    "time with time zone": ["'00:00+15:59'::timetz", "'24:00-15:59'::timetz"],
    "timestamp without time zone": ["'infinity'::timestamp", "'-infinity'::timestamp",
                                    "'4713-01-01 BC'::timestamp",
                                    "'294276-12-31 23:59:59.999999'::timestamp"],
    "timestamp with time zone": ["'infinity'::timestamptz", "'2000-01-01+00'::timestamptz"],
    "interval": ["'0'::interval", "'178000000 years'::interval", "'1 mon -30 days'::interval"],
    "inet": ["'0.0.0.0/0'::inet", "'::/0'::inet", "'ffff::1/128'::inet"],
    "cidr": ["'10.0.0.0/8'::cidr", "'::/0'::cidr"],
    "macaddr": ["'00:00:00:00:00:00'::macaddr"],
    "macaddr8": ["'ff:ff:ff:ff:ff:ff:ff:ff'::macaddr8"],
    "bit": ["B'1'", "B''"],
    "bit varying": ["''::varbit", "repeat('1', 10000)::varbit"],
    "money": ["'0'::money", "'-92233720368547758.08'::money"],
    "json": ["'{}'::json"],
    "jsonb": ["'{}'::jsonb", "'[1, null, \"a\"]'::jsonb"],
    "xml": ["'<a/>'::xml"],
    "point": ["'(0,0)'::point"],
    "int4range": ["'empty'::int4range", "'[1,5)'::int4range", "'(,)'::int4range"],
    "int4multirange": ["'{}'::int4multirange", "'{[1,2),[5,6)}'::int4multirange"],
    "tsvector": ["''::tsvector", "'a b'::tsvector"],
    "pg_lsn": ["'0/0'::pg_lsn", "'FFFFFFFF/FFFFFFFF'::pg_lsn"],
    "xid": ["'3'::xid"],
    "xid8": ["'18446744073709551615'::xid8"],
    "tid": ["'(4294967295,65535)'::tid", "'(0,0)'::tid"],
    "mood": ["'sad'::mood", "'so, \"so\"'::mood"],
    "positive": ["1::positive"],
    "pair": ["ROW(1, 'a')::pair", "ROW(NULL, NULL)::pair"],
    "nest": ["ROW(ROW(1, 'a')::pair, ARRAY[ROW(2, 'b')::pair, NULL], 'happy')::nest"],
    "record": ["ROW()", "ROW(NULL)", "ROW(1, 'a')", "ROW(1, 'a'::text)",
               "ROW(1, ROW(2, ROW(3, ARRAY[4])))", "ROW(1.5, NULL::int, now())",
               "ROW(NULL::json)"],
    "internal": ["NULL"],
    "trigger": ["NULL"],
}
ARRAYS = [
    "'{}'::int[]", "'{NULL}'::int[]", "'[-5:-3]={1,2,3}'::int[]", "'{{1,2},{3,NULL}}'::int[]",
    "ARRAY(SELECT generate_series(1, 100000))", "ARRAY(SELECT i::text FROM generate_series(1, 30000) i)",
    "'{}'::text[]", "ARRAY['', NULL, 'a']", "ARRAY[1.0, 1.00, 'NaN']::numeric[]",
    "ARRAY['sad', NULL]::mood[]", "ARRAY[ROW(1, 'a'), ROW(2, NULL)]", "ARRAY[ROW(1, 'a')::pair]",
    "ARRAY[ROW(1, 'a')::pair]::pairs", "'{{{{{{1}}}}}}'::int[]", "ARRAY[bloomfilter(10)]",
    "array_fill(7, ARRAY[300, 300])", "array_fill(NULL::int, ARRAY[1000])", "ARRAY['{}'::json]",
    "ARRAY[]::varchar[]", "ARRAY['a', 'b']::name[]", "ARRAY['1 day']::interval[]",
    "string_to_array(repeat('x,', 5000), ',')", "NULL::int[]", "'1 2'::int2vector",
    "ARRAY[1, 2]::positive[]", "ARRAY['NaN', '-0']::float8[]",
]
SCALARS = [value for kind, values in VALUES.items()
           if kind not in ("cstring", "internal", "trigger") for value in values]
LITERALS = ["NULL", "'a'", "'1'", "''"]
LAYOUTS = ["'blocked'", "'standard'", "'counting'", "'cuckoo'"]


class Generator:
    """Statements, out of a sequence of random numbers."""

    def __init__(self, seed, functions, settings):
        self.random = random.Random(seed)
        self.functions = functions
        self.scalar = [f for f in functions if f["kind"] == "f" and not f["set"]]
        self.making = [f for f in self.scalar if f["result"] == "bloomfilter"]
        self.aggregates = [f for f in functions if f["kind"] == "a"]
        self.settings = settings

    def one_of(self, values):
        return self.random.choice(values)

    def element(self):
        roll = self.random.random()
        if roll < 0.1:
            return self.one_of(LITERALS)
        if roll < 0.2:
            return self.one_of(ARRAYS)
        if roll < 0.25:
            return f"NULL::{self.one_of(list(VALUES)[:-2])}"
        if roll < 0.6:
            return self.one_of(VALUES[self.one_of(["integer", "bigint", "text", "numeric"])])
        return self.one_of(SCALARS)

    def parameters(self):
        """Of a filter, most of them sensible."""
        given = [self.one_of(["10", "100", "1000", "20000", "1"])
                 if self.random.random() < 0.9 else self.one_of(VALUES["double precision"])]
        if self.random.random() < 0.5:
            given.append(f"fpr => {self.one_of(['0.01', '0.001', '0.5', '1e-6'])}")
        if self.random.random() < 0.7:
            given.append(f"layout => {self.one_of(LAYOUTS)}")
        if self.random.random() < 0.3:
            given.append("hash => 'blake2b'")
            if self.random.random() < 0.5:
                given.append("key => 'k'")
        if self.random.random() < 0.3:
            given.append(f"expansion => {self.one_of(['1', '2', '16'])}")
        if self.random.random() < 0.1:
            given.append(f"hashes => {self.one_of(['1', '3', '16', '64', '65'])}")
        return f"bloomfilter({', '.join(given)})"

    def filter(self, depth):
        roll = self.random.random()
        if roll < 0.04:
            return "NULL::bloomfilter"
        if roll < 0.2 or depth <= 0:
            return self.parameters()
        if roll < 0.4:
            return (f"(SELECT filter FROM {self.one_of(['one', 'packed'])}"
                    f" WHERE id = {self.random.randint(1, 11)})")
        if roll < 0.55:
            return (f"bloom_add({self.filter(depth - 1)}, {self.element()})")
        if roll < 0.65:
            return f"({self.filter(depth - 1)} {self.one_of('|&')} {self.filter(depth - 1)})"
        if roll < 0.7:
            return (f"set_byte({self.filter(depth - 1)}::bytea, {self.random.randint(0, 130)},"
                    f" {self.random.randint(0, 255)})::bloomfilter")
        if roll < 0.74:
            return f"({self.filter(depth - 1)})::text::bloomfilter"
        if roll < 0.85:
            return self.aggregate(depth - 1)
        return self.call(self.one_of(self.making), depth - 1)

    def argument(self, kind, depth):
        if kind == "bloomfilter":
            return self.filter(depth)
        if kind in ("anyelement", "anycompatible", "anynonarray", "any", '"any"'):
            return self.element()
        if kind in ("anyarray", "anycompatiblearray"):
            return self.one_of(ARRAYS)
        if self.random.random() < 0.08:
            return "NULL"
        if kind in VALUES:
            return self.one_of(VALUES[kind])
        if kind.endswith("[]"):
            return f"'{{}}'::{kind}"
        return f"NULL::{kind}"

    def call(self, function, depth):
        types = function["types"]
        given = len(types) - (self.random.randint(0, function["defaults"])
                              if self.random.random() < 0.5 else 0)
        arguments = ", ".join(self.argument(kind, depth) for kind in types[:given])
        return f"{function['name']}({arguments})"

    def aggregate(self, depth):
        """A scalar subquery."""
        function = self.one_of(self.aggregates)
        if function["types"][0] == "bloomfilter":
            rows, value = self.one_of([
                ("one", "filter"), ("packed", "filter"), ("one WHERE id = 3", "filter"),
                ("element WHERE i < 20", "bloom_add(bloomfilter(100), i)"),
                ("element WHERE false", "NULL::bloomfilter")])
        else:
            rows, value = self.one_of([
                ("element", "i"), ("element", "t"), ("element", "n"), ("element", "u"),
                ("element", "ROW(i, t)"), ("element WHERE false", "b"), ("element", "NULL::int"),
                ("element WHERE i < 5", self.element()), ("element", "ARRAY[i, NULL]"),
                ("element", "element"), ("element", "i % 3")])
        arguments = [value] + [self.argument(kind, depth) for kind in function["types"][1:]]
        extra = self.one_of(["", "", "", "DISTINCT ", ])
        order = self.one_of(["", "", "", f" ORDER BY {value}"])
        condition = self.one_of(["", "", "", " FILTER (WHERE random() < 0.5)"])
        if extra:
            order = ""
        return (f"(SELECT {function['name']}({extra}{', '.join(arguments)}{order}){condition}"
                f" FROM {rows})")

    def of(self, function):
        """A statement that calls it."""
        depth = self.random.randint(0, 3)
        if function["kind"] == "a":
            return f"SELECT pg_column_size({self.aggregate(depth)})"
        call = self.call(function, depth)
        if function["set"] or function["result"] == "record":
            return f"SELECT sum(pg_column_size(r)) FROM {call} r"
        return f"SELECT pg_column_size({call})"

    def statement(self):
        roll = self.random.random()
        depth = self.random.randint(0, 3)
        if roll < 0.45:
            return self.of(self.one_of(self.functions))
        if roll < 0.6:
            return (f"SELECT count(*) FROM element WHERE {self.filter(depth)} @> "
                    f"{self.one_of(['i', 't', 'n', 'b', 'u', 'ROW(i, t)', self.element()])}")
        if roll < 0.65:
            return (f"SELECT count(*) FROM {self.one_of(['one', 'packed'])}"
                    f" WHERE filter @> {self.element()}")
        if roll < 0.7:
            return (f"SELECT {self.filter(depth)} {self.one_of(['=', '<>', '<', '<=', '>', '>='])}"
                    f" {self.filter(depth)}")
        if roll < 0.8:
            return ("DO $do$ DECLARE f bloomfilter; g bloomfilter; b boolean; BEGIN "
                    f"f := {self.filter(depth)}; FOR i IN 1..{self.one_of([1, 3, 60])} LOOP "
                    + " ".join(self.one_of([
                        f"f := bloom_add(f, {self.element()});",
                        f"f := bloom_remove(f, {self.element()});",
                        "g := f;", "f := f | g;", f"b := f @> {self.element()};",
                        f"f := bloom_add_all(f, {self.one_of(ARRAYS)});",
                        f"BEGIN f := bloom_add(f, {self.element()});"
                        " RAISE division_by_zero; EXCEPTION WHEN division_by_zero THEN g := f; END;",
                        "IF i % 10 = 0 THEN UPDATE one SET filter = f WHERE id = 10; END IF;",
                    ]) for _ in range(self.random.randint(1, 5))) +
                    " END LOOP; END $do$")
        if roll < 0.84:
            return (f"SELECT count({self.one_of(self.aggregates[:1])['name']}(i)"
                    f" OVER (ORDER BY i ROWS {self.random.randint(0, 5)} PRECEDING))"
                    " FROM element WHERE i < 50")
        if roll < 0.88:
            return (f"UPDATE {self.one_of(['one', 'packed'])} SET filter = {self.filter(depth)}"
                    f" WHERE id = {self.random.randint(10, 11)}")
        if roll < 0.92:
            return ("SELECT count(*) FROM (SELECT filter FROM one UNION SELECT filter FROM packed"
                    f" UNION ALL SELECT {self.filter(depth)} ORDER BY 1) s")
        if roll < 0.95 and self.settings:
            return self.setting()
        if roll < 0.97:
            return (f"SELECT count(*) FROM element a JOIN element b ON a.{self.one_of('itnbu')}::text"
                    f" = b.t WHERE {self.filter(0)} @> a.i")
        return (f"SELECT count(*) FROM unnest({self.one_of(ARRAYS)}) x"
                f" WHERE x <@ {self.filter(depth)}")

    def setting(self):
        name, kind, low, high, choices = self.one_of(self.settings)
        if kind == "bool":
            value = self.one_of(["on", "off"])
        elif kind == "enum":
            value = self.one_of(choices)
        elif kind in ("integer", "real"):
            value = self.one_of([low, high, "-1", "0", "1"])
        else:
            value = self.one_of(["''", "'x'"])
        return f"SET {name} = {value}"


def catalog():
    """The extension's functions, and its settings."""
    rows = query("""
        SELECT p.proname, p.prokind, p.proretset, format_type(p.prorettype, NULL),
               p.pronargdefaults,
               coalesce((SELECT string_agg(format_type(t, NULL), ';' ORDER BY n)
                         FROM unnest(p.proargtypes) WITH ORDINALITY a(t, n)), '')
        FROM pg_proc p JOIN pg_depend d ON d.objid = p.oid
            AND d.classid = 'pg_proc'::regclass AND d.deptype = 'e'
            AND d.refclassid = 'pg_extension'::regclass
        JOIN pg_extension e ON e.oid = d.refobjid AND e.extname = 'bloomfilter'
        ORDER BY p.oid""").rows
    functions = [{"name": name, "kind": kind, "set": is_set == "t", "result": result,
                  "defaults": int(defaults), "types": types.split(";") if types else []}
                 for name, kind, is_set, result, defaults, types in rows]
    settings = [(name, kind, low, high, choices.strip("{}").split(","))
                for name, kind, low, high, choices in query("""
                    LOAD 'bloomfilter';
                    SELECT name, vartype, min_val, max_val, enumvals FROM pg_settings
                    WHERE name LIKE 'bloomfilter.%' AND context = 'user' ORDER BY 1""").rows]
    return functions, settings


def run_batch(statements):
    """The SQLSTATE of each statement, None for success; and what psql says
    where the session has broken."""
    script = ["SET statement_timeout = '20s'; SET client_min_messages = error;"] + \
        [statement.replace("\n", " ") + ";" for statement in statements]
    done = subprocess.run(
        PSQL + ["-v", "ON_ERROR_STOP=0", "-v", "VERBOSITY=sqlstate", "-o", "/dev/null", "-f", "-"],
        input="\n".join(script).encode(), capture_output=True, check=False)
    err = done.stderr.decode()
    states = [None] * len(statements)
    for line, state in re.findall(r"psql:<stdin>:(\d+): (?:ERROR|FATAL|PANIC):  (\w{5})", err):
        states[int(line) - 2] = state
    broken = None
    if done.returncode != 0 or "connection to server was lost" in err or "server closed" in err:
        broken = err[-2000:]
    return states, broken


def fuzz():
    functions, settings = catalog()
    checks.check(len(functions) > 40, f"{len(functions)} functions, {len(settings)} settings")
    generator = Generator(SEED, functions, settings)
    counts = {}
    called = set()
    done = 0
    bad = []
    while done < STATEMENTS and len(bad) < 10:
        statements = [generator.statement() for _ in range(min(BATCH, STATEMENTS - done))]
        states, broken = run_batch(statements)
        for statement, state in zip(statements, states):
            counts[state] = counts.get(state, 0) + 1
            if state is None:
                called.update(re.findall(r"\b(bloom\w+)\(", statement))
            elif FORBIDDEN.match(state):
                bad.append((state, statement))
        if broken is not None:
            # which one was it?
            for statement in statements:
                if run_batch([statement])[1] is not None:
                    bad.append(("crash", statement))
                    break
            else:
                bad.append(("crash", broken))
            subprocess.run(["sleep", "5"], check=False)
        done += len(statements)
    plain = {f["name"] for f in functions
             if f["result"] not in ("internal", "trigger", "cstring", "index_am_handler")
             and "internal" not in f["types"] and "cstring" not in f["types"]}
    # those that chance has left out
    for function in functions:
        for _ in range(10):
            if function["name"] in called or function["name"] not in plain or bad:
                break
            statements = [generator.of(function) for _ in range(BATCH // 5)]
            states, broken = run_batch(statements)
            done += len(statements)
            if None in states:
                called.add(function["name"])
            bad += [(state, statement) for state, statement in zip(states, statements)
                    if state is not None and FORBIDDEN.match(state)]
            if broken is not None:
                bad.append(("crash", broken))

    for state, statement in bad:
        print(f"        {state}: {statement[:2000]}")
    checks.check(not bad, f"{done} statements of seed {SEED}: no crash, no internal error")
    # had nearly all of them been refused, little would have been tried
    checks.check(counts.get(None, 0) > sum(counts.values()) * 0.3,
                 f"{counts.get(None, 0)} succeeded; " +
                 ", ".join(f"{state} {n}" for state, n in sorted(
                     (item for item in counts.items() if item[0]), key=lambda x: -x[1])))
    checks.check(not plain - called, "each function was called with success at least once"
                 + (f", but not {', '.join(sorted(plain - called))}" if plain - called else ""))


def main():
    with schema("sqlfuzz"):
        query(SETUP)
        checks.part(fuzz)
    checks.close()


if __name__ == "__main__":
    main()
