"""Requests become weights: how they are counted, how they fade, and whose word counts."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from support.asgi import asked
from support.booked import Booked
from unstale.server.requests import FEWEST, HALF_LIFE, PERIOD, SETTING, Weigher, folded, weight_of

DAY = 86400.0


@pytest.fixture
def booked(tmp_path: Path) -> Iterator[Booked]:
    booked = Booked(tmp_path / "b.db", 3)
    yield booked
    booked.close()


def weights(booked: Booked) -> list[float]:
    return [one.weight for one in booked.shelf.listings([1, 2, 3])]


def test_a_steady_stream_is_its_own_rate() -> None:
    # 12 requests in every period of 5 minutes: 3456 a day, once what came before is forgotten.
    rates: dict[int, float] = {}
    for _ in range(int(20 * HALF_LIFE / PERIOD)):
        rates = folded(rates, {1: 12}, PERIOD)
    assert rates[1] == pytest.approx(12 * DAY / PERIOD, rel=2e-3)


def test_the_estimate_is_right_on_average() -> None:
    rng, means = np.random.default_rng(7), []
    for _ in range(200):
        rates: dict[int, float] = {}
        for count in rng.poisson(40.0 / 24.0, 24 * 12):
            rates = folded(rates, {1: int(count)}, 3600.0)
        means.append(rates.get(1, 0.0))
    # A variance of rate · ln 2 / 2 a day: 40 · 0.3466 = 13.9; 5 standard errors of 200, and half a period of fading.
    assert np.mean(means) == pytest.approx(40.0, abs=5 * math.sqrt(13.9 / 200) + 40.0 * (1 / 24) * math.log(2))


def test_what_nobody_asks_for_is_forgotten() -> None:
    rates = folded({}, {"a": 1}, 0.0)
    days = math.log2(rates["a"] / FEWEST)
    assert folded(rates, {}, (days - 0.01) * DAY) != {}
    assert folded(rates, {}, (days + 0.01) * DAY) == {}
    assert folded(rates, {}, -50.0) == rates, "a clock that jumps back makes nothing more"


def test_served_copies_are_counted(booked: Booked) -> None:
    booked.poll(b"a")
    for path in ("/copies/1", "/copies/1", "/copy?source=https://a.example/1", "/copies/9"):
        asked(booked.app, path)
    asked(booked.app, "/copies/3", "HEAD")
    assert booked.app.copies.take() == {1: 2, 2: 1}
    assert booked.app.copies.take() == {}


def test_weights_follow_requests_and_come_back(booked: Booked) -> None:
    weigher = Weigher(booked.service, dict, booked.clock)
    assert weigher.weigh({1: 100, 2: 1, 77: 5}) == 2
    assert weights(booked) == pytest.approx([weight_of(1.0, 100 * math.log(2)), weight_of(1.0, math.log(2)), 1.0])
    edited = booked.store.counters()["edited"]
    booked.now += PERIOD
    assert weigher.weigh({}) == 0, "it moved by a fifth of a per cent"
    assert booked.store.counters()["edited"] == edited, "and the engine need not read anything anew"
    booked.now += 30 * DAY
    assert weigher.weigh({}) == 2
    assert weights(booked) == [1.0, 1.0, 1.0]
    assert b'"sources": {}' in booked.service.setting(SETTING)


def test_who_sets_a_weight_has_the_last_word(booked: Booked) -> None:
    weigher = Weigher(booked.service, dict, booked.clock)
    weigher.weigh({1: 10})
    rate = 10 * math.log(2)
    booked.service.edit([1], {"weight": 5.0})
    weigher.weigh({})
    assert weights(booked)[0] == pytest.approx(weight_of(5.0, rate))
    booked.now += 90 * DAY
    weigher.weigh({})
    assert weights(booked)[0] == 5.0


def test_several_servers_add_up(booked: Booked) -> None:
    one, other = (Weigher(booked.service, dict, booked.clock) for _ in range(2))
    one.weigh({1: 30})
    other.weigh({1: 30})
    assert weights(booked)[0] == pytest.approx(weight_of(1.0, 60 * math.log(2)))


def test_a_state_that_cannot_be_read_begins_anew(booked: Booked) -> None:
    booked.store.record([], settings={SETTING: b'{"at": 1, "sources": [1]}'})
    assert Weigher(booked.service, dict, booked.clock).weigh({1: 10}) == 1


def test_it_goes_on_by_itself(booked: Booked) -> None:
    counts = [{1: 10}, {1: 5}]

    async def play() -> None:
        weigher = Weigher(booked.service, lambda: counts.pop(0) if counts else {}, booked.clock)
        running = asyncio.create_task(weigher.run(0.01))
        while b"10.397" not in booked.service.setting(SETTING):
            await asyncio.sleep(0.01)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    asyncio.run(asyncio.wait_for(play(), 30.0))
    assert weights(booked)[0] == pytest.approx(weight_of(1.0, 15 * math.log(2)))
