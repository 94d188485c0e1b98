#!/usr/bin/python3
"""The binary form: valid images come back as they went in, and malformed ones
are refused, whichever way they come: COPY, a parameter, a cast or text.

With BLOOM_SLOW=1 also filters of more than 2^31 bits.
"""
import base64
import getpass
import os
import random
import re
import socket
import struct

import reference
from harness import SLOW, Checks, SqlError, copy_in, copy_out, query, schema

MALFORMED = "22P03"         # invalid_binary_representation
MALFORMED_TEXT = "22P02"    # invalid_text_representation
OTHER_VERSION = "0A000"     # feature_not_supported

COPY_SIGNATURE = b"PGCOPY\n\xff\r\n\0" + bytes(8)
COPY_TRAILER = b"\xff\xff"

LIMIT_BITS = 2 ** 32
MIB = 2 ** 20

checks = Checks()


# ---------------------------------------------------------------------------
# A client of the extended protocol, for parameters in binary
# ---------------------------------------------------------------------------

class Client:
    """A session in which parameters and results are binary."""

    def __init__(self):
        host = os.environ.get("PGHOST", "/var/run/postgresql")
        port = os.environ.get("PGPORT", "5432")
        user = os.environ.get("PGUSER", getpass.getuser())
        if host.startswith("/"):
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.connect(f"{host}/.s.PGSQL.{port}")
        else:
            self.socket = socket.create_connection((host, int(port)))
        self.input = self.socket.makefile("rb")
        settings = ["user", user,
                    "database", os.environ.get("PGDATABASE", user),
                    "options", os.environ.get("PGOPTIONS", "")]
        body = struct.pack(">I", 3 << 16) + \
            b"".join(s.encode() + b"\0" for s in settings) + b"\0"
        self.socket.sendall(struct.pack(">I", len(body) + 4) + body)
        self.answer()
        ((self.pid,),) = self.run("SELECT pg_backend_pid()")
        self.pid = int.from_bytes(self.pid, "big")

    def answer(self):
        """All rows up to ReadyForQuery; an error is raised after it."""
        rows, error = [], None
        while True:
            header = self.input.read(5)
            if len(header) < 5:
                raise ConnectionError("the server closed the connection")
            kind, length = struct.unpack(">cI", header)
            body = self.input.read(length - 4)
            if kind == b"Z":
                break
            if kind == b"D":
                rows.append(self.fields(body))
            elif kind == b"E":
                parts = {part[:1]: part[1:].decode()
                         for part in body.split(b"\0") if part}
                error = SqlError(parts[b"C"], "\n".join(
                    parts[field] for field in (b"M", b"D") if field in parts))
            elif kind == b"R" and body != bytes(4):
                raise ConnectionError("this client cannot authenticate itself;"
                                      " use trust or peer")
        if error:
            raise error
        return rows

    @staticmethod
    def fields(body):
        values, at = [], 2
        for _ in range(int.from_bytes(body[:2], "big")):
            (length,) = struct.unpack_from(">i", body, at)
            at += 4
            values.append(None if length < 0 else body[at:at + length])
            at += max(length, 0)
        return values

    def run(self, sql, *parameters):
        """Parameters are bytes, or None for NULL."""
        def message(kind, *parts):
            body = b"".join(parts)
            return kind + struct.pack(">I", len(body) + 4) + body

        values = b"".join(struct.pack(">i", -1) if value is None else
                          struct.pack(">i", len(value)) + value
                          for value in parameters)
        self.socket.sendall(
            message(b"P", b"\0", sql.encode(), b"\0", bytes(2)) +
            message(b"B", b"\0\0", struct.pack(">hhh", 1, 1, len(parameters)),
                    values, struct.pack(">hh", 1, 1)) +
            message(b"E", b"\0", bytes(4)) +
            message(b"S"))
        return self.answer()

    def close(self):
        self.input.close()
        self.socket.close()

    def memory(self):
        """The most address space that the backend ever had, in bytes."""
        with open(f"/proc/{self.pid}/status", encoding="ascii") as status:
            peak = re.search(r"VmPeak:\s+(\d+) kB", status.read())
        return int(peak[1]) * 1024


# ---------------------------------------------------------------------------
# Images
# ---------------------------------------------------------------------------

DESIGNS = {
    "blocked": dict(),
    "standard": dict(layout="standard"),
    "keyed": dict(hash="blake2b", key=b"0123456789abcdef"),
    "k given": dict(layout="standard", hash="blake2b", hashes=3),
}


def valid_images():
    for name, design in DESIGNS.items():
        yield f"{name}, unsized", reference.Filter(**design).image()
        yield f"{name}, empty", reference.Filter(10, **design).image()
        for n in (1, 10, 1000):
            yield f"{name}, n = {n}", reference.Filter(n, **design).add(
                "integer", range(n)).image()


HEADER_FIELDS = {
    # offset and format of struct
    "magic": (0, "2s"), "version": (2, "B"), "layout": (3, "B"),
    "hash": (4, "B"), "k": (5, "B"), "header size": (6, "<H"),
    "key length": (8, "B"), "kind": (9, "B"), "kind name length": (10, "<H"),
    "m": (12, "<Q"), "capacity": (20, "<Q"), "fpr": (28, "<d"),
    "bits set": (36, "<Q"), "flags": (44, "B"), "expansion": (45, "B"),
    "layers": (46, "B"), "reserved": (47, "B"), "checksum": (48, "<Q"),
}


def header_size(image):
    return int.from_bytes(image[6:8], "little")


def altered(image, **fields):
    """With other header fields, and the header's checksum right again."""
    size = header_size(image)
    header = bytearray(image[:size])
    for name, value in fields.items():
        offset, fmt = HEADER_FIELDS[name.replace("_", " ")]
        struct.pack_into(fmt, header, offset, value)
    return reference.sealed(header) + image[size:]


def with_payload(image, payload, **fields):
    """With other bits, and the checksum that belongs to them."""
    image = image[:header_size(image)] + bytes(payload)
    return altered(image, checksum=reference.xxh3_64(payload) or 1, **fields)


def contradictory_images():
    """Checksums are right in all of them, so that each is found out by what
    it says."""
    nan, inf = float("nan"), float("inf")
    for name, design in DESIGNS.items():
        full = reference.Filter(10, **design).add("integer", range(10))
        image = full.image()
        empty = reference.Filter(10, **design).image()
        unsized = reference.Filter(**design).image()
        size = header_size(image)
        payload = image[size:]
        nset = full.bits_set()
        unit = 512 if full.layout == "blocked" else 8
        most_k = reference.MAX_HASHES[full.layout]

        changes = [(image, field, value) for field, values in {
            "magic": (b"BG", b"\0\0", b"FB"),
            "version": (0, 2, 255),
            "layout": (0, 255),
            "hash": (0, 3, 255),
            "k": (0, most_k + 1, 255),
            "header size": (0, 59, 60 if size != 60 else 124, 188, 65532),
            "key length": (33, 255, 0 if full.key else 5),
            "kind": (0, 16, 17, 18, 19, 200, 255),
            "kind name length": (1, 4, 512, 65535),
            "m": (0, full.m - unit, full.m + unit, full.m + 1, LIMIT_BITS,
                  LIMIT_BITS + unit, 2 ** 63, 2 ** 64 - unit),
            "capacity": (0, 2 ** 53 + 1, 2 ** 64 - 1),
            "fpr": (0.0, 1.0, -0.01, 1e-7, 2.0, nan, inf, -inf, 5e-324),
            "bits set": (0, nset - 1, nset + 1, full.m + 1, 2 ** 64 - 1),
            "flags": (2, 128, 255),
            "expansion": (1, 17, 255), "layers": (1, 2, 33, 255),
            "reserved": (1, 255),
            "checksum": (0, 1, 2 ** 64 - 1),
        }.items() for value in values]
        changes += [(empty, field, value) for field, value in (
            ("kind", 1), ("bits set", 1), ("checksum", 1), ("k", 0),
            ("m", 0), ("m", LIMIT_BITS + unit), ("m", full.m + 1),
            ("capacity", 0), ("bits set", full.m), ("layers", 1))]
        changes += [(unsized, field, value) for field, value in (
            ("kind", 1), ("bits set", 1), ("checksum", 1), ("m", full.m),
            ("capacity", 10), ("k", most_k + 1))]
        for base, field, value in changes:
            what = {image: "", empty: "empty, ", unsized: "unsized, "}[base]
            yield (f"{name}, {what}{field} {value}",
                   altered(base, **{field.replace(" ", "_"): value}))

        at = next(i for i, byte in enumerate(payload)
                  if byte.bit_count() not in (0, 4))
        inverted = bytearray(payload)
        inverted[at] ^= 255
        yield f"{name}, another number of bits", with_payload(image, inverted)
        swapped = bytearray(payload)
        swapped[at] = swapped[at] << 1 & 255 | swapped[at] >> 7
        yield f"{name}, as many other bits", image[:size] + bytes(swapped)
        zeros = bytes(len(payload))
        yield f"{name}, no bits", with_payload(image, zeros)
        yield (f"{name}, no bits, as it says",
               with_payload(image, zeros, bits_set=0, kind=0))
        yield f"{name}, empty with a payload", empty + payload
        if size > 60:
            yield (f"{name}, padding in use",
                   reference.sealed(image[:size - 1] + b"\1") + payload)
        if full.hash == "xxh3":
            header = bytearray(image[:60].ljust(124, b"\0"))
            header[60] = 7
            struct.pack_into("<HB", header, 6, 124, 1)
            yield f"{name}, a key for xxh3", reference.sealed(header) + payload


def full_image(name):
    return reference.Filter(10, **DESIGNS[name]).add("integer",
                                                     range(10)).image()


def small_images(client):
    """Filters of ten elements: ours, and the server's own of all layouts and
    of an element kind with a name."""
    images = {name: full_image(name) for name in DESIGNS}
    for name, template in {
        "counting": "bloomfilter(10, layout => 'counting')",
        "cuckoo": "bloomfilter(10, layout => 'cuckoo')",
        "scalable": "bloomfilter(3, expansion => 2)",
        "scalable cuckoo":
            "bloomfilter(3, layout => 'cuckoo', expansion => 1)",
    }.items():
        ((images[name],),) = client.run(
            f"SELECT bloom_agg(i::bigint, {template})"
            " FROM generate_series(0, 9) i")
    ((images["array"],),) = client.run(
        "SELECT bloom_agg(ARRAY[i, 1], 10) FROM generate_series(0, 9) i")
    return images


def truncated_and_oversized_images(images):
    for name, image in images.items():
        for length in range(len(image)):
            yield f"{name}, first {length} bytes", image[:length]
        for more in (1, 3, 4, 63, 64, 4096):
            yield f"{name}, {more} bytes more", image + bytes(more)
        yield f"{name}, twice", image * 2


def flipped_images(images):
    """Every bit of an image, one at a time."""
    for name, image in images.items():
        for bit in range(8 * len(image)):
            flipped = bytearray(image)
            flipped[bit >> 3] ^= 1 << (bit & 7)
            yield f"{name}, bit {bit & 7} of byte {bit >> 3}", bytes(flipped)


def random_bytes():
    rng = random.Random(3)
    for i in range(1000):
        yield f"random {i}", rng.randbytes(rng.randrange(300))
        yield f"random {i} from byte 3 on", b"BF\1" + rng.randbytes(
            rng.choice((57, 121, 200)))


def huge_claims():
    """64 bytes that claim up to 2^63 bits."""
    image = reference.Filter(10, layout="standard").add("integer",
                                                        [1]).image()[:64]
    for m, nset in ((LIMIT_BITS, 1), (LIMIT_BITS, LIMIT_BITS // 2),
                    (LIMIT_BITS, LIMIT_BITS), (2 ** 63, 2 ** 62)):
        yield (f"m = {m}, {nset} set",
               altered(image, m=m, bits_set=nset, capacity=2 ** 32))


# ---------------------------------------------------------------------------
# Refusal
# ---------------------------------------------------------------------------

def copy_stream(*images):
    """COPY's binary format, of rows of one column."""
    rows = (struct.pack(">hi", 1, -1) if image is None else
            struct.pack(">hi", 1, len(image)) + image for image in images)
    return COPY_SIGNATURE + b"".join(rows) + COPY_TRAILER


def array_of(client, *images):
    """A bloomfilter[] in binary."""
    ((oid,),) = client.run("SELECT 'bloomfilter'::regtype::oid")
    return struct.pack(">ii", 1, 0) + oid + \
        struct.pack(">ii", len(images), 1) + \
        b"".join(struct.pack(">i", len(image)) + image for image in images)


def ways_in(client):
    """Each stores an image in table kept, behind a valid row where it can."""
    valid = full_image("blocked")
    return {
        "parameter": lambda image: client.run(
            "INSERT INTO kept SELECT unnest(ARRAY[$1::bloomfilter,"
            " $2::bloomfilter])", valid, image),
        "array": lambda image: client.run(
            "INSERT INTO kept SELECT unnest($1::bloomfilter[])",
            array_of(client, valid, image)),
        "cast": lambda image: client.run(
            "INSERT INTO kept SELECT b::bloomfilter FROM unnest("
            "ARRAY[$1::bytea, $2::bytea]) b", valid, image),
        "text": lambda image: client.run(
            "INSERT INTO kept SELECT b::bloomfilter FROM unnest("
            "ARRAY[$1::text, $2::text]) b", base64.b64encode(valid),
            base64.b64encode(image)),
        "COPY": lambda image: copy_in(
            "COPY kept FROM STDIN (FORMAT binary)", copy_stream(valid, image)),
    }


def must_refuse(client, what, images, ways):
    """Every image is an error with its SQLSTATE, and leaves nothing behind."""
    images = list(images)
    for way in ways:
        put = ways_in(client)[way]
        wrong = []
        for name, image in images:
            other_version = image[:2] == b"BF" and len(image) >= 60 and \
                image[2] != 1
            expected = OTHER_VERSION if other_version else \
                MALFORMED_TEXT if way == "text" else MALFORMED
            try:
                put(image)
                wrong.append(f"{name}: accepted")
            except SqlError as error:
                if error.sqlstate != expected:
                    wrong.append(f"{name}: {error}")
        checks.check(not wrong, f"{what}, by {way}: {len(images)} refused"
                     if not wrong else
                     f"{what}, by {way}: {len(wrong)} of {len(images)}, as: " +
                     "; ".join(wrong[:5]))
        ((left,),) = client.run("SELECT count(*) FROM kept")
        checks.equal(int.from_bytes(left, "big"), 0, f"{what}, by {way}: kept")
        client.run("TRUNCATE kept")


def refusals(client):
    quick = ("parameter", "array", "cast", "text")
    must_refuse(client, "contradictory", contradictory_images(),
                quick + ("COPY",))
    images = small_images(client)
    lengths = list(truncated_and_oversized_images(images))
    must_refuse(client, "truncated or oversized", lengths, quick)
    must_refuse(client, "truncated or oversized", lengths[::37], ("COPY",))
    for name, design in DESIGNS.items():
        images[f"{name}, empty"] = reference.Filter(10, **design).image()
    flipped = list(flipped_images(images))
    must_refuse(client, "one bit flipped", flipped, ("parameter", "text"))
    must_refuse(client, "one bit flipped", flipped[::499], ("COPY",))
    must_refuse(client, "random bytes", random_bytes(), ("parameter", "cast"))


def mutated(rng, image):
    """Some bytes are others, the checksums right."""
    image = bytearray(image)
    size = header_size(image)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        at = rng.randrange(len(image) if rng.random() < 0.2 else size)
        image[at] = rng.choice((0, 1, 2, 3, image[at] ^ 1 << rng.randrange(8),
                                rng.randrange(256)))
    if image[size:]:
        struct.pack_into("<Q", image, 48, reference.xxh3_64(image[size:]))
    return reference.sealed(image[:size]) + image[size:]


USES = [
    "f @> 1::bigint", "bloom_info(f)", "bloom_cardinality(f)", "f | f",
    "f & f", "f = bloom_clear(f)", "bloom_remove(f, 1::bigint)",
]


def fuzz(client):
    """Random fields under right checksums: an error, or a filter that comes
    back as it was, and whose use does not end in an internal error."""
    rng = random.Random(4)
    wrong, accepted = [], 0
    bases = list(small_images(client).values()) + \
        [image for _, image in valid_images() if len(image) < 500]
    rounds = 200000 if SLOW else 20000
    for _ in range(rounds):
        image = mutated(rng, rng.choice(bases))
        try:
            ((out,),) = client.run("SELECT $1::bloomfilter", image)
        except SqlError as error:
            if error.sqlstate not in (MALFORMED, OTHER_VERSION):
                wrong.append(f"{error}: {image.hex()}")
            continue
        accepted += 1
        if out != image:
            wrong.append(f"came back as {out.hex()}: {image.hex()}")
        (m,) = struct.unpack_from("<Q", image, 12)
        for use in USES + ["bloom_add(f, 1::bigint)"] * (m < MIB):
            try:
                client.run(f"SELECT {use} FROM (SELECT $1::bloomfilter AS f"
                           " OFFSET 0) s", image)
            except SqlError as error:
                if error.sqlstate.startswith("XX"):
                    wrong.append(f"{use}: {error}: {image.hex()}")
    checks.check(not wrong and 0 < accepted < rounds,
                 f"fuzz: {rounds} images, {accepted} of them valid" +
                 (f"; {len(wrong)} wrong:" if wrong else "") +
                 "".join(f"\n        {case}" for case in wrong[:5]))


# ---------------------------------------------------------------------------
# Round trips, memory
# ---------------------------------------------------------------------------

def round_trips(client):
    images = [image for _, image in valid_images()]
    copy_in("COPY kept FROM STDIN (FORMAT binary)",
            copy_stream(*images, None))
    out = copy_out("COPY (SELECT f FROM kept) TO STDOUT (FORMAT binary)")
    checks.check(out == copy_stream(*images, None),
                 f"round trip: {len(images)} images and a NULL by COPY")
    client.run("TRUNCATE kept")
    for name, image in valid_images():
        rows = client.run(
            "SELECT $1::bloomfilter, $2::bytea::bloomfilter, f,"
            " f::text::bloomfilter, f::bytea, f::text"
            " FROM (SELECT $1::bloomfilter AS f) s", image, image)
        checks.check(rows == [[image] * 5 + [base64.b64encode(image)]],
                     f"round trip: {name}")
    checks.equal(client.run("SELECT $1::bloomfilter", None), [[None]],
                 "round trip: NULL")

    image = full_image("blocked")
    probe = "SELECT $1::bloomfilter @> $2::bigint"
    answers = [client.run(probe, image, struct.pack(">q", i))[0][0] == b"\1"
               for i in range(20)]
    ours = reference.Filter.read(image)
    checks.equal(answers, [ours.contains(i) for i in range(20)],
                 "probe of a filter that is a parameter")
    array = array_of(client, *images)
    checks.check(client.run("SELECT $1::bloomfilter[]", array)[0][0] == array,
                 "round trip: an array")


def memory():
    """What an input claims is not allocated before its length bears it out."""
    client = Client()           # whose peak is that of these inputs alone
    if not os.path.exists(f"/proc/{client.pid}/status"):
        print("        the server is elsewhere: memory is not measured")
        return
    claims = list(huge_claims())
    valid = altered(reference.Filter(10, layout="standard").image(),
                    m=LIMIT_BITS, capacity=448000000)
    use = ("SELECT f @> 1, bloom_info(f), bloom_cardinality(f), f::text, f,"
           " bloom_clear(f), f | f, f & f, f = f"
           " FROM (SELECT $1::bloomfilter AS f OFFSET 0) s")
    client.run(use, full_image("standard"))
    before = client.memory()
    must_refuse(client, "64 bytes that claim 2^32 bits", claims,
                ("parameter", "array", "cast", "text"))
    client.run(use, valid)
    grown = client.memory() - before
    checks.check(grown < 4 * MIB,
                 "60 or 64 bytes that claim 2^32 bits: the backend grew by"
                 f" {grown // 1024} kB")


def survival(client, started, witness):
    """A crash of any backend would have ended the witness's session."""
    checks.equal(witness.run("SELECT pg_postmaster_start_time()"), started,
                 "the server never stopped")
    checks.equal(client.run("SELECT 1 WHERE $1::bloomfilter @> 5",
                            full_image("blocked")), [[struct.pack(">i", 1)]],
                 "the session is still of use")


# ---------------------------------------------------------------------------
# Large filters
# ---------------------------------------------------------------------------

def past_2_31_bits(layout):
    """A filter of 2.3e9 bits, half full."""
    n, added, probes = 240000000, 120000000, 1000000
    query(f"""
        CREATE TABLE large AS
        SELECT bloom_agg(i, bloomfilter({n}, layout => '{layout}')) AS f
        FROM (SELECT generate_series(1, {added})::bigint AS i) s""")
    m, k, nset = map(int, query("""SELECT bits, hashes, bits_set
                                   FROM large, bloom_info(f)""").rows[0])
    checks.equal((m, k), reference.SIZE[layout](n, 0.01), f"{layout}: m, k")
    checks.check(m > 2 ** 31, f"{layout}: {m} bits are more than 2^31")

    refused, passed = map(int, query(f"""
        SELECT (SELECT count(*)
                FROM (SELECT generate_series(1, {added})::bigint AS i) s
                WHERE NOT (SELECT f::bytea::bloomfilter FROM large) @> i),
               (SELECT count(*)
                FROM (SELECT generate_series({added + 1}, {added + probes})
                             ::bigint AS i) s
                WHERE (SELECT f::bytea::bloomfilter FROM large) @> i)""")
                          .rows[0])
    checks.equal(refused, 0, f"{layout}, {m} bits: {added} elements, refused")
    rate = reference.theory(layout, m, k, added)
    limit = reference.bound(probes, rate)
    checks.check(passed <= limit, f"{layout}, {m} bits: {passed} of {probes}"
                 f" strangers pass, at most {limit:.0f}")

    # the last MiB too, as full as the rest
    half = m // 16
    low, high, last = map(int, query(f"""
        SELECT bit_count(substr(b, 61, {half})),
               bit_count(substr(b, 61 + {half})),
               bit_count(substr(b, length(b) - {MIB} + 1))
        FROM (SELECT f::bytea AS b FROM large OFFSET 0) s""").rows[0])
    checks.equal(low + high, nset, f"{layout}, {m} bits: set")
    checks.check(abs(high / low - 1) < 1e-3 and
                 abs(last / (8 * MIB) - nset / m) < 1e-2 * nset / m,
                 f"{layout}, {m} bits: {low} set in the lower half, {high} in"
                 f" the upper, {last} in the last MiB")


def main():
    with schema("test_binary"):
        query("CREATE TABLE kept (f bloomfilter)")
        client, witness = Client(), Client()
        started = witness.run("SELECT pg_postmaster_start_time()")
        for part in (round_trips, refusals, fuzz):
            checks.part(part, client)
        checks.part(memory)
        checks.part(survival, client, started, witness)
        client.close()
        witness.close()
    for layout in reference.LAYOUTS if SLOW else ():
        for part in (past_2_31_bits,):
            with schema("test_binary"):
                checks.part(part, layout)
    checks.close()


if __name__ == "__main__":
    main()
