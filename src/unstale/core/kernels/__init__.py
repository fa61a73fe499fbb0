"""The fast pass: Poisson freshness in the pure case, for fleets up to 10⁸ sources and more."""

from unstale.core.kernels.passes import Expected, expected, rates, spent, warm
from unstale.core.kernels.root import plan, solve
from unstale.core.roots.passes import Root

__all__ = ["Expected", "Root", "expected", "plan", "rates", "solve", "spent", "warm"]
