"""Lists as tables: CSV and its kin, JSON lines, Parquet. One row is one source, columns are found by name."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable

from unstale.errors import InputError, sentence
from unstale.lists.rows import ListReader, column

_DELIMITERS = ",;\t"


def delimiter_of(header: str) -> str:
    """What separates the cells of a table, by its first line.

    >>> delimiter_of("address;weight;note, if any")
    ';'
    """
    return max(_DELIMITERS, key=header.count)


def read_csv(text: str, rows: ListReader) -> tuple[str, ...]:
    """A table with a header; columns that nobody reads are returned."""
    lines = io.StringIO(text, newline="")
    reader = csv.reader(lines, delimiter=delimiter_of(text.partition("\n")[0]), strict=True)
    try:
        header = next(reader, [])
    except csv.Error as error:
        raise InputError(sentence("header", repr(text[:40]), "cannot be read", str(error))) from None
    names = _columns(header)
    while True:
        line = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            break
        except csv.Error as error:
            rows.refuse(line, f"its cells cannot be told apart ({error}): check its quotes")
            continue
        if not any(cells):
            continue
        if len(cells) > len(names):
            rows.refuse(line, f"it has {len(cells)} cells, but the header has {len(names)}: quote what holds commas")
            continue
        rows.take(line, {name: cell for name, cell in zip(names, cells, strict=False) if name and cell})
    return tuple(name for name, known in zip(header, names, strict=True) if known is None)


def read_jsonl(text: str, rows: ListReader) -> tuple[str, ...]:
    """One JSON object a line."""
    names: dict[str, str | None] = {}
    for line, raw in enumerate(io.StringIO(text, newline=None), 1):
        if not raw.strip():
            continue
        try:
            found = json.loads(raw)
        except (ValueError, RecursionError) as error:
            rows.refuse(line, f"it is not JSON: {error}")
            continue
        if not isinstance(found, dict):
            rows.refuse(line, 'it is not a JSON object: write it like {"address": "https://example.org"}')
            continue
        for name in found.keys() - names.keys():
            names[name] = column(name)
        rows.take(line, {known: value for name, value in found.items() if (known := names[name])})
    return tuple(name for name, known in names.items() if known is None)


def read_parquet(data: bytes, rows: ListReader) -> tuple[str, ...]:
    """A Parquet file; its rows count from 1."""
    import pyarrow as pa  # the other tables need none of it
    import pyarrow.parquet

    try:
        table = pyarrow.parquet.read_table(pa.BufferReader(data))
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"list cannot be read as Parquet: {str(error).splitlines()[0]}") from None
    names = _columns(table.column_names)
    kept = table.select([i for i, known in enumerate(names) if known])
    wanted = [known for known in names if known]
    row = 0
    for batch in kept.to_batches(max_chunksize=10_000):
        for values in zip(*(part.to_pylist() for part in batch.columns), strict=True):
            row += 1
            rows.take(row, dict(zip(wanted, values, strict=True)))
    return tuple(name for name, known in zip(table.column_names, names, strict=True) if known is None)


def _columns(header: Iterable[str]) -> list[str | None]:
    shown = [name.strip() for name in header]
    names = [column(name) for name in shown]
    if "address" not in names:
        told = "".join(c if c.isprintable() else "?" for c in ", ".join(shown)[:100])
        raise InputError(
            sentence(
                "list",
                f"with columns {told}",
                "has no column 'address'",
                "name the columns in the first line, or leave them out in a .txt file",
            )
        )
    for i, name in enumerate(names):
        if name and name in names[:i]:
            raise InputError(
                sentence(
                    "column", repr(shown[i]), f"means the same as {shown[names.index(name)]!r}", "keep one of them"
                )
            )
    return names
