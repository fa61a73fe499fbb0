"""One source, several machines: how should they poll it, and each other? The best design of each shape, side by side.

Rules of this file:
1. One accounting for all shapes: a request costs one unit of capacity where it is sent and one where it is answered,
   whoever sends it: a client, a machine below, a peer. Clients themselves have no capacity of ours. The source
   answers `source_limit` polls at most.
2. Every machine that serves clients keeps the target; what its polls and answers leave of its capacity, clients get.
   So each design polls as rarely as the target allows.
3. Polls are even, at moments that have nothing to do with each other; but those of cooperating machines, whose
   freshness is known for exponential gaps, are exponential.
4. What the winner serves stands beside what no design at all can exceed: its certificate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from unstale.core.checks import Floats
from unstale.errors import InfeasibleError, sentence
from unstale.frozen import dataclass
from unstale.planning.combined import combined, most_clients
from unstale.planning.cooperating import cooperation
from unstale.planning.question import SHAPES, Design, Question, below, ceiling, remedy
from unstale.planning.shapes import independent, redundancy, single, tabulated, tree, turns

#: two designs that differ by less answer equally many
_EQUAL = 1e-9
#: rounds in which a combination is sought for a figure, where 1 % is not seen
_DRAWN = 3

_BEST: dict[str, Callable[[Question], Design]] = {
    "single": single,
    "independent": independent,
    "turns": turns,
    "redundancy": redundancy,
    "tree": tree,
    "cooperation": cooperation,
    "combined": combined,
}


@dataclass(frozen=True, slots=True)
class Topology:
    """Every allowed shape's best design, most clients first, and why the first of them wins."""

    question: Question
    designs: tuple[Design, ...]
    reason: str

    @property
    def winner(self) -> Design:
        """The design that answers most clients at the target; of equals, the one with fewer polls of the source."""
        return self.designs[0]

    @property
    def bound(self) -> float:
        """Clients that no design can exceed, of these shapes or others; see `combined.most_clients`."""
        return most_clients(self.question)


def topology(question: Question) -> Topology:
    """How should machines poll a source, and each other, to serve most clients at a freshness?

    The best design of each allowed shape under one accounting: every request costs one unit of capacity where it is
    sent and one where it is answered. The winner answers most clients; an InfeasibleError names the best reachable
    freshness if no shape reaches the target. [003 sect. VI-D, 004 sects. V–VII; unlike 004 eq. 30, answers to
    peers are charged, as those to the level below are in a tree].

    >>> found = topology(Question("2/h", machines=20, capacity="100/h", freshness=0.8, source_limit="30/h"))
    >>> found.winner.shape, found.winner.levels, round(found.winner.clients / 24)
    ('combined', (2, 18), 1747)
    """
    order = {shape: place for place, shape in enumerate(SHAPES)}
    designs = [_BEST[shape](question) for shape in sorted(set(question.shapes), key=order.__getitem__)]
    most = max(design.clients for design in designs)
    if not any(design.feasible for design in designs):
        closest = max(designs, key=lambda design: design.freshness)
        rule = f"is out of reach: {closest.shape} comes closest, to {below(closest.freshness)}"
        raise InfeasibleError(sentence("freshness", f"{question.target:g}", rule, remedy(question)))
    equal = [design for design in designs if design.feasible and design.clients >= most * (1.0 - _EQUAL)]
    # but for the last digits, in which a combination that is one of the plain shapes may differ from it
    best = min(equal, key=lambda design: float(f"{design.source_polls:.9g}"))
    rest = sorted((design for design in designs if design is not best), key=lambda design: -design.clients)
    return Topology(question, (best, *rest), _reason(question, best, rest))


def curves(found: Topology, points: int = 40) -> dict[str, tuple[Floats, Floats]]:
    """For each allowed shape: freshness, and the clients served per day by its best design there; 0 out of reach.

    The rates of trees are interpolated, and combinations sought less long, which is good for a figure.

    >>> found = topology(Question(1.0, machines=4, capacity=10.0, freshness=0.5, shapes=["single"]))
    >>> fresh, clients = curves(found, 3)["single"]
    >>> fresh.round(2).tolist(), clients.round(2).tolist()
    ([0.02, 0.49, 0.5, 0.95], [9.98, 9.4, 9.37, 0.02])
    """
    question = found.question
    top = ceiling(question)
    even = np.linspace(min(0.02, top / 2), top * 0.9999, points)
    targets = np.sort(np.append(even, question.target))
    best = dict(_BEST) | {"combined": partial(combined, rounds=_DRAWN)}
    if "tree" in question.shapes:
        deepest = max([design.depth for design in found.designs] + [2]) + 1
        best["tree"] = partial(tree, rate_at=tabulated(question.process, min(deepest, question.count)))
    drawn = {}
    for design in found.designs:
        asked = (replace(question, freshness=float(target)) for target in targets)
        drawn[design.shape] = targets, np.array([best[design.shape](each).clients for each in asked])
    return drawn


def _reason(question: Question, best: Design, rest: Sequence[Design]) -> str:
    """Why the winner wins, in one sentence."""
    alone = independent(question)
    if question.count == 1:
        why = "there is one machine"
    elif not alone.feasible:
        why = "no machine can poll often enough by itself"
    elif alone.machines == question.count and best.shape == "independent":
        why = "the source can feed every machine, and nothing costs less than that"
    elif alone.machines == question.count:
        why = f"to poll by itself takes {100 * alone.sync_rate / question.limit:.3g} % of a machine's capacity"
    else:
        why = f"the source can feed only {alone.machines:,} of {question.count:,} machines by itself"
    others = [design for design in rest if design.feasible]
    if not others:
        return f"{best.shape}: {why}, and no other shape allowed reaches the target"
    more = best.clients / others[0].clients - 1.0
    if more < 5e-4:
        ahead = "as many clients as"
    else:
        ahead = f"{100 * more:.3g} % more clients than" if more < 1 else f"{more + 1:,.3g} times the clients of"
    return f"{best.shape}: {why}; it serves {ahead} {others[0].shape}, the next best"


__all__ = ["SHAPES", "Design", "Question", "Topology", "ceiling", "curves", "topology"]
