"""Reading and writing fleet files: CSV, Parquet, JSON lines. A file appears whole or not at all."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.csv
import pyarrow.json

from unstale.errors import InputError, sentence
from unstale.writing import whole_file

#: columns that may carry units or look like numbers without being any
TEXT = ("id", "host", "process")
UNITS = ("change_rate", "min_interval", "max_interval", "observed")


def read(path: str) -> pa.Table:
    """The table in a file, by its ending; `-` reads CSV, JSON lines or Parquet from standard input."""
    if path == "-":
        data = sys.stdin.buffer.read()
        kind = "parquet" if data[:4] == b"PAR1" else "jsonl" if data.lstrip()[:1] == b"{" else "csv"
        return _read(kind, pa.BufferReader(data), "standard input")
    file = Path(path)
    if not file.is_file():
        raise InputError(sentence("file", repr(path), "does not exist", "check the path"))
    return _read(_kind(file), pa.OSFile(str(file)), repr(path))


def write(table: pa.Table, path: str) -> None:
    """Write a table into a file, by its ending: nobody ever sees half a plan."""
    writers: dict[str, Callable[[BinaryIO], Any]] = {
        "csv": lambda to: pyarrow.csv.write_csv(table, to),
        "parquet": lambda to: _parquet().write_table(table, to),
        "jsonl": lambda to: _write_json(table, to),
    }
    write_to = writers[_kind(Path(path))]
    with whole_file(path) as out:
        write_to(out)


def _kind(file: Path) -> str:
    kinds = {".csv": "csv", ".parquet": "parquet", ".pq": "parquet", ".jsonl": "jsonl", ".ndjson": "jsonl"}
    try:
        return kinds[file.suffix.lower()]
    except KeyError:
        raise InputError(
            sentence("file", repr(str(file)), "has an unknown ending", "use .csv, .parquet or .jsonl")
        ) from None


def _read(kind: str, source: Any, name: str) -> pa.Table:
    try:
        if kind == "parquet":
            return _parquet().read_table(source)
        data = source.read()
        if not data.strip():
            raise InputError(sentence("file", name, "is empty", "give a header and at least one source"))
        return _read_csv(data) if kind == "csv" else _read_json(data)
    except (pa.ArrowInvalid, UnicodeDecodeError, json.JSONDecodeError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(sentence("file", name, f"cannot be read as {kind}", reason)) from None


def _parquet() -> Any:
    """Loaded where it is needed: with it comes all that reads from other machines."""
    import pyarrow.parquet

    return pyarrow.parquet


def _read_csv(data: bytes) -> pa.Table:
    """Numbers where all values are, text where some carry a unit: the second try reads those as text."""
    for texts in (TEXT, TEXT + UNITS):
        options = pyarrow.csv.ConvertOptions(
            column_types={c: pa.string() for c in texts},
            strings_can_be_null=True,
            null_values=["", "NaN", "nan", "null"],
        )
        try:
            return pyarrow.csv.read_csv(pa.BufferReader(data), convert_options=options)
        except pa.ArrowInvalid as error:
            if "conversion" not in str(error) or texts != TEXT:
                raise
    raise AssertionError("unreachable")


def _read_json(data: bytes) -> pa.Table:
    try:
        return pyarrow.json.read_json(pa.BufferReader(data))
    except pa.ArrowInvalid:
        # A column that mixes numbers and units is read value by value.
        rows = [json.loads(line) for line in data.decode().splitlines() if line.strip()]
        names = list(dict.fromkeys(name for row in rows for name in row))
        return pa.table({n: [None if row.get(n) is None else str(row[n]) for row in rows] for n in names})


def _write_json(table: pa.Table, to: BinaryIO) -> None:
    for batch in table.to_batches(max_chunksize=10_000):
        for row in batch.to_pylist():
            to.write(json.dumps(row).encode() + b"\n")
