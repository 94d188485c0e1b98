"""Random values of every portable kind, in JSON with each scalar in
PostgreSQL's text form (as in test/vectors.txt), and as literals.
"""
import os
import random
import struct
import sys
import uuid

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(TOP, "clients", "python"),
                os.path.join(TOP, "clients", "python", "tests")]

# pylint: disable=wrong-import-position
from bloomfilter_pg._kinds import parse_kind            # noqa: E402

LABELS = ["sad", "ok", "happy", "", "Füße", "with space", 'with "quotes"',
          "back\\slash", "comma,", "(", "NULL", "{}"] + [f"l{i}" for i in range(50)]

# In the schema that the test is in: its name is a part of the kind
TYPES = """
CREATE TYPE "Odd, (mood)[]" AS ENUM (%s);
CREATE TYPE pair AS (a bigint, b text);
CREATE TYPE triple AS (a uuid, b timestamptz, c int[]);
CREATE TYPE deep AS (a boolean, b pair, c pair[]);
""" % ", ".join("'" + label.replace("'", "''") + "'" for label in LABELS)


def sql_types(schema):
    """SQL type by kind."""
    odd = '"Odd, (mood)[]"'
    kinds = {kind: kind for kind in (
        "text", "bytea", "uuid", "boolean", "date", "time", "timestamp",
        "timestamptz", "timetz", "macaddr", "macaddr8", "inet", "numeric",
        "text[]", "numeric[]", "inet[]", "timestamptz[]")}
    kinds.update({
        "integer": "bigint",
        "float": "double precision",
        "integer[]": "integer[]",
        f"enum:{schema}.{odd}": odd,
        f"enum:{schema}.{odd}[]": f"{odd}[]",
        "(integer,text)": "pair",
        "(integer,text)[]": "pair[]",
        "(uuid,timestamptz,integer[])": "triple",
        "(boolean,(integer,text),(integer,text)[])": "deep",
    })
    return kinds


# ---------------------------------------------------------------------------
# Random values
# ---------------------------------------------------------------------------

ALPHABET = ("abcdefghij XYZ0123456789'\"\\,(){}\t\n%_ÄÖÜßéñ" "\u20ac\u65e5\u672c"
            "\U0001f600\u0301\ufeff")


def digits(r, most):
    return "".join(r.choices("0123456789", k=r.randint(1, most)))


def sign(r):
    return r.choice(["", "", "-"])


def a_float(r):
    if r.random() < 0.1:
        return r.choice(["0", "-0", "NaN", "Infinity", "-Infinity", "5e-324",
                         "1.7976931348623157e+308"])
    if r.random() < 0.4:
        return repr(round(r.gauss(0, 1000), r.randint(0, 4)))
    while True:
        (value,) = struct.unpack("<d", r.randbytes(8))
        if value == value and abs(value) != float("inf"):
            return repr(value)


def a_date(r):
    if r.random() < 0.02:
        return r.choice(["infinity", "-infinity"])
    year = r.choice([r.randint(1, 9999), r.randint(1990, 2030)])
    return f"{year:04}-{r.randint(1, 12):02}-{r.randint(1, 28):02}"


def a_time(r):
    text = f"{r.randint(0, 23):02}:{r.randint(0, 59):02}:{r.randint(0, 59):02}"
    return text + r.choice(["", f".{r.randint(0, 999999):06}",
                            f".{r.randint(0, 9)}"])


def a_zone(r):
    text = f"{r.choice('+-')}{r.randint(0, 15):02}"
    return text + r.choice(["", f":{r.randint(0, 59):02}",
                            f":{r.randint(0, 59):02}:{r.randint(0, 59):02}"])


def a_timestamp(r, zone=""):
    day = a_date(r)
    return day if "infinity" in day else f"{day} {a_time(r)}{zone}"


def an_inet(r):
    if r.random() < 0.5:
        address, most = ".".join(str(r.randint(0, 255)) for _ in range(4)), 32
    else:
        address, most = ":".join(f"{r.choice([0, 0, r.getrandbits(16)]):x}"
                                 for _ in range(8)), 128
    return address + r.choice(["", f"/{r.randint(0, most)}"])


def a_numeric(r):
    if r.random() < 0.05:
        return r.choice(["NaN", "Infinity", "-Infinity", "0", "-0", "0.000",
                         "100", "1.10", "5", "5.0", "5.00", "1e3", "1E-3"])
    text = sign(r) + digits(r, r.choice([3, 12, 60]))
    if r.random() < 0.6:
        text += "." + digits(r, r.choice([3, 40])) + r.choice(["", "000"])
    if r.random() < 0.2:
        text += f"e{r.randint(-80, 80)}"
    return text


SCALARS = {
    "integer": lambda r: str(r.choice([
        r.randint(-5, 5), r.getrandbits(31), r.getrandbits(64) - 2 ** 63,
        r.choice([-2 ** 63, 2 ** 63 - 1, 2 ** 31, 2 ** 53, -2 ** 53 - 1])])),
    "text": lambda r: "".join(r.choices(ALPHABET, k=r.choice(
        [r.randint(0, 20), r.randint(0, 20), r.randint(0, 300)]))),
    "float": a_float,
    "bytea": lambda r: r.randbytes(r.choice([r.randint(0, 20),
                                             r.randint(0, 300)])).hex(),
    "uuid": lambda r: str(uuid.UUID(int=r.getrandbits(128))),
    "boolean": lambda r: r.choice(["true", "false"]),
    "date": a_date,
    "time": a_time,
    "timestamp": a_timestamp,
    "timestamptz": lambda r: a_timestamp(r, a_zone(r)),
    "timetz": lambda r: a_time(r) + a_zone(r),
    "macaddr": lambda r: r.randbytes(6).hex(":"),
    "macaddr8": lambda r: r.randbytes(8).hex(":"),
    "inet": an_inet,
    "numeric": a_numeric,
}


def scalar(kind, r):
    return r.choice(LABELS) if kind.number == 16 else SCALARS[kind.name](r)


def value(kind, r):
    """A random value of a kind, in JSON."""
    if kind.number == 18:
        return [None if r.random() < 0.1 else
                "%d" % r.randint(-2 ** 31, 2 ** 31 - 1)
                if part.name == "integer" else value(part, r)
                for part in kind.parts]
    if kind.number != 17:
        return scalar(kind, r)
    (element,) = kind.parts

    def item():
        if r.random() < 0.1:
            return None
        if kind.name == "integer[]":
            return str(r.randint(-2 ** 31, 2 ** 31 - 1))
        return value(element, r)
    if r.random() < 0.3 and element.number < 17:
        length = r.randint(1, 3)
        return [[item() for _ in range(length)] for _ in range(r.randint(1, 3))]
    return [item() for _ in range(r.randint(0, 4))]


def values(kind, n, seed):
    r = random.Random(f"{seed} {kind}")
    parsed = parse_kind(kind)
    return [value(parsed, r) for _ in range(n)]


# ---------------------------------------------------------------------------
# PostgreSQL's text form
# ---------------------------------------------------------------------------

def quote(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def pg_text(kind, json):
    """The text form of a value in JSON."""
    if not isinstance(kind, str):
        parsed = kind
    else:
        parsed = parse_kind(kind)
    if parsed.number == 18:
        return "(" + ",".join("" if item is None else quote(pg_text(part, item))
                              for part, item in zip(parsed.parts, json)) + ")"
    if parsed.number == 17:
        return array_text(parsed.parts[0], json)
    if parsed.name == "bytea":
        return "\\x" + json
    return json


def array_text(element, items):
    out = []
    for item in items:
        if item is None:
            out.append("NULL")
        elif isinstance(item, list) and element.number < 17:
            out.append(array_text(element, item))
        else:
            out.append(quote(pg_text(element, item)))
    return "{" + ",".join(out) + "}"


def literal(kind, json):
    return "'" + pg_text(kind, json).replace("'", "''") + "'"


def copy_text(text):
    """As COPY wants it."""
    for plain, escaped in ("\\", "\\\\"), ("\t", "\\t"), ("\n", "\\n"), ("\r", "\\r"):
        text = text.replace(plain, escaped)
    return text
