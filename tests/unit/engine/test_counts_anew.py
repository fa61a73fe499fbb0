"""After somebody has said what counts, nothing false is learned: what counted before makes no change."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest

from support.virtual import START, Shared, World, run_virtually
from unstale.keeper.outcomes import Answer
from unstale.ports import Claim, Fetched, Listing
from unstale.service.hints import hasten


def page(options: dict[str, object] | None = None) -> Listing:
    return Listing("memory:0", kind="memory", shortest=86400.0, options=options or {})


NUMBERS: dict[str, object] = {"normalise": {"numbers": True}}


@pytest.mark.parametrize(("before", "after"), [({}, NUMBERS), (NUMBERS, {})])
def test_the_first_poll_after_an_edit_is_judged_by_what_counts_now(
    before: dict[str, object], after: dict[str, object]
) -> None:
    store, news = Shared(), ["Nine trains, 12:00"]

    def content(claim: Claim) -> Callable[[bytes, str], bytes] | None:
        return (lambda body, kind: re.sub(rb"\d", b"", body)) if claim.options.get("normalise") else None

    def answer(claim: Claim, now: float) -> Fetched:
        return Fetched(Answer.CHANGED, now, body=news[-1].encode(), media_type="text/plain")

    def again(*said: Callable[[], object]) -> Callable[[], None]:
        def act() -> None:
            for one in said:
                one()
            hasten(store, [1], START)
            store.written += 1

        return act

    def edit() -> None:
        store.add([page(after)], START + 30.0, duplicates="replace")

    # Leaving numbers out, the clock goes on; counting everything again, it stands.
    later = "Nine trains, 12:01" if after else news[0]
    run_virtually(
        World(np.ones(1), START + 200.0),
        1.0,
        120.0,
        listing=lambda i: page(before),
        store=store,
        answer=answer,
        content=content,
        visits={
            30.0: again(edit, lambda: news.append(later)),
            60.0: again(),
            90.0: again(lambda: news.append("Ten trains, 12:02")),
        },
    )
    seen = [one.answer for one in reversed(store.observations(1))]
    assert seen == [Answer.CHANGED, Answer.UNCHANGED, Answer.UNCHANGED, Answer.CHANGED]
    assert store.versions(1) == [2, 1]
