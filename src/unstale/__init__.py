"""Keep local copies of things that change elsewhere as fresh as a polling budget allows."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from unstale.errors import (
    ConvergenceError,
    InfeasibleError,
    InputError,
    MissingExtraError,
    UnstaleError,
)

if TYPE_CHECKING:
    from unstale import penalties, processes
    from unstale.adapters.replica_client import ReplicaClient
    from unstale.core.belief import Belief
    from unstale.core.carousel import carousel
    from unstale.core.inverse import poisson_overestimate, speedup, sync_rate_for
    from unstale.core.learning.learner import Learner
    from unstale.core.phase import jitter, phase_locked
    from unstale.core.sketch import Sketch
    from unstale.core.staleness import (
        age,
        consistency,
        freshness,
        lag_cdf,
        missed_changes,
        staleness,
        update_staleness,
    )
    from unstale.core.trace import Trace
    from unstale.keeper.outcomes import Outcome
    from unstale.keeper.scheduler import Scheduler
    from unstale.planning.fleet_plan import FleetPlan
    from unstale.planning.planner import plan
    from unstale.planning.topology import Question, Topology, topology

__version__ = "0.1.0"

#: where each public name lives; loaded on first use, so that `import unstale` costs nothing
_HOMES = {
    "carousel": "unstale.core.carousel",
    "poisson_overestimate": "unstale.core.inverse",
    "speedup": "unstale.core.inverse",
    "sync_rate_for": "unstale.core.inverse",
    "jitter": "unstale.core.phase",
    "phase_locked": "unstale.core.phase",
    "Sketch": "unstale.core.sketch",
    "age": "unstale.core.staleness",
    "consistency": "unstale.core.staleness",
    "freshness": "unstale.core.staleness",
    "lag_cdf": "unstale.core.staleness",
    "missed_changes": "unstale.core.staleness",
    "staleness": "unstale.core.staleness",
    "update_staleness": "unstale.core.staleness",
    "FleetPlan": "unstale.planning.fleet_plan",
    "plan": "unstale.planning.planner",
    "Belief": "unstale.core.belief",
    "Learner": "unstale.core.learning.learner",
    "Trace": "unstale.core.trace",
    "Outcome": "unstale.keeper.outcomes",
    "Scheduler": "unstale.keeper.scheduler",
    "ReplicaClient": "unstale.adapters.replica_client",
    "Question": "unstale.planning.topology",
    "Topology": "unstale.planning.topology",
    "topology": "unstale.planning.topology",
}

__all__ = [
    "Belief",
    "ConvergenceError",
    "FleetPlan",
    "InfeasibleError",
    "InputError",
    "Learner",
    "MissingExtraError",
    "Outcome",
    "Question",
    "ReplicaClient",
    "Scheduler",
    "Sketch",
    "Topology",
    "Trace",
    "UnstaleError",
    "age",
    "carousel",
    "consistency",
    "freshness",
    "jitter",
    "lag_cdf",
    "missed_changes",
    "penalties",
    "phase_locked",
    "plan",
    "poisson_overestimate",
    "processes",
    "speedup",
    "staleness",
    "sync_rate_for",
    "topology",
    "update_staleness",
]


def __getattr__(name: str) -> Any:
    if name in ("penalties", "processes"):
        return import_module(f"unstale.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'unstale' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
