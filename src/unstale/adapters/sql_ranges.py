"""Ranges of a table's key: where rows are gone, found by counting, so that only the keys there are read.

Rules of this file:
1. Of a key that is one integer a range is the whole part of key / width, cut towards zero as all databases do. Any
   other key lies where the hash of its text begins: md5, which all databases have.
2. Of each range both sides count the rows and add up their keys. Where the two agree, the keys are the same ones: here
   are all that were there at the last reading and all that came since, so a key that is gone makes the counts differ.
   Where two databases write a key differently nothing agrees, and all keys are read.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from unstale.frozen import dataclass

#: ranges that a table is divided into, and how many rows make it worth while
RANGES, ROWS = 4096, 10_000
#: what stands for a key in a sum, so that no sum is too long
MODULUS = 2_147_483_647
#: how many rows a range has, and the sum of their keys
Sums = Mapping[int, tuple[int, int]]
MYSQL = ("mysql", "mariadb")
# Whole parts; a text of a key; the hash of a text; the number that some digits of a hash are, from a place on.
_SQL = {
    "postgresql": (
        "{} / {}",
        "{}::text",
        "encode({}, 'hex')",
        "md5({})",
        "('x' || substr({}, {}, {}))::bit({})::bigint",
    ),
    "mysql": (
        "{} DIV {}",
        "CONVERT(concat({}) USING utf8mb4)",
        "lower(hex({}))",
        "md5({})",
        "CAST(conv(substr({}, {}, {}), 16, 10) AS unsigned)",
    ),
    "duckdb": (
        "{} // {}",
        "CAST({} AS VARCHAR)",
        "lower(hex({}))",
        "md5({})",
        "CAST('0x' || substr({}, {}, {}) AS BIGINT)",
    ),
    "sqlite": ("{} / {}", "{}", "lower(hex({}))", "unstale_md5({})", "unstale_number({}, {}, {})"),
}


@dataclass(frozen=True, slots=True)
class KeyRanges:
    """How a key is divided: one integer by `width`; any other by the first `digits` of its hash, where width is 0.

    `types` are those of its columns. All that it tells is SQL, for the columns as they are called in it.
    """

    types: tuple[str, ...]
    width: int = 0
    digits: int = 0

    def number(self, dialect: str, key: Sequence[str]) -> str:
        """The number of the range that a key lies in.

        >>> KeyRanges(("bigint",), width=10).number("sqlite", ["id"])
        'id / 10'
        """
        return _words(dialect)[0].format(key[0], self.width) if self.width else self._part(dialect, key, 1, self.digits)

    def total(self, dialect: str, key: Sequence[str]) -> str:
        """What keys add up to."""
        # So few digits that no sum is too long.
        return f"sum({f'{key[0]} % {MODULUS}' if self.width else self._part(dialect, key, 7, 10)})"

    def within(self, dialect: str, key: Sequence[str], ranges: Collection[int]) -> str:
        """The condition for a key that lies in these ranges."""
        if self.width:
            return within(key[0], self.width, ranges)
        return f"{self.number(dialect, key)} IN ({', '.join(map(str, sorted(ranges))) or 'NULL'})"

    def _part(self, dialect: str, key: Sequence[str], first: int, digits: int) -> str:
        _, text, raw, hashed, number = _words(dialect)
        texts = [(raw if type_ == "bytes" else text).format(one) for one, type_ in zip(key, self.types, strict=True)]
        # What an owner calls a key may be nothing.
        hashes = [hashed.format(f"coalesce({one}, '')") for one in texts]
        joined = f"concat({', '.join(hashes)})" if dialect in MYSQL else " || ".join(hashes)
        return number.format(hashes[0] if len(hashes) == 1 else hashed.format(joined), first, digits, 4 * digits)


def _words(dialect: str) -> tuple[str, str, str, str, str]:
    return _SQL["mysql" if dialect in MYSQL else dialect]


def width_of(least: int, most: int) -> int:
    """The width of ranges for keys between these.

    >>> width_of(1, 10_000_000), width_of(5, 5)
    (2442, 1)
    """
    return (most - least) // RANGES + 1


def digits_for(rows: int) -> int:
    """How many digits of a hash divide so many rows: into 65,536 ranges at most.

    >>> digits_for(10_000), digits_for(10_000_000)
    (2, 4)
    """
    return min(4, len(f"{rows // 256:x}"))


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
