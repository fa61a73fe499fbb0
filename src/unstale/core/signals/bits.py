"""Listings of bits, exactly: what a member brings when each listing says only "changed" or "unchanged", with noise."""

from __future__ import annotations

import math

import numpy as np

from unstale.core import special
from unstale.core.signals.noisy import bit_doubts
from unstale.core.signals.roots import rising_root

#: a doubt beyond it is certainty, and a member never polled
_CERTAIN = 700.0


def bit_value(doubt: float, change_rate: float, recall: float, precision: float, window: float) -> float:
    """What a poll of a member is worth at a doubt, its listing of bits being polled every `window`.

    A·E Σ_k (f_k − e^(−S))⁺ over listings k = 0, 1, …, A = (1 − e^(−λ·window))/λ the fresh time of a window begun fresh,
    f_k the belief at listing k. With a and b the doubts that "unchanged" and "changed" add, and j of k bits
    "changed", f = e^(−(k−j)·a − j·b); summed over k for each j by two incomplete beta functions. As the window
    shrinks it becomes the value under pushed signals. Known rates. [docs/theory/signals.md, above (7)].

    >>> round(bit_value(0.673691634, 1.0, 0.8, 0.7, 1e-3), 4)
    0.3001
    """
    silent, told = bit_doubts(change_rate, recall, precision, window)
    changed = -math.expm1(-recall * change_rate / precision * window)
    kept = -math.expm1(-change_rate * window) / change_rate
    if changed == 0.0:
        # no signals: k windows, each adding `silent`
        n = math.ceil(doubt / silent)
        beliefs = math.expm1(-n * silent) / math.expm1(-silent)
        return kept * (beliefs - n * math.exp(-doubt))
    total, j = 0.0, 0
    while j == 0 or j * told < doubt:
        left = doubt - (j * told if j else 0.0)
        # listings up to the one at which the belief falls to the level, without it
        most = j + (math.ceil(left / silent) - 1 if silent > 0 else math.inf)
        stays = (1.0 - changed) * math.exp(-silent)
        weight = (changed * math.exp(-told) / (1.0 - stays)) ** j if j else 1.0
        above = weight / (1.0 - stays) * _at_least(j + 1, most + 1, 1.0 - stays)
        total += above - math.exp(-doubt) / changed * _at_least(j + 1, most + 1, changed)
        j += 1
    return kept * total


def bit_freshness(window: float, due: float, change_rate: float, recall: float, precision: float) -> float:
    """What a member brings per unit of time and weight, its polls paid, with a listing of bits every `window`.

    θ·A/window, where `bit_value` at the doubt −log θ is `due`, A = (1 − e^(−λ·window))/λ: the exact answer that
    `listed_freshness` estimates from below. 0 for an abandoned member. Polls at listings only, known rates.
    [docs/theory/signals.md, above (7)].

    >>> round(bit_freshness(0.5, 0.3, 1.0, 0.8, 0.7), 9)
    0.441129853
    """
    if due * change_rate >= 1.0:
        return 0.0
    kept = -math.expm1(-change_rate * window) / change_rate
    doubt = rising_root(lambda s: bit_value(min(s, _CERTAIN), change_rate, recall, precision, window) - due, 0.1)
    return math.exp(-doubt) * kept / window


def _at_least(successes: float, trials: float, chance: float) -> float:
    """The probability of so many successes or more."""
    if not np.isfinite(trials):
        return 1.0
    return float(special.betainc(successes, trials - successes + 1.0, chance)) if trials >= successes else 0.0
