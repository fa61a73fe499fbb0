"""Health, status, hints, tokens, and where a server may listen."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest
from click.testing import CliRunner
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from support.asgi import START, Kept, asked
from support.booked import TOKEN, Booked
from support.patience import SOON
from unstale.cli.listening import address
from unstale.cli.serve import serve
from unstale.errors import InputError, StoreError
from unstale.server.app import replica
from unstale.server.auth import LARGEST_BODY, LARGEST_LIST, OWN_NAMES, check_binding
from unstale.server.heads import Heads
from unstale.server.serving import serve as serve_app


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Kept]:
    kept = Kept(tmp_path / "s.db")
    yield kept
    kept.close()


@pytest.fixture
def booked(tmp_path: Path) -> Iterator[Booked]:
    booked = Booked(tmp_path / "b.db")
    yield booked
    booked.close()


def test_health_and_readiness(kept: Kept) -> None:
    app = replica(kept.shelf, clock=kept.clock)
    assert json.loads(asked(app, "/healthz").body) == {"status": "ok"}
    assert asked(app, "/readyz").status == 200
    assert asked(app, "/readyz?max_age=1h").status == 503, "nothing has answered yet"
    kept.poll(b"a")
    kept.now += 60
    assert json.loads(asked(app, "/readyz?max_age=1min").body) == {"status": "ok", "heard": START}
    kept.poll(failed=True)
    kept.now += 1
    late = asked(app, "/readyz?max_age=60")
    assert late.status == 503
    assert "has answered for 61 s, max_age allows 60 s" in json.loads(late.body)["detail"]
    assert asked(app, "/readyz?max_age=soon").status == 400


def test_a_source_tells_two_times(booked: Booked) -> None:
    booked.poll(b"a")
    booked.now += 60
    booked.poll()
    about = booked.get("sources/1")
    assert (about["checked_at"], about["changed_at"]) == ("2025-11-15T20:01:00.000000Z", "2025-11-15T20:00:00.000000Z")
    assert (about["version"], about["copy"]["size"], about["fresh"]) == (1, 1, 1.0), "it answered this very moment"
    assert about["copy"]["sha256"] == sha256(b"a").hexdigest()
    assert asked(booked.app, "/api/v1/sources/2").status == 404


def test_a_source_without_a_copy(booked: Booked) -> None:
    about = booked.get("sources/1")
    assert (about["checked_at"], about["changed_at"], about["copy"]) == (None, None, None)
    assert (about["version"], about["fresh"], about["age"]) == (0, 0.0, None)


def test_a_hint_needs_a_token(booked: Booked) -> None:
    booked.poll(b"a", wait=1e9)
    path = "/api/v1/sources/1/hint"
    for authorization in ("", "Bearer", "Bearer wrong", f"Basic {TOKEN}", f"Bearer {TOKEN}x", TOKEN):
        refused = asked(booked.app, path, "POST", authorization=authorization)
        assert refused.status == 401
        assert refused.fields["www-authenticate"].startswith("Bearer")
    assert asked(booked.app, path, "POST", authorization=f"Bearer {TOKEN}").status == 202
    head = Heads(booked.shelf).of(1)
    assert head is not None
    assert head.due == booked.now
    open_to_all = replica(booked.shelf, clock=booked.clock, service=booked.service)
    assert asked(open_to_all, path, "POST", authorization="Bearer ").status == 401
    assert asked(booked.app, path).status == 405


def test_from_other_machines_reading_needs_the_token_too(booked: Booked) -> None:
    booked.poll(b"a")
    app = replica(booked.shelf, clock=booked.clock, service=booked.service, token=TOKEN, closed=True)
    for path in ("/copies/1", "/copy?source=https://a.example/0", "/api/v1/status", "/metrics", "/api/v1/openapi.json"):
        assert asked(app, path).status == 401
    assert asked(app, "/copies/1", authorization=f"Bearer {TOKEN}").status == 200
    assert asked(app, "/healthz").status == asked(app, "/readyz").status == 200


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost:8600", 200),
        ("127.0.0.1", 200),
        ("[::1]:8600", 200),
        ("LOCALHOST", 200),
        ("me.example:1", 200),
        ("evil.example", 421),
        ("localhost.evil.example", 421),
        ("", 421),
        ("127.0.0.1:x", 421),
    ],
)
def test_a_browser_that_was_misled_is_sent_away(booked: Booked, host: str, status: int) -> None:
    booked.poll(b"a")
    app = replica(booked.shelf, clock=booked.clock, names=[*OWN_NAMES, "me.example"])
    assert asked(app, "/copies/1", host=host).status == asked(app, "/healthz", host=host).status == status


def test_large_bodies_are_refused_before_they_are_read(kept: Kept) -> None:
    read: list[int] = []

    async def upload(request: Request) -> Response:
        read.append(len(await request.body()))
        return PlainTextResponse("ok")

    app = replica(kept.shelf, clock=kept.clock, token=TOKEN, more=[Route("/upload", upload, methods=["POST"])])
    who = {"authorization": f"Bearer {TOKEN}"}
    assert asked(app, "/upload", "POST", [b"a" * 10], **who).status == 200
    assert read == [10]
    assert asked(app, "/upload", "POST", content_length=str(LARGEST_BODY + 1), **who).status == 413
    assert asked(app, "/upload", "POST", content_length="many", **who).status == 413
    assert asked(app, "/api/v1/sources", "POST", content_length=str(LARGEST_LIST + 1), **who).status == 413
    assert asked(app, "/api/v1/sources", "POST", content_length=str(LARGEST_LIST), **who).status == 404
    assert asked(app, "/upload", "POST", [b"a" * 2**19] * 100, **who).status == 413
    assert read == [10]


def test_errors_do_not_reflect(kept: Kept) -> None:
    app = replica(kept.shelf, clock=kept.clock)
    got = asked(app, "/<script>alert(1)</script>")
    assert got.status == 404
    assert b"script" not in got.body
    assert got.fields["content-type"] == "application/problem+json"


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "127.9.9.9"])
def test_this_machine_needs_no_token(host: str) -> None:
    check_binding(host, None)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.4"])
def test_others_need_one(host: str) -> None:
    check_binding(host, TOKEN)
    with pytest.raises(InputError, match="needs a token: set UNSTALE_TOKEN"):
        check_binding(host, None)
    with pytest.raises(InputError, match="UNSTALE_TOKEN of 5 characters must have 32 or more"):
        check_binding(host, "short")


@pytest.mark.parametrize("text", ["", "8600", "a:", ":8600", "a:b", "a:99999", "a:-1"])
def test_where_to_listen_must_be_clear(text: str) -> None:
    with pytest.raises(InputError, match="write it like"):
        address(text)


def test_the_command_refuses_in_one_sentence(tmp_path: Path) -> None:
    run = CliRunner().invoke
    missing = run(serve, ["--store", str(tmp_path / "none.db")])
    assert isinstance(missing.exception, StoreError)
    assert "does not exist" in str(missing.exception)
    kept = Kept(tmp_path / "s.db")
    kept.close()
    exposed = run(serve, ["--store", str(tmp_path / "s.db"), "--listen", "0.0.0.0:0"], env={"UNSTALE_TOKEN": ""})
    assert isinstance(exposed.exception, InputError)
    assert "needs a token" in str(exposed.exception)
    assert run(serve, ["--help"]).exit_code == 0


def test_a_server_in_this_loop_until_it_is_told_to_stop(kept: Kept) -> None:
    kept.poll(b"hello")

    async def play() -> list[bytes]:
        stop, port = asyncio.Event(), asyncio.get_running_loop().create_future()
        app = replica(kept.shelf, clock=kept.clock)
        running = asyncio.ensure_future(serve_app(app, "localhost", 0, token=None, stop=stop, ready=port.set_result))
        address = ("127.0.0.1", await port)
        with pytest.raises(InputError, match=r"cannot be used .address already in use.: choose another place"):
            await serve_app(app, *address, token=None, stop=stop)
        reader, writer = await asyncio.open_connection(*address)
        writer.write(b"GET /copies/1 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        said = (await reader.read()).split(b"\r\n")
        writer.close()
        stop.set()
        await asyncio.wait_for(running, SOON)
        return said

    said = asyncio.run(play())
    assert (said[0], said[-1]) == (b"HTTP/1.1 200 OK", b"hello")
    assert [line for line in said if line.startswith(b"date:")] == [b"date: Sat, 15 Nov 2025 20:00:00 GMT"]


@pytest.mark.parametrize("host", ["no.such.host.invalid", "a" * 300])
def test_an_unknown_host_is_one_sentence(kept: Kept, host: str) -> None:
    with pytest.raises(InputError, match="cannot be used"):
        asyncio.run(serve_app(None, host, 0, token=None, stop=asyncio.Event()))
