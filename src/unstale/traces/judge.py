"""From rows to a trace: bad rows are left out and counted, the others are sorted and counted once."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from unstale.core.trace import Trace
from unstale.errors import InputError, sentence
from unstale.traces.problems import Problems
from unstale.traces.times import Times, column

#: a time so far in the future, in seconds, is one in milliseconds
_MILLISECONDS = 1e11


def judge(
    place: str,
    source: pa.Array,
    times: Times,
    *,
    now: float | None = None,
    malformed: int = 0,
    examples: dict[str, str] | None = None,
    columns: tuple[str, str] | None = None,
    in_order: bool = True,
) -> tuple[Trace, Problems]:
    """The trace in rows of sources and times, and what was wrong with them.

    `source` is Arrow text, plain or dictionary-encoded, null where a row names none; `now` is the present, after which
    nothing can have changed yet; `malformed` counts rows that were no rows at all; `in_order` says that times should
    rise, so that falling ones are worth a word. Rows are counted from 1.
    """
    now = time.time() if now is None else now
    names, which = _codes(source)
    t, rows = times.seconds, len(times.seconds) + malformed
    first = dict(examples or {})
    good = np.ones(len(t), dtype=bool)
    counts = {"malformed": malformed}
    for kind, bad in (
        ("missing_source", which < 0),
        ("missing_time", times.missing),
        ("malformed", np.isnan(t)),
        ("future", t > now),
    ):
        hit = np.flatnonzero(good & bad)
        good[hit] = False
        counts[kind] = counts.get(kind, 0) + len(hit)
        if len(hit) and kind == "future":
            first.setdefault(kind, f"{_shown(t[hit[0]])} in row {hit[0] + 1:,}")
    which, t = which[good], t[good]
    if not len(t):
        why = str(Problems(rows, **counts, examples=first, columns=columns)).replace("\n", ", ") or "it has no rows"
        raise InputError(sentence("trace", repr(place), "has no change that can be used", why))
    trace = Trace.coded(names, which, t)
    trace = trace if trace.counts().all() else trace.having(1)
    counts |= {
        "duplicate": len(t) - len(trace.times),
        "unsorted": _backward(which, t) if in_order else 0,
        "zoneless": int(np.count_nonzero(times.zoneless & good)),
    }
    return trace, Problems(rows, **counts, examples=first, columns=columns)


def judge_values(
    place: str,
    source: pa.Array,
    values: pa.ChunkedArray,
    *,
    name: str = "t",
    examples: dict[str, str] | None = None,
    **rest: Any,
) -> tuple[Trace, Problems]:
    """The same for times as they were written, in the column `name`; `rest` as for `judge`."""
    times = column(name, values)
    first = dict(examples or {})
    odd = np.flatnonzero(np.isnan(times.seconds) & ~times.missing)
    if len(odd):
        first.setdefault("malformed", f"{values[int(odd[0])].as_py()!r:.60} in row {odd[0] + 1:,}")
    return judge(place, source, times, examples=first, **rest)


def judge_texts(
    place: str, rows: Sequence[tuple[str | None, str | None]], *, now: float | None = None, malformed: int = 0
) -> tuple[Trace, Problems]:
    """The same for pairs of a source and a time that come in no order."""
    source, values = (pa.array([row[k] for row in rows], pa.string()) for k in (0, 1))
    return judge_values(place, source, pa.chunked_array([values]), now=now, malformed=malformed, in_order=False)


def _codes(source: pa.Array) -> tuple[list[str], np.ndarray]:
    """The names in order, and for each row the place of its name; -1 where there is none."""
    # A dictionary that came from elsewhere may name things twice, or name nothing: ours does not.
    coded = pa.chunked_array([source] if isinstance(source, pa.Array) else source.chunks, source.type)
    coded = coded.cast(pa.string()).dictionary_encode().combine_chunks()
    names = np.asarray(coded.dictionary.to_pylist(), dtype=object)
    order = np.argsort(names, kind="stable")
    place = np.empty(len(names) + 1, dtype=np.int64)
    place[order] = np.arange(len(names))
    place[-1] = -1
    empty = np.flatnonzero(pc.equal(pc.utf8_trim_whitespace(coded.dictionary), "").to_numpy(False))
    place[empty] = -1
    return names[order].tolist(), place[coded.indices.fill_null(-1).to_numpy()]


def _backward(which: np.ndarray, t: np.ndarray) -> int:
    """How many rows have an earlier time than the row before them of the same source."""
    order = np.argsort(which, kind="stable")
    return int(np.count_nonzero((np.diff(which[order]) == 0) & (np.diff(t[order]) < 0.0)))


def _shown(t: float) -> str:
    if t > _MILLISECONDS:
        return f"{t:.0f}, which may be milliseconds: divide by 1000,"
    return datetime.fromtimestamp(t, UTC).isoformat(" ", "seconds")
