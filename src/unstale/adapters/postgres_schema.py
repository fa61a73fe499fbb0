"""The PostgreSQL schema of a store: how it is opened, how its tables grow up, and its errors in words.

Rules of this file:
1. A migration is one transaction under an advisory lock and raises `version` in it: whoever comes second finds it done.
2. A schema of a newer version is refused, never guessed at.
3. No word of a server's address but host, port and database is ever shown: the rest may be secret.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg import errors, sql
from psycopg.conninfo import conninfo_to_dict

from unstale.adapters import postgres_arrays
from unstale.adapters.postgres_tables import MIGRATIONS
from unstale.errors import InputError, StoreError, StoreUnreachableError, require, sentence

Connection = psycopg.Connection[Any]

#: the oldest server that has everything we ask for
OLDEST = 15
#: seconds until a server that does not answer counts as unreachable, and a lock as held for too long
REACH, PATIENCE = 5, 10
#: advisory locks of a schema
MIGRATING, EDITING, PARTING, PLANNING, CLAIMING = range(5)

#: what may be otherwise in a while
_AWAY, _CUT = "cannot be reached", "was cut off"
_STARTING, _FULL = "is starting or stopping", "takes no more connections"

#: ways of the server's to go through a whole table: right for those who ask for all, never for those who ask for a few
_WHOLE = ("enable_seqscan", "enable_bitmapscan", "enable_hashjoin", "enable_mergejoin")


def through_all(db: Connection) -> None:
    """Let the rest of this transaction go through whole tables."""
    for way in _WHOLE:
        db.execute(f"SET LOCAL {way} = on".encode())


def named(dsn: str) -> str:
    """A server's address without what may be secret."""
    try:
        parts = conninfo_to_dict(dsn)
    except psycopg.Error:
        raise InputError(
            sentence(
                "store",
                "(not shown)",
                "is no address of a PostgreSQL database",
                "write postgresql://user@host/database",
            )
        ) from None
    port = f":{parts['port']}" if "port" in parts else ""
    host = parts.get("host") or ""
    return f"postgresql://{host}{port}/{parts.get('dbname') or ''}"


def connect(dsn: str, name: str, schema: str, *, idle: float = 0.0) -> Connection:
    """A connection that commits only what it is told to; a session idle for longer than `idle` seconds is ended."""
    with worded(name):
        db = psycopg.connect(
            dsn,
            connect_timeout=REACH,
            application_name="unstale",
            keepalives_idle=10,
            keepalives_interval=5,
            keepalives_count=3,
            tcp_user_timeout=20_000,
            autocommit=True,
        )
        postgres_arrays.register(db)
        try:
            version = db.info.server_version // 10_000
            if version < OLDEST:
                raise StoreError(sentence("PostgreSQL", version, f"must be {OLDEST} or later", "use a newer server"))
            bounds = {
                "lock_timeout": PATIENCE,
                "idle_in_transaction_session_timeout": PATIENCE,
                "idle_session_timeout": idle,
            }
            db.execute(
                sql.SQL("SELECT set_config('search_path', {}, false), ").format(sql.Literal(schema))
                + sql.SQL(", ").join(
                    sql.SQL("set_config({}, {}, false)").format(key, f"{1000 * seconds:.0f}")
                    for key, seconds in bounds.items()
                )
            )
            db.execute("SET synchronous_commit = on")
            # All we ask goes by an index; what the statistics say of a head that moves all the time is never right.
            for way in _WHOLE:
                db.execute(f"SET {way} = off".encode())
        except BaseException:
            db.close()
            raise
    return db


def recognise(db: Connection, name: str, schema: str) -> int:
    """The version of the store in this schema, 0 if there is none; another program's schema is refused."""
    tables = {
        row[0] for row in db.execute("SELECT tablename FROM pg_catalog.pg_tables WHERE schemaname = %s", (schema,))
    }
    if not tables:
        return 0
    version = db.execute("SELECT max(number) FROM version").fetchone() if {"version", "beliefs"} <= tables else None
    if version is None:
        raise StoreError(
            sentence("store", name, f"has tables of another program in its schema {schema}", "choose another database")
        )
    if version[0] > len(MIGRATIONS):
        raise StoreError(
            sentence(
                "store",
                name,
                f"has version {version[0]}, this program knows {len(MIGRATIONS)}",
                "install a newer unstale",
            )
        )
    return int(version[0])


def migrate(db: Connection, name: str, schema: str, *, create: bool) -> None:
    """Bring the schema up to this program's version."""
    with worded(name):
        if recognise(db, name, schema) == len(MIGRATIONS):
            return
        with db.transaction():
            lock(db, MIGRATING)
            through_all(db)
            version = recognise(db, name, schema)
            if version == 0:
                require_store(create, name)
                db.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(schema)))
                db.execute("CREATE TABLE version(number integer NOT NULL)")
            for number, step in enumerate(MIGRATIONS[version:], version + 1):
                for statement in step.split(";\n"):
                    if statement.strip():
                        db.execute(statement.encode())
                db.execute("INSERT INTO version VALUES (%s)", (number,))
        if 0 < version < len(MIGRATIONS):
            # Programs of before would fail at tables that they do not know; when they come back, they are told why.
            db.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'unstale' "
                "AND datname = current_database() AND usename = current_user AND pid <> pg_backend_pid()"
            )


def require_store(there: object, name: str) -> None:
    """StoreError unless there is a store."""
    if not there:
        raise StoreError(sentence("store", name, "holds no store yet", "check its name, or add a source to make it"))


def check_schema(schema: str) -> str:
    """The name of a schema, if it is one that needs no quotes."""
    require(
        schema.isidentifier() and schema == schema.lower() and schema.isascii() and len(schema) < 40,
        "schema",
        repr(schema),
        "must be a word in lower case",
        "choose another name",
    )
    return schema


def lock(db: Connection, kind: int, *, shared: bool = False) -> None:
    """Wait for one of the schema's advisory locks, until the transaction ends; or hold it with others who share it."""
    db.execute(f"SELECT {locking(kind, shared=shared)}".encode())


def locking(kind: int, *, shared: bool = False) -> str:
    """What a statement says to wait for such a lock, or to hold it with others."""
    way = "pg_advisory_xact_lock_shared" if shared else "pg_advisory_xact_lock"
    return f"{way}(hashtext('unstale ' || current_setting('search_path')), {kind})"


#: a process that was stopped in a transaction, or long idle, finds its session ended by the server
_TIMED_OUT = errors.IdleInTransactionSessionTimeout | errors.IdleSessionTimeout


def lost(error: BaseException, db: Connection | None) -> bool:
    """Whether this was the connection's end, or the server's: trying again on a new one can help."""
    if isinstance(error, errors.AdminShutdown | errors.CrashShutdown | errors.CannotConnectNow | _TIMED_OUT):
        return True
    return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError) and (db is None or bool(db.closed))


@contextmanager
def worded(name: str) -> Iterator[None]:
    """PostgreSQL's errors as one sentence."""
    try:
        yield
    except psycopg.Error as error:
        rule, remedy = _words(error)
        kind = StoreUnreachableError if rule in (_AWAY, _CUT, _STARTING, _FULL) else StoreError
        raise kind(sentence("store", name, rule, remedy)) from error


def _words(error: psycopg.Error) -> tuple[str, str]:
    if isinstance(error, errors.ReadOnlySqlTransaction):
        return "may only be read", "connect to the primary server"
    if isinstance(error, errors.DiskFull):
        return "has no room left, nothing was recorded", "free some disk space, then it goes on"
    if isinstance(error, errors.InsufficientPrivilege):
        return "does not let this user do that", "grant the rights, or connect as another user"
    if isinstance(error, errors.LockNotAvailable | errors.DeadlockDetected | errors.SerializationFailure):
        return "is held by another process", "end what holds it, or try again"
    if isinstance(error, _TIMED_OUT):
        return "ended our session, which was idle for too long", "try again; nothing of it was recorded"
    if isinstance(error, errors.UndefinedTable | errors.UndefinedColumn):
        return "has lost a table that belongs to it", "restore a backup"
    text = str(error)
    said = (text.splitlines() or [""])[0].strip().rstrip(".")
    if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        if "authentication" in text or "no password" in text:
            return "does not let this user in", "check user and password"
        if "does not exist" in text:
            return f"cannot be opened ({said.rpartition('FATAL:')[2].strip()})", "check the names, or create it"
        if "too many clients" in text or "connection slots" in text:
            return _FULL, "end some, or raise max_connections"
        if "the database system is" in text:
            return _STARTING, "wait until it has started"
        if "connection" in text and any(word in text for word in ("FATAL:", "SSL", "certificate")):
            return (
                f"does not let us in ({said.rpartition('FATAL:')[2].strip()})",
                "check the server's settings and ours",
            )
        if any(word in text for word in ("connection failed", "is bad", "resolve host", "timeout expired", "Errno")):
            return _AWAY, "check host and port, and that the server runs"
        return _CUT, "check that the server runs; what was recorded is safe"
    return f"failed ({said})", "report it, then open the store again"
