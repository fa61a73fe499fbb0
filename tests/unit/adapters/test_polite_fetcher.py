"""Asking the site before polling it."""

from __future__ import annotations

import asyncio

import pytest

from unstale.adapters.memory_fetcher import MemoryFetcher
from unstale.adapters.polite_fetcher import PoliteFetcher
from unstale.adapters.robots import Robots
from unstale.adapters.transfer import TransferReply
from unstale.keeper.outcomes import Answer
from unstale.ports import Fetched, Request

ADDRESS = "http://a.example/news"


def polled(rules: str, *, status: int = 200, delay: float = 0.0) -> Fetched:
    async def look(request: Request) -> TransferReply:
        await asyncio.sleep(delay)
        return TransferReply(status=status, body=rules.encode(), address=request.address)

    async def poll() -> Fetched:
        inner = MemoryFetcher()
        inner.put(ADDRESS, b"news")
        return await PoliteFetcher(inner, Robots(look)).fetch(Request(ADDRESS, seconds=0.5))

    return asyncio.run(poll())


def test_what_is_allowed_is_polled_and_the_pause_is_passed_on() -> None:
    fetched = polled("User-agent: *\nCrawl-delay: 7\nDisallow: /private")
    assert (fetched.answer, fetched.body, fetched.spacing) == (Answer.CHANGED, b"news", 7.0)


def test_what_is_not_allowed_is_a_failure_with_its_reason_and_never_an_unchanged() -> None:
    fetched = polled("User-agent: *\nDisallow: /")
    assert fetched.answer is Answer.FAILED
    assert "robots.txt does not allow" in fetched.reason


@pytest.mark.parametrize(("status", "answer"), [(404, Answer.CHANGED), (500, Answer.FAILED)])
def test_no_such_file_allows_all_and_a_site_in_trouble_is_left_alone(status: int, answer: Answer) -> None:
    fetched = polled("", status=status)
    assert fetched.answer is answer
    assert (fetched.retry_after is not None) == (answer is Answer.FAILED)


def test_the_question_counts_towards_the_deadline() -> None:
    fetched = polled("", delay=5.0)
    assert fetched.answer is Answer.FAILED
    assert "within 0.5 s" in fetched.reason


@pytest.mark.parametrize(
    ("status", "rules", "said"),
    [
        (200, "User-agent: *\nDisallow: /news", "robots.txt does not allow"),
        (200, "User-agent: *\nDisallow: /old", ""),
        (500, "", ""),
    ],
)
def test_what_is_known_to_be_forbidden_for_good_is_told_without_asking(status: int, rules: str, said: str) -> None:
    async def look(request: Request) -> TransferReply:
        return TransferReply(status=status, body=rules.encode(), address=request.address)

    async def asked() -> tuple[str, str]:
        fetcher = PoliteFetcher(MemoryFetcher(), Robots(look))
        before = fetcher.forbids(ADDRESS)
        await fetcher.fetch(Request(ADDRESS))
        return before, fetcher.forbids(ADDRESS)

    before, after = asyncio.run(asked())
    assert before == ""
    assert said in after
    assert bool(after) == bool(said)
