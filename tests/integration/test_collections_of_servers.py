"""Collections at servers that others wrote: catalogues of PostgreSQL and MariaDB, nginx's index; and our own digest."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from support import mariadb
from support.asgi import Kept
from support.looking import Looking
from support.patience import BUSY
from support.ports import free_port
from support.postgres import postgres
from support.real_caches import running, tool
from unstale.adapters.postgres_crew import PostgresCrew
from unstale.cli.main import unstale as cli
from unstale.origin.server import Origin
from unstale.origin.site import Site
from unstale.server.app import replica
from unstale.server.digests import digest_route
from unstale.server.serving import serve

KEPT = {"collection": "catalogue"}


async def told(looking: Looking, change: Callable[[], object], members: int) -> set[str]:
    """Whom a look names after a change, the looks before having brought so many members and named nobody."""
    try:
        assert (await looking.look())[1] == set()
        assert len(looking.known) == members
        assert (await looking.look())[1] == set()
        change()
        return {address.rpartition("#")[2].rpartition("/")[2] for address in (await looking.look())[1]}
    finally:
        await looking.fetchers.close()


def test_one_look_at_postgresql_tells_which_tables_were_written(tmp_path: Path) -> None:
    with postgres() as server:
        server.run(*(f"CREATE TABLE t{k} (id int PRIMARY KEY)" for k in range(20)), "CREATE SCHEMA other")
        server.run("CREATE TABLE other.x (id int PRIMARY KEY)", "INSERT INTO t9 VALUES (1)")
        looking = Looking(f"{server.address()}#public.*", KEPT, server.folder)

        def change() -> None:
            server.run("INSERT INTO t3 SELECT generate_series(1, 9)", "UPDATE t9 SET id = 2", "TRUNCATE t5")
            # Counters are seen when the session that counted has ended.
            time.sleep(0.2)

        assert asyncio.run(told(looking, change, 20)) == {"public.t3", "public.t9", "public.t5"}
        first = looking.known[0].address
        found = asyncio.run(Looking(f"{server.address()}#public.*", KEPT, server.folder).poll(first))
        assert found.body is not None, found.reason


@pytest.mark.skipif(bool(mariadb.MISSING), reason=mariadb.MISSING)
def test_one_look_at_mariadb_tells_which_tables_were_written(tmp_path: Path) -> None:
    with mariadb.mariadb() as server:
        server.run(*(f"CREATE TABLE t{k} (id int PRIMARY KEY)" for k in range(5)))
        looking = Looking(server.address(), KEPT, tmp_path)
        assert asyncio.run(told(looking, lambda: server.run("INSERT INTO t3 VALUES (1)"), 5)) == {"t3"}


def test_members_come_by_themselves_where_workers_share_a_store(tmp_path: Path) -> None:
    settings = tmp_path / "unstale.toml"
    with postgres() as server, Origin(Site.of(3, 1.0, seed=1)).in_thread() as origin:
        settings.write_text(f'store = "{server.address()}"\n[http]\nallow_networks = ["127.0.0.0/8"]\nrobots = false\n')
        place = f"{origin.address}/sitemap.xml"
        added = CliRunner().invoke(cli, ["add", "--collection", place, "--config", str(settings)])
        assert added.exit_code == 0, added.output
        assert "workers plan polls by what one says of members at its own host" in added.output
        store = PostgresCrew(server.address())

        def planned_by() -> bool:
            faced = CliRunner().invoke(cli, ["signals", "--json", "--config", str(settings)])
            return [one["members"] for one in json.loads(faced.output) if one["state"] != "members only"] == [3]

        run = "from unstale.cli.worker import worker; worker()"
        told = ["--config", str(settings), "--budget", "10/s"]
        with subprocess.Popen([sys.executable, "-c", run, *told], stdout=subprocess.DEVNULL) as working:
            try:
                end = time.monotonic() + 60.0 * BUSY
                while not any(member.told is not None for member in store.members()) or not planned_by():
                    assert time.monotonic() < end, store.members()
                    time.sleep(0.1)
            finally:
                working.terminate()
        assert {address for _, address, _ in store.names()} == {
            place,
            *(origin.address + p for p in origin.site.paths),
        }
        # What an engine had learned before the fleet moved here is nothing that workers go by.
        store.record([], settings={"plan": b"", "signals": b""})
        (row, *_) = (source for source, address, _ in store.names() if address == place)
        worth = {"members": 3, "used": True, "trusted": True, "new": False, "interval": 60.0, "precision": 1.0}
        said = {"fleet": [0.0] * 5, "collections": {str(row): {"worth": worth}, "-1": {"worth": worth}}}
        with server.connect() as db:
            db.execute(
                "INSERT INTO unstale.settings(name, value) VALUES ('signals', %s) "
                "ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                (json.dumps(said).encode(),),
            )
        store.close()
        for words, says in (
            (["signals"], "members only 3"),
            (["explain", place], "workers do not plan polls by what it says of them"),
            (["status"], "members only"),
        ):
            faced = CliRunner().invoke(cli, [*words, "--config", str(settings)])
            assert says in " ".join(faced.output.split()), faced.output
        alone = CliRunner().invoke(cli, ["signals", "--json", "--config", str(settings)])
        assert [(one["address"], one["state"]) for one in json.loads(alone.output)] == [(place, "members only")]


def test_the_index_of_nginx(tmp_path: Path) -> None:
    port, there = free_port(), tmp_path / "there"
    (there / "sub").mkdir(parents=True)
    for name in ("a.txt", "b.txt"):
        (there / name).write_text("one")
        os.utime(there / name, (1.7e9, 1.7e9))
    who = "user root;" if os.geteuid() == 0 else ""
    (tmp_path / "nginx.conf").write_text(
        f"{who} daemon off; pid {tmp_path}/pid; error_log {tmp_path}/log; events {{}}"
        f"http {{ access_log off; client_body_temp_path {tmp_path}/body; server {{ listen 127.0.0.1:{port};"
        f"root {there}; autoindex on; }} }}"
    )

    def change() -> None:
        # As long as it was: only its time tells.
        (there / "b.txt").write_text("two")

    with running([tool("nginx"), "-p", str(tmp_path), "-c", str(tmp_path / "nginx.conf")], port) as base:
        assert asyncio.run(told(Looking(f"{base}/", {}, tmp_path), change, 2)) == {"b.txt"}


def test_a_replica_tells_of_its_copies(tmp_path: Path) -> None:
    async def scene() -> None:
        kept = Kept(tmp_path / "other.db", sources=2)
        kept.poll(b"one", wait=60.0)
        stop: asyncio.Event = asyncio.Event()
        ready: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        app = replica(kept.shelf, name="other", more=[digest_route(kept.shelf, kept.clock, "other")])
        server = asyncio.create_task(serve(app, "127.0.0.1", 0, token=None, stop=stop, ready=ready.set_result))
        try:
            base = f"http://127.0.0.1:{await asyncio.wait_for(ready, 30.0)}"
            looking = Looking(f"{base}/digest", {}, tmp_path)
            first = await looking.look()
            assert (len(looking.known), first[1]) == (2, set())
            copy = await looking.poll(looking.known[0].address)
            assert copy.body == b"one", copy.reason
            kept.now += 60.0
            kept.poll(b"two")
            _, named = await looking.look()
            assert named == {member.address for member in looking.known}
            await looking.fetchers.close()
        finally:
            stop.set()
            await server
            kept.close()

    asyncio.run(scene())
