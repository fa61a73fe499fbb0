"""Siblings: what changes together is learned from polls alone, family by family, and moves nothing elsewhere."""

from __future__ import annotations

import json
import math

import numpy as np

from unstale import Outcome, Scheduler
from unstale.core.learning.learner import Learner
from unstale.core.learning.siblings import MOST, Siblings, families, foretold_by, siblings_of

DAY = 86_400.0
#: eight pages of one folder that are edited together, seven times in ten each, and eight that are not
NAMES = [f"step/{i}" for i in range(8)] + [f"own/{i}" for i in range(8)]


def world(days: int, seed: int = 5) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    edits = np.sort(rng.uniform(0.0, days * DAY, rng.poisson(0.15 * days)))
    step = [edits[rng.random(len(edits)) < 0.7] for _ in range(8)]
    return step + [np.sort(rng.uniform(0.0, days * DAY, rng.poisson(0.1 * days))) for _ in range(8)]


def poll_in_turns(learner: Learner, changes: list[np.ndarray], days: int) -> None:
    """Each is polled once a day, a quarter of all at a time."""
    last = np.zeros(16)
    for turn in range(4 * days):
        rows, now = np.arange(turn % 4, 16, 4), (turn + 1) * DAY / 4
        seen = [np.searchsorted(changes[i], (last[i], now), "right") for i in rows]
        last[rows] = now
        learner.observe(rows, np.full(4, now), np.array([before < after for before, after in seen]))
        if turn % 40 == 39:
            learner.review()


def test_who_changes_together_is_learned_and_waits_for_the_others_news() -> None:
    learner = Learner(16, DAY)
    learner.siblings = kin = siblings_of(NAMES)
    assert kin is not None
    poll_in_turns(learner, world(120), 120)
    step, own = kin.families.of[[0, 8]]
    # Of seven in ten, doubt is log 1/0.3 = 1.2; part of what is told is the same edit told again.
    assert kin.trusted[step]
    assert 0.4 < kin.foretells[step] < 1.3
    assert kin.alone[step] < 0.5
    assert not kin.trusted[own]
    assert kin.foretells[own] < 0.1
    assert kin.alone[own] > 0.6
    learner.waits(0.2 * DAY)
    kin.renew(learner.columns, learner.shared)
    quiet = learner.columns.head_start.copy()
    assert (quiet[:8] < 0.0).any()
    assert not quiet[8:].any()
    learner.observe([3, 11], [121 * DAY] * 2, [True, True])
    told = learner.columns.head_start
    assert (np.delete(told[:8] - quiet[:8], 3) > 0.0).all()
    assert not told[8:].any()


def test_where_nothing_changes_together_not_a_digit_changes() -> None:
    plain, kin = Learner(16, DAY), Learner(16, DAY)
    kin.siblings = siblings_of([f"own/{i}" for i in range(16)])
    changes = world(40)[8:] + world(40, 6)[8:]
    for learner in (plain, kin):
        poll_in_turns(learner, changes, 40)
    assert kin.siblings is not None
    assert kin.siblings.tallies[0].all()
    for name in ("rows", "last", "head_start"):
        assert getattr(plain.columns, name).tolist() == getattr(kin.columns, name).tolist()
    assert plain.price_for(16.0, 40 * DAY, 41 * DAY, 1e4) == kin.price_for(16.0, 40 * DAY, 41 * DAY, 1e4)


def proven(names: list[str]) -> Siblings:
    """Siblings of whom a hundred changes told have foretold fifty, beside fifty others."""
    kin = siblings_of(names)
    assert kin is not None
    kin.tallies[:] = np.array([[100.0], [50.0], [45.0], [95.0], [95.0], [20.0]])
    kin.credit = 20.0
    made = siblings_of(names, kin.kept())
    assert made is not None
    return made


def test_a_poll_pays_at_the_same_doubt() -> None:
    learner = Learner(3, DAY)
    learner.siblings = kin = proven(["a/x", "a/y", "a/z"])
    e, alone = float(kin.foretells[0]), float(kin.alone[0])
    assert math.isclose(e, 0.5, rel_tol=0.02)
    assert alone == 0.5
    learner.observe([0, 1, 2], [DAY] * 3, [False] * 3)
    interval = learner.columns.interval[1]
    # Nothing told: half of the changes would have been, so that doubt grows half as fast.
    assert math.isclose(learner.columns.head_start[1], -interval, rel_tol=1e-6)
    # Polled a day after the others it finds a change, which may as well have come before their last polls.
    learner.observe([0], [2 * DAY], [True])
    told, rate = float(kin.heard[1]), learner.change_rate()[1]
    assert told == 1.0
    doubt = alone * rate * (interval - learner.columns.head_start[1]) + e * told
    assert math.isclose(doubt, rate * interval, rel_tol=1e-6)
    # Half of the time it tells of lies before their polls, and part of it they have told themselves.
    learner.observe([1], [2.5 * DAY], [False])
    learner.observe([2], [3 * DAY], [True])
    assert kin.heard[2] == 0.0
    assert 0.0 < kin.heard[1] < 0.25


def test_bounds_are_kept_whatever_siblings_foretell() -> None:
    scheduler = Scheduler("3/day")
    scheduler.add(["a/x", "a/y", "a/z"], now=0.0, shortest="20h", longest="30h")
    for hour in range(24):
        for source in scheduler.take(hour * 3600.0):
            scheduler.record(Outcome(source, "unchanged", hour * 3600.0))
    scheduler.learner.siblings = proven(["a/x", "a/y", "a/z"])
    scheduler.record(Outcome("a/x", "changed", 30 * 3600.0))
    awake = scheduler.awake()
    waits = (scheduler.planned(30 * 3600.0) - scheduler.answered)[awake]
    assert awake.sum() > 1
    assert (waits > 20 * 3600.0 - 1.0).all()
    assert (waits < 30 * 3600.0 + 1.0).all()
    scheduler.learner.siblings.sooner[1] = 3600.0
    assert "siblings of it were found changed" in scheduler.explain("a/y")


def test_what_was_learned_survives_and_older_saves_are_read() -> None:
    scheduler, names = Scheduler("8/day"), [f"https://example.org/news/{i}" for i in range(8)]
    scheduler.add(names, now=0.0)
    for hour in range(1, 60):
        now = hour * 3600.0
        for source in scheduler.take(now):
            scheduler.record(Outcome(source, "changed" if hour % 30 < 12 else "unchanged", now))
    kin, again = scheduler.learner.siblings, Scheduler.load(data := scheduler.save()).learner.siblings
    assert kin is not None
    assert again is not None
    assert kin.tallies.any()
    assert np.allclose(kin.tallies, again.tallies, rtol=1e-6)
    assert kin.heard.tolist() == again.heard.tolist()
    scheduler.add("https://example.org/news/8", now=200 * 3600.0)
    assert scheduler.due_of(names[0])
    assert scheduler.learner.siblings is not kin
    assert np.allclose(scheduler.learner.siblings.tallies, kin.tallies, rtol=1e-6)  # type: ignore[union-attr]
    # As it was written before there were siblings.
    form = data.index(b"\n") + 1
    end = form + 8 + int.from_bytes(data[form : form + 8], "little")
    head = json.loads(data[form + 8 : end])
    del head["kin"], head["columns"]["heard"]
    text = json.dumps(head).encode()
    older = data[:form] + len(text).to_bytes(8, "little") + text + data[end : len(data) - 4 * len(names)]
    assert Scheduler.load(older).due_of(names[1]) == Scheduler.load(data).due_of(names[1])


def test_families_are_bounded_and_named_by_folders() -> None:
    names = [f"big/{i:03d}" for i in range(MOST + 10)] + ["alone/x", 7, "big?a/b"]
    kin = Siblings(families(names))
    assert kin.families.of[-3:].tolist() == [-1, -1, -1]
    assert len(kin.families.folder) == 1
    learner = Learner(len(names), DAY)
    learner.siblings = kin
    learner.observe([MOST], [DAY], [True])
    assert np.flatnonzero(kin.heard).tolist() == list(range(MOST + 1, MOST + 10))
    state = proven(["a/x", "a/y"]).kept()
    assert math.isclose(foretold_by(state, "a/new"), 0.5, rel_tol=0.02)
    assert foretold_by(state, "b/x") == 0.0
    assert siblings_of(["a", "b"]) is None
    assert foretold_by(b"no state", "a/x") == 0.0
