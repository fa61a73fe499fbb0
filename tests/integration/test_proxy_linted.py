"""What the proxy answers, read by a linter that others wrote: kept and passed on, whole and in part, refused."""

from __future__ import annotations

import asyncio
import http.client
import time

import pytest

from support.loopback import Loopback, answer
from unstale.adapters.addresses import Gate
from unstale.adapters.http_upstream import HttpUpstream
from unstale.server.dates import as_date
from unstale.server.proxy.app import Proxy
from unstale.server.proxy.wire import serve

ASKED = (
    ("GET", "/kept", {}),
    ("GET", "/kept", {}),
    ("HEAD", "/kept", {}),
    ("GET", "/kept", {"Range": "bytes=3-9"}),
    ("GET", "/kept", {"If-None-Match": '"a"'}),
    ("GET", "/never", {}),
    ("GET", "/missing", {}),
    ("GET", "/unkept", {"Cache-Control": "only-if-cached"}),
)


def answered(port: int) -> list[tuple[int, str, list[tuple[str, str]], bytes]]:
    """The answers to all of these, one connection each."""
    found = []
    for method, path, headers in ASKED:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request(method, path, headers=headers)
        got = connection.getresponse()
        found.append((got.status, got.reason, got.getheaders(), got.read()))
        connection.close()
    return found


def test_the_linter_finds_nothing_bad_in_what_the_proxy_says() -> None:
    linter = pytest.importorskip("httplint", reason="httplint is not installed")
    text, date = b"a text of some length", as_date(time.time())
    speeches = {
        "/kept": answer(text, cache_control="max-age=3600", etag='"a"', content_type="text/plain", date=date),
        "/never": answer(text, cache_control="no-store", content_type="text/plain", date=date),
        "/missing": answer(b"no", "404 Not Found", content_type="text/plain", date=date),
    }

    async def main() -> list[tuple[int, str, list[tuple[str, str]], bytes]]:
        async with Loopback(speeches) as origin:
            proxy = Proxy(HttpUpstream(Gate(["127.0.0.0/8"])), {"*": origin.origin})
            stop, port = asyncio.Event(), asyncio.get_running_loop().create_future()
            serving = asyncio.create_task(serve(proxy, "127.0.0.1", 0, stop=stop, ready=port.set_result))
            try:
                return await asyncio.to_thread(answered, await port)
            finally:
                stop.set()
                await serving
                await proxy.close()

    found = asyncio.run(main())
    assert [status for status, *_ in found] == [200, 200, 200, 206, 304, 200, 404, 504]
    for (method, path, _), (status, reason, headers, body) in zip(ASKED, found, strict=True):
        lint = linter.HttpResponseLinter(start_time=time.time())
        lint.process_response_topline(b"HTTP/1.1", str(status).encode(), reason.encode())
        lint.process_headers([(name.encode(), value.encode()) for name, value in headers])
        if method == "GET":
            lint.feed_content(body)
            lint.finish_content(True, [])
        bad = {type(note).__name__ for note in lint.notes if note.level.name == "BAD"}
        assert not bad, (method, path, status, bad)
