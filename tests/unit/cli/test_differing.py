"""`unstale diff`: two versions of a source side by side, within bounds and harmless to a terminal."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from support.hand_store import HOUR, NOW, make, poll
from unstale.cli.differing import diff
from unstale.keeper.outcomes import Answer
from unstale.ports import Listing


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(time, "time", lambda: NOW)
    path = tmp_path / "a.db"
    made = make(path, [Listing(f"https://{name}.example/") for name in "abcd"])
    for hour, text in enumerate(("one\ntwo\n", "one\nTWO\n", "one\nTWO\nthree\x1b[31m\n")):
        poll(made, 1, NOW + (hour - 9) * HOUR, Answer.CHANGED, body=text.encode(), media_type="text/plain")
    poll(made, 2, NOW - HOUR, Answer.CHANGED, body=b"only one", media_type="text/plain")
    for hour in (3, 2):
        poll(made, 3, NOW - hour * HOUR, Answer.CHANGED, body=bytes([hour]), media_type="image/png")
    made.close()
    return str(path)


def asked(store: str, *words: str) -> Result:
    return CliRunner().invoke(diff, [*words, "--store", store])


def test_the_newest_change_is_shown_and_cannot_steer_the_terminal(store: str) -> None:
    done = asked(store, "a.example")
    assert done.exit_code == 0, done.output
    assert done.output == "version 2 → 3\n  one\n  TWO\n+ three\\x1b[31m\n"


def test_any_two_versions_are_compared(store: str) -> None:
    assert asked(store, "1", "1", "2").output == "version 1 → 2\n  one\n- two\n+ TWO\n"
    assert asked(store, "1", "1").output.startswith("version 1 → 3\n")
    assert asked(store, "1", "2", "2").output == "version 2 → 2\nthey are the same, byte for byte\n"


def test_a_first_version_has_nothing_before_it(store: str) -> None:
    done = asked(store, "2", "--exit-code")
    assert (done.exit_code, done.output) == (0, "version 1 is the first: it has not changed since\n")


def test_programs_are_told_the_same(store: str) -> None:
    done = asked(store, "1", "1", "2", "--json", "--exit-code")
    assert done.exit_code == 1
    assert json.loads(done.output) == {
        "lines": [[" ", "one"], ["-", "two"], ["+", "TWO"]],
        "cut": False,
        "same": False,
        "old": 1,
        "new": 2,
    }
    assert asked(store, "1", "2", "2", "--exit-code").exit_code == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("4",), "source 4 has no copy yet: `unstale run` polls it, `unstale explain 4` says when"),
        (("1", "7"), "version 7 of source 1 is not kept: `unstale history 1` lists those that are"),
        (("3",), "version 1 is image/png, which has no lines: take both with `unstale get 3 --version N`"),
    ],
)
def test_what_cannot_be_compared_is_said(store: str, words: tuple[str, ...], said: str) -> None:
    done = asked(store, *words)
    assert done.exit_code != 0
    assert said in str(done.exception) + done.output
