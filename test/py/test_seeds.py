#!/usr/bin/python3
"""The published figures of the textbook filter, and an independent filter.

Rates are measured over T probes of absent values; at most
T q + 3 sqrt(T q (1 - q)) may pass, q being the higher of the rate asked for
and the rate that theory gives.
"""
import datetime
import random
import uuid

import reference
from harness import Checks, copy_in, query, schema

TEXTBOOK = "layout => 'standard', hash => 'blake2b'"
LAYOUTS = ("standard", "blocked")

checks = Checks()


def loaded(name):
    """A filter of table f, in memory for a whole query: a probe of one on
    disk reads it anew."""
    return f"(SELECT filter::bytea::bloomfilter FROM f WHERE name = '{name}')"


def measure(name, members, absent):
    """How many members a filter refuses, and how many absent values pass."""
    refused, passed = query(f"""
        SELECT (SELECT count(*) FROM {members} WHERE NOT {loaded(name)} @> x),
               (SELECT count(*) FROM {absent} WHERE {loaded(name)} @> x)
        """).rows[0]
    return int(refused), int(passed)


def shape_of(name):
    m, k = query("SELECT bits, hashes FROM f, bloom_info(filter)"
                 f" WHERE name = '{name}'").rows[0]
    return int(m), int(k)


def fill_of(name):
    fill = query("SELECT fill FROM f, bloom_info(filter)"
                 f" WHERE name = '{name}'").value
    return f"{float(fill):.1%}"


def check_rate(what, passed, probes, layout, m, k, n, p):
    rate = reference.theory(layout, m, k, n)
    limit = reference.bound(probes, max(p, rate))
    checks.check(passed <= limit,
                 f"{what}: {passed} of {probes} pass ({passed / probes:.3%}; "
                 f"theory {rate:.3%}), at most {limit:.0f}")


def catalogue():
    """5,000 products; a bot asks for every other code."""
    query("""
        CREATE TABLE product AS
            SELECT 'SP-' || lpad(i::text, 5, '0') AS x
            FROM generate_series(1, 5000) i;
        CREATE TABLE bogus AS
            SELECT 'SP-' || lpad(i::text, 5, '0') AS x
            FROM generate_series(5001, 99999) i;""")
    query(f"""
        CREATE TABLE f AS
            SELECT 'default' AS name, bloom_agg(x, 5000, 0.01) AS filter
            FROM product
            UNION ALL
            SELECT 'textbook',
                   bloom_agg(x, bloomfilter(5000, 0.01, {TEXTBOOK}))
            FROM product""")
    checks.equal(shape_of("textbook"), (47928, 7), "5,000 products: m, k")
    for name in ("textbook", "default"):
        refused, passed = measure(name, "product", "bogus")
        checks.equal(refused, 0, f"{name}: products refused")
        if name == "textbook":
            checks.equal(passed, 950, f"{name}: bogus codes that pass")
        else:
            check_rate(f"{name}: bogus codes", passed, 94999, "blocked",
                       *shape_of(name), 5000, 0.01)

    codes = [f"SP-{i:05d}" for i in range(1, 5001)]
    ours = reference.Filter(5000, 0.01, "standard", "blake2b").add("text",
                                                                   codes)
    image = query("SELECT encode(filter::bytea, 'hex') FROM f"
                  " WHERE name = 'textbook'").value
    checks.check(bytes.fromhex(image) == ours.image(),
                 "5,000 products: the same bytes as the independent filter's")


def discount_codes():
    """A million codes, 200,000 that a bot tries, and a second million."""
    n = 1000000
    numbers = random.Random(2026).sample(range(10 ** 10), 2 * n + 200000)
    query("""CREATE UNLOGGED TABLE issued (x text);
             CREATE UNLOGGED TABLE more (x text);
             CREATE UNLOGGED TABLE tried (x text);""")
    for table, part in (("issued", numbers[:n]), ("more", numbers[n:2 * n]),
                        ("tried", numbers[2 * n:])):
        copy_in(f"COPY {table} FROM STDIN",
                "".join(f"GG-{x:010d}\n" for x in part).encode())

    designs = [("standard", 0.001, None), ("standard", 0.01, None),
               ("standard", 0.01, 3), ("standard", 0.01, 14),
               ("blocked", 0.001, None), ("blocked", 0.01, None),
               ("blocked", 0.01, 3), ("blocked", 0.01, 14)]

    def name(layout, p, k):
        return f"{layout} {p} {k or 'best'}"

    def template(layout, p, k):
        given = f", hashes => {k}" if k else ""
        return (f"bloomfilter({n}, {p}, {TEXTBOOK}{given})"
                if layout == "standard" else f"bloomfilter({n}, {p}{given})")

    query("CREATE TABLE f (name text, filter bloomfilter);" + "".join(
        f"INSERT INTO f SELECT '{name(*d)}', bloom_agg(x, {template(*d)})"
        " FROM issued;" for d in designs))
    passed = {}
    for d in designs:
        layout, p, _ = d
        refused, passed[d] = measure(name(*d), "issued", "tried")
        checks.equal(refused, 0, f"{name(*d)}: issued codes refused")
        check_rate(f"{name(*d)}: tried codes", passed[d], 200000, layout,
                   *shape_of(name(*d)), n, p)

    published = {
        # m, k, fill, rate measured
        ("standard", 0.001, None): (14377592, 10, "50.1%", "0.090%"),
        ("standard", 0.01, None): (9585064, 7, "51.8%", "0.995%"),
    }
    for d, (m, k, fill, rate) in published.items():
        checks.equal(shape_of(name(*d)), (m, k), f"{name(*d)}: m, k")
        checks.equal(fill_of(name(*d)), fill, f"{name(*d)}: bits set")
        checks.equal(f"{passed[d] / 200000:.3%}", rate,
                     f"{name(*d)}: tried codes that pass")
    for k, rate in ((3, "1.94%"), (14, "2.48%")):
        m, _ = shape_of(f"standard 0.01 {k}")
        checks.equal(m, 9585064, f"k = {k}: m stays")
        checks.equal(f"{reference.theory('standard', m, k, n):.2%}", rate,
                     f"k = {k}: theory")
        theirs = query(f"""SELECT expected_fpr FROM f, bloom_info(filter)
                           WHERE name = 'standard 0.01 {k}'""").value
        checks.equal(f"{float(theirs):.2%}", rate, f"k = {k}: bloom_info")

    overfill(n)
    independent_million(numbers[:n])


def overfill(n):
    """The second million: the rate gets worse, and a WARNING says so."""
    for layout in LAYOUTS:
        name = f"{layout} 0.01 best"
        ways = {
            "aggregate": f"""
                UPDATE f SET filter =
                    (SELECT bloom_agg(x, (SELECT filter FROM f
                                          WHERE name = '{name}'))
                     FROM (TABLE issued UNION ALL TABLE more) both_)
                WHERE name = '{name}' RETURNING md5(filter::bytea)""",
            "union": f"""
                SELECT md5((filter | (SELECT bloom_agg(x, filter)
                                      FROM more))::bytea)
                FROM f WHERE name = '{name}'""",
            "add_all": f"""
                SELECT md5(bloom_add_all(filter, (SELECT array_agg(x)
                                                  FROM more))::bytea)
                FROM f WHERE name = '{name}'""",
        }
        rate = reference.theory(layout, *shape_of(name), 2 * n)
        expected = f"{100 * rate:.3g}"
        if layout == "standard":
            checks.equal(expected, "15.7", f"{name}, 2n: theory, in percent")
        images = set()
        # the aggregate last: it replaces the filter that the others start from
        for way in ("union", "add_all", "aggregate"):
            result = query(ways[way])
            images.add(result.value)
            checks.equal(result.warnings, [
                "filter sized for 1000000 elements holds about 2000000;"
                f" expect {expected}% false positives, not 1%"],
                f"{name}, {way}: warnings")
        checks.equal(len(images), 1, f"{name}: values of three ways to 2n")

        refused, passed = measure(
            name, "(TABLE issued UNION ALL TABLE more) b", "tried")
        checks.equal(refused, 0, f"{name}, 2n: codes refused")
        check_rate(f"{name}, 2n: tried codes", passed, 200000, layout,
                   *shape_of(name), 2 * n, 0.01)
        if layout == "standard":
            checks.equal(fill_of(name), "76.8%", f"{name}, 2n: bits set")
            checks.equal(f"{passed / 200000:.3%}", "15.715%",
                         f"{name}, 2n: tried codes that pass")


def independent_million(numbers):
    """A whole million, byte for byte."""
    codes = [f"GG-{x:010d}" for x in numbers]
    ours = reference.Filter(len(codes), 0.01, "standard", "blake2b")
    theirs = query(f"""SELECT encode(bloom_agg(x, bloomfilter(
                           {len(codes)}, 0.01, {TEXTBOOK}))::bytea, 'hex')
                       FROM issued""").value
    checks.check(bytes.fromhex(theirs) == ours.add("text", codes).image(),
                 "a million codes: the same bytes as the independent filter's")


def items():
    """item-0 .. item-999999, and as many strangers."""
    n = 1000000
    query(f"""
        CREATE UNLOGGED TABLE item AS
            SELECT 'item-' || i AS x FROM generate_series(0, {n - 1}) i;
        CREATE UNLOGGED TABLE stranger AS
            SELECT 'item-' || i AS x FROM generate_series({n}, {2 * n - 1}) i;
        CREATE TABLE f AS
            SELECT 'standard' AS name,
                   bloom_agg(x, bloomfilter({n}, {TEXTBOOK})) AS filter
            FROM item
            UNION ALL SELECT 'blocked', bloom_agg(x, {n}) FROM item""")
    for layout in LAYOUTS:
        refused, passed = measure(layout, "item", "stranger")
        checks.equal(refused, 0, f"{layout}: items refused")
        check_rate(f"{layout}: strangers to the items", passed, n, layout,
                   *shape_of(layout), n, 0.01)
        if layout == "standard":
            checks.check(0.00995 <= passed / n <= 0.01015,
                         f"{layout}: about 1.00% of the strangers pass")


def urls():
    """10 million URLs take 11.98 MB, whatever their length."""
    n = 10000000
    short = "'http://a.vn/' || i"
    long = "rpad('https://example.org/' || i || '/', 200, 'x')"
    sizes = {layout: reference.SIZE[layout](n, 0.01) for layout in LAYOUTS}
    payload = {layout: m // 8 for layout, (m, _) in sizes.items()}
    for what, url in (("short", short), ("200 characters", long)):
        query(f"""
            DROP TABLE IF EXISTS f;
            CREATE TABLE f (name text, filter bloomfilter);
            WITH built AS MATERIALIZED (
                SELECT bloom_agg({url}, bloomfilter({n}, {TEXTBOOK})) AS s,
                       bloom_agg({url}, {n}) AS b
                FROM generate_series(1, {n}) i)
            INSERT INTO f SELECT 'standard', s FROM built
                UNION ALL SELECT 'blocked', b FROM built""")
        for layout in LAYOUTS:
            nbytes, image = query(f"""
                SELECT bytes, length(filter::bytea)
                FROM f, bloom_info(filter) WHERE name = '{layout}'""").rows[0]
            checks.equal((int(nbytes), int(image)),
                         (payload[layout] + 64, payload[layout] + 60),
                         f"URLs, {what}, {layout}: bytes of value and image")
            members = f"generate_series(1, {n}, 10) i"
            strangers = f"generate_series({n + 1}, {n + 1000000}) i"
            refused, passed = measure(
                layout, f"(SELECT {url} AS x FROM {members}) m",
                f"(SELECT {url} AS x FROM {strangers}) s")
            checks.equal(refused, 0, f"URLs, {what}, {layout}: refused")
            check_rate(f"URLs, {what}, {layout}: strangers", passed, 1000000,
                       layout, *sizes[layout], n, 0.01)
    checks.check(11981000 <= payload["standard"] + 64 < 11982000,
                 f"URLs: standard takes 11.98 MB: {payload['standard'] + 64}")


def sizes():
    """m and k, from an independent computation."""
    ns = (1, 2, 3, 5, 10, 30, 100, 1000, 4999, 5000, 10 ** 4, 10 ** 5, 10 ** 6,
          10 ** 7, 10 ** 8)
    ps = (0.5, 0.1, 0.02, 0.01, 0.001, 0.0001, 1e-5, 1e-6)
    grid = [(n, p) for n in ns for p in ps]
    values = ", ".join(f"({n}, {p})" for n, p in grid)
    rows = query(f"""
        SELECT n, p, s.*, i.bits = s.bits AND i.hashes = s.hashes
        FROM (VALUES {values}) v(n, p), bloom_sizing(n, p) s,
             bloom_info(bloomfilter(n, p, s.layout)) i
        WHERE s.layout IN ('standard', 'blocked')""").rows
    checks.equal(len(rows), 2 * len(grid), "sizes: rows")
    for row in rows:
        n, p, layout, bits, hashes = (int(row[0]), float(row[1]), row[2],
                                      int(row[3]), int(row[4]))
        what = f"{layout}, n = {n}, p = {p}"
        m, k = reference.SIZE[layout](n, p)
        rate = reference.theory(layout, m, k, n)
        if layout == "standard" and k > 1:
            rate += 16 * n / m ** 2
        agrees = ((bits, hashes, int(row[5])) == (m, k, 64 + m // 8) and
                  abs(float(row[6]) - m / n) <= 1e-9 * m / n and
                  abs(float(row[7]) - rate) <= 1e-6 * rate + 1e-11 and
                  row[8] == "t")
        checks.check(agrees, f"sizes: {what}: m = {bits}, k = {hashes}" +
                     ("" if agrees else f"; m = {m}, k = {k}, rate {rate!r},"
                                        f" not {row[5:]}"))
        if layout == "blocked" and n >= 10 ** 4 and p in (0.01, 0.001):
            near = {0.01: 9.896, 0.001: 15.49}[p]
            checks.check(m / n <= 1.03 * near,
                         f"sizes: {what}: {m / n:.3f} bits a key,"
                         f" within 3% of {near}")

    rows = query("""
        SELECT bytes, layout,
               (SELECT s.bytes FROM bloom_sizing(n, 0.01) s
                WHERE s.layout = l.layout),
               (SELECT s.bytes FROM bloom_sizing(n + 1, 0.01) s
                WHERE s.layout = l.layout)
        FROM (VALUES ('standard'), ('blocked')) l(layout),
             unnest('{128, 1000, 65536, 1048576, 100000000}'::float8[]) bytes,
             bloom_capacity(bytes, 0.01, layout) n""").rows
    for budget, layout, fits, too_large in rows:
        checks.check(int(fits) <= int(budget) < int(too_large),
                     f"bloom_capacity: {layout}: {budget} bytes hold {fits},"
                     f" one more element takes {too_large}")


def samples(count):
    """Values of each kind: SQL type, kind, values in Python and in SQL."""
    rng = random.Random(1)
    utc = datetime.timezone.utc

    def quoted(value):
        return "'" + str(value).replace("'", "''") + "'"

    def integers(bits):
        edge = [0, 1, -1, -2 ** (bits - 1), 2 ** (bits - 1) - 1]
        return edge + [rng.getrandbits(bits) - 2 ** (bits - 1)
                       for _ in range(count)]

    texts = ["", "a", "O'Neill", "Straße 東京 \U0001f600", "x" * 1000] + \
        [f"key-{i}" for i in range(count)]
    binaries = [b"", b"\0", b"\xff" * 300] + \
        [rng.randbytes(i % 40) for i in range(count)]
    floats = [0.0, -0.0, 1.5, float("inf"), float("-inf"), float("nan"),
              5e-324] + [rng.uniform(-1e9, 1e9) for _ in range(count)]
    moments = [datetime.datetime(2000, 1, 1), datetime.datetime.min,
               datetime.datetime.max] + \
        [datetime.datetime(1900, 1, 1) +
         datetime.timedelta(microseconds=rng.randrange(10 ** 16))
         for _ in range(count)]
    days = [moment.date() for moment in moments]

    for sql_type, bits in (("int2", 16), ("int4", 32), ("int8", 64)):
        values = integers(bits)
        yield sql_type, "integer", values, map(quoted, values)
    oids = [0, 2 ** 31, 2 ** 32 - 1]
    yield "oid", "integer", oids, map(quoted, oids)
    yield "text", "text", texts, map(quoted, texts)
    yield "varchar", "text", texts, map(quoted, texts)
    yield ("char(9)", "text", texts[1:3], [quoted(s) for s in texts[1:3]])
    yield "name", "text", texts[:3], map(quoted, texts[:3])
    yield ("bytea", "bytea", binaries,
           [quoted("\\x" + b.hex()) for b in binaries])
    yield "float8", "float", floats, [quoted(repr(x)) for x in floats]
    yield "float4", "float", floats[:6], [quoted(repr(x)) for x in floats[:6]]
    ids = [uuid.UUID(int=rng.getrandbits(128)) for _ in range(count)]
    yield "uuid", "uuid", ids, map(quoted, ids)
    yield "bool", "boolean", [True, False], ["true", "false"]
    yield "bool", "boolean", [False], ["false"]
    yield "date", "date", days, [quoted(day.isoformat()) for day in days]
    yield ("time", "time", [m.time() for m in moments],
           [quoted(m.time()) for m in moments])
    yield "timestamp", "timestamp", moments, [quoted(m.isoformat())
                                              for m in moments]
    zoned = [m.replace(tzinfo=utc) for m in moments]
    yield "timestamptz", "timestamptz", zoned, [quoted(m.isoformat())
                                                for m in zoned]


# constructor's arguments, in Python; their SQL follows from them
DESIGNS = [
    dict(layout="standard", hash="blake2b"),
    dict(layout="standard", hash="blake2b", key=b"k"),
    dict(layout="standard", hash="xxh3"),
    dict(layout="standard", hash="xxh3", fpr=1e-6),
    dict(layout="standard", hash="xxh3", hashes=64),
    dict(layout="blocked", hash="blake2b", key=bytes(range(32))),
    dict(layout="blocked", hash="blake2b", key=bytes(4), fpr=0.001),
    dict(layout="blocked", hash="xxh3"),
    dict(layout="blocked", hash="xxh3", fpr=0.5),
    dict(layout="blocked", hash="xxh3", hashes=16),
    dict(layout="blocked", hash="xxh3", fpr=0.3, hashes=1),
]


def constructor(capacity, design):
    def literal(value):
        if isinstance(value, bytes):
            return f"'\\x{value.hex()}'"
        return f"'{value}'"

    args = ["NULL" if capacity is None else str(capacity)]
    args += [f"{name} => {literal(value)}" for name, value in design.items()]
    return f"bloomfilter({', '.join(args)})"


def described(design):
    return " ".join(f"{name} {value.hex() if name == 'key' else value}"
                    for name, value in design.items())


def hex_image(expression):
    return bytes.fromhex(query(f"SELECT encode(({expression})::bytea, 'hex')")
                         .value)


def images():
    """The server's bytes are the independent filter's, checksum included."""
    for design in DESIGNS:
        what = f"bytes: {described(design)}"
        for capacity in (None, 1, 1000, 1000000):
            checks.check(hex_image(constructor(capacity, design)) ==
                         reference.Filter(capacity, **design).image(),
                         f"{what}, empty, capacity {capacity or 'none'}")
        for n in (1, 2, 3, 10, 100, 1000):
            ours = reference.Filter(n, **design).add(
                "text", (f"user-{i}" for i in range(1, n + 1)))
            checks.check(ours.image() == hex_image(f"""
                SELECT bloom_agg('user-' || i, {constructor(n, design)})
                FROM generate_series(1, {n}) i"""), f"{what}, n = {n}")


def kinds():
    """Elements of every kind are the bytes that the format says."""
    for sql_type, kind, values, literals in samples(40):
        array = f"ARRAY[{', '.join(literals)}]::{sql_type}[]"
        for design in DESIGNS[1], DESIGNS[7]:
            empty = constructor(len(values), design)
            ours = reference.Filter(len(values), **design).add(kind, values)
            what = f"bytes of {sql_type}: {described(design)}"
            for way, expression in {
                "bloom_agg": f"SELECT bloom_agg(x, {empty})"
                             f" FROM unnest({array}) x",
                "bloom_add_all": f"bloom_add_all({empty}, {array})",
            }.items():
                checks.check(hex_image(expression) == ours.image(),
                             f"{what}: {way}")

    for literal, number in {
        "date 'infinity'": 2 ** 31 - 1, "date '-infinity'": -2 ** 31,
        "timestamp 'infinity'": 2 ** 63 - 1,
        "timestamptz '-infinity'": -2 ** 63, "time '24:00'": 86400 * 10 ** 6,
    }.items():
        checks.equal(query(f"SELECT bloom_hash({literal})").value,
                     "\\x" + reference.xxh3_128(reference.int64(number)).hex(),
                     f"digest of {literal}")


def both_ways():
    """Each side reads what the other wrote, and they answer alike, false
    positives included."""
    n, probes = 300, 20000
    for design in DESIGNS:
        what = f"both ways: {described(design)}"
        theirs = reference.Filter.read(hex_image(f"""
            SELECT bloom_agg(i, {constructor(n, design)})
            FROM generate_series(1, {n}) i"""))
        ours = reference.Filter(n, **design).add("integer", range(1, n + 1))
        answers = [row == ["t"] for row in query(f"""
            SELECT f @> i
            FROM bloomfilter_from_bytea('\\x{ours.image().hex()}') f,
                 generate_series(1, {probes}) i""").rows]
        checks.check(all(answers[:n]), f"{what}: no false negative")
        checks.check([theirs.contains(i) for i in range(1, probes + 1)] ==
                     answers, f"{what}: the same answers to {probes} probes,"
                     f" {sum(answers[n:])} of them false positives")

        halves = [f"(SELECT bloom_agg(i, {constructor(n, design)})"
                  f" FROM generate_series({a}, {b}) i)"
                  for a, b in ((1, n // 2), (n // 2 - 10, n))]
        one_by_one = constructor(n, design)
        for i in range(1, 11):
            one_by_one = f"bloom_add({one_by_one}, {i})"
        checks.check(hex_image(" | ".join(halves)) == ours.image(),
                     f"{what}: the union of two halves")
        checks.check(hex_image(one_by_one) == reference.Filter(n, **design)
                     .add("integer", range(1, 11)).image(),
                     f"{what}: element by element")


def main():
    for part in (sizes, images, kinds, both_ways, catalogue, discount_codes,
                 items, urls):
        with schema("test_seeds"):
            checks.part(part)
    checks.close()


if __name__ == "__main__":
    main()
