"""Values of sources whose changes are Poisson: freshness and age, in the three orders of 000."""

from __future__ import annotations

import numpy as np

from unstale.core.checks import Floats
from unstale.core.kernels import passes
from unstale.core.values.base import RateValue
from unstale.core.values.forms import FORMS, Forms

#: beyond this the forms are at their limits, and its square is still a double
_FAR = 1e150
_ALMOST = np.nextafter(1.0, 0.0)


class _Poisson(RateValue):
    @property
    def _forms(self) -> Forms:
        return FORMS[self.order]


class PoissonFreshness(_Poisson):
    """Value of a poll when being stale is all that matters and changes are Poisson.

    φ(t) = P(2, x)/change_rate, x = change_rate·t, P(2, x) = 1 − (1+x)·e^(−x); in random order
    1 − 3((1−e^(−x))/x)² + 2(1−e^(−x))·e^(−x)/x replaces P(2, x), in purely random order (x/(1+x))².
    The limit 1/change_rate is the same in all orders: a source that changes too fast for its weight is
    abandoned. The interval at a price of s = price·cost·change_rate/weight is P⁻¹(s)/change_rate,
    never beyond 40 mean gaps in fixed order because no double lies nearer to 1.
    [000 Table 2, footnote 10], [002 Algorithms 1 and 2]. Relative error below 1e-14.

    >>> PoissonFreshness([1.0, 2.0]).value(1.0).round(6)
    array([0.264241, 0.296997])
    """

    def _value(self, rate: Floats, t: Floats) -> Floats:
        x = rate * t
        y = np.minimum(x, _FAR)
        ratio = self._forms.ratio(y)
        # t·ratio keeps what x² would lose to underflow, y·ratio what inf·0 would
        return np.where(x < 1.0, t * ratio, y * ratio / rate)

    def _slope(self, rate: Floats, t: Floats) -> Floats:
        return self._forms.slope(np.minimum(rate * t, _FAR))

    def _interval(self, rate: Floats, v: Floats) -> Floats:
        s = np.minimum(rate * v, _ALMOST)
        tiny = np.sqrt(v / self._forms.square) / np.sqrt(rate)
        return np.where(s < 1e-40, tiny, self._forms.inverse(np.maximum(s, 1e-40)) / rate)

    def _limit(self, rate: Floats) -> Floats:
        return 1.0 / rate

    def _staleness(self, rate: Floats, t: Floats) -> Floats:
        return self._forms.staleness(np.minimum(rate * t, _FAR))

    def response(self, value: Floats) -> tuple[Floats, Floats]:
        fused = passes.response(self.change_rate, value) if self.order == "fixed" else None
        return super().response(value) if fused is None else fused


class PoissonAge(_Poisson):
    """Value of a poll when harm grows with age and changes are Poisson.

    φ(t) = (E[X²]·x²/2 − p(x))/change_rate², x = change_rate·t, where p is the form of freshness in the same
    order (fixed: P(2, x)) and X the order's gap. Nothing is ever abandoned: the value of a poll grows without
    end. For large x the interval is √(2·value/E[X²]) whatever the change rate.
    [000 Table 2]; Theorem 5 says the scaling is "similarly for age", but it is √price there, not price.
    Relative error below 1e-14.

    >>> PoissonAge([1.0]).value(2.0).round(6)
    array([1.406006])
    """

    def _value(self, rate: Floats, t: Floats) -> Floats:
        return t * self._forms.age_ratio(np.minimum(rate * t, _FAR)) * t

    def _slope(self, rate: Floats, t: Floats) -> Floats:
        return t * self._forms.age_slope(np.minimum(rate * t, _FAR))

    def _interval(self, rate: Floats, v: Floats) -> Floats:
        forms = self._forms
        s = rate * (rate * v)
        low = np.cbrt(v / forms.cube) / np.cbrt(rate)
        high = np.sqrt(v / forms.square)
        t = forms.age_inverse(np.clip(s, 1e-60, 1e40)) / rate
        return np.where(s < 1e-60, low, np.where(s > 1e40, high, t))

    def _limit(self, rate: Floats) -> Floats:
        return np.full_like(rate, np.inf)

    def _staleness(self, rate: Floats, t: Floats) -> Floats:
        return t * self._forms.age_staleness(np.minimum(rate * t, _FAR))
