"""How fast a carousel is laid out, and how even it is: ours, plain and compiled, against two simpler ways.

random   one weighted draw per slot: the fastest way, and purely random polls
naive    the same rule as ours, looking at every source in every slot (O(n) instead of O(log n))

Run: python bench/bench_carousel.py
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from harness import Table
from unstale.core import carousel as module

Floats = NDArray[np.float64]
Slots = NDArray[np.intp]


def random_draws(share: Floats, slots: int) -> Slots:
    edges = np.cumsum(share / share.sum())
    return np.minimum(np.searchsorted(edges, np.random.default_rng(1).random(slots)), len(share) - 1)


def naive(share: Floats, slots: int) -> Slots:
    p = share / share.sum()
    margin = 1.0 / (2 * len(p) - 2)
    polled = np.zeros(len(p))
    out = np.empty(slots, np.intp)
    for t in range(1, slots + 1):
        lag = t * p - polled
        out[t - 1] = np.argmin(np.where(lag >= margin * (1 - 1e-12), (1 - margin - lag) / p, np.inf))
        polled[out[t - 1]] += 1
    return out


def compiled(share: Floats, slots: int) -> Slots:
    return _with_threshold(1, share, slots)


def plain(share: Floats, slots: int) -> Slots:
    return _with_threshold(2**62, share, slots)


def _with_threshold(threshold: int, share: Floats, slots: int) -> Slots:
    kept, module.WORTH_COMPILING = module.WORTH_COMPILING, threshold
    try:
        return module.carousel(share, slots)
    finally:
        module.WORTH_COMPILING = kept


def unevenness(slots: Slots, share: Floats) -> float:
    """Largest |polls − share of slots| at the end, over sources: below 1 for a carousel."""
    counts = np.bincount(slots, minlength=len(share))
    return float(np.max(np.abs(counts - len(slots) * share / share.sum())))


def main() -> None:
    table = Table("carousel", "laying out a carousel")
    compiled(np.ones(3), 10)
    for n, slots in ((100, 2_000), (10_000, 2_000), (1_000_000, 1_000_000)):
        share = np.random.default_rng(0).exponential(1.0, n) ** 2
        ways = {"compiled": compiled, "plain": plain, "random": random_draws}
        if n < 1_000_000:
            ways["naive"] = naive
        table.measure(
            f"{n} sources, {slots} slots",
            {name: partial(way, share, slots) for name, way in ways.items()},
            reference="compiled",
            rounds=3,
        )
        long = 5_000_000
        seconds = table.measure(
            f"{n} sources, {long} slots",
            {"compiled": partial(compiled, share, long), "random": partial(random_draws, share, long)},
            reference="compiled",
            rounds=1,
        )
        table.fact(f"ns per slot, {n} sources", round(seconds["compiled"] / long * 1e9))
        table.fact(f"unevenness, {n} sources", round(unevenness(compiled(share, long), share), 6), "1")
        drawn = unevenness(random_draws(share, long), share)
        table.fact(f"unevenness of random draws, {n} sources", round(drawn, 1))
    table.write()


if __name__ == "__main__":
    main()
