"""Bodies that are being polled have a bound together: large ones go to disk, wait their turn, and need not be read."""

from __future__ import annotations

import asyncio
import gc
import pickle
import zlib
from dataclasses import replace
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from support.loopback import Loopback, answer
from unstale.adapters import body_room
from unstale.adapters.addresses import Gate
from unstale.adapters.body_room import LARGE, BodyRoom, HeldBody, IncomingBody, LandedBody, SharedBytes
from unstale.adapters.http_fetcher import HttpFetcher
from unstale.keeper.outcomes import Answer
from unstale.ports import Fetched, Request

MIB = 2**20
HERE = Gate(["127.0.0.0/8"])


def never() -> None:
    raise AssertionError("nothing waits here")


def incoming(room: BodyRoom, body: bytes, expected: int = 16 * MIB) -> IncomingBody:
    found = IncomingBody(room)
    for at in range(0, len(body), 16_384):
        assert found.write(body[at : at + 16_384], expected, never)
    return found


def test_bodies_are_in_memory_or_on_disk_by_their_size_and_give_all_their_room_back(tmp_path: Path) -> None:
    room = BodyRoom(64 * MIB, folder=tmp_path)
    for size, light, disk in ((100, 0, 0), (100_000, 100_000, 0), (3 * MIB, 0, 16 * MIB)):
        body = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
        one = incoming(room, body)
        assert (room.light.taken, room.disk.taken) == (light, disk)
        landed = one.land(16 * MIB)
        if isinstance(landed, LandedBody):
            assert (landed.size, landed.digest) == (size, sha256(body).digest())
            room.heavy.take(size)
            landed = one.load(size, room.heavy)
            assert room.heavy.taken == size
        assert landed == body
        del landed
        gc.collect()
        one.drop()
        assert (room.light.taken, room.disk.taken, room.heavy.taken) == (0, 0, 0)
        # What is on disk has no name there.
        assert list(tmp_path.iterdir()) == []


def test_what_is_coded_is_unpacked_when_it_is_read_and_known_before() -> None:
    room = BodyRoom()
    body = b"a body that says the same again and again " * 200_000
    one = incoming(room, zlib.compress(body, wbits=31))
    one.codings = ["gzip"]
    landed = one.land(16 * MIB)
    assert isinstance(landed, LandedBody)
    assert (landed.size, landed.digest) == (len(body), sha256(body).digest())
    room.heavy.take(landed.size)
    assert one.load(landed.size, room.heavy) == body


def test_room_is_had_in_turn_and_never_twice() -> None:
    async def main() -> None:
        room, heard = SharedBytes(10), []
        assert room.take(8)
        first = room.wait(5, lambda: heard.append("first"))
        room.wait(2, lambda: heard.append("second"))
        # There would be room for it, but not before those who wait.
        assert not room.take(1)
        await asyncio.sleep(0)
        assert heard == []
        first()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert (heard, room.taken) == (["second"], 10)
        await asyncio.to_thread(room.give, 10)
        await asyncio.sleep(0)
        assert room.taken == 0

    asyncio.run(main())


def test_a_body_that_nobody_holds_gives_back_its_room_from_any_thread() -> None:
    async def main() -> None:
        room, heard = SharedBytes(10), asyncio.Event()
        room.take(10)
        bodies = [body_room.held(b"0123456789", room)]
        room.wait(10, heard.set)
        await asyncio.to_thread(bodies.clear)
        await heard.wait()
        assert room.taken == 10

    asyncio.run(main())


def polled(server: Loopback, room: BodyRoom, **more: object) -> list[Fetched]:
    async def main() -> list[Fetched]:
        async with server:
            fetcher = HttpFetcher(HERE, room=room)
            requests = [Request(server.origin + path, **more) for path in server.speeches]  # type: ignore[arg-type]

            async def fetch(request: Request) -> Fetched:
                found = await fetcher.fetch(request)
                # Who keeps a body keeps its room: here its digest is enough.
                return found if found.body is None else replace(found, body=sha256(found.body).digest())

            found = await asyncio.gather(*map(fetch, requests))
            await fetcher.close()
            return list(found)

    return asyncio.run(main())


def test_many_large_bodies_wait_for_each_other_and_all_come_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body_room, "HEAVY", 3 * MIB)
    bodies = {f"/{n}": bytes([n]) * (2 * MIB + n) for n in range(8)}
    room = BodyRoom(5 * MIB)
    most = 0

    class Watched(SharedBytes):
        def take(self, size: int, *, whatever: bool = False) -> bool:
            nonlocal most
            took = super().take(size, whatever=whatever)
            most = max(most, self.taken)
            return took

    room.disk.__class__ = Watched
    found = polled(Loopback({path: answer(body) for path, body in bodies.items()}), room)
    assert 0 < most <= 5 * MIB
    for one, body in zip(found, bodies.values(), strict=True):
        assert one.answer is Answer.CHANGED
        assert one.body == sha256(body).digest()
    gc.collect()
    assert (room.disk.taken, room.heavy.taken, room.light.taken) == (0, 0, 0)


def test_who_waits_too_long_for_room_fails_with_the_setting_that_helps() -> None:
    room = BodyRoom(5 * MIB)
    room.disk.take(5 * MIB)
    (paused,) = polled(Loopback({"/": answer(bytes(2 * MIB))}), room, seconds=0.5)
    assert paused.answer is Answer.FAILED
    assert paused.reason.endswith("no room for its body beside others within 0.5 s, raise http.bodies in the settings")
    room.disk.give(5 * MIB)
    room.heavy.take(room.heavy.most)
    (landed,) = polled(Loopback({"/": answer(bytes(2 * MIB))}), room, seconds=0.5)
    assert landed.reason == paused.reason
    # Small ones do not notice.
    (small,) = polled(Loopback({"/": answer(bytes(LARGE))}), room)
    assert small.answer is Answer.CHANGED


def test_a_large_body_that_we_hold_is_not_read_at_all() -> None:
    room, body = BodyRoom(), bytes(2 * MIB)
    room.heavy.take(room.heavy.most)
    (same,) = polled(Loopback({"/": answer(body)}), room, digest=sha256(body).digest())
    assert (same.answer, same.body) == (Answer.UNCHANGED, None)
    # With another validator there is something to keep.
    tagged = Loopback({"/": answer(body, etag='"new"')})
    (waits,) = polled(tagged, room, digest=sha256(body).digest(), seconds=0.5)
    assert waits.answer is Answer.FAILED


def test_a_disk_that_takes_nothing_fails_the_poll_with_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(BytesIO):
        def write(self, data: Any) -> int:
            raise OSError(28, "No space left on device")

    room = BodyRoom()
    monkeypatch.setattr(room, "file", Full)
    (found,) = polled(Loopback({"/": answer(bytes(2 * MIB))}), room)
    assert found.reason == "127.0.0.1: its body could not be kept on disk: No space left on device"
    assert room.disk.taken == 0


def test_a_look_that_is_called_off_while_it_waits_leaves_nothing_behind() -> None:
    async def main() -> None:
        room = BodyRoom(5 * MIB)
        room.disk.take(5 * MIB)
        async with Loopback({"/": answer(bytes(2 * MIB))}) as server:
            fetcher = HttpFetcher(HERE, room=room)
            call_off = fetcher.begin(Request(server.origin + "/"), lambda found: None)
            while not room.disk._waiting:
                await asyncio.sleep(0.01)
            call_off()
            room.disk.give(5 * MIB)
            await asyncio.sleep(0)
            assert (room.disk.taken, room.light.taken) == (0, 0)
            await fetcher.close()

    asyncio.run(main())


def test_a_held_body_is_bytes_wherever_it_goes() -> None:
    room = SharedBytes(10)
    room.take(3)
    body = body_room.held(b"abc", room)
    assert isinstance(body, HeldBody)
    assert (body, sha256(body).digest(), type(bytes(body))) == (b"abc", sha256(b"abc").digest(), bytes)
    # To a process that parses it goes without its room.
    sent = pickle.loads(pickle.dumps(body, protocol=5))
    assert (sent, type(sent)) == (b"abc", bytes)
