"""Bursts: changes that follow changes. How much likelier a change is, by the time since the last one we know of.

A belief knows a source's rate; this knows what all sources of a fleet have in common beyond their rates: after a
change more follow, and long silence lasts. The time since the last change that a poll found falls into one of
eight spans, each twice as long as the one before, and each has a factor by which changes come more often than the
belief says: learned like the week's profile, and used only while it foretells better.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from unstale.core.checks import Floats
from unstale.core.learning.compiled import pasted

SPANS = 8
#: the factors stay within it: a belief that is wrong by more needs learning, not stretching
_MOST = 2.5
_CAUTION = 20.0


class Bursts(NamedTuple):
    """The factor of each span, and whether it is used; `unit` is the end of the second span, in seconds."""

    factor: Floats
    unit: float
    trusted: bool


def no_bursts(unit: float) -> Bursts:
    """Changes that come without regard to each other."""
    return Bursts(np.ones(SPANS), unit, False)


@pasted
def span(bursts: Bursts, silence: float) -> int:
    """The span that a silence falls into: 0 when the last poll found a change."""
    if silence <= 0.0:
        return 0
    return min(max(math.floor(math.log2(silence / bursts.unit)) + 2, 1), SPANS - 1)


@pasted
def count_changes(tally: Floats, place: int, likely: float, stretched: float, changed: bool) -> None:
    """Add one poll to the tally of changes (row 0) and of changes the belief expected (row 1)."""
    tally[1, place] += likely
    if changed:
        tally[0, place] += stretched / -math.expm1(-stretched) if stretched > 1e-9 else 1.0


def learned_bursts(tally: Floats, unit: float, trusted: bool) -> Bursts:
    """The factors that a tally teaches, drawn to 1 where little was seen.

    >>> tally = np.full((2, 8), 980.0)
    >>> tally[0, 0] = 1480.0
    >>> [float(x) for x in learned_bursts(tally, 1.0, True).factor[:2]]
    [1.5, 1.0]
    """
    factor = (tally[0] + _CAUTION) / (tally[1] + _CAUTION)
    return Bursts(np.clip(factor, 1.0 / _MOST, _MOST), unit, trusted)
