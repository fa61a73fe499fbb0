"""Independent streams merged into one: a source that changes for several reasons, or is polled by several."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unstale.core.checks import Floats
from unstale.core.processes.base import Ageing, Process, Size, checked_rate, elementwise, of_order
from unstale.core.processes.mixture import checked_members, falling_hazard
from unstale.core.quadrature import integrate

# In mean gaps: a light tail has ended long before, a heavy one is still a double there.
_FARTHEST = 1e299


class Superposition(Process):
    """All events of independent streams; the rates add up.

    Nothing has happened for x exactly if nothing has in any stream: P(A > x) = Π age_survivalᵢ(x). Hence
    survival = Σ (rateᵢ/rate)·survivalᵢ·Π_{j≠i} age_survivalⱼ: a merged gap begins with an event of stream i,
    and the others are met at random times.

    Consecutive gaps depend on each other unless all members are Poisson: `sample` draws single gaps from
    their exact law, and only `sample_path` shows them in their true sequence. Gap and age laws are exact
    all the same. Even streams merged are no lattice, since their phases are random.

    >>> from unstale.core.processes.constant import Constant
    >>> Superposition([Constant(1.0), Constant(1.0)]).age_survival(0.5)
    0.25
    """

    parameters = ("processes",)

    def __init__(self, processes: Sequence[Process]) -> None:
        self.processes = checked_members(processes)
        self.rate = checked_rate(sum(p.rate for p in self.processes), "the rate, the sum of the members' rates,")
        memoryless = all(p.ageing is Ageing.MEMORYLESS for p in self.processes)
        self.ageing = Ageing.MEMORYLESS if memoryless else self._common_ageing()
        self.end = min(p.end for p in self.processes)
        self.tail = 1.0 + sum(p.tail - 1.0 for p in self.processes)
        self.kinks = tuple(sorted({k for p in self.processes for k in p.kinks if k <= self.end}))
        self.span = self.processes[0].span if len(self.processes) == 1 else None

    def _common_ageing(self) -> Ageing:
        # One and the same process twice is still not itself: only falling hazards survive the merge.
        ageing = falling_hazard(self.processes)
        return Ageing.NEITHER if ageing is Ageing.NBU and len(self.processes) > 1 else ageing

    @elementwise
    def survival(self, x: Floats) -> Floats:
        ages = [np.asarray(p.age_survival(x)) for p in self.processes]
        out = np.zeros(x.shape)
        for i, process in enumerate(self.processes):
            others = np.prod(ages[:i] + ages[i + 1 :], axis=0)
            out = out + process.rate / self.rate * np.asarray(process.survival(x)) * others
        return np.minimum(out, 1.0)

    @elementwise
    def age_cdf(self, x: Floats) -> Floats:
        logs = [np.log1p(-np.asarray(p.age_cdf(x))) for p in self.processes]
        return np.asarray(-np.expm1(np.sum(logs, axis=0)))

    @elementwise
    def age_survival(self, x: Floats) -> Floats:
        return np.asarray(np.prod([np.asarray(p.age_survival(x)) for p in self.processes], axis=0))

    @elementwise
    def age_partial_mean(self, x: Floats) -> Floats:
        """rate·∫₀ˣ y·survival(y) dy, by quadrature to 1e-11."""
        infinite = np.isinf(x)
        top = np.where(infinite, self.mean, np.minimum(x, min(self.end, _FARTHEST * self.mean)))
        # In units in which neither a tiny nor a huge x leaves the doubles.
        unit = np.where(top > 0, np.minimum(top, self.mean), self.mean)
        marks = (*self.kinks, *(self.mean * 10.0**k for k in range(0, 300, 30)))
        points = [np.zeros(x.shape), *(np.minimum(mark, top) / unit for mark in sorted(marks)), top / unit]
        inner, _ = integrate(self._weighted_gap, points, args=[unit], rtol=1e-11)
        limit = self.age_moment(1) if np.any(infinite) else np.inf
        return np.where(infinite, limit, self.rate * unit * unit * np.asarray(inner))

    def _weighted_gap(self, y: Floats, unit: Floats) -> Floats:
        return np.asarray(y * self.survival(y * unit))

    @of_order
    def moment(self, n: int) -> float:
        """(n/rate)·E[Aⁿ⁻¹] = (n(n−1)/rate)·∫ xⁿ⁻²·P(A > x) dx."""
        if n < 2:
            return self.mean**n
        if n >= self.tail:
            return np.inf
        # In units of the mean gap, and with the power inside the exponent: neither overflows.
        points = [point / self.mean for point in sorted({0.0, *self.kinks, self.end})]
        ages, _ = integrate(self._weighted_age, points, args=[float(n - 2)], rtol=1e-11)
        return float(n * (n - 1) * ages * np.float64(self.mean) ** n)

    def _weighted_age(self, y: Floats, power: Floats) -> Floats:
        with np.errstate(divide="ignore"):
            return np.asarray(np.exp(power * np.log(y) + np.log(self.age_survival(y * self.mean))))

    def sample(self, rng: np.random.Generator, size: Size) -> Floats:
        """Single gaps: one stream, chosen by rate, has just had an event, the others are met at random."""
        starts = rng.choice(len(self.processes), size=size, p=[p.rate / self.rate for p in self.processes])
        waits = []
        for i, process in enumerate(self.processes):
            waits.append(np.where(starts == i, process.sample(rng, size), process.sample_age(rng, size)))
        return np.asarray(np.min(waits, axis=0))

    def sample_length_biased(self, rng: np.random.Generator, size: Size) -> Floats:
        """At a random time the merged gap reaches back to the latest event and on to the next one."""
        gaps = [p.sample_length_biased(rng, size) for p in self.processes]
        cuts = [rng.random(size) for _ in self.processes]
        back = np.min([gap * cut for gap, cut in zip(gaps, cuts, strict=True)], axis=0)
        return np.asarray(back + np.min([g * (1.0 - cut) for g, cut in zip(gaps, cuts, strict=True)], axis=0))

    def sample_age(self, rng: np.random.Generator, size: Size) -> Floats:
        return np.asarray(np.min([p.sample_age(rng, size) for p in self.processes], axis=0))

    def sample_path(self, rng: np.random.Generator, horizon: float) -> Floats:
        """The members' paths, merged: this keeps the dependence between consecutive gaps."""
        return np.sort(np.concatenate([p.sample_path(rng, horizon) for p in self.processes]))

    def with_rate(self, rate: float) -> Superposition:
        factor = checked_rate(rate) / self.rate
        return Superposition([p.with_rate(p.rate * factor) for p in self.processes])
