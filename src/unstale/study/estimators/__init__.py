"""Classical estimators of a change rate, each with what it sees, the polls it assumes, its bias and its source.

They are here to be compared, and for users who want them; what Unstale itself learns with is a belief.
"""

from unstale.study.estimators.base import Estimator, Observations, Sees, Timing
from unstale.study.estimators.counts import BiasReduced, Naive
from unstale.study.estimators.incomplete import SeenGaps, seen_gaps
from unstale.study.estimators.last_modified import LastModified, ReducedLastModified
from unstale.study.estimators.likelihood import MaximumLikelihood, ReducedLikelihood
from unstale.study.estimators.online import LawOfLargeNumbers, Momentum, StochasticApproximation
from unstale.study.estimators.table import ESTIMATORS, BiasRow, bias_table

__all__ = [
    "ESTIMATORS",
    "BiasReduced",
    "BiasRow",
    "Estimator",
    "LastModified",
    "LawOfLargeNumbers",
    "MaximumLikelihood",
    "Momentum",
    "Naive",
    "Observations",
    "ReducedLastModified",
    "ReducedLikelihood",
    "SeenGaps",
    "Sees",
    "StochasticApproximation",
    "Timing",
    "bias_table",
    "seen_gaps",
]
