"""What is asked of a topology, and what a design of one shape answers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from unstale.core.checks import number
from unstale.core.processes import Poisson, Process
from unstale.core.processes.named import named
from unstale.core.replication.redundancy import whole
from unstale.core.staleness import freshness as one_freshness
from unstale.errors import InfeasibleError, InputError, require, sentence
from unstale.frozen import dataclass
from unstale.units import parse_rate

SHAPES = ("single", "independent", "turns", "redundancy", "tree", "cooperation", "combined")
#: beyond this, cooperation takes minutes
MOST_MACHINES = 100_000


@dataclass(frozen=True)
class Question:
    """What an operator asks: this source, so many machines, this capacity; clients shall see this freshness.

    `changes` is a process or text such as `2/h` (Poisson) or `pareto:1.5 2/h`; rates are text or per day.
    `capacity` is what one machine can send and answer together; `source_limit` what the source answers, as much as one
    machine unless given [004 eq. 30]. `shapes` are those allowed.
    """

    changes: Process | str | float
    machines: int
    capacity: str | float
    freshness: float
    source_limit: str | float | None = None
    shapes: Sequence[str] = SHAPES

    def __post_init__(self) -> None:
        _ = self.process, self.count, self.limit, self.source, self.target
        known = isinstance(self.shapes, list | tuple) and len(self.shapes) > 0
        require(known, "shapes", repr(self.shapes), "must be a list of shapes", f"choose from {', '.join(SHAPES)}")
        for shape in self.shapes:
            require(shape in SHAPES, "shape", repr(shape), "is not known", f"use {', '.join(SHAPES)}")

    @cached_property
    def process(self) -> Process:
        """How the source changes, per day."""
        return self.changes if isinstance(self.changes, Process) else _changes(self.changes)

    @cached_property
    def count(self) -> int:
        """The number of machines."""
        require(not isinstance(self.machines, bool), "machines", self.machines, "must be a number", "write 20")
        number("machines", self.machines, least=1, most=MOST_MACHINES, remedy="count the machines that can serve")
        return whole("machines", self.machines)

    @cached_property
    def limit(self) -> float:
        """Requests per day that a machine can send and answer."""
        return _rate("capacity", self.capacity)

    @cached_property
    def source(self) -> float:
        """Polls per day that the source answers."""
        return self.limit if self.source_limit is None else _rate("source_limit", self.source_limit)

    @cached_property
    def target(self) -> float:
        """The freshness that clients shall see."""
        require(not isinstance(self.freshness, bool), "freshness", self.freshness, "must be a number", "try 0.9")
        level = number("freshness", self.freshness, above=0, remedy="give a share of time, such as 0.9")
        if level >= 1:
            rule = f"is out of reach of any finite number of polls: these machines come to {ceiling(self):.6g}"
            raise InfeasibleError(sentence("freshness", f"{level:g}", rule, "ask for less"))
        return level


@dataclass(frozen=True, slots=True)
class Design:
    """The best that one shape can do; all rates per day.

    If `problem` says why it cannot be, `freshness` is the best within reach, and the rest is 0.
    """

    shape: str
    #: what clients see, at every machine, at the least
    freshness: float
    #: requests of clients that all machines answer together
    clients: float = 0.0
    #: machines at work; of a tree or a combination, at each depth from the top down
    machines: int = 0
    levels: tuple[int, ...] = ()
    #: machines that one client asks, to take the freshest answer
    asked: int = 1
    #: polls that each machine sends to the source, or to the machine above it; of a combination, at the top
    sync_rate: float = 0.0
    #: questions that each machine sends to random peers, one at a time; of a combination, those at the top only
    peer_rate: float = 0.0
    #: polls that the source receives
    source_polls: float = 0.0
    problem: str = ""
    #: polls of each machine by depth, where they differ
    rates: tuple[float, ...] = ()

    @property
    def feasible(self) -> bool:
        """Can this shape reach the target, with something left for clients?"""
        return not self.problem

    @property
    def depth(self) -> int:
        """Polls between the source and the machines farthest from it."""
        return len(self.levels) or 1

    @property
    def branching(self) -> int:
        """The most machines of a tree that poll one and the same."""
        return max((-(-below // above) for above, below in zip(self.levels, self.levels[1:], strict=False)), default=0)


def ceiling(question: Question) -> float:
    """The freshness that no design of these machines exceeds: even polls, as many as all of them can send.

    >>> round(ceiling(Question(1.0, machines=2, capacity=5.0, freshness=0.5, source_limit=100.0)), 6)
    0.951626
    """
    return float(one_freshness(question.process, min(question.source, question.count * question.limit)))


def out_of_reach(question: Question, shape: str, best: float, words: str) -> Design:
    """No design: the words lead to the best freshness that there is."""
    rule = f"is out of reach: {words} {below(best)}"
    return Design(shape, best, problem=sentence("freshness", f"{question.target:g}", rule, remedy(question)))


def too_few(shape: str) -> Design:
    """No design, since there is one machine only."""
    return Design(shape, 0.0, problem=sentence("machines", 1, f"is too few for {shape}", "give 2 or more"))


def remedy(question: Question) -> str:
    """What would help: more of what there is least of."""
    scarce = "the capacity" if question.limit <= question.source else "the source limit"
    return f"lower it, or raise {scarce}"


def below(freshness: float) -> str:
    """Four digits, rounded down: what is said to be within reach must be so."""
    return f"{np.floor(freshness * 1e4) / 1e4:.4f}"


def floor(share: float) -> int:
    """A whole number of machines, where rounding alone must not cost one of them."""
    return int(min(share * (1.0 + 1e-12), MOST_MACHINES))


def _rate(name: str, value: object) -> float:
    plain = isinstance(value, str | int | float) and not isinstance(value, bool)
    require(plain, name, repr(value), "is not a rate", "write it like 100/s")
    rate = parse_rate(value, name)  # type: ignore[arg-type]
    require(rate > 0, name, value, "must be above 0", "write it like 100/s")
    return rate


def _changes(text: object) -> Process:
    """`2/h` or `pareto:1.5 2/h` as a process."""
    kind, _, rate = str(text).strip().partition(" ")
    if not kind[:1].isalpha():
        return Poisson(_rate("changes", text))
    if not rate.strip():
        raise InputError(sentence("changes", repr(text), "has no rate", "write it like poisson 2/h"))
    return named(kind, _rate("changes", rate.strip()))
