#!/usr/bin/python3
"""Filters that grow, from 100, 1,000 and 10,000 elements to a million.

At every doubling: nothing is lost, and of T probes of absent values at most
T q + 3 sqrt(T q (1 - q)) pass, q being the rate asked for.  At a million the
space is held against one filter that was sized right.
"""
from harness import Checks, query, schema
from reference import bound

GOAL = 1000000
RATE = 0.01
PROBES = 100000
STARTS = (100, 1000, 10000)
LAYOUTS = ("standard", "blocked", "cuckoo")

checks = Checks()


def loaded(name):
    """In memory for a whole query: a probe of one on disk reads it anew."""
    return f"(SELECT filter::bytea::bloomfilter FROM f WHERE name = '{name}')"


def numbers(*row):
    return [float(x) for x in row]


def state(name, n):
    """Elements lost, strangers that pass, and what it says about itself."""
    (row,) = query(f"""
        SELECT (SELECT count(*) FROM generate_series(1, {n}) i
                WHERE NOT {loaded(name)} @> i),
               (SELECT count(*) FROM generate_series(1, {PROBES}) i
                WHERE {loaded(name)} @> -i),
               layers, bits, capacity, cardinality, expected_fpr
        FROM f, bloom_info(filter) WHERE name = '{name}'""").rows
    return numbers(*row)


def grow(layout, start):
    """Doubled with bloom_add_all, as a stored filter is."""
    name = f"{layout} from {start}"
    template = (f"bloomfilter({start}, {RATE}, layout => '{layout}',"
                " expansion => 2)")
    query(f"INSERT INTO f VALUES ('{name}', {template})")
    n = 0
    worst = 0
    lost = 0
    within = True
    honest = True
    near = True
    while n < GOAL:
        more = min(GOAL, max(start, 2 * n))
        warnings = query(f"""
            UPDATE f SET filter = bloom_add_all(filter,
                ARRAY(SELECT generate_series({n + 1}, {more})))
            WHERE name = '{name}'""").warnings
        n = more
        missing, passed, layers, bits, capacity, cardinality, expected = \
            state(name, n)
        lost += missing
        worst = max(worst, passed / PROBES)
        within &= passed <= bound(PROBES, RATE)
        honest &= (expected <= 1.03 * RATE and not warnings and
                   passed <= bound(PROBES, expected))
        near &= n < 10000 or abs(cardinality / n - 1) < 0.02
    checks.equal(int(lost), 0, f"{name}: lost on the way to {GOAL}")
    checks.check(within, f"{name}: within the bound at every doubling,"
                 f" at most {worst:.3%} of {RATE:.0%}")
    checks.check(honest, f"{name}: expected_fpr is right at every doubling,"
                 f" {expected:.3%} at last, and nothing warns")
    checks.check(near, f"{name}: cardinality within 2% from 10,000 on")

    right = float(query(f"SELECT bits FROM bloom_sizing({GOAL}, {RATE})"
                        f" WHERE layout = '{layout}'").value)
    space = (f"{name}: {layers:.0f} layers for {capacity:.0f} take"
             f" {bits / GOAL:.2f} bits an element, {bits / right:.2f} x one"
             " sized right")
    if layout != "cuckoo" and start >= 1000:
        checks.check(bits <= 2.2 * right, f"{space}, at most 2.2 x")
    else:
        print("        " + space, flush=True)

    # at once: layers of the same sizes, and all in it
    query(f"""INSERT INTO f SELECT '{name}, at once', bloom_agg(i, {template})
              FROM generate_series(1, {GOAL}) i""")
    missing, passed, layers_at_once, bits_at_once, *_ = \
        state(f"{name}, at once", GOAL)
    checks.check(missing == 0 and passed <= bound(PROBES, RATE) and
                 (layers_at_once, bits_at_once) == (layers, bits),
                 f"{name}: bloom_agg makes the same of it at once,"
                 f" {passed / PROBES:.3%} pass")


def main():
    for layout in LAYOUTS:
        for start in STARTS:
            with schema("test_scalable"):
                query("CREATE TABLE f (name text, filter bloomfilter)")
                checks.part(grow, layout, start)
    checks.close()


if __name__ == "__main__":
    main()
