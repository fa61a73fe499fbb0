"""Logging in: who gets which role, how long it lasts, and who must wait."""

from __future__ import annotations

import asyncio

import pytest

from unstale.errors import InputError
from unstale.server import sessions
from unstale.server.sessions import ATTEMPTS, LASTING, Sessions, TooMany, hashed, matches

TOKEN, READER, OPERATOR = "0123456789abcdef" * 2, "only for looking", "for those who act"


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def door(clock: Clock) -> Sessions:
    return Sessions(TOKEN, {"reader": READER, "operator": OPERATOR}, clock=clock)


def enter(door: Sessions, secret: str, place: str = "192.0.2.1", before: str = "") -> tuple[str, sessions.Session]:
    entered = asyncio.run(door.login(secret, place, before))
    assert entered is not None
    return entered


def test_each_secret_has_its_role(door: Sessions) -> None:
    roles = [enter(door, secret)[1].role for secret in (TOKEN, READER, OPERATOR)]
    assert roles == ["operator", "reader", "operator"]
    for wrong in ("", TOKEN[:-1], TOKEN + "0", READER.upper(), "scrypt$", "\ud800"):
        assert asyncio.run(door.login(wrong, f"192.0.2.{len(wrong)}")) is None


def test_a_password_is_kept_as_argon2id_with_a_salt_of_its_own() -> None:
    one, two = hashed(READER), hashed(READER)
    assert one != two
    assert matches(READER, one)
    assert matches(READER, two)
    assert hashed(one) == one, "a digest may lie in the settings"
    assert one.startswith("$argon2id$")
    # Made by version 0.1, of this password.
    earlier = "scrypt$000102030405060708090a0b0c0d0e0f$e96ec6ba8c63a23698220f37c7fc042925d430c7feadec9ceb04af03cabb9f2f"
    assert hashed(earlier) == earlier
    assert matches("correct horse battery", earlier)
    assert not matches("correct horse batterie", earlier)


@pytest.mark.parametrize(
    "given",
    [
        "short",
        "scrypt$ab$cd",
        "$argon2id$v=19$m=1",
        "$argon2id$v=19$m=99999999,t=2,p=1$c29tZXNhbHQ$x",
        "scrypt$" + "g" * 32 + "$" + "0" * 64,
        "a" * 1001,
    ],
)
def test_what_cannot_be_a_password_is_refused(given: str) -> None:
    with pytest.raises(InputError, match="password"):
        hashed(given)


def test_a_login_ends_by_time_and_by_logging_out(door: Sessions, clock: Clock) -> None:
    key, session = enter(door, TOKEN)
    assert door.of(key) == session
    clock.now += LASTING - 1.0
    assert door.of(key) == session
    clock.now += 1.0
    assert door.of(key) is None
    key, _ = enter(door, TOKEN)
    door.logout(key)
    assert door.of(key) is None
    assert door.of("") is None


def test_a_key_that_was_there_before_is_never_taken_on(door: Sessions) -> None:
    planted, _ = enter(door, READER)
    key, session = enter(door, TOKEN, before=planted)
    assert key != planted
    assert door.of(planted) is None
    assert door.of(key) == session
    other, again = enter(door, TOKEN)
    assert len({planted, key, other}) == 3
    assert again.csrf != session.csrf


def test_eleven_wrong_secrets_in_a_minute_are_one_too_many(door: Sessions, clock: Clock) -> None:
    async def guess(place: str) -> object:
        return await door.login("wrong", place)

    for _ in range(ATTEMPTS):
        assert asyncio.run(guess("192.0.2.7")) is None
        clock.now += 1.0
    with pytest.raises(TooMany) as many:
        asyncio.run(guess("192.0.2.7"))
    assert many.value.wait == 50.0
    with pytest.raises(TooMany):
        asyncio.run(door.login(TOKEN, "192.0.2.7"))
    assert asyncio.run(guess("192.0.2.8")) is None, "others need not wait"
    clock.now += 51.0
    enter(door, TOKEN, "192.0.2.7")


def test_a_network_of_ipv6_is_one_place(clock: Clock) -> None:
    door = Sessions(TOKEN, clock=clock)
    for i in range(ATTEMPTS):
        assert asyncio.run(door.login("wrong", f"2001:db8::{i}")) is None
    with pytest.raises(TooMany):
        asyncio.run(door.login(TOKEN, "2001:db8::ffff"))
    assert asyncio.run(door.login("wrong", "2001:db8:0:1::1")) is None


def test_memory_is_bounded(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "SESSIONS", 3)
    monkeypatch.setattr(sessions, "PLACES", 5)
    door = Sessions(TOKEN, clock=clock)
    keys = [enter(door, TOKEN)[0] for _ in range(5)]
    assert [door.of(key) is not None for key in keys] == [False, False, True, True, True]
    for i in range(20):
        asyncio.run(door.login("wrong", f"192.0.2.{i}"))
    assert len(door._attempts) == 5


def test_without_a_secret_nobody_can_log_in(clock: Clock) -> None:
    nobody = Sessions(None, {"reader": ""}, clock=clock)
    assert not nobody.possible
    assert asyncio.run(nobody.login("", "192.0.2.1")) is None


def test_the_key_of_a_link_opens_once_and_not_for_long() -> None:
    now = [1000.0]

    def entered(door: Sessions, secret: str) -> bool:
        return asyncio.run(door.login(secret, "127.0.0.1")) is not None

    door = Sessions(TOKEN, clock=lambda: now[0], key="printed at the start")
    assert not entered(door, "guessed")
    assert entered(door, "printed at the start")
    assert not entered(door, "printed at the start")
    late = Sessions(TOKEN, clock=lambda: now[0], key="printed at the start")
    now[0] += 601.0
    assert not entered(late, "printed at the start")
    assert not entered(Sessions(TOKEN, clock=lambda: now[0]), "")
