"""Values of the golden vectors: in JSON, a scalar in PostgreSQL's text form."""
import datetime
import decimal
import ipaddress
import re
import uuid

from bloomfilter_pg import Infinity
from bloomfilter_pg._kinds import Kind, parse_kind


def offset(text):
    """The zone at a time's end, and what is before."""
    body, sign, zone = re.fullmatch(r"(.*)([+-])([\d:]+)", text).groups()
    parts = [int(part) for part in zone.split(":")] + [0, 0]
    delta = datetime.timedelta(hours=parts[0], minutes=parts[1],
                               seconds=parts[2])
    return body, datetime.timezone(-delta if sign == "-" else delta)


def limits(text):
    return {"infinity": Infinity.POSITIVE, "-infinity": Infinity.NEGATIVE}[text]


def fraction(text):
    """fromisoformat before 3.11 wants three or six digits."""
    body, point, digits = text.partition(".")
    return body + (point and point + digits.ljust(6, "0"))


def a_date(text):
    return (limits(text) if "infinity" in text else
            datetime.date.fromisoformat(text))


def a_timestamp(text):
    return (limits(text) if "infinity" in text else
            datetime.datetime.fromisoformat(fraction(text)))


def a_timestamptz(text):
    if "infinity" in text:
        return limits(text)
    body, zone = offset(text)
    return datetime.datetime.fromisoformat(fraction(body)).replace(tzinfo=zone)


def a_timetz(text):
    body, zone = offset(text)
    return datetime.time.fromisoformat(fraction(body)).replace(tzinfo=zone)


SCALARS = {
    "integer": int,
    "text": str,
    "float": float,
    "bytea": bytes.fromhex,
    "uuid": uuid.UUID,
    "boolean": lambda text: {"true": True, "false": False}[text],
    "date": a_date,
    "time": lambda text: datetime.time.fromisoformat(fraction(text)),
    "timestamp": a_timestamp,
    "timestamptz": a_timestamptz,
    "timetz": a_timetz,
    "macaddr": str,
    "macaddr8": str,
    "inet": ipaddress.ip_interface,
    "numeric": decimal.Decimal,
}


def decode(kind, value):
    """The Python value of a JSON value."""
    if not isinstance(kind, Kind):
        kind = parse_kind(kind)
    if value is None:
        return None
    if kind.number == 18:
        return tuple(decode(part, item) for part, item in zip(kind.parts, value))
    if kind.number == 17:
        (element,) = kind.parts
        return [decode_element(element, item) for item in value]
    if kind.number == 16:
        return value
    return SCALARS[kind.name](value)


def decode_element(element, item):
    """An array's element, or one of its lists."""
    if isinstance(item, list) and element.number < 17:
        return [decode_element(element, inner) for inner in item]
    return decode(element, item)
