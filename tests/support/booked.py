"""A store with books and an API around it, and asking it in JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from support.asgi import Got, Kept, asked
from unstale.cli.service import service_of
from unstale.cli.settings import Settings
from unstale.server.app import App, replica
from unstale.server.asking import StoreAsker

TOKEN = "0123456789abcdef" * 2
WHO = {"authorization": f"Bearer {TOKEN}"}


class Booked(Kept):
    """As `Kept`, with an API that may write."""

    def __init__(self, path: Path, sources: int = 1, **more: Any) -> None:
        super().__init__(path, sources)
        self.service = service_of(Settings(store=str(path)))
        self.service.clock = self.clock
        poller = StoreAsker(self.service, self.shelf, self.clock)
        given: dict[str, Any] = {"clock": self.clock, "token": TOKEN, "service": self.service, "poller": poller} | more
        self.app: App = replica(self.shelf, **given)

    def get(self, path: str) -> Any:
        """The JSON at a path of the API."""
        got = asked(self.app, f"/api/v1/{path}")
        assert got.status == 200, got.body
        return json.loads(got.body)

    def send(self, method: str, path: str, body: object = None) -> Got:
        """One request of someone who may write."""
        data = b"" if body is None else json.dumps(body).encode()
        return asked(self.app, f"/api/v1/{path}", method, [data], content_type="application/json", **WHO)

    def close(self) -> None:
        self.service.close()
        super().close()
