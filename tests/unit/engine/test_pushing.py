"""What is pushed reaches the engine through its store: it is followed, or passed over once it has proved untrue."""

from __future__ import annotations

import json

import numpy as np

from support.virtual import START, World, run_virtually
from unstale.adapters.memory_store import MemoryStore
from unstale.engine.collecting import SIGNALS
from unstale.ports import Claim, Fetched, Listing
from unstale.service.hints import hasten, push

#: others are looked after many times a second: a short unit, or nothing would ever end
UNIT = 10.0


class Written(MemoryStore):
    """A store to which others write too."""

    words = 0

    def moved(self) -> int | None:
        return self.words


def run(kind: str) -> tuple[World, MemoryStore, list[float]]:
    """Source 0 never changes. Once in every unit it is said to have changed, or a poll of it is asked for."""
    rates = np.array([1e-9, *([1.0 / UNIT] * 9)])
    world, store = World(rates, START + 120 * UNIT, seed=2), Written()
    store.add([Listing(f"https://site.example/{i}") for i in range(10)], START)
    said: list[float] = []

    def answer(claim: Claim, now: float) -> Fetched | None:
        if not said or now - said[-1] > UNIT:
            said.append(now)
            store.words += 1
            if kind == "hint":
                push(store, [1], "hint", now)
            elif kind == "poll":
                hasten(store, [1], now)
        return None

    run_virtually(world, 10.0 / UNIT, 120 * UNIT, answer=answer, store=store)
    return world, store, world.polls[0]


def test_a_hint_is_followed_until_it_has_proved_untrue() -> None:
    asked = run("poll")[2]
    _, store, hinted = run("hint")
    # Whoever asks for polls gets them; whoever hints in vain gets them no more.
    assert len(asked) > 90
    early = sum(at < START + 20 * UNIT for at in hinted)
    late = sum(at > START + 60 * UNIT for at in hinted)
    assert early > 10
    assert late < 40
    told = json.loads(store.setting(SIGNALS))["collections"]["-1"]["worth"]
    assert told["members"] == 1
    assert not told["trusted"]
    assert not told["new"]
    assert store.pushes()[0].address == "hint"
