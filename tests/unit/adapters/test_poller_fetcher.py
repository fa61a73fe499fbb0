"""Processes that poll: each has its hosts, one that dies is replaced and its polls have failed, bodies have a bound."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from support.loopback import Loopback, answer, redirect
from support.patience import SOON
from unstale.adapters import poller_fetcher, poller_process
from unstale.adapters.addresses import Gate
from unstale.adapters.body_room import LARGE, SMALL, BodyRoom, HeldBody
from unstale.adapters.poller_fetcher import PollerFetcher, shard_of
from unstale.adapters.poller_process import PollerProcess
from unstale.adapters.poller_wire import asked, found_of, reply_of, request_of, written, written_reply
from unstale.adapters.transfer import TransferReply
from unstale.errors import TooLateError
from unstale.keeper.outcomes import Answer
from unstale.ports import Fetched, RateLimit, Request

HERE = Gate(["127.0.0.0/8"])
NOW = 1.8e9


def played(scene: Callable[[], Awaitable[None]]) -> None:
    async def within() -> None:
        async with asyncio.timeout(2 * SOON):
            await scene()

    asyncio.run(within())


async def stalled(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(600)


def pids(fetcher: PollerFetcher) -> list[int]:
    return [made[0].process.pid for made in fetcher._made if made is not None]


def test_what_is_said_over_the_line_is_what_is_heard() -> None:
    for request in (
        Request("http://a/"),
        Request("http://a/", '"e"', "m", {"x": "y"}, {"early": True}, 5, 2.5, 7.0, 9.0, b"d", b"said"),
    ):
        number, at, looks, *rest = asked(3, request, 5.0, looks=True)
        assert (number, at, looks, request_of(rest)) == (3, 5.0, True, request)
    full = Fetched(
        Answer.CHANGED, 1.0, b"b", "t", "e", "m", (1.0, 2.0), "r", 3.0, 200, "a", 5, 1.5, "v", 2.5, 3, None, 4, 6
    )
    for found in (full, replace(full, rate_limit=RateLimit(1.0, 2.0, 3.0)), Fetched(Answer.UNCHANGED, 1.0, status=304)):
        assert found_of(written(found), found.body) == found
    reply = TransferReply(200, {"etag": "e"}, b"b", "a", 5, "r", 3)
    assert reply_of(written_reply(reply), reply.body) == reply


def test_all_polls_of_a_host_are_one_processs_and_every_process_has_hosts() -> None:
    hosts = [f"127.0.0.{number}" for number in range(2, 10)]
    assert {shard_of(host, 2) for host in hosts} == {0, 1}

    async def scene() -> None:
        fetcher = PollerFetcher(2, HERE)
        begun: list[tuple[int, str]] = []
        usual = PollerProcess.ask

        def ask(self: PollerProcess, request: Request, looks: bool, answered: Any) -> Any:
            begun.append((self.process.pid, request.address))
            return usual(self, request, looks, answered)

        async with Loopback({"/": answer(b"one")}, "0.0.0.0") as server:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(PollerProcess, "ask", ask)
                for _ in range(3):
                    for host in hosts:
                        got = await fetcher.fetch(Request(f"http://{host}:{server.port}/"))
                        assert got.body == b"one", got.reason
            # Its connection is used again by whoever has it.
            assert server.connections == len(hosts)
        by_host = {address: {pid for pid, other in begun if other == address} for _, address in begun}
        assert all(len(mine) == 1 for mine in by_host.values())
        assert {pid for mine in by_host.values() for pid in mine} == set(pids(fetcher))
        await fetcher.close()

    played(scene)


def test_a_process_that_is_killed_fails_its_polls_with_a_reason_and_is_replaced() -> None:
    async def scene() -> None:
        async with Loopback({"/": stalled, "/well": answer(b"well")}) as server:
            fetcher = PollerFetcher(1, HERE, now=lambda: NOW)
            assert (await fetcher.fetch(Request(f"{server.origin}/well"))).body == b"well"
            flights = [asyncio.create_task(fetcher.fetch(Request(f"{server.origin}/"))) for _ in range(5)]
            look = asyncio.create_task(fetcher.look(Request(f"{server.origin}/")))
            while len(server.asked) < 7:
                await asyncio.sleep(0.01)
            (pid,) = pids(fetcher)
            os.kill(pid, signal.SIGKILL)
            for got in await asyncio.gather(*flights):
                assert (got.answer, got.polled_at) == (Answer.FAILED, NOW)
                assert got.reason == "127.0.0.1: the process that polled it has ended before the answer came"
            assert "has ended" in (await look).reason
            assert (await fetcher.fetch(Request(f"{server.origin}/well"))).body == b"well"
            assert pids(fetcher) != [pid]
            await fetcher.close()

    played(scene)


def test_a_process_that_hangs_is_ended_and_what_it_was_asked_has_failed_in_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("LOOK", "LATER", "SILENT"):
        monkeypatch.setattr(poller_process, name, 0.1)

    async def scene() -> None:
        async with Loopback({"/": answer(b"one")}) as server:
            fetcher = PollerFetcher(1, HERE)
            # A process that has just been started may be slow to answer.
            while (await fetcher.fetch(Request(f"{server.origin}/", seconds=10.0))).body != b"one":
                pass
            (pid,) = pids(fetcher)
            os.kill(pid, signal.SIGSTOP)
            got = await fetcher.fetch(Request(f"{server.origin}/", seconds=0.5))
            assert got.reason == "127.0.0.1: no whole answer within 0.5 s"
            assert not Path(f"/proc/{pid}").exists()
            assert (await fetcher.fetch(Request(f"{server.origin}/", seconds=10.0))).body == b"one"
            await fetcher.close()

    played(scene)


def test_a_process_that_cannot_be_started_is_not_tried_for_every_poll(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", "/bin/false")
    made: list[PollerProcess] = []

    class Counted(PollerProcess):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            made.append(self)

    monkeypatch.setattr(poller_fetcher, "PollerProcess", Counted)
    monkeypatch.setattr(poller_fetcher, "AGAIN", 600.0)

    async def scene() -> None:
        fetcher = PollerFetcher(1, HERE)
        for _ in range(5):
            got = await fetcher.fetch(Request("http://127.0.0.1:9/"))
            assert (got.answer, got.body) == (Answer.FAILED, None)
            assert got.reason.startswith("127.0.0.1: the process that poll")
        assert len(made) == 1
        await fetcher.close()

    played(scene)


def test_bodies_are_counted_until_nobody_holds_them_over_here() -> None:
    large, light = b"a" * (LARGE + 1), b"b" * (SMALL + 1)

    async def scene() -> None:
        async with Loopback({"/large": answer(large), "/light": answer(light), "/": answer(b"c")}) as server:
            fetcher = PollerFetcher(1, HERE, room=BodyRoom(2 * LARGE))
            held = [(await fetcher.fetch(Request(f"{server.origin}/{name}"))).body for name in ("large", "light")]
            assert held == [large, light]
            assert all(isinstance(body, HeldBody) for body in held)
            # There is room for one large one at a time: the next waits until this one is gone.
            waits = asyncio.create_task(fetcher.fetch(Request(f"{server.origin}/large", seconds=60.0)))
            assert (await fetcher.fetch(Request(f"{server.origin}/"))).body == b"c"
            await asyncio.sleep(0.3)
            assert not waits.done()
            held.clear()
            gc.collect()
            assert (await waits).body == large
            full = await fetcher.fetch(Request(f"{server.origin}/large", seconds=0.5))
            assert full.body == large or "no room for its body" in full.reason
            await fetcher.close()

    played(scene)


def test_an_answer_that_was_called_off_on_its_way_gives_its_room_back() -> None:
    large = b"a" * (LARGE + 1)

    async def scene() -> None:
        async with Loopback({"/": answer(large)}) as server:
            fetcher = PollerFetcher(1, HERE, room=BodyRoom(2 * LARGE))
            for _ in range(8):
                call_off = fetcher.begin(Request(f"{server.origin}/"), lambda found: None)
                await asyncio.sleep(0.02)
                call_off()
            assert (await fetcher.fetch(Request(f"{server.origin}/", seconds=60.0))).body == large
            await fetcher.close()

    played(scene)


def test_the_gate_holds_on_every_hop_and_the_clock_is_the_engines() -> None:
    async def scene() -> None:
        async with Loopback({"/": redirect("http://127.0.0.2:9/"), "/b": answer(b"b", age="100")}) as server:
            fetcher = PollerFetcher(1, Gate(["127.0.0.1/32"]), now=lambda: NOW)
            got = await fetcher.fetch(Request(f"{server.origin}/"))
            assert "its address 127.0.0.2 is not public" in got.reason
            assert (await fetcher.fetch(Request(f"{server.origin}/b"))).polled_at == NOW - 100.0
            with pytest.raises(TooLateError):
                await fetcher.fetch(Request(f"{server.origin}/b", begin_by=NOW - 1.0))
            await fetcher.close()

    played(scene)


def test_no_secret_of_our_environment_goes_along_and_its_end_is_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CANARY", "secret-1f2e")

    async def scene() -> None:
        async with Loopback({"/": answer(b"one")}) as server:
            fetcher = PollerFetcher(1, HERE)
            assert (await fetcher.fetch(Request(f"{server.origin}/"))).body == b"one"
            (pid,) = pids(fetcher)
            assert b"secret-1f2e" not in Path(f"/proc/{pid}/environ").read_bytes()
            # Signals to all processes of a service are for the engine, which finishes what is under way.
            os.kill(pid, signal.SIGTERM)
            assert (await fetcher.fetch(Request(f"{server.origin}/"))).body == b"one"
            assert pids(fetcher) == [pid]
            await fetcher.close()
            assert not Path(f"/proc/{pid}").exists()

    played(scene)
