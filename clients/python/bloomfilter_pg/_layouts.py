"""The four layouts: where an element's bits are.

A layer is a payload with its shape.  buffer is the bytes it lies in, from
base on; what adds turns it into a bytearray of its own first.
"""
from typing import Any, Dict, List, Optional, Set, Tuple, Type, Union

from ._errors import FormatError

try:
    import numpy as np
except ImportError:         # everything works without, more slowly
    np = None               # type: ignore[assignment]

Buffer = Union[bytes, bytearray]

MASK32 = 2 ** 32 - 1
MASK64 = 2 ** 64 - 1
GOLDEN = 0x9E3779B97F4A7C15
CHUNK = 65536               # bytes or items at a time, where memory counts

NIBBLES = bytes(((byte & 15) > 0) + (byte >> 4 > 0) for byte in range(256))


def count_bits(data: memoryview) -> int:
    return sum(bin(int.from_bytes(data[at:at + 4096], "little")).count("1")
               for at in range(0, len(data), 4096))


class Layer:
    name = ""
    buildable = False

    def __init__(self, bits: int, hashes: int, buffer: Buffer, base: int) -> None:
        self.bits = bits
        self.hashes = hashes
        self.buffer = buffer
        self.base = base

    @property
    def payload(self) -> memoryview:
        return memoryview(self.buffer)[self.base:self.base + self.bits // 8]

    def array(self) -> Any:
        """The payload as numpy's bytes, without a copy."""
        return np.frombuffer(self.buffer, np.uint8, self.bits // 8, self.base)

    def test(self, h1: int, h2: int) -> bool:
        raise NotImplementedError

    def test_many(self, h1: Any, h2: Any) -> Any:
        """The same for two arrays of numpy."""
        raise NotImplementedError

    def add(self, h1: int, h2: int) -> int:
        """Returns by how much the number of bits set grew."""
        raise NotImplementedError

    def count(self) -> int:
        """What the header calls bits set.  FormatError for a payload that
        cannot be."""
        return count_bits(self.payload)


class Bits(Layer):
    """What the layouts of plain bits have in common."""

    buildable = True

    def positions(self, h1: Any, h2: Any, i: int) -> Any:
        """Of numpy's: the positions of number i."""
        raise NotImplementedError

    def prepare(self, h1: Any, h2: Any) -> Tuple[Any, Any]:
        return h1, h2

    def test_many(self, h1: Any, h2: Any) -> Any:
        answers = np.zeros(len(h1), bool)
        alive = np.arange(len(h1))
        h1, h2 = self.prepare(h1, h2)
        payload = self.array()
        for i in range(self.hashes):
            at = self.positions(h1, h2, i)
            hit = (payload[(at >> np.uint64(3)).astype(np.int64)]
                   >> (at & np.uint64(7)).astype(np.uint8)) & 1 > 0
            if not hit.all():
                alive = alive[hit]
                if len(alive) == 0:
                    return answers
                h1 = tuple(h[hit] for h in h1)
                h2 = tuple(h[hit] for h in h2)
        answers[alive] = True
        return answers

    def add_many(self, h1: Any, h2: Any) -> None:
        """The same for arrays; bits set are then to be counted anew."""
        h1, h2 = self.prepare(h1, h2)
        payload = self.array()
        for i in range(self.hashes):
            at = self.positions(h1, h2, i)
            byte = (at >> np.uint64(3)).astype(np.int64)
            bit = (at & np.uint64(7)).astype(np.uint8)
            # one bit's number at a time: where a byte comes twice, the same
            # is written twice
            for number in range(8):
                chosen = byte[bit == number]
                payload[chosen] = payload[chosen] | np.uint8(1 << number)


class Standard(Bits):
    name = "standard"

    def test(self, h1: int, h2: int) -> bool:
        m, buffer, base = self.bits, self.buffer, self.base
        at = h1 % m
        step = (h2 | 1) % m
        for _ in range(self.hashes):
            if not buffer[base + (at >> 3)] >> (at & 7) & 1:
                return False
            at += step
            if at >= m:
                at -= m
        return True

    def add(self, h1: int, h2: int) -> int:
        m, buffer, base = self.bits, self.buffer, self.base
        assert isinstance(buffer, bytearray)
        grown = 0
        step = h2 | 1
        for i in range(self.hashes):
            at = (h1 + i * step) % m
            bit = 1 << (at & 7)
            byte = base + (at >> 3)
            if not buffer[byte] & bit:
                buffer[byte] |= bit
                grown += 1
        return grown

    def prepare(self, h1: Any, h2: Any) -> Tuple[Any, Any]:
        m = np.uint64(self.bits)
        return (h1 % m,), ((h2 | np.uint64(1)) % m,)

    def positions(self, h1: Any, h2: Any, i: int) -> Any:
        # below 2^38: nothing wraps around
        return (h1[0] + np.uint64(i) * h2[0]) % np.uint64(self.bits)


class Blocked(Bits):
    name = "blocked"

    def pieces(self, h1: int, h2: int) -> int:
        """The positions' nine bits each, from the lowest on."""
        if self.hashes <= 7:
            return h2
        pieces = h2 & 0x7FFFFFFFFFFFFFFF | (h1 & 0x7FFFFFF) << 63
        if self.hashes > 10:
            w = (h1 ^ (h2 << 32 | h2 >> 32) & MASK64) * GOLDEN & MASK64
            pieces |= (w ^ w >> 32) << 90
        return pieces

    def test(self, h1: int, h2: int) -> bool:
        at = self.base + ((h1 >> 32) * (self.bits >> 9) >> 32 << 6)
        word = int.from_bytes(self.buffer[at:at + 64], "little")
        pieces = h2 if self.hashes <= 7 else self.pieces(h1, h2)
        for _ in range(self.hashes):
            if not word >> (pieces & 511) & 1:
                return False
            pieces >>= 9
        return True

    def add(self, h1: int, h2: int) -> int:
        assert isinstance(self.buffer, bytearray)
        at = self.base + ((h1 >> 32) * (self.bits >> 9) >> 32 << 6)
        old = int.from_bytes(self.buffer[at:at + 64], "little")
        pieces = self.pieces(h1, h2)
        word = old
        for _ in range(self.hashes):
            word |= 1 << (pieces & 511)
            pieces >>= 9
        if word == old:
            return 0
        self.buffer[at:at + 64] = word.to_bytes(64, "little")
        return bin(word ^ old).count("1")

    def prepare(self, h1: Any, h2: Any) -> Tuple[Any, Any]:
        u = np.uint64
        block = ((h1 >> u(32)) * u(self.bits >> 9)) >> u(32)
        if self.hashes <= 10:
            return (block << u(9), h1), (h2,)
        with np.errstate(over="ignore"):
            w = (h1 ^ (h2 << u(32) | h2 >> u(32))) * u(GOLDEN)
        return (block << u(9), h1, w ^ w >> u(32)), (h2,)

    def positions(self, h1: Any, h2: Any, i: int) -> Any:
        if i < 7:
            pieces, shift = h2[0], 9 * i
        elif i < 10:
            pieces, shift = h1[1], 9 * (i - 7)
        else:
            pieces, shift = h1[2], 9 * (i - 10)
        return h1[0] | (pieces >> np.uint64(shift)) & np.uint64(511)


class Counting(Layer):
    name = "counting"

    def test(self, h1: int, h2: int) -> bool:
        m, buffer, base = self.bits >> 2, self.buffer, self.base
        step = h2 | 1
        for i in range(self.hashes):
            at = (h1 + i * step) % m
            if not buffer[base + (at >> 1)] >> ((at & 1) << 2) & 15:
                return False
        return True

    def test_many(self, h1: Any, h2: Any) -> Any:
        m, one = np.uint64(self.bits >> 2), np.uint64(1)
        payload = self.array()
        at, step = h1 % m, (h2 | one) % m
        answers = np.ones(len(h1), bool)
        for _ in range(self.hashes):
            byte = payload[(at >> one).astype(np.int64)]
            answers &= np.where(at & one > 0, byte >> 4, byte & 15) > 0
            at = (at + step) % m
        return answers

    def count(self) -> int:
        payload = self.payload
        return sum(sum(bytes(payload[at:at + CHUNK]).translate(NIBBLES))
                   for at in range(0, len(payload), CHUNK))


# A bucket's number stands for the sorted low parts of its four fingerprints
SORTED = [(a, b, c, d) for d in range(16) for c in range(d + 1)
          for b in range(c + 1) for a in range(b + 1)]


class Cuckoo(Layer):
    name = "cuckoo"

    def __init__(self, bits: int, hashes: int, buffer: Buffer, base: int) -> None:
        super().__init__(bits, hashes, buffer, base)
        self.width = 4 * hashes - 4
        self.buckets = (bits - 512) // self.width // 2 * 2
        self.stash: Set[Tuple[int, int]] = set()
        at = base + bits // 8 - 64
        for at in range(at, at + 64, 8):
            fingerprint = int.from_bytes(buffer[at + 4:at + 8], "little")
            if fingerprint:
                self.stash.add((int.from_bytes(buffer[at:at + 4], "little"),
                                fingerprint))

    @staticmethod
    def fits(bits: int, hashes: int) -> bool:
        width = 4 * hashes - 4
        if bits < 512:
            return False
        buckets = (bits - 512) // width // 2 * 2
        return buckets > 0 and (buckets * width + 7) // 8 * 8 + 512 == bits

    def bucket(self, i: int) -> List[int]:
        first = i * self.width
        last = first + self.width
        word = int.from_bytes(self.buffer[self.base + (first >> 3):
                                          self.base + (last + 7 >> 3)],
                              "little") >> (first & 7)
        number = word & 0xFFF
        if number >= len(SORTED):
            raise FormatError("bucket has no such number")
        rest = self.hashes - 4
        mask = (1 << rest) - 1
        word >>= 12
        found = []
        for low in SORTED[number]:
            found.append(low | (word & mask) << 4)
            word >>= rest
        return found

    def test(self, h1: int, h2: int) -> bool:
        buckets = self.buckets
        x = 1 + ((h2 >> 32) * ((1 << self.hashes) - 1) >> 32)
        i = (h1 >> 32) * buckets >> 32
        if x in self.bucket(i):
            return True
        y = (x * GOLDEN & MASK64) >> 32
        g = 2 * (y * (buckets // 2) >> 32) + 1
        j = (g - i) % buckets
        if x in self.bucket(j):
            return True
        return bool(self.stash) and (j if i & 1 else i, x) in self.stash

    def words(self, payload: Any, at: Any, width: int) -> Any:
        """Of numpy's: the width bits at each of the bit positions."""
        byte = (at >> 3).astype(np.int64)
        last = len(payload) - 1
        word = np.zeros(len(at), np.uint64)
        for j in range(5 if width + 7 > 32 else 4 if width + 7 > 24 else
                       3):
            word |= (payload[np.minimum(byte + j, last)].astype(np.uint64)
                     << np.uint64(8 * j))
        return (word >> (at & 7).astype(np.uint64)) & np.uint64((1 << width) - 1)

    def slots(self, payload: Any, buckets: Any) -> Any:
        """Of numpy's: rows of four fingerprints, and whether all bucket
        numbers exist."""
        first = buckets.astype(np.int64) * self.width
        number = self.words(payload, first, 12).astype(np.int64)
        known = bool((number < len(SORTED)).all())
        table = np.array(SORTED, np.uint64)
        slots = table[np.minimum(number, len(SORTED) - 1)]
        rest = self.hashes - 4
        if rest:
            for j in range(4):
                slots[:, j] |= self.words(payload, first + 12 + j * rest,
                                          rest) << np.uint64(4)
        return slots, known

    def test_many(self, h1: Any, h2: Any) -> Any:
        u = np.uint64
        payload = self.array()
        buckets = u(self.buckets)
        x = u(1) + ((h2 >> u(32)) * u((1 << self.hashes) - 1) >> u(32))
        i = (h1 >> u(32)) * buckets >> u(32)
        with np.errstate(over="ignore"):
            y = (x * u(GOLDEN)) >> u(32)
        g = u(2) * (y * u(self.buckets // 2) >> u(32)) + u(1)
        j = (g + buckets - i) % buckets
        answers = np.zeros(len(h1), bool)
        for bucket in i, j:
            slots, known = self.slots(payload, bucket)
            if not known:
                raise FormatError("bucket has no such number")
            answers |= (slots == x[:, None]).any(1)
        if self.stash:
            even = np.where(i & u(1) > 0, j, i)
            for bucket_number, fingerprint in self.stash:
                answers |= (even == u(bucket_number)) & (x == u(fingerprint))
        return answers

    def count(self) -> int:
        total = 0
        if np is not None:
            payload = self.array()
            for start in range(0, self.buckets, CHUNK):
                slots, known = self.slots(payload, np.arange(
                    start, min(start + CHUNK, self.buckets)))
                # by the low four bits first: turn them to the top
                order = slots >> np.uint64(4) | slots << np.uint64(60)
                if not known or (order[:, 1:] < order[:, :-1]).any():
                    raise FormatError("bucket is not in order")
                total += int((slots > 0).sum())
        else:
            for i in range(self.buckets):
                found = self.bucket(i)
                if found != sorted(found, key=lambda x: (x & 15, x)):
                    raise FormatError("bucket is not in order")
                total += 4 - found.count(0)
        used = self.buckets * self.width
        if used & 7 and self.buffer[self.base + (used >> 3)] >> (used & 7):
            raise FormatError("bits past the last bucket are set")
        free = False
        at = self.base + self.bits // 8 - 64
        for at in range(at, at + 64, 8):
            bucket = int.from_bytes(self.buffer[at:at + 4], "little")
            fingerprint = int.from_bytes(self.buffer[at + 4:at + 8], "little")
            if fingerprint == 0:
                free = True
                if bucket:
                    raise FormatError("free stash entry is not zero")
            elif (free or bucket & 1 or bucket >= self.buckets
                  or fingerprint >> self.hashes):
                raise FormatError("bad stash entry")
            else:
                total += 1
        return total


LAYOUTS: Dict[int, Type[Layer]] = {1: Standard, 2: Blocked, 3: Counting,
                                   4: Cuckoo}
NUMBERS = {layout.name: number for number, layout in LAYOUTS.items()}
UNITS = {"standard": 8, "blocked": 512, "counting": 32, "cuckoo": 8}
HASHES = {"standard": (1, 64), "blocked": (1, 16), "counting": (1, 64),
          "cuckoo": (4, 32)}


def shape_is_possible(layout: str, bits: int, hashes: int) -> bool:
    low, high = HASHES[layout]
    return (0 < bits <= 2 ** 32 and bits % UNITS[layout] == 0
            and low <= hashes <= high
            and (layout != "cuckoo" or Cuckoo.fits(bits, hashes)))


def open_layer(layout: str, bits: int, hashes: int, buffer: Optional[Buffer],
               base: int) -> Layer:
    return LAYOUTS[NUMBERS[layout]](
        bits, hashes, bytearray(bits // 8) if buffer is None else buffer, base)
