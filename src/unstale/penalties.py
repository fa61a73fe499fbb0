"""Penalties, under their public name."""

from unstale.core.custom_penalty import Custom
from unstale.core.penalties import Constant, Deadline, Decay, Linear, Penalty, Power, Reciprocal, Saturating

__all__ = ["Constant", "Custom", "Deadline", "Decay", "Linear", "Penalty", "Power", "Reciprocal", "Saturating"]
