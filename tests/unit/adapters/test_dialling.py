"""Reaching a host: each of its addresses that the gate permits, in turn, and no longer than is good."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest

from unstale.adapters import dialling
from unstale.adapters.addresses import Gate
from unstale.adapters.dialling import reached

NEAR = Gate(["127.0.0.0/8"])


def asked(
    monkeypatch: pytest.MonkeyPatch, *places: str, works: str = "", seconds: float = 0.0
) -> tuple[str, list[str]]:
    """Which address was reached, and those that were tried; a name that takes so long to be resolved."""
    tried: list[str] = []

    async def connect(place: str, port: int) -> str:
        tried.append(place)
        if place != works:
            raise ConnectionRefusedError
        return place

    async def play() -> str:
        async def resolved(*_: object, **__: object) -> list[Any]:
            await asyncio.sleep(seconds)
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (place, 80)) for place in places]

        monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", resolved)
        return await reached(NEAR, "a.example", 80, connect)

    return asyncio.run(play()), tried


def test_addresses_are_tried_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    found = asked(monkeypatch, "127.0.0.1", "127.0.0.1", "10.0.0.1", "127.0.0.2", "127.0.0.3", works="127.0.0.2")
    assert found == ("127.0.0.2", ["127.0.0.1", "127.0.0.2"])


def test_what_the_gate_refuses_is_never_dialled(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConnectionError, match=r"a\.example: its address is not public"):
        asked(monkeypatch, "10.0.0.1", works="10.0.0.1")


def test_nobody_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConnectionError, match=r"a\.example: it cannot be reached"):
        asked(monkeypatch, "127.0.0.1", "127.0.0.2")


def test_a_name_that_takes_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dialling, "REACH", 0.01)
    with pytest.raises(ConnectionError, match=r"a\.example: its name could not be resolved"):
        asked(monkeypatch, "127.0.0.1", works="127.0.0.1", seconds=60.0)
