"""The proxy with caches that others wrote between it and its clients, and with one between it and its origin.

Nothing waits: an answer that is good for long is asked for once at the origin, whoever keeps it; one that was as old on
arrival as it may become, or must not be kept, is asked for every time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
import requests

from support.loopback import Loopback, Speech, answer
from support.real_caches import nginx, python_caches, squid, tool, varnish
from unstale.adapters.addresses import Gate
from unstale.adapters.http_upstream import HttpUpstream
from unstale.server.proxy.app import Proxy
from unstale.server.proxy.wire import serve

FIELDS = {
    "/kept": {"cache_control": "max-age=3600"},
    "/old": {"cache_control": "max-age=3600", "age": "3600"},
    "/never": {"cache_control": "no-store"},
}
#: the others keep for another hour what is said to be an hour old
COUNT_AGE = ("varnishd", "squid")
FRONTS = {"nginx": nginx, "varnishd": varnish, "squid": squid}


def counting() -> dict[str, Speech]:
    """An origin whose answers are numbered."""
    asked = dict.fromkeys(FIELDS, 0)

    def speech(path: str) -> Speech:
        async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            asked[path] += 1
            writer.write(answer(b"version %d" % asked[path], content_type="text/plain", **FIELDS[path]))
            await writer.drain()

        return speak

    return {path: speech(path) for path in FIELDS}


def played(check: Callable[[str], None], behind: Callable[[str], object] | None = None) -> None:
    """Check the proxy's address from another thread; `behind` puts a cache between it and the origin."""

    async def play() -> None:
        stop, port = asyncio.Event(), asyncio.get_running_loop().create_future()
        async with Loopback(counting()) as origin:
            before = origin.origin if behind is None else str(await asyncio.to_thread(behind, origin.origin))
            proxy = Proxy(HttpUpstream(Gate(["127.0.0.0/8"])), {"*": before}, name="edge")
            serving = asyncio.create_task(serve(proxy, "127.0.0.1", 0, stop=stop, ready=port.set_result))
            try:
                await asyncio.to_thread(check, f"http://127.0.0.1:{await port}")
            finally:
                stop.set()
                await serving
                await proxy.close()

    asyncio.run(play())


@contextmanager
def started(name: str, folder: Path, origin: str) -> Iterator[tuple[requests.Session, str]]:
    """A client with that cache in front of an address: the session to ask with, and where."""
    with ExitStack() as opened:
        if name in FRONTS:
            tool(name)
            base = opened.enter_context(FRONTS[name](folder, origin))
            yield opened.enter_context(requests.Session()), base
            return
        caches = python_caches(folder)
        for cache in caches.values():
            opened.callback(cache.close)
        if name not in caches:
            pytest.skip(f"{name} is not installed")
        yield caches[name], origin


@pytest.mark.parametrize("name", [*FRONTS, "hishel", "requests-cache", "CacheControl"])
def test_a_cache_before_the_proxy(name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    def check(proxy: str) -> None:
        with started(name, tmp_path_factory.mktemp("c"), proxy) as (session, base), requests.Session() as plain:
            assert [session.get(base + "/kept", timeout=20).text for _ in range(3)] == ["version 1"] * 3
            assert plain.get(proxy + "/kept", timeout=20).text == "version 1"
            assert int(plain.get(proxy + "/old", timeout=20).headers["age"]) >= 3600
            for path in ("/never", "/old") if name in COUNT_AGE else ("/never",):
                seen = [session.get(base + path, timeout=20).text for _ in range(3)]
                assert len(set(seen)) == 3, path

    played(check)


@pytest.mark.parametrize("name", FRONTS)
def test_a_cache_behind_the_proxy(name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    tool(name)
    with ExitStack() as opened:

        def check(proxy: str) -> None:
            with requests.Session() as session:
                assert [session.get(proxy + "/kept", timeout=20).text for _ in range(3)] == ["version 1"] * 3
                seen = [session.get(proxy + "/never", timeout=20).text for _ in range(3)]
                assert seen == ["version 1", "version 2", "version 3"]

        played(check, lambda origin: opened.enter_context(FRONTS[name](tmp_path_factory.mktemp("c"), origin)))
