"""What servers do for copies of tables: a standby answers for its primary, and no statement outlives its poll."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from support.mariadb import MISSING, mariadb
from support.ports import free_port
from support.postgres import PATIENCE, Postgres, postgres, programs, run
from support.sql_copies import account, duck, fetched
from support.worker_crew import until
from unstale.adapters import sql_division
from unstale.adapters.addresses import Gate
from unstale.adapters.sql_fetcher import SqlFetcher
from unstale.keeper.outcomes import Answer
from unstale.ports import Fetched, Request

#: seconds that a poll has whose statement would take a minute
SHORT = 4.0


def poll(target: Path, address: str, roots: list[Path], seconds: float = 120.0, **options: Any) -> Fetched:
    fetcher = SqlFetcher(target, Gate(["127.0.0.0/8"]), roots=roots)
    return fetched(fetcher, Request(address, options=options, seconds=seconds))


@contextmanager
def standby(primary: Postgres, port: int) -> Iterator[Postgres]:
    """A second server that follows the first, on another address of loopback and the same port."""
    folder = primary.folder / "standby"
    words = ("-R", "-X", "stream", "-c", "fast", "-U", "postgres", "-D", str(folder / "data"))
    folder.mkdir()
    if folder.owner() == "root":
        shutil.chown(folder, "nobody")
    run(programs() / "pg_basebackup", "-h", str(primary.folder), "-p", str(port), *words)
    serve(folder, "127.0.0.2", port)
    try:
        yield Postgres(folder)
    finally:
        Postgres(folder).stop()


def serve(folder: Path, address: str, port: int) -> None:
    listen = f"-h {address} -p {port} -k {shlex.quote(str(folder))} -F"
    data, log = str(folder / "data"), str(folder / "log")
    run(programs() / "pg_ctl", "-w", "-t", str(PATIENCE), "-D", data, "-l", log, "-o", listen, "start")


def test_a_standby_is_read_while_one_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sql_division, "LARGE", 10)
    port = free_port()
    with postgres() as primary:
        primary.run("CREATE ROLE reader LOGIN", "GRANT pg_read_all_data TO reader")
        primary.run("CREATE TABLE orders AS SELECT i AS id FROM generate_series(1, 1000) i")
        primary.stop()
        serve(primary.folder, "127.0.0.1", port)
        both = f"postgresql://reader@127.0.0.1,127.0.0.2:{port}/postgres"
        who = {"query": "SELECT pg_is_in_recovery() AS standby"}
        target = tmp_path / "copies.duckdb"
        with standby(primary, port):
            account(poll(target, both, [], **who))
            assert duck(target, "SELECT standby FROM query") == [(True,)]
            # A whole table in parts, as a standby can be asked for it.
            assert account(poll(target, f"{both}#orders", []))["rows"] == 1000
        account(poll(target, both, [], **who))
        assert duck(target, "SELECT standby FROM query") == [(False,)]


def test_no_statement_of_postgresql_outlives_its_poll(tmp_path: Path) -> None:
    with postgres() as server:
        server.run("CREATE ROLE reader LOGIN")
        address, slow = server.address(user="reader"), "SELECT pg_sleep(60)::text AS a"
        got = poll(tmp_path / "copies.db", address, [server.folder], SHORT, query=slow)
        assert (got.answer, got.reason) == (Answer.FAILED, f"no whole answer within {SHORT:g} s")
        log = server.folder / "log"
        # The server ends it, though nobody listens any more; and nobody of ours is there then.
        until(lambda: "canceling statement due to statement timeout" in log.read_text(), 30.0)

        def gone() -> bool:
            with server.connect() as db:
                found = db.execute("SELECT count(*) FROM pg_stat_activity WHERE usename = 'reader'").fetchone()
                return found == (0,)

        until(gone, 30.0)


@pytest.mark.skipif(bool(MISSING), reason=MISSING)
def test_no_statement_of_mariadb_outlives_its_poll(tmp_path: Path) -> None:
    with mariadb() as server:
        slow = "SELECT sleep(seq) AS a FROM seq_60_to_61"
        got = poll(tmp_path / "copies.db", server.address(), [], SHORT, query=slow)
        assert (got.answer, got.reason) == (Answer.FAILED, f"no whole answer within {SHORT:g} s")
        ours = "SELECT count(*) FROM information_schema.processlist WHERE user = 'reader'"
        until(lambda: server.run(ours) == [(0,)], 30.0)
        exceeded = server.run("SHOW GLOBAL STATUS LIKE 'Max_statement_time_exceeded'")
        assert int(exceeded[0][1]) >= 1
