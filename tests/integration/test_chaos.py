"""The campaign in small, that it would notice what it looks for, and that its page says what its figures say."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from support.campaigns import CHAOS, campaign_modules


@pytest.fixture
def chaos(monkeypatch: pytest.MonkeyPatch) -> dict[str, ModuleType]:
    """The campaign's modules."""
    return campaign_modules(monkeypatch)


def test_a_short_campaign_holds_and_goes_on_where_it_was(tmp_path: Path) -> None:
    run = [sys.executable, str(CHAOS), "--into", str(tmp_path), "--share"]
    names = ["kills", "command kills", "flips", "failing disk"]
    first = subprocess.run([*run, "0.002", *names], capture_output=True, text=True)
    assert first.returncode == 0, first.stdout + first.stderr
    again = subprocess.run([*run, "0.003", "flips"], capture_output=True, text=True)
    assert again.returncode == 0, again.stdout + again.stderr
    figures = json.loads((tmp_path / "figures.json").read_text())
    assert set(figures) == set(names)
    assert (figures["flips"]["next"], figures["flips"]["figures"]["rounds"]) == (3, 3)
    assert "| 9 | bits flip" in (tmp_path / "chaos.md").read_text()


def test_power_cuts_lose_nothing_and_would_be_noticed_if_they_did(
    chaos: dict[str, ModuleType], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    faults, disk = chaos["store_faults"], chaos["disk"]
    held = faults.power_cuts(0, 10, tmp_path)
    assert held["rounds"] == 10
    assert held["acknowledged"] > 0
    assert held["harmed writes"] > 0
    assert held["lost"] == held["corrupt"] == held["torn"] == held["miscounted"] == 0
    # A disk that says it has synced, and has not.
    play = disk.PowerCut.play
    monkeypatch.setattr(disk.PowerCut, "play", lambda cut, one: None if one.kind == "sync" else play(cut, one))
    lied = faults.power_cuts(0, 10, tmp_path)
    assert lied["lost"] + lied["corrupt"] + lied["torn"] > 0


def test_flips_that_nobody_noticed_would_be_seen(
    chaos: dict[str, ModuleType], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flips = chaos["flips"]
    found = flips.flips(0, 6, tmp_path)
    assert found["flips in copies"] == found["found by reading"] == found["found by scrub"] == 3
    # Someone else's bytes stand for bytes that changed without a word.
    flips.whole()
    monkeypatch.setattr(flips, "body_of", lambda source: b"other")
    assert flips.flips(0, 1, tmp_path)["wrong bytes served"] > 0


def test_under_too_much_the_valuable_keep_their_polls(chaos: dict[str, ModuleType], tmp_path: Path) -> None:
    found = chaos["overload"].overloaded(10, tmp_path, calm=1200.0, rush=900.0)
    # As who is due first is polled first, it is 8 and 17 %.
    assert found["percent of valuable polls kept at 10x"] > 2 * found["percent of others kept at 10x"]
    assert found["unbounded"] == found["not recovered in two minutes"] == 0


def test_what_noisy_sources_do_is_told_by_kind(
    chaos: dict[str, ModuleType], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chaos["noisy"], "CHANGES", 20)
    found = chaos["noisy"].noisy(0, 6, tmp_path)
    told = [found[f"tenths of a percent caught in two intervals: {way}"] for way in chaos["noisy"].WAYS]
    assert min(told[:-1]) > 950
    # Of who fails every fifth poll less is caught, though it is asked.
    assert told[-1] < 970
    assert told[-1] < found["tenths of a percent asked after in two intervals: often fails"]


def test_builds_and_routes_are_judged_one_by_one(
    chaos: dict[str, ModuleType], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = chaos["rules"]
    found = rules.builds(0, 1, tmp_path)
    assert found["rounds"] == len(rules.BROKEN) + len(rules.MENDED)
    assert found["taken though it loses commits"] == found["refused though it is mended"] == 0
    monkeypatch.setattr(rules, "BROKEN", ("3.54.1",))
    monkeypatch.setattr(rules, "MENDED", ("3.40.1", "3.44.6"))
    wrong = rules.builds(0, 1, tmp_path)
    assert wrong["taken though it loses commits"] == wrong["refused though it is mended"] == 1
    answers = [(True, ("GET", "/", "nobody", 401)), (False, ("GET", "/", "a guess", 200))]
    monkeypatch.setattr(rules, "tested", lambda name: SimpleNamespace(tried=lambda folder: iter(answers)))
    assert rules.routes(0, 1, tmp_path) == {"rounds": 2, "unexpected": 1, "let in": 1}


def test_after_a_failover_only_the_tail_is_lost_and_it_is_polled_again(
    chaos: dict[str, ModuleType], tmp_path: Path
) -> None:
    found = chaos["failover"].failover(0, 2, tmp_path)
    assert found["of the lost tail"] > 40
    assert [found[name] for name in ("lost beside the tail", "not polled again", "false words", "corrupt")] == [0] * 4
    # Without a look at the server's timeline about twenty are.
    assert found["numbers given twice"] == 0


def test_who_comes_after_its_lease_is_told_so_and_a_killed_server_loses_nothing(
    chaos: dict[str, ModuleType], tmp_path: Path
) -> None:
    late = chaos["stores"].sleepers(0, 4, tmp_path)
    assert late["polls that came too late"] > 5
    assert (late["applied twice"], late["miscounted"], late["corrupt"]) == (0, 0, 0)
    dead = chaos["stores"].crashes(0, 2, tmp_path)
    assert dead["acknowledged"] > 0
    assert (dead["lost"], dead["corrupt"]) == (0, 0)


def test_stores_walk_alike_and_one_that_forgets_is_seen(
    chaos: dict[str, ModuleType], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    walk = chaos["stores"].Walk(1, tmp_path, "")
    for _ in range(500):
        walk.step()
    walk.end()
    walk = chaos["stores"].Walk(2, tmp_path, "")
    monkeypatch.setattr(walk.stores[1], "give_back", lambda owner: None)
    with pytest.raises(AssertionError, match=r"^step "):  # noqa: PT012
        for _ in range(500):
            walk.step()
    for store in walk.stores:
        store.close()


def test_a_simulated_engine_does_the_same_twice_and_is_late_nowhere(
    chaos: dict[str, ModuleType], monkeypatch: pytest.MonkeyPatch
) -> None:
    # A seed whose engines are ended in the middle of things: in real time the virtual one flew, to the end of it all.
    one, two = (chaos["simulated"].one_world(21) for _ in range(2))
    assert one == two
    assert one[0]["ended"] > 0
    assert [one[0][name] for name in ("late sources", "miscounted", "applied twice", "old copies")] == [0] * 4


@pytest.mark.parametrize(
    ("fate", "whole"),
    [
        ("let through", True),
        ("delayed", True),
        ("sliced", True),
        ("cut", False),
        ("reset", False),
        ("lost", False),
        ("partitioned", False),
    ],
)
def test_a_relay_does_to_connections_what_it_says(
    chaos: dict[str, ModuleType], monkeypatch: pytest.MonkeyPatch, fate: str, whole: bool
) -> None:
    said = bytes(range(256)) * 20
    monkeypatch.setattr(chaos["relay"], "KINDS", (fate,))
    monkeypatch.setattr(chaos["relay"], "STILL", 0.1)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(said)
        writer.close()

    async def asked() -> bytes:
        async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            relay = chaos["relay"].Relay(lambda: asyncio.open_connection("127.0.0.1", port), 1)
            with chaos["relay"].relayed(relay):
                got = b""
                try:
                    reader, writer = await asyncio.open_connection("127.0.0.3", relay.port)
                    writer.write(b"?")
                    while data := await reader.read(4096):
                        got += data
                    writer.close()
                except OSError:
                    assert fate in ("reset", "partitioned")
                assert relay.fates == {fate: 1}
                return got

    got = asyncio.run(asked())
    assert said.startswith(got)
    assert (got == said) is whole


def test_a_full_disk_is_waited_for_and_nothing_is_lost(chaos: dict[str, ModuleType], tmp_path: Path) -> None:
    found = chaos["resuming"].full_disk(0, 1, tmp_path)
    assert found["refused writes"] > 0
    assert found["recorded"] > 0
    assert (found["miscounted"], found["damaged"], found["not within 30 s"]) == (0, 0, 0)
