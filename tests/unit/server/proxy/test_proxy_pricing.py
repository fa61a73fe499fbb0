"""Asking again by price: its formula, its rule against others, and a cache that follows it."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest
from scipy import integrate, optimize

from support.cache_suite import BEGIN, Stage, date, said
from unstale.server.proxy.fields import Fields
from unstale.server.proxy.pricing import STEP, Known, Pricing, values
from unstale.server.proxy.stored import Stored


@pytest.mark.parametrize("shape", [0.3, 0.999_999_99, 1.0, 1.000_1, 2.5, 30.0])
@pytest.mark.parametrize("age", [1e-6, 0.3, 2.0, 500.0])
def test_values_are_the_integrals(shape: float, age: float) -> None:
    """φ(t) = t·p(t) − ∫p, with p the probability of being stale after t, by quadrature."""

    def stale(t: float) -> float:
        return float(1.0 - (1.7 / (1.7 + t)) ** shape)

    later, now = values(shape, 1.7, age)
    area = integrate.quad(stale, 0.0, age, epsabs=1e-14)[0]
    assert now == pytest.approx(stale(age), rel=1e-6, abs=1e-15)
    assert later == pytest.approx(age * stale(age) - area, rel=1e-5, abs=1e-9)


@pytest.mark.parametrize(("rate", "price"), [(0.1, 0.4), (1.0, 0.5), (5.0, 3.0), (40.0, 20.0)])
def test_the_rule_is_the_best_threshold(rate: float, price: float) -> None:
    """Stale answers and questions at their price, per second, over the cycle of a threshold: least where it pays."""
    shape, exposure = 4.0, 5.0

    def cost(threshold: float) -> float:
        area = integrate.quad(lambda t: values(shape, exposure, t)[1], 0.0, threshold)[0]
        return float((rate * area + price) / (threshold + 1.0 / rate))

    def surplus(t: float) -> float:
        later, stale = values(shape, exposure, t)
        return rate * later + stale - price

    pays = optimize.brentq(surplus, 1e-9, 1e4)
    best = optimize.minimize_scalar(cost, bounds=(0.0, 10.0 * pays + 10.0), method="bounded", options={"xatol": 1e-9})
    assert cost(pays) == pytest.approx(best.fun, rel=1e-7)


def stored(address: str, at: float, body: bytes = b"a", **more: str) -> Stored:
    lines = Fields.of([(name.replace("_", "-"), value) for name, value in more.items()])
    return Stored(address, 200, lines, body, at, 0.0, 1e9, {}, told=False)


def replayed(budget: float | None, ttl: float, seconds: float = 600.0) -> tuple[float, float]:
    """Shares of fresh answers and questions a second of what 200 objects are asked for; by price, or by a lifetime."""
    rng, many = np.random.default_rng(7), 200
    popular = 1.0 / np.arange(1, many + 1)
    change = rng.lognormal(0.0, 2.0, many) / 30.0
    count = rng.poisson(40.0 * seconds)
    times, wanted = np.sort(rng.uniform(0, seconds, count)), rng.choice(many, count, p=popular / popular.sum())
    changes = [np.sort(rng.uniform(0, seconds, rng.poisson(rate * seconds))) for rate in change]
    pricing = Pricing(budget or 1.0, 0.0)
    held: dict[int, Stored] = {}
    fresh = questions = answers = 0
    for now, i in zip(times.tolist(), wanted.tolist(), strict=True):
        version = b"%d" % np.searchsorted(changes[i], now)
        old = held.get(i)
        if old is not None and budget is not None:
            pricing.wanted(str(i), now)
        ask = old is None or (pricing.pays(old, now) if budget is not None else now - old.taken_at >= ttl)
        if ask:
            held[i] = stored(str(i), now, version)
            pricing.took(old, held[i])
        if now > seconds / 3:
            answers += 1
            questions += ask
            fresh += held[i].body == version
    return fresh / answers, questions / (seconds * 2 / 3)


@pytest.mark.parametrize("ttl", [5.0, 30.0])
def test_more_answers_are_fresh_for_the_same_questions_than_with_any_one_lifetime(ttl: float) -> None:
    plainly, asked = replayed(None, ttl)
    by_price, paid = replayed(asked, ttl)
    assert paid == pytest.approx(asked, rel=0.05)
    # A third of what was stale is fresh.
    assert 1.0 - by_price < 0.67 * (1.0 - plainly)


def test_the_price_rises_with_questions_and_falls_with_time() -> None:
    pricing = Pricing(2.0, 0.0)
    assert pricing.price(0.0) == 1.0
    first = stored("a", 0.0)
    pricing.took(None, first)
    assert pricing.price(0.0) == 1.0, "a first answer cannot be avoided"
    pricing.took(first, stored("a", 0.0))
    assert pricing.price(0.0) == pytest.approx(np.exp(STEP))
    assert pricing.price(0.5) == pytest.approx(1.0)
    assert pricing.price(0.2) == pytest.approx(1.0), "a clock that goes back costs nothing"
    assert pricing.price(1e9) == pytest.approx(np.exp(-9.0))


def test_beliefs_begin_with_what_the_origin_says_and_follow_what_comes() -> None:
    pricing = Pricing(1.0, BEGIN)
    first = stored("a", BEGIN, last_modified=date(-500))
    pricing.took(None, first)
    assert pricing.known["a"] == Known(1.0, 500.0, 0.0, BEGIN)
    same, other = stored("a", BEGIN + 10), stored("a", BEGIN + 20, b"b")
    pricing.took(first, same)
    assert (pricing.known["a"].shape, pricing.known["a"].exposure) == (1.0, 510.0)
    pricing.took(same, other)
    assert pricing.known["a"].shape > 1.9
    for turn in range(200):
        pricing.took(other, stored("a", BEGIN + 20 + 0.1 * turn, b"%d" % turn))
    assert pricing.known["a"].shape <= 30.0
    pricing.gone("a")
    assert pricing.known == {}


def test_requests_are_counted_and_old_ones_forgotten() -> None:
    pricing = Pricing(1.0, 0.0)
    pricing.wanted("a", 0.0)
    assert pricing.known == {}
    pricing.took(None, stored("a", 0.0))
    for hour in range(24 * 10):
        pricing.wanted("a", 3600.0 * hour)
    assert pricing.known["a"].request_rate(3600.0 * 24 * 10) == pytest.approx(1 / 3600, rel=0.05)
    assert pricing.known["a"].requests < 60


# In the cache.


def test_where_the_origin_leaves_it_to_us_the_price_decides() -> None:
    async def play() -> None:
        pricing = Pricing(1.0, BEGIN)
        news = said(200, b"new", etag='"2"', date=date(1000))
        stage = Stage(said(200, b"old", etag='"1"', last_modified=date(-100)), news, pricing=pricing)
        assert (await stage.get()).body == b"old"  # type: ignore[union-attr]
        stage.wait(0.01)
        got = await stage.get()
        assert got is not None
        assert (got.body, got.how, stage.count) == (b"old", "hit; detail=by-price", 1)
        stage.wait(1000.0)
        got = await stage.get(cache_control="only-if-cached")
        assert got is not None
        assert (got.body, stage.count) == (b"old", 1)
        got = await stage.get()
        assert got is not None
        assert (got.body, stage.count, stage.sent("if-none-match")) == (b"new", 2, '"1"')
        assert got.how == "fwd=stale; fwd-status=200; stored"

    asyncio.run(play())


@pytest.mark.parametrize(
    ("headers", "pause"),
    [({"cache_control": "max-age=60"}, 61.0), ({"etag": '"1"', "cache_control": "no-cache"}, 0.0), ({}, 0.0)],
)
def test_what_the_origin_says_holds(headers: dict[str, str], pause: float) -> None:
    async def play() -> int:
        stage = Stage(said(200, b"old", **headers), said(200, b"new"), pricing=Pricing(1e-6, BEGIN))
        await stage.get()
        stage.wait(pause)
        await stage.get()
        return stage.count

    assert asyncio.run(play()) == 2


def test_behind_a_stale_answer_is_asked_only_if_that_pays() -> None:
    async def play(level: float) -> int:
        pricing = Pricing(1e-9, BEGIN)
        pricing._level = level
        control = "max-age=1, stale-while-revalidate=600"
        stage = Stage(
            said(200, b"old", cache_control=control), said(200, b"new", cache_control=control), pricing=pricing
        )
        await stage.get()
        stage.wait(300.0)
        got = await stage.get()
        assert got is not None
        assert got.body == b"old"
        for _ in range(20):
            await asyncio.sleep(0)
        return stage.count

    assert asyncio.run(play(-9.0)) == 2
    assert asyncio.run(play(9.0)) == 1
