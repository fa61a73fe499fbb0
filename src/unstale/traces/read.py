"""Reading a trace from a file."""

from __future__ import annotations

from unstale.core.trace import Trace
from unstale.traces import table
from unstale.traces.judge import judge_values
from unstale.traces.problems import Problems


def read(
    path: str, *, now: float | None = None, source_column: str | None = None, time_column: str | None = None
) -> tuple[Trace, Problems]:
    """The trace in a CSV, Parquet or JSON lines file, and what was wrong with its rows.

    One row is one change: its source (a column called source, name, id or url) and its time (t, time, timestamp or
    date), in Unix seconds, as timestamp or as ISO 8601 text. Rows without a source or time, with a time that cannot be
    read or lies after `now` (the present unless told) are left out; rows that repeat another are counted once; order
    does not matter. All of this is counted in the Problems. A file without one usable row is an InputError.
    """
    rows = table.rows(path, source_column, time_column)
    return judge_values(
        path,
        rows.source,
        rows.time,
        name=rows.columns[1],
        now=now,
        malformed=rows.malformed,
        examples=rows.examples,
        columns=rows.columns,
    )
