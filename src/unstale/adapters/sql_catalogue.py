"""Databases as collections: one look at the catalogue tells which of all tables have changed.

What moves when a table changes: in PostgreSQL the counters of rows written since its statistics began, and the file
that holds it (TRUNCATE makes a new one); in MySQL and MariaDB the time of its last write, in whole seconds; in SQLite
only the file as a whole, so that a change of one table is a word about all of them. How true that is, polls show.
"""

from __future__ import annotations

import json
from pathlib import Path

from unstale.adapters.normalise import content_hash
from unstale.adapters.sql_places import Ask
from unstale.adapters.sql_source import Source
from unstale.errors import InputError, sentence
from unstale.keeper.outcomes import Answer
from unstale.ports import Fetched, Request

_POSTGRES = """
SELECT n.nspname || '.' || c.relname, concat_ws('/', s.n_tup_ins, s.n_tup_upd, s.n_tup_del, c.relfilenode)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace LEFT JOIN pg_stat_user_tables s ON s.relid = c.oid
WHERE c.relkind IN ('r', 'm') AND NOT c.relispartition AND n.nspname NOT IN ('pg_catalog', 'information_schema')
AND n.nspname NOT LIKE 'pg!_t%' ESCAPE '!' AND has_table_privilege(c.oid, 'SELECT')
"""
# What was written within the last seconds may be written again in the same one: then the next look is another word.
_MYSQL = """
SELECT table_name, concat_ws('/', update_time, create_time, auto_increment,
    CASE WHEN update_time >= now() - INTERVAL 2 SECOND THEN '~' END)
FROM information_schema.tables WHERE table_schema = database() AND table_type = 'BASE TABLE'
"""
_SQLITE = "SELECT name, '' FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite!_%' ESCAPE '!'"
_ASKED = {
    "postgresql": _POSTGRES,
    "postgres": _POSTGRES,
    "mysql": _MYSQL,
    "mariadb": _MYSQL,
    "sqlite": _SQLITE,
}


def asked_of(address: str) -> Ask:
    """What a catalogue is asked, or InputError where none is known.

    >>> asked_of("postgresql+psycopg://db.example.org/shop#public.*").address
    'postgresql+psycopg://db.example.org/shop'
    """
    place = address.partition("#")[0]
    dialect = place.partition("://")[0].partition("+")[0].lower()
    if dialect not in _ASKED:
        known = "PostgreSQL, MySQL, MariaDB and SQLite are"
        raise InputError(sentence("catalogue", f"of {dialect[:20]!r}", "is not read", f"{known}; add its tables"))
    return Ask(place, "", _ASKED[dialect].strip(), (), "", 0.0, "count", 1000, float("inf"), 2**30, own=True)


def catalogue(source: Source, request: Request, polled_at: float) -> Fetched:
    """All tables with what moves when they change, a line of JSON each."""
    rows = [(str(name), str(mark or "")) for name, mark in source.rows()]
    if source.dialect == "sqlite":
        whole = _mark(source.file)
        rows = [(name, whole) for name, _ in rows]
    body = "".join(f"{json.dumps(row)}\n" for row in sorted(rows)).encode()
    if len(body) > request.limit:
        raise InputError(f"the catalogue has more than {request.limit} bytes")
    etag = f'"{content_hash(body)[:32]}"'
    if etag == request.etag:
        return Fetched(Answer.UNCHANGED, polled_at, etag=etag, address=request.address, received=len(body))
    return Fetched(
        Answer.CHANGED, polled_at, body, "application/jsonl", etag, address=request.address, received=len(body)
    )


def _mark(file: Path | None) -> str:
    """What moves when anything in a file of SQLite does: the file, and what was written beside it."""
    if file is None:
        return ""
    marks = []
    for one in (file, Path(f"{file}-wal")):
        try:
            found = one.stat()
        except FileNotFoundError:
            continue
        marks.append(f"{found.st_mtime_ns}/{found.st_size}")
    return " ".join(marks)
