"""Any table as rows of sources and times: CSV, Parquet or JSON lines, with chosen or well-known columns."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv

from unstale import files
from unstale.errors import InputError, require, sentence
from unstale.frozen import dataclass

#: names that columns of sources and of times usually have, best first
SOURCE = ("source", "name", "id", "url")
TIME = ("t", "time", "timestamp", "date")


@dataclass(frozen=True, slots=True)
class TraceColumns:
    """Two columns of a table, which they were, and how many lines were no rows (with the first of them)."""

    source: pa.ChunkedArray
    time: pa.ChunkedArray
    columns: tuple[str, str]
    malformed: int = 0
    examples: dict[str, str] = field(default_factory=dict)


def rows(path: str, source_column: str | None = None, time_column: str | None = None) -> TraceColumns:
    """The column of sources and that of times in a file; `-` reads CSV or JSON lines from standard input.

    Text formats are read leniently: a line that is no row is counted, and every value is text, so that the source 007
    stays 007 and one odd time does not spoil the column.
    """
    wanted = source_column, time_column
    ending = Path(path).suffix.lower()
    if path == "-":
        data = sys.stdin.buffer.read()
        return (_json if data.lstrip()[:1] == b"{" else _csv)("standard input", data, wanted)
    if ending not in (".csv", ".jsonl", ".ndjson"):
        table = files.read(path)
        chosen = _choose(repr(path), table.column_names, wanted)
        source, time = (table.column(name) for name in chosen)
        return TraceColumns(_text(chosen[0], source), time, chosen)
    if not Path(path).is_file():
        raise InputError(sentence("file", repr(path), "does not exist", "check the path"))
    return (_csv if ending == ".csv" else _json)(repr(path), Path(path).read_bytes(), wanted)


def _csv(name: str, data: bytes, wanted: tuple[str | None, str | None]) -> TraceColumns:
    header = next(csv.reader(io.TextIOWrapper(io.BytesIO(data), "utf-8-sig", "replace", newline="")), [])
    chosen = _choose(name, header, wanted)
    bad: list[str] = []

    def odd(row: Any) -> str:
        bad.append(f"{row.actual_columns} values instead of {row.expected_columns} in {row.text!r:.60}")
        return "skip"

    try:
        table = pyarrow.csv.read_csv(
            pa.BufferReader(data),
            parse_options=pyarrow.csv.ParseOptions(invalid_row_handler=odd, newlines_in_values=True),
            convert_options=pyarrow.csv.ConvertOptions(
                include_columns=list(chosen), column_types=dict.fromkeys(chosen, pa.string())
            ),
        )
    except pa.ArrowInvalid as error:
        raise InputError(sentence("file", name, "cannot be read as csv", str(error).splitlines()[0])) from None
    source, time = (table.column(column) for column in chosen)
    return TraceColumns(source, time, chosen, len(bad), {"malformed": bad[0]} if bad else {})


def _json(name: str, data: bytes, wanted: tuple[str | None, str | None]) -> TraceColumns:
    objects, bad = [], []
    for number, line in enumerate(data.splitlines(), 1):
        try:
            row = json.loads(line) if line.strip() else None
        except (ValueError, RecursionError):
            row = line
        if isinstance(row, dict):
            objects.append(row)
        elif row is not None:
            bad.append(f"no JSON object in line {number:,}")
    chosen = _choose(name, list(dict.fromkeys(key for row in objects for key in row)), wanted)
    source, time = (pa.chunked_array([pa.array([_plain(row.get(c)) for row in objects], pa.string())]) for c in chosen)
    return TraceColumns(source, time, chosen, len(bad), {"malformed": bad[0]} if bad else {})


def _plain(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value)


def _text(name: str, values: pa.ChunkedArray) -> pa.ChunkedArray:
    try:
        plain = values.cast(values.type.value_type) if pa.types.is_dictionary(values.type) else values
        return plain.cast(pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise InputError(
            sentence("column", repr(name), f"holds {values.type}, not names of sources", "choose another")
        ) from None


def _choose(place: str, names: Sequence[str], wanted: tuple[str | None, str | None]) -> tuple[str, str]:
    chosen = _pick(place, names, "source", wanted[0], SOURCE), _pick(place, names, "time", wanted[1], TIME)
    for name in chosen:
        require(names.count(name) == 1, "column", repr(name), "appears twice", "keep one of them")
    return chosen


def _pick(place: str, names: Sequence[str], what: str, wanted: str | None, usual: tuple[str, ...]) -> str:
    shown = ", ".join(names) or "nothing"
    if wanted is not None:
        if wanted not in names:
            raise InputError(sentence("column", repr(wanted), f"is not in {place}", f"it has {shown}"))
        return wanted
    for word in usual:
        for name in names:
            if name.strip().lower() == word:
                return name
    raise InputError(
        sentence(
            "table",
            place,
            f"has no column of {what}s",
            f"it has {shown}; call one {usual[0]}, or import it with unstale trace csv --{what}-column NAME",
        )
    )
