"""The proxy as an ASGI application: hosts, loops, bounds, and what it tells the fleet."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import pytest

from support.cache_suite import Said, Script, said
from unstale.errors import InputError
from unstale.server.proxy.app import Proxy
from unstale.server.proxy.fields import Fields


class Told:
    """A fleet that only listens."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}

    def wanted(self, requests: Mapping[str, int], seconds: float) -> None:
        for address, count in requests.items():
            self.counts[address] = self.counts.get(address, 0) + count


async def ask(
    proxy: Proxy, path: str, method: str = "GET", body: bytes = b"", **headers: str
) -> tuple[int, Fields, bytes]:
    """One request through the ASGI interface; a body that is never finished leaves `more_body` open."""
    lines = [(name.replace("_", "-").encode(), value.encode()) for name, value in ({"host": "here"} | headers).items()]
    raw, _, query = path.partition("?")
    scope = {
        "type": "http",
        "method": method,
        "path": raw,
        "raw_path": raw.encode("latin-1"),
        "http_version": "1.1",
        "query_string": query.encode(),
        "headers": lines,
    }
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    await proxy(scope, receive, send)
    fields = Fields(tuple((name.decode(), value.decode()) for name, value in sent[0]["headers"]))
    return sent[0]["status"], fields, b"".join(message["body"] for message in sent[1:])


def fronting(*answers: Said | OSError, **options: Any) -> tuple[Script, Proxy]:
    script = Script(list(answers))
    origins = options.pop("origins", {"here": "http://origin.example", "there:81": "https://origin.example:444/"})
    return script, Proxy(script, origins, now=lambda: script.now, name="edge", **options)


def test_hosts_lead_to_their_origins_and_others_nowhere() -> None:
    script, proxy = fronting(said(), said())

    async def scene() -> list[int]:
        statuses = [(await ask(proxy, "/a?b=1"))[0], (await ask(proxy, "/a", host="THERE:81"))[0]]
        return [*statuses, (await ask(proxy, "/a", host="origin.example"))[0]]

    assert asyncio.run(scene()) == [200, 200, 421]
    assert [address for _, address, _ in script.asked] == [
        "http://origin.example/a?b=1",
        "https://origin.example:444/a",
    ]


def test_what_is_added_on_the_way() -> None:
    script, proxy = fronting(said(200, b"body", cache_control="max-age=60", via="1.0 old", cache_status="far; hit"))

    async def scene() -> tuple[Fields, Fields]:
        first = await ask(proxy, "/a", via="1.1 client", connection="x", x="1", te="gzip")
        return first[1], (await ask(proxy, "/a"))[1]

    first, second = asyncio.run(scene())
    assert script.asked[0][2].lines == (("via", "1.1 client, 1.1 edge"),)
    assert first.joined("via") == "1.0 old, 1.1 edge"
    assert first.joined("cache-status") == "far; hit, edge; fwd=uri-miss; fwd-status=200; stored"
    assert second.joined("cache-status") == "far; hit, edge; hit; ttl=60"
    assert "age" not in first
    assert second.first("age") == "0"


@pytest.mark.parametrize(
    ("status", "detail", "request_"),
    [
        (508, "came back", {"via": "1.1 a, 1.1 edge"}),
        (501, "TRACE is not supported", {"method": "TRACE"}),
        (413, "at most 100 bytes", {"method": "PUT", "body": bytes(101)}),
        (413, "at most 100 bytes", {"method": "PUT", "content_length": "101"}),
        (504, "nothing is stored", {"cache_control": "only-if-cached"}),
        (502, "origin.example: gone", {}),
        (400, "begin with a slash", {"path": "@evil.example/"}),
        (400, "begin with a slash", {"path": "*", "method": "OPTIONS"}),
    ],
)
def test_refusals_are_one_sentence(status: int, detail: str, request_: dict[str, Any]) -> None:
    _, proxy = fronting(ConnectionError("origin.example: gone"), upload=100)
    got, fields, body = asyncio.run(ask(proxy, request_.pop("path", "/a"), **request_))
    assert (got, fields.first("content-type")) == (status, "application/problem+json")
    assert detail in json.loads(body)["detail"]


def test_waiting_in_vain_and_odd_statuses() -> None:
    _, proxy = fronting(TimeoutError("origin.example: no answer"), said(999))

    async def scene() -> list[int]:
        return [(await ask(proxy, "/a"))[0], (await ask(proxy, "/a"))[0]]

    assert asyncio.run(scene()) == [504, 502]


def test_bytes_beyond_ascii_stay_the_bytes_they_are() -> None:
    script, proxy = fronting(said())
    asyncio.run(ask(proxy, "/\xe4"))
    assert script.asked[0][1] == "http://origin.example/%E4"


def test_a_body_that_breaks_off_is_not_ended() -> None:
    broken = Said(200, [("content-length", "200000")], bytes(200_000), breaks_after=100_000)
    _, proxy = fronting(broken)
    status, fields, body = asyncio.run(ask(proxy, "/a"))
    assert (status, fields.first("content-length"), len(body)) == (200, "200000", 131_072)
    assert broken.closed


def test_a_head_has_no_body() -> None:
    _, proxy = fronting(said(200, b"body", cache_control="max-age=60", content_length="4"))

    async def scene() -> tuple[str | None, bytes]:
        await ask(proxy, "/a")
        _, fields, body = await ask(proxy, "/a", "HEAD")
        return fields.first("content-length"), body

    assert asyncio.run(scene()) == ("4", b"")


def test_the_fleet_hears_of_what_is_held_and_only_of_that() -> None:
    told = Told()
    kept = [said(200, b"body", cache_control="max-age=60") for _ in range(2)]
    _, proxy = fronting(*kept, said(200, b"secret", cache_control="private"), fleet=told, telling=0.01)

    async def scene() -> None:
        for path in ("/a", "/b", "/c", "/a", "/a"):
            await ask(proxy, path)
        await asyncio.sleep(0.1)
        await proxy.close()

    asyncio.run(scene())
    assert told.counts == {"http://origin.example/a": 3, "http://origin.example/b": 1}


@pytest.mark.parametrize(
    "options",
    [
        {"origins": {}},
        {"origins": {"*": "ftp://a"}},
        {"origins": {"*": "http://a/b"}},
        {"origins": {"*": "http://u@a"}},
    ],
)
def test_origins_are_checked(options: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="origin"):
        fronting(**options)
    with pytest.raises(InputError, match="name"):
        Proxy(Script([]), {"*": "http://a"}, name="my proxy")
