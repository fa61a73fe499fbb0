"""A DuckDB file as a source: opened for reading alone, and for nothing else on this machine.

Rules of this file:
1. Whoever reads holds the file: nobody writes to it meanwhile, so all that is read is of one moment. One that another
   process has open for writing cannot be read, and its poll fails.
2. Values whose type Python would bend come as text: dates and times, which may have no end, and lengths of time.
   Numbers beyond 64 bits are decimals, enums are text, structs and maps are JSON.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from unstale.adapters.addresses import Gate
from unstale.adapters.sql_places import file_of, split
from unstale.adapters.sql_source import Source
from unstale.adapters.sql_text import INTERVAL
from unstale.errors import InputError, MissingExtraError, require

#: a query of its owner's reads this file, and nothing else
_CLOSED: dict[str, Any] = {"enable_external_access": "false", "memory_limit": "1GB"}
_TYPES = {
    "BOOLEAN": "boolean",
    "TINYINT": "smallint",
    "SMALLINT": "smallint",
    "UTINYINT": "smallint",
    "INTEGER": "integer",
    "USMALLINT": "integer",
    "BIGINT": "bigint",
    "UINTEGER": "bigint",
    "UBIGINT": "decimal(20,0)",
    "HUGEINT": "decimal",
    "UHUGEINT": "decimal",
    "FLOAT": "real",
    "DOUBLE": "double",
    "VARCHAR": "text",
    "BLOB": "bytes",
    "DATE": "date",
    "TIME": "time",
    "TIME WITH TIME ZONE": "timetz",
    "TIMESTAMP": "timestamp",
    "TIMESTAMP_S": "timestamp",
    "TIMESTAMP_MS": "timestamp",
    "TIMESTAMP WITH TIME ZONE": "timestamptz",
    "INTERVAL": "interval",
    "UUID": "uuid",
    "JSON": "json",
}
_PLAIN = ("boolean", "smallint", "integer", "bigint", "real", "double", "text", "uuid")
#: what Python has as it is
_AS_THEY_ARE = {name for name, ours in _TYPES.items() if ours in (*_PLAIN, "bytes")}
_COLUMNS = (
    "SELECT column_name, coalesce(comment, '') FROM duckdb_columns() "
    "WHERE schema_name = :schema AND table_name = :table UNION ALL "
    "SELECT '', comment FROM duckdb_tables() WHERE schema_name = :schema AND table_name = :table "
    "AND comment IS NOT NULL"
)
_KEY = (
    "SELECT constraint_column_names FROM duckdb_constraints() "
    "WHERE schema_name = :schema AND table_name = :table AND constraint_type = 'PRIMARY KEY'"
)


class DuckSource(Source):
    """An open DuckDB file; see `Source`."""

    @property
    def dialect(self) -> str:
        """Its name."""
        return "duckdb"

    def key(self) -> tuple[str, ...]:
        """The columns that tell rows apart: those named, or the table's primary key; none if it has none."""
        if self.ask.key or self.ask.query:
            return self.ask.key
        found = self.told(_KEY, **self._place())
        return tuple(found[0][0]) if found else ()

    def rows(self, names: Sequence[str] | None = None, where: Any = None) -> Iterator[Sequence[Any]]:
        """All columns of all rows, or the named columns of some, read in batches."""
        types = self._types()
        chosen = self._sa.select(*(self._sa.literal_column(self._read_as(one, types[one])) for one in names or types))
        asked: Any = chosen.select_from(self._relation)
        with self._worded():
            found = self._read(asked if where is None else asked.where(where))
            while some := found.cursor.fetchmany(self.ask.batch):
                yield from some

    def quoted(self, name: str) -> str:
        """A column's name as DuckDB quotes it."""
        return '"' + name.replace('"', '""') + '"'

    def interrupt(self) -> None:
        """End what is going on, with an error in the thread that waits for it."""
        with suppress(Exception):
            self._driver.interrupt()

    def close(self) -> None:
        """Give back the file."""
        with suppress(Exception):
            self._driver.close()

    def _connect(self, gate: Gate, roots: Sequence[Path], held: Sequence[Path], left: float) -> None:
        try:
            import duckdb
        except ImportError:
            raise MissingExtraError("DuckDB", "warehouse") from None
        self.file = file = file_of(self._address, roots, held)
        try:
            self._driver = duckdb.connect(str(file), read_only=True, config=_CLOSED)
        except duckdb.Error:
            raise InputError(f"{file.name}: another process writes to it, or it is no DuckDB file") from None
        self._dialect = self._sa.engine.default.DefaultDialect(paramstyle="qmark")

    def _found(self) -> Any:
        if self.ask.query:
            return super()._found()
        rule = "is not there"
        require(self.told(_COLUMNS, **self._place()), "table", repr(self.ask.table), rule, "check its name and schema")
        schema, name = split(self.ask.table)
        return self._sa.table(name, schema=schema).alias("q")

    def _catalogued(self, names: Sequence[str]) -> tuple[list[str], list[str], dict[str, str]]:
        types = self._types()
        said = {str(name): str(comment) for name, comment in self.told(_COLUMNS, **self._place())}
        # What is text here and not there is said.
        own = [types[name] if types[name] != "VARCHAR" and _type(types[name]) == "text" else "" for name in names]
        return [_type(types[name]) for name in names], own, said

    def _types(self) -> dict[str, str]:
        """The types of the columns in DuckDB's words, those of a query too."""
        return {
            name: str(type_) for name, type_, *_ in self._read(self._all().where(self._sa.false())).cursor.description
        }

    def _read_as(self, name: str, type_: str) -> str:
        quoted, ours = f"q.{self.quoted(name)}", _type(type_)
        if ours == "interval":
            return INTERVAL.format(quoted)
        if ours.startswith(("decimal", "array")) or type_ in _AS_THEY_ARE:
            return quoted
        return f"CAST({f'to_json({quoted})' if ours == 'json' and type_ != 'JSON' else quoted} AS VARCHAR)"

    def _place(self) -> dict[str, str]:
        schema, name = split(self.ask.table)
        return {"schema": schema or "main", "table": name}

    def _full(self, table: str = "") -> str:
        return ".".join(map(self.quoted, filter(None, split(table or self.ask.table))))

    def _read(self, statement: Any) -> Any:
        import duckdb

        compiled = statement.compile(dialect=self._dialect, compile_kwargs={"render_postcompile": True})
        self._asking(None, None)
        values = [compiled.params[name] for name in compiled.positiontup or ()]
        with self._worded():
            try:
                cursor = self._driver.cursor()
                # Whatever zone this machine is in.
                cursor.execute("SET TimeZone = 'UTC'; SET enable_progress_bar = false")
                return _Answer(cursor.execute(str(compiled), values))
            except duckdb.Error as error:
                raise InputError(f"{self.host}: DuckDB says: {' '.join(str(error).split())[:200]}") from None


class _Answer:
    """What a statement found, as SQLAlchemy's results are asked."""

    def __init__(self, rows: Any) -> None:
        self.cursor = rows

    def __iter__(self) -> Iterator[Any]:
        return iter(self.cursor.fetchall())

    def keys(self) -> list[str]:
        return [one[0] for one in self.cursor.description]

    def one(self) -> tuple[Any, ...]:
        (found,) = self.cursor.fetchall()
        return tuple(found)

    def scalar(self) -> Any:
        return self.one()[0]


def _type(told: str) -> str:
    """A type of DuckDB in our words.

    >>> [_type(name) for name in ("DECIMAL(9,2)[]", "DATE[]", "STRUCT(a INTEGER)", "ENUM('x')", "TIMESTAMP_NS")]
    ['array(decimal(9,2))', 'json', 'json', 'text', 'text']
    """
    if re.fullmatch(r"DECIMAL\(\d+,\d+\)", told):
        return told.lower()
    if told.startswith(("STRUCT", "MAP", "UNION")) or told.endswith("[][]") or re.search(r"\[\d+\]$", told):
        return "json"
    if told.endswith("[]"):
        exact = told[:-2] in _AS_THEY_ARE - {"BLOB"} or told.startswith("DECIMAL")
        return f"array({_type(told[:-2])})" if exact else "json"
    return _TYPES.get(told, "text")
