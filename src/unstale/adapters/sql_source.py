"""A database as a source: a connection that can only read, and the statements a poll needs.

Rules of this file:
1. An address holds names of the environment where secrets belong (`$NAME`); they are filled in here, after the
   address was taken apart, so that no secret can be read as another part of it. They appear in no reason.
2. Whatever a driver raises becomes one sentence here.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, suppress
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unstale.adapters import sql_drivers as drivers
from unstale.adapters.addresses import Gate
from unstale.adapters.sql_columns import COMMENTS, RELATION, catalogued
from unstale.adapters.sql_drivers import copied, cut, psycopg_connection, worded
from unstale.adapters.sql_places import Ask, dialled, file_of, parsed, split
from unstale.adapters.sql_ranges import MYSQL, KeyRanges, Sums
from unstale.adapters.sql_text import chunks, postgres_text
from unstale.adapters.sql_types import Column, chosen, from_postgres
from unstale.errors import InputError, MissingExtraError, require, sentence

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

_TEXTUAL = ("date", "time", "timetz", "timestamp", "timestamptz", "interval", "numeric", "json", "jsonb")


class Source:
    """An open database that can only be read from, at one moment if it can hold time still.

    `patient` says whether to wait on where another one has it locked. `interrupt` ends from another thread what the
    database is asked, and the waiting for it.
    """

    def __init__(self, wanted: Ask, patient: Callable[[], bool]) -> None:
        try:
            import sqlalchemy
        except ImportError:
            raise MissingExtraError("SQLAlchemy", "sql") from None
        self.ask, self._patient = wanted, patient
        self._sa = sqlalchemy
        #: the file of an SQLite database
        self.file: Path | None = None
        self._driver: Any = None
        self._connection: Connection | None = None
        self._cursor: Any = None
        self._described: tuple[Any, ...] = ()
        #: what is said of the table, once `typed` was asked
        self.comment = ""
        #: every statement that it was asked, by whichever of its tables
        self._asked: list[None] = []
        #: what reasons call it: the host as listed, for its name may be a secret of the environment
        self.host, self._address = parsed(sqlalchemy, wanted.address)

    def open(
        self, gate: Gate, roots: Sequence[Path], held: Sequence[Path], left: float, tables: Sequence[str] = ()
    ) -> None:
        """Connect where it is allowed, for as many seconds as are left, and find the table; others may be read too."""
        self._tables = tuple(dict.fromkeys(filter(None, (self.ask.table, *tables))))
        with self._worded():
            self._connect(gate, roots, held, left)
            self._relation = self._found()

    def beside(self, wanted: Ask) -> Source | None:
        """Another table of the same database at the same moment; None if it is not there."""
        other = copy(self)
        other.ask = wanted
        try:
            other._relation = other._found()
        except InputError:
            return None
        return other

    @property
    def dialect(self) -> str:
        """The database's name as SQLAlchemy calls it."""
        return self._open().dialect.name

    @property
    def statements(self) -> int:
        """How many statements it was asked."""
        return len(self._asked)

    def columns(self) -> tuple[str, ...]:
        """The names of the source's columns, in order; InputError unless the named ones are among them."""
        asked = self._read(self._all().where(self._sa.false()))
        columns = tuple(asked.keys())
        self._described = tuple(asked.cursor.description) if asked.cursor is not None else ()
        require(columns, "table", repr(self.ask.table), "has no columns", "name another one")
        for name in self.ask.named:
            require(name in columns, "column", repr(name), "is not there", f"choose from {', '.join(columns)[:200]}")
        return columns

    def key(self) -> tuple[str, ...]:
        """The columns that tell rows apart: those named, or the table's primary key; none if it has none."""
        if self.ask.key or self.ask.query:
            return self.ask.key
        schema, name = split(self.ask.table)
        with self._worded():
            return tuple(self._sa.inspect(self._open()).get_pk_constraint(name, schema=schema)["constrained_columns"])

    def typed(self, names: Sequence[str]) -> tuple[Column, ...]:
        """The columns with their types and comments, as the database tells them, or as the owner wants them."""
        if isinstance(self._driver, psycopg_connection()):
            native = [one.type_display for one in self._described]
            types, comments = list(map(from_postgres, native)), {} if self.ask.query else dict(self.told(COMMENTS))
        elif self.ask.query:
            types, native, comments = ["any"] * len(names), [""] * len(names), {}
        else:
            types, native, comments = self._catalogued(names)
        sure = self.dialect != "sqlite"
        said, self.comment = [comments.get(name, "") for name in names], comments.get("", "")
        columns = [Column(*one) for one in zip(names, types, [sure] * len(names), said, native, strict=True)]
        return chosen(columns, self.ask.types)

    def one(self, *expressions: str, where: Any = None) -> tuple[Any, ...]:
        """One row of aggregates, written in SQL."""
        asked: Any = self._sa.select(*map(self._sa.literal_column, expressions)).select_from(self._relation)
        return tuple(self._read(asked if where is None else asked.where(where)).one())

    def rows(self, names: Sequence[str] | None = None, where: Any = None) -> Iterator[Sequence[Any]]:
        """All columns of all rows, or the named columns of some, read in batches."""
        chosen = self._all(names) if where is None else self._all(names).where(where)
        # A catalogue is small: a cursor for it would be four statements more.
        chosen = chosen if self.ask.own else chosen.execution_options(yield_per=self.ask.batch)
        # Closed also when the connection is cut on the way, which leaves the cursor to us.
        with self._worded(), closing(self._open().execute(chosen)) as found:
            yield from found

    def text(self, columns: Sequence[Column], where: Any = None, native: bool = False) -> Iterator[bytes]:
        """The same as CSV in the form of `sql_text`, in chunks; PostgreSQL's rows pass through without being read."""
        if not isinstance(self._driver, psycopg_connection()):
            yield from chunks(self.rows([column.name for column in columns], where), columns, native)
            return
        names = [f"q.{self.quoted(column.name)}" for column in columns]
        texts = names if native else [postgres_text(name, c.type) for name, c in zip(names, columns, strict=True)]
        asked: list[Any] = list(map(self._sa.literal_column, texts))
        chosen: Any = self._sa.select(*asked).select_from(self._relation)
        chosen = (chosen if where is None else chosen.where(where)).compile(dialect=self._open().dialect)
        self._asked.append(None)
        with self._worded():
            yield from copied(self._driver, str(chosen), chosen.params, len(columns) == 1)

    def extent(self, name: str) -> tuple[int, int] | None:
        """The least and the greatest value of a key of integers; None where this database is not asked for ranges."""
        least, most = self.one(*(f"{what}({self.quoted(name)})" for what in ("min", "max")))
        whole = self.dialect in ("postgresql", "sqlite", *MYSQL) and isinstance(least, int) and isinstance(most, int)
        return (int(least), int(most)) if whole else None

    def sums(self, key: Sequence[str], cut: KeyRanges, total: str = "") -> Sums:
        """How many rows each range of a key has, and what `total` adds up to there; if not said, their keys."""
        names = [f"q.{self.quoted(name)}" for name in key]
        told = (cut.number(self.dialect, names), "count(*)", total or cut.total(self.dialect, names))
        asked: Any = self._sa.select(*map(self._sa.literal_column, told)).select_from(self._relation)
        return {int(n): (int(rows), int(added)) for n, rows, added in self._read(asked.group_by(self._sa.text("1")))}

    def told(self, statement: str, **values: Any) -> list[tuple[Any, ...]]:
        """What a statement of ours finds; `{full}` in it stands for the table, and so does the value :full."""
        asked = self._sa.text(statement.replace("{full}", self._full().replace(":", "\\:")))
        given = {"full": self._full()} if ":full" in statement else {}
        return [tuple(row) for row in self._read(self._bound(asked, given | values))]

    def distinct(self, names: Sequence[str]) -> int:
        """How many rows there are that differ in these columns."""
        apart = self._all(names).distinct().subquery("d")
        return int(self._read(self._sa.select(self._sa.func.count()).select_from(apart)).scalar())

    def in_ranges(self, key: Sequence[str], cut: KeyRanges, ranges: Collection[int]) -> Any:
        """The condition for rows whose key lies in these ranges."""
        inside = cut.within(self.dialect, [f"q.{self.quoted(name)}" for name in key], ranges)
        # A colon in a name is no value's.
        return self._sa.text("({})".format(inside.replace(":", "\\:")))

    def condition(self, written: str, **values: Any) -> Any:
        """`written` in SQL, with names like :value for values of types that the database may choose."""
        return self._bound(self._sa.text(written), values)

    def quoted(self, name: str) -> str:
        """A column's name as this database quotes it."""
        return self._open().dialect.identifier_preparer.quote(name)

    def is_plain_table(self) -> bool:
        """Whether PostgreSQL keeps versions of its rows: a table, a partitioned one, a materialised view."""
        if self.ask.query or self.dialect != "postgresql":
            return False
        return any(kind in ("r", "p", "m") for (kind,) in self.told(RELATION))

    def interrupt(self) -> None:
        """End what is going on, with an error in the thread that waits for it."""
        driver = self._driver
        with suppress(Exception):
            driver.interrupt() if isinstance(driver, sqlite3.Connection) else cut(driver)

    def close(self) -> None:
        """Give back the connection."""
        # A reading that broke off is open still, and SQLAlchemy forgets it when a connection dies.
        for part in (self._cursor, self._connection):
            if part is not None:
                with suppress(Exception):
                    part.close()

    def _catalogued(self, names: Sequence[str]) -> tuple[list[str], list[str], dict[str, str]]:
        """Types and comments of columns, as SQLAlchemy finds them."""
        with self._worded():
            return catalogued(self._sa.inspect(self._open()), *split(self.ask.table), names, self.dialect)

    def _full(self, table: str = "") -> str:
        quote = self._open().dialect.identifier_preparer.quote
        return ".".join(map(quote, filter(None, split(table or self.ask.table))))

    def _open(self) -> Connection:
        assert self._connection is not None
        return self._connection

    def _connect(self, gate: Gate, roots: Sequence[Path], held: Sequence[Path], left: float) -> None:
        sa, address = self._sa, self._address
        settings: dict[str, Any] = {}
        if address.get_backend_name() == "sqlite":
            self.file = file = file_of(address, roots, held)
            settings["creator"] = lambda: drivers.sqlite(file)
            address = sa.engine.make_url("sqlite://")
        else:
            try:
                # What a standby counts is not what was written at the primary.
                address, settings["connect_args"] = dialled(address, gate, roots, left, not self.ask.own)
            except InputError as error:
                raise InputError(f"{self.host}: {error}") from None
        # One statement of ours needs nothing of what SQLAlchemy asks first: five or six statements, every time.
        bare = self.ask.own and address.get_backend_name() != "sqlite"
        engine = sa.create_engine(address, poolclass=sa.pool.NullPool, _initialize=not bare, **settings)
        if bare:
            engine.dialect.default_isolation_level = "READ COMMITTED"
        if engine.dialect.is_async:
            raise InputError(sentence("driver", repr(engine.driver), "is asynchronous", "name another one"))
        sa.event.listen(engine, "connect", self._connected, insert=True)
        sa.event.listen(engine, "before_cursor_execute", self._asking)
        self._connection = engine.connect()
        if engine.dialect.name == "sqlite":
            drivers.still_sqlite(self._driver, self._patient)
        elif engine.dialect.name == "postgresql":
            self._still(self._connection, left)
        elif engine.dialect.name in MYSQL:
            tables = [sa.table(name, schema=schema) for schema, name in map(split, self._tables)]
            drivers.still_mysql(sa, self._connection, tables, left)

    def _connected(self, driver: Any, _: object) -> None:
        self._driver = driver
        if hasattr(driver, "adapters"):
            from psycopg.types.string import TextLoader

            for name in _TEXTUAL:
                driver.adapters.register_loader(name, TextLoader)

    def _asking(self, _: object, cursor: Any, *statement: object) -> None:
        self._asked.append(None)
        self._cursor = cursor

    def _still(self, connection: Connection, left: float) -> None:
        """Begin to read: everything as it is at one moment, and nothing for longer than is left."""
        connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
        drivers.still_postgres(self._sa, connection, ", ".join(map(self._full, self._tables)), left)
        if self.ask.query and not self.ask.own and connection.exec_driver_sql("SHOW is_superuser").scalar() == "on":
            raise InputError(
                "the role of a query must not be a superuser, who can do more than read tables: make one "
                "that may only SELECT"
            )

    def _found(self) -> Any:
        sa = self._sa
        if self.ask.query:
            # A colon is not ours to fill in, and a comment at the end must not swallow what follows.
            return sa.text(self.ask.query.replace(":", "\\:") + "\n").columns().subquery("q")
        schema, name = split(self.ask.table)
        there, rule = sa.inspect(self._open()).has_table(name, schema=schema), "is not there, or not for us to read"
        require(there, "table", repr(self.ask.table), rule, "check its name and schema")
        return sa.table(name, schema=schema).alias("q")

    def _all(self, names: Sequence[str] | None = None) -> Any:
        chosen: Any = [self._sa.literal_column("*")] if names is None else [self._sa.column(name) for name in names]
        return self._sa.select(*chosen).select_from(self._relation)

    def _bound(self, asked: Any, values: Mapping[str, Any]) -> Any:
        return asked.bindparams(*(self._sa.bindparam(*one, type_=self._sa.types.NullType()) for one in values.items()))

    def _read(self, statement: Any) -> Any:
        with self._worded():
            return self._open().execute(statement)

    def _worded(self) -> AbstractContextManager[None]:
        return worded(self._sa, self.host)
