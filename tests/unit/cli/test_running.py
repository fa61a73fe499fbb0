"""`unstale run`, `poll` and `demo` as a newcomer meets them, against a site on this machine."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from unstale.adapters.sqlite_store import SqliteStore
from unstale.cli.main import unstale
from unstale.cli.run import _plain
from unstale.origin.server import Origin
from unstale.origin.site import Site


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Origin]:
    monkeypatch.chdir(tmp_path)
    Path("unstale.toml").write_text(
        'budget = "50/s"\n[http]\nallow_networks = ["127.0.0.0/8"]\n[[on_change]]\n'
        'log = "changes.jsonl"\nfirst = true\n'
    )
    with Origin(Site.of(8, 2.0, seed=3)).in_thread() as origin:
        yield origin


def run(*words: str) -> Result:
    return CliRunner().invoke(unstale, words, catch_exceptions=False)


def test_from_a_list_to_kept_copies_and_told_changes(site: Origin) -> None:
    assert "added 8 sources" in run("add", "--from", f"{site.address}/list.csv").output
    done = run("run", "--for", "3s", "--no-serve")
    assert done.exit_code == 0
    assert "everything is recorded" in done.output
    store = SqliteStore("unstale.db")
    counters = store.counters()
    assert counters["recorded"] == counters["claimed"] - counters.get("given_back", 0) >= 8
    assert counters.get("failed", 0) == 0
    # Every poll that was recorded is one that the site has seen, beside the one for robots.txt and the list.
    assert counters["recorded"] == sum(1 for asked in site.log.asked if asked.path.startswith(b"/s/"))
    told = [json.loads(line) for line in Path("changes.jsonl").read_text().splitlines()]
    assert len(told) == counters["changed"] == counters["events"]
    store.close()


def test_poll_does_it_here_when_no_engine_runs(site: Origin) -> None:
    run("add", f"{site.address}/s/0", f"{site.address}/hostile/unavailable")
    first = run("poll", "s/0")
    assert (first.exit_code, first.output) == (0, f"{site.address}/s/0: changed, version 1, 2,000 bytes\n")
    time.sleep(0.01)
    again = run("poll", "s/0")
    assert "last looked at" in again.output
    broken = run("poll", "hostile")
    assert broken.exit_code == 1
    assert "503" in broken.output


def test_a_second_engine_on_one_store_is_refused(site: Origin) -> None:
    from unstale.cli.compose import alone
    from unstale.cli.settings import load
    from unstale.errors import StoreError

    run("add", f"{site.address}/s/0")
    with alone(load()), pytest.raises(StoreError, match="kept fresh by another process"):
        run("run", "--for", "1s")


def test_events_are_json_lines(site: Origin) -> None:
    run("add", f"{site.address}/s/0")
    lines = [json.loads(line) for line in run("run", "--for", "1s", "--events", "--no-serve").output.splitlines()]
    assert [line["event"] for line in lines[:2]] == ["started", "loaded"]
    assert lines[-1]["event"] == "stopped"
    assert any(line["event"] == "changed" and line["address"].endswith("/s/0") for line in lines)


def test_demo_tells_the_truth() -> None:
    # In a process of its own, for it tells numba not to compile.
    words = [sys.executable, "-m", "unstale", "demo", "--for", "3s", "--sources", "10", "--budget", "30/s"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=True)
    told = r"([0-9.]+) ± ([0-9.]+) %"
    said = re.search(
        rf"the copies were fresh {told} of it\.\nPolled equally often, .* {told};\n{told} is the best", done.stdout
    )
    assert said, done.stdout
    assert all(0.0 <= float(one) <= 100.0 for one in said.groups())
    # Of the same changes in the same time: nobody who polls at fixed intervals does better than the best.
    even, best = float(said[3]), float(said[5])
    assert even <= best + 4.0 * (float(said[4]) + float(said[6])) + 1.0
    assert "Your own list" in done.stdout


def test_lines_tell_who_joins_by_a_collection_and_who_is_gone(capsys: pytest.CaptureFixture[str]) -> None:
    about = {"source": 1, "address": "https://example.org/sitemap.xml"}
    why = {"another host": 2, "in the future": 9}
    _plain("members", {**about, "added": 1420, "refused": 11, "why": why})
    _plain("members", {**about, "added": 0, "refused": 2, "why": {"another host": 2}})
    _plain("members", {**about, "added": 1, "refused": 0, "why": {}})
    _plain("departures", {**about, "paused": 3, "resumed": 0, "removed": 1})
    lines = [line.split(" ", 1)[1] for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        "https://example.org/sitemap.xml: 1,420 new sources; left out: 2 another host",
        "https://example.org/sitemap.xml: 1 new source",
        "https://example.org/sitemap.xml: 3 members paused, 1 member removed",
    ]
