"""The guard by itself: what is no request, and host names beyond those that it remembers."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from unstale.server import auth
from unstale.server.auth import Guard


def test_the_servers_own_words_pass_untouched_to_the_application() -> None:
    heard: list[Any] = []

    async def app(*given: Any) -> None:
        heard.append(given)

    async def never(*given: Any) -> None:
        raise AssertionError(given)

    asyncio.run(Guard(app, "0" * 32, closed=True)({"type": "lifespan"}, never, never))
    assert heard == [({"type": "lifespan"}, never, never)]


def test_names_beyond_those_that_are_remembered_pass_by_the_closer_look(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auth, "_PASSED", 1)
    guard = Guard(None, None, names=("a.example", "b.example"))

    def asked(host: str) -> Any:
        return guard.misled({"headers": [(b"host", host.encode())]})

    assert asked("A.example:80") is None
    assert asked("b.example") is None
    assert [guard.lets(host) for host in ("A.example:80", "b.example", "c.example")] == [True, False, False]
    status, _, body = asked("c.example")
    assert status == 421
    assert b"does not go by the name" in body
