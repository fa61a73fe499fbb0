"""A long random walk of tables in real servers: every copy that was switched to equals its source at one moment.

While polls go on, one transaction after the other changes the table: rows come, change and go, also their keys; columns
come, go and change their types; everything is removed. Polls are killed, and their connections are cut at the source
and at the target; where both are files, their time ends instead. Both sides are compared by a checksum of all they
hold: after a poll that answered, the copy must be what the source was at one moment between its beginning and its end;
after one that broke off it may be the old one too.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest

from support.mariadb import MISSING, mariadb
from support.poll_forker import Forker
from support.postgres import Postgres, postgres
from support.walked_tables import FILES, Copy, Origin

#: more of them in a campaign of its own, `make walk`
STEPS = int(os.environ.get("UNSTALE_WALK", "12"))
SEED = os.environ.get("UNSTALE_WALK_SEED", "1")
ORIGINS = ("postgresql", "mariadb", "sqlite", "duckdb")
TARGETS = ("copies.duckdb", "postgres", "copies.db", "copies.parquet")
#: walked every time; in a campaign all are
USUAL = (
    ("postgresql", "copies.duckdb"),
    ("postgresql", "postgres"),
    ("mariadb", "copies.db"),
    ("mariadb", "postgres"),
    ("sqlite", "copies.parquet"),
    ("duckdb", "copies.db"),
)
PAIRS = [(o, t) for o in ORIGINS for t in TARGETS] if "UNSTALE_WALK" in os.environ else USUAL


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    with postgres() as found:
        found.run("CREATE DATABASE lake", "CREATE ROLE reader LOGIN", "GRANT pg_read_all_data TO reader")
        found.run("CREATE ROLE writer LOGIN", "GRANT CREATE ON DATABASE lake TO writer")
        yield found


class Walk(threading.Thread):
    """Changes a table without end. `states` are the checksums that it had, whole whenever `step` is free."""

    def __init__(self, origin: Origin, chance: random.Random) -> None:
        super().__init__(daemon=True)
        self._origin, self._chance = origin, chance
        self.states: list[str] = [origin.make()]
        self.step = threading.Lock()
        self.acts, self._end = 0, threading.Event()
        # A DuckDB file that is open for writing cannot be read: that must be rarer than polls are long.
        self._pause = 0.4 if origin.kind == "duckdb" else 0.03
        self.failed: BaseException | None = None

    def run(self) -> None:
        try:
            while not self._end.wait(self._pause):
                with self.step:
                    self.acts += 1
                    self.states += self._origin.act(self._chance, self.acts)
        except BaseException as error:
            self.failed = error

    def close(self) -> None:
        self._end.set()
        self.join()
        self._origin.close()
        assert self.failed is None, self.failed


@contextmanager
def cutting(origin: Origin, wanted: bool) -> Iterator[None]:
    """Cut whatever connection there is again and again meanwhile, if that is wanted."""
    end = threading.Event()

    def again() -> None:
        while wanted and not end.wait(0.01):
            origin.cut()

    thread = threading.Thread(target=again)
    thread.start()
    try:
        yield
    finally:
        end.set()
        thread.join()


@pytest.mark.parametrize(("kind", "name"), PAIRS)
def test_every_copy_equals_its_source_at_one_moment(
    server: Postgres, forker: Forker, tmp_path: Path, kind: str, name: str
) -> None:
    if kind == "mariadb" and MISSING:
        pytest.skip(MISSING)
    with psycopg.connect(server.address("lake"), autocommit=True) as db:
        db.execute("DROP SCHEMA IF EXISTS copies CASCADE")
    with mariadb() if kind == "mariadb" else nullcontext() as maria:
        told = walk(Origin(kind, server, maria, tmp_path), Copy(name, server, tmp_path), forker, tmp_path)
    sys.stdout.write(f"{kind} to {name}: {told}\n")
    assert told["answered"] > STEPS / 8
    assert told["killed"] > 0
    assert told["failed"] > 0


def walk(origin: Origin, copy: Copy, forker: Forker, folder: Path) -> dict[str, int]:
    """Polls one after the other while the table changes: how many ended how."""
    chance, files = random.Random(f"{SEED} {origin.kind} {copy.name}"), origin.kind in FILES and copy.name != "postgres"
    asked: dict[str, Any] = {"target": copy.target, "roots": origin.roots, "address": origin.address}
    # Parts of what was killed are kept, and some of them are right still.
    options = {"schema": "follow"}
    if origin.kind == "postgresql" and copy.name in ("copies.db", "copies.parquet"):
        # As views are looked at: by sums of ranges.
        options["probe"] = "checksum"
    asked |= {"options": options, "parts": str(folder / "parts")}
    counts = {"answered": 0, "unchanged": 0, "failed": 0, "killed": 0, "cut": 0}
    changes = Walk(origin, random.Random(f"{SEED} acts"))
    forker.begin(**asked)
    assert forker.ended().startswith("changed")
    changes.start()
    before, since, usual = "", 0, 0.2
    try:
        for n in range(STEPS):
            # One kill comes before the poll can have ended, however fast it is, and one poll is cut off until it fails;
            # the others come when they may.
            sure = n == 1
            fate = "kill" if sure else chance.choices(["none", "kill", "cut"], [2, 1, 1])[0]
            fate = "cut off" if n > 1 and not counts["failed"] else fate
            wait = 0.0 if sure else chance.uniform(0.0, usual)
            # A poll can be faster than any cut: after some of them its time ends.
            short = fate.startswith("cut") and (files or (fate == "cut off" and n > 4))
            late = {"seconds": 0.001 if fate == "cut off" else wait} if short else {}
            with changes.step:
                begun = len(changes.states) - 1
            since = min(since, begun) if since else begun
            clock = time.monotonic()
            number = forker.begin(**asked, **late)
            if fate in ("kill", "cut") and not late:
                time.sleep(wait)
            if fate == "kill":
                with suppress(ProcessLookupError):
                    os.kill(number, signal.SIGKILL)
            counts["cut"] += fate.startswith("cut")
            with cutting(origin, fate == "cut off" and not late):
                if fate == "cut" and not late:
                    origin.cut()
                ended, _, reason = forker.ended().partition(" ")
            with changes.step:
                ends = len(changes.states)
            now = copy.sum()
            if ended in ("changed", "unchanged"):
                counts["answered"] += 1
                counts["unchanged"] += ended == "unchanged"
                usual = 0.8 * usual + 0.2 * (time.monotonic() - clock)
                assert now in changes.states[begun:ends], f"after step {n}: it equals no moment of the poll"
                since = 0
            else:
                counts[ended] += 1
                told = f"after step {n}, which {ended} ({reason})"
                assert now == before or now in changes.states[since:ends], told
            before = now
    finally:
        changes.close()
    return {**counts, "transactions": changes.acts, "steps": STEPS}
