"""Workers that share a budget spend all of it: what runs over in one bucket is another's, and no more than there is."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unstale.engine.budget import Bucket, spare_of
from unstale.keeper.shares import KEPT, Account, settled, spare_in
from unstale.ports import CrewMember

RATE, TICK = 20.0, 0.05


class Member:
    """A worker with a bucket, polls that wait, and what it has told last."""

    def __init__(self, share: float) -> None:
        self.bucket = Bucket(share, max(share, 2.0), 0.0)
        self.waiting, self.credited, self.credit, self.settled = 0, 0.0, 0.0, 0.0
        self.told = (0.0, 0.0, 0.0, 0.0, 0.0)

    def beat(self, now: float) -> None:
        """Tell, then hear."""
        level = self.bucket.level(now)
        self.told = (now, level, level + self.bucket.spent - self.credited, float(self.waiting), self.credited)
        self.bucket.credit(self.credit - self.credited)
        self.credited = self.credit

    def poll(self, now: float) -> int:
        """Begin what waits as far as it can be paid."""
        polls = min(int(self.bucket.level(now) + 1e-9), self.waiting)
        self.bucket.spend(polls)
        self.waiting -= polls
        return polls

    def account(self, now: float) -> Account:
        at, level, total, waiting, credited = self.told
        share, burst = self.bucket.rate, self.bucket.burst
        return Account(share, now - at, total, self.settled, level, burst, waiting, self.credit - credited)


def lived(workers: int, *, busy: float, seconds: int, purse: bool = True, seed: int = 1) -> np.ndarray:
    """When polls were made: they fall due by chance, as many as a plan asked for three seconds ago.

    On a machine that is `busy` each worker gets no processor for two seconds in that share of its seconds.
    """
    rng, members = np.random.default_rng(seed), [Member(RATE / workers) for _ in range(workers)]
    beats, asleep = rng.uniform(0.0, 1.0, workers), np.zeros(workers)
    asked, left, made = [RATE] * 3, 0.0, []
    for tick in range(round(seconds / TICK)):
        now = tick * TICK
        if tick % round(1.0 / TICK) == 0:
            accounts = [one.account(now) for one in members]
            left, credits = settled(left, RATE if tick else 0.0, accounts)
            for one, more, account in zip(members, credits, accounts, strict=True):
                one.credit, one.settled = one.credit + more * purse, account.total
            crew = [
                CrewMember("", one.bucket.rate, account.level + account.credit + more, one.bucket.burst, {})
                for one, account, more in zip(members, accounts, credits, strict=True)
            ]
            spare = spare_of(crew, spare_in(left, accounts) if purse else 0.0, 1.0)
            spare -= sum(one.waiting for one in members)
            asked = [*asked[1:], max(3.0 * RATE + spare - sum(asked[1:]), 0.0)]
            asleep = np.where(rng.random(workers) < 0.5 * busy, now + 2.0, asleep)
        for place, one in enumerate(members):
            one.waiting += rng.poisson(asked[0] / workers * TICK)
            if now >= asleep[place]:
                if now >= beats[place]:
                    one.beat(now)
                    beats[place] = now + 1.0
                made += [now] * one.poll(now)
    return np.array(made)


@pytest.mark.parametrize("workers", [1, 2, 4, 8, 32])
def test_many_workers_spend_the_budget_as_one_does(workers: int) -> None:
    made = lived(workers, busy=0.0, seconds=400)
    assert len(made) == pytest.approx(RATE * 400, rel=0.01)
    # What falls due by chance is all that single stretches differ by: one worker's do as much.
    paces = 1000 / (made[1000:] - made[:-1000])
    assert paces.min() > 0.96 * RATE
    assert paces.max() < 1.04 * RATE


@pytest.mark.parametrize("workers", [1, 2, 4, 8, 32])
def test_who_gets_no_processor_for_seconds_makes_up_for_it(workers: int) -> None:
    assert 0.96 * RATE * 400 <= len(lived(workers, busy=0.2, seconds=400)) <= RATE * 400 + RATE


def test_without_a_purse_what_runs_over_is_lost() -> None:
    # The reason for all this: of eight buckets one runs over while another one is empty.
    assert len(lived(8, busy=0.0, seconds=200, purse=False)) < 0.92 * RATE * 200


accounts = st.lists(
    st.builds(
        Account,
        share=st.floats(0, 5),
        since=st.floats(0, 5),
        total=st.floats(0, 50),
        settled=st.floats(0, 50),
        level=st.floats(-5, 5),
        burst=st.floats(0.5, 5),
        waiting=st.floats(0, 20),
        credit=st.floats(0, 3),
    ),
    min_size=1,
    max_size=8,
)


@given(st.floats(-20, 20), st.floats(0, 50), accounts)
def test_nothing_is_credited_that_is_not_there(left: float, came: float, all_told: list[Account]) -> None:
    after, credits = settled(left, came, all_told)
    before = left + came - sum(one.total - one.settled for one in all_told)
    bursts = sum(one.burst for one in all_told)
    # A debt beyond all buckets is forgotten, as a surplus beyond them is.
    assert after + sum(credits) <= max(before, sum(one.under_way for one in all_told) - bursts) + 1e-9
    assert all(more >= 0.0 for more in credits)
    for one, more in zip(all_told, credits, strict=True):
        assert more == 0.0 or one.holds + more <= min(one.burst, one.waiting) + 1e-9
    assert spare_in(after, all_told) <= KEPT * bursts - sum(min(one.holds, 0.0) for one in all_told) + 1e-9
    if sum(credits):
        assert spare_in(after, all_told) >= -1e-9
