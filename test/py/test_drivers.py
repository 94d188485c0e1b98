"""Filters as query parameters and results of drivers: psycopg and
node-postgres, in the text format and in the binary one."""
import os
import pathlib
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "clients/python"))

# pylint: disable=wrong-import-position
import harness  # noqa: E402
import psycopg  # noqa: E402
from bloomfilter_pg import BloomFilter  # noqa: E402
from psycopg.adapt import Dumper, Loader  # noqa: E402
from psycopg.pq import Format  # noqa: E402
from psycopg.types import TypeInfo  # noqa: E402

CODES = [f"GG-{i:010d}" for i in range(10_000)]
WANTED = CODES[::10]

SET_UP = """
    CREATE TABLE codes AS
        SELECT 'GG-' || lpad(i::text, 10, '0') AS code FROM generate_series(0, 9999) i;
    CREATE TABLE filters (name text PRIMARY KEY, filter bloomfilter NOT NULL);
"""


def register(conn):
    """Make psycopg send a BloomFilter as type bloomfilter, in binary, and give
    one back for a bloomfilter column that comes in binary."""
    info = TypeInfo.fetch(conn, "bloomfilter")
    info.register(conn)

    class FilterDumper(Dumper):
        format = Format.BINARY
        oid = info.oid

        def dump(self, obj):
            return obj.to_bytes()

    class FilterLoader(Loader):
        format = Format.BINARY

        def load(self, data):
            return BloomFilter.from_bytes(bytes(data))

    conn.adapters.register_dumper(BloomFilter, FilterDumper)
    conn.adapters.register_loader(info.oid, FilterLoader)


def wanted():
    """Room for 1,000, at a rate that lets none of the other 9,000 pass often"""
    bf = BloomFilter(len(WANTED), 0.001)
    bf.update(WANTED)
    return bf


def psycopg_parameters(checks):
    bf = wanted()
    image = bf.to_bytes()
    expected = sorted(code for code in CODES if code in bf)
    checks.check(len(WANTED) <= len(expected) < len(WANTED) + 60,
                 f"psycopg {psycopg.__version__}: a filter of {len(WANTED)} codes lets"
                 f" {len(expected)} of {len(CODES)} pass")
    with psycopg.connect(autocommit=True) as conn:
        for what, placeholder in (("text", "%t"), ("binary", "%b"), ("automatic", "%s")):
            rows = conn.execute(
                f"SELECT code FROM codes WHERE {placeholder}::bytea::bloomfilter @> code"
                " ORDER BY code", [image]).fetchall()
            checks.check([code for (code,) in rows] == expected,
                         f"bytea parameter, {what}: the client's answers")
        for binary in (False, True):
            (back,) = conn.execute("SELECT %b::bytea::bloomfilter::bytea", [image],
                                   binary=binary).fetchone()
            checks.check(bytes(back) == image,
                         f"read back as bytea, {'binary' if binary else 'text'}")
        (back,) = conn.execute("SELECT %b::bytea::bloomfilter", [image],
                               binary=True).fetchone()
        checks.check(bytes(back) == image,
                     "a column of type bloomfilter in binary is the image")


def psycopg_type(checks):
    bf = wanted()
    with psycopg.connect(autocommit=True) as conn:
        register(conn)
        expected = sorted(code for code in CODES if code in bf)
        rows = conn.execute("SELECT code FROM codes WHERE %s @> code ORDER BY code",
                            [bf]).fetchall()
        checks.check([code for (code,) in rows] == expected,
                     "a parameter of type bloomfilter: no cast in the query")
        conn.execute("INSERT INTO filters VALUES ('psycopg', %s)", [bf])
        (back, same) = conn.execute(
            "SELECT filter, filter = (SELECT bloom_agg(code, 1000, 0.001) FROM codes"
            " WHERE code LIKE '%%0') FROM filters WHERE name = 'psycopg'",
            binary=True).fetchone()
        checks.check(isinstance(back, BloomFilter) and back.to_bytes() == bf.to_bytes(),
                     "stored, and read as a BloomFilter")
        checks.check(same is True, "it equals the server's own filter of these codes")
        with conn.cursor() as cursor:
            with cursor.copy("COPY filters FROM STDIN (FORMAT binary)") as copy:
                copy.set_types(["text", "bloomfilter"])
                copy.write_row(["copied", bf])
        (n,) = conn.execute("SELECT count(*) FROM filters WHERE filter = %s", [bf]).fetchone()
        checks.equal(n, 2, "COPY in binary, and a comparison with a parameter")


def psycopg_malformed(checks):
    image = bytearray(wanted().to_bytes())
    image[200] ^= 1
    with psycopg.connect(autocommit=True) as conn:
        oid = TypeInfo.fetch(conn, "bloomfilter").oid

        class Raw(bytes):
            """Bytes, as type bloomfilter"""

        class RawDumper(Dumper):
            format = Format.BINARY

            def dump(self, obj):
                return bytes(obj)

        RawDumper.oid = oid
        conn.adapters.register_dumper(Raw, RawDumper)
        for what, query, value in (
                ("a changed image as bytea", "SELECT %b::bytea::bloomfilter", bytes(image)),
                ("a changed image as bloomfilter", "SELECT %s", Raw(image)),
                ("half an image", "SELECT %s", Raw(image[:len(image) // 2])),
                ("nothing", "SELECT %s", Raw(b""))):
            try:
                conn.execute(query, [value])
                checks.check(False, f"{what} was accepted")
            except psycopg.Error as error:
                checks.check(error.sqlstate in ("22P03", "22P02", "XX001", "22023"),
                             f"{what}: {error.sqlstate} {str(error).splitlines()[0]}")
        (one,) = conn.execute("SELECT 1").fetchone()
        checks.equal(one, 1, "the connection is good for more")


def node_postgres(checks):
    """test/js/drivers.mjs prints a line a check, like this."""
    image = wanted().to_bytes()
    with psycopg.connect(autocommit=True) as conn:
        conn.execute("INSERT INTO filters VALUES ('python', %b::bytea::bloomfilter)", [image])
    done = subprocess.run(["node", TOP / "test/js/drivers.mjs"], text=True, timeout=120,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    ended = False
    for line in done.stdout.splitlines():
        verdict, _, what = line.partition(" ")
        if verdict in ("ok", "FAILED"):
            checks.check(verdict == "ok", what.strip())
        else:
            print("       ", line)
            ended = line == "done"
    checks.check(ended and done.returncode == 0, "the script came to its end")


def main():
    checks = harness.Checks()
    with harness.schema("drivers"):
        harness.query(SET_UP)
        checks.part(psycopg_parameters, checks)
        checks.part(psycopg_type, checks)
        checks.part(psycopg_malformed, checks)
        checks.part(node_postgres, checks)
    checks.close()


if __name__ == "__main__":
    main()
