"""A stock that outlives its process: what is kept is written behind, and read when the proxy starts again.

Rules of this file:
1. Nobody waits for the disk: what changed is written a moment later, beside the loop. What a crash takes is asked for
   again, which a cache can bear.
2. A row that cannot be read is left out. Nothing is believed of it that was not written whole.
3. Bodies are written once: a 304 changes only what is said of them.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import Any, Protocol

from unstale.errors import StoreError
from unstale.logs import log
from unstale.server.proxy.fields import Fields
from unstale.server.proxy.pricing import Known, Pricing
from unstale.server.proxy.stored import Stock, Stored, StoredPart

#: seconds between two writes
EVERY = 1.0
#: an address, what is said of its variants, and their bodies in a row; None if those are as before
Row = tuple[str, bytes, bytes | None]


class Rows(Protocol):
    """Where rows are kept."""

    def load(self) -> Iterable[tuple[str, bytes, bytes]]:
        """All rows, those that were written last behind."""

    def write(self, rows: Sequence[Row], gone: Sequence[str]) -> None:
        """Write these and remove those, all or nothing; StoreError if it cannot be."""

    def close(self) -> None:
        """Give back the file."""


class Durable:
    """Hears of a stock's changes and writes them to `rows`; keeps the contract `Watcher`."""

    def __init__(self, rows: Rows, pricing: Pricing | None = None) -> None:
        self._rows, self._pricing = rows, pricing
        self._stock: Stock | None = None
        self._changed: set[str] = set()
        self._bodies: dict[str, tuple[bytes, ...]] = {}
        self._task: asyncio.Task[None] | None = None

    def fill(self, stock: Stock) -> None:
        """Put what was kept before into a stock, and watch it from now on."""
        for address, told, body in self._rows.load():
            with suppress(ValueError, KeyError, TypeError):
                document = json.loads(told)
                variants = _variants(address, document["variants"], body)
                for stored in reversed(variants):
                    stock.put(stored)
                if self._pricing is not None and document["known"]:
                    self._pricing.known[address] = Known(**document["known"])
                self._bodies[address] = tuple(stored.body for stored in variants)
        self._stock = stock
        # Those for which there was no room any more.
        self._changed = {address for address in self._bodies if address not in stock}

    def took(self, old: Stored | None, new: Stored) -> None:
        """To be written."""
        if self._stock is not None:
            self._note(new.address)

    def gone(self, address: str) -> None:
        """To be removed."""
        if self._stock is not None:
            self._note(address)

    async def close(self) -> None:
        """Write what is left, and give back the file."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._write()
        self._rows.close()

    def _note(self, address: str) -> None:
        self._changed.add(address)
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._write_behind())

    async def _write_behind(self) -> None:
        while self._changed:
            await asyncio.sleep(EVERY)
            await self._write()

    async def _write(self) -> None:
        assert self._stock is not None
        changed, self._changed = self._changed, set()
        rows: list[Row] = []
        for address in changed:
            if variants := self._stock.variants(address):
                rows.append(self._row(address, variants))
            else:
                self._bodies.pop(address, None)
        gone = [address for address in changed if address not in self._stock]
        if rows or gone:
            try:
                await asyncio.shield(asyncio.to_thread(self._rows.write, rows, gone))
            except StoreError as error:
                # It is still in memory; with the next change of it it is tried again.
                self._bodies.clear()
                log("stock_unwritten", {"rows": len(rows)}, error)

    def _row(self, address: str, variants: list[Stored]) -> Row:
        bodies = tuple(stored.body for stored in variants)
        known = self._pricing.known.get(address) if self._pricing is not None else None
        told = {"variants": [_told(stored) for stored in variants], "known": asdict(known) if known else None}
        before = self._bodies.get(address, ())
        same = len(before) == len(bodies) and all(old is new for old, new in zip(before, bodies, strict=True))
        self._bodies[address] = bodies
        return address, json.dumps(told).encode(), None if same else b"".join(bodies)


def _told(stored: Stored) -> dict[str, Any]:
    part = stored.part
    return {
        "status": stored.status,
        "fields": stored.fields.lines,
        "bytes": len(stored.body),
        "taken_at": stored.taken_at,
        "initial_age": stored.initial_age,
        "lifetime": stored.lifetime,
        "control": stored.control,
        "selecting": stored.selecting,
        "asked": stored.asked.lines,
        "part": None if part is None else [part.first, part.last, part.total],
        "told": stored.told,
    }


def _variants(address: str, told: list[dict[str, Any]], body: bytes) -> list[Stored]:
    found, at = [], 0
    for one in told:
        until = at + one.pop("bytes")
        pairs = {name: tuple((key, value) for key, value in one.pop(name)) for name in ("fields", "asked", "selecting")}
        part = one.pop("part")
        found.append(
            Stored(
                address,
                fields=Fields(pairs["fields"]),
                asked=Fields(pairs["asked"]),
                selecting=pairs["selecting"],
                body=body[at:until],
                part=StoredPart(*part) if part else None,
                **one,
            )
        )
        at = until
    if at != len(body):
        raise ValueError("the bodies are not those that are told of")
    return found
