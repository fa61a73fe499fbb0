"""Caps of hosts in parts: sources are brought together by host first, so that every host is whole in one place.

Rules of this file:
1. Which shard a host belongs to follows from its name alone: workers need not ask each other.
2. Two passes write: each part is cut into shards, each shard is put together. What lies between them is a draft.
3. A shard is planned as one table, so its memory is that of its sources; one host is never cut in two.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from zlib import crc32

import numpy as np
import pyarrow as pa

from unstale.core.checks import Floats
from unstale.errors import InputError, require, sentence
from unstale.frozen import dataclass
from unstale.planning.engines import PartsRunner
from unstale.planning.parts import FleetPart, batches, place_of, sink_of, unwritable, write_batches
from unstale.planning.table import as_table, host_codes
from unstale.units import parse_rate

#: sources that a shard is meant to have
SHARD = 1 << 20


@dataclass(frozen=True, slots=True)
class HostCaps:
    """Polls per day that hosts allow: some by name, and one cap for each of the others.

    >>> HostCaps.of({"a.example": "24/day", "*": 2.0}).columns(["b.example", "a.example"]).tolist()
    [2.0, 24.0]
    """

    named: Mapping[str, float]
    others: float = np.inf

    @staticmethod
    def of(host_cap: float | str | Mapping[str, float | str]) -> HostCaps:
        """As `unstale.plan` takes them: one rate for all, or rates by name with `*` for the rest."""
        given = host_cap if isinstance(host_cap, Mapping) else {"*": host_cap}
        rates = {name: parse_rate(rate, "host_cap") for name, rate in given.items()}
        return HostCaps({n: r for n, r in rates.items() if n != "*"}, rates.get("*", np.inf))

    def columns(self, names: Sequence[str]) -> Floats:
        """The cap of each of these hosts."""
        return np.array([self.named.get(name, self.others) for name in names], dtype=np.float64)


@contextmanager
def grouped(
    parts: Sequence[FleetPart], caps: HostCaps, engine: PartsRunner, output: str | None
) -> Iterator[list[FleetPart]]:
    """The same sources in parts that have each host whole, as long as the context lasts.

    They lie beside the plan, where every worker can write; without an output, in a folder of this machine.
    """
    shards = max(sum(part.rows for part in parts) // SHARD, 1)
    folder = f"{output.rstrip('/')}/.by-host" if output else tempfile.mkdtemp(prefix="unstale-by-host-")
    system, path = place_of(folder)
    try:
        try:
            system.create_dir(path, recursive=True)
        except OSError as error:
            raise unwritable(folder, error) from None
        seen = set[str]().union(*engine.map(_cut, list(enumerate(parts)), caps, shards, folder))
        unknown = next((name for name in caps.named if name not in seen), None)
        if unknown is not None:
            raise InputError(sentence("host_cap", repr(unknown), "names no host of the files", "check its spelling"))
        yield [one for one in engine.map(_joined, list(range(shards)), len(parts), shards, folder) if one is not None]
    finally:
        if output:
            system.delete_dir(path)
        else:
            shutil.rmtree(folder, ignore_errors=True)


def _cut(numbered: tuple[int, FleetPart], caps: HostCaps, shards: int, folder: str) -> set[str]:
    """Write a part so that run k·shards + s of its rows belongs to shard s; which of the named hosts it has."""
    number, part = numbered
    seen: set[str] = set()
    # One thread: the engine has a worker for each core already.
    options = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)
    out: pa.RecordBatchFileWriter | None = None
    try:
        with sink_of(_draft(folder, number)) as sink:
            for row, read in batches(part):
                table = as_table(read)
                hosts, names = _hosts(part, row, table)
                seen |= caps.named.keys() & set(names)
                shard = np.array([crc32(name.encode()) % shards for name in names])[hosts]
                out = out or pa.ipc.new_file(sink, table.schema, options=options)
                for s in range(shards):
                    rows = table.take(np.flatnonzero(shard == s)).combine_chunks()
                    out.write_batch(pa.RecordBatch.from_arrays([_one(c) for c in rows.columns], schema=table.schema))
            if out is not None:
                out.close()
    except OSError as error:
        raise unwritable(folder, error) from None
    return seen


def _joined(shard: int, parts: int, shards: int, folder: str) -> FleetPart | None:
    """Write a shard as a file of its own; None if it has no sources."""
    found: list[pa.Table] = []
    for number in range(parts):
        system, path = place_of(_draft(folder, number))
        with system.open_input_file(path) as source:
            drafts = pa.ipc.open_file(source)
            runs = [drafts.get_batch(i) for i in range(shard, drafts.num_record_batches, shards)]
            found.append(pa.Table.from_batches(runs, drafts.schema))
    try:
        whole = pa.concat_tables(found, promote_options="default")
    except pa.ArrowInvalid:
        raise InputError(
            sentence("files", "with one column of different types", "cannot be joined by host", "make them alike")
        ) from None
    if not whole.num_rows:
        return None
    file = f"{folder}/hosts-{shard:05}.parquet"
    write_batches(iter([whole]), file)
    return FleetPart(file, 0, 1, 0, whole.num_rows, whole=True)


def _hosts(part: FleetPart, row: int, table: pa.Table) -> tuple[np.ndarray[tuple[int], np.dtype[np.intp]], list[str]]:
    codes, names = host_codes(table, set(table.column_names))
    where = f"file {part.file!r}" + (f", after row {row:,}" if row else "")
    require(codes is not None, "host_cap", where, "needs a host for each source", "add a column host")
    assert codes is not None
    return codes, names


def _one(column: pa.ChunkedArray) -> pa.Array:
    """A column in one piece, also one without rows."""
    return column.chunk(0) if column.num_chunks else pa.array([], column.type)


def _draft(folder: str, number: int) -> str:
    return f"{folder}/part-{number:05}.arrow"
