"""Replaying observations gives the beliefs that the live learner had, bit for bit."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from support.kept_store import HOUR, keep
from unstale.adapters.sqlite_replica import SqliteReplica
from unstale.core.learning.learner import HALF_LIVES, Learner
from unstale.core.learning.state import WIDTH, kept
from unstale.keeper.outcomes import Answer
from unstale.keeper.replay import PastPolls, Taught, blank, replay
from unstale.keeper.scheduler import Scheduler
from unstale.ports import Listing, Observation

COUNT = len(HALF_LIVES)


def polls_of(observations: list[Observation], row: int = 0) -> PastPolls:
    return PastPolls(
        np.full(len(observations), row),
        np.array([o.polled_at for o in observations]),
        np.array([o.answer is not Answer.FAILED for o in observations], dtype=bool),
        np.array([o.answer is Answer.CHANGED for o in observations], dtype=bool),
        np.array([math.nan if o.modified is None else o.modified for o in observations]),
        np.array([o.epoch for o in observations], dtype=np.int64),
    )


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Kept by an engine, then by another one with another budget and one source more."""
    path = tmp_path_factory.mktemp("replay") / "kept.db"
    keep(path, 10.0)
    from unstale.adapters.sqlite_store import SqliteStore

    more = SqliteStore(path)
    more.add([Listing("https://late.example/")], 1_700_000_000.0 + 10 * HOUR)
    more.close()
    keep(path, 5.0, sources=13, budget=26 / HOUR)
    return path


def test_an_engine_s_beliefs_are_replayed_bit_for_bit_over_restarts_failures_and_reviews(store: Path) -> None:
    replica = SqliteReplica(store)
    standing, epochs = replica.fleet(WIDTH), {one.number: one.state for one in replica.epochs()}
    assert len(standing.source) == 13
    # several reviews of the fleet, and a restart with other half-lives, lie in between
    assert len(epochs) > 5
    for row, source in enumerate(standing.source.tolist()):
        seen = replica.observations(source, 10**6)[::-1]
        assert seen
        taught = replay(polls_of(seen), blank(1, WIDTH), epochs)
        assert taught.known.all()
        np.testing.assert_array_equal(taught.rows[0], standing.beliefs[row])
        assert taught.last[0] == standing.last[row]
        if math.isfinite(standing.found[row]):
            assert taught.found[0] == standing.found[row]
    assert np.abs(standing.beliefs[3]).max() > 0.1
    replica.close()


def test_what_was_taught_until_a_checkpoint_can_stand_for_the_polls_before_it(store: Path) -> None:
    replica = SqliteReplica(store)
    epochs, seen = {one.number: one.state for one in replica.epochs()}, replica.observations(5, 10**6)[::-1]
    whole = replay(polls_of(seen), blank(1, WIDTH), epochs)
    for cut in (0, 1, 7, len(seen)):
        half = replay(polls_of(seen[:cut]), blank(1, WIDTH), epochs)
        rest = replay(polls_of(seen[cut:]), half, epochs)
        np.testing.assert_array_equal(rest.rows, whole.rows)
        assert (rest.last, rest.found) == (whole.last, whole.found)
    replica.close()


def test_many_sources_at_once_are_as_one_after_the_other_and_as_the_keeper() -> None:
    rng = np.random.default_rng(5)
    count, turns = 20, 30
    learner = Learner(count, HOUR)
    learner.shared.prior[:] = 0.7, 5000.0
    state = {4: kept(learner)}
    keeper = Scheduler.of(learner, np.arange(count), due=np.zeros(count))
    columns: list[list[np.ndarray]] = []
    for turn in range(turns):
        rows = rng.permutation(count)[:15]
        at = 1e6 + turn * HOUR + rng.uniform(0, 600, 15)
        answered, changed = rng.random(15) < 0.8, rng.random(15) < 0.4
        modified = np.where(changed & (rng.random(15) < 0.5), at - rng.uniform(0, 900, 15), np.nan)
        keeper.decide(rows, answered, at, changed, modified)
        columns.append([rows, at, answered, changed & answered, modified, np.full(15, 4)])
    polls = PastPolls(*(np.concatenate(column) for column in zip(*columns, strict=True)))
    taught = replay(polls, blank(count, WIDTH), state)
    np.testing.assert_array_equal(taught.rows, learner.columns.rows)
    np.testing.assert_array_equal(taught.last, keeper.answered)
    for row in range(count):
        mine = polls.only(polls.source == row)._replace(source=np.zeros((polls.source == row).sum(), np.int64))
        np.testing.assert_array_equal(replay(mine, blank(1, WIDTH), state).rows[0], taught.rows[row])


def test_the_first_answer_teaches_when_it_was_and_an_unchanged_one_its_exposure() -> None:
    state = {1: kept(Learner(1, 100.0))}
    nan, one = math.nan, np.ones(4, dtype=np.int64)
    first, failed, quiet, told = 0.0, 50.0, 80.0, 100.0
    polls = PastPolls(
        np.zeros(4, np.int64),
        np.array([first, failed, quiet, told]),
        np.array([True, False, True, True]),
        np.array([True, False, False, True]),
        np.array([nan, nan, nan, 95.0]),
        one,
    )
    after_quiet = replay(polls.only(np.arange(4) < 3), blank(1, WIDTH), state)
    # the failure in between is part of the 80 seconds: nothing seen, and the whole time watched
    assert after_quiet.rows[0, :COUNT].tolist() == [0.0] * COUNT
    assert after_quiet.rows[0, COUNT : 2 * COUNT].tolist() == [80.0] * COUNT
    assert (after_quiet.last[0], after_quiet.found[0]) == (80.0, 0.0)
    taught = replay(polls, blank(1, WIDTH), state)
    # a told change counts one, watched for the 5 seconds since; what was known fades by its half-life over 20 seconds
    faded = 2.0 ** (-20.0 / (100.0 * np.array(HALF_LIVES)))
    assert taught.rows[0, :COUNT].tolist() == [1.0] * COUNT
    np.testing.assert_allclose(taught.rows[0, COUNT : 2 * COUNT], 80.0 * faded + 5.0, rtol=1e-15)


def test_a_missing_shared_state_is_said_and_touches_no_other_source() -> None:
    polls = PastPolls(
        np.array([0, 1, 0, 1]),
        np.array([0.0, 0.0, 60.0, 60.0]),
        np.ones(4, bool),
        np.zeros(4, bool),
        np.full(4, np.nan),
        np.array([1, 2, 1, 2]),
    )
    taught = replay(polls, blank(2, WIDTH), {1: kept(Learner(2, 60.0))})
    assert taught.known.tolist() == [True, False]
    assert taught.rows[0, COUNT] == 60.0


def test_nothing_is_changed_in_what_was_given() -> None:
    start = Taught(np.ones((1, WIDTH)), np.array([10.0]), np.array([-np.inf]), np.ones(1, bool))
    polls = PastPolls(
        np.zeros(1, np.int64),
        np.array([70.0]),
        np.ones(1, bool),
        np.ones(1, bool),
        np.full(1, np.nan),
        np.ones(1, np.int64),
    )
    taught = replay(polls, start, {1: kept(Learner(1, 60.0))})
    assert (start.rows == 1.0).all()
    assert start.last[0] == 10.0
    assert (taught.last[0], taught.found[0]) == (70.0, 70.0)
