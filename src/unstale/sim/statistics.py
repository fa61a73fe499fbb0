"""How far a simulated average can be trusted: batch means, and when no number of batches would do.

Rules of this file:
1. Batches are the last axis; everything before it (sources, measures) is carried along.
2. A batch is a stretch of simulated time that shares nothing, or next to nothing, with the others.
3. An error of inf says that the spread of the batches is infinite in truth, whatever it is in the sample.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from unstale.core.checks import Floats, numbers, plain
from unstale.errors import require
from unstale.frozen import dataclass


@dataclass(frozen=True, slots=True)
class Estimate:
    """A simulated average and its standard error; inf if the true spread is infinite, NaN if unknown."""

    value: Floats | float
    error: Floats | float

    def z(self, expected: ArrayLike) -> Floats | float:
        """Standard errors from `expected`: beyond ±5 something is wrong; 0 where the error is infinite.

        A difference within rounding of the values counts as none, even where nothing was random.

        >>> Estimate(0.62, 0.01).z(0.6)
        2.0000000000000018
        """
        value, error, want = np.broadcast_arrays(self.value, self.error, np.asarray(expected, dtype=np.float64))
        with np.errstate(all="ignore"):
            difference = value - want
            # equal infinities, and sums in another order, are no difference
            same = (value == want) | (np.abs(difference) <= 1e-9 * np.abs(want)) | np.isinf(error)
            return plain(np.where(same, 0.0, difference / error))

    def __str__(self) -> str:
        if np.ndim(self.value):
            return repr(self)
        return f"{self.value:.4g} ± {self.error:.1g}"


def batch_means(sums: ArrayLike, lengths: ArrayLike | None = None, *, finite: bool = True) -> Estimate:
    """The long-run average of what was summed per batch, and its standard error.

    `value = Σ sums/Σ lengths` over the last axis, lengths 1 if not given;
    `error² = Σ (sum − value·length)²·B/(B − 1)/(Σ lengths)²` over B batches, the residuals of a ratio.
    Batches must be independent, or so long that their ends do not matter; unequal lengths are fine and cost a
    bias of order 1/B. With one batch the error is NaN: unknown. `finite=False` says that the variance is
    infinite (see `finite_variance`), so that the error is inf and nobody tests the value tightly.

    >>> batch_means([1.0, 3.0, 2.0])
    Estimate(value=2.0, error=0.5773502691896257)
    >>> batch_means([1.0, 3.0], [2.0, 2.0])
    Estimate(value=1.0, error=0.5)
    """
    total = np.atleast_1d(numbers("sums", sums, infinite=True, remedy="give one sum for each batch"))
    spans = np.ones(1) if lengths is None else numbers("lengths", lengths, least=0, remedy="give batches' lengths")
    total, spans = np.broadcast_arrays(total, spans)
    count = total.shape[-1]
    require(count > 0, "sums", "without batches", "must have one at least", "give one sum for each batch")
    with np.errstate(all="ignore"):
        whole = spans.sum(axis=-1)
        value = total.sum(axis=-1) / whole
        residual = total - value[..., None] * spans
        spread = np.sum(residual * residual, axis=-1) * count / (count - 1.0)
        error = np.sqrt(spread) / whole
    # an average that is itself infinite has no error
    error = np.where(np.isinf(value) | (not finite), np.inf, error if count > 1 else np.nan)
    return Estimate(plain(value), plain(error))


def finite_variance(tail: float, power: float) -> bool:
    """Has the harm found at a random time a finite variance, so that batches tell how wrong they are?

    Harm that grows like (age of polls)^power has one if `E[A^(2·power)] < ∞`, that is
    `2·power + 1 < tail`, where E[gapⁿ] of the polls is finite for n < tail. Bounded harm (power 0) always has;
    freshness and consistency are of that kind. Power 1: mean age and missed changes; p: w = x^p;
    p + 1: the update penalty of w = x^p. The tail of the changes does not matter: a copy is never older than
    its last poll. For batches of fixed length whose start is random; ratios over whole intervals need
    `2·power + 2 < tail`. [003 eqs. 42, 50, and eq. 9 for the law of A].

    >>> finite_variance(3.0, 0), finite_variance(3.0, 1), finite_variance(3.5, 1)
    (True, False, True)
    """
    return power == 0 or 2.0 * power + 1.0 < tail
