#!/usr/bin/python3
"""The figures of docs/theory.md that no SQL can compute in a line, by
computations that share nothing with the server's."""
import os
import re
from fractions import Fraction
from math import comb, exp, log, perm

import reference
from harness import Checks

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")

checks = Checks()

with open(os.path.join(TOP, "docs", "theory.md"), encoding="utf-8") as doc:
    TEXT = " ".join(doc.read().split())


def says(words, what):
    """The document has these words."""
    checks.check(words in TEXT, f"{what}: {words}")


def standard(bits, k):
    """Rate at so many bits an element."""
    return (1 - exp(-k / bits)) ** k


def blocked(bits, k, block):
    """Rate of a large filter with blocks of so many bits, with the number of
    elements in a block Poisson distributed: inclusion and exclusion over the
    probe's distinct bits that are unset."""
    rate = 0.0
    for l in range(k + 1):
        weight = sum(Fraction((-1) ** l * reference.stirling2(k, i) * perm(block, i) *
                              comb(i, l), block ** k)
                     for i in range(max(l, 1), k + 1))
        rate += float(weight) * exp(-block / bits * (1 - (1 - l / block) ** k))
    return rate


def putze(bits, k, block):
    """The paper's: in a block with j elements the rate is that of a filter of
    the block's size."""
    load, chance, rate = block / bits, exp(-block / bits), 0.0
    for j in range(2000):
        rate += chance * (1 - (1 - 1 / block) ** (k * j)) ** k
        chance *= load / (j + 1)
    return rate


def one_block():
    bits = 9585064 / 10 ** 6
    rates = {k: blocked(bits, k, 512) for k in range(1, 17)}
    best = min(rates, key=rates.get)
    says(f"a blocked one has {rates[best]:.2%} at best, with k = {best}",
         "blocked at 9.585 bits")
    low = {}
    for p in (0.01, 0.001):
        m, k = reference.SIZE["blocked"](10 ** 6, p)
        exact = reference.theory("blocked", m, k, 10 ** 6)
        low[p] = 1 - putze(m / 10 ** 6, k, 512) / exact
        checks.check(abs(blocked(m / 10 ** 6, k, 512) / exact - 1) < 1e-3,
                     f"Poisson and binomial loads give one rate at p = {p}")
    says(f"which is {low[0.01]:.1%} too low at 1% and {low[0.001]:.1%} at 0.1%",
         "the paper's formula")


def one_word():
    for bits, text in ((16, "{:.2%} at 16 bits an element"), (8, "{:.1%} at 8 bits")):
        says(text.format(blocked(bits, 4, 64)), "words of 64 bits")
    says(f"where the best standard filter has {min(standard(16, k) for k in range(1, 20)):.3%}",
         "standard at 16 bits")
    says(f"where that has {min(standard(8, k) for k in range(1, 20)):.1%}",
         "standard at 8 bits")


def double_hashing():
    """The bound on the excess, over all progressions of a small filter: every
    pair of one element and one probe, exactly, for n = 1."""
    for m, k in ((16, 3), (48, 5), (64, 7), (128, 7)):
        steps = range(1, m, 2)
        sets = [frozenset((h1 + i * h2) % m for i in range(k))
                for h1 in range(m) for h2 in steps]
        # by symmetry the element may start at 0
        elements = [frozenset(i * h2 % m for i in range(k)) for h2 in steps]
        passed = sum(probe <= element for element in elements for probe in sets)
        rate = passed / (len(elements) * len(sets))
        theory = (1 - exp(-k / m)) ** k
        checks.check(theory < rate <= theory + 16 / m ** 2,
                     f"double hashing, m = {m}, k = {k}, n = 1: {rate:.5f}, more than"
                     f" {theory:.5f} by at most 16 n / m^2 = {16 / m ** 2:.5f}")


def seeds():
    """The figures that the papers' formulas give, as they are printed."""
    bits = 9.585064
    table = re.search(r"\| p in % \|([^\n]*?)\| ```sql", TEXT)
    ks = re.search(r"\| k \|([\d| ]*)\| \|-", TEXT)
    values = [float(x) for x in table.group(1).split("|")]
    numbers = [int(x) for x in ks.group(1).split("|") if x.strip()]
    checks.equal(values, [round(100 * standard(bits, k), 2) for k in numbers],
                 "the table of k")
    checks.check(abs(log(2) * bits - 6.64) < 0.005, "k = 6.64 at 9.585 bits")


def main():
    for part in (one_block, one_word, double_hashing, seeds):
        checks.part(part)
    checks.close()


if __name__ == "__main__":
    main()
