"""A client for crawlers that poll for a worker: which sources are due for me, and what came of them.

Nothing but the standard library, so that the file can be taken along into any crawler.

    client = DueClient("http://127.0.0.1:8480", token)
    while True:
        for poll in client.due(limit=50, wait=20):
            answer = my_fetch(poll.address, poll.headers, timeout=poll.tell_within)
            client.answered(poll, answer.status, answer.headers, answer.body)
        client.send()
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any
from urllib.parse import urlsplit

from unstale.frozen import dataclass


@dataclass(frozen=True)
class DuePoll:
    """A poll to be made now: begin within so many seconds, tell within so many, and send these headers along."""

    ticket: str
    address: str
    headers: dict[str, str]
    begin_within: float
    tell_within: float
    #: bytes of a body that are taken at most
    largest: int


class DueClient:
    """Takes polls from a worker that was started with --hand-out, and tells outcomes in batches."""

    def __init__(self, address: str, token: str, *, timeout: float = 60.0) -> None:
        parts = urlsplit(address)
        made = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        self._connection = made(parts.hostname or "", parts.port, timeout=timeout)
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        self._outcomes: list[dict[str, Any]] = []

    def due(self, limit: int = 100, wait: float = 0.0) -> list[DuePoll]:
        """Up to `limit` polls; waits up to so many seconds (30 at most) for the first."""
        return [DuePoll(**one) for one in self._call("/due", {"limit": limit, "wait": wait})["due"]]

    def answered(self, poll: DuePoll, status: int, headers: Mapping[str, str], body: bytes, address: str = "") -> None:
        """The answer of a source, its codings undone, after redirects; 304 if its copy is still good."""
        told = {"status": status, "headers": dict(headers), "body": b64encode(body).decode(), "address": address}
        self._outcomes.append({"ticket": poll.ticket, **told})

    def failed(self, poll: DuePoll, reason: str) -> None:
        """There was no answer."""
        self._outcomes.append({"ticket": poll.ticket, "reason": reason})

    def send(self) -> list[str]:
        """Tell what has gathered; the tickets for which it came too late."""
        outcomes, self._outcomes = self._outcomes, []
        return list(self._call("/outcomes", {"outcomes": outcomes})["unknown"]) if outcomes else []

    def close(self) -> None:
        """Give back the connection."""
        self._connection.close()

    def _call(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        data = json.dumps(body)
        try:
            self._connection.request("POST", path, data, self._headers)
            answer = self._connection.getresponse()
        except (HTTPException, ConnectionError):
            # The worker was started anew, or let a silent connection go.
            self._connection.close()
            self._connection.request("POST", path, data, self._headers)
            answer = self._connection.getresponse()
        said: dict[str, Any] = json.loads(answer.read())
        if answer.status != 200:
            raise RuntimeError(f"the worker answered {answer.status}: {said.get('error', '')}")
        return said
