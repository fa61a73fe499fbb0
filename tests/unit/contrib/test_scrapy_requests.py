"""What the Scrapy mixin hands over, and how it reads what comes back; a whole spider runs in tests/integration."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("scrapy")

from scrapy.http import Response
from scrapy.utils.httpobj import urlparse_cached

from unstale.adapters.http_meaning import fetched
from unstale.contrib.scrapy import KeptFresh, ScrapyExchange, _reply
from unstale.keeper.outcomes import Answer
from unstale.ports import Request

ADDRESS = "https://example.org/a?b=c"


def handed(request: Request) -> Any:
    async def ask() -> Any:
        spider = KeptFresh()
        spider._line = asyncio.Queue()
        spider.ask(request, ScrapyExchange(0.0))
        return spider._line.get_nowait()

    return asyncio.run(ask())


def test_validators_and_bounds_go_along_and_scrapy_repeats_nothing_by_itself() -> None:
    asked = handed(Request(ADDRESS, '"7"', "Wed, 01 May 2024 10:00:00 GMT", limit=1234, seconds=5.0))
    assert (asked.url, asked.dont_filter) == (ADDRESS, True)
    assert asked.headers[b"If-None-Match"] == b'"7"'
    assert asked.headers[b"If-Modified-Since"] == b"Wed, 01 May 2024 10:00:00 GMT"
    meta = asked.meta
    assert (meta["download_timeout"], meta["download_maxsize"]) == (5.0, 1234)
    # A retry would be a poll that nobody paid for.
    assert meta["dont_retry"] is True
    assert {304, 404, 429, 503} <= set(meta["handle_httpstatus_list"])
    assert not {301, 302, 308} & set(meta["handle_httpstatus_list"]), "redirects are followed"


def test_what_is_ours_to_send_follows_no_redirect() -> None:
    asked = handed(Request(ADDRESS, headers={"X-Key": "secret"}))
    assert asked.headers[b"X-Key"] == b"secret"
    assert asked.meta["dont_redirect"] is True
    assert {301, 302, 303, 307, 308} <= set(asked.meta["handle_httpstatus_list"])


@pytest.mark.parametrize(
    ("status", "answer"),
    [(200, Answer.CHANGED), (304, Answer.UNCHANGED), (404, Answer.FAILED), (302, Answer.FAILED), (503, Answer.FAILED)],
)
def test_answers_are_read_as_our_own_fetcher_reads_them(status: int, answer: Answer) -> None:
    headers = {"ETag": '"8"', "Content-Type": "text/plain", "Retry-After": "120"}
    response = Response(ADDRESS, status=status, headers=headers, body=b"text" if status == 200 else b"")
    got = fetched(Request(ADDRESS, '"7"'), _reply(response), 100.0)
    assert got.answer is answer
    assert got.body == (b"text" if status == 200 else None)
    assert got.etag == (None if answer is Answer.FAILED else '"8"')
    assert got.retry_after == (120.0 if status in (302, 503) else None)
    assert got.polled_at == 100.0
    assert urlparse_cached(response).hostname not in got.reason or answer is Answer.FAILED


def test_a_failure_tells_the_host_and_the_kind_and_nothing_secret() -> None:
    async def fail() -> str:
        exchange = ScrapyExchange(0.0)
        request = SimpleNamespace(meta={"exchange": exchange}, url="https://example.org/a?token=secret")
        KeptFresh()._failed(SimpleNamespace(request=request, value=TimeoutError("at https://u:secret@example.org")))
        return (await exchange.reply).reason

    assert asyncio.run(fail()) == "example.org: Scrapy had no answer (TimeoutError)"
