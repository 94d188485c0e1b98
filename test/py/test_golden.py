#!/usr/bin/python3
"""Filters that released versions wrote (test/golden) are read, byte for byte,
answer as they did, unite with filters that are built today, and, but for
cuckoo filters, whose places are chosen anew, are built today as they were."""
import golden
from harness import Checks, query, schema

checks = Checks()


def one_version(version, values):
    query("CREATE TABLE kept (id integer, f bloomfilter)")
    script = []
    for number, value in enumerate(values):
        kind, elements = value["type"], value["elements"]
        # two of the same leave no room in the buckets that are fullest
        other = value["template"] if "cuckoo" in value["name"] and len(elements) > 100 else \
            golden.build(value["template"], kind, elements)
        stored = f"SELECT f FROM kept WHERE id = {number}"
        script.append(f"""
            INSERT INTO kept VALUES ({number}, {golden.literal(value['filter'])});
            SELECT {number}, f::text = {golden.literal(value['filter'])},
                {golden.answers(stored, kind, elements + value['others'])} = '{value['answers']}',
                {golden.INFO.format('f')} = {golden.literal(value['info'])},
                f::bytea::bloomfilter = f,
                {golden.build(value['template'], kind, elements)} = f
                    OR (bloom_info(f)).layout = 'cuckoo',
                bloom_cardinality(f | {other}) >= bloom_cardinality(f)
            FROM kept WHERE id = {number};""")
    wrong = []
    rows = query("".join(script)).rows
    said = ("text", "answers", "info", "bytea", "built today", "union")
    for number, *results in rows:
        for what, result in zip(said, results):
            if result != "t":
                wrong.append(f"{values[int(number)]['name']}: {what}")
    for line in wrong[:20]:
        print("       ", line)
    checks.equal(len(rows), len(values), f"{version}: filters read")
    checks.check(not wrong, f"{version}: each as it was written")
    # a kept filter that contained nothing would be as well answered
    for value in values:
        if "0" in value["answers"][:len(value["elements"])]:
            checks.check(False, f"{version}: {value['name']} misses an element")
    query("DROP TABLE kept")


def main():
    versions = {}
    for version, value in golden.read():
        versions.setdefault(version, []).append(value)
    with schema("test_golden"):
        query(golden.SETUP)
        checks.check("1.0" in versions, "there are golden filters of 1.0")
        for version, values in versions.items():
            checks.part(one_version, version, values)
        query("DROP SCHEMA golden CASCADE")
    checks.close()


if __name__ == "__main__":
    main()
