"""Many replicas of one source, and many of many sources [003 section VI, 004].

`cascade` and `tree`: replicas of replicas. `cooperation`, `spread` and `design`: replicas that ask each other.
`redundancy`: clients that ask several replicas. `balance`: many sources on many replicas.
"""

from unstale.core.replication.cascade import (
    cascade_freshness,
    cascade_levels,
    cascade_residual,
    lasting_freshness,
    lasting_rates,
)
from unstale.core.replication.cooperation import cooperation_limit, cooperative_freshness
from unstale.core.replication.design import CooperationDesign, best_cooperation, cooperation_for
from unstale.core.replication.spread import drawn_freshness
from unstale.core.replication.tree import TreeDesign, best_tree, tree_with

__all__ = [
    "CooperationDesign",
    "TreeDesign",
    "best_cooperation",
    "best_tree",
    "cascade_freshness",
    "cascade_levels",
    "cascade_residual",
    "cooperation_for",
    "cooperation_limit",
    "cooperative_freshness",
    "drawn_freshness",
    "lasting_freshness",
    "lasting_rates",
    "tree_with",
]
