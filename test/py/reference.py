"""The filter once more, from the formulas and the image format alone.

An implementation to compare the extension with: BLAKE2b is hashlib's, XXH3
is the shared library's, sizes are computed in exact fractions and in
decimals of 40 digits.
"""
import ctypes
import datetime
import functools
import hashlib
import struct
from decimal import Decimal, localcontext
from fractions import Fraction
from math import ceil, comb, perm, sqrt

MASK = 2 ** 64 - 1
BLOCK_BITS = 512
LAYOUTS = {"standard": 1, "blocked": 2}
HASHES = {"xxh3": 1, "blake2b": 2}
MAX_HASHES = {"standard": 64, "blocked": 16}
KINDS = {"none": 0, "integer": 1, "text": 2, "float": 3, "bytea": 4, "uuid": 5,
         "boolean": 6, "date": 7, "time": 8, "timestamp": 9, "timestamptz": 10}

# -- hashing


class Hash128(ctypes.Structure):
    _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64)]


libxxhash = ctypes.CDLL("libxxhash.so.0")
libxxhash.XXH3_64bits.restype = ctypes.c_uint64
libxxhash.XXH3_64bits.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
libxxhash.XXH3_128bits.restype = Hash128
libxxhash.XXH3_128bits.argtypes = [ctypes.c_char_p, ctypes.c_size_t]


def xxh3_64(data):
    return libxxhash.XXH3_64bits(bytes(data), len(data))


def xxh3_128(data):
    """As xxhsum prints it: big-endian, the high half first."""
    h = libxxhash.XXH3_128bits(data, len(data))
    return struct.pack(">QQ", h.high, h.low)


def digest(hash_name, key, data):
    """An element's h1 and h2."""
    if hash_name == "blake2b":
        d = hashlib.blake2b(data, digest_size=16, key=key).digest()
    else:
        d = xxh3_128(data)
    return struct.unpack("<QQ", d)


# -- elements as bytes

POSTGRES_EPOCH = datetime.datetime(2000, 1, 1)
MICROSECOND = datetime.timedelta(microseconds=1)


def int64(value):
    return struct.pack("<q", value)


def float_bytes(value):
    if value != value:
        return bytes.fromhex("000000000000f87f")
    return struct.pack("<d", value + 0.0)   # -0.0 + 0.0 is 0.0


ENCODE = {
    "integer": int64,
    "text": lambda s: s.encode(),
    "float": float_bytes,
    "bytea": bytes,
    "uuid": lambda u: u.bytes,
    "boolean": lambda b: b"\1" if b else b"\0",
    "date": lambda d: int64((d - POSTGRES_EPOCH.date()).days),
    "time": lambda t: int64(
        (datetime.datetime.combine(datetime.date.min, t) -
         datetime.datetime.min) // MICROSECOND),
    "timestamp": lambda t: int64((t - POSTGRES_EPOCH) // MICROSECOND),
    "timestamptz": lambda t: int64(
        (t - POSTGRES_EPOCH.replace(tzinfo=datetime.timezone.utc))
        // MICROSECOND),
}

# -- sizes


def exact(function):
    """Run with decimals of 40 digits."""
    @functools.wraps(function)
    def wrapper(*args):
        with localcontext() as context:
            context.prec = 40
            return function(*args)
    return wrapper


def fewest(low, fits):
    """The smallest whole number from low on that fits."""
    high = low
    while not fits(high):
        low, high = high + 1, high * 2
    while low < high:
        mid = (low + high) // 2
        if fits(mid):
            high = mid
        else:
            low = mid + 1
    return high


def standard_theory(m, k, n):
    return (1 - (Decimal(-k * n) / m).exp()) ** k


def textbook_size(n, p):
    """m in whole bytes and k, before anything is done for small n."""
    ln2 = Decimal(2).ln()
    m = ceil(ceil(-n * Decimal(p).ln() / ln2 ** 2) / 8) * 8
    return m, max(1, round(m * ln2 / n))


@exact
def standard_size(n, p):
    m, k = textbook_size(n, p)
    if n < 5000 or p < 0.001:
        # double hashing costs up to 16 n / m^2 more than theory
        bound = Decimal("1.003") * max(Decimal(p), standard_theory(m, k, n))
        m = 8 * fewest(m // 8, lambda size: (
            standard_theory(size * 8, k, n) +
            Decimal(16 * n) / (size * 8) ** 2 <= bound))
    return m, k


@functools.cache
def stirling2(n, k):
    """Ways to part n things into k sets."""
    if n == 0 or k == 0:
        return int(n == k)
    return k * stirling2(n - 1, k) + stirling2(n - 1, k - 1)


def decimal(fraction):
    return Decimal(fraction.numerator) / fraction.denominator


@functools.cache
def blocked_terms(k):
    """Weight and chance, for each number d of bits.

    All k throws land on set bits: inclusion and exclusion over the sets of
    throws that land on unset ones.  Of a throws, d hit different bits with
    probability S(a,d) 512!/(512-d)! / 512^a.  One element spares d given bits
    of its block with probability (1 - d/512)^k.
    """
    terms = []
    for d in range(k + 1):
        weight = sum(Fraction((-1) ** a * comb(k, a) * stirling2(a, d) *
                              perm(BLOCK_BITS, d), BLOCK_BITS ** a)
                     for a in range(d, k + 1))
        hit = 1 - Fraction(BLOCK_BITS - d, BLOCK_BITS) ** k
        terms.append((decimal(weight), decimal(hit)))
    return terms


def blocked_theory(m, k, n):
    blocks = m // BLOCK_BITS
    return sum(weight * (1 - hit / blocks) ** n
               for weight, hit in blocked_terms(k))


@exact
def blocked_size(n, p):
    """The fewest blocks over all k.

    Of the k that meet p with so many blocks, the largest up to -log2 p is
    taken, or the smallest beyond.
    """
    def meets(blocks, k):
        return blocked_theory(blocks * BLOCK_BITS, k, n) <= p

    ideal = round(-Decimal(p).ln() / Decimal(2).ln())
    ideal = min(MAX_HASHES["blocked"], max(1, ideal))
    all_k = range(1, MAX_HASHES["blocked"] + 1)
    blocks = fewest(1, lambda b: meets(b, ideal))
    for k in all_k:
        if blocks > 1 and meets(blocks - 1, k):
            blocks = fewest(1, lambda b, k=k: meets(b, k))
    fitting = [k for k in all_k if meets(blocks, k)]
    return (blocks * BLOCK_BITS,
            max((k for k in fitting if k <= ideal), default=min(fitting)))


SIZE = {"standard": standard_size, "blocked": blocked_size}


@exact
def theory(layout, m, k, n):
    """False-positive rate with n elements."""
    rate = standard_theory if layout == "standard" else blocked_theory
    return float(rate(m, k, n))


def bound(probes, rate):
    """How many of so many probes may pass: three standard deviations."""
    return probes * rate + 3 * sqrt(probes * rate * (1 - rate))


# -- filters

HEADER = struct.Struct("<2s BBBBHBBH QQdQ B3xQI")
HEADER_CHECKSUM = 56


def sealed(header):
    """With its checksum, which is computed over zeros in its own place."""
    header = bytearray(header)
    header[HEADER_CHECKSUM:HEADER.size] = bytes(4)
    checksum = xxh3_64(header) & 0xffffffff
    header[HEADER_CHECKSUM:HEADER.size] = struct.pack("<I", checksum)
    return bytes(header)


class Filter:
    """A filter whose elements are bytes, and its image."""

    def __init__(self, capacity=None, fpr=0.01, layout="blocked", hash="xxh3",
                 key=b"", hashes=None):
        self.layout, self.hash, self.key = layout, hash, key
        self.capacity, self.fpr = capacity or 0, fpr
        self.hashes_given = hashes is not None
        self.kind = "none"
        self.m, self.k = (0, 0) if capacity is None else \
            SIZE[layout](capacity, fpr)
        if hashes is not None:
            self.k = hashes
        self.bits = bytearray(self.m // 8)

    def positions(self, element):
        h1, h2 = digest(self.hash, self.key, element)
        if self.layout == "standard":
            step = h2 | 1
            return [(h1 + i * step) % self.m for i in range(self.k)]
        block = (h1 >> 32) * (self.m // BLOCK_BITS) >> 32
        halves_crossed = h1 ^ ((h2 << 32 | h2 >> 32) & MASK)
        mixed = halves_crossed * 0x9E3779B97F4A7C15 & MASK
        mixed ^= mixed >> 32
        inside = [h2 >> 9 * i & 511 for i in range(7)] + \
            [h1 >> 9 * i & 511 for i in range(3)] + \
            [mixed >> 9 * i & 511 for i in range(6)]
        return [block * BLOCK_BITS + i for i in inside[:self.k]]

    def add(self, kind, values):
        encode = ENCODE[kind]
        for value in values:
            for i in self.positions(encode(value)):
                self.bits[i >> 3] |= 1 << (i & 7)
            self.kind = kind
        return self

    def contains(self, value):
        return all(self.bits[i >> 3] >> (i & 7) & 1
                   for i in self.positions(ENCODE[self.kind](value)))

    def bits_set(self):
        return int.from_bytes(self.bits, "little").bit_count()

    def image(self):
        used = HEADER.size + len(self.key)
        size = (used + 4 + 63) // 64 * 64 - 4
        header = bytearray(size)
        empty = self.kind == "none"
        HEADER.pack_into(header, 0, b"BF", 1, LAYOUTS[self.layout],
                         HASHES[self.hash], self.k, size, len(self.key),
                         KINDS[self.kind], 0, self.m, self.capacity, self.fpr,
                         self.bits_set(), self.hashes_given,
                         0 if empty else xxh3_64(self.bits) or 1, 0)
        header[HEADER.size:used] = self.key
        return sealed(header) + (b"" if empty else bytes(self.bits))

    @classmethod
    def read(cls, image):
        """A filter from its image, which is taken to be valid."""
        (_, _, layout, hash_id, k, size, keylen, kind, _, m, capacity, fpr, _,
         hashes_given, _, _) = HEADER.unpack_from(image)
        f = cls(layout=name_of(LAYOUTS, layout), hash=name_of(HASHES, hash_id),
                fpr=fpr, key=bytes(image[HEADER.size:HEADER.size + keylen]))
        f.m, f.k, f.capacity = m, k, capacity
        f.hashes_given = bool(hashes_given)
        f.kind = name_of(KINDS, kind)
        f.bits = bytearray(image[size:]) or bytearray(m // 8)
        return f


def name_of(table, number):
    (name,) = (name for name, n in table.items() if n == number)
    return name
