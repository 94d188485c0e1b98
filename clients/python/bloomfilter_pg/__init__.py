"""Filters of the PostgreSQL extension bloomfilter, outside the database.

    bf = BloomFilter.from_bytes(data)   # SELECT filter::bytea
    "SP-00042" in bf                    # False: certainly not there

The format is specified in the extension's docs/format.md.
"""
from ._errors import FormatError, KindError
from ._filter import BloomFilter, Info
from ._kinds import Infinity
from ._refresh import Refresher

__all__ = ["BloomFilter", "FormatError", "Infinity", "Info", "KindError",
           "Refresher"]
__version__ = "1.0.0"
