"""`unstale explain`: the sentence of every case, and intervals that pay by an integral of our own."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from scipy.integrate import quad

from support.hand_store import HOUR, NOW, belief, make, poll, survival
from unstale.cli.explain import explain
from unstale.keeper.outcomes import Answer
from unstale.ports import Listing

SHAPE, EXPOSURE, PRICE = 4.0, 8 * HOUR, 900.0
DAY = 24 * HOUR


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(time, "time", lambda: NOW)
    listings = [
        Listing("https://plain.example/", weight=3.0),
        Listing("https://often.example/", shortest=6 * HOUR),
        Listing("https://seldom.example/", longest=0.5 * HOUR),
        Listing("https://wild.example/", weight=0.2),
        Listing("https://off.example/", paused=True),
        Listing("https://down.example/"),
        Listing("https://new.example/"),
        Listing("https://broken.example/"),
    ]
    store = make(tmp_path / "a.db", listings, price=PRICE, budget=8 / HOUR)
    for source in (1, 2, 3, 8):
        poll(store, source, NOW - HOUR, Answer.CHANGED, row=belief(SHAPE, EXPOSURE), body=b"a")
    # far too busy for its weight: a poll is worth at most 0.2·exposure/(shape − 1), which is below the price
    poll(store, 4, NOW - HOUR, Answer.CHANGED, row=belief(40.0, HOUR), body=b"a")
    poll(store, 6, NOW - HOUR, Answer.FAILED, reason="its host is unknown", due=NOW + 4 * HOUR)
    poll(store, 8, NOW - HOUR / 2, Answer.FAILED, reason="it hangs up", due=NOW - 5.0)
    poll(store, 8, NOW - HOUR / 4, Answer.FAILED, reason="it hangs up", due=NOW - 5.0)
    store.close()
    (tmp_path / "unstale.toml").write_text('store = "a.db"\nbudget = "8/h"\n')
    return tmp_path / "unstale.toml"


def told(config: Path, source: str) -> dict[str, Any]:
    done = CliRunner().invoke(explain, ["--config", str(config), "--json", source], catch_exceptions=False)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def value(t: float) -> float:
    """What a poll after t is worth per unit of weight: the mean of min(first change, t) where it came before t."""
    return quad(lambda s: survival(s, SHAPE, EXPOSURE) - survival(t, SHAPE, EXPOSURE), 0.0, t)[0]


def test_a_poll_pays_after_the_interval_it_names(config: Path) -> None:
    plain = told(config, "plain")
    assert plain["bound"] == "price"
    # intervals are found to a thousandth
    assert 3.0 * value(plain["interval"]) == pytest.approx(PRICE, rel=4e-3)
    assert plain["change_rate"] == pytest.approx(SHAPE / EXPOSURE, rel=1e-12)
    assert plain["fresh"] == pytest.approx(survival(HOUR, SHAPE, EXPOSURE), rel=1e-12)
    words = plain["sentence"]
    assert words.startswith("polled every ")
    assert "it changes about every 2 h (between 1.03 h and 5.86 h), weighs 3, and at today's price a poll pays" in words


def test_twice_as_often_takes_the_weight_and_the_budget_it_says(config: Path) -> None:
    plain = told(config, "plain")
    weight, t = plain["twice"]["weight"], plain["interval"]
    assert weight * value(0.5 * t) == pytest.approx(PRICE, rel=6e-3)
    # at a price as many times lower everybody is polled more often, so the budget grows
    assert plain["twice"]["budget_per_day"] > 8 * 24 * 1.2


@pytest.mark.parametrize(
    ("source", "bound", "words"),
    [
        ("often", "shortest", "polled every 6 h: that is its min-interval; it changes about every 2 h"),
        ("seldom", "longest", "polled every 30 min: that is its max-interval;"),
        ("wild", "abandoned", "abandoned at today's price, but looked at every 1.09 days in case its habits change"),
        ("off", "price", "not polled: it is paused, `unstale resume 5` takes it up again"),
        ("down", "price", "polled again in 4 h: its last poll failed (its host is unknown), and it has never answered"),
        ("new", "price", "polled now for the first time: nothing is known of it yet"),
        (
            "broken",
            "price",
            "polled again now: its last poll failed 2 times in a row (it hangs up); from the third on each doubles",
        ),
    ],
)
def test_every_case_has_its_sentence(config: Path, source: str, bound: str, words: str) -> None:
    case = told(config, source)
    assert words in case["sentence"]
    assert case["bound"] == bound
    if source != "wild":
        assert case["twice"] == {"weight": None, "budget_per_day": None}


def test_people_see_the_sentence_the_belief_and_the_last_polls(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    out = CliRunner().invoke(explain, ["--config", str(config), "plain"], catch_exceptions=False).stdout
    lines = out.splitlines()
    assert lines[0] == "https://plain.example/"
    assert lines[1] == told(config, "plain")["sentence"] + "."
    assert "changes         12/day" in out
    assert "1 h ago" in out
    assert "twice as often" in out
    down = CliRunner().invoke(explain, ["--config", str(config), "down"], catch_exceptions=False).stdout
    assert "failed: its host is unknown" in down
    assert "twice" not in down


def test_a_host_whose_cap_binds_makes_polls_dearer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: NOW)
    listings = [Listing(f"https://one.example/{i}", host="one.example") for i in range(30)]
    store = make(tmp_path / "a.db", listings, price=300.0, budget=60 / HOUR)
    for source in range(1, 31):
        poll(store, source, NOW - source * 60.0, Answer.CHANGED, row=belief(SHAPE, EXPOSURE), body=b"a")
    store.close()
    free = '[hosts."one.example"]\nspacing = "0s"\n'
    held = '[hosts."one.example"]\nbudget = "6/h"\n'
    cases = {}
    for name, text in (("free", free), ("held", held)):
        (tmp_path / f"{name}.toml").write_text(f'store = "a.db"\nbudget = "60/h"\n{text}')
        cases[name] = told(tmp_path / f"{name}.toml", "7")
    assert cases["free"]["surcharge"] == 1.0
    assert cases["held"]["surcharge"] > 1.2
    assert "as dear at its host, whose cap binds" in cases["held"]["sentence"]
    assert value(cases["held"]["interval"]) == pytest.approx(300.0 * cases["held"]["surcharge"], rel=5e-3)
