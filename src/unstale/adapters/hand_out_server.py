"""The two calls by which other crawlers take polls and tell outcomes: JSON over HTTP/1.1, one small server.

Rules of this file:
1. Nobody is heard without the token; what is read has bounds, and what is wrong is said in a sentence.
2. It is no web server: two addresses, POST alone, bodies with a length.
"""

from __future__ import annotations

import asyncio
import hmac
import json
from contextlib import suppress
from typing import Any

from unstale.adapters.hand_out import HandOut
from unstale.errors import InputError

#: bytes of a request's head and body at most, and seconds until one that says nothing is let go
HEAD, BODY, SILENT = 16_384, 256 * 2**20, 60.0
_WORDS = {
    200: "OK",
    400: "Bad Request",
    401: "Unauthorized",
    404: "Not Found",
    411: "Length Required",
    413: "Too Long",
}


class _RefusedCall(Exception):
    """A status, and why."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


async def serve_hand_out(desk: HandOut, host: str, port: int, token: str) -> asyncio.Server:
    """Listen; who closes the server lets nobody in any more."""

    async def heard(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError, TimeoutError):
            while await _answered(desk, token, reader, writer):
                pass
        writer.close()

    return await asyncio.start_server(heard, host, port, limit=HEAD)


async def _answered(desk: HandOut, token: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    """Read a request and answer it; whether another may follow."""
    try:
        path, body = await asyncio.wait_for(_read(reader, token), SILENT)
        status, said = 200, await _called(desk, path, body)
    except _RefusedCall as error:
        status, said = error.status, {"error": str(error)}
    except InputError as error:
        status, said = 400, {"error": str(error)}
    except asyncio.LimitOverrunError:
        status, said = 413, {"error": "the head of the request is too long"}
    data = json.dumps(said).encode()
    going_on = status in (200, 404)
    lines = [
        f"HTTP/1.1 {status} {_WORDS[status]}",
        "Content-Type: application/json",
        f"Content-Length: {len(data)}",
        "Connection: keep-alive" if going_on else "Connection: close",
    ]
    writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + data)
    await writer.drain()
    return going_on


async def _read(reader: asyncio.StreamReader, token: str) -> tuple[str, dict[str, Any]]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.split("\r\n")
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    given = headers.get("authorization", "").removeprefix("Bearer ").encode()
    if not hmac.compare_digest(given, token.encode()):
        raise _RefusedCall(401, "send the token that the worker was started with: Authorization: Bearer …")
    length = headers.get("content-length", "")
    if not length.isascii() or not length.isdigit():
        raise _RefusedCall(411, "send a body with its Content-Length")
    if int(length) > BODY:
        raise _RefusedCall(413, f"send {BODY:,} bytes at most")
    raw = await reader.readexactly(int(length))
    try:
        body = json.loads(raw or b"{}")
    except ValueError:
        raise _RefusedCall(400, "the body is no JSON") from None
    if not isinstance(body, dict):
        raise _RefusedCall(400, "the body must be an object")
    return " ".join(first.split(" ")[:2]), body


async def _called(desk: HandOut, path: str, body: dict[str, Any]) -> dict[str, Any]:
    if path == "POST /due":
        limit, wait = body.get("limit", 100), body.get("wait", 0.0)
        if not (isinstance(limit, int) and limit > 0 and isinstance(wait, int | float) and wait >= 0):
            raise _RefusedCall(400, "limit must be 1 or more, and wait seconds")
        return {"due": await desk.due(limit, float(wait))}
    if path == "POST /outcomes":
        outcomes = body.get("outcomes")
        if not (isinstance(outcomes, list) and all(isinstance(one, dict) for one in outcomes)):
            raise _RefusedCall(400, "outcomes must be a list of objects")
        unknown = [one.get("ticket") for one in outcomes if not desk.told(one)]
        return {"taken": len(outcomes) - len(unknown), "unknown": unknown}
    raise _RefusedCall(404, "POST /due and POST /outcomes are all there is")
