"""An answer out of a cache shows the source as it was, and says until when there is nothing newer."""

from __future__ import annotations

import asyncio
from email.utils import formatdate

import pytest

from support.loopback import Loopback, answer
from unstale.adapters.addresses import Gate
from unstale.adapters.http_fetcher import HttpFetcher
from unstale.keeper.outcomes import Answer
from unstale.ports import Fetched, Request

NOW = 1_763_236_800.5


def polled(said: bytes, **request: object) -> Fetched:
    async def play() -> Fetched:
        fetcher = HttpFetcher(Gate(["127.0.0.1/32"]), now=lambda: NOW)
        async with Loopback({"/": said}) as server:
            got = await fetcher.fetch(Request(f"{server.origin}/", **request))  # type: ignore[arg-type]
        await fetcher.close()
        return got

    return asyncio.run(play())


def at(seconds: float) -> str:
    return formatdate(NOW + seconds, usegmt=True)


@pytest.mark.parametrize(
    ("headers", "age"),
    [
        ({"age": "3600"}, 3600.0),
        ({"age": "3600", "date": at(0.0)}, 3600.0),
        ({"age": "60", "date": at(-3600.5)}, 3600.5),
        ({"age": "3600", "date": at(-3600.5)}, 3600.5),
        ({"age": "10, 99"}, 10.0),
        ({"age": "0"}, 0.0),
        ({"age": "old"}, 0.0),
        ({"date": at(-3600.0)}, 0.0),
    ],
)
def test_as_of_is_before_the_poll_by_what_caches_say(headers: dict[str, str], age: float) -> None:
    assert polled(answer(b"a", **headers)).polled_at == pytest.approx(NOW - age, abs=1e-3)


def test_an_unchanged_answer_is_dated_too() -> None:
    got = polled(b"HTTP/1.1 304 Not Modified\r\nage: 30\r\n\r\n", etag='"7"', since=NOW - 100.0)
    assert (got.answer, got.polled_at) == (Answer.UNCHANGED, NOW - 30.0)


@pytest.mark.parametrize(
    ("control", "early", "wait"),
    [
        ("max-age=300", False, 240.0),
        ("max-age=10, s-maxage=300", False, 240.0),
        ("max-age=50", False, 6.0),
        ("max-age=300", True, 6.0),
        ("max-age=99999999", False, 86_400.0),
        ("private", False, 6.0),
    ],
)
def test_no_poll_before_a_cache_has_something_new(control: str, early: bool, wait: float) -> None:
    got = polled(answer(b"a", age="60", cache_control=control), options={"early": early})
    assert got.not_before == NOW + wait


def test_a_source_without_a_cache_may_be_polled_at_any_time() -> None:
    assert polled(answer(b"a", cache_control="max-age=300")).not_before == -float("inf")


def test_what_the_source_asks_for_counts_from_now() -> None:
    got = polled(answer(b"a", age="60", ratelimit_remaining="0", ratelimit_reset="30"))
    assert (got.retry_after, got.not_before) == (30.0, NOW + 30.0)


def test_an_older_answer_than_ours_brings_nothing() -> None:
    got = polled(answer(b"old", age="60", etag='"6"'), etag='"7"', since=NOW - 10.0)
    assert (got.answer, got.body, got.etag, got.polled_at) == (Answer.UNCHANGED, None, '"7"', NOW - 10.0)
    assert got.not_before == NOW + 6.0


def test_an_age_that_cannot_be_is_told() -> None:
    got = polled(answer(b"new", age="31536000"), since=NOW - 10.0)
    assert got.answer is Answer.FAILED
    assert got.reason == "127.0.0.1: its answer is 31535990 s older than our copy, by the Age that a cache says"


def test_a_change_after_what_the_answer_shows_is_none() -> None:
    assert polled(answer(b"a", age="60", last_modified=at(-30.0))).changed_at == ()
    assert polled(answer(b"a", age="60", last_modified=at(-90.5))).changed_at == (NOW - 90.5,)
