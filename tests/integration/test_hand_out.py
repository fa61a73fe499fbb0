"""Another crawler polls by our price: it asks what is due, fetches, tells; the worker records and learns."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from support.postgres import postgres
from unstale.adapters.hand_out import HandOut
from unstale.adapters.hand_out_server import serve_hand_out
from unstale.adapters.postgres_crew import PostgresCrew
from unstale.contrib.due_client import DueClient
from unstale.errors import TooLateError
from unstale.keeper.outcomes import Answer
from unstale.ports import Listing, Request

TOKEN = "long enough"


@contextmanager
def handing_out(*words: str) -> Iterator[str]:
    """Where a worker hands out its polls, for as long as the context lasts."""
    command = [sys.executable, "-c", "from unstale.cli.worker import worker; worker()", *words]
    env = os.environ | {"UNSTALE_HAND_OUT": TOKEN}
    worker = subprocess.Popen([*command, "--hand-out", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True, env=env)
    try:
        assert worker.stdout is not None
        line = next(line for line in worker.stdout if line.startswith("handing out polls at "))
        yield line.split()[-1]
        worker.send_signal(signal.SIGTERM)
        assert "everything is recorded" in worker.communicate(timeout=60)[0]
    finally:
        worker.kill()
        worker.wait()


def test_a_crawler_takes_what_is_due_and_tells_what_came_of_it(tmp_path: Path) -> None:
    settings = tmp_path / "unstale.toml"
    settings.write_text('[http]\nrobots = false\ntimeout = "20s"\n')
    with postgres() as server:
        store = PostgresCrew(server.address())
        ids = store.add([Listing(f"https://example.org/{n}") for n in range(3)], 0.0)
        seen: dict[str, list[dict[str, str]]] = {}
        words = ("--config", str(settings), "--store", server.address(), "--budget", "20/s")
        with handing_out(*words) as address, closing(DueClient(address, TOKEN)) as client:
            while sum(map(len, seen.values())) < 7 or len(seen) < 3:
                for poll in client.due(limit=2, wait=5.0):
                    seen.setdefault(poll.address, []).append(poll.headers)
                    if poll.address.endswith("/2"):
                        client.failed(poll, "connection refused")
                    elif len(seen[poll.address]) == 1:
                        client.answered(poll, 200, {"ETag": '"one"', "Content-Type": "text/plain"}, b"as it is")
                    else:
                        client.answered(poll, 304, {}, b"")
                assert client.send() == []
        first = store.copy(ids[0])
        assert first is not None
        assert (first.body.data, first.body.media_type, first.body.etag) == (b"as it is", "text/plain", '"one"')
        # What is held is asked for by its validator.
        assert seen["https://example.org/0"][1]["If-None-Match"] == '"one"'
        answers = [one.answer for one in store.observations(ids[0])]
        assert answers[-1] is Answer.CHANGED
        assert set(answers[:-1]) == {Answer.UNCHANGED}
        failure = store.observations(ids[2])[-1]
        assert failure.answer is Answer.FAILED
        assert failure.reason == "example.org: connection refused"
        counters = store.counters()
        ended = sum(counters.get(name, 0) for name in ("recorded", "given_back", "expired", "ended"))
        assert counters["claimed"] == ended
        assert store.claimed() == []
        store.close()


def test_what_nobody_takes_goes_back_and_what_nobody_tells_of_has_failed() -> None:
    async def walk() -> None:
        now = [100.0]
        desk = HandOut(lambda: now[0])
        late = asyncio.create_task(desk.fetch(Request("https://a.example/", begin_by=101.0)))
        await asyncio.sleep(0)
        now[0] = 101.5
        assert await desk.due(9, 0.0) == []
        with pytest.raises(TooLateError, match="nobody asked for this poll in time"):
            await late
        lost = asyncio.create_task(desk.fetch(Request("https://b.example/", seconds=0.1)))
        await asyncio.sleep(0)
        (taken,) = await desk.due(9, 0.0)
        seen = await lost
        assert seen.answer is Answer.FAILED
        assert seen.reason == "b.example: who took this poll did not tell what came of it"
        # Told afterwards, it is nobody's any more.
        assert not desk.told({"ticket": taken["ticket"], "status": 200})

    asyncio.run(walk())


def test_strangers_and_nonsense_are_told_so() -> None:
    async def walk() -> None:
        server = await serve_hand_out(HandOut(lambda: 0.0), "127.0.0.1", 0, TOKEN)
        port = server.sockets[0].getsockname()[1]

        def asked(path: str, body: Any, token: str = TOKEN) -> str:
            client = DueClient(f"http://127.0.0.1:{port}", token)
            try:
                client._call(path, body)
            except RuntimeError as error:
                return str(error)
            finally:
                client.close()
            return ""

        for path, body, token, words in (
            ("/due", {}, "guess", "answered 401: send the token"),
            ("/due", {"limit": 0}, TOKEN, "answered 400: limit must be 1 or more"),
            ("/due", [1], TOKEN, "answered 400: the body must be an object"),
            ("/outcomes", {"outcomes": [7]}, TOKEN, "answered 400: outcomes must be a list"),
            ("/else", {}, TOKEN, "answered 404"),
            ("/outcomes", {"outcomes": [{"ticket": "x"}]}, TOKEN, ""),
        ):
            assert words in await asyncio.to_thread(asked, path, body, token)
        server.close()

    asyncio.run(walk())
