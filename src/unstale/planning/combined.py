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
from itertools import product

import numpy as np
from scipy.special import lambertw

from unstale.core.checks import Floats
from unstale.core.inverse import sync_rate_for
from unstale.core.processes import Constant, Poisson
from unstale.core.replication.cooperation import cooperative_freshness
from unstale.core.replication.layers import Layer, asked_freshness, layered_freshness
from unstale.core.replication.redundancy import freshest_freshness
from unstale.core.roots.between import between
from unstale.core.staleness import freshness as one_freshness
from unstale.errors import sentence
from unstale.planning.question import Design, Question, floor, out_of_reach, too_few

#: the deepest tree; shares of what may be lost that are tried in one round, and rounds in which they move less and less
_DEEPEST, _TRIED, ROUNDS = 6, 120, 16
#: shares of a first layer that cooperates, and its numbers of machines: the first ones, and some beyond them
_SHARES, _FIRST, _SOME = (0.2, 0.35, 0.5, 0.65, 0.8, 0.9), 10, 8


def combined(question: Question, rounds: int = ROUNDS) -> Design:
    """The best of layers with rates of their own, the first cooperating if that helps, clients asking up to two."""
    if question.count < 2:
        return too_few("combined")
    if not isinstance(question.process, Poisson):
        rule = "are not Poisson, and layers multiply only for those"
        return Design("combined", 0.0, problem=sentence("changes", question.changes, rule, "give their rate alone"))
    best, most = None, 0.0
    for asked in (1, 2):
        for layers in _candidates(question, asked, rounds):
            clients = _served(question, layers, asked)
            if clients is not None and clients > most:
                best, most = (layers, asked), clients
    if best is None:
        alone = float(one_freshness(question.process, min(question.source, question.limit)))
        each = Constant(1.0 / min(question.source / 2.0, question.limit))
        reached = max(alone, freshest_freshness(question.process, each, 2))
        return out_of_reach(question, "combined", reached, "one machine, or two asked together, comes to")
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
    """Clients that no design of this accounting can exceed, whoever polls or asks whom, and however changes come.

    Whoever shows the target got it by pulls, each of which is at best fresh, and even pulls are best [003 theorem 10]:
    so r a day, the rate of one machine at the source, by itself or summed over those that one client asks. A pull costs
    its sender 1, and whoever answers it 1, but the source, which answers `source_limit`. Of n machines let n1 pull r.
    Weigh what one of them has left with 1, and what another has that pulls p < r with `share/2 + (1 − share)·p/r`,
    `share` such that pairs which pull r/2 are best: then whoever is asked by one client weighs 1 together, and no more
    clients are served than there is weight. The others may answer pulls at their lower weight; the best n1 is taken.

    >>> bound = most_clients(Question("2/h", machines=20, capacity="100/h", freshness=0.8, source_limit="30/h"))
    >>> round(bound / 24)
    1858
    """
    rate, limit = sync_rate_for(question.process, freshness=question.target), question.limit
    if rate >= limit:
        # nobody can show the target alone
        return question.count * limit * limit / (4.0 * rate)
    share = 2.0 * (limit - rate) / (2.0 * limit - rate)
    alone = np.arange(question.count + 1.0)
    others = question.count - alone
    answers = np.maximum(alone * rate - question.source, 0.0)
    theirs = np.minimum(answers, others * limit)
    clients = alone * (limit - rate) - (answers - theirs) + others * (limit - rate / 2.0) / 2.0 - theirs * share / 2.0
    return float(clients.max())


def _candidates(question: Question, asked: int, rounds: int) -> Iterator[list[Layer]]:
    """Layers worth comparing: machines on their own at each depth, and few of them cooperating at the top."""
    for depth in range(1, min(_DEEPEST if asked == 1 else 2, question.count) + 1):
        yield from _alone(question, depth, asked, rounds)
    if asked == 1 and rounds == ROUNDS:
        for top in _numbers(question.count):
            for share in (1.0, *_SHARES):
                yield from _talking(question, top, share)


def _alone(question: Question, depth: int, asked: int, rounds: int) -> Iterator[list[Layer]]:
    """The best layers of one depth without cooperation: shares of what may be lost, tried and moved about."""
    rng = np.random.default_rng(depth)
    # Equal shares are a tree with one rate; the others give the top more, or less.
    shares = np.exp(np.outer(np.linspace(-3.0, 3.0, 61), np.arange(depth)))
    best: tuple[float, list[Layer]] | None = None
    for spread in (0.0, *np.geomspace(1.0, 1e-4, ROUNDS)[:rounds]):
        if spread:
            shares = shares[0] * np.exp(spread * rng.standard_normal((_TRIED, depth)))
        shares = shares / shares.sum(axis=1, keepdims=True)
        rates = _rates(question, shares, asked)
        clients, machines = _dealt(question, rates, asked)
        place = int(np.argmax(clients))
        if best is None or clients[place] > best[0]:
            layers = [Layer(int(n), float(r)) for n, r in zip(machines[place], rates[place], strict=True)]
            best, centre = (float(clients[place]), layers), shares[place : place + 1]
        shares = centre
        if depth == 1:
            break
    if best is not None and best[0] > 0.0:
        yield best[1]


def _dealt(question: Question, rates: Floats, asked: int) -> tuple[Floats, Floats]:
    """For each row of rates by depth: clients, and the numbers of machines with which they are most; 0 if none fit.

    Clients are linear in the numbers: so each depth has as few machines as feed the rest, or as many as can be fed.
    """
    depth, limit, count = rates.shape[1], question.limit, float(question.count)
    with np.errstate(all="ignore"):
        fan = np.floor((limit - rates[:, :-1]) / rates[:, 1:] * (1.0 + 1e-12))
        top = np.minimum(np.floor(question.source / rates[:, 0] * (1.0 + 1e-12)), count - depth + 1)
    # machines that hang on one of each depth at most, itself included
    fed = [np.ones(len(rates))]
    for i in range(depth - 2, -1, -1):
        fed.insert(0, 1.0 + np.maximum(fan[:, i], 0.0) * fed[0])
    most, numbers = np.zeros(len(rates)), np.zeros_like(rates)
    for choice in product((False, True), repeat=depth - 1):
        machines, left = np.zeros_like(rates), np.full(len(rates), count)
        for i in range(depth):
            able = top if i == 0 else np.minimum(fan[:, i - 1] * machines[:, i - 1], left - (depth - 1 - i))
            few = i < depth - 1 and not choice[i]
            machines[:, i] = np.minimum(able, np.ceil(left / fed[i])) if few else able
            left = left - machines[:, i]
        # what a machine sends, and what the one above answers
        spent = rates * np.where(np.arange(depth) > 0, 2.0, 1.0)
        own = machines * (limit - spent)
        last = machines[:, -1] * (limit - rates[:, -1])
        clients = own.sum(axis=1) - (1.0 - 1.0 / asked) * last
        good = np.all(machines >= 1, axis=1) & np.all(rates < limit, axis=1) & (machines[:, -1] >= asked)
        better = good & (clients > most)
        most, numbers = np.where(better, clients, most), np.where(better[:, None], machines, numbers)
    return most, numbers


def _talking(question: Question, top: int, share: float) -> Iterator[list[Layer]]:
    """A first layer that cooperates since the source cannot feed it, and machines below it if a share is left."""
    first = _top(question, top, question.target**share)
    if first is None or first.peer_rate == 0.0:
        return
    if share == 1.0:
        yield [first]
        return
    below = float(_rate(question.process.rate, np.array(question.target ** (1.0 - share))))
    left = question.limit - first.sync_rate - 2.0 * first.peer_rate
    if (second := min(question.count - top, top * floor(left / below))) > 0:
        yield [first, Layer(second, below)]


def _numbers(most: int) -> list[int]:
    """Whole numbers up to the most, the first ones all, then some."""
    some = np.geomspace(_FIRST, max(most, _FIRST), _SOME).round().astype(int).tolist()
    return sorted({n for n in (*range(2, _FIRST + 1), *some) if n <= most})


def _top(question: Question, machines: int, target: float) -> Layer | None:
    """The first layer at a target: alone and even if the source can feed it, else cooperating; None if neither can."""
    even = float(_rate(question.process.rate, np.array(target)))
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


def _rates(question: Question, shares: Floats, asked: int) -> Floats:
    """Rates by depth that lose these shares, in logarithms, of what the target allows to be lost."""
    rates = _rate(question.process.rate, question.target**shares)
    if asked > 1:
        rates[:, -1] = _pair_rate(question.process.rate, question.target ** shares[:, -1])
    return rates


def _pair_rate(change_rate: float, target: Floats) -> Floats:
    """The least rate at which the fresher of two machines keeps a target: 2(x − 1 + e^(−x))/x², by halving."""
    low, high = np.full_like(target, np.log(1e-9)), np.full_like(target, np.log(1e9))
    for _ in range(60):
        middle = (low + high) / 2.0
        x = np.exp(middle)
        fresh = np.where(x < 1e-3, 1.0 - x / 3.0 + x * x / 12.0, 2.0 * (x + np.expm1(-x)) / (x * x))
        low, high = np.where(fresh > target, middle, low), np.where(fresh > target, high, middle)
    return np.asarray(change_rate / np.exp(low))


def _rate(change_rate: float, target: Floats) -> Floats:
    """The least rate of even polls that keeps a target alone: 1 − e^(−x) = target·x, by Lambert's function."""
    x = 1.0 / target + lambertw(-np.exp(-1.0 / target) / target).real
    return np.asarray(change_rate / x)
