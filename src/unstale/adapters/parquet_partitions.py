"""The files of a copy in Parquet by the values of columns: what did not change keeps its file.

    country             a partition for each value
    ordered_at:month    one for each month; or year, or day; a time with a zone in UTC

Rules of this file:
1. A partition is known by its values and by what its rows add up to. Files of one that is the same stay where they are.
2. Folders are named as Hive does, `country=DE/ordered_at_month=2026-01`. The columns themselves are in the files too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from urllib.parse import quote

from unstale.adapters import duckdb_types
from unstale.adapters.sql_places import SPANS, column_of
from unstale.adapters.sql_records import quoted, shown_names
from unstale.adapters.sql_targets import LocalTable
from unstale.errors import InputError, require, sentence
from unstale.frozen import dataclass

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

#: partitions that a table may have
MOST = 5_000
_SPANS = dict(zip(SPANS, ("%Y", "%Y-%m", "%Y-%m-%d"), strict=True))
_TIMES = ("DATE", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE")
#: how Hive calls no value
_NONE = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True, slots=True)
class Partition:
    """The rows of a table with these values: the folder of their files, and by what they are known again."""

    values: dict[str, str | None]
    digest: str

    @property
    def folder(self) -> str:
        """Where its files are, in an edition.

        >>> Partition({"country": "DE", "at_month": None}, "").folder
        'country=DE/at_month=__HIVE_DEFAULT_PARTITION__'
        """
        told = (
            f"{quote(name, safe='')}={_NONE if v is None else quote(v, safe=' ')}" for name, v in self.values.items()
        )
        return "/".join(told)


def partitions(db: DuckDBPyConnection, table: str, held: LocalTable, by: Sequence[str]) -> list[Partition]:
    """The partitions of a table as it is now; the temporary table `unstale_parts` numbers them."""
    names, texts = zip(*(_label(held, one) for one in by), strict=True)
    columns = [
        duckdb_types.compared(quoted(one), type_)
        for one, type_ in zip(shown_names(held.columns), held.types, strict=True)
    ]
    labels = ", ".join(f"{text} AS unstale_{i}" for i, text in enumerate(texts))
    places = ", ".join(f"unstale_{i}" for i in range(len(by)))
    added = f"count(*) AS unstale_rows, sum(hash({', '.join(columns)})::HUGEINT) AS unstale_total"
    db.execute(
        "CREATE OR REPLACE TEMP TABLE unstale_parts AS "
        f"SELECT *, row_number() OVER (ORDER BY {places}) - 1 AS unstale_part "
        f"FROM (SELECT {labels}, {added} FROM {table} GROUP BY ALL)"
    )
    found = db.execute(f"FROM unstale_parts ORDER BY unstale_part LIMIT {MOST + 1}").fetchall()
    require(len(found) <= MOST, "partition", repr(", ".join(by)), f"has more than {MOST:,} values", "choose fewer")
    return [Partition(dict(zip(names, row, strict=False)), f"{row[-3]}-{row[-2]:x}") for row in found]


def numbered(table: str, held: LocalTable, by: Sequence[str], chosen: str, wanted: Sequence[int]) -> str:
    """Rows of these partitions with the numbers of theirs, in SQL."""
    labels = (_label(held, one)[1] for one in by)
    same = " AND ".join(f"{text} IS NOT DISTINCT FROM unstale_{i}" for i, text in enumerate(labels))
    among = f"(SELECT * FROM unstale_parts WHERE unstale_part IN ({', '.join(map(str, wanted))}))"
    return f"SELECT {chosen}, unstale_part FROM {table} AS t JOIN {among} ON {same}"


def _label(held: LocalTable, by: str) -> tuple[str, str]:
    """What the values of a partition are called, and their text in SQL."""
    name = column_of(by)
    place = held.columns.index(name)
    shown, type_ = shown_names(held.columns)[place], held.types[place]
    if name == by:
        return shown, f"CAST({quoted(shown)} AS VARCHAR)"
    span = by.rpartition(":")[2]
    if type_ not in _TIMES:
        raise InputError(sentence("partition", repr(by), f"is no time but {type_}", "name a column of dates or times"))
    # Whatever zone this machine is in.
    moment = f"make_timestamp(epoch_us({quoted(shown)}))" if type_ == _TIMES[-1] else quoted(shown)
    return f"{shown}_{span}", f"strftime({moment}, '{_SPANS[span]}')"
