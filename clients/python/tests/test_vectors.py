"""The golden vectors of test/vectors.txt."""
import json
import os
import unittest

from bloomfilter_pg import BloomFilter, FormatError, _layouts
from vector_values import decode

PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                    "..", "..", "..", "test", "vectors.txt")


def lines():
    with open(PATH, encoding="utf-8") as file:
        for line in file:
            if not line.startswith("#"):
                word, rest = line.rstrip("\n").split(" ", 1)
                yield word, rest


def unhex(text):
    return bytes.fromhex("" if text == "-" else text)


def images():
    """name, options, image, members, strangers"""
    found = []
    for word, rest in lines():
        if word == "image":
            name, options, image = rest.split(" ")
            found.append((name, json.loads(options), unhex(image), [], []))
        elif word in ("yes", "no"):
            _, value = rest.split(" ", 1)
            found[-1][3 if word == "yes" else 4].append(
                decode(found[-1][1]["kind"], json.loads(value)))
    return found


def build(options):
    return BloomFilter(options["capacity"], options["fpr"], options["layout"],
                       options["hash"],
                       bytes.fromhex(options.get("key", "")) or None,
                       options.get("hashes"), options["kind"])


class Vectors(unittest.TestCase):
    def setUp(self):
        self.numpy = _layouts.np

    def tearDown(self):
        _layouts.np = self.numpy

    def test_digests(self):
        count = 0
        for word, rest in lines():
            if word != "digest":
                continue
            name, key, digest, data, kind, value = rest.split(" ", 5)
            kind = kind.replace("\\u0020", " ")
            bf = BloomFilter(1, hash=name, key=unhex(key) or None, kind=kind)
            value = decode(kind, json.loads(value))
            self.assertEqual(bf.encode(value), unhex(data), rest)
            self.assertEqual(bf.digest(value), unhex(digest), rest)
            count += 1
        self.assertGreater(count, 100)

    def test_images(self):
        for name, _, image, members, strangers in images():
            bf = BloomFilter.from_bytes(image)
            keys = members + strangers
            answers = [True] * len(members) + [False] * len(strangers)
            self.assertEqual([key in bf for key in keys], answers, name)
            self.assertEqual(bf.contains_many(keys), answers, name)
            self.assertEqual(bf.to_bytes(), image, name)

    def test_built(self):
        for name, options, image, members, _ in images():
            if options["build"]:
                bf = build(options)
                bf.update(members)
                self.assertEqual(bf.to_bytes(), image, name)
                bf = build(options)
                for key in members:
                    bf.add(key)
                self.assertEqual(bf.to_bytes(), image, name)

    def test_bad(self):
        count = 0
        for word, rest in lines():
            if word == "bad":
                what, image = rest.split(" ")
                with self.assertRaises(FormatError, msg=what):
                    BloomFilter.from_bytes(unhex(image))
                count += 1
        self.assertGreater(count, 40)

    def test_without_numpy(self):
        _layouts.np = None
        self.test_images()
        self.test_built()
        self.test_bad()


if __name__ == "__main__":
    unittest.main()
