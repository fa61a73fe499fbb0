"""What may be forgotten when clocks jump: nothing that would not be old without the jump."""

from __future__ import annotations

from pathlib import Path

import pytest

from unstale.adapters.sqlite_store import SqliteStore
from unstale.keeper.outcomes import Answer
from unstale.ports import Entry, Listing, Price

DAY, YEAR = 86400.0, 365.25 * 86400.0
HORIZON, START = 90 * DAY, 1_700_000_000.0


class Run:
    """A store that one engine writes to, with both clocks in the test's hands."""

    def __init__(self, path: Path) -> None:
        self.path, self.steady, self.jump = path, 0.0, 0.0
        self.open()
        (self.source,) = self.store.add([Listing("memory:1", kind="memory")], START)

    def open(self) -> None:
        self.store = SqliteStore(self.path, horizon=HORIZON, steady=lambda: self.steady)

    def poll(self) -> None:
        now = START + self.steady + self.jump
        self.store.set_due([self.source], [now])
        (claim,) = self.store.claim(now, 1, lease=60.0, owner="me")
        entry = Entry(claim, Answer.UNCHANGED, now, now + 1.0, b"", None, 0, "", None)
        self.store.record([entry], price=Price(now, 1.0, 1.0))

    def days(self, count: int) -> None:
        for _ in range(count):
            self.steady += DAY
            self.poll()

    def kept(self) -> int:
        return len(self.store.observations(self.source, 10**6))


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path / "unstale.db")


def test_without_jumps_the_horizon_is_kept(run: Run) -> None:
    run.days(300)
    assert run.kept() == pytest.approx(91, abs=2)
    assert len(run.store.prices(0.0)) == pytest.approx(91, abs=2)


@pytest.mark.parametrize("jump", [10 * YEAR, -10 * YEAR, 100 * DAY])
def test_a_jump_and_back_drops_nothing_that_is_not_old(run: Run, jump: float) -> None:
    run.days(60)
    for _ in range(20):
        run.jump = jump
        run.days(1)
        run.jump = 0.0
        run.days(1)
    assert run.kept() >= 90
    # Prices are kept by their time: those that are dated rightly stay.
    assert len([price for price in run.store.prices(START) if price.at < START + YEAR]) >= 70
    # Later it forgets as ever, and does not grow without end.
    run.days(300)
    assert run.kept() <= 130


def test_what_is_dated_years_back_is_kept_as_long_as_the_rest(run: Run) -> None:
    run.days(1)
    run.jump = -10 * YEAR
    run.days(5)
    run.jump = 0.0
    run.days(5)
    run.store.close()
    run.open()
    run.days(60)
    assert run.kept() == 71
    run.days(300)
    assert run.kept() == pytest.approx(91, abs=5)


def test_time_in_which_nothing_ran_makes_nothing_old(run: Run) -> None:
    run.days(60)
    run.store.close()
    run.steady += 200 * DAY
    run.open()
    run.days(10)
    assert run.kept() == 70
    run.days(200)
    assert run.kept() == pytest.approx(91, abs=2)
