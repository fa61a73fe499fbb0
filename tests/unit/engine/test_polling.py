"""Polls under way: exactly one outcome each, awaited or not; how many there are at once; how they are ended."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from support.patience import BUSY, SOON
from unstale.engine.clock import SystemClock
from unstale.engine.host_limits import HostLimits
from unstale.engine.outcomes import PollOutcome
from unstale.engine.polling import LARGE, Begin, PollsUnderWay
from unstale.engine.window import FEW
from unstale.errors import TooLateError
from unstale.keeper.outcomes import Answer
from unstale.ports import CallOff, Claim, Ended, Fetched


class Polled:
    """Polls with everything around them written down; looks end when the test says so."""

    def __init__(self, most: int = 1000, begin: Begin | None = None) -> None:
        self.flying: dict[int, Ended] = {}
        self.called_off: list[int] = []
        self.outcomes: list[PollOutcome] = []
        self.told: list[str] = []
        self.looked: list[int] = []
        self.unbegun: list[int] = []
        self.polls = PollsUnderWay(
            most,
            self._look,
            lambda claim: None,
            HostLimits(),
            SystemClock(),
            lambda name, facts: self.told.append(name),
            ended=lambda outcome, host: self.outcomes.append(outcome),
            begin=begin or self._begin,
            unbegun=lambda claim, host: self.unbegun.append(claim.token),
        )

    def _begin(self, claim: Claim, ended: Ended) -> CallOff | None:
        self.flying[claim.token] = ended
        return lambda: self.called_off.append(claim.token)

    async def _look(self, claim: Claim) -> Fetched:
        self.looked.append(claim.token)
        return Fetched(Answer.UNCHANGED, 5.0)

    def end(self, token: int, found: Fetched | Exception) -> None:
        self.flying.pop(token)(found)

    def start(self, *tokens: int) -> None:
        for token in tokens:
            assert self.polls.host_limits.begin("")
            self.polls.start(Claim(token, token, f"memory:{token}", "memory", 0.0), "")

    async def until(self, true: Callable[[], bool]) -> None:
        async with asyncio.timeout(SOON):
            while not true():
                await asyncio.sleep(0.001)


def played(scene: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(scene(), SOON))  # type: ignore[arg-type]


def test_what_was_too_late_to_ask_has_no_outcome_and_makes_room() -> None:
    async def scene() -> None:
        held = Polled(most=1)
        held.start(1, 2)
        held.end(1, TooLateError("over"))
        assert (held.unbegun, held.outcomes, list(held.polls.under_way)) == ([1], [], [2])

        async def late(claim: Claim) -> Fetched:
            raise TooLateError("over")

        held.polls._look = late
        held.polls._begin = lambda claim, ended: None
        held.end(2, Fetched(Answer.UNCHANGED, 7.0))
        held.start(3)
        await held.until(lambda: held.unbegun == [1, 3])
        assert (len(held.outcomes), held.told, held.polls.under_way) == (1, [], {})

    played(scene)


def test_a_look_that_is_not_awaited_ends_as_one_outcome_at_once() -> None:
    async def scene() -> None:
        held = Polled()
        held.start(1, 2)
        assert len(held.polls.under_way) == 2
        found = Fetched(Answer.UNCHANGED, 7.0)
        late = held.flying[1]
        held.end(1, found)
        late(found)
        assert [(o.claim.token, o.answer, o.fetched) for o in held.outcomes] == [(1, Answer.UNCHANGED, found)]
        assert [claim.token for claim in held.polls.held()] == [2]
        assert held.polls.host_limits.host("").active == 1
        assert held.looked == []

    played(scene)


@pytest.mark.parametrize("size", [3, LARGE + 1])
def test_what_it_brought_is_compared_whether_that_is_quick_or_not(size: int) -> None:
    async def scene() -> None:
        held = Polled()
        held.start(1)
        held.end(1, Fetched(Answer.CHANGED, 7.0, b"a" * size, "text/plain"))
        await held.until(lambda: bool(held.outcomes))
        (outcome,) = held.outcomes
        assert outcome.answer is Answer.CHANGED
        assert outcome.body is not None
        assert len(outcome.body.data) == size
        assert not held.polls.under_way

    played(scene)


def test_a_look_that_has_to_be_awaited_is() -> None:
    async def scene() -> None:
        held = Polled(begin=lambda claim, ended: None)
        held.start(1)
        await held.until(lambda: bool(held.outcomes))
        assert held.looked == [1]
        assert not held.polls.under_way

    played(scene)


def test_a_fault_of_ours_fails_one_poll_and_looks_like_no_answer() -> None:
    def broken(claim: Claim, ended: Ended) -> CallOff | None:
        raise RuntimeError("ours")

    async def scene() -> None:
        for held in (Polled(), Polled(begin=broken)):
            held.start(1)
            if held.flying:
                held.end(1, RuntimeError("ours"))
            await held.until(lambda held=held: bool(held.outcomes))
            (outcome,) = held.outcomes
            assert outcome.answer is outcome.fetched.answer is Answer.FAILED
            assert "report it" in outcome.fetched.reason
            assert held.told == ["fault"]
            assert not held.polls.under_way
            assert held.polls.host_limits.host("").active == 0

    played(scene)


def test_who_does_not_end_within_the_grace_is_called_off_and_given_back() -> None:
    async def scene() -> None:
        held = Polled(most=2)
        held.start(1, 2, 3)
        late = held.flying[2]
        left = await held.polls.finish(0.01)
        assert [claim.token for claim in left] == [3, 1, 2]
        assert held.called_off == [1, 2]
        late(Fetched(Answer.UNCHANGED, 7.0))
        assert held.outcomes == []
        assert held.polls.held() == []

    played(scene)


def test_what_ends_within_the_grace_has_its_outcome() -> None:
    async def scene() -> None:
        held = Polled()
        held.start(1, 2)
        finishing = asyncio.create_task(held.polls.finish(BUSY))
        await asyncio.sleep(0)
        for token in (1, 2):
            held.end(token, Fetched(Answer.UNCHANGED, 7.0))
        assert await finishing == []
        assert len(held.outcomes) == 2

    played(scene)


def test_more_polls_at_once_while_they_are_slow_and_few_while_they_are_quick() -> None:
    async def scene() -> None:
        held = Polled(most=5 * FEW)
        held.start(*range(1, 40 * FEW))
        assert len(held.polls.under_way) == FEW
        for _ in range(5):
            # Nothing has ended: it is the network that is waited for.
            await held.polls.rest(0.0)
        assert len(held.polls.under_way) == 5 * FEW

        def end(many: int) -> None:
            for _ in range(many):
                held.end(next(iter(held.flying)), Fetched(Answer.UNCHANGED, 7.0))

        end(20 * FEW + 1)
        assert len(held.polls.under_way) == 5 * FEW
        await held.polls.rest(0.0)
        end(3 * FEW)
        assert len(held.polls.under_way) == 5 * FEW // 2

    played(scene)
