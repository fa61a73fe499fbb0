"""Polling a real PostgreSQL: what its transactions, types and faults do to a copy."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import psycopg
import pytest

from support.patience import SOON
from support.postgres import Postgres, postgres
from unstale.adapters.addresses import Gate
from unstale.adapters.sql_fetcher import SqlFetcher
from unstale.adapters.sql_probe import FULL_XID
from unstale.keeper.outcomes import Answer
from unstale.ports import Fetched, Request

TABLE = "CREATE TABLE things(id int PRIMARY KEY, a text, updated_at timestamptz DEFAULT clock_timestamp())"


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    with postgres() as found:
        found.run("CREATE ROLE reader LOGIN", "ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO reader")
        yield found


class Shop:
    """A role that may only read, its fetcher, and what came of the last poll."""

    def __init__(self, server: Postgres, folder: Path) -> None:
        self.server, self.folder, self.loop = server, folder, asyncio.Runner()
        self.fetcher = SqlFetcher(folder / "copies.db", roots=[server.folder])
        self.etags: dict[str, str | None] = {}

    def ask(self, user: str = "reader", seconds: float = 30.0, etag: str | None = None, **options: Any) -> Fetched:
        asked = Request(self.server.address(user=user), etag=etag, options=options, seconds=seconds)
        return self.loop.run(self.fetcher.fetch(asked))

    def poll(self, **options: Any) -> Fetched:
        got = self.ask(etag=self.etags.get(repr(options)), **options)
        assert got.reason == ""
        self.etags[repr(options)] = got.etag
        return got

    def copy(self, view: str = "things") -> list[Any]:
        db = apsw.Connection(str(self.folder / "copies.db"), flags=apsw.SQLITE_OPEN_READONLY)
        try:
            return sorted(db.execute(f"SELECT * FROM {view}"))
        finally:
            db.close()

    def close(self) -> None:
        self.loop.run(self.fetcher.close())
        self.loop.close()


@pytest.fixture
def shop(server: Postgres, tmp_path: Path) -> Iterator[Shop]:
    server.run("DROP SCHEMA public CASCADE", "CREATE SCHEMA public", "GRANT USAGE ON SCHEMA public TO reader", TABLE)
    found = Shop(server, tmp_path)
    yield found
    found.close()


def counts(got: Fetched) -> tuple[str, int, int, int, int]:
    assert got.body is not None
    found = json.loads(got.body)
    return found["probe"], found["rows"], found["inserted"], found["changed"], found["deleted"]


def ids(shop: Shop) -> list[tuple[int, str]]:
    return [(row[0], row[1]) for row in shop.copy()]


def test_row_versions_tell_what_changed(shop: Shop) -> None:
    shop.server.run("INSERT INTO things SELECT i, 'x' FROM generate_series(1, 5000) i")
    first = shop.poll(table="things")
    assert counts(first) == ("xmin", 5000, 5000, 0, 0)
    assert shop.poll(table="things").answer is Answer.UNCHANGED
    shop.server.run("UPDATE things SET a = 'y' WHERE id = 7", "INSERT INTO things VALUES(6000, 'z')")
    second = shop.poll(table="things")
    assert counts(second) == ("xmin", 5001, 1, 1, 0)
    assert second.received < 300
    shop.server.run("DELETE FROM things WHERE id <= 3")
    assert counts(shop.poll(table="things")) == ("xmin", 4998, 0, 0, 3)
    # As many come as go.
    shop.server.run("DELETE FROM things WHERE id = 4", "INSERT INTO things VALUES(4000000, 'n')")
    assert counts(shop.poll(table="things")) == ("xmin", 4998, 1, 0, 1)
    # A row that is written anew as it was is a new version and no change.
    shop.server.run("UPDATE things SET a = a WHERE id = 9", "VACUUM FREEZE things")
    assert shop.poll(table="things").answer is Answer.UNCHANGED
    shop.server.run("TRUNCATE things")
    assert counts(shop.poll(table="things")) == ("xmin", 0, 0, 0, 4998)
    shop.server.run("INSERT INTO things VALUES(1, 'a')", "ALTER TABLE things ADD COLUMN b int DEFAULT 3")
    assert shop.poll(table="things").answer is Answer.CHANGED
    # A column that comes again touches no row, and nor does another key.
    shop.server.run("ALTER TABLE things DROP COLUMN b", "ALTER TABLE things ADD COLUMN b int DEFAULT 4")
    assert counts(shop.poll(table="things")) == ("xmin", 1, 0, 1, 0)
    assert shop.poll(table="things").answer is Answer.UNCHANGED
    shop.server.run("ALTER TABLE things DROP CONSTRAINT things_pkey, ADD PRIMARY KEY(id, a)")
    assert "the key was id and is id, a" in shop.ask(table="things").reason


def test_a_transaction_that_commits_late_is_not_missed(shop: Shop) -> None:
    shop.server.run("INSERT INTO things SELECT i, 'x' FROM generate_series(1, 10) i")
    shop.poll(table="things")
    with psycopg.connect(shop.server.address()) as late:
        late.execute("UPDATE things SET a = 'late' WHERE id = 3")
        shop.server.run("UPDATE things SET a = 'early' WHERE id = 4")
        assert counts(shop.poll(table="things")) == ("xmin", 10, 0, 1, 0)
        late.commit()
    # Its number is older than the newest that was seen, and as many rows are there.
    assert counts(shop.poll(table="things")) == ("xmin", 10, 0, 1, 0)
    assert dict(ids(shop))[3] == "late"


@pytest.mark.parametrize("many", [5, 3000])
def test_the_time_of_a_late_commit_lies_in_the_overlap(shop: Shop, many: int) -> None:
    options = {"table": "public.things", "changed": "updated_at", "overlap": 60}
    old = f"INSERT INTO things SELECT i, 'x', now() - interval '1 day' FROM generate_series(1, {many}) i"
    shop.server.run(old, "INSERT INTO things VALUES(100000, 'new')")
    first = shop.poll(**options)
    assert counts(first) == ("changed", many + 1, many + 1, 0, 0)
    assert first.changed_at[0] == pytest.approx(first.polled_at, abs=60)
    with psycopg.connect(shop.server.address()) as late:
        late.execute("UPDATE things SET a = 'late', updated_at = now() WHERE id = 3")
        time.sleep(0.05)
        shop.server.run("UPDATE things SET a = 'early', updated_at = clock_timestamp() WHERE id = 4")
        assert counts(shop.poll(**options)) == ("changed", many + 1, 0, 1, 0)
        late.commit()
    got = shop.poll(**options)
    assert counts(got) == ("changed", many + 1, 0, 1, 0)
    assert got.received < 4 * 60
    assert {row[0]: row[1] for row in shop.copy("public_things")}[3] == "late"
    shop.server.run("DELETE FROM things WHERE id = 1")
    assert counts(shop.poll(**options)) == ("changed", many, 0, 0, 1)
    assert shop.poll(**options).answer is Answer.UNCHANGED


def test_views_and_queries_are_summed_by_the_database(shop: Shop) -> None:
    shop.server.run("INSERT INTO things VALUES(1, 'x'), (2, 'y')", "CREATE VIEW few AS SELECT id, a FROM things")
    assert counts(shop.poll(table="few")) == ("checksum", 2, 2, 0, 0)
    same = shop.poll(table="few")
    assert (same.answer, same.received) == (Answer.UNCHANGED, 0)
    shop.server.run("UPDATE things SET a = 'z' WHERE id = 2")
    # A view has no key, so a row that changed is one that came and one that went.
    assert counts(shop.poll(table="few")) == ("checksum", 2, 1, 0, 1)
    query = "SELECT a, count(*) AS n FROM things WHERE a LIKE '%' AND a::text <> ':b' GROUP BY a -- all of them"
    assert counts(shop.poll(query=query, key="a")) == ("checksum", 2, 2, 0, 0)
    assert shop.copy("query") == [("x", 1), ("z", 1)]
    assert counts(shop.poll(table="things", probe="count")) == ("count", 2, 2, 0, 0)
    assert "probe 'xmin' needs a table of PostgreSQL" in shop.ask(table="few", probe="xmin").reason


ZOO = [
    ("true", 1),
    ("9223372036854775807::bigint", 2**63 - 1),
    ("1.50::numeric(20,2)", 1.5),
    ("123456789012345678901234567890::numeric", "123456789012345678901234567890"),
    ("'NaN'::numeric", "NaN"),
    ("'NaN'::float8", "NaN"),
    ("'-Infinity'::float8", float("-inf")),
    ("0.1::float8", 0.1),
    ("NULL::int", None),
    ("'ä'::text", "ä"),
    (r"'\x00ff'::bytea", b"\x00\xff"),
    ("'2026-01-31'::date", "2026-01-31"),
    ("'infinity'::timestamptz", "infinity"),
    ("'20000-01-01'::date", "20000-01-01"),
    ("'2026-01-31 12:00:00.5+02'::timestamptz", "2026-01-31 10:00:00.5+00"),
    ("'2026-01-31 12:00:00'::timestamp", "2026-01-31 12:00:00"),
    ("'12:00:00'::time", "12:00:00"),
    ("'1 day 2 hours'::interval", "1 day 02:00:00"),
    ("""'{"b": 1, "a": [1e400]}'::json""", '{"b": 1, "a": [1e400]}'),
    ("""'{"b":1,"a":null}'::jsonb""", '{"a": null, "b": 1}'),
    ("ARRAY[1, NULL, 3]", "[1,null,3]"),
    ("ARRAY[['a'], ['b']]", '[["a"],["b"]]'),
    ("ARRAY['2026-01-01'::date]", '["2026-01-01"]'),
    ("'00000000-0000-0000-0000-000000000001'::uuid", "00000000-0000-0000-0000-000000000001"),
    ("'10.0.0.0/8'::cidr", "10.0.0.0/8"),
    ("'[1,5)'::int4range", "[1, 5)"),
    ("'(1,2)'::point", "(1,2)"),
    ("B'101'", "101"),
    ("'a'::\"char\"", "a"),
    ("'12.34'::money::text", "$12.34"),
]


def test_every_type_becomes_a_sensible_value(shop: Shop) -> None:
    columns = ", ".join(f"{written} AS c{i}" for i, (written, _) in enumerate(ZOO))
    # Defaults of the database must not show in the copy.
    shop.server.run(
        f"CREATE VIEW zoo AS SELECT {columns}",
        "ALTER ROLE reader SET TimeZone = 'Asia/Kolkata'",
        "ALTER ROLE reader SET DateStyle = 'SQL, DMY'",
        "ALTER ROLE reader SET bytea_output = 'escape'",
    )
    try:
        assert shop.poll(table="zoo").answer is Answer.CHANGED
        (row,) = shop.copy("zoo")
        assert {w: v for (w, _), v in zip(ZOO, row, strict=True)} == dict(ZOO)
        assert shop.poll(table="zoo").answer is Answer.UNCHANGED
    finally:
        shop.server.run("ALTER ROLE reader RESET ALL")


def test_nothing_can_be_written(shop: Shop) -> None:
    shop.server.run(
        "INSERT INTO things VALUES(1, 'x')",
        "GRANT ALL ON things TO reader",
        "CREATE FUNCTION sly() RETURNS int LANGUAGE sql VOLATILE AS 'DELETE FROM things RETURNING id'",
    )
    for query, reason in [
        ("SELECT sly() AS n", "the query would write, which is not allowed"),
        ("WITH x AS (DELETE FROM things RETURNING id) SELECT * FROM x", "PostgreSQL says: WITH clause containing"),
        ("SELECT 1; COMMIT; DROP TABLE things", "must be one statement"),
        ("SELECT pg_sleep(0)::text AS n, pg_read_file('/etc/passwd')", "the role may not read this"),
    ]:
        got = shop.ask(query=query)
        assert got.answer is Answer.FAILED
        assert reason in got.reason
    assert "must not be a superuser" in shop.ask(user="postgres", query="SELECT 1 AS n").reason
    with shop.server.connect() as db:
        assert db.execute("SELECT count(*) FROM things").fetchone() == (1,)


def test_a_slow_statement_ends_at_the_deadline_here_and_there(shop: Shop) -> None:
    begin = time.monotonic()
    got = shop.ask(query="SELECT 1 AS n FROM pg_sleep(60)", seconds=0.7)
    assert 0.6 < time.monotonic() - begin < SOON
    assert got.reason == "no whole answer within 0.7 s"
    left = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'reader' AND state = 'active'"
    with shop.server.connect() as db:
        for _ in range(100):
            if db.execute(left).fetchone() == (0,):
                return
            time.sleep(0.05)
    raise AssertionError("the database still works for a poll that is over")


def test_what_is_locked_or_forbidden_or_absent_is_a_reason(shop: Shop) -> None:
    with psycopg.connect(shop.server.address()) as holder:
        holder.execute("LOCK TABLE things IN ACCESS EXCLUSIVE MODE")
        assert shop.ask(table="things", seconds=0.5).reason == "no whole answer within 0.5 s"
    shop.server.run("CREATE TABLE hidden(a int)", "REVOKE ALL ON hidden FROM reader")
    assert shop.ask(table="hidden").reason == "postgresql: the role may not read this"
    assert "table 'nothing.things' is not there" in shop.ask(table="nothing.things").reason
    assert "could not be connected to" in shop.ask(user="nobody", table="things").reason


def test_a_connection_that_dies_midway_leaves_the_old_copy_whole(shop: Shop) -> None:
    # Rows come slowly, so that the connection dies among them; said to be stable, the sleep is not counted.
    shop.server.run(
        "CREATE FUNCTION nap(int) RETURNS text LANGUAGE plpgsql STABLE AS "
        "'BEGIN PERFORM pg_sleep(0.002); RETURN 1; END'",
        "CREATE VIEW slow AS SELECT id, a, nap(id) AS n FROM things",
        "INSERT INTO things VALUES(1, 'old')",
    )
    options = {"table": "slow", "batch": 100, "probe": "count", "key": "id"}
    shop.poll(**options)
    old = shop.copy("slow")
    assert len(old) == 1
    shop.server.run("TRUNCATE things", "INSERT INTO things SELECT i, 'new' FROM generate_series(1, 2000) i")
    ended = []

    def end() -> None:
        query = (
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'reader' AND query LIKE 'FETCH%'"
        )
        with shop.server.connect() as db:
            for _ in range(1000):
                if db.execute(query).fetchall():
                    ended.append(True)
                    return
                time.sleep(0.005)

    thread = threading.Thread(target=end)
    thread.start()
    got = shop.ask(**options)
    thread.join()
    assert ended
    assert got.answer is Answer.FAILED
    assert got.reason.startswith("postgresql: ")
    assert shop.copy("slow") == old
    # The next poll begins anew, and is whole.
    assert counts(shop.poll(**options)) == ("count", 2000, 1999, 1, 0)


def test_transaction_numbers_are_whole_again_after_they_wrapped_around(shop: Shop) -> None:
    cases = [(100, 99, 99), (2**32 + 5, 2, 2**32 + 2), (2**32 + 5, 2**32 - 1, 2**32 - 1), (7 * 2**32, 1, 6 * 2**32 + 1)]
    with shop.server.connect() as db:
        for following, kept, full in cases:
            written = FULL_XID.format(following=f"{following}::bigint", kept=f"{kept}::bigint")
            assert db.execute(f"SELECT {written}").fetchone() == (full,)


def test_through_the_network_the_gate_decides(shop: Shop) -> None:
    shop.server.run("INSERT INTO things VALUES(1, 'x')")

    async def scene() -> tuple[Fetched, Fetched, int]:
        met = 0

        async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal met
            met += 1
            there, back = await asyncio.open_unix_connection(str(shop.server.folder / ".s.PGSQL.5432"))

            async def pump(one: asyncio.StreamReader, other: asyncio.StreamWriter) -> None:
                while data := await one.read(2**16):
                    other.write(data)
                other.close()

            await asyncio.gather(pump(reader, back), pump(there, writer))

        proxy = await asyncio.start_server(pass_on, "127.0.0.1", 0)
        address = f"postgresql://reader@localhost:{proxy.sockets[0].getsockname()[1]}/postgres?sslmode=disable#things"
        refusing, allowing = (
            SqlFetcher(shop.folder / "a.db"),
            SqlFetcher(shop.folder / "b.db", Gate(["127.0.0.0/8", "::1/128"])),
        )
        refused, found = await refusing.fetch(Request(address)), await allowing.fetch(Request(address))
        await refusing.close()
        await allowing.close()
        proxy.close()
        return refused, found, met

    refused, found, met = asyncio.run(scene())
    assert "is not public" in refused.reason
    assert counts(found) == ("xmin", 1, 1, 0, 0)
    assert met == 1
