"""The refresher."""
import threading
import time
import unittest

from bloomfilter_pg import BloomFilter, FormatError, KindError, Refresher


def image(*keys):
    bf = BloomFilter(1000)
    bf.update(keys)
    return bf.to_bytes()


class Source:
    """A table with a filter in it."""

    def __init__(self, *keys):
        self.etag = "1"
        self.data = image(*keys)
        self.fetched = 0
        self.error = None

    def set(self, etag, *keys):
        self.etag, self.data = etag, image(*keys)

    def __call__(self, etag):
        if self.error:
            raise self.error
        if etag == self.etag:
            return None
        self.fetched += 1
        return self.etag, self.data


class Refreshing(unittest.TestCase):
    def test_only_when_changed(self):
        source = Source("a")
        refresher = Refresher(source)
        self.assertTrue(refresher.maybe("b"))       # nothing there yet
        self.assertTrue(refresher.refresh())
        self.assertFalse(refresher.refresh())
        self.assertEqual(source.fetched, 1)
        self.assertTrue(refresher.maybe("a"))
        self.assertFalse(refresher.maybe("b"))
        before = refresher.filter
        source.set("2", "a", "b")
        self.assertTrue(refresher.refresh())
        self.assertEqual(refresher.etag, "2")
        self.assertTrue(refresher.maybe("b"))
        self.assertNotIn("b", before)

    def test_errors_leave_the_old_one(self):
        source = Source("a")
        refresher = Refresher(source, max_age=0.05)
        refresher.refresh()
        source.error = OSError("no database")
        with self.assertRaises(OSError):
            refresher.refresh()
        self.assertFalse(refresher.maybe("b"))
        time.sleep(0.06)
        self.assertTrue(refresher.maybe("b"))       # too old to say no
        source.error = None
        refresher.refresh()
        self.assertFalse(refresher.maybe("b"))
        source.etag, source.data = "2", source.data[:-1]
        with self.assertRaises(FormatError):
            refresher.refresh()
        self.assertEqual(refresher.etag, "1")
        self.assertFalse(refresher.maybe("b"))

    def test_nothing_at_all(self):
        refresher = Refresher(lambda etag: None)
        with self.assertRaises(ValueError):
            refresher.refresh()
        self.assertTrue(refresher.maybe("a"))

    def test_added_keys_outlive_a_swap(self):
        source = Source("a")
        refresher = Refresher(source, keep=0.05)
        refresher.add("early")
        refresher.refresh()
        refresher.add("new")
        self.assertTrue(refresher.maybe("early") and refresher.maybe("new"))
        source.set("2", "a", "c")
        refresher.refresh()
        self.assertTrue(refresher.maybe("early") and refresher.maybe("new"))
        self.assertFalse(refresher.maybe("other"))
        with self.assertRaises(KindError):
            refresher.add(5)
        time.sleep(0.06)
        source.set("3", "a", "new")
        refresher.refresh()
        self.assertTrue(refresher.maybe("new"))
        self.assertFalse(refresher.maybe("early"))

    def test_threads(self):
        source = Source(*(f"k{i}" for i in range(200)))
        errors = []
        refresher = Refresher(source, on_error=errors.append)
        refresher.refresh()
        stop = threading.Event()
        wrong = []

        def probe():
            while not stop.is_set():
                wrong.extend(i for i in range(200) if not refresher.maybe(f"k{i}"))
        threads = [threading.Thread(target=probe) for _ in range(2)]
        for thread in threads:
            thread.start()
        for i in range(20):
            source.set(str(i + 2), *(f"k{j}" for j in range(200 + i)))
            refresher.add(f"new{i}")
            refresher.refresh()
        stop.set()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])
        self.assertTrue(all(refresher.maybe(f"new{i}") for i in range(20)))

    def test_in_the_background(self):
        source = Source("a")
        errors = []
        refresher = Refresher(source, on_error=errors.append)
        refresher.start(0.01)
        with self.assertRaises(RuntimeError):
            refresher.start(1)
        self.wait(lambda: refresher.filter is not None)
        source.error = OSError("gone")
        self.wait(lambda: errors)
        source.error = None
        source.set("2", "b")
        self.wait(lambda: refresher.etag == "2")
        refresher.stop()

    def wait(self, done):
        until = time.monotonic() + 10
        while not done():
            self.assertLess(time.monotonic(), until)
            time.sleep(0.005)


if __name__ == "__main__":
    unittest.main()
