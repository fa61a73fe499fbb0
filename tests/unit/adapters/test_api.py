"""Resources of APIs on loopback: pages, changes since, ETags, who asks, rate limits, and tables that are typed."""

from __future__ import annotations

import asyncio
import base64
import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from support.loopback import Loopback, answer
from unstale.adapters.addresses import Gate
from unstale.adapters.api_auth import ApiAuth
from unstale.adapters.api_fetcher import ApiFetcher
from unstale.adapters.api_terms import ApiTerms
from unstale.adapters.http_fetcher import HttpFetcher
from unstale.keeper.outcomes import Answer
from unstale.ports import Fetched, RateLimit, Request

GATE = Gate(["127.0.0.1/32"])


class Api(Loopback):
    """An API that answers by a function of path, parameters and headers."""

    def __init__(self, told: Any) -> None:
        super().__init__({})
        self._told = told

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
                headers = {n.lower(): v for n, v in (line.split(": ", 1) for line in head[1:] if ": " in line)}
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                method, target, _ = head[0].split(" ")
                parts = urlsplit(target)
                query = {name: values[0] for name, values in parse_qs(parts.query).items()}
                self.asked.append({"": f"{method} {target}", **headers, "body": body.decode()})
                writer.write(self._told(parts.path, query, headers))
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()


def said(thing: Any, **headers: str) -> bytes:
    return answer(json.dumps(thing).encode(), content_type="application/json", **headers)


async def poll(
    api: Api, target: Path, path: str = "/orders", etag: str | None = None, now: float = 1e9, **options: Any
) -> Fetched:
    terms = options.pop("terms", ())
    fetcher = ApiFetcher(HttpFetcher(GATE), ApiAuth(GATE, now=lambda: now), target, terms, now=lambda: now)
    try:
        return await fetcher.fetch(Request(f"{api.origin}{path}", etag, options=options))
    finally:
        await fetcher.close()


def rows(target: Path, query: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(target)) as db:
        return db.execute(query).fetchall()


ORDERS = [{"id": i, "amount": i + 0.25, "tags": ["a"], "paid": i % 2 == 0, "note": None} for i in range(1, 8)]


def paged(path: str, query: Mapping[str, str], headers: Mapping[str, str]) -> bytes:
    begin = int(query.get("offset", query.get("after", 0)))
    few = ORDERS[begin : begin + 3]
    more = str(begin + 3) if begin + 3 < len(ORDERS) else None
    if path == "/linked":
        link = {"link": f'</linked?after={more}>; rel="next", </linked>; rel="first"'} if more else {}
        return said(few, **link)
    return said({"data": {"items": few}, "meta": {"next": more}})


@pytest.mark.parametrize(
    ("path", "options"),
    [
        ("/linked", {}),
        ("/cursor", {"records": "$.data.items", "next": "$.meta.next", "cursor": "after"}),
        ("/offset", {"records": "data.items[*]", "paging": "offset", "batch": 3}),
    ],
)
def test_all_pages_become_one_typed_table(tmp_path: Path, path: str, options: dict[str, Any]) -> None:
    target = tmp_path / "tables.db"

    async def body() -> tuple[Fetched, Fetched]:
        async with Api(paged) as api:
            first = await poll(api, target, path, key="id", **options)
            return first, await poll(api, target, path, first.etag, key="id", **options)

    first, again = asyncio.run(body())
    assert (first.answer, first.reason, first.calls, first.requests) == (Answer.CHANGED, "", 3, 3)
    assert json.loads(first.body or b"")["types"] == ["BIGINT", "DECIMAL", "TEXT", "BOOLEAN", "TEXT"]
    assert again.answer is Answer.UNCHANGED
    found = rows(target, f"SELECT max(amount), count(*), sum(paid), min(tags) FROM {path[1:]}")
    assert found == [(7.25, 7, 3, '["a"]')]


def test_only_what_changed_since_is_asked_for_and_the_rest_stays(tmp_path: Path) -> None:
    target, known = tmp_path / "tables.db", {i: {"id": i, "at": f"2026-01-0{i}T00:00:00Z", "n": i} for i in range(1, 8)}

    def told(path: str, query: Mapping[str, str], headers: Mapping[str, str]) -> bytes:
        since = query.get("updated_since", "")
        return said({"items": [one for one in known.values() if one["at"] >= since]})

    options = {"key": "id", "since": "updated_since", "changed": "at", "overlap": 60}

    async def body() -> list[Fetched]:
        async with Api(told) as api:
            found = [await poll(api, target, **options)]
            known[2] = {"id": 2, "at": "2026-01-08T00:00:00Z", "n": 20}
            known.pop(1)
            found.append(await poll(api, target, etag=found[0].etag, now=1e9 + 60, **options))
            assert "updated_since=2026-01-06T23%3A59%3A00Z" in api.asked[-1][""]
            found.append(await poll(api, target, etag=found[1].etag, now=1e9 + 90_000, **options))
            return found

    _, changed, swept = asyncio.run(body())
    assert changed.answer is Answer.CHANGED
    account = json.loads(changed.body or b"")
    assert (account["changed"], account["inserted"], account["deleted"], account["probe"]) == (1, 0, 0, "since")
    # After a day everything is read again, and what is gone is found.
    assert json.loads(swept.body or b"")["deleted"] == 1
    assert rows(target, "SELECT id, n FROM orders ORDER BY 1")[:2] == [(2, 20), (3, 3)]


def test_an_etag_saves_the_body_only_while_the_table_is_what_it_was(tmp_path: Path) -> None:
    def told(path: str, query: Mapping[str, str], headers: Mapping[str, str]) -> bytes:
        if headers.get("if-none-match") == '"v1"':
            return answer(status="304 Not Modified", etag='"v1"')
        return said([{"id": 1}], etag='"v1"')

    async def body() -> tuple[Fetched, Fetched, Fetched]:
        async with Api(told) as api:
            first = await poll(api, tmp_path / "a.db", key="id")
            same = await poll(api, tmp_path / "a.db", etag=first.etag, key="id")
            (tmp_path / "a.db").unlink()
            return first, same, await poll(api, tmp_path / "a.db", etag=first.etag, key="id")

    first, same, lost = asyncio.run(body())
    assert (first.answer, same.answer, same.status) == (Answer.CHANGED, Answer.UNCHANGED, 304)
    # The target was lost: nothing is believed of it, and all of it is there again.
    assert (lost.answer, lost.status) == (Answer.UNCHANGED, 200)
    assert rows(tmp_path / "a.db", "SELECT * FROM orders") == [(1,)]


def test_who_asks_is_told_by_the_environment_and_a_token_is_asked_for_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("ID", "me"), ("KEY", "s3cret"), ("TOKEN", "t0ken")):
        monkeypatch.setenv(name, value)
    basic = "Basic " + base64.b64encode(b"me:s3cret").decode()

    def told(path: str, query: Mapping[str, str], headers: Mapping[str, str]) -> bytes:
        if path == "/token":
            good = headers["authorization"] == basic
            return said({"access_token": "given", "expires_in": 3600}) if good else answer(status="401 Unauthorized")
        wanted = {"/bearer": "Bearer t0ken", "/basic": basic, "/oauth": "Bearer given"}[path]
        return said([{"id": 1}]) if headers.get("authorization") == wanted else answer(status="401 Unauthorized")

    async def body() -> list[Fetched]:
        async with Api(told) as api:
            terms = [
                ApiTerms(f"{api.origin}/bearer", token="$TOKEN"),
                ApiTerms(f"{api.origin}/basic", username="$ID", password="$KEY"),
                ApiTerms(
                    f"{api.origin}/oauth", token_address=f"{api.origin}/token", client="$ID", client_secret="$KEY"
                ),
            ]
            found = [
                await poll(api, tmp_path / "a.db", path, key="id", terms=terms)
                for path in ("/bearer", "/basic", "/oauth")
            ]
            found.append(await poll(api, tmp_path / "a.db", "/bearer", key="id"))
            tokens = [one for one in api.asked if one[""].startswith("POST")]
            assert [one["body"] for one in tokens] == ["grant_type=client_credentials"]
            return found

    *good, nobody = asyncio.run(body())
    assert [one.answer for one in good] == [Answer.CHANGED] * 3, good
    assert (nobody.answer, nobody.status) == (Answer.FAILED, 401)


@pytest.mark.parametrize(
    ("told", "options", "reason"),
    [
        (answer(b"<p>", content_type="text/html"), {}, "its answer is no JSON"),
        (said({"data": 3}), {"records": "data"}, "records 'data' are no list of objects"),
        (said([{"id": None}]), {"key": "id"}, "key 'id' is missing in a record"),
        (said([{"id": 1}], link="<http://127.0.0.2/x>; rel=next"), {}, "its next page is at another origin"),
        (said([{"id": 1}], link="</orders>; rel=next"), {}, "its next page is one that was read already"),
        (said([{"id": 1}]), {"types": {"idd": "text"}}, "types 'idd' names no field"),
        (answer(status="403 Forbidden"), {}, "it answered 403"),
        (answer(b'[{"id": NaN}]'), {}, "its answer is no JSON"),
        (answer(b"[" + b"{}," * 1_000_000 + b"{}]"), {}, "its pages have more than 1,000,000 values"),
        (said([{"id": 1}]), {"paging": "cursor"}, "paging 'cursor' needs next, the path to it"),
    ],
)
def test_what_cannot_be_read_is_one_sentence_and_leaves_the_copy(
    tmp_path: Path, told: bytes, options: dict[str, Any], reason: str
) -> None:
    async def body() -> Fetched:
        async with Api(lambda *_: told) as api:
            return await poll(api, tmp_path / "a.db", **options)

    found = asyncio.run(body())
    assert found.answer is Answer.FAILED
    assert reason in found.reason


def test_what_an_api_says_of_its_rate_limit_is_handed_on(tmp_path: Path) -> None:
    headers = {"ratelimit": '"hour";r=1600;t=1800', "ratelimit_policy": '"hour";q=5000;w=3600'}

    async def body() -> Fetched:
        async with Api(lambda *_: said([{"id": 1}], **headers)) as api:
            return await poll(api, tmp_path / "a.db")

    assert asyncio.run(body()).rate_limit == RateLimit(1600.0, 1800.0, 5000.0)
