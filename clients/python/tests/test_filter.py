"""Python's own: types, errors, numpy, and what the vectors do not reach."""
import collections
import datetime
import decimal
import enum
import ipaddress
import random
import unittest
import uuid

import bloomfilter_pg
from bloomfilter_pg import BloomFilter, FormatError, Infinity, KindError, _layouts

try:
    import numpy
except ImportError:
    numpy = None

UTC = datetime.timezone.utc
SAMPLES = {
    "integer": 42,
    "text": "SP-00042",
    "float": 0.5,
    "bytea": b"\0\1",
    "uuid": uuid.UUID(int=7),
    "boolean": True,
    "date": datetime.date(2024, 2, 29),
    "time": datetime.time(12, 30),
    "timestamp": datetime.datetime(2024, 2, 29, 12),
    "timestamptz": datetime.datetime(2024, 2, 29, 12, tzinfo=UTC),
    "timetz": datetime.time(12, 30, tzinfo=UTC),
    "inet": ipaddress.ip_address("::1"),
    "numeric": decimal.Decimal("1.50"),
    "integer[]": [1, None, 2],
    "(integer,text)": (1, "a"),
}


def filled(*keys, **options):
    bf = BloomFilter(100, **options)
    bf.update(keys)
    return bf


class Kinds(unittest.TestCase):
    def test_told_by_the_first_element(self):
        for kind, key in SAMPLES.items():
            bf = filled(key)
            self.assertEqual(bf.kind, kind)
            self.assertEqual(bf.info.element, kind)
            self.assertIn(key, bf)
            again = BloomFilter.from_bytes(bf.to_bytes())
            self.assertEqual(again.kind, kind)
            self.assertIn(key, again)

    def test_another_kind_is_an_error(self):
        for kind, key in SAMPLES.items():
            bf = filled(key)
            for other, probe in SAMPLES.items():
                if other == kind:
                    continue
                with self.assertRaises(TypeError, msg=f"{kind}, {other}"):
                    probe in bf
                with self.assertRaises(TypeError):
                    bf.contains_many([probe] * 20)
                with self.assertRaises(TypeError):
                    bf.add(probe)
                with self.assertRaises(TypeError):
                    bf.update([probe] * 20)
            self.assertEqual(bf.to_bytes(), filled(key).to_bytes())
            with self.assertRaises(TypeError):
                None in bf

    def test_a_list_of_mixed_kinds(self):
        with self.assertRaises(KindError):
            filled(1, 2).contains_many([1, True] * 20)
        with self.assertRaises(KindError):
            filled(*([1, "a"] * 20))

    def test_an_empty_filter_knows_the_kind_it_was_told(self):
        bf = BloomFilter(10, kind="uuid")
        with self.assertRaises(KindError):
            "a" in bf
        self.assertNotIn(uuid.UUID(int=1), bf)
        self.assertIsNone(bf.info.element)

    def test_kinds_that_cannot_be(self):
        for kind in "hash:jsonb", "hash:jsonb[]", "(integer,hash:public.citext)":
            with self.assertRaises(KindError):
                BloomFilter(10, kind=kind)
        for kind in ("", "int", "integer[", "(integer", "(integer,)", "enum:",
                     "(" * 500, "integer" + "[]" * 200, "enum:" + "x" * 512,
                     "text "):
            with self.assertRaises(ValueError, msg=kind):
                BloomFilter(10, kind=kind)
        self.assertEqual(BloomFilter(10, kind='enum:a."b ""c""[],("[]').kind,
                         'enum:a."b ""c""[],("[]')
        self.assertEqual(BloomFilter(10, kind="()").encode(()), b"")

    def test_subclasses(self):
        class Number(enum.IntEnum):
            ONE = 1
        self.assertIn(Number.ONE, filled(1, 2))
        point = collections.namedtuple("point", "x y")
        self.assertIn(point(1, "a"), filled((1, "a")))

        class Mood(enum.Enum):
            SAD = "sad"
            OK = 1
        bf = filled("sad", kind="enum:public.mood")
        self.assertIn(Mood.SAD, bf)
        with self.assertRaises(KindError):
            Mood.OK in bf
        with self.assertRaises(KindError):
            filled(Mood.SAD)

    def test_values_out_of_range(self):
        for bad in 2 ** 63, -2 ** 63 - 1:
            with self.assertRaises(OverflowError):
                filled(bad)
            with self.assertRaises(OverflowError):
                filled(1).contains_many([bad] * 20)
        with self.assertRaises(OverflowError):
            filled(decimal.Decimal("1e999999"))
        with self.assertRaises(ValueError):
            filled("\ud800")
        with self.assertRaises(ValueError):
            filled([[1], [2, 3]])
        with self.assertRaises(ValueError):
            filled("08:00:2b:01:02", kind="macaddr")
        with self.assertRaises(KindError):
            filled([])
        with self.assertRaises(KindError):
            filled(None)

    def test_numeric(self):
        bf = BloomFilter(10, kind="numeric")
        for text, want in (("1E+5", "100000"), ("-0", "0"), ("0E-9", "0"),
                           ("1.2300", "1.23"), ("-1E-7", "-0.0000001"),
                           ("1" * 40 + ".5", "1" * 40 + ".5"), ("sNaN", "NaN"),
                           ("-Infinity", "-Infinity"), ("100", "100")):
            self.assertEqual(bf.encode(decimal.Decimal(text)).decode(), want)

    def test_timestamptz_is_an_instant(self):
        berlin = datetime.timezone(datetime.timedelta(hours=1))
        self.assertIn(datetime.datetime(2024, 1, 1, 13, tzinfo=berlin),
                      filled(datetime.datetime(2024, 1, 1, 12, tzinfo=UTC)))
        bf = BloomFilter(10, kind="date")
        self.assertEqual(bf.encode(Infinity.POSITIVE), (2 ** 31 - 1).to_bytes(8, "little"))


class Parameters(unittest.TestCase):
    def test_errors(self):
        for bad in ({"capacity": 0}, {"capacity": -1}, {"capacity": 1.5},
                    {"capacity": 2 ** 54}, {"capacity": 10 ** 10}, {"fpr": 0},
                    {"fpr": 1}, {"fpr": 1e-7}, {"fpr": float("nan")},
                    {"layout": "cuckoo"}, {"hash": "md5"}, {"key": b"k"},
                    {"hash": "blake2b", "key": b""},
                    {"hash": "blake2b", "key": b"x" * 33}, {"hashes": 0},
                    {"hashes": 17}, {"layout": "standard", "hashes": 65}):
            with self.assertRaises(ValueError, msg=str(bad)):
                BloomFilter(**{"capacity": 10, **bad})

    def test_an_empty_filter_takes_no_memory(self):
        bf = BloomFilter(100_000_000)
        self.assertEqual(len(bf.to_bytes()), 60)
        self.assertEqual(bf.info.bits_set, 0)
        self.assertNotIn("x", bf)
        self.assertEqual(bf.contains_many(["x"] * 20), [False] * 20)
        self.assertEqual(bf.contains_many([]), [])
        bf.update([])
        self.assertEqual(len(bf.to_bytes()), 60)

    def test_rate(self):
        for layout in "blocked", "standard":
            bf = BloomFilter(10000, 0.02, layout)
            bf.update(range(10000))
            hits = sum(bf.contains_many(list(range(10000, 110000))))
            self.assertTrue(1600 < hits < 2400, hits)
            self.assertTrue(9700 < bf.info.cardinality < 10300)
            self.assertTrue(0.016 < bf.info.expected_fpr < 0.024)


class Images(unittest.TestCase):
    def test_types(self):
        image = filled(1, 2).to_bytes()
        for kind in bytes, bytearray, memoryview:
            self.assertIn(1, BloomFilter.from_bytes(kind(image)))
        with self.assertRaises(TypeError):
            BloomFilter.from_bytes("QkYB")
        source = bytearray(image)
        bf = BloomFilter.from_bytes(source)
        source[60:] = bytes(len(source) - 60)
        self.assertIn(1, bf)

    def test_text(self):
        bf = filled("a", "b")
        self.assertEqual(BloomFilter.from_text(bf.to_text()).to_bytes(), bf.to_bytes())
        for text in "", "Qk", "Qk==Qk==", bf.to_text() + "\n", "é" * 80, bf.to_text()[:-4]:
            with self.assertRaises(FormatError, msg=text):
                BloomFilter.from_text(text)

    def test_every_flipped_bit(self):
        image = filled(*range(20), hash="blake2b", key=b"key").to_bytes()
        for bit in range(8 * len(image)):
            bad = bytearray(image)
            bad[bit >> 3] ^= 1 << (bit & 7)
            with self.assertRaises(FormatError):
                BloomFilter.from_bytes(bad)

    def test_every_length(self):
        image = filled(1).to_bytes()
        for length in range(len(image)):
            with self.assertRaises(FormatError):
                BloomFilter.from_bytes(image[:length])

    def test_adding_to_what_was_read(self):
        for options in {}, {"layout": "standard", "hash": "blake2b"}:
            whole = filled(*range(200), **options)
            half = filled(*range(100), **options)
            image = half.to_bytes()
            bf = BloomFilter.from_bytes(image)
            bf.update(range(100, 200))
            self.assertEqual(bf.to_bytes(), whole.to_bytes())
            self.assertEqual(half.to_bytes(), image)
            self.assertEqual(bf.to_bytes(), bf.to_bytes())


@unittest.skipIf(numpy is None, "no numpy")
class Arrays(unittest.TestCase):
    def setUp(self):
        self.numpy = _layouts.np

    def tearDown(self):
        _layouts.np = self.numpy

    def test_integers(self):
        bf = filled(*range(-50, 50))
        for kind in numpy.int8, numpy.int16, numpy.int32, numpy.int64:
            keys = numpy.arange(-60, 60).astype(kind)
            answers = bf.contains_many(keys)
            self.assertEqual(answers.dtype, bool)
            self.assertEqual(answers.tolist(), [int(key) in bf for key in keys])
            self.assertEqual([key in bf for key in keys], answers.tolist())
        with self.assertRaises(OverflowError):
            bf.contains_many(numpy.array([2 ** 63], numpy.uint64))
        self.assertEqual(bf.contains_many(numpy.array([49], numpy.uint64)).tolist(), [True])

    def test_kinds_of_arrays(self):
        day = numpy.array(["2024-02-29", "1970-01-01"], "datetime64[D]")
        moment = numpy.array(["2024-02-29T12:00:00.000001"], "datetime64[us]")
        for array, items in (
                (numpy.array([0.5, -0.0, numpy.nan, numpy.inf]), None),
                (numpy.array([0.5, 0.1], numpy.float32), None),
                (numpy.array([True, False]), None),
                (numpy.array(["a", "bc"]), None),
                (day, day.tolist()), (moment, moment.tolist()),
                (moment.astype("datetime64[ns]"), moment.tolist()),
                (numpy.array([(1, "a"), None], object)[:1], [(1, "a")])):
            bf = BloomFilter(100)
            bf.update(array)
            self.assertEqual(bf.to_bytes(), filled(
                *(array.tolist() if items is None else items)).to_bytes())
            self.assertTrue(bf.contains_many(array).all())

    def test_mismatches(self):
        bf = filled(*range(20))
        for array in (numpy.array([0.5]), numpy.array([True]), numpy.array(["a"]),
                      numpy.array(["2024-01-01"], "datetime64[ns]"),
                      numpy.array([b"a"])):
            with self.assertRaises(KindError, msg=str(array.dtype)):
                bf.contains_many(array)
        with self.assertRaises(ValueError):
            bf.contains_many(numpy.zeros((2, 2), int))
        bf = filled(datetime.datetime(2024, 1, 1))
        for text in "NaT", "2024-01-01T00:00:00.000000001":
            with self.assertRaises(ValueError):
                bf.contains_many(numpy.array([text], "datetime64[ns]"))

    def test_with_and_without(self):
        r = random.Random(1)
        keys = [r.getrandbits(60) for _ in range(3000)]
        for layout in "blocked", "standard":
            for fpr in 0.3, 0.01, 0.0001, 0.000001:
                for name in "xxh3", "blake2b":
                    with_numpy = BloomFilter(1000, fpr, layout, name)
                    with_numpy.update(keys[:1000])
                    answers = with_numpy.contains_many(keys)
                    _layouts.np = None
                    without = BloomFilter(1000, fpr, layout, name)
                    without.update(keys[:1000])
                    self.assertEqual(without.to_bytes(), with_numpy.to_bytes())
                    self.assertEqual(without.contains_many(keys), answers)
                    _layouts.np = self.numpy


class Names(unittest.TestCase):
    def test_all(self):
        for name in bloomfilter_pg.__all__:
            self.assertTrue(hasattr(bloomfilter_pg, name))


if __name__ == "__main__":
    unittest.main()
