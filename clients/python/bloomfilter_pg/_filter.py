"""The filter."""
import base64
import binascii
import itertools
from dataclasses import dataclass
from typing import Any, Iterable, List, Optional, Union

from . import _format, _hash, _kinds, _layouts, _sizes
from ._errors import FormatError, KindError

CHUNK = 65536


@dataclass(frozen=True)
class Info:
    """What the server's bloom_info tells; bytes are those of the image."""

    layout: str
    hash: str
    keyed: bool
    element: Optional[str]      #: the kind by its name; None: empty
    portable: bool              #: False: only the server can probe it
    capacity: Optional[int]     #: None: unsized
    target_fpr: float
    bits: int
    hashes: Optional[int]       #: None of cuckoo and scalable filters
    expansion: int
    layers: int
    bits_set: int
    fill: float
    cardinality: float          #: about how many distinct elements
    expected_fpr: float         #: as the filter is filled now
    bytes: int


class BloomFilter:
    """A set of elements in a few bits each: "no" is exact, "yes" means maybe.

    An element is given as the Python value that stands for PostgreSQL's.  Its
    kind is the filter's, which is told by kind, or by the first element.  A
    value of another kind raises KindError (a TypeError), never a wrong "no".
    """

    __slots__ = ("_h", "_kind", "_layers", "_digest", "_owned", "_counted")

    _h: _format.Header
    _kind: Optional[_kinds.Kind]
    _layers: List[_layouts.Layer]
    _digest: _hash.Digest
    _owned: bool                # the payload is a bytearray of ours
    _counted: bool              # bits set is up to date

    def __init__(self, capacity: int, fpr: float = 0.01, layout: str = "blocked",
                 hash: str = "xxh3", key: Optional[bytes] = None,
                 hashes: Optional[int] = None,
                 kind: Optional[str] = None) -> None:
        """An empty filter for so many elements, as the server sizes it."""
        if layout not in ("standard", "blocked"):
            raise ValueError("only standard and blocked filters can be built"
                             f" here, not {layout!r}")
        if hash not in _format.HASH_NUMBERS:
            raise ValueError(f"unknown hash {hash!r}")
        if capacity != int(capacity) or not 1 <= capacity <= _sizes.MAX_CAPACITY:
            raise ValueError("capacity must be a whole number of 1 to 2^53")
        if not _sizes.MIN_FPR[layout] <= fpr < 1:
            raise ValueError("fpr must be at least 0.000001 and less than 1")
        if key is not None:
            if hash != "blake2b":
                raise ValueError("a key needs hash='blake2b'")
            if not 1 <= len(key) <= _format.MAX_KEY:
                raise ValueError("key must have 1 to 32 bytes")
        low, high = _layouts.HASHES[layout]
        if hashes is not None and not low <= hashes <= high:
            raise ValueError(f"hashes must be {low} to {high}")
        bits, best = _sizes.size(layout, int(capacity), float(fpr), hashes)
        parsed = None if kind is None else _kinds.parse_kind(kind)
        if parsed and not parsed.portable:
            raise KindError(f"only the server can hash {kind}")
        self._open(_format.Header(
            layout=layout, hash=hash, hashes=best, key=bytes(key or b""),
            kind=None, bits=bits, capacity=int(capacity), fpr=float(fpr), nset=0,
            hashes_given=hashes is not None, expansion=0, layers=[],
            checksum=0), [])
        self._kind = parsed

    def _open(self, header: _format.Header, layers: List[_layouts.Layer]) -> None:
        self._h = header
        self._kind = header.kind
        self._layers = layers
        self._digest = _hash.digest(header.hash, header.key)
        self._owned = False
        self._counted = True

    # -- in and out ---------------------------------------------------------

    @classmethod
    def from_bytes(cls, data: "Union[bytes, bytearray, memoryview]") -> "BloomFilter":
        """The filter whose filter::bytea these are.  FormatError (a
        ValueError) where they are not, or damaged."""
        if not isinstance(data, (bytes, bytearray, memoryview)):
            raise TypeError(f"bytes are needed, not {type(data).__name__}")
        data = bytes(data)
        h, at = _format.read_header(data)
        layers = []
        if h.kind is not None:
            if _format.payload_checksum(memoryview(data)[at:]) != h.checksum:
                raise FormatError("not a bloom filter: checksum differs")
            for entry in h.layers or [_format.Entry(h.bits, h.capacity, h.nset,
                                                    h.hashes)]:
                layer = _layouts.open_layer(h.layout, entry.bits, entry.hashes,
                                            data, at)
                if layer.count() != entry.nset:
                    raise FormatError("not a bloom filter: bits set differ")
                layers.append(layer)
                at += entry.bits // 8
        self = cls.__new__(cls)
        self._open(h, layers)
        return self

    @classmethod
    def from_text(cls, text: str) -> "BloomFilter":
        """The same of the text form, base64."""
        try:
            data = base64.b64decode(text.encode("ascii"), validate=True)
        except (binascii.Error, UnicodeEncodeError) as error:
            raise FormatError(f"not a bloom filter: {error}") from None
        return cls.from_bytes(data)

    def to_bytes(self) -> bytes:
        """What the server's filter::bytea of the same elements is; it takes
        them with ::bytea::bloomfilter, or as a binary parameter."""
        h = self._h
        self._count()
        if not self._layers:
            return self._empty_bytes()
        if not self._owned:
            # as it was read
            first = self._layers[0]
            assert isinstance(first.buffer, bytes)
            return first.buffer
        h.checksum = _format.payload_checksum(self._layers[0].payload)
        return _format.write_header(h) + self._layers[0].payload

    def _empty_bytes(self) -> bytes:
        return _format.write_header(self._h)

    def to_text(self) -> str:
        """The text form, base64."""
        return base64.b64encode(self.to_bytes()).decode()

    # -- asking -------------------------------------------------------------

    @property
    def kind(self) -> Optional[str]:
        """The elements' kind, as in docs/format.md; None: not known yet."""
        return None if self._kind is None else self._kind.name

    def encode(self, key: Any) -> bytes:
        """The bytes that stand for an element."""
        kind = self._kind
        if kind is None:
            kind = _kinds.infer_kind(key)
        return kind.encode(key)

    def digest(self, key: Any) -> bytes:
        """The element's digest, the server's bloom_hash."""
        return self._digest(self.encode(key))

    def __contains__(self, key: Any) -> bool:
        kind = self._kind
        if kind is None:
            self.encode(key)        # is there such an element?
            return False
        h1, h2 = _hash.HALVES.unpack(self._digest(kind.encode(key)))
        for layer in self._layers:
            if layer.test(h1, h2):
                return True
        return False

    def contains_many(self, keys: Any) -> Any:
        """An answer for each of a list or a one-dimensional numpy array: a
        list of bool, or an array."""
        np = _layouts.np
        if np is not None:
            if isinstance(keys, np.ndarray):
                return self._test_arrays(*self._hash_array(keys))
            keys = list(keys)
            if len(keys) >= 16:
                return self._test_arrays(*self._hash_list(keys)).tolist()
        return [key in self for key in keys]

    def _test_arrays(self, h1: Any, h2: Any) -> Any:
        if len(self._layers) == 1:
            return self._layers[0].test_many(h1, h2)
        np = _layouts.np
        answers = np.zeros(len(h1), bool)
        for layer in self._layers:
            answers |= layer.test_many(h1, h2)
        return answers

    # -- many at a time -----------------------------------------------------

    def _hash_list(self, keys: List[Any]) -> Any:
        """Two arrays, h1 and h2."""
        np = _layouts.np
        kind = self._kind or (_kinds.infer_kind(keys[0]) if keys else
                              _kinds.SIMPLE["integer"])
        if kind.name == "integer" and set(map(type, keys)) == {int}:
            return self._hash_words(np.array(keys, np.int64).view(np.uint64))
        encode, digest = kind.encode, self._digest
        digests = np.frombuffer(b"".join([digest(encode(key)) for key in keys]),
                                "<u8").reshape(-1, 2)
        return (digests[:, 0].astype(np.uint64, copy=False),
                digests[:, 1].astype(np.uint64, copy=False))

    def _hash_words(self, words: Any) -> Any:
        """The same of elements of eight bytes."""
        np = _layouts.np
        if self._h.hash == "xxh3":
            return _hash.xxh3_of_eight(np, words)
        digest = self._digest
        data = words.astype("<u8", copy=False).tobytes()
        digests = np.frombuffer(
            b"".join([digest(data[at:at + 8])
                      for at in range(0, len(data), 8)]),
            "<u8").astype(np.uint64, copy=False).reshape(-1, 2)
        return digests[:, 0], digests[:, 1]

    def _array_kind(self, keys: Any) -> str:
        """The element kind that an array's type stands for."""
        np = _layouts.np
        code = keys.dtype.kind
        if code == "M":
            return ("date" if np.datetime_data(keys.dtype)[0] in ("Y", "M", "W", "D")
                    else "timestamp")
        names = {"i": "integer", "u": "integer", "f": "float", "b": "boolean",
                 "U": "text"}
        if code not in names:
            raise KindError(f"no element kind for arrays of {keys.dtype}: use"
                            " a list")
        return names[code]

    def _hash_array(self, keys: Any) -> Any:
        np = _layouts.np
        if keys.ndim != 1:
            raise ValueError("a one-dimensional array is needed")
        if keys.dtype.kind == "O":
            return self._hash_list(keys.tolist())
        name = self._array_kind(keys)
        kind = self._kind or _kinds.SIMPLE[name]
        if kind.name != name and not (name == "text"
                                      and kind.number == _kinds.ENUM):
            if keys.size == 0:
                return self._hash_list([])
            raise KindError(f"filter holds {kind.name} elements, not {name}"
                            f" (an array of {keys.dtype})")
        code = keys.dtype.kind
        if code in "iu":
            if code == "u" and keys.size and int(keys.max()) >= 2 ** 63:
                raise OverflowError("not a 64-bit integer")
            return self._hash_words(keys.astype(np.int64).view(np.uint64))
        if code == "f":
            if keys.dtype.itemsize > 8:
                raise KindError("no element kind for arrays of long doubles")
            values = keys.astype(np.float64) + 0.0
            values[np.isnan(values)] = np.frombuffer(_kinds.NAN, "<f8")[0]
            return self._hash_words(values.view(np.uint64))
        if code == "M":
            unit = "D" if name == "date" else "us"
            values = keys.astype(f"datetime64[{unit}]")
            if np.isnat(values).any():
                raise ValueError("NaT is no element")
            if (values != keys).any():
                raise ValueError("an element is of whole microseconds")
            values = values - np.datetime64("2000-01-01", unit)
            return self._hash_words(values.astype(np.int64).view(np.uint64))
        return self._hash_list(keys.tolist())

    # -- adding -------------------------------------------------------------

    def _own(self) -> _layouts.Bits:
        """The one layer, for writing."""
        h = self._h
        if h.layout not in ("standard", "blocked") or h.expansion:
            what = f"scalable {h.layout}" if h.expansion else h.layout
            raise TypeError(f"a {what} filter can be added to on the server only")
        if h.bits == 0:
            raise ValueError("filter has no size: it cannot be added to")
        if not self._owned:
            buffer = (bytearray(self._layers[0].payload) if self._layers else None)
            self._layers = [_layouts.open_layer(h.layout, h.bits, h.hashes,
                                                buffer, 0)]
            self._owned = True
        layer = self._layers[0]
        assert isinstance(layer, _layouts.Bits)
        return layer

    def _settle(self, kind: _kinds.Kind) -> None:
        """There is an element: its kind is the filter's."""
        self._kind = kind
        self._h.kind = kind

    def add(self, key: Any) -> None:
        """Add an element."""
        kind = self._kind or _kinds.infer_kind(key)
        data = kind.encode(key)
        layer = self._own()
        grown = layer.add(*_hash.HALVES.unpack(self._digest(data)))
        self._settle(kind)
        self._h.nset += grown

    def update(self, keys: Iterable[Any]) -> None:
        """Add many elements: any iterable, or a numpy array."""
        np = _layouts.np
        if np is None:
            for key in keys:
                self.add(key)
            return
        if isinstance(keys, np.ndarray):
            for at in range(0, len(keys), CHUNK):
                self._add_arrays(keys[at:at + CHUNK])
            return
        rest = iter(keys)
        while True:
            chunk = list(itertools.islice(rest, CHUNK))
            if not chunk:
                break
            if len(chunk) < 16:
                for key in chunk:
                    self.add(key)
            else:
                self._add_arrays(chunk)

    def _add_arrays(self, keys: Any) -> None:
        if isinstance(keys, _layouts.np.ndarray):
            kind = self._kind or (
                _kinds.infer_kind(keys[0]) if keys.dtype.kind == "O" else
                _kinds.SIMPLE[self._array_kind(keys)])
            h1, h2 = self._hash_array(keys)
        else:
            kind = self._kind or _kinds.infer_kind(keys[0])
            h1, h2 = self._hash_list(keys)
        self._own().add_many(h1, h2)
        self._settle(kind)
        self._counted = False
        self._h.nset = max(1, self._h.nset)

    def _count(self) -> None:
        if not self._counted:
            self._h.nset = self._layers[0].count()
            self._counted = True

    # -- info ---------------------------------------------------------------

    @property
    def info(self) -> Info:
        self._count()
        h = self._h
        entries = h.layers or [_format.Entry(h.bits, h.capacity, h.nset, h.hashes)]
        numbers = [_sizes.cardinality(h.layout, e.bits, e.hashes, e.nset)
                   for e in entries]
        passed = 1.0
        places = 0
        total = 0.0
        for entry, number in zip(entries, numbers):
            # what earlier layers seemed to have did not get into this one
            total += number / (1.0 if h.layout == "cuckoo" else passed)
            passed *= 1.0 - _sizes.rate(h.layout, entry.bits, entry.hashes, number)
            places += (4 * _sizes.cuckoo_buckets(entry.bits, entry.hashes)
                       if h.layout == "cuckoo" and entry.bits else
                       entry.bits // 4 if h.layout == "counting" else entry.bits)
        rate = (_sizes.rate(h.layout, h.bits, h.hashes, numbers[0])
                if len(entries) == 1 else 1.0 - passed)
        name, size = b"", 0
        if self._layers:
            assert h.kind is not None
            name = h.kind.header_name
            size = sum(entry.bits // 8 for entry in entries)
        return Info(
            layout=h.layout, hash=h.hash, keyed=bool(h.key),
            element=h.kind.name if h.kind else None,
            portable=h.kind is None or h.kind.portable,
            capacity=sum(entry.capacity for entry in entries) or None,
            target_fpr=h.fpr, bits=sum(entry.bits for entry in entries),
            hashes=(None if h.layout == "cuckoo" or h.expansion or not h.hashes
                    else h.hashes),
            expansion=h.expansion, layers=len(self._layers), bits_set=h.nset,
            fill=h.nset / places if places else 0.0,
            cardinality=total, expected_fpr=rate,
            bytes=_format.header_size(len(h.key), len(name), len(h.layers)) + size)

    def __repr__(self) -> str:
        return (f"<BloomFilter {self._h.layout} {self._h.hash}, {self._h.bits}"
                f" bits of {self.kind or 'no'} elements>")
