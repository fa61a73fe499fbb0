"""Every way to answer wrongly that there is a name for: what may count as an answer does, nothing else ever."""

from __future__ import annotations

import asyncio

from unstale.adapters.addresses import Gate
from unstale.adapters.http_fetcher import HttpFetcher
from unstale.keeper.outcomes import Answer
from unstale.origin.hostile import ALWAYS, KINDS
from unstale.origin.hostile_timed import COME_TO_AN_END, TIMED
from unstale.origin.server import Origin
from unstale.origin.site import Site
from unstale.ports import Fetched, Request


def polled(kinds: list[str], seconds: float = 60.0) -> dict[str, Fetched]:
    """What one poll of each brings."""
    with Origin(Site.of(1, 1.0), host="127.0.0.2").in_thread() as zoo:

        async def main() -> list[Fetched]:
            fetcher = HttpFetcher(Gate(["127.0.0.2/32"]), connections=64)
            requests = [Request(f"{zoo.address}/hostile/{kind}", seconds=seconds, limit=2**20) for kind in kinds]
            found = await asyncio.gather(*map(fetcher.fetch, requests))
            await fetcher.close()
            return found

        return dict(zip(kinds, asyncio.run(main()), strict=True))


def test_there_are_more_than_five_hundred_ways_and_no_two_are_the_same() -> None:
    assert len(set(KINDS)) == len(KINDS) > 500
    assert len({one.speech for one in ALWAYS.values()}) == len(ALWAYS)


def test_what_is_whole_is_taken_and_nothing_else() -> None:
    wrong = []
    answers = polled(list(ALWAYS))
    # Who says nothing of closing and does so may cut the next one on its connection: that one is asked again by itself.
    cut = [kind for kind, found in answers.items() if ALWAYS[kind].answers and found.answer is Answer.FAILED]
    assert len(cut) <= 5
    for kind in cut:
        answers |= polled([kind])
    for kind, found in answers.items():
        if ALWAYS[kind].answers:
            if found.answer is not Answer.CHANGED or not (found.body or kind == "empty-200"):
                wrong.append((kind, found.reason))
            continue
        # One sentence that names the host, where a redirect leads elsewhere that one, and no fault of ours.
        said = found.reason.startswith("127.0.0.2: ") or "is not public" in found.reason
        if (found.answer, found.body) != (Answer.FAILED, None) or not said or "report it" in found.reason:
            wrong.append((kind, found.reason or found.answer))
    assert wrong == []


def test_who_never_comes_to_an_end_has_not_answered_and_who_pauses_has() -> None:
    # So many at once that none waits for another's end.
    for kind, found in polled(list(TIMED), seconds=3.0).items():
        if kind in COME_TO_AN_END:
            assert found.answer is Answer.CHANGED, (kind, found.reason)
        else:
            assert (found.answer, found.body) == (Answer.FAILED, None), kind
            assert "report it" not in found.reason, kind
