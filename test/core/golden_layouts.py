#!/usr/bin/python3
"""Print golden_layouts.h: known answers for layouts.c, computed without the core.

Written from the comments that head core/counting.c, core/cuckoo.c,
core/layers.c and core/format.c.  The formats are frozen, so that the output
never changes:

    /usr/bin/python3 test/core/golden_layouts.py | diff - test/core/golden_layouts.h
"""
import struct
from decimal import ROUND_CEILING, Decimal
from itertools import combinations_with_replacement
from math import comb

import xxhash

from golden import NS, blocked, c_bytes, digest, pattern, standard

MASK32 = 2 ** 32 - 1
MASK64 = 2 ** 64 - 1
RATES = ["0.5", "0.1", "0.03", "0.01", "0.001", "0.0001", "1e-6", "1e-8"]
RATIO = Decimal("0.85")
FEWEST_BITS = 8


def halves(element, key):
    d = digest(element, key)
    return int.from_bytes(d[:8], "little"), int.from_bytes(d[8:], "little")


# -- counting

def counting(elements, key, m, k):
    counters = [0] * m
    for e in elements:
        h1, h2 = halves(e, key)
        for i in range(k):
            at = (h1 + i * (h2 | 1)) % m
            counters[at] = min(15, counters[at] + 1)
    payload = bytes(counters[i] | counters[i + 1] << 4 for i in range(0, m, 2))
    return payload, m - counters.count(0)


# -- cuckoo

def cuckoo_rate(buckets, bits, n):
    return 1 - (1 - 1 / Decimal(2 ** bits - 1)) ** (Decimal(2 * n) / buckets)


def cuckoo(n, p):
    """Buckets, bits of a fingerprint, bits of the payload."""
    buckets = 2 * int((Decimal(n) / Decimal("7.6")).to_integral_value(ROUND_CEILING))
    bits = FEWEST_BITS
    while cuckoo_rate(buckets, bits, n) > Decimal(p):
        bits += 1
    return buckets, bits, (-(-buckets * (4 * bits - 4) // 8) + 64) * 8


def place(element, key, buckets, bits):
    """First bucket, other bucket, fingerprint."""
    h1, h2 = halves(element, key)
    first = (h1 >> 32) * buckets >> 32
    fp = 1 + ((h2 >> 32) * (2 ** bits - 1) >> 32)
    x = (fp * 0x9E3779B97F4A7C15 & MASK64) >> 32
    g = 2 * (x * (buckets // 2) >> 32) + 1
    return first, (g - first) % buckets, fp


def number(nibbles):
    a, b, c, d = nibbles
    return a + comb(b + 1, 2) + comb(c + 2, 3) + comb(d + 3, 4)


def fill(elements, key, buckets, bits):
    """Where each has room without moving another, or can move none."""
    table = [[] for _ in range(buckets)]
    stash = []
    for e in elements:
        first, other, fp = place(e, key, buckets, bits)
        if len(table[first]) < 4:
            table[first].append(fp)
        elif len(table[other]) < 4:
            table[other].append(fp)
        else:
            for i in (first, other):
                assert all({i, j} == {first, other} for j in
                           (move(i, x, buckets) for x in table[i]))
            stash.append(min(first, other, key=lambda i: i % 2) | fp << 32)
    return table, stash


def move(i, fp, buckets):
    x = (fp * 0x9E3779B97F4A7C15 & MASK64) >> 32
    return (2 * (x * (buckets // 2) >> 32) + 1 - i) % buckets


def write_table(table, stash, bits):
    payload = 0
    for i, bucket in enumerate(table):
        slots = sorted(bucket + [0] * (4 - len(bucket)), key=lambda x: (x & 15, x >> 4))
        word = number([x & 15 for x in slots])
        for s, x in enumerate(slots):
            word |= x >> 4 << 12 + s * (bits - 4)
        payload |= word << i * (4 * bits - 4)
    size = -(-len(table) * (4 * bits - 4) // 8)
    return (payload.to_bytes(size, "little") +
            b"".join(struct.pack("<Q", x) for x in stash + [0] * (8 - len(stash))))


# -- images

def image(layout, key, m, k, capacity, fpr, nset, payload, expansion=0, layers=()):
    secret = key or b""
    entries = b"".join(struct.pack("<QQQB7x", *entry) for entry in layers)
    size = (60 + len(secret) + len(entries) + 4 + 63) // 64 * 64 - 4
    head = struct.pack("<2sBBBBHBBHQQdQBBBxQ4x", b"BF", 1, layout,
                       1 if key is None else 2, k, size, len(secret),
                       2 if nset else 0, 0, m, capacity, float(fpr), nset, 0,
                       expansion, len(layers),
                       (xxhash.xxh3_64_intdigest(payload) or 1) if nset else 0)
    head = (head + secret + entries).ljust(size, b"\0")
    check = struct.pack("<I", xxhash.xxh3_64_intdigest(head) & MASK32)
    return head[:56] + check + head[60:] + payload


def bits_of(layout, elements, m, k):
    """The payload of a standard or blocked filter, and the bits set."""
    bits = bytearray(m // 8)
    for e in elements:
        h1, h2 = halves(e, None)
        if layout == 1:
            places = [(h1 + i * (h2 | 1)) % m for i in range(k)]
        else:
            assert k <= 7
            block = (h1 >> 32) * (m // 512) >> 32
            places = [block * 512 + (h2 >> 9 * i & 511) for i in range(k)]
        for x in places:
            bits[x // 8] |= 1 << (x % 8)
    return bytes(bits), sum(bin(b).count("1") for b in bits)


def layered(layout, capacity, p, expansion, parts):
    """Layers that hold the parts, however full that makes them."""
    entries = []
    payload = b""
    shapes = []
    for i, part in enumerate(parts):
        n = capacity * expansion ** i
        rate = Decimal(p) * (1 - RATIO) * RATIO ** i
        if layout == 4:
            buckets, k, m = cuckoo(n, rate)
            table, stash = fill(part, None, buckets, k)
            bits, nset = write_table(table, stash, k), len(part)
        else:
            m, k, _ = (standard if layout == 1 else blocked)(n, rate)
            bits, nset = bits_of(layout, part, m, k)
        shapes.append((m, k))
        entries.append((m, n, nset, k))
        payload += bits
    return image(layout, None, *shapes[0], capacity, p, sum(e[2] for e in entries),
                 payload, expansion, entries)


def table_of(name, comment, rows, kind):
    print(f"/* {comment} */\nstatic const {kind} golden_{name}[] = {{")
    for row in rows:
        print("\t" + row + ",")
    print("};\n")


def image_of(name, comment, data):
    print(f"/* {comment} */\nstatic const uint8_t golden_{name}_image[] = {{\n" +
          c_bytes(data) + "\n};\n")


def main():
    print("/*-------------------------------------------------------------------------\n"
          " *\n"
          " * golden_layouts.h\n"
          " *\t  Known answers for layouts.c, computed by golden_layouts.py without the\n"
          " *\t  core.\n"
          " *\n"
          " *-------------------------------------------------------------------------\n"
          " */\n")

    rows = []
    for n in NS:
        for p in RATES:
            buckets, bits, m = cuckoo(n, p)
            rows.append(f"{{{n}, {p}, {m}, {bits}, "
                        f"{float(cuckoo_rate(buckets, bits, n))!r}}}")
    table_of("cuckoo", "n, p, m, bits of a fingerprint, rate", rows, "GoldenSize")

    # in the order of their numbers, which are found by counting
    quads = sorted((tuple(reversed(q)) for q in
                    combinations_with_replacement(range(15, -1, -1), 4)),
                   key=lambda q: q[::-1])
    assert [number(q) for q in quads] == list(range(3876))
    values = ["0x%04x" % (a | b << 4 | c << 8 | d << 12) for a, b, c, d in quads]
    print("/* the four nibbles of each number, the lowest in the low bits */\n"
          "static const uint16_t golden_nibbles[] = {\n" +
          ",\n".join("\t" + ", ".join(values[i:i + 8]) for i in range(0, 3876, 8)) +
          "\n};\n")

    items = [b"item-%d" % i for i in range(20)]
    m, k, _ = standard(20, "0.01")
    payload, nset = counting(items, pattern(16), m, k)
    image_of("counting",
             "item-0 .. item-19 as text: counting, BLAKE2b, key pattern(16), capacity 20",
             image(3, pattern(16), 4 * m, k, 20, "0.01", nset, payload))
    payload, nset = counting(items * 8, None, m, k)
    image_of("counted", "the same, each eight times: XXH3, no key",
             image(3, None, 4 * m, k, 20, "0.01", nset, payload))

    widths = []
    for p in ("0.5", "0.01", "0.001", "1e-8"):
        buckets, bits, m = cuckoo(100, p)
        table, stash = fill(items, None, buckets, bits)
        assert not stash
        image_of("cuckoo_%d" % bits, f"the items: cuckoo, XXH3, capacity 100, fpr {p}",
                 image(4, None, m, bits, 100, p, len(items), write_table(table, stash, bits)))
        widths.append(f"\tGOLDEN_CUCKOO({bits}, {p})")
    print("#define GOLDEN_CUCKOO_LIST \\\n" + ", \\\n".join(widths) + "\n")

    # more elements than fit into one pair of buckets
    buckets, bits, m = cuckoo(100, "0.01")
    pair = None
    crowd = []
    for i in range(100000):
        first, other, _ = place(b"item-%d" % i, None, buckets, bits)
        pair = pair or {first, other}
        if {first, other} == pair:
            crowd.append(i)
        if len(crowd) == 13:
            break
    print("/* items of one pair of buckets */\n"
          "static const int golden_crowd[] = {" + ", ".join(map(str, crowd)) + "};\n")
    table, stash = fill([b"item-%d" % i for i in crowd], None, buckets, bits)
    assert len(stash) == 5
    image_of("stash", "these: cuckoo, XXH3, capacity 100, fpr 0.01; five of them in the stash",
             image(4, None, m, bits, 100, "0.01", len(crowd), write_table(table, stash, bits)))

    for layout, name in ((1, "standard"), (2, "blocked"), (4, "cuckoo")):
        image_of(f"scalable_{name}",
                 f"item-0 .. item-9 and item-10 .. item-19 in two layers: {name}, XXH3,\n"
                 " * capacity 10, fpr 0.1, expansion 3",
                 layered(layout, 10, "0.1", 3, [items[:10], items[10:]]))


if __name__ == "__main__":
    main()
