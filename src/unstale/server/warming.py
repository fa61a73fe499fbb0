"""What the first visitor would wait for is asked for by the server itself, once, when it begins to serve.

With 100,000 sources the first list and the first front page take a second or so of processor time: columns are read,
and what is compiled is loaded. It is done one after the other, while requests are answered.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

from unstale.errors import UnstaleError

#: what the pages of the dashboard ask for first
FIRST = ("/dashboard/table?limit=50", "/api/v1/status", "/api/v1/plan", "/dashboard/hosts")


async def warm(app: Any, token: str, stop: asyncio.Event, ready: Callable[[], object] = lambda: None) -> None:
    """Ask the application for what is asked first, and do what is done first, until `stop`; answers are thrown away,
    and so is what goes wrong."""

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        pass

    for place in FIRST:
        if stop.is_set():
            return
        with contextlib.suppress(UnstaleError, OSError):
            await app(asked_from_inside(place, token), receive, send)
    if not stop.is_set():
        with contextlib.suppress(UnstaleError, OSError):
            await asyncio.to_thread(ready)


def asked_from_inside(place: str, token: str, method: str = "GET") -> dict[str, Any]:
    """A request to the application by its own process, as a server would hand it over."""
    path, _, query = place.partition("?")
    fields = {"host": "localhost", "authorization": f"Bearer {token}", "content-type": "application/json"}
    return {
        "type": "http",
        "http_version": "1.1",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "scheme": "http",
        "server": ("127.0.0.1", 80),
        "headers": [(name.encode(), value.encode()) for name, value in fields.items()],
    }
