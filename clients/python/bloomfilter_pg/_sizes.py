"""Sizes, rates and estimates, as the server computes them."""
import functools
import math
from fractions import Fraction
from typing import Callable, List, Optional, Tuple

MAX_BITS = 2 ** 32
MAX_CAPACITY = 2 ** 53
MIN_FPR = {"standard": 1e-6, "blocked": 1e-6, "counting": 1e-6, "cuckoo": 1e-8}
BLOCK = 512


def nearest(x: float) -> int:
    """C's round, for what is not negative."""
    return math.floor(x + 0.5)


def lowest(good: Callable[[int], bool], low: int) -> int:
    """The first number from low on that is good; all after it are."""
    step = 1
    high = low
    while not good(high):
        low = high + 1
        high += step
        step *= 2
    while low < high:
        middle = (low + high) // 2
        if good(middle):
            high = middle
        else:
            low = middle + 1
    return low


# ---------------------------------------------------------------------------
# standard (and counting)
# ---------------------------------------------------------------------------

def standard_ideal(m: float, k: int, n: float) -> float:
    return float((-math.expm1(-k * n / m)) ** k)


def standard_rate(m: float, k: int, n: float) -> float:
    return min(1.0, standard_ideal(m, k, n) + 16.0 * n / (m * m))


def standard_size(n: float, p: float) -> Tuple[int, int]:
    whole = math.ceil(-n * math.log(p) / (math.log(2) * math.log(2)))
    start = (whole + 7) // 8
    m = start * 8
    if m > MAX_BITS:
        return m, 1
    k = min(64, max(1, nearest(m / n * math.log(2))))
    if n < 5000 or p < 0.001:
        target = 1.003 * max(p, standard_ideal(m, k, n))
        m = 8 * lowest(lambda size: standard_ideal(8 * size, k, n)
                       + 16.0 * n / (64.0 * size * size) <= target, start)
    return m, k


# ---------------------------------------------------------------------------
# blocked
# ---------------------------------------------------------------------------

def stirling(k: int, i: int) -> int:
    row = [1]
    for _ in range(k):
        row = [(row[j - 1] if j > 0 else 0) + (j * row[j] if j < len(row) else 0)
               for j in range(len(row) + 1)]
    return row[i]


@functools.lru_cache(maxsize=None)
def blocked_terms(k: int) -> List[Tuple[float, float]]:
    """For each l: c(k, l) and 1 - (1 - l/512)^k"""
    terms = []
    distinct = []
    for i in range(k + 1):
        ways = 1
        for j in range(i):
            ways *= BLOCK - j
        distinct.append(Fraction(stirling(k, i) * ways, BLOCK ** k))
    for at in range(k + 1):
        c = sum((distinct[i] * math.comb(i, at)
                 for i in range(max(at, 1), k + 1)), Fraction(0))
        terms.append((float(-c if at % 2 else c),
                      float(1 - (1 - Fraction(at, BLOCK)) ** k)))
    return terms


def blocked_rate(blocks: float, k: int, n: float) -> float:
    rate = math.fsum(
        c * math.exp(n * math.log1p(-hit / blocks)) if hit < blocks else
        (c if n == 0 else 0.0)
        for c, hit in blocked_terms(k))
    return min(1.0, max(0.0, rate))


def blocked_size(n: float, p: float) -> Tuple[int, int]:
    def good(blocks: int) -> bool:
        return any(blocked_rate(blocks, k, n) <= p for k in range(16, 0, -1))

    limit = MAX_BITS // BLOCK
    if not good(limit):
        return MAX_BITS + BLOCK, 1
    blocks = lowest(good, 1)
    met = [k for k in range(1, 17) if blocked_rate(blocks, k, n) <= p]
    best = nearest(-math.log2(p))
    below = [k for k in met if k <= best]
    return blocks * BLOCK, max(below) if below else min(met)


def size(layout: str, n: int, p: float, hashes: Optional[int]) -> Tuple[int, int]:
    """m and k for n elements at rate p."""
    bits, best = (standard_size if layout == "standard" else blocked_size)(
        float(n), p)
    if bits > MAX_BITS:
        raise ValueError("a filter is at most 512 MiB")
    return bits, best if hashes is None else hashes


# ---------------------------------------------------------------------------
# Any layout
# ---------------------------------------------------------------------------

def cuckoo_buckets(bits: int, f: int) -> int:
    return (bits - 512) // (4 * f - 4) // 2 * 2


def cardinality(layout: str, bits: int, hashes: int, nset: int) -> float:
    """About how many distinct elements set so many bits."""
    if nset == 0:
        return 0.0
    if layout == "cuckoo":
        return float(nset)
    m = bits // 4 if layout == "counting" else bits
    if nset >= m:
        return math.inf
    if layout == "blocked":
        blocks = m // BLOCK
        return math.log1p(-nset / m) / math.log1p(
            math.expm1(hashes * math.log1p(-1 / BLOCK)) / blocks)
    return -m / hashes * math.log1p(-nset / m)


def rate(layout: str, bits: int, hashes: int, n: float) -> float:
    """The false-positive rate with n distinct elements."""
    if n == 0:
        return 0.0
    if math.isinf(n):
        return 1.0
    if layout == "blocked":
        return blocked_rate(bits // BLOCK, hashes, n)
    if layout == "cuckoo":
        buckets = cuckoo_buckets(bits, hashes)
        return -math.expm1(2 * n / buckets * math.log1p(-1 / (2 ** hashes - 1)))
    return standard_rate(bits // 4 if layout == "counting" else bits, hashes, n)
