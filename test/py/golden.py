"""Golden filters: values as a release wrote them, kept as files in
test/golden, to be read by every later release.

    golden.py VERSION   writes test/golden/VERSION.jsonl with the server that the
                        PG* variables name.  Once, when VERSION is released: what
                        is there is never written again.

A line is a filter: its name, the template that it was made with, the elements'
SQL type, its elements in order, values that were not added, the answers that
it gave for both (1 or 0 each), what bloom_info said, and the text form.
"""
import json
import os
import sys

from harness import query, schema

DIRECTORY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden")

# Names of types are a part of their kinds, so they have a schema of their own.
SETUP = """
    DROP SCHEMA IF EXISTS golden CASCADE;
    CREATE SCHEMA golden;
    CREATE TYPE golden.mood AS ENUM ('sad', 'ok', 'häppy');
    CREATE TYPE golden.pair AS (a integer, b text);
    CREATE TYPE golden.nest AS (p golden.pair, m golden.mood[], n numeric);
"""

LAYOUTS = {
    "blocked": "layout => 'blocked'",
    "standard": "layout => 'standard'",
    "counting": "layout => 'counting'",
    "cuckoo": "layout => 'cuckoo'",
    "blocked, growing": "layout => 'blocked', expansion => 2",
    "standard, growing": "layout => 'standard', expansion => 1",
    "cuckoo, growing": "layout => 'cuckoo', expansion => 4",
}
HASHES = {
    "xxh3": "hash => 'xxh3'",
    "blake2b": "hash => 'blake2b'",
    "keyed": "hash => 'blake2b', key => 'golden key'",
}
# SQL type: its elements and others, in text form
KINDS = {
    "smallint": (["0", "-1", "32767"], ["1", "-32768"]),
    "integer": (["0", "-1", "2147483647", "7", "8", "9", "10"], ["1", "-2147483648"]),
    "bigint": (["9223372036854775807", "-9223372036854775808", "5"], ["0"]),
    "oid": (["4294967295", "0"], ["1"]),
    "text": (["", "a", "häppy", "SP-00042"], ["b", "A"]),
    "character varying": (["", "a "], ["a"]),
    "character(4)": (["a", "abcd"], ["b"]),
    "name": (["pg_class"], ["x"]),
    "real": (["0.5", "NaN", "-0"], ["1"]),
    "double precision": (["0", "Infinity", "-1e300", "5e-324"], ["1"]),
    "numeric": (["0", "5.00", "-0.001", "1e100", "NaN", "Infinity"], ["1", "-5"]),
    "bytea": (["", "\\x00ff"], ["\\x00"]),
    "uuid": (["00000000-0000-0000-0000-000000000000",
              "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"],
             ["ffffffff-ffff-ffff-ffff-ffffffffffff"]),
    "boolean": (["true"], ["false"]),
    "date": (["2024-02-29", "infinity", "-infinity"], ["2024-03-01"]),
    "time without time zone": (["00:00", "24:00", "12:34:56.789012"], ["00:00:01"]),
    "time with time zone": (["12:00+02", "23:59:59.999999-08:30"], ["12:00+01"]),
    "timestamp without time zone": (["2024-02-29 12:34:56.789012", "infinity"],
                                    ["2000-01-01"]),
    "timestamp with time zone": (["2024-02-29 12:34:56.789012+00", "-infinity"],
                                 ["2000-01-01+00"]),
    "macaddr": (["08:00:2b:01:02:03"], ["08:00:2b:01:02:04"]),
    "macaddr8": (["08:00:2b:01:02:03:04:05"], ["08:00:2b:01:02:03:04:06"]),
    "inet": (["192.168.1.5/24", "::1", "10.0.0.1"], ["192.168.1.5"]),
    "cidr": (["10.0.0.0/8", "2001:db8::/32"], ["10.0.0.0/9"]),
    "golden.mood": (["sad", "häppy"], ["ok"]),
    "integer[]": (["{}", "{1,NULL}", "{{1,2},{3,4}}", "[0:1]={1,2}"], ["{1}", "{1,2}"]),
    "text[]": (["{ab,c,\"\"}"], ["{ab}"]),
    "golden.mood[]": (["{sad}"], ["{ok}"]),
    "golden.pair": (["(1,a)", "(,b)", "(,)"], ["(2,a)"]),
    "golden.nest": (["(\"(1,a)\",\"{sad,NULL}\",1.50)"], ["(\"(1,a)\",\"{sad}\",1.5)"]),
    "jsonb": (["{\"a\": 1}", "[]"], ["{}"]),
    "interval": (["1 mon", "00:00:01"], ["1 day"]),
    "int4range": (["[1,5)", "empty"], ["[1,6)"]),
}
NOT_PORTABLE = ("jsonb", "interval", "int4range")
LARGE = 1000                # elements of one filter of each layout


def literal(text):
    return "'" + text.replace("'", "''") + "'"


def array_of(values):
    return "ARRAY[" + ", ".join(literal(value) for value in values) + "]::text[]"


def wishes():
    """What there is to be: name, template, type, elements, others."""
    for layout, given in LAYOUTS.items():
        for hash_name, hash_given in HASHES.items():
            for kind, (elements, others) in KINDS.items():
                if hash_name == "keyed" and kind in NOT_PORTABLE:
                    continue
                growing = "growing" in layout
                yield (f"{layout}, {hash_name}, {kind}",
                       f"bloomfilter({2 if growing else 16}, {given}, {hash_given})",
                       kind, elements, others)
        yield (f"{layout}, {LARGE} elements",
               f"bloomfilter({LARGE // 10 if 'growing' in layout else LARGE * 2}, 0.001, {given})",
               "integer", [str(i) for i in range(1, LARGE + 1)],
               [str(i) for i in range(-50, 0)])
        yield f"{layout}, empty", f"bloomfilter(100, {given})", "integer", [], ["1"]
    yield ("hashes given", "bloomfilter(100, layout => 'standard', hashes => 3)", "integer",
           ["1", "2"], ["3"])
    yield "unsized", "bloomfilter()", "integer", [], ["1"]


def build(template, kind, elements):
    """The SQL expression of a filter."""
    if not elements:
        return template
    return (f"(SELECT bloom_agg(v::{kind}, {template} ORDER BY n)"
            f" FROM unnest({array_of(elements)}) WITH ORDINALITY e(v, n))")


def answers(filter_sql, kind, values):
    return (f"(SELECT coalesce(string_agg((({filter_sql}) @> v::{kind})::integer::text,"
            f" '' ORDER BY n), '') FROM unnest({array_of(values)}) WITH ORDINALITY e(v, n))")


INFO = ("(SELECT concat_ws(' ', layout, hash, keyed, element, capacity, target_fpr, bits,"
        " hashes, layers, bits_set) FROM bloom_info({}))")


def write(version):
    path = os.path.join(DIRECTORY, f"{version}.jsonl")
    with schema("golden_write"), open(path, "x", encoding="utf-8") as file:
        query(SETUP)
        for name, template, kind, elements, others in wishes():
            query("DROP TABLE IF EXISTS made")
            query(f"CREATE TABLE made AS SELECT {build(template, kind, elements)} AS f")
            ((text, given, info),) = query(
                f"SELECT f, {answers('SELECT f FROM made', kind, elements + others)},"
                f" {INFO.format('f')} FROM made").rows
            line = {"name": name, "template": template, "type": kind,
                    "elements": LARGE if len(elements) == LARGE else elements,
                    "others": others, "answers": given, "info": info, "filter": text}
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
        query("DROP SCHEMA golden CASCADE")


def read():
    """All golden filters: the version that wrote it, and the line."""
    for name in sorted(os.listdir(DIRECTORY)):
        if name.endswith(".jsonl"):
            with open(os.path.join(DIRECTORY, name), encoding="utf-8") as file:
                for line in file:
                    value = json.loads(line)
                    if value["elements"] == LARGE:
                        value["elements"] = [str(i) for i in range(1, LARGE + 1)]
                    yield name[:-len(".jsonl")], value


if __name__ == "__main__":
    write(sys.argv[1])
