"""What is asked first is ready before anybody asks, and a server that ends does not go on with it."""

from __future__ import annotations

import asyncio
from pathlib import Path

from support.asgi import Kept, ask
from unstale.cli.service import service_of
from unstale.cli.settings import Settings
from unstale.server.app import replica
from unstale.server.dashboard.views import views
from unstale.server.warming import FIRST, warm

TOKEN = "0123456789abcdef" * 2


def test_the_first_visitor_finds_everything_read(tmp_path: Path) -> None:
    kept = Kept(tmp_path / "s.db", 3)
    service = service_of(Settings(store=str(tmp_path / "s.db")))
    app = replica(kept.shelf, token=TOKEN, closed=True, service=service, more=views(service))
    asked: list[tuple[str, int]] = []

    async def counting(scope: dict[str, object], receive: object, send: object) -> None:
        async def told(message: dict[str, object]) -> None:
            if message["type"] == "http.response.start":
                asked.append((str(scope["path"]), int(str(message["status"]))))

        await app(scope, receive, told)  # type: ignore[arg-type]

    async def scenario() -> bytes:
        await warm(counting, TOKEN, asyncio.Event(), service.ready)
        ended = asyncio.Event()
        ended.set()
        await warm(counting, TOKEN, ended)
        return (await ask(app, "/dashboard/table?limit=50", authorization=f"Bearer {TOKEN}")).body

    found = asyncio.run(scenario())
    assert service._written is not None
    assert service._written._store is not None, "the first edit finds the store open"
    assert asked == [(place.partition("?")[0], 200) for place in FIRST]
    assert {"/dashboard/table", "/api/v1/status", "/api/v1/plan"} <= {path for path, _ in asked}
    assert b'"sorted":true' in found
    service.close()
    kept.close()
