"""The header: from bytes, with every check there is, and back."""
import re
import struct
from dataclasses import dataclass
from typing import List, NamedTuple, Optional

from . import _kinds
from ._errors import FormatError
from ._hash import checksum
from ._layouts import LAYOUTS, NUMBERS, HASHES, shape_is_possible
from ._sizes import MAX_BITS, MAX_CAPACITY, MIN_FPR

FIXED = 60
VERSION = 1
MAX_KEY = 32
MAX_LAYERS = 32
MAX_EXPANSION = 16
HASH_GIVEN = 1
NOT_PORTABLE = 2

HEADER = struct.Struct("<2sBBBBHBBHQQdQBBBBQI")
ENTRY = struct.Struct("<QQQB7s")
CONTROL = re.compile("[\x00-\x1f\x7f]")
HASH_NAMES = {1: "xxh3", 2: "blake2b"}
HASH_NUMBERS = {name: number for number, name in HASH_NAMES.items()}


class Entry(NamedTuple):
    """A layer's line in the header."""

    bits: int
    capacity: int
    nset: int
    hashes: int


@dataclass
class Header:
    layout: str
    hash: str
    hashes: int
    key: bytes
    kind: Optional[_kinds.Kind]
    bits: int
    capacity: int
    fpr: float
    nset: int
    hashes_given: bool
    expansion: int
    layers: List[Entry]
    checksum: int


def header_size(key: int, name: int, layers: int) -> int:
    return (FIXED + key + name + 32 * layers + 3) // 64 * 64 + 60


def payload_checksum(payload: "bytes | bytearray | memoryview") -> int:
    return checksum(payload) or 1


def write_header(h: Header) -> bytes:
    """Of a filter of fixed size."""
    name = h.kind.header_name if h.kind and h.nset else b""
    number = h.kind.number if h.kind and h.nset else 0
    size = header_size(len(h.key), len(name), 0)
    flags = ((HASH_GIVEN if h.hashes_given else 0)
             | (NOT_PORTABLE if h.kind and h.nset and not h.kind.portable else 0))
    out = bytearray(size)
    HEADER.pack_into(out, 0, b"BF", VERSION, NUMBERS[h.layout],
                     HASH_NUMBERS[h.hash], h.hashes, size, len(h.key), number,
                     len(name), h.bits, h.capacity, h.fpr, h.nset, flags,
                     h.expansion, 0, 0, h.checksum, 0)
    out[FIXED:FIXED + len(h.key) + len(name)] = h.key + name
    struct.pack_into("<I", out, 56, checksum(out) & 0xFFFFFFFF)
    return bytes(out)


def require(ok: object, what: str) -> None:
    if not ok:
        raise FormatError(f"not a bloom filter: {what}")


def read_header(data: bytes) -> "tuple[Header, int]":
    """The header of an image, and its size.  Everything but the payload has
    been checked then, the image's length included."""
    require(len(data) >= FIXED, "too short")
    (magic, version, layout, hash_number, hashes, size, key_length, kind_number,
     name_length, bits, capacity, fpr, nset, flags, expansion, nlayers,
     reserved, payload_sum, header_sum) = HEADER.unpack_from(data)
    require(magic == b"BF", "bad magic")
    if version != VERSION:
        raise FormatError(f"bloom filter of unknown version {version}")
    require(layout in LAYOUTS, "unknown layout")
    require(hash_number in HASH_NAMES, "unknown hash")
    name = LAYOUTS[layout].name

    # Sizes and the length, before any other field is trusted
    require(key_length <= MAX_KEY, "key too long")
    require(name_length <= _kinds.MAX_NAME, "kind name too long")
    require(nlayers <= MAX_LAYERS, "too many layers")
    require(size == header_size(key_length, name_length, nlayers),
            "bad header size")
    require(len(data) >= size, "too short")
    at = FIXED + key_length + name_length
    layers = [Entry(*ENTRY.unpack_from(data, at + 32 * i)[:4])
              for i in range(nlayers)]
    require(bits <= MAX_BITS, "too many bits")
    empty = kind_number == 0
    require(expansion <= MAX_EXPANSION, "bad expansion")
    require((nlayers > 0) == (expansion > 0 and not empty), "bad layers")
    total = 0
    if not empty:
        total = sum(layer.bits for layer in layers) if expansion else bits
    require(total <= MAX_BITS and total % 8 == 0, "too many bits")
    require(len(data) == size + total // 8, "length is not the header's")
    whole = bytearray(data[:size])
    whole[56:60] = bytes(4)
    require(checksum(whole) & 0xFFFFFFFF == header_sum, "header checksum differs")

    require(not any(data[at + 32 * nlayers:size]), "padding is not zero")
    require(reserved == 0 and flags <= 3, "reserved bits are set")
    require(key_length == 0 or hash_number == 2, "a key needs blake2b")
    require(MIN_FPR[name] <= fpr < 1.0, "bad rate")
    require((nset == 0) == empty and (payload_sum == 0) == empty,
            "empty, or not empty")
    require(capacity <= MAX_CAPACITY and (capacity == 0) == (bits == 0),
            "bad capacity")
    require(expansion == 0 or name != "counting",
            "a counting filter does not grow")
    given = bool(flags & HASH_GIVEN)
    if bits == 0:
        require(empty, "unsized, but not empty")
        require(1 <= hashes <= HASHES[name][1] if given else hashes == 0,
                "bad hashes")
    else:
        require(shape_is_possible(name, bits, hashes), "bad size or hashes")
    for i, layer in enumerate(layers):
        require(shape_is_possible(name, layer.bits, layer.hashes)
                and 0 < layer.capacity <= MAX_CAPACITY
                and 0 < layer.nset <= layer.bits
                and not any(data[at + 32 * i + 25:at + 32 * i + 32]),
                "bad layer")
    if layers:
        require(sum(layer.nset for layer in layers) == nset,
                "bits set are not the layers'")

    require(kind_number <= _kinds.HASHED, "unknown kind")
    portable = not flags & NOT_PORTABLE
    require(portable or (kind_number >= _kinds.ENUM and key_length == 0),
            "elements that are not portable, of this kind or with a key")
    kind = _kinds.BY_NUMBER.get(kind_number)
    if kind_number < _kinds.ENUM:
        require(name_length == 0, "kind has no name")
    else:
        try:
            kind_name = data[FIXED + key_length:at].decode()
        except UnicodeDecodeError:
            kind_name = ""
        require(kind_name and not CONTROL.search(kind_name), "bad kind name")
        kind = _kinds.kind_of_image(kind_number, kind_name, portable)
    return Header(layout=name, hash=HASH_NAMES[hash_number], hashes=hashes,
                  key=data[FIXED:FIXED + key_length], kind=kind, bits=bits,
                  capacity=capacity, fpr=fpr, nset=nset, hashes_given=given,
                  expansion=expansion, layers=layers, checksum=payload_sum), size
