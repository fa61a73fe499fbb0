"""`unstale signals`: what is known of collections, as a table that fits its terminal."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from click.testing import CliRunner

from unstale.adapters.memory_store import MemoryStore
from unstale.adapters.sqlite_store import SqliteStore
from unstale.cli.signals import signals
from unstale.ports import Listing
from unstale.service.collections import CollectionView, collections

PLACE = "https://example.org/a/path/that/is/long/for/a/table/sitemap.xml"
WORTH = {
    "members": 1420,
    "trusted": True,
    "used": True,
    "new": False,
    "interval": 1320.0,
    "precision": 0.97,
    "silence": 0.02,
    "late": 240.0,
    "credit": 40.0,
    "heard_at": 1.7e9,
    "saved": 0.25,
}


def test_collections_are_shown_once_they_are_heard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("unstale.toml").write_text('store = "s.db"\nbudget = "20/s"\n', "utf-8")
    store = SqliteStore(tmp_path / "s.db")
    store.add([Listing("https://example.org/page")], 0.0)
    assert CliRunner().invoke(signals).output.startswith("no collection has been heard yet: add one with")
    store.add([Listing(PLACE, id=1, options={"collection": "sitemap"})], 0.0)
    store.remove([1])
    none = CliRunner().invoke(signals)
    assert none.output.startswith("none of the collections has been heard yet: `unstale run` lists them")
    assert CliRunner().invoke(signals, ["--json"]).output == "[]\n"
    said = {"fleet": [0.0] * 5, "collections": {"2": {"worth": WORTH}}}
    store.record([], settings={"signals": json.dumps(said).encode()})
    store.close()
    head, *lines = CliRunner().invoke(signals).output.splitlines()
    assert head.split() == ["state", "members", "listed", "every", "true", "signalled", "late", "heard"]
    assert lines[0].split()[:8] == ["used", "1,420", "22", "min", "97%", "98%", "4", "min"]
    assert lines[1:] == [f"   sitemap {PLACE}"]
    wide = CliRunner(env={"COLUMNS": "200"}).invoke(signals).output.splitlines()
    assert (len(wide), wide[1].rstrip().endswith(f"sitemap {PLACE}")) == (2, True)
    narrow = CliRunner(env={"COLUMNS": "20"}).invoke(signals).output.splitlines()
    assert narrow[1:] == lines
    (told,) = json.loads(CliRunner().invoke(signals, ["--json"]).output)
    assert (told["address"], told["state"], told["members"], told["saved"]) == (PLACE, "used", 1420, 21_600)
    assert told["sentence"].endswith(
        "97% of its signals are true, 2% of changes go unsaid; about 21,600 polls a day are saved"
    )


def test_what_an_earlier_version_wrote_of_a_collection_is_read() -> None:
    store = MemoryStore()
    store.add([Listing(PLACE, options={"collection": "sitemap"})], 0.0)
    worth = {name: value for name, value in WORTH.items() if name != "saved"}
    said = {"fleet": [0.0] * 5, "collections": {"1": {"worth": worth}}}
    (one,) = collections(store, json.dumps(said).encode())
    assert math.isnan(one.saved)
    assert one.sentence(1.7e9).endswith("2% of changes go unsaid")


def test_of_a_new_collection_nothing_is_claimed_that_polls_have_not_shown() -> None:
    store = MemoryStore()
    store.add([Listing(PLACE, options={"collection": "sitemap"})], 0.0)
    said = {
        "fleet": [0.0] * 5,
        "collections": {"1": {"worth": {**WORTH, "trusted": False, "used": False, "new": True}}},
    }
    (one,) = collections(store, json.dumps(said).encode())
    assert one.state == "new"
    assert all(map(math.isnan, (one.precision, one.silence, one.late)))
    assert "until polls have shown what its signals are worth" in one.sentence(1.7e9)


def test_who_was_never_found_untrue_is_no_liar() -> None:
    """Where nothing has changed since a collection is known, nothing can have shown what its word is worth."""
    store = MemoryStore()
    store.add([Listing(PLACE, options={"collection": "sitemap"})], 0.0)

    def told(**known: object) -> CollectionView:
        worth = {**WORTH, "trusted": False, "used": False, **known}
        said = {"fleet": [0.0] * 5, "collections": {"1": {"lessons": known.get("lessons", 1448.0), "worth": worth}}}
        return collections(store, json.dumps(said).encode())[0]

    quiet = told(credit=0.0)
    assert (quiet.state, math.isnan(quiet.precision)) == ("unproven", True)
    assert "polls have not shown yet what its signals are worth" in quiet.sentence(1.7e9)
    # Who was found untrue is, and who had trust and lost it, whatever it has gained since.
    for liar in (told(credit=-3.0), told(credit=-9.0), told(credit=-1.0, lessons=None)):
        assert (liar.state, liar.precision) == ("not believed", 0.97)
