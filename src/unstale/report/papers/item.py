"""One number of a paper: what is printed, what is right, and how the library computes it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple, Protocol
from zlib import crc32

from unstale.core.penalties import Penalty
from unstale.core.processes import Process
from unstale.frozen import dataclass

#: stands in a computed value for a number that depends on random trials which cannot be drawn again
NOT_REPEATED = "not repeated"


class SimulatedMean(NamedTuple):
    """A simulated mean and its standard error, infinite where the variance is."""

    value: float
    error: float


class Simulate(Protocol):
    """Simulates one copy and returns estimates of its measures by name.

    Names: freshness, age, missed, and where asked for staleness and update_staleness (of `penalty`) and
    consistency (at `tau`).
    """

    def __call__(
        self,
        changes: Process,
        polls: Process,
        *,
        seed: int,
        penalty: Penalty | None = None,
        tau: float | None = None,
    ) -> Mapping[str, SimulatedMean]: ...


@dataclass(frozen=True, slots=True)
class Item:
    """A number of a paper: where it stands, what is printed, the independently computed value, the verdict."""

    id: str
    seed: str
    place: str
    inputs: dict[str, Any]
    printed: str
    value: Any
    tolerance: Any
    verdict: str
    reason: str

    @property
    def papers(self) -> tuple[str, ...]:
        """The papers that contain it; none for what we derived ourselves."""
        return () if self.seed == "derived" else tuple(self.seed.split(","))

    @property
    def number(self) -> int:
        """A seed for its simulation that does not depend on which other items are computed."""
        return crc32(self.id.encode())


@dataclass(frozen=True, slots=True)
class Erratum:
    """What a paper prints wrong, what is right and why, and the items that show it."""

    number: int
    place: str
    printed: str
    right: str
    why: str
    ids: tuple[str, ...]


@cache
def items() -> dict[str, Item]:
    """All items by id, in the order of the papers."""
    return {raw["id"]: Item(**raw) for raw in _read("values.json")}


@cache
def errata() -> tuple[Erratum, ...]:
    """All errata, most consequential first."""
    return tuple(Erratum(**raw | {"ids": tuple(raw["ids"])}) for raw in _read("errata.json"))


def matching(pattern: str) -> list[str]:
    """The ids equal to a pattern, or beginning with it if it ends with a star."""
    if pattern.endswith("*"):
        return [id_ for id_ in items() if id_.startswith(pattern[:-1])]
    return [pattern] if pattern in items() else []


Computation = Callable[[Item], Any]
Simulation = Callable[[Item, Simulate], Any]


class Catalog:
    """The computations and simulations of one paper's items, by id."""

    def __init__(self) -> None:
        self.computations: dict[str, Computation] = {}
        self.simulations: dict[str, Simulation] = {}

    def computes(self, *patterns: str) -> Callable[[Computation], Computation]:
        """Say that a function gives the value of these items, in the structure of the stored value."""

        def register(function: Computation) -> Computation:
            self.computations |= dict.fromkeys(_expand(patterns), function)
            return function

        return register

    def simulates(self, *patterns: str) -> Callable[[Simulation], Simulation]:
        """Say that a function simulates these items: an Estimate for each number, None where there is none."""

        def register(function: Simulation) -> Simulation:
            self.simulations |= dict.fromkeys(_expand(patterns), function)
            return function

        return register


@dataclass(frozen=True, slots=True)
class ItemPart:
    """One value of an item: computed and expected, how far apart in units of the tolerance, and simulated."""

    label: str
    computed: Any
    expected: Any
    tolerance: Any
    excess: float
    simulated: Any = None

    @property
    def holds(self) -> bool:
        """Whether the computed value is within tolerance of the expected one, and the simulated one near it."""
        return self.excess <= 1.0 and self.distance <= 5.0

    @property
    def distance(self) -> float:
        """Largest distance of a simulated from its computed value, in standard errors."""
        pairs = zip(_leaves(self.computed), _leaves(self.simulated), strict=False)
        far = [abs(c - s.value) / s.error for c, s in pairs if s is not None and s.error > 0]
        return max(far, default=0.0)


def parts(item: Item, computed: Any, simulated: Any = None) -> list[ItemPart]:
    """A computed value next to the expected one, one part for each name in a dictionary."""
    return list(_parts("", computed, item.value, item.tolerance, simulated))


def _parts(label: str, computed: Any, expected: Any, tolerance: Any, simulated: Any) -> list[ItemPart]:
    if not isinstance(expected, dict):
        return [ItemPart(label, computed, expected, tolerance, _excess(computed, expected, tolerance), simulated)]
    if not isinstance(computed, dict) or set(computed) != set(expected):
        return [ItemPart(label, computed, expected, tolerance, math.inf)]
    found = []
    for key, want in expected.items():
        slack = tolerance.get(key, 0) if isinstance(tolerance, dict) else tolerance
        name = f"{label} · {key}" if label else key
        found += _parts(name, computed[key], want, slack, (simulated or {}).get(key))
    return found


def _excess(computed: Any, expected: Any, tolerance: Any) -> float:
    """The distance in units of the tolerance, which is relative above 1; infinite where structures differ."""
    if isinstance(expected, list):
        if len(computed) != len(expected):
            return math.inf
        each = tolerance if isinstance(tolerance, list) else [tolerance] * len(expected)
        return max((_excess(c, e, t) for c, e, t in zip(computed, expected, each, strict=True)), default=0.0)
    if isinstance(computed, str) and computed == NOT_REPEATED:
        return 0.0
    if isinstance(expected, bool):
        return 0.0 if bool(computed) is expected else math.inf
    if isinstance(expected, str):
        if expected == "inf":
            return 0.0 if computed == math.inf else math.inf
        return 0.0 if computed is True or computed == expected else math.inf
    slack = tolerance * max(1.0, abs(expected)) if tolerance else math.ulp(expected)
    return abs(float(computed) - expected) / slack if math.isfinite(computed) else math.inf


def _leaves(value: Any) -> list[Any]:
    if isinstance(value, SimulatedMean) or not hasattr(value, "__len__") or isinstance(value, str):
        return [value]
    return [leaf for each in value for leaf in _leaves(each)]


def _expand(patterns: tuple[str, ...]) -> list[str]:
    return [id_ for pattern in patterns for id_ in matching(pattern)]


def _read(name: str) -> Any:
    return json.loads((files("unstale.report.papers") / name).read_text("utf-8"))
