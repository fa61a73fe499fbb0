"""An id that stands twice, in a fleet of many files: found by hashes, told by its places.

Rules of this file:
1. Each round compares the ids of one range of hashes, some millions, whatever the size of the fleet.
2. Hashes only point out whom to look at: what is refused was compared letter by letter.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from unstale.errors import InputError, sentence
from unstale.planning.engines import PartsRunner
from unstale.planning.parts import FleetPart, batches

Hashes = NDArray[np.uint64]

#: ids that are compared in a round: 128 MB
ROUND = 1 << 24
#: ids hashed at a time: each of their bytes takes some twenty
_SLICE = 1 << 14
_STEP, _MIX = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xFF51AFD7ED558CCD)
_BITS = 64


def refuse_twice(parts: Sequence[FleetPart], engine: PartsRunner) -> None:
    """InputError if any id stands in two rows, with both places."""
    sources = sum(part.rows for part in parts)
    rounds = -(-sources // ROUND)
    edges = [k * 2**_BITS // rounds for k in range(rounds + 1)]
    for low, high in pairwise(edges):
        found = np.sort(np.concatenate(engine.map(_within, parts, low, high - 1)))
        alike = np.unique(found[1:][found[1:] == found[:-1]])
        if len(alike):
            _tell(parts, engine, alike)


def hashed(ids: pa.Array) -> Hashes:
    """64 bits of each text: a polynomial of its bytes, mixed.

    >>> hashed(pa.array(["ab", "ba", "", "ab"])).tolist()[0::3] == [hashed(pa.array(["ab"]))[0]] * 2
    True
    >>> len(set(hashed(pa.array(["ab", "ba", "", "a"])).tolist()))
    4
    """
    texts = ids.cast(pa.large_string())
    _, where, data = texts.buffers()
    offsets = np.frombuffer(where, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    raw = np.frombuffer(data or b"", np.uint8)[offsets[0] : offsets[-1]]
    lengths = np.diff(offsets)
    begins = offsets[:-1] - offsets[0]
    place = np.arange(len(raw)) - np.repeat(begins, lengths)
    with np.errstate(over="ignore"):
        powers = np.cumprod(np.full(int(lengths.max(initial=0)) + 1, _STEP, np.uint64))
        terms = (raw.astype(np.uint64) + np.uint64(1)) * powers[place]
        sums = np.zeros(len(texts), np.uint64)
        some = lengths > 0
        if some.any():
            sums[some] = np.add.reduceat(terms, begins[some])
        sums = (sums ^ (sums >> np.uint64(33))) * _MIX
        return np.asarray(sums ^ (sums >> np.uint64(33)))


def _within(part: FleetPart, low: int, high: int) -> Hashes:
    """The hashes of a part's ids that lie in a range, both ends included."""
    found = [np.empty(0, np.uint64)]
    for _, ids in _ids(part):
        some = hashed(ids)
        found.append(some[(some >= np.uint64(low)) & (some <= np.uint64(high))])
    return np.concatenate(found)


def _tell(parts: Sequence[FleetPart], engine: PartsRunner, alike: Hashes) -> None:
    """Refuse the first id that stands twice; different ones that have one hash may stay."""
    first: dict[str, tuple[str, int]] = {}
    for part, rows in zip(parts, engine.map(_rows, parts, alike), strict=True):
        for row, id_ in rows:
            if id_ in first:
                file, other = first[id_]
                rule = f"stands in row {other} of {file!r} too"
                raise InputError(
                    f"file {part.file!r}: {sentence(f'row {row}: id', repr(id_), rule, 'give each source its own id')}"
                )
            first[id_] = part.file, row


def _rows(part: FleetPart, alike: Hashes) -> list[tuple[int, str]]:
    """The rows of a part, counted from 1 in its file, whose ids have one of these hashes."""
    found: list[tuple[int, str]] = []
    for row, ids in _ids(part):
        which = np.flatnonzero(np.isin(hashed(ids), alike))
        found += [(row + int(i) + 1, ids[int(i)].as_py()) for i in which]
    return found


def _ids(part: FleetPart) -> Iterator[tuple[int, pa.Array]]:
    """The ids of a part as text, some at a time, with the row of the file that each piece begins after."""
    for row, table in batches(part, ("id",)):
        if "id" not in table.column_names:
            have = "column 'id' is missing: give each source its own id"
            raise InputError(f"file {part.file!r}: {have}")
        ids = pc.cast(table.column("id"), pa.large_string()).combine_chunks()
        ids = ids.chunk(0) if isinstance(ids, pa.ChunkedArray) else ids
        if ids.null_count:
            at = row + int(pc.index(ids.is_null(), True).as_py()) + 1
            raise InputError(
                f"file {part.file!r}: {sentence(f'row {at}:', 'id', 'is missing', 'give each source its own id')}"
            )
        yield from ((row + begin, ids.slice(begin, _SLICE)) for begin in range(0, len(ids), _SLICE))
