"""Change and poll processes, one per file."""

from unstale.core.processes.base import Ageing, Process
from unstale.core.processes.constant import Constant
from unstale.core.processes.empirical import Empirical
from unstale.core.processes.gamma import Gamma
from unstale.core.processes.lognormal import LogNormal
from unstale.core.processes.mixture import Mixture
from unstale.core.processes.pareto import Pareto
from unstale.core.processes.poisson import Poisson
from unstale.core.processes.superposition import Superposition
from unstale.core.processes.triangular import Triangular
from unstale.core.processes.uniform import Uniform
from unstale.core.processes.weekly import WeeklyPoisson
from unstale.core.processes.weibull import Weibull

__all__ = [
    "Ageing",
    "Constant",
    "Empirical",
    "Gamma",
    "LogNormal",
    "Mixture",
    "Pareto",
    "Poisson",
    "Process",
    "Superposition",
    "Triangular",
    "Uniform",
    "WeeklyPoisson",
    "Weibull",
]
