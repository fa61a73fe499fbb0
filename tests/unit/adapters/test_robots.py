"""robots.txt over a real connection, and the rules for sites that cannot be asked."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from support.loopback import Loopback, Speech, answer
from support.patience import SOON
from unstale.adapters.addresses import Gate
from unstale.adapters.http_fetcher import HttpFetcher
from unstale.adapters.robots import AGAIN, FRESH, LAST_GOOD, LIMIT, Robots

RULES = b"""User-agent: *
Disallow: /
User-agent: unstale
Crawl-delay: 2.5
Disallow: /private
Allow: /private/*.html$
"""


class Time:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def site(speech: Speech, scene: Callable[[Robots, Loopback, Time], Awaitable[None]], **options: int) -> None:
    async def play() -> None:
        clock = Time()
        fetcher = HttpFetcher(Gate(["127.0.0.1/32"]))
        async with Loopback({"/robots.txt": speech}) as server:
            await scene(Robots(fetcher.look, seconds=SOON, now=clock, **options), server, clock)
        await fetcher.close()

    asyncio.run(play())


def test_rules_are_ours_and_asked_once() -> None:
    async def scene(robots: Robots, server: Loopback, clock: Time) -> None:
        asked = [f"{server.origin}{path}" for path in ("/", "/private/a", "/private/a.html", "/private/a.html?x")]
        allowed = await asyncio.gather(*(robots.ask(address) for address in asked))
        assert [permission.allowed for permission in allowed] == [True, False, True, False]
        assert {permission.delay for permission in allowed} == {2.5}
        assert allowed[1].reason == "127.0.0.1: its robots.txt does not allow unstale to poll this source"
        assert allowed[1].retry_after is None
        clock.now += FRESH - 1
        await robots.ask(asked[0])
        assert len(server.asked) == 1
        clock.now += 1
        await robots.ask(asked[0])
        assert len(server.asked) == 2

    site(answer(RULES), scene)


@pytest.mark.parametrize("status", ["404 Not Found", "403 Forbidden", "410 Gone"])
def test_no_file_allows_everything(status: str) -> None:
    async def scene(robots: Robots, server: Loopback, clock: Time) -> None:
        permission = await robots.ask(f"{server.origin}/private")
        assert (permission.allowed, permission.delay) == (True, 0.0)

    site(answer(b"User-agent: *\nDisallow: /", status), scene)


@pytest.mark.parametrize("status", ["500 Internal Server Error", "503 Service Unavailable", "429 Too Many Requests"])
def test_a_site_in_trouble_is_left_alone_for_now(status: str) -> None:
    async def scene(robots: Robots, server: Loopback, clock: Time) -> None:
        permission = await robots.ask(f"{server.origin}/a")
        assert not permission.allowed
        assert permission.retry_after == AGAIN
        assert permission.reason == f"127.0.0.1: its robots.txt cannot be read now, it answered {status[:3]}"
        server.speeches["/robots.txt"] = answer(RULES)
        clock.now += AGAIN
        assert (await robots.ask(f"{server.origin}/a")).allowed

    site(answer(status=status), scene)


def test_the_last_good_rules_hold_for_a_month_of_trouble() -> None:
    async def scene(robots: Robots, server: Loopback, clock: Time) -> None:
        await robots.ask(f"{server.origin}/a")
        server.speeches["/robots.txt"] = answer(status="500 Oops")
        clock.now += FRESH
        assert (await robots.ask(f"{server.origin}/a")).allowed
        assert not (await robots.ask(f"{server.origin}/private")).allowed
        clock.now += LAST_GOOD
        assert (await robots.ask(f"{server.origin}/a")).retry_after == AGAIN

    site(answer(RULES), scene)


def test_a_refused_address_is_not_asked() -> None:
    async def scene(robots: Robots, server: Loopback, clock: Time) -> None:
        permission = await robots.ask("http://127.0.0.2:1/")
        assert not permission.allowed
        assert "its robots.txt cannot be read now, its address 127.0.0.2 is not public" in permission.reason

    site(b"", scene)


def test_a_file_without_end_counts_as_far_as_it_is_read() -> None:
    async def scene(robots: Robots, server: Loopback, clock: Time) -> None:
        assert not (await robots.ask(f"{server.origin}/private")).allowed
        assert not (await robots.ask(f"{server.origin}/late")).allowed, "cut within the limit"
        assert (await robots.ask(f"{server.origin}/too-late")).allowed

    start = RULES + b"Disallow: /late\n"
    site(answer(start + b"#" * (LIMIT - len(start)) + b"\nDisallow: /too-late\n"), scene)


def test_anything_at_all_is_a_file() -> None:
    async def scene(robots: Robots, server: Loopback, clock: Time) -> None:
        assert (await robots.ask(f"{server.origin}/a")).allowed

    site(answer(b"<html>\xff\xfe\x00 Crawl-delay: nan\nUser-agent\n:::\n"), scene)


def test_only_so_many_sites_are_remembered() -> None:
    async def scene(robots: Robots, server: Loopback, clock: Time) -> None:
        async with Loopback({}) as other:
            for origin in (server.origin, other.origin, server.origin):
                await robots.ask(f"{origin}/")
            assert (len(server.asked), len(other.asked)) == (2, 1)

    site(answer(RULES), scene, kept=1)
