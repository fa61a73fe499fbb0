"""How a large table is divided into parts, and what the source says of each: whether an earlier reading of it holds.

    PostgreSQL  ranges of the table's own blocks, whatever its key, or without any. The rows of a part add up by where
                each version of a row lies and which transaction wrote it: no two versions in one file share that.
                Before 14 no range of blocks can be asked for: as in MySQL, where there is a key
    MySQL       ranges of the first column of the primary key, in whose order rows lie there; and so MariaDB. The rows
                of a part add up by the hashes of all columns' text

Rules of this file:
1. A table stays divided as it was when its first part was kept, while it grows and shrinks: parts are compared.
2. All parts together are the table at the moment of the poll: every row is in one of them, and in no other.
3. Views, queries and other databases are not divided.
4. Whatever columns a table has: every name of ours in a statement says whose it is, or is a place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date
from functools import partial
from typing import Any

from unstale.adapters.sql_parts import TableParts
from unstale.adapters.sql_places import split
from unstale.adapters.sql_probe import row_sum
from unstale.adapters.sql_ranges import MYSQL, RANGES, part_width
from unstale.adapters.sql_source import Source
from unstale.adapters.sql_types import Column, own_type
from unstale.frozen import dataclass

#: rows from which on a table is read in parts, and how many a part has, about
LARGE, PART = 500_000, 100_000
#: the first PostgreSQL that is asked for ranges of blocks
BLOCKS_SINCE = 140000
#: the last block that there can be
_LAST = 2**32 - 1
# Blocks of the largest table of those that are read under this name; which files they are in; what no row shows, a
# column that was dropped and came again with another value where rows have none of their own; whether all are plain.
_LAYOUT = """
WITH RECURSIVE tree(oid) AS (
    SELECT to_regclass(:full)::oid UNION SELECT inhrelid FROM pg_inherits JOIN tree ON inhparent = tree.oid
), shape(told) AS (
    SELECT string_agg(concat_ws(' ', attnum, atttypid, attmissingval::text), ', ' ORDER BY attrelid, attnum)
    FROM pg_attribute JOIN tree ON attrelid = tree.oid WHERE attnum > 0 AND NOT attisdropped
)
SELECT max(pg_relation_size(tree.oid)) / current_setting('block_size')::int,
    string_agg(concat_ws(' ', tree.oid, pg_relation_filenode(tree.oid)), ', ' ORDER BY tree.oid),
    (SELECT told FROM shape),
    bool_and(relkind = 'p' OR coalesce(amname, '') = 'heap') AND current_setting('server_version_num')::int >= :since
FROM tree JOIN pg_class ON pg_class.oid = tree.oid LEFT JOIN pg_am ON pg_am.oid = relam
"""
_BLOCKS = """
SELECT part.n, s.rows, s.total FROM generate_series(0::bigint, :last) AS part(n), LATERAL (
    SELECT count(*) AS rows,
        sum(hashtidextended(q.ctid, hashint8extended(q.xmin::text::bigint, q.tableoid::bigint)))::text AS total
    FROM {full} AS q WHERE q.ctid >= ('(' || part.n * :width || ',0)')::tid
        AND q.ctid < ('(' || CASE WHEN part.n = :last THEN :most ELSE (part.n + 1) * :width END || ',0)')::tid
) AS s
"""
_MYSQL_ORDER = (
    "SELECT concat_ws(' ', column_type, collation_name) FROM information_schema.columns "
    "WHERE table_schema = coalesce(:schema, database()) AND table_name = :table AND column_name = :name"
)
_POSTGRES_ORDER = (
    "SELECT concat_ws(' ', format_type(atttypid, atttypmod), collname, collversion) FROM pg_attribute "
    "LEFT JOIN pg_collation ON pg_collation.oid = attcollation WHERE attrelid = to_regclass(:full) AND attname = :name"
)
_NEXT = "SELECT {name} FROM {{full}} AS q {where} ORDER BY {name} LIMIT 1 OFFSET {step}"
_SUMS = "SELECT {number}, count(*), {total} FROM {{full}} AS q GROUP BY 1"
_ORDERED = ("smallint", "integer", "bigint", "decimal(20,0)", "text", "bytes", "date", "timestamp", "timestamptz")


@dataclass(frozen=True, slots=True)
class RowRange:
    """A part of a table at one moment: how many rows it has, all that they depend on, and the condition for them."""

    rows: int
    depends: str
    condition: Any


_Way = Callable[[int, TableParts], list[RowRange]]


def division_of(source: Source, columns: Sequence[Column], key: Sequence[str]) -> _Way | None:
    """How a table of so many rows is divided as its parts were, or are now; None if there is no way."""
    first = next((column for column in columns if key and column.name == key[0]), None)
    ordered = first is not None and first.type in _ORDERED
    # An enum's text is not its order, and other types of text have rules of their own.
    plain = first is not None and ordered and not own_type(first)
    by_key = partial(_by_key, source, columns, first.name) if first is not None and plain else None
    if source.is_plain_table():
        return partial(_by_blocks, source, columns, by_key)
    return by_key if source.dialect in MYSQL else None


def _by_blocks(
    source: Source, columns: Sequence[Column], otherwise: _Way | None, rows: int, parts: TableParts
) -> list[RowRange]:
    ((blocks, files, shape, plain),) = source.told(_LAYOUT, since=BLOCKS_SINCE)
    if not plain:
        return otherwise(rows, parts) if otherwise else []
    width = int(parts.division().get("blocks", 0))
    if not width or blocks // width > 2 * RANGES:
        width = part_width(0, blocks, rows // PART)
        parts.set_division({"blocks": width})
    last = blocks // width
    found = []
    for n, count, total in source.told(_BLOCKS, last=last, width=width, most=_LAST):
        if count:
            below = _LAST if n == last else (n + 1) * width
            where = source.condition(f"q.ctid >= '({n * width},0)' AND q.ctid < '({below},0)'")
            found.append(RowRange(count, ascii((_form(columns), files, shape, width, n, count, total)), where))
    return found


def _by_key(source: Source, columns: Sequence[Column], name: str, rows: int, parts: TableParts) -> list[RowRange]:
    known = parts.division()
    # Another type or collation is another order.
    order = [name, *_order(source, name)]
    if known.get("order") != order:
        found = _bounds(source, name, max(PART, rows // RANGES))
        if found is None:
            return []
        known = {"order": order, "bounds": [{"hex": one.hex()} if isinstance(one, bytes) else one for one in found]}
        parts.set_division(known)
    bounds = [bytes.fromhex(one["hex"]) if isinstance(one, dict) else one for one in known["bounds"]]
    values = {f"b{i}": one for i, one in enumerate(bounds)}
    column, number = _named(source, name), _number(_named(source, name), 0, len(bounds))
    total = _literal(row_sum(source, [one.name for one in columns]))
    made = []
    for n, count, added in sorted(source.told(_SUMS.format(number=number, total=total), **values)):
        ends = [f"{column} >= :b{n - 1}"] * (n > 0) + [f"{column} < :b{n}"] * (n < len(bounds))
        given = {end.rpartition(":")[2]: values[end.rpartition(":")[2]] for end in ends}
        where = source.condition(" AND ".join(ends), **given) if ends else None
        made.append(RowRange(count, ascii((_form(columns), name, ascii(given), n, count, str(added))), where))
    return made


def _order(source: Source, name: str) -> list[str]:
    """In which order the database has the values of a column, in its own words."""
    if source.dialect not in MYSQL:
        return [str(one) for (one,) in source.told(_POSTGRES_ORDER, name=name)]
    schema, table = split(source.ask.table)
    return [str(one) for (one,) in source.told(_MYSQL_ORDER, schema=schema, table=table, name=name)]


def _bounds(source: Source, name: str, step: int) -> list[Any] | None:
    """The values of a column at which parts of about so many rows begin; None if a value cannot be kept."""
    column = _named(source, name)
    found: list[Any] = []
    while True:
        # The next one is another one also where values are repeated.
        where = f"WHERE {column} > :value" if found else ""
        after = {"value": found[-1]} if found else {}
        told = source.told(_NEXT.format(name=column, where=where, step=step - 1 if found else step), **after)
        if not told:
            return found
        ((value,),) = told
        value = str(value) if isinstance(value, date) else value
        if not isinstance(value, int | str | bytes):
            return None
        found.append(value)


def _number(column: str, first: int, last: int) -> str:
    """The number of the part that a value lies in, by as few comparisons as there need be.

    >>> _number("k", 0, 2)
    'CASE WHEN k < :b1 THEN CASE WHEN k < :b0 THEN 0 ELSE 1 END ELSE 2 END'
    """
    if first == last:
        return str(first)
    middle = (first + last) // 2
    return (
        f"CASE WHEN {column} < :b{middle} THEN {_number(column, first, middle)} "
        f"ELSE {_number(column, middle + 1, last)} END"
    )


def _named(source: Source, name: str) -> str:
    return _literal(f"q.{source.quoted(name)}")


def _literal(written: str) -> str:
    # A colon in a name is no value's.
    return written.replace(":", "\\:")


def _form(columns: Sequence[Column]) -> list[tuple[str, str, str]]:
    return [(column.name, column.type, column.native) for column in columns]
