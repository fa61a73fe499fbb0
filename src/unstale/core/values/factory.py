"""From an objective's name to its value."""

from __future__ import annotations

from numpy.typing import ArrayLike

from unstale.core.penalties import Constant, Deadline, Linear, Penalty
from unstale.core.processes.base import Process
from unstale.core.processes.poisson import Poisson
from unstale.core.values.base import Value
from unstale.core.values.deadline import PoissonDeadline
from unstale.core.values.laws import MissedChanges, SummedLag
from unstale.core.values.poisson import PoissonAge, PoissonFreshness
from unstale.core.values.process import ProcessValue
from unstale.core.values.update import UpdateValue
from unstale.errors import require

OBJECTIVES = ("freshness", "age", "missed", "lag", "penalty")


def value_of(
    objective: str,
    change_rate: ArrayLike,
    *,
    order: str = "fixed",
    changes: Process | None = None,
    penalty: Penalty | None = None,
) -> Value:
    """The value of polls under an objective.

    "freshness": being stale counts 1; "age": the age counts; "penalty": `penalty` of the age counts;
    "missed": each unseen change counts 1, or `penalty` of its lag; "lag": each unseen change counts its lag.
    `changes` gives the shape of the gaps between changes (Poisson if left out), scaled to each change_rate;
    the last two depend on the rate alone, whatever the shape. Closed forms are taken where they exist.

    >>> type(value_of("penalty", [1.0], penalty=Linear())).__name__
    'PoissonAge'
    """
    require(
        objective in OBJECTIVES,
        "objective",
        repr(objective),
        f"must be one of {', '.join(OBJECTIVES)}",
        "freshness is the usual choice",
    )
    if objective == "missed":
        return MissedChanges(change_rate, order) if penalty is None else UpdateValue(change_rate, penalty, order)
    require(
        (penalty is not None) == (objective == "penalty"),
        "penalty",
        penalty,
        "must be given with the objectives penalty or missed, and with no other",
        "name objective='penalty' to weigh the age by a function of it",
    )
    if objective == "lag":
        return SummedLag(change_rate, order)
    harm = penalty or {"freshness": Constant, "age": Linear}[objective]()
    if changes is None or isinstance(changes, Poisson):
        if isinstance(harm, Constant):
            return PoissonFreshness(change_rate, order)
        if isinstance(harm, Linear):
            return PoissonAge(change_rate, order)
        if isinstance(harm, Deadline):
            return PoissonDeadline(change_rate, harm.tau, order)
    return ProcessValue(changes or Poisson(1.0), change_rate, harm, order)
