"""The main job of a Bloom filter, measured on real data.

Run by scripts/quickstart, which starts the server that psql finds here:

    quickstart.py WORDS MISSPELLINGS

WORDS has a word a line; MISSPELLINGS is codespell's dictionary, with lines
"wrong->right, ...".  Exits with 1 on any wrong "no", differing join result or
false-positive rate beyond its bound.
"""

import json
import math
import random
import re
import statistics
import subprocess
import sys

# What the textbook filter must give, to the bit: (keys, rate) -> m, k, measured
PUBLISHED = {
    ("product", 0.01): (47928, 7, 950 / 94999),
    ("discount", 0.01): (9585064, 7, 0.00995),
    ("discount", 0.001): (14377592, 10, 0.00090),
    ("loaded_twice", 0.01): (9585064, 7, 0.15715),
}

failures = []


def check(holds, failure):
    if not holds:
        failures.append(failure)


# ---------------------------------------------------------------------------
# The server
# ---------------------------------------------------------------------------


def psql(*statements, stdin=""):
    """Run statements; return what they print and their warnings."""
    command = ["psql", "-XqAt", "-F", "\t", "-v", "ON_ERROR_STOP=1"]
    for statement in statements:
        command += ["-c", statement]
    done = subprocess.run(command, input=stdin, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode != 0:
        sys.exit(f"{done.stderr}in: {statements[-1]}")
    return done.stdout.rstrip("\n"), done.stderr.strip()


def number(field):
    try:
        return int(field)
    except ValueError:
        return float(field)


def numbers(query):
    """The one row of a query."""
    return [number(field) for field in psql(query)[0].split("\t")]


def load(table, lines):
    psql(f"COPY {table} FROM STDIN", stdin="".join(f"{line}\n" for line in lines))


# ---------------------------------------------------------------------------
# Output
# ---------------------------------------------------------------------------


def say(text=""):
    print(text, flush=True)


def heading(text):
    say(f"\n{text}\n" + "-" * len(text))


def print_table(rows, widths):
    """The first column is left-aligned, the others right."""
    for first, *others in rows:
        line = f"  {first:{widths[0]}}"
        line += "".join(f"{cell:>{width}}" for cell, width in zip(others, widths[1:]))
        say(line.rstrip())


def size(nbytes):
    if nbytes < 2**20:
        return f"{nbytes / 2**10:.1f} KiB"
    return f"{nbytes / 2**20:.2f} MiB"


def percent(rate, digits):
    return f"{100 * rate:.{digits}f}%"


# ---------------------------------------------------------------------------
# A filter on trial
# ---------------------------------------------------------------------------


class Trial:
    """A filter of some keys, asked for each of them and for strangers.

    members and strangers are columns, as "table.column"; capacity is the
    number of members unless it is given.
    """

    def __init__(self, layout, rate, members, strangers, capacity=None):
        self.textbook = layout == "textbook"
        self.rate = rate
        self.source, key = members.split(".")
        others, other = strangers.split(".")
        capacity = capacity or f"(SELECT count(*) FROM {self.source})"
        options = ", layout => 'standard', hash => 'blake2b'" if self.textbook else ""
        output, self.warning = psql(f"""
            WITH built AS MATERIALIZED (
                SELECT bloom_agg({key}, bloomfilter({capacity}, {rate}{options})) AS filter
                FROM {self.source})
            SELECT i.bits, i.hashes, i.capacity, i.fill, i.expected_fpr, i.bytes,
                   (SELECT count(*) FROM {self.source}),
                   (SELECT count(*) FROM {self.source}
                    WHERE NOT (SELECT filter FROM built) @> {key}),
                   (SELECT count(*) FROM {others}),
                   (SELECT count(*) FROM {others}
                    WHERE (SELECT filter FROM built) @> {other})
            FROM built, bloom_info(filter) AS i""")
        (self.bits, self.hashes, self.capacity, self.fill, self.predicted, self.bytes,
         self.members, self.refused, self.strangers, self.passed) = map(
             number, output.split("\t"))
        self.stopped = self.strangers - self.passed
        self.measured = self.passed / self.strangers
        self.name = "textbook (standard, BLAKE2b)" if self.textbook else "default (blocked, XXH3)"
        self.check()

    def check(self):
        name = f"{self.name} filter of {self.source} at {self.rate}"
        check(self.refused == 0, f"the {name} refused {self.refused} of its own keys")
        check_bound(self.passed, self.strangers, max(self.rate, self.theory()), name)
        if self.textbook:
            bits, hashes, measured = PUBLISHED[self.source, self.rate]
            check((self.bits, self.hashes) == (bits, hashes)
                  and abs(self.measured - measured) <= 0.000005,
                  f"the {name} is not the published one")

    def theory(self):
        """The rate to expect, where it may exceed the one asked for."""
        if self.textbook:
            return (-math.expm1(-self.hashes * self.members / self.bits))**self.hashes
        return self.predicted if self.members > self.capacity else 0


def check_bound(passed, strangers, rate, name):
    """Chance may add three standard deviations to the rate."""
    bound = strangers * rate + 3 * math.sqrt(strangers * rate * (1 - rate))
    check(passed <= bound, f"{passed} of {strangers} strangers passed the {name}: "
                           f"more than {bound:.0f}")


# ---------------------------------------------------------------------------
# The main job
# ---------------------------------------------------------------------------


def products():
    heading("5,000 products; a bot asks for 94,999 codes that do not exist")
    for table, numbers_of in ("product", "1, 5000"), ("bogus", "5001, 99999"):
        psql(f"""CREATE TABLE {table} AS
                     SELECT format('SP-%s', lpad(i::text, 5, '0')) AS code
                     FROM generate_series({numbers_of}) AS i""")
    rows = [("", "answered", "reach the", "real codes", "of 1,000 bogus", "size of"),
            ("", '"certainly not"', "database", "refused", "requests/s", "filter")]
    for layout in "textbook", "default":
        trial = Trial(layout, 0.01, "product.code", "bogus.code")
        rows.append((trial.name, f"{trial.stopped:,}",
                     f"{trial.passed:,} ({percent(trial.measured, 2)})", trial.refused,
                     f"{1000 * trial.measured:.0f}/s remain", size(trial.bytes)))
    print_table(rows, (28, 17, 14, 12, 16, 9))


def discount_codes():
    heading("1,000,000 discount codes; 200,000 that do not exist are asked for")
    sample = random.Random(2026).sample(range(10**10), 2_200_000)
    psql("CREATE TABLE sample (n integer, code text)")
    load("sample", (f"{n}\tGG-{x:010d}" for n, x in enumerate(sample, 1)))
    psql("CREATE TABLE discount AS SELECT code FROM sample WHERE n <= 1000000",
         "CREATE TABLE loaded_twice AS SELECT code FROM sample WHERE n <= 2000000",
         "CREATE TABLE invented AS SELECT code FROM sample WHERE n > 2000000",
         "CREATE INDEX discount_code ON discount (code)",
         "VACUUM ANALYZE")

    rows = [("", "size", "bits/key", "k", "fill", "asked", "predicted", "measured")]
    refused = 0
    for rate in 0.01, 0.001:
        for layout in "default", "textbook":
            trial = Trial(layout, rate, "discount.code", "invented.code")
            refused += trial.refused
            rows.append((trial.name, size(trial.bytes), f"{trial.bits / trial.members:.2f}",
                         trial.hashes, percent(trial.fill, 1), f"{100 * rate:g}%",
                         percent(trial.predicted, 3), percent(trial.measured, 3)))
    print_table(rows, (28, 10, 10, 4, 8, 8, 11, 10))
    index, array, raw = map(size, numbers("""
        SELECT pg_relation_size('discount_code'),
               (SELECT pg_column_size(array_agg(code)) FROM discount),
               (SELECT sum(octet_length(code)) FROM discount)"""))
    say(f"  the same keys as a btree index {index}, as a text[] {array}, raw {raw}")
    say(f"  real codes wrongly refused: {refused}")

    say("\nLoaded with twice the keys, it says so:")
    for layout in "default", "textbook":
        trial = Trial(layout, 0.01, "loaded_twice.code", "invented.code", capacity=1000000)
        check(trial.warning.count("WARNING:") == 1, f"{trial.name}: not one warning of overfill")
        say("\n".join(f"  {line}" for line in trial.warning.splitlines()))
        say(f"  -> measured {percent(trial.measured, 1)}, {trial.name}")


def dictionary(words, misspellings):
    heading("A dictionary: real misspellings against all the words there are")
    with open(words, encoding="utf-8") as file:
        right = {line.rstrip("\n") for line in file}
    with open(misspellings, encoding="utf-8") as file:
        wrong = {line.split("->")[0] for line in file if "->" in line}
    wrong = {word for word in wrong if " " not in word} - right
    psql("CREATE TABLE dictionary (word text)", "CREATE TABLE misspelling (word text)")
    load("dictionary", sorted(right))
    load("misspelling", sorted(wrong))

    trial = Trial("default", 0.01, "dictionary.word", "misspelling.word")
    raw, = numbers("SELECT sum(octet_length(word)) FROM dictionary")
    say(f"  {trial.members:,} words (wamerican-huge), {size(raw)} of letters, "
        f"in a filter of {size(trial.bytes)}")
    say(f"  {trial.strangers:,} misspellings (codespell): {trial.stopped:,} caught, "
        f"{trial.passed:,} slipped through ({percent(trial.measured, 2)}), "
        f"{trial.refused} true words refused")


# ---------------------------------------------------------------------------
# The join
# ---------------------------------------------------------------------------

PLAIN = """
    SELECT count(*), sum(a.amount * c.percent)
    FROM attempt AS a JOIN campaign AS c USING (code)
    WHERE c.name = 'spring'"""
FILTER = "(SELECT bloom_agg(code, 250000) FROM campaign WHERE name = 'spring')"
FILTERED = f"""{PLAIN}
    AND {FILTER} @> a.code"""
AUTOMATIC = "LOAD 'bloomfilter'", "SET bloomfilter.join_filter = on"


def join():
    heading("A join: 5,000,000 checkout attempts x 1,000,000 discount codes, spring's only")
    # One attempt in ten has a real code; bots made up the others.
    psql("""CREATE TABLE campaign AS
                SELECT code, (ARRAY['spring', 'summer', 'autumn', 'winter'])[n % 4 + 1] AS name,
                       n % 50 AS percent
                FROM sample WHERE n <= 1000000""",
         "SELECT setseed(0.2026)",
         """CREATE TABLE attempt AS
                SELECT n * 10 AS id, code, (random() * 10000)::integer AS amount
                FROM sample WHERE n <= 500000
                UNION ALL
                SELECT i, format('GG-%s', lpad(floor(random() * 1e10)::text, 10, '0')),
                       (random() * 10000)::integer
                FROM generate_series(1, 5000000) AS i WHERE i % 10 <> 0
                ORDER BY id""",
         "VACUUM ANALYZE")

    ways = {"plain": ((), PLAIN), "filtered": ((), FILTERED), "automatic": (AUTOMATIC, PLAIN)}
    times = {way: [] for way in ways}
    results = set()
    for _ in range(3):
        for way, (settings, query) in ways.items():
            result, timing = psql(*settings, r"\timing on", query)[0].splitlines()
            results.add(result)
            times[way].append(float(timing.split()[1]) / 1000)
    plain, filtered, automatic = (statistics.median(seconds) for seconds in times.values())
    same = len(results) == 1
    check(same, f"the join's results differ: {results}")

    total, passed = numbers(
        f"SELECT count(*), count(*) FILTER (WHERE {FILTER} @> code) FROM attempt")
    joined = int(results.pop().split("\t")[0])
    check_bound(passed - joined, total - joined, 0.01, "join's filter")

    say(f"  {plain:.2f} s -> {filtered:.2f} s with a filter of spring's codes "
        f"(medians of 3 runs); same result: {'yes' if same else 'NO'}")
    say(f"  added to the query: AND {FILTER} @> a.code")
    say(f"  {plain:.2f} s -> {automatic:.2f} s with nothing added to it, "
        f"but {'; '.join(AUTOMATIC[1:])}")
    say(f"  of {total:,} attempts, {total - passed:,} were dropped before the join, "
        f"{passed:,} went in, {joined:,} came out")
    for name, query in ("without", PLAIN), ("with", FILTERED):
        say(f"  the plan {name} it:")
        for line in outline(plan(query), 2):
            say(line)


# ---------------------------------------------------------------------------
# The live filter
# ---------------------------------------------------------------------------

def live():
    heading("A live filter: an index that no insert can miss")
    psql("CREATE TABLE voucher AS SELECT code FROM sample WHERE n <= 200000",
         "ANALYZE voucher",
         "CREATE INDEX voucher_filter ON voucher USING bloomfilter (code)",
         "CREATE INDEX voucher_btree ON voucher (code)")
    live_bytes, btree_bytes = numbers(
        "SELECT pg_relation_size('voucher_filter'), pg_relation_size('voucher_btree')")
    ask = """
        SELECT count(*), count(*) FILTER (WHERE bloom_index_contains('voucher_filter', code))
        FROM sample WHERE n BETWEEN 200001 AND 300000"""
    strangers, passed = numbers(ask)
    psql("INSERT INTO voucher SELECT code FROM sample WHERE n BETWEEN 200001 AND 300000")
    inserted, found = numbers(ask)
    check(found == inserted, f"the live filter missed {inserted - found} of {inserted} inserted keys")
    check_bound(passed, strangers, 0.01, "live filter")
    say(f"  200,000 vouchers: {size(live_bytes)}, a btree takes {size(btree_bytes)}")
    say(f"  of {strangers:,} others it let {passed:,} pass ({percent(passed / strangers, 2)}); "
        f"inserted, all {found:,} were found at once")


def plan(query):
    return json.loads(psql(f"EXPLAIN (FORMAT JSON) {query}")[0])[0]["Plan"]


def outline(node, depth):
    """A plan in short: its joins, its scans, and what the filter is made of."""
    kind = node["Node Type"]
    if node["Parallel Aware"]:
        kind = f"Parallel {kind}"
    if node.get("Parent Relationship") == "InitPlan":
        yield "  " * depth + "Build the filter"
        depth += 1
    if "Join" in kind or "Scan" in kind:
        line = "  " * depth + kind
        if "Relation Name" in node:
            line += f" on {node['Relation Name']}"
        if "Filter" in node:
            # servers call the result of the InitPlan $0, or (InitPlan 1).col1
            line += " where " + re.sub(r"(\$\d+|\(InitPlan \d+\)\.col\d+) @>", "the filter @>",
                                       node["Filter"][1:-1])
        yield line
        depth += 1
    for child in node.get("Plans", []):
        yield from outline(child, depth)


def main(words, misspellings):
    products()
    discount_codes()
    dictionary(words, misspellings)
    join()
    live()
    say()
    if failures:
        sys.exit("FAILED:\n" + "\n".join(f"  {failure}" for failure in failures))
    say('Proof: no filter said "no" to a key of its own, the join\'s results agree, and every rate\n'
        "measured is within its bound: what was asked for, or theory, plus three standard deviations.")


if __name__ == "__main__":
    main(*sys.argv[1:])
