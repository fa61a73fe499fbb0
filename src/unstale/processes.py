"""Change and poll processes, under their public name."""

from unstale.core.processes import *  # noqa: F403
from unstale.core.processes import __all__ as __all__
