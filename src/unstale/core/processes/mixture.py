"""Gaps of several kinds, each drawn with its probability."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from unstale.core.checks import Floats, numbers
from unstale.core.processes.base import Ageing, Process, Size, checked_rate, elementwise, of_order
from unstale.core.processes.lattice import common_span
from unstale.errors import require


class Mixture(Process):
    """Each gap is of kind i with probability weights[i], independently: survival = Σ weightᵢ·survivalᵢ.

    The mean gap is Σ weightᵢ·meanᵢ. Seen at a random time the kind is length-biased: shareᵢ =
    weightᵢ·meanᵢ·rate, and the age law is Σ shareᵢ·(the member's age law). A mixture of Poisson, or of other
    members whose hazard falls (every NWU process here is one), has a falling hazard and is NWU.

    >>> from unstale.core.processes.poisson import Poisson
    >>> Mixture([Poisson(1.0), Poisson(4.0)], [0.5, 0.5]).rate
    1.6
    """

    parameters = ("processes", "weights")

    def __init__(self, processes: Sequence[Process], weights: ArrayLike) -> None:
        self.processes = checked_members(processes)
        mass = np.atleast_1d(numbers("weights", weights, least=0, remedy="give how often each kind of gap occurs"))
        count = len(self.processes)
        fits = mass.shape == (count,) and mass.sum() > 0
        require(fits, "weights", mass.tolist(), f"must be {count} numbers, not all 0", "give one for each process")
        self.weights = tuple((mass / mass.sum()).tolist())
        lengths = np.array(self.weights) * [p.mean for p in self.processes]
        self.rate = checked_rate(1.0 / float(lengths.sum()), "the rate 1/mean")
        self._shares = lengths / lengths.sum()
        used = [p for p, weight in zip(self.processes, self.weights, strict=True) if weight > 0]
        self.ageing = falling_hazard(used)
        self.end = max(p.end for p in used)
        self.tail = min(p.tail for p in used)
        self.kinks = tuple(sorted({kink for p in used for kink in p.kinks}))
        spans = [p.span for p in used if p.span is not None]
        self.span = common_span(np.array(spans)) if len(spans) == len(used) else None

    @elementwise
    def survival(self, x: Floats) -> Floats:
        return self._sum("survival", self.weights, x)

    @elementwise
    def cdf(self, x: Floats) -> Floats:
        return self._sum("cdf", self.weights, x)

    @elementwise
    def age_cdf(self, x: Floats) -> Floats:
        return np.minimum(self._sum("age_cdf", self._shares, x), 1.0)

    @elementwise
    def age_survival(self, x: Floats) -> Floats:
        return np.minimum(self._sum("age_survival", self._shares, x), 1.0)

    @elementwise
    def age_partial_mean(self, x: Floats) -> Floats:
        return self._sum("age_partial_mean", self._shares, x)

    @of_order
    def moment(self, n: int) -> float:
        return float(sum(w * p.moment(n) for w, p in zip(self.weights, self.processes, strict=True) if w > 0))

    @property
    def variance(self) -> float:
        """Variance within the kinds and between their means."""
        members = zip(self.weights, self.processes, strict=True)
        apart = ((w, p.variance, p.mean - self.mean) for w, p in members if w > 0)
        return float(sum(w * (variance + away * away) for w, variance, away in apart))

    def sample(self, rng: np.random.Generator, size: Size) -> Floats:
        return self._draw("sample", self.weights, rng, size)

    def sample_length_biased(self, rng: np.random.Generator, size: Size) -> Floats:
        return self._draw("sample_length_biased", self._shares, rng, size)

    def sample_age(self, rng: np.random.Generator, size: Size) -> Floats:
        return self._draw("sample_age", self._shares, rng, size)

    def with_rate(self, rate: float) -> Mixture:
        factor = checked_rate(rate) / self.rate
        return Mixture([p.with_rate(p.rate * factor) for p in self.processes], self.weights)

    def _sum(self, name: str, shares: Sequence[float] | Floats, x: Floats) -> Floats:
        terms = [s * np.asarray(getattr(p, name)(x)) for s, p in zip(shares, self.processes, strict=True) if s > 0]
        return np.asarray(sum(terms))

    def _draw(self, name: str, shares: Sequence[float] | Floats, rng: np.random.Generator, size: Size) -> Floats:
        out = np.empty(size)
        kind = rng.choice(len(self.processes), size=size, p=shares)
        for i, process in enumerate(self.processes):
            chosen = kind == i
            out[chosen] = getattr(process, name)(rng, int(np.count_nonzero(chosen)))
        return out


def checked_members(processes: Sequence[Process]) -> tuple[Process, ...]:
    """One or more processes."""
    members = tuple(processes) if isinstance(processes, Sequence) else ()
    good = len(members) > 0 and all(isinstance(p, Process) for p in members)
    require(
        good,
        "processes",
        repr(processes),
        "must be one or more processes",
        "give a list such as [Poisson(1.0)]",
    )
    return members


def falling_hazard(members: Sequence[Process]) -> Ageing:
    """NWU if no member's hazard rises, for then neither does their mixture's; of equal members, theirs."""
    if len(set(members)) == 1:
        return members[0].ageing
    falling = all(p.ageing in (Ageing.NWU, Ageing.MEMORYLESS) for p in members)
    return Ageing.NWU if falling else Ageing.NEITHER
