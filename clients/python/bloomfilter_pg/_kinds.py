"""Element kinds: from a Python value to the bytes that are hashed."""
import datetime
import decimal
import enum
import functools
import ipaddress
import numbers
import re
import struct
import uuid
from typing import Any, Callable, List, Optional, Tuple

from ._errors import KindError

MAX_NAME = 512          # bytes
MAX_DEPTH = 64          # of arrays and records in each other

# PostgreSQL's limits for numeric
NUMERIC_DIGITS = 131072
NUMERIC_SCALE = 16383

INT64 = struct.Struct("<q")
INT64_PAIR = struct.Struct("<qq")
DOUBLE = struct.Struct("<d")
UINT32 = struct.Struct("<I")
INT32_PAIR = struct.Struct("<ii")

NAN = bytes.fromhex("000000000000f87f")
EPOCH = datetime.datetime(2000, 1, 1)
EPOCH_UTC = EPOCH.replace(tzinfo=datetime.timezone.utc)
EPOCH_DAY = datetime.date(2000, 1, 1).toordinal()
MICROSECOND = datetime.timedelta(microseconds=1)
SECOND = datetime.timedelta(seconds=1)


class Infinity(enum.Enum):
    """infinity and -infinity of date, timestamp and timestamptz."""

    POSITIVE = 1
    NEGATIVE = -1


Encoder = Callable[[Any], bytes]


class Kind:
    """An element kind.  encode raises KindError for values of another."""

    __slots__ = ("number", "name", "encode", "portable", "parts")

    def __init__(self, number: int, name: str, encode: Encoder,
                 portable: bool = True, parts: "Tuple[Kind, ...]" = ()) -> None:
        self.number = number
        self.name = name
        self.encode = encode
        self.portable = portable
        self.parts = parts

    def __repr__(self) -> str:
        return f"Kind({self.name!r})"

    @property
    def header_name(self) -> bytes:
        return self.name.encode() if self.number >= ENUM else b""


ENUM, ARRAY, RECORD, HASHED = 16, 17, 18, 19


def mismatch(kind: str, value: Any) -> KindError:
    return KindError(f"filter holds {kind} elements, not "
                     f"{type(value).__module__}.{type(value).__qualname__}"
                     .replace("builtins.", ""))


# ---------------------------------------------------------------------------
# Simple kinds
# ---------------------------------------------------------------------------

def encode_integer(value: Any) -> bytes:
    if type(value) is not int:
        if not isinstance(value, numbers.Integral) or isinstance(value, bool):
            raise mismatch("integer", value)
        value = int(value)
    try:
        return INT64.pack(value)
    except struct.error:
        raise OverflowError(f"{value} is not a 64-bit integer") from None


def encode_text(value: Any) -> bytes:
    if not isinstance(value, str):
        raise mismatch("text", value)
    return str.encode(value)


def encode_float(value: Any) -> bytes:
    if not isinstance(value, float):
        # numpy's float32 is a Real, but so are int, bool and Fraction
        if (not isinstance(value, numbers.Real)
                or isinstance(value, numbers.Rational)):
            raise mismatch("float", value)
        value = float(value)
    if value != value:
        return NAN
    return DOUBLE.pack(value + 0.0)     # -0.0 + 0.0 is 0.0


def encode_bytea(value: Any) -> bytes:
    if not isinstance(value, (bytes, bytearray, memoryview)):
        raise mismatch("bytea", value)
    return bytes(value)


def encode_uuid(value: Any) -> bytes:
    if not isinstance(value, uuid.UUID):
        raise mismatch("uuid", value)
    return value.bytes


def encode_boolean(value: Any) -> bytes:
    if not isinstance(value, bool):
        if type(value).__module__ != "numpy" or not type(value).__name__.startswith("bool"):
            raise mismatch("boolean", value)
    return b"\1" if value else b"\0"


def infinite(value: Infinity, bits: int) -> bytes:
    limit: int = 2 ** (bits - 1)
    return INT64.pack(limit - 1 if value is Infinity.POSITIVE else -limit)


def encode_date(value: Any) -> bytes:
    if isinstance(value, Infinity):
        return infinite(value, 32)
    if (not isinstance(value, datetime.date)
            or isinstance(value, datetime.datetime)):
        raise mismatch("date", value)
    return INT64.pack(value.toordinal() - EPOCH_DAY)


def since_midnight(value: datetime.time) -> int:
    return (((value.hour * 60 + value.minute) * 60 + value.second) * 1000000
            + value.microsecond)


def encode_time(value: Any) -> bytes:
    if not isinstance(value, datetime.time):
        raise mismatch("time", value)
    if value.utcoffset() is not None:
        raise KindError("filter holds time elements, not timetz")
    return INT64.pack(since_midnight(value))


def encode_timetz(value: Any) -> bytes:
    if not isinstance(value, datetime.time):
        raise mismatch("timetz", value)
    offset = value.utcoffset()
    if offset is None:
        raise KindError("filter holds timetz elements, not time"
                        if value.tzinfo is None else
                        "a time in a zone without a fixed offset is no timetz")
    if offset % SECOND:
        raise ValueError("zone's offset is not in whole seconds")
    return INT64_PAIR.pack(since_midnight(value), -(offset // SECOND))


def encode_timestamp(value: Any) -> bytes:
    if isinstance(value, Infinity):
        return infinite(value, 64)
    if not isinstance(value, datetime.datetime):
        raise mismatch("timestamp", value)
    if value.utcoffset() is not None:
        raise KindError("filter holds timestamp elements, not timestamptz")
    return INT64.pack((value.replace(tzinfo=None) - EPOCH) // MICROSECOND)


def encode_timestamptz(value: Any) -> bytes:
    if isinstance(value, Infinity):
        return infinite(value, 64)
    if not isinstance(value, datetime.datetime):
        raise mismatch("timestamptz", value)
    if value.utcoffset() is None:
        raise KindError("filter holds timestamptz elements, not timestamp")
    return INT64.pack((value - EPOCH_UTC) // MICROSECOND)


def encode_mac(kind: str, length: int) -> Encoder:
    # 08:00:2b:01:02:03, or with - or ., or 08002b:010203 and the like
    plausible = re.compile(r"[0-9a-fA-F]{2}([:.-]?[0-9a-fA-F]{2}){%d}"
                           % (length - 1))

    def encode(value: Any) -> bytes:
        if not isinstance(value, str):
            raise mismatch(kind, value)
        if not plausible.fullmatch(value):
            raise ValueError(f"not a {kind}: {value!r}")
        return bytes.fromhex(re.sub("[:.-]", "", value))
    return encode


def encode_inet(value: Any) -> bytes:
    if isinstance(value, (ipaddress.IPv4Interface, ipaddress.IPv6Interface)):
        address, bits = value.ip, value.network.prefixlen
    elif isinstance(value, (ipaddress.IPv4Address, ipaddress.IPv6Address)):
        address, bits = value, value.max_prefixlen
    elif isinstance(value, (ipaddress.IPv4Network, ipaddress.IPv6Network)):
        address, bits = value.network_address, value.prefixlen
    else:
        raise mismatch("inet", value)
    if getattr(address, "scope_id", None) is not None:
        raise ValueError(f"an inet has no scope: {value}")
    return bytes((address.version, bits)) + address.packed


def encode_numeric(value: Any) -> bytes:
    if not isinstance(value, decimal.Decimal):
        raise mismatch("numeric", value)
    sign, digit_tuple, exponent = value.as_tuple()
    if exponent == "F":
        return b"-Infinity" if sign else b"Infinity"
    if not isinstance(exponent, int):
        return b"NaN"
    digits = "".join(map(str, digit_tuple)).lstrip("0")
    if not digits:
        return b"0"
    stripped = digits.rstrip("0")
    exponent += len(digits) - len(stripped)
    digits = stripped
    if len(digits) + exponent > NUMERIC_DIGITS or -exponent > NUMERIC_SCALE:
        raise OverflowError("value overflows numeric")
    if exponent >= 0:
        digits += "0" * exponent
    else:
        digits = digits.rjust(1 - exponent, "0")
        digits = f"{digits[:exponent]}.{digits[exponent:]}"
    return (("-" if sign else "") + digits).encode()


SIMPLE = {name: Kind(number, name, encode) for number, name, encode in (
    (1, "integer", encode_integer),
    (2, "text", encode_text),
    (3, "float", encode_float),
    (4, "bytea", encode_bytea),
    (5, "uuid", encode_uuid),
    (6, "boolean", encode_boolean),
    (7, "date", encode_date),
    (8, "time", encode_time),
    (9, "timestamp", encode_timestamp),
    (10, "timestamptz", encode_timestamptz),
    (11, "timetz", encode_timetz),
    (12, "macaddr", encode_mac("macaddr", 6)),
    (13, "macaddr8", encode_mac("macaddr8", 8)),
    (14, "inet", encode_inet),
    (15, "numeric", encode_numeric))}
BY_NUMBER = {kind.number: kind for kind in SIMPLE.values()}

# ---------------------------------------------------------------------------
# Kinds with a name
# ---------------------------------------------------------------------------


def enum_kind(name: str) -> Kind:
    def encode(value: Any) -> bytes:
        if isinstance(value, enum.Enum):
            value = value.value
        if not isinstance(value, str):
            raise mismatch(f"{name} (their labels)", value)
        return value.encode()
    return Kind(ENUM, name, encode)


def hashed_kind(name: str) -> Kind:
    def encode(value: Any) -> bytes:
        raise KindError(f"filter holds {name} elements, which only the server"
                        " can hash")
    return Kind(HASHED, name, encode, portable=False)


def encode_parts(parts: List[Optional[bytes]]) -> bytes:
    out = []
    for part in parts:
        if part is None:
            out.append(b"\0")
        else:
            out += b"\1", UINT32.pack(len(part)), part
    return b"".join(out)


def flatten(value: List[Any], nested: bool) -> Tuple[List[int], List[Any]]:
    """Dimensions and elements.  nested: where elements are lists themselves,
    so that there is one dimension."""
    if not value:
        return [], []
    lengths = [len(value)]
    while not nested and any(isinstance(item, list) for item in value):
        length = len(value[0]) if isinstance(value[0], list) else 0
        if length == 0 or not all(isinstance(item, list)
                                  and len(item) == length for item in value):
            raise ValueError("an array's lists differ in length or are empty")
        lengths.append(length)
        if len(lengths) > 6:
            raise ValueError("an array has at most 6 dimensions")
        value = [item for items in value for item in items]
    return lengths, value


def array_kind(element: Kind) -> Kind:
    name = f"{element.name}[]"

    def encode(value: Any) -> bytes:
        if not isinstance(value, list):
            raise mismatch(name, value)
        lengths, items = flatten(value, element.number == ARRAY)
        return (UINT32.pack(len(lengths))
                + b"".join(INT32_PAIR.pack(length, 1) for length in lengths)
                + encode_parts([None if item is None else element.encode(item)
                                for item in items]))
    return Kind(ARRAY, name, encode, element.portable, (element,))


def record_kind(columns: Tuple[Kind, ...]) -> Kind:
    name = f"({','.join(column.name for column in columns)})"

    def encode(value: Any) -> bytes:
        if not isinstance(value, tuple):
            raise mismatch(name, value)
        if len(value) != len(columns):
            raise KindError(f"filter holds {name} elements, which have"
                            f" {len(columns)} columns, not {len(value)}")
        return encode_parts([None if item is None else column.encode(item)
                             for column, item in zip(columns, value)])
    return Kind(RECORD, name, encode,
                all(column.portable for column in columns), columns)


# A type's name is quoted as in SQL, and perhaps qualified
PART = r'(?:"(?:[^"]|"")+"|[^\s".,()\[\]]+)'
NAMED = re.compile(rf"(enum|hash):{PART}(?:\.{PART})?")
WORD = re.compile("[a-z0-9]+")


class Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def skip(self, token: str) -> bool:
        if not self.text.startswith(token, self.at):
            return False
        self.at += len(token)
        return True

    def kind(self, depth: int) -> Kind:
        if depth > MAX_DEPTH:
            raise ValueError("kind is nested too deeply")
        if self.skip("("):
            columns = []
            if not self.skip(")"):
                while True:
                    columns.append(self.kind(depth + 1))
                    if self.skip(")"):
                        break
                    if not self.skip(","):
                        raise ValueError("unknown kind")
            kind = record_kind(tuple(columns))
        else:
            named = NAMED.match(self.text, self.at)
            word = WORD.match(self.text, self.at)
            if named:
                self.at = named.end()
                make = enum_kind if named[1] == "enum" else hashed_kind
                kind = make(named[0])
            elif word and word[0] in SIMPLE:
                self.at = word.end()
                kind = SIMPLE[word[0]]
            else:
                raise ValueError("unknown kind")
        while self.skip("[]"):
            depth += 1
            if depth > MAX_DEPTH:
                raise ValueError("kind is nested too deeply")
            kind = array_kind(kind)
        return kind


@functools.lru_cache(maxsize=256)
def parse_kind(name: str) -> Kind:
    """A kind by its name; ValueError where there is none of that name."""
    parser = Parser(name)
    kind = parser.kind(0)
    if parser.at != len(name):
        raise ValueError("unknown kind")
    if kind.number >= ENUM and len(name.encode()) > MAX_NAME:
        raise ValueError("kind's name is too long")
    return kind


def kind_of_image(number: int, name: str, portable: bool) -> Kind:
    """A kind by what an image's header says.  Where that is not known here,
    the filter is one all the same, but not to be probed."""
    try:
        kind = parse_kind(name)
        if kind.number == number and kind.portable == portable:
            return kind
    except ValueError:
        pass

    def encode(value: Any) -> bytes:
        raise KindError(f"filter holds {name} elements, which are not known here"
                        if portable else f"filter holds {name} elements, which"
                        " only the server can hash")
    return Kind(number, name, encode, portable)


def infer_kind(value: Any) -> Kind:
    """The kind of a filter to which this value is added first."""
    if isinstance(value, bool):
        name = "boolean"
    elif isinstance(value, enum.Enum) and not isinstance(value, (int, str)):
        raise KindError("for labels of an enum, say kind='enum:...'")
    elif isinstance(value, numbers.Integral):
        name = "integer"
    elif isinstance(value, str):
        name = "text"
    elif isinstance(value, float):
        name = "float"
    elif isinstance(value, (bytes, bytearray, memoryview)):
        name = "bytea"
    elif isinstance(value, uuid.UUID):
        name = "uuid"
    elif isinstance(value, datetime.datetime):
        name = "timestamp" if value.utcoffset() is None else "timestamptz"
    elif isinstance(value, datetime.date):
        name = "date"
    elif isinstance(value, datetime.time):
        name = "time" if value.tzinfo is None else "timetz"
    elif isinstance(value, decimal.Decimal):
        name = "numeric"
    elif isinstance(value, (ipaddress.IPv4Address, ipaddress.IPv6Address,
                            ipaddress.IPv4Network, ipaddress.IPv6Network)):
        name = "inet"
    elif isinstance(value, tuple):
        name = f"({','.join(infer_kind(item).name for item in value)})"
    elif isinstance(value, list):
        for item in flatten(value, False)[1]:
            if item is not None:
                name = f"{infer_kind(item).name}[]"
                break
        else:
            raise KindError("an array without elements does not tell its kind:"
                            " say kind='...'")
    else:
        raise KindError(f"no element kind for {type(value).__qualname__};"
                        " say kind='...'")
    return parse_kind(name)
