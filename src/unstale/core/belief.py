"""What we know of each source's change rate: a Gamma(shape, exposure) belief, two numbers per source.

Read shape as changes seen and exposure as the time in which they were seen: the mean rate is shape/exposure.

Rules of this file:
1. Numbers or columns in, the same out; columns broadcast against each other. Nothing is changed in place.
2. Everything is exact for Poisson changes but `changed` and `hinted`, which keep mean and variance exact and
   take the rest for a Gamma. Intervals for the rate are read from what the polls said (`evidence`), not from it.
3. Only answers teach. A failed poll is no observation: the next answer's `elapsed` covers its time too.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

from unstale.core.checks import Floats, number, numbers, plain
from unstale.core.evidence import Evidence
from unstale.core.gamma2 import BLOCK
from unstale.errors import require
from unstale.frozen import dataclass

T = TypeVar("T", float, Floats)


@dataclass(frozen=True, slots=True, eq=False)
class Belief:
    """A Gamma(shape, exposure) belief about the change rate of each source, and how observations change it.

    The density of the rate λ is proportional to λ^(shape−1)·e^(−exposure·λ): mean shape/exposure, standard
    deviation √shape/exposure. A fleet's prior is such a belief too, before the first poll. Both above 0, as
    numbers or columns; methods return new beliefs. Changes are taken for Poisson, within half-lives (`faded`).

    >>> belief = Belief(1.0, 2.0).unchanged(3.0).changed(1.0)
    >>> round(belief.shape, 4), round(belief.exposure, 4), round(belief.mean, 4)
    (1.9836, 5.4098, 0.3667)
    """

    shape: Floats | float
    exposure: Floats | float
    #: what polls said, from which intervals for the rate are read; without it, a Gamma is what is known
    seen: Evidence | None = None

    def __post_init__(self) -> None:
        shape = numbers("shape", self.shape, above=0, remedy="give the changes seen, plus those of a prior")
        exposure = numbers("exposure", self.exposure, above=0, remedy="give the time they were seen in, plus a prior's")
        _together("exposure", exposure, shape)
        for name, column in zip(("shape", "exposure"), np.broadcast_arrays(shape, exposure), strict=True):
            object.__setattr__(self, name, plain(column))

    @property
    def evidence(self) -> Evidence:
        """What polls said, in columns that broadcast to the belief's."""
        return self.seen or Evidence(np.asarray(self.shape), np.asarray(self.exposure), np.zeros(()), np.ones(()))

    def _plus(self, shape: Floats | float, exposure: Floats) -> Belief:
        """So much more of both, exactly."""
        seen = self.seen
        if seen is not None:
            seen = seen._replace(shape=seen.shape + shape, exposure=seen.exposure + exposure)
        return Belief(self.shape + shape, self.exposure + exposure, seen)

    def unchanged(self, elapsed: ArrayLike) -> Belief:
        """After a poll that found no change since the last answer, `elapsed` ago: exposure + elapsed, exactly.

        How often was asked within that time does not matter, only how long nothing changed.
        """
        return self._plus(0.0, self._given("elapsed", elapsed))

    def changed(self, elapsed: ArrayLike) -> Belief:
        """After a poll that found a change since the last answer, `elapsed` ago: at least one, nobody knows when.

        Mean and variance are exact, the rest is taken for a Gamma: see `posterior`. The mean always rises, the
        more the shorter the interval.
        """
        columns = np.broadcast_arrays(self.shape, self.exposure, self._given("elapsed", elapsed))
        flat = [np.ravel(c) for c in columns]
        shape, exposure = np.empty(flat[0].size), np.empty(flat[0].size)
        with np.errstate(over="ignore"):
            for start in range(0, shape.size, BLOCK):
                rows = slice(start, start + BLOCK)
                shape[rows], exposure[rows] = posterior(*(c[rows] for c in flat))
        seen = self.evidence.changed(columns[2], np.asarray(columns[0] / columns[1]))
        return Belief(shape.reshape(columns[0].shape), exposure.reshape(columns[0].shape), seen)

    def polled(self, elapsed: ArrayLike, changed: ArrayLike) -> Belief:
        """After polls of which some found a change since the last answer, `elapsed` ago, and others none.

        `changed` says which: `changed(elapsed)` for those, `unchanged(elapsed)` for the rest.
        """
        bits = np.asarray(changed, dtype=np.bool_)
        yes, no = self.changed(elapsed), self.unchanged(elapsed)
        shape, exposure = np.where(bits, yes.shape, no.shape), np.where(bits, yes.exposure, no.exposure)
        pairs = zip(yes.evidence, no.evidence, strict=True)
        return Belief(shape, exposure, Evidence(*(np.where(bits, a, b) for a, b in pairs)))

    def changed_at(self, since: ArrayLike) -> Belief:
        """After a poll that found a change whose time can be trusted, `since` before the poll: a last-modified time.

        shape + 1 and exposure + since, exactly: one change, then none. What lies before it stays hidden and
        teaches nothing, so only the time after it counts.
        """
        return self._plus(1.0, self._given("since", since))

    def counted(self, changes: ArrayLike, elapsed: ArrayLike) -> Belief:
        """After an answer that tells all changes since the last one, `elapsed` ago: a version counter, a list of times.

        shape + changes and exposure + elapsed, exactly.
        """
        return self._plus(self._given("changes", changes), self._given("elapsed", elapsed))

    def hinted(self, precision: ArrayLike) -> Belief:
        """After a hint that the source changed just now, true with probability `precision`.

        The mixture of one change more and none, matched in mean and variance: shape (a+p)²/(a+p·(2−p)), exposure
        b·(a+p)/(a+p·(2−p)). Exact at 0 and 1; between, exposure shrinks: a doubtful hint leaves us less certain.
        A poll that follows sees the same change: learn from one of the two.
        """
        p = self._given("precision", precision, most=1.0)
        growth = (self.shape + p) / (self.shape + p * (2.0 - p))
        return Belief((self.shape + p) * growth, self.exposure * growth)

    def unhinted(self, elapsed: ArrayLike, recall: ArrayLike) -> Belief:
        """After `elapsed` without a hint, though a share `recall` of all changes is announced.

        exposure + recall·elapsed, exactly: announced changes are Poisson too, and there was none. A poll that
        found nothing in the same time has seen more: learn from one of the two.
        """
        span = self._given("elapsed", elapsed) * self._given("recall", recall, most=1.0)
        return self._plus(0.0, span)

    def faded(self, prior: Belief, elapsed: ArrayLike, half_life: ArrayLike) -> Belief:
        """What is left of the evidence after `elapsed`: what the belief has beyond its prior halves per half-life.

        shape = prior.shape + (shape − prior.shape)·½^(elapsed/half_life), exposure alike. The mean moves towards
        the prior's only as evidence runs out; inf as half-life keeps everything. For sources that drift.
        """
        span = self._given("elapsed", elapsed, infinite=True)
        life = self._given("half_life", half_life, above=0.0, infinite=True)
        _together("prior", np.asarray(prior.shape), np.asarray(self.shape))
        # an endless half-life outlasts everything
        with np.errstate(over="ignore", invalid="ignore"):
            halvings = np.where(np.isinf(life), 0.0, span / life)
        kept, lost = np.exp2(-halvings), -np.expm1(-halvings * np.log(2.0))
        shape, exposure = prior.shape * lost + self.shape * kept, prior.exposure * lost + self.exposure * kept
        seen = self.seen
        if seen is not None:
            left, since = prior.shape * lost + seen.shape * kept, prior.exposure * lost + seen.exposure * kept
            seen = Evidence(left, since, seen.late * kept, seen.span)
        return Belief(shape, exposure, seen)

    @property
    def mean(self) -> Floats | float:
        """The mean of the change rate, shape/exposure."""
        return self.shape / self.exposure

    def credible(self, level: float = 0.9) -> tuple[Floats | float, Floats | float]:
        """The rates between which the change rate lies with probability `level`, with equal tails.

        Quantiles of the law that the polls leave, `Evidence`; of the Gamma law, by scipy's gammaincinv, as long as no
        poll found a change of unknown time. If the belief is right, this share of sources is inside.

        >>> [round(rate, 4) for rate in Belief(3.0, 2.0).credible()]
        [0.4088, 3.1479]
        """
        from scipy.special import gammaincinv

        tail = 0.5 * (1.0 - number("level", level, above=0, most=1.0))
        if self.seen is not None:
            low, high = self.seen.quantiles(np.shape(self.shape), tail, 1.0 - tail)
            return plain(low), plain(high)
        low, high = (gammaincinv(self.shape, t) / self.exposure for t in (tail, 1.0 - tail))
        return plain(low), plain(high)

    def freshness(self, elapsed: ArrayLike) -> Floats | float:
        """The probability that a copy is still fresh `elapsed` after its last poll, (1 + elapsed/exposure)^−shape.

        >>> round(Belief(2.0, 1.0).freshness(1.0), 12)
        0.25
        """
        span = self._given("elapsed", elapsed, infinite=True)
        with np.errstate(over="ignore"):
            return plain(np.exp(-self.shape * np.log1p(span / self.exposure)))

    def _given(
        self,
        name: str,
        values: ArrayLike,
        *,
        above: float | None = None,
        most: float | None = None,
        infinite: bool = False,
    ) -> Floats:
        """An argument of an observation, 0 or more unless `above` says otherwise."""
        least = 0.0 if above is None else None
        column = numbers(name, values, above=above, least=least, most=most, infinite=infinite)
        _together(name, column, np.asarray(self.shape))
        return column


def _together(name: str, column: Floats, like: Floats) -> None:
    try:
        np.broadcast_shapes(column.shape, like.shape)
    except ValueError:
        require(
            False,
            name,
            f"of shape {column.shape}",
            f"must fit the belief's shape {like.shape}",
            "give one number per source, or one for all",
        )


def posterior(shape: T, exposure: T, elapsed: T) -> tuple[T, T]:
    """The belief after a poll that found a change, `elapsed` after the last answer: shape and exposure.

    The exact posterior λ^(shape−1)·e^(−exposure·λ)·(1 − e^(−λ·elapsed)) has mean shape/exposure·(F₁/F₀) and second
    moment shape·(shape+1)/exposure²·(F₂/F₀), F_k = 1 − r^(shape+k), r = exposure/(exposure+elapsed). The Gamma of
    the same mean and variance has shape·F₁²/D and exposure·F₀·F₁/D, D = F₀·F₂ − shape·r^shape·(1−r)².
    Shape grows by at most 1 and exposure by at most elapsed; a change found at once is one change in no time,
    (shape+1, exposure), and one found after a very long time teaches nothing. D loses at most one bit.
    Poisson changes, one bit per poll. Trusted numbers or columns; relative error below 1e-14.

    >>> [round(float(x), 12) for x in posterior(1.0, 1.0, 1.0)]
    [1.8, 1.2]
    """
    # at 0 the limit, which such a small ratio has to all its digits
    elapsed = np.maximum(elapsed, 1e-150 * exposure)
    step = elapsed / (exposure + elapsed)
    some = -np.expm1(-shape * np.log1p(elapsed / exposure))
    none = 1.0 - some
    more = none * step
    first = some + more
    second = first + more * (1.0 - step)
    kept = first / second / (1.0 - (shape * step / some) * (more / second))
    return shape * (first / some) * kept, exposure * kept
