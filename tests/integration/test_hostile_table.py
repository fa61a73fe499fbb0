"""Every way to answer wrongly that there is a name for: what may count as an answer does, nothing else ever."""

from __future__ import annotations

import asyncio

from unstale.adapters.addresses import Gate
from unstale.adapters.http_fetcher import HttpFetcher
from unstale.keeper.outcomes import Answer
from unstale.origin.hostile import KINDS
from unstale.origin.hostile_table import TABLE
from unstale.origin.server import Origin
from unstale.origin.site import Site
from unstale.ports import Fetched, Request


def polled(kinds: list[str]) -> dict[str, Fetched]:
    """What one poll of each brings."""
    with Origin(Site.of(1, 1.0), host="127.0.0.2").in_thread() as zoo:

        async def main() -> list[Fetched]:
            fetcher = HttpFetcher(Gate(["127.0.0.2/32"]), connections=16)
            requests = [Request(f"{zoo.address}/hostile/{kind}", seconds=60.0) for kind in kinds]
            found = await asyncio.gather(*map(fetcher.fetch, requests))
            await fetcher.close()
            return found

        return dict(zip(kinds, asyncio.run(main()), strict=True))


def test_there_are_more_than_a_hundred_and_twenty_ways() -> None:
    assert len(set(KINDS)) == len(KINDS) > 120


def test_what_is_whole_is_taken_and_nothing_else() -> None:
    for kind, found in polled(list(TABLE)).items():
        if TABLE[kind].answers:
            assert found.answer is Answer.CHANGED, (kind, found.reason)
            assert found.body or kind == "empty-200", kind
        else:
            assert (found.answer, found.body) == (Answer.FAILED, None), kind
            # One sentence that names the host, where a redirect leads elsewhere that one, and no fault of ours.
            assert found.reason.startswith("127.0.0.2: ") or "is not public" in found.reason, (kind, found.reason)
            assert "report it" not in found.reason, kind
