"""A fleet as columns: what each source is worth, what a poll of it costs, and how often it may be polled."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unstale.core.checks import LARGEST, Floats, numbers
from unstale.core.values import Value
from unstale.errors import InputError, require, sentence
from unstale.frozen import dataclass

Rows = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Fleet:
    """Columns of one problem: `value` says what a poll is worth, the rest what limits it.

    None stands for "the same for all": weight and cost 1, no host, no bound. `host` holds, per source, the
    row of its host in `cap` (polls per unit of time the host allows). `least_rate` and `most_rate` are the
    inverses of the longest and the shortest interval; equal, they fix a source.
    """

    value: Value
    weight: Floats | None = None
    cost: Floats | None = None
    host: Rows | None = None
    cap: Floats | None = None
    least_rate: Floats | None = None
    most_rate: Floats | None = None
    #: what people call the hosts, for messages
    host_names: Sequence[str] | None = None

    @classmethod
    def of(
        cls,
        value: Value,
        *,
        weight: ArrayLike | None = None,
        cost: ArrayLike | None = None,
        host: ArrayLike | None = None,
        cap: ArrayLike | None = None,
        shortest: ArrayLike | None = None,
        longest: ArrayLike | None = None,
        fixed: ArrayLike | None = None,
        host_names: Sequence[str] | None = None,
    ) -> Fleet:
        """Check the columns. `shortest` and `longest` are intervals, `fixed` a sync rate or NaN per source."""
        n = len(value)
        w = _column("weight", weight, n, least=0.0, most=LARGEST, remedy="give 0 for a source nobody reads")
        c = _column("cost", cost, n, above=0.0, most=LARGEST, remedy="give what one poll spends of the budget")
        low = _column("shortest interval", shortest, n, least=0.0, infinite=True, remedy="give 0 for no bound")
        high = _column("longest interval", longest, n, above=1 / LARGEST, infinite=True, remedy="give inf for no bound")
        with np.errstate(divide="ignore"):
            most = None if low is None else 1.0 / low
            least = None if high is None else 1.0 / high
        if fixed is not None:
            pin = np.broadcast_to(np.asarray(fixed, float), (n,))
            free = np.isnan(pin)
            remedy = "give polls per unit of time, or NaN"
            numbers("fixed sync_rate", pin[~free], least=0.0, most=LARGEST, remedy=remedy)
            least = np.where(free, 0.0 if least is None else least, pin)
            most = np.where(free, np.inf if most is None else most, pin)
        if least is not None and most is not None and np.any(least > most):
            i = int(np.argmax(least > most))
            raise InputError(
                sentence(
                    f"longest interval[{i}]",
                    f"{1 / least[i]:g}",
                    f"is below the shortest interval {1 / most[i]:g}",
                    "swap them or drop one",
                )
            )
        rows, caps = _hosts(host, cap, n)
        return cls(value, w, c, rows, caps, least, most, host_names)

    def __len__(self) -> int:
        return len(self.value)

    def weights(self) -> Floats | float:
        return 1.0 if self.weight is None else self.weight

    def costs(self) -> Floats | float:
        return 1.0 if self.cost is None else self.cost

    def spending(self, sync_rate: Floats) -> float:
        """Budget that these rates use."""
        return float(sync_rate.sum() if self.cost is None else np.dot(self.cost, sync_rate))

    @property
    def unbounded(self) -> bool:
        """Nothing but the budget limits the rates."""
        return self.cap is None and self.least_rate is None and self.most_rate is None


def _column(
    name: str,
    values: ArrayLike | None,
    n: int,
    *,
    above: float | None = None,
    least: float | None = None,
    most: float | None = None,
    infinite: bool = False,
    remedy: str,
) -> Floats | None:
    if values is None:
        return None
    x = numbers(name, values, above=above, least=least, most=most, infinite=infinite, remedy=remedy)
    require(
        x.ndim == 0 or x.shape == (n,),
        name,
        f"with shape {x.shape}",
        f"must have {n} values, as change_rate has",
        "give one per source, or one for all",
    )
    return np.broadcast_to(x, (n,)) if x.ndim == 0 else x


def _hosts(host: ArrayLike | None, cap: ArrayLike | None, n: int) -> tuple[Rows | None, Floats | None]:
    if cap is None:
        return None, None
    caps = np.atleast_1d(numbers("host cap", cap, above=0.0, infinite=True, remedy="drop the host to poll nothing"))
    if not np.isfinite(caps).any():
        return None, None
    numbers("host cap", caps[np.isfinite(caps)], most=LARGEST, remedy="give inf for no cap")
    rows = np.asarray(0 if host is None else host, dtype=np.intp)
    rows = np.broadcast_to(rows, (n,)) if rows.ndim == 0 else rows
    require(rows.shape == (n,), "host", f"with shape {rows.shape}", f"must have {n} values", "give one per source")
    if n:
        require(
            rows.min() >= 0 and rows.max() < len(caps),
            "host",
            f"row {rows.max()}",
            f"must be one of the {len(caps)} caps",
            "number hosts from 0",
        )
    return rows, caps
