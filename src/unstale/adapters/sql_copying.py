"""From a probe to a local table that equals its source.

Rules of this file:
1. What a probe says is enough is believed until the next sweep; then everything is read and compared.
2. Rows that changed are merged alone if the table can hold them as it is; otherwise all are read anew, a large table in
   parts that outlive a poll which is killed or cut off.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

from unstale.adapters import sql_division
from unstale.adapters.sql_changed_ranges import changed_ranges
from unstale.adapters.sql_division import RowRange, division_of
from unstale.adapters.sql_flight import SqlFlight
from unstale.adapters.sql_parts import TableParts
from unstale.adapters.sql_places import Ask
from unstale.adapters.sql_probe import Look, look
from unstale.adapters.sql_ranges import MYSQL, ROWS, KeyRanges, differing, digits_for, width_of
from unstale.adapters.sql_records import view_name
from unstale.adapters.sql_resuming import PartedReading
from unstale.adapters.sql_schema import Schema, Schemas, schema_changes
from unstale.adapters.sql_source import Source
from unstale.adapters.sql_targets import LocalTable, Row, TableReading, Target
from unstale.adapters.sql_types import Column
from unstale.adapters.sql_values import plain, row_hash, size
from unstale.errors import InputError
from unstale.frozen import dataclass
from unstale.logs import log


class Copying:
    """One poll: what it saw, what it brought, and how many bytes of rows that took."""

    def __init__(
        self, wanted: Ask, source: Source, tables: Target, flight: SqlFlight, now: float, folder: Path | None = None
    ) -> None:
        self.wanted = wanted
        self._ask, self._source, self._tables, self._flight, self._now = wanted, source, tables, flight, now
        #: where parts of large tables are kept, if anywhere
        self._folder = folder
        self._parts: TableParts | None = None
        self.received = self._kept = 0
        #: rows that came over, of which a text with several lines counts for several
        self.came = 0
        #: rows that are here, of those that are wanted; which of them are sure, and which were here before
        self._rows = self._of = self._sure = self._before = 0
        #: a key that is not the owner's word is the table's primary key
        self.unique = not wanted.key

    def run(self) -> tuple[Look, LocalTable]:
        """What the probe saw, and the table after it."""
        held = self._tables.held(table_name(self._ask), view_name(self._ask.table or "query"))
        names = self._source.columns()
        seen = look(self._source, names, held.mark)
        swept = held.edition > 0 and 0.0 <= self._now - held.read_at < self._ask.sweep
        if swept and seen.probe and seen.probe == held.probe:
            return seen, held
        columns, key = self._source.typed(names), self._source.key()
        schema = Schema.of(columns, () if self._ask.key else key, self._ask.types)
        if held.edition > 0:
            self._heed(held.name, schema)
        seen = changed_ranges(self._source, columns, key, self.unique, seen, held.mark)
        # What is told of ranges comes over too.
        self._count(len(seen.mark) if seen.kind == "checksum" else 0)
        wanted = replace(held, columns=names, key=key, probe=seen.probe, mark=seen.mark, comment=self._source.comment)
        if swept and key and seen.since is not None and (held.columns, held.key) == (names, key):
            enough, among = self._stage_since(wanted, columns, seen)
            if enough:
                return seen, self._merge(wanted, seen, among)
        types = self._tables.take(self._whole(columns, key, seen))
        wanted = replace(wanted, read_at=self._now, types=types)
        done = self._merge(wanted, seen, "incoming")
        # After the copy: a poll that is killed in between finds the same change, and its acceptance, once more.
        if self._tables.schemas(held.name) != (known := Schemas(schema)):
            self._tables.set_schemas(held.name, known)
        return seen, done

    def settled(self) -> None:
        """The copy is there: what was kept for going on is not needed any more."""
        if self._parts is not None:
            self._parts.clear()

    def heed(self) -> None:
        """Tell of a changed schema, without copying anything; InputError if it is held."""
        held = self._tables.held(table_name(self._ask), view_name(self._ask.table or "query"))
        if held.edition > 0:
            names = self._source.columns()
            columns, key = self._source.typed(names), self._source.key()
            self._heed(held.name, Schema.of(columns, () if self._ask.key else key, self._ask.types))

    def _whole(self, columns: Sequence[Column], key: tuple[str, ...], seen: Look) -> TableReading:
        """Everything: in parts that outlive this poll, if it is much and its source can tell them apart."""
        whole, self._of = _Reading(self, columns, key), seen.rows
        if self._folder is None or seen.rows < sql_division.LARGE:
            return whole
        # What an owner calls a key need not be in the order of any index.
        way = division_of(self._source, columns, key if self.unique else ())
        if way is None:
            return whole
        self._parts = parts = TableParts(self._folder, table_name(self._ask))
        found = way(seen.rows, parts)

        def reading(one: RowRange) -> TableReading:
            return _Reading(self, columns, key, one.condition)

        return PartedReading(columns, key, parts, found, reading, self._had, self.unique) if found else whole

    def _heed(self, name: str, schema: Schema) -> None:
        """Tell of a changed schema; InputError if it is held until its owner accepts it."""
        known = self._tables.schemas(name)
        changes = () if known.held is None else schema_changes(known.held, schema)
        if not changes:
            if known.pending is not None:
                # It is as it was again.
                self._tables.set_schemas(name, Schemas(known.held))
            return
        told = "; ".join(change.sentence for change in changes)
        follow = self._ask.schema == "follow" or all(change.additive for change in changes)
        if follow or (known.accepted and known.pending == schema):
            log("schema_changed", {"table": self._ask.table, "what": told, "held": False})
            return
        if known.pending != schema:
            log("schema_changed", {"table": self._ask.table, "what": told, "held": True})
            self._tables.set_schemas(name, Schemas(known.held, schema))
        raise InputError(f"its schema changed and the copy is held: {told}; `unstale tables accept` takes it up")

    def _merge(self, wanted: LocalTable, seen: Look, among: str | None) -> LocalTable:
        self._flight.check()
        self._flight.tell(self._of, self._of, self._before, self.received)
        return self._tables.merge(wanted, kind=seen.kind, among=among)

    def _stage_since(self, wanted: LocalTable, columns: Sequence[Column], seen: Look) -> tuple[bool, str | None]:
        """Put aside what changed since the last reading: whether that is enough, and what rows must be in to stay."""
        if not self.unique and self._source.distinct(wanted.key) != seen.rows:
            # An owner's key that two rows share would hide one of them: reading everything says so.
            return False, None
        types = self._tables.take(_Reading(self, columns, wanted.key, seen.since), wanted.types)
        # A table that was made before there were types has none until everything is read again.
        if wanted.types and types != wanted.types:
            return False, None
        if wanted.rows + self._tables.new_rows(wanted.name) == seen.rows:
            return True, None
        keys = [column for name in wanted.key for column in columns if column.name == name]
        apart = self._apart(wanted, keys) if wanted.rows >= ROWS else None
        if apart is None:
            self._tables.take_keys(_Reading(self, keys, wanted.key, whole=False))
        else:
            since = self._source.in_ranges(wanted.key, *apart)
            self._tables.take_keys(_Reading(self, keys, wanted.key, since, whole=False))
            self._tables.keep(wanted.name, *apart)
        return self._tables.absent(wanted.name) == 0, "present"

    def _apart(self, wanted: LocalTable, keys: Sequence[Column]) -> tuple[KeyRanges, set[int]] | None:
        """The ranges of the key in which rows are gone, and how it is divided; None if all keys must be read."""
        cut = self._cut(wanted, keys)
        if cut is None:
            return None
        sums = self._source.sums(wanted.key, cut)
        # What is told of a range takes about as much as three numbers.
        self._count(24 * len(sums))
        found = differing(sums, self._tables.sums(wanted.name, cut))
        return (cut, found) if len(found) < len(sums) / 4 else None

    def _cut(self, wanted: LocalTable, keys: Sequence[Column]) -> KeyRanges | None:
        types = tuple(column.type for column in keys)
        # What an owner calls a key may be nothing, which is in no range of integers.
        if self.unique and len(types) == 1 and types[0] in ("smallint", "integer", "bigint"):
            extent = self._source.extent(wanted.key[0])
            return None if extent is None else KeyRanges(types, width_of(*extent))
        known = self._source.dialect in ("postgresql", *MYSQL)
        return KeyRanges(types, digits=digits_for(wanted.rows)) if known else None

    def read(self, names: Sequence[str] | None, since: Any) -> Iterator[Sequence[Any]]:
        """Rows as the driver gives them, in plain values."""
        for row in self._source.rows(names, since):
            values = [plain(value) for value in row]
            self._count(size(values), 1)
            yield values

    def text(self, columns: Sequence[Column], since: Any, native: bool) -> Iterator[bytes]:
        """Rows in CSV."""
        for chunk in self._source.text(columns, since, native):
            # A text with several lines counts for more, until its part ends.
            self._count(len(chunk), chunk.count(b"\n"))
            yield chunk

    def _count(self, received: int, rows: int = 0) -> None:
        self.received += received
        self.came += rows
        self._rows += rows
        self._check()

    def _had(self, one: RowRange, kept: int | None) -> None:
        """A part is here, read now; or `kept` from an earlier poll, whose bytes count as what may be read at most."""
        self._sure += one.rows
        self._rows = self._sure
        if kept is not None:
            self._kept += kept
            self._before += one.rows
        self._check()

    def _check(self) -> None:
        if self.received + self._kept > self._ask.max_bytes:
            raise InputError(f"the rows have more than {self._ask.max_bytes} bytes: raise max_bytes if they may")
        self._flight.tell(self._rows, self._of, self._before, self.received)
        self._flight.check()


@dataclass(frozen=True, slots=True)
class _Reading:
    copying: Copying
    columns: Sequence[Column]
    key: Sequence[str]
    since: Any = None
    #: whether all columns are read, and not those of the key alone
    whole: bool = True

    @property
    def unique(self) -> bool:
        return self.copying.unique

    def rows(self) -> Iterator[Row]:
        names = [column.name for column in self.columns]
        places = [names.index(name) for name in self.key]
        for values in self.copying.read(None if self.whole else names, self.since):
            yield row_hash([values[i] for i in places]) if places else b"", row_hash(values), values

    def text(self, native: bool = False) -> Iterator[bytes]:
        return self.copying.text(self.columns, self.since, native)

    def files(self) -> Sequence[Path]:
        return ()


def table_name(wanted: Ask) -> str:
    """The name of a source's table: the same as long as the source is the same."""
    return named((wanted.address, wanted.table, wanted.query))


def named(parts: tuple[str, ...]) -> str:
    """The name of a local table that these texts tell from all others."""
    text = ascii(parts)
    return f"source_{blake2b(text.encode('ascii'), digest_size=8).hexdigest()}"
