#!/usr/bin/python3
"""Make test/vectors.txt: the server says what digests and answers are right.

Run with the PG* environment variables of a server, from anywhere.
"""
import json
import os
import struct

import values
from harness import Checks, query, schema
from values import TOP
from vector_values import decode

import xxhash
from bloomfilter_pg._kinds import parse_kind

SCHEMA = "vectors"
EACH = 4

HEADER = """\
# Golden vectors: digests, filters and damaged filters, as the server made them
# (test/py/make_vectors.py).  All implementations are tested against them:
# test/core/vectors.c, clients/python, clients/javascript.
#
# A line is a word and fields, divided by single spaces; JSON comes last, and
# may hold spaces.  "-" is no bytes.  Lines with # are comments.
#
#   digest HASH KEY DIGEST BYTES KIND JSON
#       of a value: its bytes, and their digest (hex).  In KIND, \\u0020 is a space
#   image NAME OPTIONS FILTER
#       a filter (hex).  OPTIONS is JSON without spaces: what it was made with;
#       "build" is true if clients can build it.  The following lines until
#       the next image belong to it
#   yes BYTES JSON
#       one of its elements, in the order in which they were added
#   no BYTES JSON
#       certainly not one
#   bad WHAT FILTER
#       bytes (hex) that are no filter, and must be refused
#
# A value's JSON has each scalar as a string in PostgreSQL's text form (bytea
# as plain hex), null for NULL, and arrays for arrays and records.
"""

EDGES = {
    "integer": ["0", "-1", "9223372036854775807", "-9223372036854775808", "4294967295"],
    "text": ["", "SP-00042", "Füße \u20ac\U0001f600", "x" * 300],
    "float": ["0", "-0", "NaN", "Infinity", "-Infinity", "0.1", "5e-324"],
    "bytea": ["", "00", "ff" * 40],
    "boolean": ["true", "false"],
    "date": ["2000-01-01", "1999-12-31", "0001-01-01", "9999-12-31", "infinity",
             "-infinity"],
    "time": ["00:00:00", "23:59:59.999999"],
    "timestamp": ["2000-01-01 00:00:00", "1999-12-31 23:59:59.999999", "infinity",
                  "-infinity"],
    "timestamptz": ["2000-01-01 00:00:00+00", "2024-02-29 12:00:00-03:30",
                    "infinity", "-infinity"],
    "timetz": ["00:00:00+00", "12:30:00+05:30", "12:30:00-05:30:15"],
    "inet": ["127.0.0.1", "127.0.0.1/8", "::1", "2001:db8::/32"],
    "numeric": ["0", "-0.000", "5", "5.0", "5.00", "1200", "1.2e3", "-0.001", "NaN",
                "Infinity", "-Infinity", "1" * 60 + "." + "2" * 60],
    "integer[]": [[], [None], ["1", "2"], [["1", "2"], ["3", None]]],
    "(integer,text)": [["42", "abc"], [None, ""], ["1", None]],
}


def hexed(data):
    return data.hex() or "-"


def line(*fields):
    return " ".join(fields) + "\n"


def compact(value):
    return json.dumps(value, ensure_ascii=False)


def digests():
    out = []
    for kind, sql_type in values.sql_types(SCHEMA).items():
        parsed = parse_kind(kind)
        keys = EDGES.get(kind, []) + values.values(kind, EACH, "vectors")
        for hash_name, key in ("xxh3", ""), ("blake2b", ""), ("blake2b", "5ec7e7"):
            got = query("".join(
                f"SELECT encode(bloom_hash({values.literal(kind, k)}::{sql_type},"
                f" '{hash_name}', {f'decode({key!r}, $$hex$$)' if key else 'NULL'}),"
                " 'hex');\n" for k in keys)).rows
            for k, (digest,) in zip(keys, got):
                out.append(line("digest", hash_name, key or "-", digest,
                                hexed(parsed.encode(decode(kind, k))),
                                kind.replace(" ", "\\u0020"), compact(k)))
    return out


# name, kind, number of members, parameters
IMAGES = [(f"{layout}{'-scalable' if expansion else ''}-{hash_name}"
           f"{'-key' if key else ''}", kind,
           40, {"capacity": 12 if expansion else 40, "fpr": fpr,
                "layout": layout, "hash": hash_name, "key": key,
                "expansion": expansion})
          for layout, expansion in (("standard", 0), ("blocked", 0), ("counting", 0),
                                    ("cuckoo", 0), ("standard", 2), ("blocked", 1),
                                    ("cuckoo", 2))
          for hash_name, key, kind, fpr in (
              ("xxh3", "", "text", 0.01),
              ("blake2b", "", "integer", 0.0001),
              ("blake2b", "00ff5ec7e7", "(integer,text)", 0.2))]
IMAGES += [("hashes-standard", "uuid", 30, {
    "capacity": 30, "fpr": 0.01, "layout": "standard", "hash": "xxh3", "hashes": 20}),
           ("hashes-blocked", "integer[]", 30, {
    "capacity": 30, "fpr": 0.01, "layout": "blocked", "hash": "xxh3", "hashes": 16}),
           ("overfull-blocked", "timestamptz", 60, {
    "capacity": 20, "fpr": 0.01, "layout": "blocked", "hash": "xxh3"}),
           ("empty", "text", 0, {
    "capacity": 10 ** 8, "fpr": 0.001, "layout": "standard", "hash": "xxh3"})]
IMAGES += [(f"kind-{i}", kind, 12, {
    "capacity": 12, "fpr": 0.01, "layout": ("blocked", "standard")[i % 2],
    "hash": ("xxh3", "blake2b")[i // 2 % 2]})
           for i, kind in enumerate(values.sql_types(SCHEMA))]


def template(o):
    return (f"bloomfilter({o['capacity']}, {o['fpr']!r}, layout => '{o['layout']}',"
            f" hash => '{o['hash']}', expansion => {o.get('expansion') or 0}"
            + (f", key => decode('{o['key']}', 'hex')" if o.get("key") else "")
            + (f", hashes => {o['hashes']}" if o.get("hashes") else "") + ")")


def images():
    out = []
    made = {}
    for name, kind, n, options in IMAGES:
        parsed = parse_kind(kind)
        sql_type = values.sql_types(SCHEMA)[kind]
        keys = []
        for k in values.values(kind, 8 * n + 80, name):
            # equal elements are one, and a cuckoo filter would hold both
            if parsed.encode(decode(kind, k)) not in {
                    parsed.encode(decode(kind, old)) for old in keys}:
                keys.append(k)
        members, others = keys[:n], keys[n:]
        if kind == "boolean":
            members, others = ["true"], ["false"]
        rows = "".join(f", ({i}, {values.literal(kind, k)}::{sql_type})"
                       for i, k in enumerate(members))
        text = query(f"""SELECT encode(bloom_agg(k, {template(options)} ORDER BY i)
            ::bytea, 'hex') FROM (VALUES (-1, NULL::{sql_type}){rows}) v (i, k)"""
                     if members else
                     f"SELECT encode({template(options)}::bytea, 'hex')").value
        text = text.replace("\n", "")
        answers = [row[0] for row in query("".join(
            f"SELECT decode('{text}', 'hex')::bloomfilter"
            f" @> {values.literal(kind, k)}::{sql_type};\n"
            for k in members + others)).rows]
        assert answers[:len(members)] == ["t"] * len(members)
        strangers = [k for k, answer in zip(others, answers[len(members):])
                     if answer == "f"][:10]
        options = {key: value for key, value in options.items() if value}
        options["build"] = (options["layout"] in ("standard", "blocked")
                            and "expansion" not in options)
        options["kind"] = kind
        made[name] = bytes.fromhex(text)
        out.append(line("image", name, json.dumps(options, separators=(",", ":"))
                        .replace(" ", "\\u0020"), text))
        for word, some in ("yes", members), ("no", strangers):
            out += [line(word, hexed(parsed.encode(decode(kind, k))), compact(k))
                    for k in some]
    return out, made


def sealed(image, payload=True):
    image = bytearray(image)
    size = int.from_bytes(image[6:8], "little")
    if 60 <= size <= len(image):
        if payload and len(image) > size:
            struct.pack_into("<Q", image, 48, xxhash.xxh3_64_intdigest(image[size:]) or 1)
        image[56:60] = bytes(4)
        struct.pack_into("<I", image, 56,
                         xxhash.xxh3_64_intdigest(image[:size]) & 0xFFFFFFFF)
    return bytes(image)


def bad(made, checks):
    cases = []

    def case(what, name, *changes, cut=0, more=b"", seal=True, payload=True):
        image = bytearray(made[name])
        for at, data in changes:
            image[at:at + len(data)] = data
        image = bytes(image[:len(image) - cut]) + more
        cases.append((what, sealed(image, payload) if seal else image))

    blocked, standard, cuckoo = "blocked-xxh3", "standard-xxh3", "cuckoo-xxh3"
    keyed, scalable = "blocked-blake2b-key", "standard-scalable-xxh3"
    cases.append(("nothing", b""))
    cases.append(("short", made[blocked][:59]))
    case("magic", blocked, (0, b"X"))
    case("version", blocked, (2, b"\2"))
    case("version-0", blocked, (2, b"\0"))
    case("layout", blocked, (3, b"\5"))
    case("hash", blocked, (4, b"\3"))
    case("hashes-0", blocked, (5, b"\0"))
    case("hashes-17", blocked, (5, b"\x11"))
    case("hashes-65", standard, (5, b"\x41"))
    case("fingerprint-3", cuckoo, (5, b"\3"))
    case("header-size", blocked, (6, b"\x7c"))
    case("key-with-xxh3", keyed, (4, b"\1"))
    case("key-length-33", keyed, (8, b"\x21"))
    case("kind-0", blocked, (9, b"\0"))
    case("kind-20", blocked, (9, b"\x14"))
    case("name-of-text", blocked, (10, b"\1"))
    case("bits-unit", blocked, (12, (int.from_bytes(made[blocked][12:20], "little")
                                     + 8).to_bytes(8, "little")), more=b"\0")
    case("bits-more", blocked, (12, (int.from_bytes(made[blocked][12:20], "little")
                                     + 512).to_bytes(8, "little")))
    case("bits-huge", blocked, (12, (2 ** 63).to_bytes(8, "little")))
    case("bits-4-gigabit", blocked, (12, (2 ** 32).to_bytes(8, "little")))
    case("empty-8-gigabit", "empty", (12, (2 ** 33).to_bytes(8, "little")))
    case("capacity-0", blocked, (20, bytes(8)))
    case("capacity-huge", blocked, (20, (2 ** 53 + 1).to_bytes(8, "little")))
    case("rate-0", blocked, (28, struct.pack("<d", 0.0)))
    case("rate-1", blocked, (28, struct.pack("<d", 1.0)))
    case("rate-nan", blocked, (28, struct.pack("<d", float("nan"))))
    case("rate-small", blocked, (28, struct.pack("<d", 9e-7)))
    case("bits-set", blocked, (36, b"\1"))
    case("bits-set-of-empty", "empty", (36, b"\1"))
    case("flags", blocked, (44, b"\4"))
    case("expansion", blocked, (45, b"\1"))
    case("expansion-17", scalable, (45, b"\x11"))
    case("layers", blocked, (46, b"\1"))
    case("layers-33", scalable, (46, b"\x21"))
    case("layers-255", scalable, (46, b"\xff"))
    case("reserved", blocked, (47, b"\1"))
    case("checksum", blocked, (48, b"\0\1\2\3\4\5\6\7"), payload=False)
    case("checksum-of-empty", "empty", (48, b"\1"))
    case("header-checksum", blocked, (56, b"\0\0\0\0"), seal=False)
    case("padding", keyed, (123, b"\1"))
    case("name-control", keyed, (66, b"\1"))
    case("name-utf8", keyed, (66, b"\xff"))
    case("truncated", blocked, cut=1)
    case("longer", blocked, more=b"\0")
    case("layer-bits", scalable, (60, b"\0\0\0\0"))
    case("layer-bits-huge", scalable, (60, b"\xf8" + b"\xff" * 7))
    case("layer-bits-wrap", scalable, (60, b"\0\0\0\0\0\0\0\x80"),
         (92, b"\0\0\0\0\0\0\0\x80"))
    case("layer-capacity", scalable, (68, bytes(8)))
    case("layer-bits-set", scalable, (76, bytes(8)))
    case("layer-hashes", scalable, (84, b"\0"))
    case("layer-reserved", scalable, (85, b"\1"))
    size = len(made[cuckoo])
    case("bucket-number", cuckoo, (60, b"\xff\xff"))
    case("stash-gap", cuckoo, (size - 8, b"\2\0\0\0\2\0\0\0"))
    case("stash-odd", cuckoo, (size - 64, b"\1\0\0\0\2\0\0\0"))
    case("stash-bucket", cuckoo, (size - 64, b"\0\0\0\x80\2\0\0\0"))
    case("stash-fingerprint", cuckoo, (size - 64, b"\0\0\0\0\0\0\0\x80"))
    query("""CREATE FUNCTION opens(image text) RETURNS boolean LANGUAGE plpgsql AS $$
        BEGIN
            PERFORM decode(image, 'hex')::bloomfilter;
            RETURN true;
        EXCEPTION WHEN invalid_binary_representation OR feature_not_supported
                OR program_limit_exceeded THEN
            RETURN false;
        END $$""")
    opened = query("".join(f"SELECT opens('{image.hex()}');" for _, image in cases))
    for (what, _), (opens,) in zip(cases, opened.rows):
        checks.check(opens == "f", f"the server refuses {what}")
    return [line("bad", what, hexed(image)) for what, image in cases]


checks = Checks()
with schema(SCHEMA):
    query(values.TYPES)
    lines = digests()
    more, by_name = images()
    lines += more + bad(by_name, checks)
path = os.path.join(TOP, "test", "vectors.txt")
with open(path, "w", encoding="utf-8", newline="\n") as out_file:
    out_file.write(HEADER)
    out_file.writelines(lines)
print(f"{path}: {len(lines)} lines, {os.path.getsize(path)} bytes")
checks.close()
