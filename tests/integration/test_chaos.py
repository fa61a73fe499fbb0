"""The campaign in small, that it would notice what it looks for, and that its page says what its figures say."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from support.documents import ROOT

CHAOS = ROOT / "chaos"


@pytest.fixture
def chaos(monkeypatch: pytest.MonkeyPatch) -> dict[str, ModuleType]:
    """The campaign's modules, which import each other as neighbours."""
    monkeypatch.syspath_prepend(str(CHAOS))
    found = {}
    for name in (
        "disk",
        "goals",
        "page",
        "store_faults",
        "flips",
        "long",
        "overload",
        "failover",
        "stores",
        "simulated",
        "relay",
        "branches",
        "resuming",
    ):
        spec = importlib.util.spec_from_file_location(name, CHAOS / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        found[name] = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, name, found[name])
        spec.loader.exec_module(found[name])
    return found


def test_the_page_says_what_the_figures_say(chaos: dict[str, ModuleType]) -> None:
    kept = json.loads((CHAOS / "figures.json").read_text())
    assert (ROOT / "docs/chaos.md").read_text("utf-8") == chaos["page"].page(kept)


def test_every_goal_has_a_row_and_names_what_there_is(chaos: dict[str, ModuleType]) -> None:
    goals = chaos["goals"].GOALS
    assert [goal.number for goal in goals] == list(range(1, 33))
    main = (CHAOS / "__main__.py").read_text()
    for goal in (*goals, *chaos["goals"].TOLD):
        assert goal.campaigns or goal.tests or goal.gap
        assert all(f'"{name}": Campaign(' in main for name in goal.campaigns), goal
        assert all((ROOT / test).exists() for test in goal.tests), goal


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
    monkeypatch.setattr(chaos["simulated"], "TROUBLE", 100.0)
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


@pytest.fixture
def main(chaos: dict[str, ModuleType], monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location("campaigns", CHAOS / "__main__.py")
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "campaigns", found)
    spec.loader.exec_module(found)
    return found


def test_figures_that_are_told_whole_take_the_place_of_those_before(
    chaos: dict[str, ModuleType], main: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    said = iter([40, 70, 96])

    def parts(first: int, count: int, folder: Path) -> Counter[str]:
        return Counter({"rounds": count, "percent": next(said), "left": 3 - first})

    monkeypatch.setattr(chaos["branches"], "parts", parts, raising=False)
    one = main.Campaign("branches", "parts", 3, 1, ("left",), 1, ("percent", 95), told_whole=True)
    monkeypatch.setitem(main.CAMPAIGNS, "parts", one)
    kept: dict[str, Any] = {}
    assert main.campaign("parts", 0.5, tmp_path, kept, tmp_path / "figures") == [
        "parts: 2 left",
        "parts: 70 percent, wanted 95",
    ]
    # Those who go on with it later have all of it too.
    assert main.campaign("parts", 1.0, tmp_path, kept, tmp_path / "figures") == ["parts: 1 left"]
    assert kept["parts"]["figures"] == {"left": 1, "percent": 96, "rounds": 3}


def test_all_parts_of_the_tests_and_all_mutants_are_tried(chaos: dict[str, ModuleType], main: ModuleType) -> None:
    listed = subprocess.run([sys.executable, str(ROOT / "tests/mutants"), "--list"], capture_output=True, text=True)
    assert main.CAMPAIGNS["mutants"].whole == len(listed.stdout.splitlines())
    assert main.CAMPAIGNS["branches"].whole == chaos["branches"].PARTS + 1
    for name in chaos["branches"].NEAREST:
        assert list((ROOT / "tests").glob(name)), f"no test is called {name}"


def test_branches_are_counted_of_all_and_of_the_important_ones(chaos: dict[str, ModuleType]) -> None:
    def of(taken: int, there: int) -> dict[str, dict[str, int]]:
        return {"summary": {"covered_branches": taken, "num_branches": there, "missing_branches": there - taken}}

    files = {"src/unstale/server/auth.py": of(9, 10), "src/unstale/units.py": of(30, 30), "a/b.py": of(0, 0)}
    judged = chaos["branches"].judged(files)
    assert (judged["percent of branches"], judged["percent of branches of auth"]) == (97, 90)
    assert judged["important branches not taken"] == 1
    # What is not there at all is not taken for whole.
    assert judged["percent of branches of gate"] == 0
    for named in chaos["branches"].IMPORTANT.values():
        assert all((ROOT / "src/unstale" / file).exists() for file in named), named
