"""The last answer of a look: what is large of it is read when there is room for it, unless it is what we hold."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from unstale.adapters.flight import Flight
from unstale.adapters.http_request import validator
from unstale.adapters.transfer import TransferReply
from unstale.ports import Request


def land(flight: Flight, reply: TransferReply) -> None:
    """End a look with its last answer, at once or as soon as its body could be read, within the time it has."""
    large, request = reply.large, flight.request
    if large is None:
        flight.end(reply)
        return
    reply = replace(reply, large=None)
    told = validator(reply.headers.get("etag")), validator(reply.headers.get("last-modified"))
    if large.digest == request.digest and told == (request.etag, request.last_modified):
        large.drop()
        flight.end(replace(reply, same=True))
        return

    def read(found: bytes | OSError) -> None:
        timer.cancel()
        flight.exchange = None
        if isinstance(found, bytes):
            flight.end(replace(reply, body=found))
        else:
            flight.give_up(f"{flight.here.host}: its body could not be kept on disk: {found.strerror}")

    def late() -> None:
        flight.exchange = None
        waiting()
        flight.give_up(no_room(flight.here.host, request))

    def call_off() -> None:
        timer.cancel()
        waiting()

    waiting = large.read(read)
    timer = asyncio.get_running_loop().call_at(flight.deadline, late)
    flight.exchange = call_off


def no_room(host: str, request: Request) -> str:
    """Why a look was given up whose body could not be taken in."""
    return f"{host}: no room for its body beside others within {request.seconds:g} s, raise http.bodies in the settings"
