"""The way into the dashboard: files for all, sessions turned into the token, browsers led astray refused."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.asgi import Got, asked
from support.booked import TOKEN, Booked
from unstale.server.app import replica
from unstale.server.dashboard.door import Door
from unstale.server.dashboard.files import table
from unstale.server.sessions import Role, Sessions

ADDRESS = "https://a.example/0"
READER = "only for looking"
OURS = {"host": "a.example", "origin": "https://a.example", "sec_fetch_site": "same-origin"}
PLAIN = {"host": "127.0.0.1:8600", "origin": "http://127.0.0.1:8600"}


@pytest.fixture
def booked(tmp_path: Path) -> Iterator[Booked]:
    booked = Booked(tmp_path / "b.db", closed=True)
    booked.poll(b"a")
    yield booked
    booked.close()


def door_of(booked: Booked, home: Role | None = None) -> Door:
    return Door(booked.app, Sessions(TOKEN, {"reader": READER}, clock=time.time), TOKEN, home=home)


def login(door: Door, secret: str, **headers: str) -> Got:
    return asked(door, "/dashboard/login", "POST", [json.dumps({"secret": secret}).encode()], **{**OURS, **headers})


def inside(door: Door, secret: str) -> dict[str, str]:
    """The headers of a browser that has logged in."""
    got = login(door, secret)
    assert got.status == 200
    cookie = got.fields["set-cookie"].partition(";")[0]
    word = json.loads(asked(door, "/dashboard/session", cookie=cookie).body)["word"]
    return {**OURS, "cookie": cookie, "x_unstale_word": word}


def test_strangers_get_the_files_and_nothing_else(booked: Booked) -> None:
    door = door_of(booked)
    for path in table():
        got = asked(door, path)
        assert got.status == 200, path
        assert got.fields["x-content-type-options"] == "nosniff"
    for path in (
        "/copies/1",
        "/api/v1/status",
        "/api/v1/sources",
        "/metrics",
        "/api/v1/events",
        "/api/v1/openapi.json",
        "/dashboard/table",
        "/dashboard/log",
        "/dashboard/../api/v1/status",
        "//",
        "/dashboard/app.js/",
    ):
        assert asked(door, path).status == 401, path
    session = json.loads(asked(door, "/dashboard/session").body)
    assert session == {"role": None, "word": "", "logged_in": False, "login": True, "kept": "", "icons": False}


def test_nothing_inline_and_nothing_from_elsewhere_may_run(booked: Booked) -> None:
    policy = asked(door_of(booked), "/").fields["content-security-policy"]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert (rules["default-src"], rules["script-src"], rules["style-src"]) == ("'none'", "'self'", "'self'")
    assert rules["object-src"] == rules["frame-ancestors"] == rules["base-uri"] == rules["form-action"] == "'none'"
    shell = table()["/"].body.decode()
    assert " style=" not in shell
    assert "onclick" not in shell
    assert "http" not in shell.replace("http-equiv", ""), "offline: no address of anybody else"
    for path, file in table().items():
        for sink in (b"innerHTML", b"outerHTML", b"insertAdjacentHTML", b"document.write", b"eval("):
            assert sink not in file.body, path


def test_files_are_not_sent_twice(booked: Booked) -> None:
    door = door_of(booked)
    first = asked(door, "/dashboard/app.js")
    again = asked(door, "/dashboard/app.js", if_none_match=first.fields["etag"])
    assert (again.status, again.body) == (304, b"")
    assert asked(door, "/dashboard/app.js", "HEAD").body == b""


def test_logging_in_sets_a_cookie_that_scripts_and_other_sites_never_see(booked: Booked) -> None:
    door = door_of(booked)
    cookie = login(door, TOKEN).fields["set-cookie"]
    name, *flags = [part.strip() for part in cookie.split(";")]
    assert name.startswith("__Host-unstale=")
    assert {"HttpOnly", "SameSite=Strict", "Secure", "Path=/"} <= set(flags)
    assert not any(flag.startswith("Domain") for flag in flags)
    plain = asked(door, "/dashboard/login", "POST", [json.dumps({"secret": TOKEN}).encode()], **PLAIN)
    assert plain.fields["set-cookie"].startswith("unstale=")
    assert "Secure" not in plain.fields["set-cookie"]


def test_a_reader_reads_and_an_operator_writes(booked: Booked) -> None:
    door = door_of(booked)
    reader, operator = inside(door, READER), inside(door, TOKEN)
    for who in (reader, operator):
        assert asked(door, "/api/v1/status", **who).status == 200
        assert asked(door, "/copies/1", **who).status == 200
    assert asked(door, "/api/v1/sources/1/hint", "POST", **reader).status == 403
    assert asked(door, "/api/v1/sources/1/websub", **reader).status == 403
    assert asked(door, "/api/v1/sources/1/hint", "POST", **operator).status == 202
    assert asked(door, "/api/v1/sources/1/websub", **operator).status == 200


@pytest.mark.parametrize(
    "changed",
    [
        {"x_unstale_word": ""},
        {"x_unstale_word": "guessed"},
        {"sec_fetch_site": "cross-site"},
        {"sec_fetch_site": "same-site"},
        {"sec_fetch_site": "none"},
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "https://a.example.evil.example"},
        {"host": "b.example"},
    ],
)
def test_another_site_cannot_write_with_our_cookie(booked: Booked, changed: dict[str, str]) -> None:
    door = door_of(booked)
    who = inside(door, TOKEN)
    assert asked(door, "/api/v1/sources/1/hint", "POST", **who).status == 202
    assert asked(door, "/api/v1/sources/1/hint", "POST", **{**who, **changed}).status == 403


def test_one_session_s_word_is_not_another_s(booked: Booked) -> None:
    door = door_of(booked)
    one, two = inside(door, TOKEN), inside(door, TOKEN)
    mixed = {**one, "x_unstale_word": two["x_unstale_word"]}
    assert asked(door, "/api/v1/sources/1/hint", "POST", **mixed).status == 403


def test_login_and_logout_come_from_our_own_pages_only(booked: Booked) -> None:
    door = door_of(booked)
    assert login(door, TOKEN, sec_fetch_site="cross-site").status == 403
    assert login(door, TOKEN, origin="https://evil.example").status == 403
    assert asked(door, "/dashboard/login", "POST", [b'{"secret": "x"}'], host="a.example").status == 403
    who = inside(door, TOKEN)
    assert asked(door, "/dashboard/logout", "POST", **{**who, "sec_fetch_site": "cross-site"}).status == 403
    assert asked(door, "/api/v1/status", **who).status == 200


def test_after_logging_out_the_cookie_opens_nothing(booked: Booked) -> None:
    door, sent = door_of(booked), []
    who = inside(door, TOKEN)

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    # By hand: both names of the cookie are taken back, in two fields of one name.
    headers = [(name.replace("_", "-").encode(), value.encode()) for name, value in who.items()]
    scope = {"type": "http", "method": "POST", "path": "/dashboard/logout", "headers": headers, "query_string": b""}
    asyncio.run(door(scope, receive, send))
    assert sent[0]["status"] == 200
    cookies = [value.partition(b";")[0] for name, value in sent[0]["headers"] if name == b"set-cookie"]
    assert cookies == [b"unstale=", b"__Host-unstale="]
    assert asked(door, "/api/v1/status", **who).status == 401


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"secret": 7}', b"{" * 3000, b"a" * 5000, b"\xff"])
def test_what_is_no_login_is_refused_in_one_sentence(booked: Booked, body: bytes) -> None:
    got = asked(door_of(booked), "/dashboard/login", "POST", [body], **OURS)
    assert got.status in (400, 401)
    assert json.loads(got.body)["detail"]


def test_who_is_asked_is_told_how_to_answer(booked: Booked) -> None:
    """401 asks who it is, 403 knows and refuses, 405 is for everybody."""
    door = door_of(booked, home="reader")
    challenge = 'Bearer realm="unstale"'
    for method, path in (("POST", "/api/v1/sources/1/hint"), ("GET", "/api/v1/sources/1/websub")):
        for how in ({}, PLAIN):
            got = asked(door, path, method, **how)
            assert (got.status, got.fields.get("www-authenticate")) == (401, challenge), (path, how)
    assert login(door, "wrong").fields["www-authenticate"] == challenge
    reader = inside(door, READER)
    assert asked(door, "/api/v1/sources/1/hint", "POST", **reader).status == 403
    for who in ({}, PLAIN, reader):
        got = asked(door, "/api/v1/status", "DELETE", **who)
        assert (got.status, set(got.fields["allow"].split(", "))) == (405, {"GET", "HEAD"})


def test_guessing_is_slowed_down(booked: Booked) -> None:
    door = Door(booked.app, Sessions(TOKEN, clock=time.time), TOKEN)
    assert [login(door, f"guess {i}").status for i in range(11)] == [401] * 10 + [429]
    assert 1 <= int(login(door, TOKEN).fields["retry-after"]) <= 61


def test_at_home_the_page_writes_without_a_login_and_a_program_does_not(booked: Booked) -> None:
    door = door_of(booked, home="operator")
    word = json.loads(asked(door, "/dashboard/session").body)["word"]
    path = "/api/v1/sources/1/hint"
    assert asked(door, path, "POST", **PLAIN, x_unstale_word=word).status == 202
    assert asked(door, path, "POST").status == 401, "a program needs the token"
    assert asked(door, path, "POST", authorization=f"Bearer {TOKEN}").status == 202
    assert asked(door, path, "POST", authorization="Bearer wrong", **PLAIN, x_unstale_word=word).status == 401
    assert (
        asked(door, path, "POST", host="127.0.0.1:8600", origin="http://evil.example", x_unstale_word=word).status
        == 403
    )


def test_a_browser_that_was_misled_by_a_name_gets_nowhere_at_home(booked: Booked) -> None:
    app = replica(booked.shelf, clock=booked.clock, token=TOKEN, service=booked.service, names=["127.0.0.1"])
    door = Door(app, Sessions(None, clock=time.time), TOKEN, home="operator")
    word = json.loads(asked(door, "/dashboard/session", host="127.0.0.1:8600").body)["word"]
    misled = {"host": "evil.example", "origin": "http://evil.example", "x_unstale_word": word}
    assert asked(door, "/api/v1/sources/1/hint", "POST", **misled).status == 421
    assert asked(door, "/api/v1/sources", **misled).status == 421
    for path, method in (("/", "GET"), ("/dashboard/session", "GET"), ("/dashboard/login", "POST")):
        assert asked(door, path, method, **misled).status == 421


def test_copies_say_themselves_that_they_are_only_read(booked: Booked) -> None:
    app = replica(booked.shelf, clock=booked.clock, token=TOKEN)
    homes: list[Role | None] = ["reader", "operator", None]
    for home in homes:
        got = asked(Door(app, Sessions(None, clock=time.time), TOKEN, home=home), "/copies/1", "POST")
        assert (got.status, got.fields["allow"]) == (405, "GET, HEAD")


@pytest.mark.parametrize(
    "cookie", ["", "unstale", "unstale=", "=;=;", 'unstale="\\', "a" * 9000, "unstale=x; unstale=y"]
)
def test_odd_cookies_are_nobody(booked: Booked, cookie: str) -> None:
    assert asked(door_of(booked), "/api/v1/status", cookie=cookie).status == 401


def test_several_people_are_known_by_their_passwords_and_can_be_sent_away(booked: Booked) -> None:
    people: dict[str, tuple[Role, str]] = {"anna": ("operator", "anna's password"), "ben": ("reader", "ben's password")}
    door = Door(booked.app, Sessions(TOKEN, clock=time.time, people=people), TOKEN, note=booked.service.note)
    anna, ben = inside(door, "anna's password"), inside(door, "ben's password")
    assert asked(door, "/dashboard/people", **ben).status == 403
    body = [b'{"options": {"title": "New"}}']
    assert asked(door, "/api/v1/sources/1", "PATCH", body, content_type="application/json", **anna).status == 200
    assert asked(door, "/api/v1/sources/1", "PATCH", body, content_type="application/json", **ben).status == 403
    bearer = {"authorization": f"Bearer {TOKEN}", "host": "a.example", "content_type": "application/json"}
    assert asked(door, "/api/v1/sources/1/hint", "POST", **bearer).status == 202
    told = json.loads(asked(door, "/dashboard/people", **anna).body)
    assert [(one["name"], one["role"], one["own"]) for one in told["sessions"]] == [
        ("ben", "reader", False),
        ("anna", "operator", True),
    ]
    assert asked(door, "/api/v1/sources/1", "DELETE", **bearer).status == 204
    done = json.loads(asked(door, "/api/v1/audit", **anna).body)["edits"]
    assert [(one["number"], one["who"], one["what"]) for one in done] == [
        (2, "token", f"removed {ADDRESS}"),
        (1, "anna", f"changed title of {ADDRESS}"),
    ], "what was refused was not done, and a hint changes nothing"
    assert asked(door, "/api/v1/audit", **ben).status == 403
    assert asked(door, "/api/v1/audit", host="a.example").status == 401
    assert "New" not in json.dumps(done), "what was sent may be secret"
    mark = json.dumps({"mark": told["sessions"][0]["mark"]}).encode()
    assert asked(door, "/dashboard/people/end", "POST", [mark], **ben).status == 403
    without = {name: value for name, value in anna.items() if name != "x_unstale_word"}
    assert asked(door, "/dashboard/people/end", "POST", [mark], **without).status == 403
    assert json.loads(asked(door, "/dashboard/people/end", "POST", [mark], **anna).body) == {"ended": True}
    assert json.loads(asked(door, "/dashboard/people/end", "POST", [mark], **anna).body) == {"ended": False}
    assert asked(door, "/dashboard/table", **ben).status == 401, "who was sent away is a stranger"
    for wrong in (b"", b"[]", b"{}", b'{"mark": ""}', b'{"mark": 3}'):
        assert asked(door, "/dashboard/people/end", "POST", [wrong], **anna).status in (200, 400)
    assert asked(door, "/dashboard/people", **anna).status == 200
    (newest,) = json.loads(asked(door, "/api/v1/audit?limit=1", **anna).body)["edits"]
    assert (newest["who"], newest["what"]) == ("anna", f"ended login {told['sessions'][0]['mark']}")
