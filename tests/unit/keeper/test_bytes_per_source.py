"""What a scheduler holds of each source, counted by its columns: how many sources fit into memory."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from unstale.core.learning.learner import Learner
from unstale.keeper.living import GIVEN, learner_of
from unstale.keeper.scheduler import Scheduler

COUNT, DAY = 10_000, 86_400.0
#: of which 152 are its belief, 19 numbers that no poll may round, and 32 what is remembered of it to find a price
MOST = 298


def columns(of: object, seen: set[int]) -> Iterator[np.ndarray]:
    """The memory behind all arrays that an object refers to, each once."""
    if id(of) in seen:
        return
    seen.add(id(of))
    if isinstance(of, np.ndarray):
        if isinstance(of.base, np.ndarray):
            yield from columns(of.base, seen)
        else:
            yield of
    elif isinstance(of, tuple | list | dict):
        for one in of.values() if isinstance(of, dict) else of:
            yield from columns(one, seen)
    elif hasattr(of, "__dict__"):
        yield from columns(vars(of), seen)


def fleet() -> Scheduler:
    """Sources that a store holds, all of which were polled daily and have taught something."""
    rng, every = np.random.default_rng(3), np.arange(COUNT)
    learner = Learner(COUNT, DAY)
    for day in (1.0, 2.0, 3.0):
        learner.observe(every, DAY * (day + rng.random(COUNT)), rng.random(COUNT) < 0.5)
    last, found = learner.columns.last.copy(), learner.columns.found.copy()
    host = every % 200
    return Scheduler.of(learner, every + 1, due=last + DAY, answered=last, found=found, host=host)


def test_a_source_is_held_in_few_bytes() -> None:
    scheduler = fleet()
    now = 4.0 * DAY
    scheduler.plan(100.0, now, now + 600.0)
    scheduler.moved(*scheduler.moves(now, now + 1200.0))
    held = sum(column.nbytes for column in columns(scheduler, set()) if column.nbytes >= COUNT)
    assert scheduler.learner.columns.rows.nbytes == 152 * COUNT
    assert held <= MOST * COUNT, held / COUNT


def test_what_is_given_for_good_is_not_held_twice() -> None:
    def given() -> dict[str, np.ndarray]:
        return {name: np.full(COUNT, 9.0 * DAY if name == "longest" else 0.5) for name in GIVEN}

    listed, beliefs = given(), np.zeros((COUNT, 19))
    copied, kept = (learner_of(DAY, listed, beliefs, "freshness", own=own) for own in (False, True))
    for name in GIVEN:
        assert np.shares_memory(getattr(kept.columns, name), listed[name])
        assert not np.shares_memory(getattr(copied.columns, name), listed[name])
        assert (getattr(kept.columns, name) == getattr(copied.columns, name)).all()
