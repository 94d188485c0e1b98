"""Digests: 16 bytes, h1 and h2 of which are the little-endian halves."""
import hashlib
import struct
from typing import Any, Callable

import xxhash

HALVES = struct.Struct("<QQ")

Digest = Callable[[bytes], bytes]


def digest(name: str, key: bytes) -> Digest:
    """The function from an element's bytes to its digest."""
    if name == "xxh3":
        return xxhash.xxh3_128_digest
    blake2b = hashlib.blake2b

    def keyed(data: bytes) -> bytes:
        return blake2b(data, digest_size=16, key=key).digest()
    return keyed


def checksum(data: "bytes | bytearray | memoryview") -> int:
    return int(xxhash.xxh3_64_intdigest(data))


def xxh3_of_eight(np: Any, words: Any) -> Any:
    """XXH3-128 of each of an array of 64-bit words, as rows of h1 and h2.

    This is the algorithm's branch for 4 to 8 bytes, with seed 0.
    """
    def u(value: int) -> Any:
        return np.uint64(value)

    with np.errstate(over="ignore"):
        # (input_lo, input_hi) of eight bytes are the word itself
        keyed = words ^ u(0xC4F023344DC994AC)
        factor = 0x9E3779B185EBCA87 + (8 << 2)
        f_lo, f_hi = u(factor & 0xFFFFFFFF), u(factor >> 32)
        k_lo, k_hi = keyed & u(0xFFFFFFFF), keyed >> u(32)
        ll, lh, hl = k_lo * f_lo, k_lo * f_hi, k_hi * f_lo
        middle = (ll >> u(32)) + (lh & u(0xFFFFFFFF)) + hl
        low = (ll & u(0xFFFFFFFF)) | (middle << u(32))
        high = k_hi * f_hi + (lh >> u(32)) + (middle >> u(32))
        high = high + (low << u(1))
        low = low ^ (high >> u(3))
        low = (low ^ (low >> u(35))) * u(0x9FB21C651E98DF25)
        low = low ^ (low >> u(28))
        high = (high ^ (high >> u(37))) * u(0x165667919E3779F9)
        high = high ^ (high >> u(32))
    # the canonical form is big-endian, high half first
    return high.byteswap(), low.byteswap()
