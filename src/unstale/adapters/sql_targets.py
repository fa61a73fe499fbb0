"""Where copies of tables go: what is asked of a target, and which one an owner's word means.

    shop.db, or any other file     SQLite, `sql_tables`
    shop.duckdb                    DuckDB, `duckdb_tables`
    shop.parquet                   a folder of Parquet files, `parquet_tables`
    postgresql://…?schema=copies   a schema of a PostgreSQL server, `postgres_target`

A target brings a table to what was read of its source in one step: who reads sees the whole old copy or the whole new
one, and who has begun to read keeps what he began with.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

from unstale.adapters.sql_ranges import KeyRanges, Sums
from unstale.adapters.sql_schema import Schemas
from unstale.adapters.sql_types import Column, own_type
from unstale.adapters.sql_values import WIDTH, Plain
from unstale.adapters.target_places import SchemaPlace, TargetPlace
from unstale.errors import require
from unstale.frozen import dataclass

#: a row to be put aside: the hash of its key, of all it holds, and its values
Row = tuple[bytes, bytes, Sequence[Plain]]


@dataclass(frozen=True, slots=True)
class LocalTable:
    """What is known of a local table: its shape, its content's digest, and how far its source has been read.

    `probe` is the source's probe when it was last read, `mark` from where the next reading may begin, `read_at` when
    all of it was last read, `manifest` the account of its last change, `edition` counts what was recorded, `types`
    are those of its columns as the target declares them; none: it was made before there were any.
    """

    name: str
    view: str
    columns: tuple[str, ...] = ()
    key: tuple[str, ...] = ()
    rows: int = 0
    digest: bytes = bytes(WIDTH)
    probe: str = ""
    mark: str = ""
    read_at: float = 0.0
    manifest: bytes = b""
    edition: int = 0
    types: tuple[str, ...] = ()
    #: what its source says of it, when all of it was read
    comment: str = ""


class TableReading(Protocol):
    """Rows of a source on their way, hashed for a target that compares hashes, or as text for one that reads it."""

    @property
    def columns(self) -> Sequence[Column]:
        """What is read."""

    @property
    def key(self) -> Sequence[str]:
        """The columns that tell rows apart; none: they are told apart by all they hold, and counted."""

    @property
    def unique(self) -> bool:
        """Whether the database itself sees to it that no two rows have the same key."""

    def rows(self) -> Iterator[Row]:
        """Every row, hashed."""

    def text(self, native: bool = False) -> Iterator[bytes]:
        """Every row in CSV, see `sql_text`; `native`: as PostgreSQL writes it."""

    def files(self) -> Sequence[Path]:
        """The files that hold every row in CSV, where there are any that stay until the table is merged."""


class Target(Protocol):
    """The local tables, opened for one poll of one of them."""

    def held(self, name: str, view: str) -> LocalTable:
        """What is known of this table; nothing yet, if `edition` is 0. `view` is the name to be seen by, if free."""

    def take(self, reading: TableReading, types: tuple[str, ...] = ()) -> tuple[str, ...]:
        """Put rows aside; the types that columns need here to hold them: those given, if they do."""

    def take_keys(self, reading: TableReading) -> None:
        """Put aside the keys of all rows that the source has: what is not among them is gone."""

    def new_rows(self, name: str) -> int:
        """How many of the rows put aside are not in the table."""

    def sums(self, name: str, cut: KeyRanges) -> Sums:
        """What ranges of the key add up to, of the rows in the table and those put aside together."""

    def keep(self, name: str, cut: KeyRanges, ranges: Collection[int]) -> None:
        """Put aside the keys that are here in all other ranges too: nothing is gone there."""

    def absent(self, name: str) -> int:
        """How many keys of the source belong to no row that is in the table or put aside."""

    def merge(self, held: LocalTable, *, kind: str, among: str | None) -> LocalTable:
        """Bring the table to what was put aside, and record `held`'s shape and progress with it, in one step.

        `among` names what rows must be in to stay, `incoming` or `present`; None removes no row. Nothing is done if
        another poll has recorded since `held` was read.
        """

    def schemas(self, name: str) -> Schemas:
        """What is known of the schema of a table's source."""

    def set_schemas(self, name: str, known: Schemas) -> None:
        """Write down what is known of it now."""

    def together(self) -> AbstractContextManager[None]:
        """Let all tables that are merged meanwhile be switched to in one step, or none; InputError if it cannot."""

    def join_group(self, group: str, name: str, asked: str, now: float) -> None:
        """Write down that a table is polled as one of a group, and how."""

    def group(self, group: str, since: float) -> list[str]:
        """How those of a group are polled who were polled themselves since then."""

    def close(self) -> None:
        """Give back what was put aside."""

    def interrupt(self) -> None:
        """Let what runs end with an error; for another thread."""


def open_target(path: TargetPlace, patient: Callable[[], bool], partition: Sequence[str] = ()) -> Target:
    """The target at this place; `patient` says whether to wait on for another's turn.

    `partition` says by what the files of a table are divided, where a table has files of its own.
    """
    own = isinstance(path, Path) and path.suffix == ".parquet"
    remedy = "leave it out, or choose a .parquet target"
    require(own or not partition, "partition", repr(", ".join(partition)), "is of Parquet files alone", remedy)
    if isinstance(path, SchemaPlace):
        from unstale.adapters.postgres_target import SchemaTables

        return SchemaTables(path, patient)
    if path.suffix == ".duckdb":
        from unstale.adapters.duckdb_tables import DuckTables

        return DuckTables(path, patient)
    if path.suffix == ".parquet":
        from unstale.adapters.parquet_tables import ParquetTables

        return ParquetTables(path, patient, partition)
    from unstale.adapters.sql_tables import Tables

    return Tables(path, patient)


class TableRecords(Protocol):
    """What is known of local tables, for who asks about them and polls none."""

    def held(self, name: str, view: str) -> LocalTable:
        """What is known of this table; nothing yet, if `edition` is 0."""

    def schemas(self, name: str) -> Schemas:
        """What is known of the schema of a table's source."""

    def set_schemas(self, name: str, known: Schemas) -> None:
        """Write down what is known of it now."""

    def close(self) -> None:
        """Give back what is open."""


def open_records(place: TargetPlace) -> TableRecords | None:
    """What the target at this place knows of its tables; None before there are any."""
    if isinstance(place, SchemaPlace):
        from unstale.adapters.postgres_target_records import SchemaRecords

        return SchemaRecords(place, lambda: False)
    from unstale.adapters.sql_records import Records

    file = place
    if place.suffix in (".duckdb", ".parquet"):
        from unstale.adapters.parquet_tables import tables_file

        tables = place if place.suffix == ".duckdb" else tables_file(place)
        file = tables.with_name(f"{tables.name}.state")
    return Records(file, lambda: False) if file.exists() else None


def account(
    done: LocalTable, kind: str, counts: tuple[int, int, int], notes: dict[str, str], columns: Sequence[Column] = ()
) -> dict[str, Any]:
    """What is told of a table after a change: `counts` are the rows inserted, changed and deleted."""
    inserted, changed, deleted = counts
    for column, type_ in zip(columns, done.types, strict=False):
        if type_ in ("TEXT", "VARCHAR") and (own := own_type(column)):
            notes = {column.name: own} | notes
    return {
        "changed": changed,
        "columns": list(done.columns),
        "deleted": deleted,
        "digest": done.digest.hex(),
        "inserted": inserted,
        "probe": kind,
        "rows": done.rows,
        "table": done.view,
        **({"types": list(done.types)} if done.types else {}),
        **({"key": list(done.key)} if done.key else {}),
        **({"comments": comments} if (comments := {c.name: c.comment for c in columns if c.comment}) else {}),
        **({"comment": done.comment} if done.comment else {}),
        **({"notes": notes} if notes else {}),
    }
