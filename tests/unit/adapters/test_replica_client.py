"""Several replicas, one answer: the freshest, with one body on the wire, and those behind hear of it."""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack

import numpy as np
import pytest

from support.loopback import Loopback, Speech, answer
from support.patience import SOON
from unstale.adapters.replica_client import Freshest, ReplicaClient
from unstale.errors import InputError, ReplicaError

SOURCE = "https://a.example/"
PATH = "/copy?source=https%3A%2F%2Fa.example%2F"


def speech(age: float, body: bytes, etag: str = "") -> Speech:
    """A replica's copy, so many seconds old; HEAD is answered without the body."""

    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        at = time.time() - age
        status = f"as-of=@{int(at)};ms={int(1000 * (at % 1))}, version=2, hops=1"
        full = answer(
            body,
            replica_status=status,
            etag=etag or f'"{body.decode()}"',
            content_type="text/plain",
            content_location="/copies/7",
            connection="close",
        )
        writer.write(full if b"GET" in heads[id(reader)] else full[: full.index(b"\r\n\r\n") + 4])
        await writer.drain()

    return speak


heads: dict[int, bytes] = {}


class Replica(Loopback):
    """Remembers how it was asked."""

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        before = len(self.asked)
        original = reader.readuntil

        async def readuntil(separator: bytes = b"\n") -> bytes:
            head = await original(separator)
            heads[id(reader)] = head
            return head

        reader.readuntil = readuntil  # type: ignore[method-assign, assignment]
        await super()._serve(reader, writer)
        assert len(self.asked) >= before


def read(
    *speeches: Speech | None, k: int = 2, token: str = "", seed: int = 1, seconds: float = 3.0
) -> tuple[Freshest, list[list[str]]]:
    """What a client gets from replicas that say these things (None: nobody is there), and what each was asked."""

    async def scene() -> tuple[Freshest, list[list[str]]]:
        async with AsyncExitStack() as stack:
            servers = []
            for one in speeches:
                server = await stack.enter_async_context(Replica({PATH: one} if one else {}))
                servers.append(server)
            places = [server.origin for server in servers]
            client = ReplicaClient(places, k=k, token=token, seconds=seconds, rng=np.random.default_rng(seed))
            found = await client.get(SOURCE)
            return found, [[line[""] for line in server.asked] for server in servers]

    return asyncio.run(scene())


@pytest.mark.parametrize("seed", range(4))
def test_the_freshest_of_all_wins_whoever_is_asked_for_the_body(seed: int) -> None:
    found, asked = read(speech(30, b"old"), speech(1, b"new"), speech(60, b"older"), k=3, seed=seed)
    assert found.body == b"new"
    assert 0.1 < time.time() - found.reading.as_of < SOON / 2, "the others are 30 s old and more"
    assert (found.reading.version, found.reading.media_type) == (2, "text/plain")
    assert len(found.told) == 2
    bodies = sum(line.startswith(f"GET {PATH} ") for lines in asked for line in lines)
    assert bodies <= 2, "one body, and the winner's if that was another"


def test_equal_bytes_are_sent_once_and_as_young_as_the_youngest_look() -> None:
    for seed in range(4):
        found, asked = read(speech(30, b"same"), speech(1, b"same"), seed=seed)
        assert found.body == b"same"
        assert found.told == (), "who has the same bytes is not behind"
        assert time.time() - found.reading.as_of < SOON / 2
        assert sum(line.startswith("GET") for lines in asked for line in lines) == 1


def test_those_behind_are_told() -> None:
    _, (slow, _) = read(speech(30, b"old"), speech(5, b"new"))
    assert slow[-1] in {f"HEAD {PATH}&max_age={age}s HTTP/1.1" for age in range(5, 30)}
    _, (slow, _) = read(speech(30, b"old"), speech(5, b"new"), token="t" * 40)
    assert slow[-1] == "POST /api/v1/sources/7/hint HTTP/1.1"


def test_who_polled_between_two_questions_is_not_behind_itself() -> None:
    before, after = speech(5, b"new"), speech(1, b"newer")

    async def polling(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await (after if b"GET" in heads[id(reader)] else before)(reader, writer)

    for seed in range(4):
        found, _ = read(speech(30, b"old"), polling, seed=seed)
        assert found.body == b"newer"
        assert len(found.told) == 1
        assert found.reading.replica not in found.told


def test_a_failed_replica_is_replaced() -> None:
    for seed in range(6):
        found, _ = read(speech(5, b"a"), None, answer(b"", "503 Service Unavailable"), speech(1, b"b"), seed=seed)
        assert found.body == b"b"
        assert {one.reason.split(": ")[1] for one in found.answers if one.reason} <= {
            "it has no such source",
            "it answered 503",
        }


async def silence(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(30)


def test_silence_has_an_end() -> None:
    begun = time.monotonic()
    found, _ = read(silence, speech(1, b"b"), seconds=0.5)
    assert found.body == b"b"
    assert time.monotonic() - begun < SOON / 2


def test_no_copy_anywhere_says_who_said_what() -> None:
    with pytest.raises(
        ReplicaError,
        match=r"it has no such source; .*its answer has no Replica-Status|"
        r"its answer has no Replica-Status.*it has no such source",
    ):
        read(None, answer(b"just a page"))


def test_what_is_asked_is_checked() -> None:
    with pytest.raises(InputError, match="k 2 must be at most 1: name more replicas, or ask fewer"):
        ReplicaClient(["http://a", "http://a"], k=2)
    with pytest.raises(InputError, match="must be http or https"):
        ReplicaClient(["ftp://a"], k=1)
