"""Asking an ASGI application without a server, and a store with a few copies to ask for."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unstale.adapters.sqlite_replica import SqliteReplica
from unstale.adapters.sqlite_store import SqliteStore
from unstale.keeper.outcomes import Answer
from unstale.ports import Body, Entry, Listing

START = 1_763_236_800.0


@dataclass(frozen=True)
class Got:
    """A response: its status, its fields by lower-case name, its body."""

    status: int
    fields: dict[str, str]
    body: bytes


async def ask(app: Any, path: str, method: str = "GET", body: Sequence[bytes] = (b"",), **headers: str) -> Got:
    """One request; `if_none_match="x"` becomes `if-none-match: x`. The body comes in these pieces."""
    path, _, query = path.partition("?")
    pieces, sent = list(body), []

    async def receive() -> dict[str, Any]:
        piece = pieces.pop(0) if pieces else b""
        return {"type": "http.request", "body": piece, "more_body": bool(pieces)}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "scheme": "http",
        "server": ("127.0.0.1", 80),
        "headers": [
            (n.replace("_", "-").encode(), v.encode("latin-1")) for n, v in {"host": "localhost", **headers}.items()
        ],
    }
    await app(scope, receive, send)
    fields: dict[str, str] = {}
    for name, value in sent[0]["headers"]:
        assert name == name.lower()
        assert name.decode() not in fields, f"{name!r} is there twice"
        fields[name.decode()] = value.decode("latin-1")
    return Got(sent[0]["status"], fields, b"".join(message.get("body", b"") for message in sent[1:]))


def asked(app: Any, path: str, method: str = "GET", body: Sequence[bytes] = (b"",), **headers: str) -> Got:
    """The same, in a loop of its own."""
    return asyncio.run(ask(app, path, method, body, **headers))


class Kept:
    """A store, what a server reads of it, and a clock that stands still unless it is moved."""

    def __init__(self, path: Path, sources: int = 1) -> None:
        self.now = START
        self.store = SqliteStore(path)
        self.ids = self.store.add([Listing(f"https://a.example/{i}") for i in range(sources)], START)
        self.shelf = SqliteReplica(path)

    def clock(self) -> float:
        return self.now

    def poll(
        self,
        data: bytes | None = None,
        media_type: str = "text/plain",
        *,
        wait: float = 60.0,
        last_modified: str | None = None,
        failed: bool = False,
    ) -> None:
        """Poll all that is due; `data` is a new body, nothing is an unchanged one."""
        claims = self.store.claim(self.now, 100, lease=60.0, owner="test")
        assert claims
        answer = Answer.FAILED if failed else Answer.UNCHANGED if data is None else Answer.CHANGED
        body = None if data is None else Body(data, media_type, last_modified=last_modified)
        entries = [Entry(claim, answer, self.now, self.now + wait, body=body, reason="no" * failed) for claim in claims]
        assert all(self.store.record(entries))

    def close(self) -> None:
        self.shelf.close()
        self.store.close()
