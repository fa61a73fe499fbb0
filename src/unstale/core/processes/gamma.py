"""Gaps that are sums of exponential stages: every shape-th event of a Poisson stream, or any real shape."""

from __future__ import annotations

import numpy as np

from unstale.core import special
from unstale.core.checks import Floats, number
from unstale.core.processes.base import Ageing, Process, Size, checked_rate, elementwise, of_order


class Gamma(Process):
    """Gaps with P(gap > x) = Q(shape, x/scale), the regularised upper incomplete gamma; mean shape·scale.

    shape < 1 gives bursts (NWU), 1 is Poisson, > 1 is steadier (NBU). With z = x/scale,
    P(A ≤ x) = P(shape+1, z) + z·Q(shape, z)/shape.

    >>> round(Gamma(2.0, 1.0).survival(1.0), 6)
    0.735759
    """

    parameters = ("shape", "scale")

    def __init__(self, shape: float, scale: float) -> None:
        self.shape = number("shape", shape, above=0, remedy="give 1 for Poisson, less for bursts, more for even gaps")
        self.scale = number("scale", scale, above=0, remedy="give the mean gap divided by the shape")
        self.rate = checked_rate(1.0 / self.scale / self.shape, "the rate 1/(shape·scale)")
        self.ageing = Ageing.MEMORYLESS
        if self.shape != 1.0:
            self.ageing = Ageing.NWU if self.shape < 1.0 else Ageing.NBU

    @classmethod
    def from_rate(cls, shape: float, rate: float) -> Gamma:
        """The process with this shape and this many events per unit of time."""
        shape = number("shape", shape, above=0, remedy="give 1 for Poisson, less for bursts, more for even gaps")
        return cls(shape, 1.0 / checked_rate(rate) / shape)

    @elementwise
    def survival(self, x: Floats) -> Floats:
        share: Floats = special.gammaincc(self.shape, x / self.scale)
        return share

    @elementwise
    def cdf(self, x: Floats) -> Floats:
        share: Floats = special.gammainc(self.shape, x / self.scale)
        return share

    @elementwise
    def age_cdf(self, x: Floats) -> Floats:
        z = x / self.scale
        return np.minimum(np.asarray(special.gammainc(self.shape + 1.0, z)) + self._held(z), 1.0)

    @elementwise
    def age_survival(self, x: Floats) -> Floats:
        """Q(shape, z)·(1 − z/shape) + z^shape·e^(−z)/Γ(shape+1); near 1 from the other side."""
        z = x / self.scale
        term = np.exp(special.xlogy(self.shape, z) - z - special.gammaln(self.shape + 1.0))
        tail = np.where(np.isinf(z), 0.0, special.gammaincc(self.shape, z) - self._held(z) + term)
        return np.where(z < self.shape, 1.0 - np.asarray(self.age_cdf(x)), np.maximum(tail, 0.0))

    @elementwise
    def age_partial_mean(self, x: Floats) -> Floats:
        """(x·z·Q(shape, z)/shape + scale·(shape+1)·P(shape+2, z))/2."""
        z = x / self.scale
        held = np.where(self._held(z) > 0, x * self._held(z), 0.0)
        part: Floats = special.gammainc(self.shape + 2.0, z)
        return (held + self.scale * (self.shape + 1.0) * part) / 2

    @of_order
    def moment(self, n: int) -> float:
        return float(np.prod((self.shape + np.arange(n)) * self.scale))

    @property
    def variance(self) -> float:
        return self.shape * self.scale * self.scale

    def sample(self, rng: np.random.Generator, size: Size) -> Floats:
        return rng.gamma(self.shape, self.scale, size)

    def sample_length_biased(self, rng: np.random.Generator, size: Size) -> Floats:
        return rng.gamma(self.shape + 1.0, self.scale, size)

    def with_rate(self, rate: float) -> Gamma:
        return Gamma.from_rate(self.shape, rate)

    def _held(self, z: Floats) -> Floats:
        """rate·x·survival(x): the gaps longer than x count as x."""
        share: Floats = special.gammaincc(self.shape, z)
        return np.where(share > 0, z / self.shape * share, 0.0)
