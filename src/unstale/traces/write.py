"""Writing a trace: the columns `source` and `t`, sorted by both."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from unstale import files
from unstale.core.trace import Trace


def as_table(trace: Trace) -> pa.Table:
    """One row for each change; `t` is whole seconds if all of them are."""
    which = np.repeat(np.arange(len(trace), dtype=np.int32), trace.counts())
    names = pa.DictionaryArray.from_arrays(pa.array(which), pa.array(trace.names, pa.string()))
    whole = bool((np.floor(trace.times) == trace.times).all())
    return pa.table({"source": names.cast(pa.string()), "t": trace.times.astype(np.int64) if whole else trace.times})


def write(trace: Trace, path: str) -> None:
    """Write a trace as Parquet, CSV or JSON lines, by the ending of the path."""
    files.write(as_table(trace), path)
