"""`unstale get` and `unstale history`: bytes as they came, and what is known of them."""

from __future__ import annotations

import hashlib
import json
import os
import pty
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from support.hand_store import HOUR, NOW, belief, make, poll, survival
from unstale.cli.copies import get, history
from unstale.cli.feed_entries import entries
from unstale.errors import InputError, StoreError
from unstale.keeper.outcomes import Answer
from unstale.ports import Listing

BINARY = bytes(range(256)) * 3


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(time, "time", lambda: NOW)
    monkeypatch.setenv("COLUMNS", "120")
    path = tmp_path / "a.db"
    made = make(path, [Listing("https://a.example/news"), Listing("https://b.example/new")])
    poll(made, 1, NOW - 9 * HOUR, Answer.CHANGED, body=b"first\n", media_type="text/html")
    poll(made, 1, NOW - 5 * HOUR, Answer.CHANGED, body=BINARY, media_type="image/x")
    poll(made, 1, NOW - 3 * HOUR, Answer.FAILED, reason="it hangs up")
    poll(made, 1, NOW - HOUR, Answer.UNCHANGED, row=belief(2.0, 10 * HOUR))
    made.close()
    return str(path)


def run(command: object, *args: str) -> Result:
    return CliRunner().invoke(command, list(args), catch_exceptions=True)  # type: ignore[arg-type]


def test_the_copy_comes_byte_for_byte_and_its_freshness_beside_it(store: str) -> None:
    done = run(get, "a.example", "--store", store)
    assert done.stdout_bytes == BINARY
    fresh = 100 * survival(HOUR, 2.0, 10 * HOUR)
    assert done.stderr == f"checked 1 h ago, changed 5 h ago, fresh with {fresh:.0f} %; version 2, image/x\n"
    old = run(get, "1", "--version", "1", "--store", store)
    assert old.stdout_bytes == b"first\n"
    assert old.stderr == "version 1, taken 9 h ago, text/html; the newest is version 2\n"


def test_a_file_is_written_whole_and_leaves_nothing_beside_it(store: str, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    assert run(get, "1", "-o", str(folder / "copy.bin"), "--store", store).exit_code == 0
    assert (folder / "copy.bin").read_bytes() == BINARY
    assert [file.name for file in folder.iterdir()] == ["copy.bin"]
    refused = run(get, "1", "-o", str(tmp_path / "none" / "copy.bin"), "--store", store)
    assert isinstance(refused.exception, InputError)
    assert "cannot be written (No such file or directory): choose another" in str(refused.exception)


def test_json_and_head_tell_of_the_copy_without_its_bytes(store: str) -> None:
    told = json.loads(run(get, "1", "--json", "--store", store).stdout)
    assert told["sha256"] == hashlib.sha256(BINARY).hexdigest()
    assert (told["bytes"], told["version"], told["is_newest"], told["etag"]) == (768, 2, True, '"tag"')
    assert told["fresh"] == pytest.approx(survival(HOUR, 2.0, 10 * HOUR), rel=1e-12)
    assert told["since_checked"] == HOUR
    assert told["checked_at"] == "2023-11-14T21:13:20.000000Z"
    head = run(get, "1", "--head", "--store", store).stdout
    assert told["sha256"] in head
    assert "2023-11-14T17:13:20" in head
    old = json.loads(run(get, "1", "--version", "1", "--json", "--store", store).stdout)
    assert (old["is_newest"], old["fresh"], old["age"]) == (False, 0.0, None)


def test_max_age_fails_without_a_byte(store: str) -> None:
    assert run(get, "1", "--max-age", "61min", "--store", store).exit_code == 0
    late = run(get, "1", "--max-age", "59min", "--store", store)
    assert isinstance(late.exception, StoreError)
    assert "was checked 1 h ago, which is more than 59 min: poll it now with `unstale poll 1`" in str(late.exception)
    assert late.stdout_bytes == b""


def test_what_is_not_there_is_said_with_what_to_do(store: str) -> None:
    assert "b.example/new has no copy yet: `unstale run` polls it" in str(run(get, "2", "--store", store).exception)
    missing = run(get, "1", "--version", "7", "--store", store).exception
    assert "version 7 of https://a.example/news is not kept: the newest is 2" in str(missing)


@pytest.mark.slow
def test_a_terminal_is_not_garbled(store: str) -> None:
    """A real terminal: bytes that are no text, and escape sequences in a text, are refused there and only there."""
    code = "import sys; from unstale.cli.copies import get; get(sys.argv[1:])"
    ours, theirs = pty.openpty()
    try:
        done = subprocess.run(
            [sys.executable, "-c", code, "1", "--store", store],
            stdout=theirs,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )
        assert "copy of 768 bytes is not text and would garble the terminal: write it with -o FILE" in done.stderr
        first = subprocess.run(
            [sys.executable, "-c", code, "1", "--version", "1", "--store", store],
            stdout=theirs,
            stderr=subprocess.PIPE,
            timeout=60,
            check=False,
        )
        assert first.returncode == 0
        assert b"first\r\n" in os.read(ours, 100)
    finally:
        os.close(ours)
        os.close(theirs)


def test_history_is_newest_first_with_reasons_and_versions(store: str) -> None:
    told = json.loads(run(history, "1", "--json", "--store", store).stdout)
    assert [one["answer"] for one in told["polls"]] == ["unchanged", "failed", "changed", "changed"]
    assert [one["elapsed"] for one in told["polls"]] == [4 * HOUR, 2 * HOUR, 4 * HOUR, None]
    assert told["polls"][1]["reason"] == "it hangs up"
    assert told["polls"][2]["received"] == 768
    assert [(one["version"], one["bytes"]) for one in told["versions"]] == [(2, 768), (1, 6)]
    out = run(history, "1", "--limit", "2", "--store", store).stdout
    assert "it hangs up" in out
    assert "and older ones: see --limit" in out
    assert "version 1, 6 B, taken 9 h ago: unstale get 1 --version 1" in out
    assert out.index("unchanged") < out.index("failed")


def test_history_of_changes_only_and_of_nothing(store: str) -> None:
    told = json.loads(run(history, "1", "--changes", "--limit", "1", "--json", "--store", store).stdout)
    assert [one["polled_at"] for one in told["polls"]] == ["2023-11-14T17:13:20.000000Z"]
    assert "it was never polled" in run(history, "2", "--store", store).stdout
    assert "no poll has found a change yet" in run(history, "2", "--changes", "--store", store).stdout


def test_entries_of_a_feed_are_told_once_newest_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: NOW)
    monkeypatch.setenv("COLUMNS", "120")
    path = str(tmp_path / "a.db")
    made = make(tmp_path / "a.db", [Listing("https://a.example/feed", "feed"), Listing("https://b.example/")])
    assert "no entry is known yet" in run(entries, "a.example", "--store", path).stdout
    item = "<item><guid>{0}</guid><title>{1}</title><link>https://a.example/{0}</link></item>"
    for hours, some in ((9, [(1, "One"), (0, "Nil\x1b[31m")]), (5, [(2, "Two"), (1, "One, mended")])):
        body = "<rss><channel>" + "".join(item.format(*one) for one in some) + "</channel></rss>"
        poll(made, 1, NOW - hours * HOUR, Answer.CHANGED, body=body.encode(), media_type="application/rss+xml")
    made.close()
    lines = run(entries, "a.example", "--store", path).stdout.splitlines()
    assert [line.split() for line in lines[2:]] == [
        ["4", "5", "h", "ago", "Two"],
        ["https://a.example/2"],
        ["2", "9", "h", "ago", "edited", "5", "h", "ago", "One,", "mended"],
        ["https://a.example/1"],
        ["1", "9", "h", "ago", "gone", "since", "9", "h", "ago", "Nil[31m"],
        ["https://a.example/0"],
    ]
    told = json.loads(run(entries, "1", "--limit", "2", "--json", "--store", path).stdout)
    assert ([one["title"] for one in told["entries"]], told["total"], told["before"]) == (["Two", "One, mended"], 3, 2)
    assert told["entries"][1]["edits"] == 1
    rest = json.loads(run(entries, "1", "--before", "2", "--json", "--store", path).stdout)
    assert ([one["title"] for one in rest["entries"]], rest["before"]) == (["Nil[31m"], None)
    assert isinstance(run(entries, "b.example", "--store", path).exception, InputError)
