"""When to look again, with numbers checked by hand."""

import math
from dataclasses import replace

import numpy as np
import pytest

from unstale.core.orders import phases
from unstale.core.values import PoissonFreshness
from unstale.keeper import Answer, Outcome, Record, Source, admit, decide, reprice
from unstale.keeper.decisions import FAILURE_SPREAD, MOST_DOUBLINGS

# P(2, 1.678346990017) = 1/2: at price 0.25 a source of rate 2 is polled every 0.839173495008.
INTERVAL = 0.839173495008
PRICE = 0.25


def drawn(record: Record, outcome: Outcome, now: float, times: int = 4000) -> np.ndarray:
    rng = np.random.default_rng(8)
    return np.array([decide(record, outcome, PRICE, now, rng).due for _ in range(times)])


@pytest.mark.parametrize("answer", [Answer.CHANGED, Answer.UNCHANGED])
def test_an_answer_sets_the_next_look_one_jittered_interval_later(answer: Answer) -> None:
    record = Record(Source(3, 2.0), failures=4)
    after = decide(record, Outcome(answer, 10.0), PRICE, 10.0, np.random.default_rng(1))
    assert (after.last_poll, after.failures, after.source) == (10.0, 0, record.source)
    assert after.interval == pytest.approx(INTERVAL, rel=1e-11)
    waits = (drawn(record, Outcome(answer, 10.0), 10.0) - 10.0) / INTERVAL
    assert 0.95 <= waits.min() < 0.951 < 1.049 < waits.max() <= 1.05
    # uniform on [0.95, 1.05]: standard deviation 0.1/√12
    assert abs(waits.mean() - 1.0) < 5 * 0.1 / math.sqrt(12 * len(waits))


def test_jitter_comes_from_the_generator_alone() -> None:
    record, outcome = Record(Source(0, 2.0)), Outcome(Answer.CHANGED, 0.0)
    rng = np.random.default_rng(4)
    u = 2.0 * np.random.default_rng(4).random() - 1.0
    due = decide(record, outcome, PRICE, 0.0, rng).due
    assert due == pytest.approx(INTERVAL * (1 + 0.05 * u), rel=1e-11)
    assert decide(record, outcome, PRICE, 0.0, np.random.default_rng(4)).due == due


def test_a_slow_answer_does_not_slow_polling() -> None:
    """The interval runs from look to look; only an answer slower than it makes the poll due at once."""
    record = Record(Source(0, 2.0))
    prompt = decide(record, Outcome(Answer.CHANGED, 10.0), PRICE, 10.0, np.random.default_rng(4))
    slow = decide(record, Outcome(Answer.CHANGED, 10.0), PRICE, 10.7, np.random.default_rng(4))
    late = decide(record, Outcome(Answer.CHANGED, 10.0), PRICE, 15.0, np.random.default_rng(4))
    assert slow.due == prompt.due
    assert late.due == 15.0
    assert late.last_poll == 10.0


def test_failures_double_the_interval_up_to_a_cap() -> None:
    record = Record(Source(0, 2.0), last_poll=5.0)
    rng = np.random.default_rng(2)
    for failures in range(1, 10):
        record = decide(record, Outcome(Answer.FAILED, 10.0), PRICE, 10.0, rng)
        factor = 2.0 ** min(failures, MOST_DOUBLINGS) * INTERVAL
        assert record.failures == failures
        assert record.last_poll == 5.0, "a failure teaches nothing"
        assert (1 - FAILURE_SPREAD) * factor <= record.due - 10.0 <= (1 + FAILURE_SPREAD) * factor
    back = decide(record, Outcome(Answer.UNCHANGED, 70.0), PRICE, 70.0, rng)
    assert (back.failures, back.last_poll) == (0, 70.0)
    assert back.due - 70.0 <= 1.05 * INTERVAL


def test_sources_that_failed_together_come_back_apart() -> None:
    waits = (drawn(Record(Source(0, 2.0)), Outcome(Answer.FAILED, 0.0), 0.0)) / INTERVAL
    assert 1.0 <= waits.min() < 1.01 < 2.99 < waits.max() <= 3.0


@pytest.mark.parametrize("answer", list(Answer))
def test_bounds_are_promises(answer: Answer) -> None:
    source = Source(0, 2.0, shortest=0.84, longest=0.86)
    waits = drawn(Record(source), Outcome(answer, 100.0), 100.0) - 100.0
    assert waits.min() == pytest.approx(0.84, abs=1e-3)
    assert waits.min() >= 0.84 - 1e-12
    assert waits.max() == pytest.approx(0.86, rel=1e-12)


def test_an_abandoned_source_is_never_due() -> None:
    after = decide(Record(Source(0, 2.0)), Outcome(Answer.CHANGED, 1.0), 0.5, 1.0, np.random.default_rng(1))
    assert (after.interval, after.due) == (math.inf, math.inf)
    assert admit(Record(Source(0, 2.0)), 0.5, now=1.0, phase=0.3).due == math.inf


def test_the_surcharge_counts_like_the_price() -> None:
    dear = decide(Record(Source(0, 2.0)), Outcome(Answer.CHANGED, 0.0), 0.1, 0.0, np.random.default_rng(1), 0.15)
    assert dear.interval == pytest.approx(INTERVAL, rel=1e-11)


def test_admission_spreads_the_first_polls() -> None:
    """A thousand equal sources: in every tenth of the interval a tenth of them, to within two."""
    spread = phases(np.ones(1000))
    due = [admit(Record(Source(i, 2.0)), PRICE, 50.0, p).due for i, p in enumerate(spread.tolist())]
    counts, _ = np.histogram(np.array(due) - 50.0, bins=10, range=(0.0, INTERVAL))
    assert counts.sum() == 1000
    assert np.abs(counts - 100).max() <= 2


def test_a_restart_keeps_what_is_not_overdue() -> None:
    known = Record(Source(0, 2.0), last_poll=49.5)
    assert admit(known, PRICE, 50.0, 0.9).due == pytest.approx(49.5 + INTERVAL, rel=1e-12)
    overdue = Record(Source(0, 2.0), last_poll=10.0)
    assert admit(overdue, PRICE, 50.0, 0.5).due == pytest.approx(50.0 + INTERVAL / 2, rel=1e-12)


def test_a_new_price_scales_what_is_left_of_the_wait() -> None:
    """By hand: 3/4 of the old interval is left, so 3/4 of the new one is."""
    waiting = admit(Record(Source(0, 2.0)), PRICE, 50.0, 0.75)
    dear = reprice(waiting, 0.4, 50.0)
    assert dear.interval == pytest.approx(float(PoissonFreshness([2.0]).interval(np.array([0.4]))[0]), rel=1e-12)
    assert dear.due == pytest.approx(50.0 + 0.75 * dear.interval, rel=1e-12)
    again = reprice(dear, PRICE, 50.0)
    assert again.due == pytest.approx(waiting.due, rel=1e-13)


def test_a_new_price_of_a_source_never_polled() -> None:
    waiting = admit(Record(Source(0, 2.0, longest=8.0)), 9.0, 100.0, 0.5)
    assert reprice(waiting, PRICE, 100.0).due == pytest.approx(100.0 + INTERVAL / 2, rel=1e-12)


def test_a_new_price_keeps_the_bounds() -> None:
    source = Source(0, 2.0, shortest=0.5, longest=0.9)
    waiting = decide(Record(source), Outcome(Answer.CHANGED, 10.0), PRICE, 10.0, np.random.default_rng(1))
    for price in (1e-9, 0.1, 0.3, 2.0):
        for now in np.linspace(10.0, waiting.due, 9).tolist():
            due = reprice(waiting, price, now).due
            assert 10.5 - 1e-9 <= due <= max(10.9, now) + 1e-9
            assert due >= now


def test_taken_back_and_abandoned_again() -> None:
    gone = decide(Record(Source(1, 2.0)), Outcome(Answer.CHANGED, 10.0), 0.5, 10.0, np.random.default_rng(1))
    back = reprice(gone, PRICE, 50.0)
    # source 1 has phase 0.618…
    assert back.due == pytest.approx(50.0 + 0.6180339887498949 * INTERVAL, rel=1e-11)
    assert reprice(back, 0.5, 50.0).due == math.inf


def test_a_falling_price_makes_no_burst() -> None:
    """Due times spread evenly over what is left of the old interval are so over what is left of the new one."""
    n = 2000
    records = [admit(Record(Source(i, 2.0)), PRICE, 0.0, p) for i, p in enumerate(phases(np.ones(n)).tolist())]
    cheap = [reprice(r, 0.05, 0.2) for r in records if r.due > 0.2]
    due = np.array([r.due for r in cheap])
    new = cheap[0].interval
    counts, _ = np.histogram(due, bins=5, range=(0.2, 0.2 + new * (1 - 0.2 / INTERVAL)))
    assert counts.sum() == len(cheap)
    assert np.abs(counts - len(cheap) / 5).max() <= 3


def test_a_replaced_source_is_asked_again_by_reprice() -> None:
    waiting = decide(Record(Source(0, 2.0)), Outcome(Answer.CHANGED, 10.0), PRICE, 10.0, np.random.default_rng(1))
    heavier = reprice(replace(waiting, source=Source(0, 2.0, weight=2.0)), PRICE, 10.0)
    after = decide(heavier, Outcome(Answer.CHANGED, 11.0), PRICE, 11.0, np.random.default_rng(1))
    halved = float(PoissonFreshness([2.0]).interval(np.array([PRICE / 2]))[0])
    assert after.interval == heavier.interval == pytest.approx(halved, rel=1e-12)
    dearer = decide(heavier, Outcome(Answer.CHANGED, 11.0), 2 * PRICE, 11.0, np.random.default_rng(1))
    assert dearer.interval == pytest.approx(INTERVAL, rel=1e-11)


def test_records_do_not_change_in_place() -> None:
    record = Record(Source(0, 2.0))
    with pytest.raises(AttributeError):
        record.due = 3.0  # type: ignore[misc]
    with pytest.raises(AttributeError):
        record.source.weight = 3.0  # type: ignore[misc]
