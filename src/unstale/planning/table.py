"""Fleets as tables: anything Arrow can read comes in, checked columns come out, errors name the row.

Rules of this file:
1. A row is counted from 1, as people count, and the header is not a row.
2. Bare numbers are per day (rates) or days (intervals); text may carry a unit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from unstale.core.checks import LARGEST, Floats
from unstale.errors import InputError, sentence
from unstale.frozen import dataclass
from unstale.units import parse_duration, parse_rate, plain_number

COLUMNS = ("id", "change_rate", "weight", "cost", "host", "min_interval", "max_interval")


@dataclass(frozen=True)
class TableColumns:
    """The checked columns of a fleet's table; None where the table has none."""

    table: pa.Table
    change_rate: Floats
    weight: Floats | None
    cost: Floats | None
    host: NDArray[np.intp] | None
    host_names: list[str]
    min_interval: Floats | None
    max_interval: Floats | None
    process: NDArray[np.object_] | None

    def row_of(self, id_: str) -> int:
        """Row of the source with this id."""
        found = pc.index(pc.cast(self.table.column("id"), pa.string()), id_).as_py()
        if found < 0:
            raise InputError(sentence("id", repr(id_), "is not in the table", "check its spelling"))
        return int(found)


def as_table(data: Any) -> pa.Table:
    """An Arrow table from a pandas or polars frame, an Arrow table, or a mapping of columns."""
    if isinstance(data, Mapping):
        return pa.table({str(k): _array(str(k), v) for k, v in data.items()})
    if isinstance(data, pa.Table):  # as it is: to make one of it, Arrow would import pandas where that is installed
        return _plain_text(data)
    if hasattr(data, "__arrow_c_stream__"):
        return _plain_text(pa.table(data))
    raise InputError(
        sentence(
            "fleet",
            f"of type {type(data).__name__}",
            "is not a table",
            "give a pandas or polars frame, an Arrow table or a dict of columns",
        )
    )


def _plain_text(table: pa.Table) -> pa.Table:
    """Arrow has several kinds of text, and not every function takes each: one is enough."""
    for i, field in enumerate(table.schema):
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        if pa.types.is_string_view(kind) or pa.types.is_large_string(kind):
            table = table.set_column(i, field.name, table.column(i).cast(pa.string()))
        elif pa.types.is_dictionary(field.type):
            table = table.set_column(i, field.name, table.column(i).cast(kind))
    return table


def _array(name: str, values: Any) -> Any:
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        try:
            return pa.array([None if v is None else str(v) for v in values])
        except TypeError:
            raise InputError(sentence(name, repr(values)[:60], "must be a column", "give a list")) from None


def columns(data: Any) -> TableColumns:
    """Check every column the planner reads, and refuse the first row that breaks a rule."""
    table = as_table(data)
    names = set(table.column_names)
    if len(names) < len(table.column_names):
        twice = next(n for n in table.column_names if table.column_names.count(n) > 1)
        raise InputError(sentence("column", repr(twice), "appears twice", "keep one of them"))
    if "id" not in names:
        raise InputError(_missing("id", names))
    if table.num_rows == 0:
        raise InputError(sentence("table", "with 0 rows", "has no sources", "give at least one row"))
    unique_ids(table)
    return checked(table, names)


def checked(table: pa.Table, names: set[str], with_hosts: bool = True) -> TableColumns:
    """The columns of these names, each row by its rules; hosts only if asked for."""
    host, host_names = host_codes(table, names) if with_hosts else (None, [])
    return TableColumns(
        table=table,
        change_rate=_change_rate(table, names),
        weight=_optional(table, names, "weight", 1.0, least=0.0, most=LARGEST),
        cost=_optional(table, names, "cost", 1.0, above=0.0, most=LARGEST),
        host=host,
        host_names=host_names,
        min_interval=_optional(table, names, "min_interval", 0.0, least=0.0, parse=parse_duration),
        max_interval=_optional(table, names, "max_interval", np.inf, above=0.0, parse=parse_duration),
        process=text_column(table, names, "process"),
    )


def _change_rate(table: pa.Table, names: set[str]) -> Floats:
    if "change_rate" in names:
        return number_column(table, "change_rate", None, least=0.0, most=LARGEST, parse=parse_rate)
    if {"changes", "observed"} <= names:
        return _counted(table, names)
    raise InputError(_missing("change_rate", names))


def _counted(table: pa.Table, names: set[str]) -> Floats:
    """Change rates from counts: `changes` seen within `observed` time, at `polls` polls if that column is there.

    Counts of all changes give (changes + ½)/observed. Polls only see whether something changed, so several changes
    hide behind one: then the estimate is −log(1 − share)·polls/observed with share = (changes + ½)/(polls + 1), the
    bias-reduced estimate of Cho & Garcia-Molina (2003), with a half added on both sides, so that neither a source
    that never changed nor one that always did is put beyond all polls.
    """
    changes = number_column(table, "changes", None, least=0.0)
    observed = number_column(table, "observed", None, above=0.0, parse=parse_duration)
    if "polls" not in names:
        return (changes + 0.5) / observed
    polls = number_column(table, "polls", None, above=0.0)
    _refuse(table, "changes", changes, changes <= polls, "must be at most polls")
    return -np.log((polls - changes + 0.5) / (polls + 1.0)) * polls / observed


def _optional(
    table: pa.Table,
    names: set[str],
    name: str,
    default: float,
    *,
    above: float | None = None,
    least: float | None = None,
    most: float = np.inf,
    parse: Callable[[str, str], float] | None = None,
) -> Floats | None:
    return (
        number_column(table, name, default, above=above, least=least, most=most, parse=parse) if name in names else None
    )


def number_column(
    table: pa.Table,
    name: str,
    default: float | None,
    *,
    above: float | None = None,
    least: float | None = None,
    most: float = np.inf,
    parse: Callable[[str, str], float] | None = None,
) -> Floats:
    """A column of numbers, or of text with units; the first row that breaks a rule is refused by name."""
    column = table.column(name)
    if pa.types.is_string(column.type):
        column = _parsed(table, name, column, parse)
    elif pa.types.is_null(column.type):
        column = column.cast(pa.float64())
    elif not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type) or _is_decimal(column.type)):
        raise InputError(sentence(f"column {name}", f"of type {column.type}", "must hold numbers", "convert it"))
    values = column.cast(pa.float64(), safe=False)
    if values.null_count:
        if default is None:
            row = int(pc.index(values.is_null(), True).as_py())
            raise InputError(sentence(_where(table, row), name, "is missing (empty or NaN)", "fill it in"))
        values = values.fill_null(arrow_column(np.array([default]))[0])
    x = _floats(values)
    rule = "must be a finite number" + (f" above {above:g}" if above is not None else "")
    rule += f" at least {least:g}" if least is not None else ""
    rule += f" and at most {most:g}" if most < np.inf else ""
    # An empty bound reads as "no bound", which is what infinity says for an interval.
    ok = np.isfinite(x) | ((x == np.inf) & (default == np.inf))
    if above is not None:
        ok &= x > above
    if least is not None:
        ok &= x >= least
    ok &= x <= most
    _refuse(table, name, x, ok, rule)
    return x


def _floats(values: pa.ChunkedArray) -> Floats:
    """A column of floats without gaps for NumPy: `to_numpy` would import pandas where that is installed."""
    whole = values.chunk(0) if values.num_chunks == 1 else values.combine_chunks()
    return np.asarray(np.from_dlpack(whole), np.float64)


def arrow_column(x: NDArray[Any]) -> pa.Array:
    """Numbers, or yes and no, as a column of Arrow's, again without pandas.

    >>> arrow_column(np.array([True, False, True])).to_pylist(), arrow_column(np.array([0.5, np.inf])).to_pylist()
    ([True, False, True], [0.5, inf])
    """
    if x.dtype == np.bool_:
        return pa.Array.from_buffers(pa.bool_(), len(x), [None, pa.py_buffer(np.packbits(x, bitorder="little"))])
    return pa.Array.from_buffers(pa.float64(), len(x), [None, pa.py_buffer(np.ascontiguousarray(x, np.float64))])


def _is_decimal(kind: pa.DataType) -> bool:
    return bool(pa.types.is_decimal(kind))


def _parsed(table: pa.Table, name: str, column: Any, parse: Callable[[str, str], float] | None) -> Any:
    """Text with units as numbers; each distinct text is parsed once."""
    coded = pc.dictionary_encode(column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column)
    coded = coded.combine_chunks() if isinstance(coded, pa.ChunkedArray) else coded
    numbers: list[float | None] = []
    for text in coded.dictionary.to_pylist():
        try:
            numbers.append(None if text.strip() == "" else parse(text, name) if parse else _number(text))
        except ValueError as error:
            row = int(pc.index(pc.cast(column, pa.string()), text).as_py())
            reason = str(error) if parse else sentence(name, repr(text), "must be a number", "correct it")
            raise InputError(f"{_where(table, row)}: {reason}") from None
    return pa.chunked_array([pa.array(numbers, pa.float64()).take(coded.indices)])


def _number(text: str) -> float:
    if (found := plain_number(text)) is None:
        raise ValueError(text)
    return found


def _refuse(table: pa.Table, name: str, x: Floats, ok: NDArray[np.bool_], rule: str) -> None:
    if not ok.all():
        row = int(np.argmin(ok))
        raise InputError(f"{_where(table, row)}: {sentence(name, f'{x[row]:g}', rule, 'correct it')}")


def _where(table: pa.Table, row: int) -> str:
    return f"row {row + 1} (id {table.column('id')[row].as_py()!r})"


def unique_ids(table: pa.Table) -> None:
    """Refuse a table whose ids are not one for each row."""
    ids = table.column("id")
    if ids.null_count:
        row = int(pc.index(ids.is_null(), True).as_py())
        raise InputError(sentence(f"row {row + 1}:", "id", "is missing", "give each source its own id"))
    if pc.count_distinct(ids).as_py() == table.num_rows:
        return
    counts = pc.value_counts(ids.combine_chunks() if isinstance(ids, pa.ChunkedArray) else ids)
    twice = next(v["values"] for v in counts.to_pylist() if v["counts"] > 1)
    rows = [i + 1 for i, v in enumerate(ids.to_pylist()) if v == twice][:2]
    raise InputError(
        sentence(f"row {rows[1]}: id", repr(twice), f"stands in row {rows[0]} too", "give each source its own id")
    )


def host_codes(table: pa.Table, names: set[str]) -> tuple[NDArray[np.intp] | None, list[str]]:
    """Host codes and names. A source without a host is its own: no other shares its cap."""
    texts = text_column(table, names, "host")
    if texts is None:
        return None, []
    ids = table.column("id")
    named = [f"(alone) {ids[i].as_py()}" if t in (None, "") else str(t) for i, t in enumerate(texts)]
    seen: dict[str, int] = {}
    codes = np.fromiter((seen.setdefault(t, len(seen)) for t in named), dtype=np.intp, count=len(named))
    return codes, list(seen)


def text_column(table: pa.Table, names: set[str], name: str) -> NDArray[np.object_] | None:
    """A column as text, None where the table has none."""
    if name not in names:
        return None
    return np.array(pc.cast(table.column(name), pa.string()).to_pylist(), dtype=object)


def _missing(name: str, names: set[str]) -> str:
    have = ", ".join(sorted(names)) or "none"
    return sentence("column", repr(name), "is missing", f"the table has: {have}")
