"""Fleets too big for one table: many Parquet files, read and written a batch at a time.

Rules of this file:
1. A file is named by its path or by an address that Arrow opens (s3://, gs://, file://); workers open it themselves.
2. A part is a run of row groups of one file: what one task reads. Memory is bounded by the batch, whatever the part.
3. A file appears whole or not at all: written under another name first, unless an object store does that by itself.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet as pq

from unstale.errors import InputError, require, sentence
from unstale.frozen import dataclass
from unstale.writing import whole_file

#: what a path holds in an address as it is; what an address may hold that somebody has written
_PATH = "/:@!$&'()*+,;="
_WRITTEN = f"{_PATH}?#[]%"
#: rows read at a time: enough for compiled passes, some hundred megabytes with all columns of a plan
BATCH = 1 << 18
#: rows that one task looks through, so that few enough tasks keep many workers busy
PART = 1 << 22


@dataclass(frozen=True, slots=True)
class FleetPart:
    """Some row groups of a file, from `first` until before `last`; they hold `rows` rows, after the first `row`."""

    file: str
    first: int
    last: int
    row: int
    rows: int
    #: whether all of it is read at once: its sources belong together
    whole: bool = False


def files_of(pattern: str) -> list[str]:
    """The Parquet files that a path, a folder or a pattern with * means, sorted.

    >>> files_of("no/such/*.parquet")
    Traceback (most recent call last):
    unstale.errors.InputError: files 'no/such/*.parquet' match nothing: check the pattern, and put it in quotes
    """
    found = _matching(pattern)
    require(found, "files", repr(pattern), "match nothing", "check the pattern, and put it in quotes")
    other = next((f for f in found if PurePosixPath(f).suffix.lower() not in (".parquet", ".pq")), None)
    require(other is None, "file", repr(other), "is not Parquet, and only that is read in parts", "convert it")
    return sorted(found)


def parts_of(file: str) -> list[FleetPart]:
    """The parts of a file, of about PART rows each; none if it has no rows."""
    with _opened(file) as opened:
        sizes = [opened.metadata.row_group(i).num_rows for i in range(opened.metadata.num_row_groups)]
    parts, first, row, held = [], 0, 0, 0
    for i, size in enumerate(sizes):
        held += size
        if held >= PART or (held and i + 1 == len(sizes)):
            parts.append(FleetPart(file, first, i + 1, row, held))
            first, row, held = i + 1, row + held, 0
    return parts


def batches(part: FleetPart, columns: Sequence[str] | None = None) -> Iterator[tuple[int, pa.Table]]:
    """The tables of a part, one after another, each with the row of the file it begins after."""
    row = part.row
    with _opened(part.file) as opened:
        names = None if columns is None else [c for c in columns if c in opened.schema_arrow.names]
        groups = range(part.first, part.last)
        try:
            # one thread: the engine has a worker per core already
            size = part.rows if part.whole else BATCH
            for batch in opened.iter_batches(size, row_groups=groups, columns=names, use_threads=False):
                yield row, pa.Table.from_batches([batch])
                row += batch.num_rows
        except (pa.ArrowInvalid, OSError) as error:
            raise _unreadable(part.file, error) from None


def target_of(file: str, folder: str) -> str:
    """Where the plan of a file goes: a file of the same name in another folder.

    >>> target_of("in/a.parquet", "out/")
    'out/a.parquet'
    """
    return f"{folder.rstrip('/')}/{PurePosixPath(file).name}"


def write_batches(tables: Iterator[pa.Table], file: str) -> None:
    """Write tables of one form into a file, each as a row group."""
    try:
        with sink_of(file) as sink:
            first = next(tables)
            # numbers seldom repeat, and a dictionary of them takes longer than all the rest
            texts = [field.name for field in first.schema if pa.types.is_string(field.type)]
            with pq.ParquetWriter(sink, first.schema, use_dictionary=texts) as out:
                out.write_table(first)
                for table in tables:
                    out.write_table(table)
    except OSError as error:
        raise unwritable(file, error) from None


def sink_of(file: str) -> AbstractContextManager[Any]:
    """A file to be written, whole or not at all."""
    system, path = place_of(file)
    # two workers may write one file, if the first was thought lost: each has its own draft
    local = isinstance(system, pyarrow.fs.LocalFileSystem)
    return whole_file(path) if local else system.open_output_stream(path)


def prepare(files: Sequence[str], folder: str) -> None:
    """Make the folder of a plan; refuse one that would overwrite what is read, or one file with another."""
    names = [PurePosixPath(f).name for f in files]
    twice = next((n for n in names if names.count(n) > 1), None)
    require(twice is None, "file", repr(twice), "is there twice, in two folders", "plan them under different names")
    clash = next((f for f in files if _same(f, target_of(f, folder))), None)
    require(clash is None, "output", repr(folder), "is the folder that is read", "choose another")
    system, path = place_of(folder)
    try:
        system.create_dir(path, recursive=True)
    except OSError as error:
        raise unwritable(folder, error) from None


def tidy(files: Sequence[str], folder: str) -> None:
    """Remove the drafts of workers that died while writing."""
    system, path = place_of(folder)
    if isinstance(system, pyarrow.fs.LocalFileSystem):
        for file in files:
            for draft in Path(path).glob(f".{glob.escape(PurePosixPath(file).name)}.????????"):
                draft.unlink(missing_ok=True)


def _matching(pattern: str) -> list[str]:
    # absolute, because workers may stand elsewhere
    system, path = place_of(pattern if "://" in pattern else str(Path(pattern).absolute()))
    scheme = pattern.partition("://")[0] + "://" if "://" in pattern else ""
    wild = re.search(r"[*?[]", path)
    try:
        if wild is None and system.get_file_info(path).type != pyarrow.fs.FileType.Directory:
            return [_named(scheme, path)]
        folder = path if wild is None else path[: wild.start()].rpartition("/")[0]
        deep = wild is not None and "/" in path[wild.start() :]
        listed = system.get_file_info(pyarrow.fs.FileSelector(folder, recursive=deep, allow_not_found=True))
    except OSError as error:
        rule = f"cannot be listed ({_reason(error)})"
        raise InputError(sentence("files", repr(pattern), rule, "check the address")) from None
    wanted = f"{path.rstrip('/')}/*.parquet" if wild is None else path
    return [_named(scheme, info.path) for info in listed if info.is_file and fnmatch(info.path, wanted)]


def _named(scheme: str, path: str) -> str:
    """A file as `place_of` finds it again: an address has no spaces and no letters beyond ASCII."""
    return scheme + quote(path, safe=_PATH) if scheme else path


def place_of(file: str) -> tuple[pyarrow.fs.FileSystem, str]:
    """The file system of a file or folder, and its path there."""
    if "://" not in file:
        return pyarrow.fs.LocalFileSystem(), file
    try:
        # As people write it: what an address may not hold is put as it must be, what is already so is left.
        system, path = pyarrow.fs.FileSystem.from_uri(quote(file, safe=_WRITTEN))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
        raise InputError(
            sentence("file", repr(file), f"cannot be opened ({_reason(error)})", "check the address")
        ) from None
    return system, str(path)


def _opened(file: str) -> pq.ParquetFile:
    system, path = place_of(file)
    try:
        return pq.ParquetFile(path, filesystem=system, buffer_size=1 << 20, pre_buffer=False)
    except FileNotFoundError:
        raise InputError(
            sentence("file", repr(file), "does not exist", "check the path; every worker must see it")
        ) from None
    except (pa.ArrowInvalid, OSError) as error:
        raise _unreadable(file, error) from None


def _unreadable(file: str, error: Exception) -> InputError:
    return InputError(sentence("file", repr(file), "cannot be read as parquet", _reason(error)))


def unwritable(place: str, error: Exception) -> InputError:
    """What to raise where nothing can be written."""
    return InputError(sentence("output", repr(place), f"cannot be written ({_reason(error)})", "choose another"))


def _reason(error: Exception) -> str:
    return (getattr(error, "strerror", None) or str(error)).splitlines()[0]


def _same(a: str, b: str) -> bool:
    (one, first), (two, second) = place_of(a), place_of(b)
    if isinstance(one, pyarrow.fs.LocalFileSystem) and isinstance(two, pyarrow.fs.LocalFileSystem):
        return Path(first).resolve() == Path(second).resolve()
    return one.equals(two) and first == second
