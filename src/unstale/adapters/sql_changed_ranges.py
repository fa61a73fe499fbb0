"""Which ranges of a key hold rows that changed, where nothing but a checksum tells: sums of rows, range by range.

Rules of this file:
1. The source adds up the hashes of the rows of each range. What they add up to is kept with the copy, as its mark; at
   the next change the ranges whose sums are others are read, and nothing else.
2. An integer that the database keeps unique is divided by its value, so that what comes at the end lies together.
3. Ranges stay what they were while the table grows. Of another key, or many times as many rows, all is read anew.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from hashlib import blake2b

from unstale.adapters.sql_probe import Look, row_sum
from unstale.adapters.sql_ranges import MYSQL, ROWS, KeyRanges, digits_for
from unstale.adapters.sql_source import Source
from unstale.adapters.sql_types import Column

#: ranges that a large table has, and how many rows one of them has at least
RANGES, LEAST = 16_384, 64
_WHOLE = ("smallint", "integer", "bigint", "decimal(20,0)")


def changed_ranges(
    source: Source, columns: Sequence[Column], key: Sequence[str], unique: bool, seen: Look, mark: str
) -> Look:
    """What a checksum saw, with the sums of ranges as its mark, and the condition for rows in those that differ from
    `mark`; as it was where there is no key, or little to be spared."""
    summed = seen.kind == "checksum" and source.dialect in ("postgresql", *MYSQL)
    if not summed or not key or seen.rows < ROWS:
        return seen
    known = json.loads(mark) if mark else {}
    types = [column.type for name in key for column in columns if column.name == name]
    # The old ones, while they serve.
    old = int(known.get("digits", 0))
    width, digits = 0, old if old and abs(old - digits_for(seen.rows)) <= 1 else digits_for(seen.rows)
    if unique and len(key) == 1 and types[0] in _WHOLE and (extent := source.extent(key[0])) is not None:
        width, digits = (extent[1] - extent[0]) // min(RANGES, seen.rows // LEAST) + 1, 0
        old = int(known.get("width", 0))
        width = old if old / 4 <= width <= 4 * old else width
    cut = KeyRanges(tuple(types), width, digits)
    told = source.sums(key, cut, row_sum(source, [column.name for column in columns]))
    sums = {str(n): _short(one) for n, one in told.items()}
    division = {"key": list(key), "types": types, "width": width, "digits": digits}
    seen = replace(seen, mark=json.dumps({**division, "sums": sums}))
    if {name: known.get(name) for name in division} != division:
        return seen
    before = known["sums"]
    other = {int(n) for n in sums.keys() | before.keys() if sums.get(n) != before.get(n)}
    return replace(seen, since=source.in_ranges(key, cut, other)) if len(other) < len(sums) / 4 else seen


def _short(sums: tuple[int, int]) -> str:
    return blake2b(ascii(sums).encode(), digest_size=8).hexdigest()
