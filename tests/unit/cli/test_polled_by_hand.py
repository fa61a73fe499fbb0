"""`unstale poll` without an engine: several large bodies at once, and a clock that was set makes nothing old."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from support.heavy import HEAVY, heavy_server
from unstale.cli.compose import poll_once
from unstale.cli.service import write_store
from unstale.cli.settings import Settings, load
from unstale.keeper.outcomes import Answer
from unstale.ports import Entry, Listing

YEAR = 365.0 * 86400.0


def settings_in(folder: Path) -> Settings:
    (folder / "unstale.toml").write_text(
        f'store = "{folder}/unstale.db"\n[http]\nrobots = false\nallow_networks = ["127.0.0.0/8"]\n'
    )
    return load(str(folder / "unstale.toml"))


def test_several_large_bodies_do_not_wait_for_each_other(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    store = write_store(settings, create=True)
    with heavy_server() as server:
        store.add([Listing(f"{server.origin}/noise/{n}") for n in range(3)], 1.0)
        claims = store.claim(time.time(), 3, owner="test", lease=600.0)
        outcomes = asyncio.run(poll_once(settings, claims))
    assert [len(one.body.data) > HEAVY for one in outcomes if one.body] == [True] * 3
    store.close()


def test_a_clock_that_was_set_forward_makes_nothing_old(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    store = write_store(settings, create=True)
    store.add([Listing("https://example.org/")], 1.0)
    now = time.time()
    for at in (now - 100.0, now, now + 10.0 * YEAR):
        (claim,) = store.claim(at, 1, owner="test", lease=60.0)
        store.record([Entry(claim, Answer.UNCHANGED, at, at)])
    assert len(store.observations(1)) == 3
    store.close()
