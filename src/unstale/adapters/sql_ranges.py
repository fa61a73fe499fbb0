"""Ranges of a table's key: where rows are gone, found by counting, so that only the keys there are read.

Rules of this file:
1. A range is the whole part of key / width, cut towards zero as all databases do; a key is one column of integers.
2. Of each range both sides count the rows and add up their keys. Where the two agree, the keys are the same ones: here
   are all that were there at the last reading and all that came since, so a key that is gone makes the counts differ.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

#: ranges that a table is divided into, and how many rows make it worth while
RANGES, ROWS = 4096, 10_000
#: what stands for a key in a sum, so that no sum is too long
MODULUS = 2_147_483_647
#: how many rows a range has, and the sum of their keys
Sums = Mapping[int, tuple[int, int]]


def width_of(least: int, most: int) -> int:
    """The width of ranges for keys between these.

    >>> width_of(1, 10_000_000), width_of(5, 5)
    (2442, 1)
    """
    return (most - least) // RANGES + 1


def part_width(least: int, most: int, parts: int) -> int:
    """The width of ranges for about so many parts, at most RANGES: a power of two, which stays while a table grows.

    >>> part_width(1, 10_000_000, 100)
    131072
    """
    span = (most - least) // max(1, min(parts, RANGES)) + 1
    width: int = 1 << (span - 1).bit_length()
    return width


def differing(there: Sums, here: Sums) -> set[int]:
    """The ranges in which the two sides do not agree.

    >>> sorted(differing({0: (2, 3), 1: (1, 9)}, {0: (2, 3), 1: (2, 19), 2: (1, 20)}))
    [1, 2]
    """
    return {one for one in there.keys() | here.keys() if there.get(one) != here.get(one)}


def within(column: str, width: int, ranges: Collection[int]) -> str:
    """The condition in SQL for a key that lies in these ranges, such that an index serves.

    >>> within("id", 10, {2, 0, -1})
    'id BETWEEN -19 AND -10 OR id BETWEEN -9 AND 9 OR id BETWEEN 20 AND 29'
    """
    bounds = []
    for one in sorted(ranges):
        first = one * width if one > 0 else (one - 1) * width + 1
        last = (one + 1) * width - 1 if one >= 0 else one * width
        bounds.append(f"{column} BETWEEN {first} AND {last}")
    return " OR ".join(bounds) or "false"
