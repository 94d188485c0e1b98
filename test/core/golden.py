#!/usr/bin/python3
"""Print golden.h: what unit.c holds the core to, computed without it.

Sizes come from the formulas in exact fractions and 60-digit decimals, digests
from hashlib and python3-xxhash, images from struct.  The formats are frozen,
so that the output never changes:

    /usr/bin/python3 test/core/golden.py | diff - test/core/golden.h
"""
import hashlib
import struct
from decimal import ROUND_CEILING, ROUND_HALF_EVEN, Decimal, getcontext
from fractions import Fraction
from math import comb, perm

import xxhash

getcontext().prec = 60
LN2 = Decimal(2).ln()
NS = [1, 2, 3, 10, 100, 1000, 4999, 5000, 100000, 1000000]
PS = ["0.1", "0.01", "0.001", "0.0001", "1e-6"]


def ceil(x):
    return int(x.to_integral_value(ROUND_CEILING))


def fewest(lo, fits):
    """The smallest integer >= lo that fits."""
    if fits(lo):
        return lo
    hi = lo * 2
    while not fits(hi):
        lo, hi = hi, hi * 2
    while hi - lo > 1:
        mid = (lo + hi) // 2
        lo, hi = (lo, mid) if fits(mid) else (mid, hi)
    return hi


# -- standard

def theory(m, k, n):
    return (1 - (-Decimal(k) * n / m).exp()) ** k


def standard(n, p):
    p = Decimal(p)
    size = -(-ceil(-n * p.ln() / LN2 ** 2) // 8)
    k = max(1, int((size * 8 * LN2 / n).to_integral_value(ROUND_HALF_EVEN)))
    if n < 5000 or p < Decimal("0.001"):
        bound = Decimal("1.003") * max(p, theory(size * 8, k, n))
        size = fewest(size, lambda s: theory(s * 8, k, n) +
                      16 * Decimal(n) / (s * 8) ** 2 <= bound)
    return size * 8, k, theory(size * 8, k, n)


# -- blocked

def stirling(k, i):
    return Fraction(sum((-1) ** (i - j) * comb(i, j) * j ** k
                        for j in range(i + 1)), perm(i, i))


def decimal(f):
    return Decimal(f.numerator) / Decimal(f.denominator)


def terms(k):
    hit = [stirling(k, i) * perm(512, i) / Fraction(512) ** k
           for i in range(k + 1)]
    return [(decimal((-1) ** l * sum(hit[i] * comb(i, l)
                                     for i in range(l, k + 1))),
             decimal(1 - Fraction(512 - l, 512) ** k)) for l in range(k + 1)]


TERMS = {k: terms(k) for k in range(1, 17)}


def blocked_rate(blocks, k, n):
    return sum(c * (1 - miss / blocks) ** n for c, miss in TERMS[k])


def blocked(n, p):
    p = Decimal(p)
    blocks = min(fewest(1, lambda b: blocked_rate(b, k, n) <= p)
                 for k in TERMS)
    ideal = min(16, max(1, round(float(-p.ln() / LN2))))
    fitting = [k for k in TERMS if blocked_rate(blocks, k, n) <= p]
    k = max([k for k in fitting if k <= ideal] or [min(fitting)])
    return blocks * 512, k, blocked_rate(blocks, k, n)


# -- digests and images

def pattern(length):
    return bytes((i * 31 + 7) & 255 for i in range(length))


def digest(data, key):
    if key is None:
        return xxhash.xxh3_128_digest(data)
    return hashlib.blake2b(data, digest_size=16, key=key).digest()


def image(layout, key, kind, m, k, capacity, fpr, given, elements):
    bits = bytearray(m // 8)
    for e in elements:
        d = digest(e, key)
        h1 = int.from_bytes(d[:8], "little")
        h2 = int.from_bytes(d[8:], "little")
        if layout == 1:
            places = [(h1 + i * (h2 | 1)) % m for i in range(k)]
        else:
            mix = (h1 ^ (h2 << 32 | h2 >> 32) & (2 ** 64 - 1))
            mix = mix * 0x9E3779B97F4A7C15 & (2 ** 64 - 1)
            mix ^= mix >> 32
            pieces = ([h2 >> 9 * i & 511 for i in range(7)] +
                      [h1 >> 9 * i & 511 for i in range(3)] +
                      [mix >> 9 * i & 511 for i in range(6)])
            block = (h1 >> 32) * (m // 512) >> 32
            places = [block * 512 + x for x in pieces[:k]]
        for x in places:
            bits[x // 8] |= 1 << (x % 8)
    nset = sum(bin(b).count("1") for b in bits)
    if nset == 0:
        bits = b""
    secret = key or b""
    size = (60 + len(secret) + 4 + 63) // 64 * 64 - 4
    head = struct.pack("<2sBBBBHBBHQQdQB3xQ4x", b"BF", 1, layout,
                       1 if key is None else 2, k, size, len(secret),
                       kind if nset else 0, 0, m, capacity, fpr, nset, given,
                       xxhash.xxh3_64_intdigest(bytes(bits)) if nset else 0)
    head = (head + secret).ljust(size, b"\0")
    check = struct.pack("<I", xxhash.xxh3_64_intdigest(head) & 0xFFFFFFFF)
    return head[:56] + check + head[60:] + bytes(bits)


def c_bytes(data, indent="\t"):
    rows = [data[i:i + 12] for i in range(0, len(data), 12)]
    return ",\n".join(indent + ", ".join("0x%02x" % b for b in r)
                      for r in rows)


def main():
    print("/*-------------------------------------------------------------------------\n"
          " *\n"
          " * golden.h\n"
          " *\t  Known answers for unit.c, computed by golden.py without the core.\n"
          " *\n"
          " *-------------------------------------------------------------------------\n"
          " */\n")
    for name, size in (("standard", standard), ("blocked", blocked)):
        print(f"/* n, p, m, k, rate without the excess of double hashing */\n"
              f"static const GoldenSize golden_{name}[] = {{")
        for n in NS:
            for p in PS:
                m, k, rate = size(n, p)
                print(f"\t{{{n}, {p}, {m}, {k}, {float(rate)!r}}},")
        print("};\n")

    print("/* length of the pattern, length of the key (-1: XXH3), digest */\n"
          "static const GoldenDigest golden_digests[] = {")
    for keylen in (-1, 0, 1, 16, 32):
        for length in (0, 1, 3, 4, 8, 9, 16, 17, 127, 128, 129, 240, 241,
                       1000, 5000):
            key = None if keylen < 0 else pattern(keylen)
            print(f'\t{{{length}, {keylen}, "'
                  f'{digest(pattern(length), key).hex()}"}},')
    print("};\n")

    print("/* the same of strings */\n"
          "static const GoldenString golden_strings[] = {")
    for s in ("", "a", "abc", "SP-00001", "Straße 東京",
              "https://example.org/?q=bloom"):
        raw = s.encode()
        text = "".join(chr(b) if b < 128 and chr(b) != "?" else "\\%03o" % b
                       for b in raw)
        print(f'\t{{"{text}", {len(raw)},\n'
              f'\t"{digest(raw, None).hex()}",\n'
              f'\t"{digest(raw, b"").hex()}"}},')
    print("};\n")

    items = [b"item-%d" % i for i in range(20)]
    m, k, _ = standard(20, "0.01")
    print("/* item-0 .. item-19 as text: standard, BLAKE2b, key pattern(16) */\n"
          "static const uint8_t golden_standard_image[] = {\n" +
          c_bytes(image(1, pattern(16), 2, m, k, 20, 0.01, 0, items)) +
          "\n};\n")
    m, _, _ = blocked(20, "0.01")
    print("/* the same: blocked, XXH3, hashes => 16 */\n"
          "static const uint8_t golden_blocked_image[] = {\n" +
          c_bytes(image(2, None, 2, m, 16, 20, 0.01, 1, items)) +
          "\n};\n")
    m, k, _ = blocked(1000000, "0.01")
    print("/* empty: blocked, XXH3, capacity 1000000, fpr 0.01 */\n"
          "static const uint8_t golden_empty_image[] = {\n" +
          c_bytes(image(2, None, 0, m, k, 1000000, 0.01, 0, [])) +
          "\n};")


if __name__ == "__main__":
    main()
