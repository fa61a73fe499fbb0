"""Change and poll processes, one per file."""

from unstale.core.processes.base import Ageing, Process
from unstale.core.processes.poisson import Poisson

__all__ = ["Ageing", "Poisson", "Process"]
