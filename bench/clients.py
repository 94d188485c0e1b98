#!/usr/bin/python3
"""The clients against a built-in set: nanoseconds a probe, and memory.

    bench/clients.py [KEYS]         1,000,000 unless it is said

Needs no server.  clients.mjs is its other half, in JavaScript.
"""
import gc
import os
import random
import resource
import subprocess
import sys
import time
import tracemalloc

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(TOP, "clients", "python"))

# pylint: disable=wrong-import-position
from bloomfilter_pg import BloomFilter          # noqa: E402

try:
    import numpy
except ImportError:
    numpy = None

KEYS = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
PROBES = 200_000
ROUNDS = 3


def best(run, n):
    """Nanoseconds for each of n, of the best round."""
    times = []
    for _ in range(ROUNDS):
        gc.collect()
        began = time.perf_counter_ns()
        run()
        times.append(time.perf_counter_ns() - began)
    return min(times) / n


def traced(make):
    """What make returns, and the memory it took."""
    gc.collect()
    tracemalloc.start()
    made = make()
    size = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return made, size


def probe_each(held, keys):
    for key in keys:
        key in held             # pylint: disable=pointless-statement


def line(what, nanoseconds, size=None):
    print(f"  {what:<44}{nanoseconds:8.0f} ns" if nanoseconds is not None else
          f"  {what:<44}{'':8}   ", f"{size / 1e6:10.1f} MB" if size else "", flush=True)


def measure(kind, key_of):
    keys = [key_of(i) for i in range(KEYS)]
    r = random.Random(1)
    absent = [key_of(KEYS + i) for i in range(PROBES // 2)]
    probes = [keys[r.randrange(KEYS)] for _ in range(PROBES // 2)] + absent
    r.shuffle(probes)
    print(f"\nPython, {KEYS:,} {kind} keys, half of the probes absent")
    # keys of its own: that is what a set has to hold
    built, size = traced(lambda: {key_of(i) for i in range(KEYS)})
    line("set", best(lambda: probe_each(built, probes), PROBES), size)
    del built
    for name, layout in ("xxh3", "blocked"), ("xxh3", "standard"), ("blake2b", "blocked"):
        bf = BloomFilter(KEYS, 0.01, layout, name)
        began = time.perf_counter_ns()
        bf.update(keys)
        update = (time.perf_counter_ns() - began) / KEYS
        data = bf.to_bytes()
        bf, size = traced(lambda: BloomFilter.from_bytes(bytes(bytearray(data))))
        what = f"BloomFilter, {layout}, {name}"
        line(f"{what}: in", best(lambda: probe_each(bf, probes), PROBES), size)
        line(f"{what}: a list", best(lambda: bf.contains_many(probes), PROBES))
        if numpy is not None:
            array = numpy.array(probes)
            line(f"{what}: an array", best(lambda: bf.contains_many(array), PROBES))
        line(f"{what}: update", update)


measure("text", lambda i: f"SP-{i:010}")
measure("integer", lambda i: i * 7919 + 2 ** 40)
print(f"\n  peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3:.0f} MB"
      f", Python {sys.version.split()[0]}"
      f", numpy {numpy.__version__ if numpy else 'missing'}", flush=True)
subprocess.run(["node", "--expose-gc", os.path.join(TOP, "bench", "clients.mjs"),
                str(KEYS)], check=True)
