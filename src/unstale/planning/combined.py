"""The best design that combines a tree with rates of its own at each depth, cooperation and redundancy.

Rules of this file:
1. The accounting is that of `topology`. The first layer polls the source and may cooperate; every later one polls the
   layer above it, evenly; clients ask any machine that keeps the target, or several with the same parent at the bottom.
2. Below the source a question to a peer costs what a poll of the machine above costs and finds less: so only the first
   layer, which the source limits, asks peers. At given numbers of machines the rest is one convex problem.
3. Changes are Poisson: otherwise layers do not multiply.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.special import lambertw

from unstale.core.inverse import sync_rate_for
from unstale.core.processes import Poisson
from unstale.core.replication.cooperation import cooperative_freshness
from unstale.core.replication.layers import Layer, asked_freshness, layered_freshness
from unstale.core.replication.redundancy import sync_rate_for_freshest
from unstale.core.roots.between import between
from unstale.core.staleness import freshness as one_freshness
from unstale.errors import sentence
from unstale.planning.question import Design, Question, floor, out_of_reach, too_few

#: shares of the staleness that the first layer may have, and of the rest that the second may have
_SHARES, _SPLITS = np.linspace(0.02, 0.98, 49), (0.2, 0.35, 0.5, 0.65, 0.8)
#: numbers of machines that are tried one by one, and beyond them; machines that one client asks besides one
_FIRST, _SOME, _ASKED = 10, 12, (2,)


def combined(question: Question) -> Design:
    """The best of layers with rates of their own, the first cooperating if that helps, clients asking up to two."""
    if question.count < 2:
        return too_few("combined")
    if not isinstance(question.process, Poisson):
        rule = "are not Poisson, and layers multiply only for those"
        return Design("combined", 0.0, problem=sentence("changes", question.changes, rule, "give their rate alone"))
    best, most = None, 0.0
    for asked in (1, *_ASKED):
        for layers in _candidates(question, asked):
            clients = _served(question, layers, asked)
            if clients is not None and clients > most:
                best, most = (layers, asked), clients
    if best is None:
        reached = float(one_freshness(question.process, min(question.source, question.limit)))
        return out_of_reach(question, "combined", reached, "a machine that polls as often as it can comes to")
    layers, asked = best
    return Design(
        "combined",
        question.target,
        most,
        sum(layer.machines for layer in layers),
        tuple(layer.machines for layer in layers),
        asked,
        layers[0].sync_rate,
        layers[0].peer_rate,
        layers[0].machines * layers[0].sync_rate,
        rates=tuple(layer.sync_rate for layer in layers),
    )


def layers_of(design: Design) -> list[Layer]:
    """The layers of a combined design."""
    group = design.levels[0] if design.peer_rate > 0 else 1
    tops = [(group, design.peer_rate)] + [(1, 0.0)] * (design.depth - 1)
    return [Layer(n, rate, *top) for n, rate, top in zip(design.levels, design.rates, tops, strict=True)]


def most_clients(question: Question) -> float:
    """Clients that no design of this accounting can exceed, whoever polls or asks whom; Poisson changes.

    Whatever a machine alone shows, it got by pulls of its own, each of which is at best fresh: to keep the target takes
    even pulls at the rate r of one machine at the source. A pull costs its sender 1, and whoever answers 1 as well, but
    the source, which answers `source_limit`. So n machines have n·capacity − 2·n·r + min(source_limit, n·r) left at
    most. Clients who ask several cost as many answers: they are no more than n·capacity/2.

    >>> bound = most_clients(Question("2/h", machines=20, capacity="100/h", freshness=0.8, source_limit="30/h"))
    >>> round(bound / 24)
    1858
    """
    rate = sync_rate_for(question.process, freshness=question.target)
    alone = question.limit - 2.0 * rate
    # With few machines the source answers all of them; more are added while they have something left.
    fed = min(question.count, question.source / rate)
    one = fed * max(question.limit - rate, 0.0) + (question.count - fed) * max(alone, 0.0)
    return max(one, question.count * question.limit / 2.0)


def _candidates(question: Question, asked: int) -> Iterator[list[Layer]]:
    """Layers worth comparing: all numbers at the top, and below as many as capacities feed."""
    lost = -float(np.log(question.target))
    alone = _rate(question.process.rate, question.target, asked)
    machines = min(question.count, floor(question.source / alone))
    if machines >= asked:
        yield [Layer(machines, alone)]
    for top in _numbers(question.count if asked == 1 else 0):
        whole = _top(question, top, question.target)
        if whole is not None and whole.peer_rate > 0.0:
            yield [whole]
    for share in _SHARES if asked == 1 else _SHARES[::8]:
        target, rest = float(np.exp(-share * lost)), (1.0 - share) * lost
        below = _rate(question.process.rate, float(np.exp(-rest)), asked)
        for top in _numbers(question.count - 1):
            first = _top(question, top, target)
            if first is None:
                continue
            left = question.limit - first.sync_rate - 2.0 * first.peer_rate
            if 1 <= (second := min(question.count - top, top * floor(left / below))) >= asked:
                yield [first, Layer(second, below)]
            if asked == 1 and share in _SHARES[::4]:
                yield from _three(question, first, left, rest)


def _three(question: Question, first: Layer, left: float, rest: float) -> Iterator[list[Layer]]:
    for split in _SPLITS:
        middle, last = (_rate(question.process.rate, float(np.exp(-part * rest)), 1) for part in (split, 1.0 - split))
        for fan in _numbers(floor(left / middle)):
            second = min(first.machines * fan, question.count - first.machines - 1)
            third = min(
                question.count - first.machines - second, second * floor(max(question.limit - middle, 0.0) / last)
            )
            if second > 0 and third > 0:
                yield [first, Layer(second, middle), Layer(third, last)]


def _numbers(most: int) -> list[int]:
    """Whole numbers up to the most, the first ones all, then some."""
    some = np.geomspace(_FIRST, max(most, _FIRST), _SOME).round().astype(int).tolist()
    return sorted({n for n in (*range(1, _FIRST + 1), *some) if n <= most})


def _top(question: Question, machines: int, target: float) -> Layer | None:
    """The first layer at a target: alone and even if the source can feed it, else cooperating; None if neither can."""
    even = _rate(question.process.rate, target, 1)
    if machines * even <= question.source:
        return Layer(machines, even)
    if machines < 2:
        return None
    rate, source = question.process.rate, question.source / machines

    def missing(asks: float) -> float:
        return target - cooperative_freshness(rate, source, asks, machines)

    most = (question.limit - source) / 2.0
    if most <= 0.0 or missing(most) > 0.0:
        return None
    asks = between(missing, 0.0, most, rtol=1e-8) if missing(0.0) > 0.0 else 0.0
    return Layer(machines, source, machines, asks)


def _served(question: Question, layers: list[Layer], asked: int) -> float | None:
    """What polls and answers leave to clients; None where a machine would have to do more than it can."""
    fresh = layered_freshness(question.process.rate, layers)
    total = 0.0
    for i, layer in enumerate(layers):
        below = layers[i + 1] if i + 1 < len(layers) else None
        own = layer.sync_rate + 2.0 * layer.peer_rate
        busiest = -(-below.machines // layer.machines) * below.sync_rate if below else 0.0
        if own + busiest > question.limit:
            return None
        left = layer.machines * (question.limit - own) - (below.machines * below.sync_rate if below else 0.0)
        if below is None:
            total += left / asked
        elif fresh[i] >= question.target:
            total += left
    seen = asked_freshness(question.process.rate, layers, asked)
    assert seen >= question.target * (1.0 - 1e-6), "the layers lose what they were allowed and no more"
    return total if total > 0.0 else None


def _rate(change_rate: float, target: float, asked: int) -> float:
    """The least rate of even polls that keeps a target alone, or asked together."""
    if asked > 1:
        return sync_rate_for_freshest(Poisson(change_rate), target, asked)
    # 1 − e^(−x) = target·x by Lambert's function
    x = 1.0 / target + float(lambertw(-np.exp(-1.0 / target) / target).real)
    return change_rate / x
