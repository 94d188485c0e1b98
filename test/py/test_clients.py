#!/usr/bin/python3
"""The clients in Python and JavaScript against the server: the same answers
for 100,000 random keys of every portable kind and both hashes, the same bytes
of what each builds, and the same opinion of images that are damaged.
"""
import base64
import itertools
import json
import os
import random
import struct
import subprocess
import time
import tracemalloc

import values
from harness import SLOW, Checks, copy_in, query, schema

# pylint: disable=wrong-import-order
from values import TOP
from vector_values import decode

import xxhash
from bloomfilter_pg import BloomFilter, FormatError, KindError, _layouts, _sizes

SCHEMA = "test_clients"
SEED = 20
KEYS = 1000000 if SLOW else 100000
MUTANTS = 40000 if SLOW else 4000
HASHES = "xxh3", "blake2b"
LAYOUTS = [("standard", 0), ("blocked", 0), ("counting", 0), ("cuckoo", 0),
           ("standard", 2), ("blocked", 2), ("cuckoo", 2)]

checks = Checks()


class Node:
    """The client in JavaScript."""

    def __init__(self):
        self.process = subprocess.Popen(
            ["node", os.path.join(TOP, "test", "py", "clients.mjs")],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            encoding="utf-8")

    def ask(self, what, **request):
        request["do"] = what
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer["answer"]

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def flags(answers):
    return "".join("t" if answer else "f" for answer in answers)


def template(options):
    """The same for the server."""
    parts = [f"{options['capacity']}, {options['fpr']!r}",
             f"layout => '{options['layout']}', hash => '{options['hash']}'"]
    if options.get("key"):
        parts.append(f"key => '\\x{options['key']}'")
    if options.get("hashes"):
        parts.append(f"hashes => {options['hashes']}")
    if options.get("expansion"):
        parts.append(f"expansion => {options['expansion']}")
    return f"bloomfilter({', '.join(parts)})"


def python_filter(options, kind=None):
    options = dict(options)
    options["key"] = bytes.fromhex(options.get("key") or "") or None
    return BloomFilter(kind=kind, **options)


# ---------------------------------------------------------------------------
# Answers, and what is built
# ---------------------------------------------------------------------------

def load(sql_type, kind, keys):
    query(f"DROP TABLE IF EXISTS keys; CREATE TABLE keys (i int, k {sql_type})")
    lines = "".join(f"{i}\t{values.copy_text(values.pg_text(kind, key))}\n"
                    for i, key in enumerate(keys))
    copy_in("COPY keys FROM STDIN", lines.encode())


def kinds_agree(node):
    combinations = list(itertools.product(
        values.sql_types(SCHEMA).items(), HASHES))
    each = -(-KEYS // len(combinations))
    total = 0
    layouts = itertools.cycle(LAYOUTS)
    for (kind, sql_type), hash_name in combinations:
        keys = values.values(kind, each, f"{SEED} {hash_name}")
        load(sql_type, kind, keys)
        members = each // 2
        python_keys = [decode(kind, key) for key in keys]
        key = "5ec7e7" if hash_name == "blake2b" and total % 2 else None
        # small: one absent key in ten gets a maybe, so the bits are seen
        layout, expansion = next(layouts)
        options = {"capacity": members, "fpr": 0.1, "layout": layout,
                   "hash": hash_name, "key": key, "expansion": expansion}
        # copies of an element are distinct to a cuckoo filter, and few fit
        filled = query(f"""CREATE TABLE IF NOT EXISTS made (f bloomfilter);
            TRUNCATE made;
            INSERT INTO made SELECT bloom_agg(k, {template(options)})
            FROM (SELECT DISTINCT k FROM keys WHERE i < {members}) d;
            SELECT f FROM made""").value
        server = query("SELECT string_agg(CASE WHEN f @> k THEN 't' ELSE 'f'"
                       " END, '' ORDER BY i) FROM keys, made").value
        what = f"{kind}, {hash_name}, {'scalable ' if expansion else ''}{layout}"
        if not sql_type.endswith("[]"):
            listed = query(f"""SELECT string_agg(CASE WHEN b THEN 't' ELSE 'f' END,
                '' ORDER BY o) FROM made, unnest(bloom_contains_each(f,
                (SELECT array_agg(k ORDER BY i) FROM keys)))
                WITH ORDINALITY u (b, o)""").value
            checks.check(listed == server, f"{what}: bloom_contains_each is @>")
        bf = BloomFilter.from_text(filled)
        checks.check(server == flags(k in bf for k in python_keys),
                     f"{what}: Python, {each} keys,"
                     f" {server.count('t') - members} maybes")
        checks.check(server == flags(bf.contains_many(python_keys)),
                     f"{what}: Python, in one call")
        checks.check(server == node.ask("probe", filter=filled, kind=kind,
                                        keys=keys), f"{what}: JavaScript")
        checks.check(server[:members] == "t" * members, f"{what}: members")
        total += each

        for layout in "standard", "blocked":
            for p in 0.1, 0.0003:
                options = {"capacity": members, "fpr": p, "layout": layout,
                           "hash": hash_name, "key": key}
                built = query(f"SELECT bloom_agg(k, {template(options)})"
                              f" FROM keys WHERE i < {members}").value
                mine = python_filter(options, kind)
                mine.update(python_keys[:members])
                single = python_filter(options, kind)
                for k in python_keys[:members]:
                    single.add(k)
                checks.check(built == mine.to_text() == single.to_text()
                             == node.ask("build", options=options, kind=kind,
                                         keys=keys[:members]),
                             f"{kind}, {hash_name}, {layout}, {p}: built alike")
    checks.check(total >= KEYS, f"{total} keys")


def appended(node):
    """Filters that were read are added to."""
    keys = [str(i) for i in range(2000)]
    for layout, hash_name in itertools.product(("standard", "blocked"), HASHES):
        options = {"capacity": 2000, "fpr": 0.01, "layout": layout,
                   "hash": hash_name}
        half, whole = (
            query(f"SELECT bloom_agg(i, {template(options)})"
                  f" FROM generate_series(0, {n}) i").value for n in (999, 1999))
        bf = BloomFilter.from_text(half)
        bf.update(range(1000, 2000))
        checks.check(bf.to_text() == whole
                     == node.ask("append", filter=half, kind="integer",
                                 keys=keys[1000:]),
                     f"{layout}, {hash_name}: read and added to")
        checks.check(query(f"SELECT '{bf.to_text()}'::bloomfilter @> 1999").value
                     == "t", f"{layout}, {hash_name}: as a parameter")


def sizes():
    r = random.Random(SEED)
    cases = [(n, p) for n in (1, 2, 3, 10, 100, 1000, 4999, 5000, 5001, 10 ** 5,
                              10 ** 6, 10 ** 7, 10 ** 8)
             for p in (0.999, 0.5, 0.1, 0.01, 0.001, 0.00099, 0.0001, 0.000001)]
    cases += [(int(10 ** r.uniform(0, 8)), 10 ** r.uniform(-6, -0.01))
              for _ in range(500)]
    rows = query("".join(
        f"SELECT {n}, {p!r}, layout, bits, hashes FROM bloom_sizing({n}, {p!r})"
        " WHERE layout IN ('blocked', 'standard');" for n, p in cases)).rows
    wrong = [row for row in rows
             if _sizes.size(row[2], int(row[0]), float(row[1]), None)
             != (int(row[3]), int(row[4]))]
    checks.equal(wrong, [], f"{len(rows)} sizes, Python")
    return rows


def empty_alike(node):
    """Sizes in JavaScript, and empty filters of all options."""
    options = []
    for layout, hash_name in itertools.product(("standard", "blocked"), HASHES):
        for n, p in (1, 0.5), (77, 0.01), (4999, 0.02), (10 ** 6, 0.000001), (
                10 ** 8, 0.01):
            for more in {}, {"hashes": 3}, {"key": "00ff"}:
                if "key" not in more or hash_name == "blake2b":
                    options.append({"capacity": n, "fpr": p, "layout": layout,
                                    "hash": hash_name, **more})
    server = [row[0] for row in query("".join(
        f"SELECT {template(o)};" for o in options)).rows]
    checks.equal([o for o, text in zip(options, server)
                  if python_filter(o).to_text() != text], [],
                 f"{len(options)} empty filters, Python")
    checks.equal([o for o, text in zip(options, server)
                  if node.ask("build", options=o, kind="integer", keys=[])
                  != text], [], f"{len(options)} empty filters, JavaScript")
    for text in server[:4] + [query("SELECT bloomfilter(layout => 'cuckoo')").value]:
        bf = BloomFilter.from_text(text)
        checks.check(1 not in bf and "a" not in bf and bf.to_text() == text,
                     "an empty filter holds nothing")


def infos(node):
    names = ("layout", "hash", "keyed", "element", "capacity", "target_fpr",
             "bits", "hashes", "layers", "bits_set", "fill", "cardinality",
             "expected_fpr")
    for layout, expansion in LAYOUTS:
        options = {"capacity": 200, "fpr": 0.005, "layout": layout,
                   "hash": "xxh3", "expansion": expansion}
        text = query(f"SELECT bloom_agg(i, {template(options)})"
                     f" FROM generate_series(1, {600 if expansion else 180}) i").value
        (server,) = json.loads(query(
            f"SELECT json_agg(i) FROM bloom_info('{text}') i").value)
        python = BloomFilter.from_text(text).info
        script = node.ask("info", filter=text)
        camel = {name: "".join(part.title() if i else part for i, part in
                               enumerate(name.split("_"))) for name in names}

        def same(mine, name, theirs):
            if isinstance(theirs, float):
                return abs(mine - theirs) <= 1e-9 + 1e-6 * abs(theirs)
            return mine == theirs
        checks.equal([name for name in names
                      if not same(getattr(python, name), name, server[name])
                      or not same(script[camel[name]], name, server[name])], [],
                     f"bloom_info: {layout}, expansion {expansion}")


def kinds_are_checked():
    """A probe of another kind is an error."""
    made = {kind: query(f"SELECT bloom_agg(k) FROM (SELECT "
                        f"{values.literal(kind, values.values(kind, 1, 1)[0])}"
                        f"::{sql_type} k) x").value
            for kind, sql_type in values.sql_types(SCHEMA).items()}
    wrong = []
    for kind, text in made.items():
        bf = BloomFilter.from_text(text)
        for other in made:
            if kind == other:
                continue
            stringly = {k for k in made if k in ("text", "macaddr", "macaddr8")
                        or k.startswith("enum:") and not k.endswith("[]")}
            if kind in stringly and other in stringly:
                continue        # a str is what tells these apart in Python
            for key in values.values(other, 20, 2):
                probe = decode(other, key)
                if probe == [] or isinstance(probe, list) and not any(
                        item is not None for item in probe):
                    continue
                if repr(probe).startswith("[") and {*repr(probe)} <= set("[None, ]"):
                    continue
                if "Infinity." in repr(probe) or repr(probe).startswith("(") and (
                        "None" in repr(probe)) or "None" in repr(probe):
                    continue
                if stringly & {kind.rstrip("[]"), other.rstrip("[]")} and (
                        kind[-2:] == other[-2:] == "[]"):
                    continue
                try:
                    bf.contains_many([probe])
                    wrong.append((kind, other, probe))
                except KindError:
                    pass
    checks.equal(wrong[:3], [], f"{len(made)} kinds: a probe of another is an error")
    hashed = BloomFilter.from_text(query("SELECT bloom_agg('{}'::jsonb)").value)
    try:
        checks.check("x" in hashed, "hash:jsonb")
    except KindError as error:
        checks.check("only the server" in str(error), f"hash:jsonb: {error}")
    checks.check(not hashed.info.portable, "hash:jsonb is not portable")


# ---------------------------------------------------------------------------
# Damaged images
# ---------------------------------------------------------------------------

def seal(image):
    """Make both checksums right again."""
    size = int.from_bytes(image[6:8], "little")
    if 60 <= size <= len(image):
        if len(image) > size:
            struct.pack_into("<Q", image, 48,
                             xxhash.xxh3_64_intdigest(image[size:]) or 1)
        image[56:60] = bytes(4)
        image[56:60] = struct.pack("<I", xxhash.xxh3_64_intdigest(image[:size])
                                   & 0xFFFFFFFF)


INTERESTING = [0, 1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 18, 19, 20, 31, 32, 33, 60,
               63, 64, 65, 124, 127, 128, 255]
FIELDS = [(0, 2), (2, 1), (3, 1), (4, 1), (5, 1), (6, 2), (8, 1), (9, 1),
          (10, 2), (12, 8), (20, 8), (28, 8), (36, 8), (44, 1), (45, 1), (46, 1),
          (47, 1), (48, 8), (56, 4)]


def mutate(image, r):
    image = bytearray(image)
    for _ in range(r.choice([1, 1, 1, 2, 3])):
        way = r.random()
        if way < 0.5 and len(image) >= 60:
            at, size = r.choice(FIELDS)
            field = r.choice([
                r.randbytes(size),
                (r.choice(INTERESTING) % 256 ** size).to_bytes(size, "little"),
                (2 ** r.randrange(8 * size)).to_bytes(size, "little"),
                ((int.from_bytes(image[at:at + size], "little")
                  + r.choice([-512, -32, -8, -1, 1, 8, 32, 512]))
                 % 256 ** size).to_bytes(size, "little")])
            image[at:at + size] = field
        elif way < 0.65 and len(image) > 60:
            at = r.randrange(60, min(len(image), 300))
            image[at] = r.choice(INTERESTING)
        elif way < 0.8 and image:
            image[r.randrange(len(image))] ^= 1 << r.randrange(8)
        elif way < 0.9:
            del image[r.randrange(len(image) + 1):]
        else:
            at = r.randrange(len(image) + 1)
            image[at:at] = r.randbytes(r.choice([1, 4, 8, 64]))
    if r.random() < 0.7:
        seal(image)
    return bytes(image)


def mutants_agree(node):
    r = random.Random(SEED)
    originals = []
    for layout, expansion in LAYOUTS:
        for n in 0, 5, 60:
            originals += [row[0] for row in query(
                f"""WITH t AS (SELECT bloomfilter(20, 0.01, layout => '{layout}',
                    expansion => {expansion}) f)
                SELECT bloom_agg(i, f) FROM t,
                    generate_series(1, {min(n, 20) if not expansion else n}) i
                    GROUP BY f::text;""").rows]
    originals += [row[0] for row in query("""
        SELECT bloomfilter(100, hash => 'blake2b', key => 'k');
        SELECT bloomfilter();
        SELECT bloomfilter(layout => 'cuckoo');
        SELECT bloomfilter(hashes => 5);
        SELECT bloom_agg('{}'::jsonb);
        SELECT bloom_agg((1, 'a'::text), bloomfilter(5, hash => 'blake2b', key => 'k'));
        SELECT bloom_agg(ARRAY['{}'::jsonb]);
        SELECT bloom_agg('sad'::"Odd, (mood)[]");""").rows]
    images = [base64.b64decode(text) for text in originals]
    checks.check(all(BloomFilter.from_bytes(image).to_bytes() == image
                     for image in images), f"{len(images)} originals")
    mutants = [mutate(r.choice(images), r) for _ in range(MUTANTS)]
    texts = [base64.b64encode(mutant).decode() for mutant in mutants]

    query("""CREATE TABLE mutants (i int, image bytea);
        CREATE FUNCTION opens(image bytea) RETURNS boolean LANGUAGE plpgsql AS $$
        BEGIN
            PERFORM image::bloomfilter;
            RETURN true;
        EXCEPTION WHEN invalid_binary_representation OR feature_not_supported
                OR program_limit_exceeded THEN
            RETURN false;
        END $$""")
    copy_in("COPY mutants FROM STDIN", "".join(
        f"{i}\t\\\\x{mutant.hex()}\n" for i, mutant in enumerate(mutants)).encode())
    server = query("SELECT string_agg(CASE WHEN opens(image) THEN 't' ELSE 'f' END,"
                   " '' ORDER BY i) FROM mutants").value

    def opens(image):
        try:
            bf = BloomFilter.from_bytes(image)
        except FormatError:
            return False
        checks_of_open.append(bf)
        return True

    for name, module in ("numpy", _layouts.np), ("no numpy", None):
        kept, _layouts.np = _layouts.np, module
        checks_of_open = []
        tracemalloc.start()
        began = time.monotonic()
        python = flags(opens(mutant) for mutant in mutants)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        _layouts.np = kept
        checks.check(python == server, f"{MUTANTS} mutants, Python ({name}):"
                     f" {server.count('t')} are filters")
        for i, (mine, theirs) in enumerate(zip(python, server)):
            if mine != theirs:
                print("        server:", theirs, "Python:", mine, texts[i][:400])
        checks.check(peak < 64 << 20, f"Python's peak is {peak >> 20} MB"
                     f" ({time.monotonic() - began:.1f} s)")
    script = node.ask("open", images=texts)
    checks.check(script == server, f"{MUTANTS} mutants, JavaScript")
    rss = node.ask("memory")
    checks.check(rss < 500 << 20, f"JavaScript takes {rss >> 20} MB")


# ---------------------------------------------------------------------------

with schema(SCHEMA):
    query(values.TYPES)
    javascript = Node()
    try:
        checks.part(sizes)
        checks.part(empty_alike, javascript)
        checks.part(infos, javascript)
        checks.part(appended, javascript)
        checks.part(kinds_are_checked)
        checks.part(mutants_agree, javascript)
        checks.part(kinds_agree, javascript)
    finally:
        javascript.close()
checks.close()
