"""Programs that ask a closed replica with tokens."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from support.asgi import Kept, asked
from unstale.cli.service import service_of
from unstale.cli.settings import Settings
from unstale.server.app import replica
from unstale.server.dashboard.views import views
from unstale.server.scopes import ScopedTokens

TOKEN = "0123456789abcdef" * 2


class Programs(Kept):
    """A closed replica and its tokens."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.poll(b"x")
        self.service = service_of(Settings(store=str(path)))
        self.service.clock = self.clock
        self.app = replica(
            self.shelf,
            clock=self.clock,
            token=TOKEN,
            service=self.service,
            closed=True,
            more=views(self.service),
            scoped=ScopedTokens(self.service, self.clock),
        )

    def ask(self, method: str, path: str, body: Any, token: str) -> tuple[int, Any]:
        fields = {"content_type": "application/json", "authorization": f"Bearer {token}"}
        sent = [] if body is None else [json.dumps(body).encode()]
        got = asked(self.app, path, method, sent, **fields)
        return got.status, got.body

    def make(self, *scopes: str) -> str:
        status, body = self.ask("POST", "/dashboard/tokens", {"name": "p", "scopes": scopes, "days": 2}, TOKEN)
        assert status == 201, body
        token: str = json.loads(body)["token"]
        return token

    def close(self) -> None:
        self.service.close()
        super().close()
