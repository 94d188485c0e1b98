#!/usr/bin/python3
"""A client of urls.sql: reads URLs, a line each, and says what to ask for.

    check.py FILTER < URLS      "safe URL", or "ask PATTERN URL" for each pattern

FILTER is a file with the text form of the filter: psql -AtXc
"SELECT filter FROM example_urls.shipped".
"""
import pathlib
import sys
from urllib.parse import urlsplit

from bloomfilter_pg import BloomFilter


def patterns_of(url):
    """Host and the hosts above it, each with the path and the paths above it."""
    parts = urlsplit(url.lower())
    hosts = parts.hostname.split(".")
    paths = [p for p in parts.path.strip("/").split("/") if p]
    for h in range(max(len(hosts) - 1, 1)):
        for p in range(len(paths) + 1):
            yield "/".join([".".join(hosts[h:]), *paths[:p], ""])


def main():
    unsafe = BloomFilter.from_text(pathlib.Path(sys.argv[1]).read_text(encoding="ascii").strip())
    for line in sys.stdin:
        url = line.strip()
        maybe = [pattern for pattern in patterns_of(url) if pattern in unsafe]
        for pattern in maybe:
            print("ask", pattern, url)
        if not maybe:
            print("safe", url)


if __name__ == "__main__":
    main()
