"""The experiments: which replicas there are, whom each polls, and the freshness that theory expects of them."""

from __future__ import annotations

import numpy as np

from unstale.core.checks import number
from unstale.core.processes import Constant, Poisson, Process
from unstale.core.replication.cascade import cascade_levels
from unstale.core.replication.cooperation import cooperative_freshness
from unstale.core.replication.following import followed_levels
from unstale.core.replication.layers import Layer, asked_freshness, layered_freshness, parents
from unstale.core.replication.redundancy import freshest_freshness, whole
from unstale.core.replication.spread import Selection, drawn_freshness
from unstale.errors import require
from unstale.frozen import dataclass

TOPOLOGIES = ("single", "cascade", "peers", "redundant", "design")
#: replicas that one machine can run beside each other
MOST = 16
#: how long copies settle before anything is measured, in mean intervals between polls, for each replica on the way
SETTLE = 8.0
#: replicas that may come in place of others while one experiment runs
SPARES = 24
#: changes that are drawn where theory is not in closed form: an error below a thousandth
DRAWN = 100_000
#: seconds until a replica follows the one above it at most: that dates its next look in whole seconds
FOLLOWED = 1.0
#: what a brain that follows may spend, in parts of what it needs to look as often as the one above it
SLACK = 1.5


@dataclass(frozen=True, slots=True)
class Setup:
    """One experiment. Rates are per second and source; everything is memoryless, as the theory wants it.

    `replicas` are there in all; of a cascade each polls the one before it. `asked` are the peers of one contact, or
    the replicas that one reader asks. A design has `layers`, whose rates are those of each depth; machines on their own
    poll evenly there.
    """

    topology: str
    replicas: int
    asked: int = 1
    sources: int = 60
    changes: int = 1200
    change_rate: float = 0.5
    sync_rate: float = 1.0
    peer_rate: float = 1.0
    seed: int = 1
    layers: tuple[Layer, ...] = ()
    #: whether both ends of a contact take what the other has that is newer
    both: bool = False
    #: whom peers ask: any of those that the source lists, or those that had polled it last when they did
    choose: Selection = "random"
    #: how often each peer leaves, another one coming in its place with nothing
    leave_rate: float = 0.0
    #: whether the engine's brain says when to poll, instead of chance: evenly, and right after whoever it follows
    brain: bool = False

    def __post_init__(self) -> None:
        require(
            self.topology in TOPOLOGIES, "topology", repr(self.topology), "is unknown", f"use {', '.join(TOPOLOGIES)}"
        )
        require(
            whole("replicas", self.replicas) <= MOST,
            "replicas",
            self.replicas,
            f"must be at most {MOST}",
            "one machine cannot run more beside each other",
        )
        others = self.replicas - (self.topology == "peers")
        require(
            whole("asked", self.asked) <= max(others, 1),
            "k",
            self.asked,
            f"must be at most {others}",
            "there are no more to ask",
        )
        require(
            self.topology != "peers" or self.replicas > 1,
            "peers",
            self.replicas,
            "must be 2 or more",
            "nobody has himself as a peer",
        )
        number("sources", self.sources, least=2, most=10_000, remedy="give a number such as 60")
        number("changes", self.changes, least=20, most=1e7, remedy="give a number such as 1200")
        for name in ("change_rate", "sync_rate", "peer_rate"):
            number(name, getattr(self, name), above=0, most=1e3, remedy="give a rate such as 1/s")
        number("leave_rate", self.leave_rate, least=0, remedy="give a rate such as 2/min")
        require(
            len(self.leaving) <= SPARES,
            "leave_rate",
            self.leave_rate,
            f"must let at most {SPARES} replicas leave in {self.settling + self.measuring:.0f} s",
            "one machine cannot start more: lower it",
        )

    @property
    def settling(self) -> float:
        """Seconds until what is measured no longer depends on how it began."""
        hops = self.replicas if self.topology == "cascade" else max(len(self.layers), 1)
        slowest = min([layer.sync_rate for layer in self.layers] or [self.sync_rate])
        return SETTLE * (1.0 + 0.25 * (hops - 1)) / slowest

    @property
    def measuring(self) -> float:
        """Seconds in which so many changes are to be expected."""
        return self.changes / (self.sources * self.change_rate)

    @property
    def leaving(self) -> tuple[tuple[float, int], ...]:
        """When which replica leaves, in seconds from the beginning, one after the other."""
        if not self.leave_rate:
            return ()
        rng, last = np.random.default_rng([self.seed, 2_000_000]), self.settling + self.measuring
        count = int(rng.poisson(self.leave_rate * self.replicas * last))
        times, who = np.sort(rng.random(count) * last), rng.integers(self.replicas, size=count)
        return tuple(zip(times.tolist(), who.tolist(), strict=True))

    @property
    def upstream(self) -> tuple[int | None, ...]:
        """Whom each replica polls: the replica before it, the one above it, or the source."""
        if self.layers:
            return tuple(None if above < 0 else above for above in parents(self.layers).tolist())
        chained = self.topology == "cascade"
        return tuple(i - 1 if chained and i else None for i in range(self.replicas))

    @property
    def members(self) -> tuple[tuple[Layer, tuple[int, ...]], ...]:
        """For each replica its layer, and the others of its group."""
        if not self.layers:
            alike = Layer(
                self.replicas, self.sync_rate, self.replicas if self.topology == "peers" else 1, self.peer_rate
            )
            others = range(self.replicas) if self.topology == "peers" else ()
            return tuple((alike, tuple(k for k in others if k != i)) for i in range(self.replicas))
        found, first = [], 0
        for layer in self.layers:
            for i in range(layer.machines):
                start = first + i - i % layer.group
                found.append((layer, tuple(k for k in range(start, start + layer.group) if k != first + i)))
            first += layer.machines
        return tuple(found)

    @property
    def places(self) -> dict[str, tuple[int, ...]]:
        """The replicas of each layer, by its name."""
        names = [f"layer {i}" for i in range(1, len(self.layers) + 1)]
        names[0], names[-1] = f"{names[0]}, at the source", f"{names[-1]}, the leaves"
        ends = np.cumsum([0, *(layer.machines for layer in self.layers)]).tolist()
        return {name: tuple(range(a, b)) for name, a, b in zip(names, ends, ends[1:], strict=False)}


def predicted(setup: Setup) -> dict[str, float]:
    """What theory says of the freshness at each place where it is measured, by the name of the place.

    A cascade has one place for each replica; peers are all alike; readers who ask several of independent replicas
    see the freshest of them. [004 sect. IV].

    >>> {place: round(f, 4) for place, f in predicted(Setup("cascade", 3)).items()}
    {'replica 1': 0.6667, 'replica 2': 0.4444, 'replica 3': 0.2963}
    >>> {place: round(f, 4) for place, f in predicted(Setup("redundant", 3, asked=2)).items()}
    {'one replica': 0.6667, 'freshest of 2': 0.8}
    """
    if setup.layers:
        found = dict(zip(setup.places, layered_freshness(setup.change_rate, setup.layers), strict=True))
        if setup.asked > 1:
            found[f"freshest of {setup.asked}"] = asked_freshness(setup.change_rate, setup.layers, setup.asked)
        return found
    changes = Poisson(setup.change_rate)
    polls: Process = Constant(1.0 / setup.sync_rate) if setup.brain else Poisson(setup.sync_rate)
    if setup.topology in ("single", "cascade"):
        if setup.brain:
            levels = followed_levels(setup.change_rate, setup.sync_rate, FOLLOWED, setup.replicas)
        else:
            levels = cascade_levels(changes, [polls] * setup.replicas)
        return {f"replica {i}": level for i, level in enumerate(levels, 1)}
    if setup.topology == "peers":
        rates = setup.change_rate, setup.sync_rate, setup.peer_rate
        if setup.choose == "recent" or setup.brain:
            # a contact of which both ends take is two, of one peer each
            talk, rng = Poisson(setup.peer_rate * (1 + setup.both)), np.random.default_rng(setup.seed)
            fresh, _ = drawn_freshness(
                changes, polls, talk, setup.replicas, setup.asked, rng, selection=setup.choose, runs=DRAWN
            )
        else:
            fresh = cooperative_freshness(
                *rates, setup.replicas, setup.asked, both=setup.both, leave_rate=setup.leave_rate
            )
        return {f"{setup.replicas} peers": fresh}
    return {
        "one replica": freshest_freshness(changes, polls, 1),
        f"freshest of {setup.asked}": freshest_freshness(changes, polls, setup.asked),
    }
