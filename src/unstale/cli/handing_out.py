"""`unstale worker --hand-out`: other crawlers poll what this worker claims, and tell it what came of it."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from unstale.errors import InputError, sentence

if TYPE_CHECKING:
    import asyncio

    from unstale.cli.fetchers import Fetchers

#: the variable that holds the token
VARIABLE = "UNSTALE_HAND_OUT"


def desk_of(place: str | None) -> tuple[str, int, str] | None:
    """Where polls are handed out, and the token: that of the environment, or a new one, which is printed.

    >>> desk_of("127.0.0.1")
    Traceback (most recent call last):
    unstale.errors.InputError: hand-out '127.0.0.1' is no place to listen at: write HOST:PORT, like 127.0.0.1:8480
    """
    if place is None:
        return None
    host, _, port = place.rpartition(":")
    if not (host and port.isascii() and port.isdigit() and int(port) < 65_536):
        raise InputError(
            sentence("hand-out", repr(place), "is no place to listen at", "write HOST:PORT, like 127.0.0.1:8480")
        )
    token = os.environ.get(VARIABLE, "")
    if not token:
        token = secrets.token_urlsafe(24)
        click.echo(f"token for crawlers: {token} (set {VARIABLE} to keep one)")
    return host.strip("[]"), int(port), token


async def handed_out(fetchers: Fetchers, now: Callable[[], float], host: str, port: int, token: str) -> asyncio.Server:
    """Let other crawlers look at what is on the web; the server that they ask."""
    from unstale.adapters.hand_out import HandOut
    from unstale.adapters.hand_out_server import serve_hand_out

    desk = HandOut(now)
    fetchers.use("http", desk)
    try:
        server = await serve_hand_out(desk, host, port, token)
    except OSError as error:
        place = f"{host}:{port}"
        raise InputError(sentence("hand-out", place, f"cannot be had ({error.strerror})", "take another")) from None
    at = server.sockets[0].getsockname()
    click.echo(f"handing out polls at http://{at[0]}:{at[1]}")
    return server
