"""The value φ of polling, its inverse the interval, and the staleness they trade, for each objective."""

from unstale.core.values.base import Rows, Value
from unstale.core.values.belief import BeliefFreshness
from unstale.core.values.belief_age import BeliefAge
from unstale.core.values.deadline import PoissonDeadline
from unstale.core.values.factory import OBJECTIVES, value_of
from unstale.core.values.laws import MissedChanges, SummedLag
from unstale.core.values.mixed import Mixed
from unstale.core.values.order import ORDERS
from unstale.core.values.poisson import PoissonAge, PoissonFreshness
from unstale.core.values.process import ProcessValue
from unstale.core.values.update import UpdateValue

__all__ = [
    "OBJECTIVES",
    "ORDERS",
    "BeliefAge",
    "BeliefFreshness",
    "MissedChanges",
    "Mixed",
    "PoissonAge",
    "PoissonDeadline",
    "PoissonFreshness",
    "ProcessValue",
    "Rows",
    "SummedLag",
    "UpdateValue",
    "Value",
    "value_of",
]
