"""The PostgreSQL schema of a store: how it is opened, its tables and how they grow up, and its errors in words.

Rules of this file:
1. A migration is one transaction under an advisory lock and raises `version` in it: whoever comes second finds it done.
2. Migrations are only ever appended. A schema of a newer version is refused, never guessed at.
3. No word of a server's address but host, port and database is ever shown: the rest may be secret.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg import errors, sql
from psycopg.conninfo import conninfo_to_dict

from unstale.errors import InputError, StoreError, require, sentence

Connection = psycopg.Connection[Any]

#: the oldest server that has everything we ask for
OLDEST = 15
#: seconds until a server that does not answer counts as unreachable, and a lock as held for too long
REACH, PATIENCE = 5, 10
#: advisory locks of a schema
MIGRATING, EDITING, PARTING, PLANNING = range(4)

_V1 = """
CREATE SEQUENCE ids;
CREATE SEQUENCE tokens;
-- a host is the group that shares a cap, and whom we owe manners; `free_at` is when its next poll may begin
CREATE TABLE hosts(
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text NOT NULL UNIQUE,
    free_at float8 NOT NULL DEFAULT '-Infinity', pile float8 NOT NULL DEFAULT '-Infinity',
    asked float8 NOT NULL DEFAULT 0, blocked float8 NOT NULL DEFAULT '-Infinity', refusals integer NOT NULL DEFAULT 0
) WITH (fillfactor = 50);
-- `place` is the hash of the address, which may be longer than an index takes
CREATE TABLE sources(
    id bigint PRIMARY KEY, place bytea NOT NULL UNIQUE, address text NOT NULL, kind text NOT NULL,
    weight float8 NOT NULL, cost float8 NOT NULL, host integer NOT NULL, shortest float8 NOT NULL,
    longest float8 NOT NULL, options text, paused boolean NOT NULL, added_at float8 NOT NULL
);
-- who waits has no token, who is claimed has one; `site` is the host we owe manners
CREATE TABLE beliefs(
    source bigint PRIMARY KEY, site integer NOT NULL, awake boolean NOT NULL, due float8 NOT NULL,
    last float8 NOT NULL, found float8 NOT NULL, failures integer NOT NULL, latest bigint NOT NULL,
    version integer NOT NULL, belief bytea,
    token bigint, claimed_at float8, claimed_until float8, owner text
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.2);
CREATE INDEX waiting ON beliefs(due, source) WHERE awake AND token IS NULL;
CREATE INDEX held ON beliefs(claimed_until, claimed_at, source) WHERE token IS NOT NULL;
CREATE INDEX busy ON beliefs(site) WHERE token IS NOT NULL;
-- the belief as it was after observation `latest`: what is older may be dropped
CREATE TABLE checkpoints(
    source bigint PRIMARY KEY, latest bigint NOT NULL, last float8 NOT NULL, found float8 NOT NULL, belief bytea
);
-- appended only; `previous` chains those of one source, so that its history needs no index
CREATE TABLE observations(
    token bigint PRIMARY KEY, source bigint NOT NULL, polled_at float8 NOT NULL, answer smallint NOT NULL,
    elapsed float8, modified float8, bytes bigint NOT NULL, reason text, previous bigint NOT NULL,
    epoch integer NOT NULL
) PARTITION BY RANGE (token);
CREATE TABLE parts(first bigint PRIMARY KEY, beyond bigint NOT NULL, made_at float8 NOT NULL);
CREATE TABLE epochs(id integer PRIMARY KEY, at float8, value bytea NOT NULL);
CREATE TABLE copies(
    source bigint NOT NULL, version integer NOT NULL, taken_at float8 NOT NULL, digest bytea NOT NULL,
    size bigint NOT NULL, body bytea NOT NULL, media_type text NOT NULL, etag text, last_modified text,
    fingerprint bytea, address text NOT NULL, via text NOT NULL, PRIMARY KEY(source, version)
);
ALTER TABLE copies ALTER body SET STORAGE EXTERNAL;
CREATE TABLE prices(
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, at float8 NOT NULL, price float8 NOT NULL,
    budget float8 NOT NULL, fresh float8 NOT NULL, even float8 NOT NULL, polls bigint NOT NULL,
    changed bigint NOT NULL, failed bigint NOT NULL, spent float8 NOT NULL
);
-- each connection counts in a shard of its own, so that nobody waits for another's commit
CREATE TABLE counters(
    name text NOT NULL, shard integer NOT NULL, value bigint NOT NULL, PRIMARY KEY(name, shard)
) WITH (fillfactor = 50);
CREATE TABLE settings(name text PRIMARY KEY, value bytea NOT NULL);
CREATE TABLE listeners(name text PRIMARY KEY, told bigint NOT NULL);
CREATE TABLE events(
    number bigint PRIMARY KEY, source bigint NOT NULL, address text NOT NULL, version integer NOT NULL,
    at float8 NOT NULL, digest bytea NOT NULL
);
-- who is alive; `share` of the budget is what the planner grants, `held` what the worker says it goes by
CREATE TABLE workers(
    owner text PRIMARY KEY, at float8 NOT NULL, share float8 NOT NULL, held float8 NOT NULL, level float8 NOT NULL,
    burst float8 NOT NULL, facts text NOT NULL
) WITH (fillfactor = 50);
-- what workers' polls taught of the fleet as a whole, until the planner takes it up
CREATE TABLE lessons(id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, value bytea NOT NULL);
"""

_V2 = """
-- when a signal said that a source changed, where a poll taught its belief by it
ALTER TABLE observations ADD COLUMN told float8;
-- what each collection says of its members: when they changed, or what differs when they do; `told` is its last signal
CREATE TABLE members(
    collection bigint NOT NULL REFERENCES sources ON DELETE CASCADE,
    source bigint NOT NULL REFERENCES sources ON DELETE CASCADE,
    address text NOT NULL, time float8, tag text, told float8, PRIMARY KEY(collection, source)
);
CREATE INDEX memberships ON members(source);
"""

#: the step from version i to version i + 1
MIGRATIONS: tuple[str, ...] = (_V1, _V2)


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
            db.execute("SET enable_seqscan = off")
            db.execute("SET enable_bitmapscan = off")
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


def lock(db: Connection, kind: int) -> None:
    """Wait for one of the schema's advisory locks, until the transaction ends."""
    db.execute("SELECT pg_advisory_xact_lock(hashtext('unstale ' || current_setting('search_path')), %s)", (kind,))


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
        raise StoreError(sentence("store", name, rule, remedy)) from error


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
            return "takes no more connections", "end some, or raise max_connections"
        if any(word in text for word in ("connection failed", "resolve host", "timeout expired", "Errno")):
            return "cannot be reached", "check host and port, and that the server runs"
        return "was cut off", "check that the server runs; what was recorded is safe"
    return f"failed ({said})", "report it, then open the store again"
