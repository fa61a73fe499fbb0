"""Weights for the sources of a trace, from a table of their own."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa

from unstale.core.checks import Floats, numbers
from unstale.core.trace import Trace
from unstale.errors import InputError, require, sentence
from unstale.frozen import dataclass
from unstale.traces import table


@dataclass(frozen=True, slots=True)
class Weighted:
    """The sources of a trace that have a weight, their weights, and how many had none or were not in the trace."""

    trace: Trace
    weight: Floats
    missing: int
    unknown: int

    def lines(self) -> list[str]:
        """What did not match, one line each."""
        said = []
        if self.missing:
            said.append(
                f"{self.missing:,} of {self.missing + len(self.trace):,} sources have no weight and were left out"
            )
        if self.unknown:
            said.append(f"{self.unknown:,} weights are of sources that the trace does not have")
        return said


def weigh(trace: Trace, path: str) -> Weighted:
    """Give each source of a trace its weight from a file with the columns source and weight.

    A source without a weight is left out: that nobody counted its readers does not mean that it has none.
    """
    rows = table.rows(path, time_column="weight")
    require(not rows.malformed, "weights", repr(path), "cannot be read", rows.examples.get("malformed", ""))
    try:
        given = rows.time.cast(pa.float64()).to_numpy()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InputError(sentence("weights", repr(path), "must be numbers", str(error).splitlines()[0])) from None
    weight = numbers("weight", given, least=0.0)
    names = rows.source.cast(pa.string()).to_pylist()
    known = dict(zip(names, weight.tolist(), strict=True))
    if len(known) < len(names):
        twice, _ = Counter(names).most_common(1)[0]
        raise InputError(sentence("weight", f"of {twice!r}", f"is in {path!r} more than once", "keep one of them"))
    kept = [i for i, name in enumerate(trace.names) if name in known]
    weight = np.array([known[trace.names[i]] for i in kept])
    require(weight.sum() > 0, "weights", repr(path), "give no source of the trace a weight above 0", "check the names")
    return Weighted(trace.take(kept), weight, len(trace) - len(kept), len(known) - len(kept))
