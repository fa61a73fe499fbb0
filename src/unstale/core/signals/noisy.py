"""Signals that lie and keep silent: how sure we are that a copy is fresh, and what a poll of it is worth then.

Rules of this file:
1. A change is signalled with probability `recall`; `precision` is the share of signals that are true. With rate λ:
   silent changes come at α = (1 − recall)·λ, signals at γ = recall·λ/precision, false ones at ν = γ·(1 − precision).
2. `doubt` is −log of the believed probability that a copy is fresh: it adds up, over time and over signals.
3. `due` is what a poll must bring, in units of fresh time: price·cost/weight.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from unstale.core import special
from unstale.core.checks import Floats, numbers
from unstale.core.gamma2 import p2, p2_inverse

#: doubts beyond this are certainty
CERTAIN = 60.0
#: signals that one doubt may hold; more are as good as so many
_MOST = 10_000

#: shares below this are 0
_LEAST = 1e-300


def signal_doubt(precision: ArrayLike) -> Floats:
    """The doubt that one signal adds: −log(1 − precision), inf for a signal that never lies.

    A signal is a false one with probability 1 − precision, and only then is a copy that was fresh still so. Signals at
    known times, independent given the changes. [docs/theory/signals.md, (5)].

    >>> round(float(signal_doubt(0.7)), 9)
    1.203972804
    """
    with np.errstate(divide="ignore"):
        return np.asarray(-np.log1p(-_shares("precision", precision, above=0)))


def doubt(
    change_rate: ArrayLike,
    recall: ArrayLike,
    precision: ArrayLike,
    covered: ArrayLike,
    uncovered: ArrayLike,
    signals: ArrayLike,
) -> Floats:
    """The doubt about a copy: silent changes while listings covered its time, any change while none did, and signals.

    α·covered + λ·uncovered − signals·log(1 − precision). `covered` is the time since the copy for which listings spoke,
    `uncovered` the rest: since the last listing, and what a listing left out. Known rates.
    [docs/theory/signals.md, (5)].

    >>> round(float(doubt(1.0, 0.8, 0.7, covered=2.0, uncovered=0.1, signals=1)), 9)
    1.703972804
    """
    rate, n = np.asarray(change_rate, np.float64), np.asarray(signals, np.float64)
    silent = (1.0 - _shares("recall", recall)) * rate
    with np.errstate(invalid="ignore"):
        told = np.where(n > 0, n * signal_doubt(precision), 0.0)
    return np.asarray(silent * np.asarray(covered) + rate * np.asarray(uncovered) + told)


def bit_doubts(change_rate: float, recall: float, precision: float, window: float) -> tuple[float, float]:
    """The doubts that a listing of bits adds over a window: by "unchanged", and by "changed".

    α·window, and −log(e^(−λ·window)·(1 − e^(−ν·window))/(1 − e^(−γ·window))); the latter is inf without false signals.
    One bit per member and listing, known rates. [docs/theory/signals.md, (5)].

    >>> [round(float(np.exp(-x)), 9) for x in bit_doubts(1.0, 0.8, 0.7, 0.5)]
    [0.904837418, 0.219518839]
    """
    signals = recall * change_rate / precision
    lies = signals * (1.0 - precision)
    if lies == 0.0 or signals == 0.0:
        return (1.0 - recall) * change_rate * window, np.inf
    share = np.expm1(-lies * window) / np.expm1(-signals * window)
    return (1.0 - recall) * change_rate * window, float(change_rate * window - np.log(share))


def value(doubt: ArrayLike, change_rate: ArrayLike, recall: ArrayLike, precision: ArrayLike) -> Floats:
    """What a poll of a member is worth at a doubt, in units of fresh time: poll when it reaches `due`.

    V(S) = Σ over n with n·B < S of ν^n/(λ+ν)^(n+1)·P(n+1, (λ+ν)·τ) − e^(−S)/γ·P(n+1, γ·τ), τ = (S − n·B)/α, B the doubt
    of one signal: the area of the belief curve above its present level, E∫(f(t) − e^(−S))⁺dt, for a copy taken
    now. It rises with S to 1/λ whatever the noise. Without signals it is the value of plain polling, P(2, S)/λ; one
    signal at recall 1 is worth precision²/λ. Signals pushed or listings frequent; known rates. Absolute error
    below 1e-14/λ. Busa-Fekete et al. (2025) have it for pushed signals. [docs/theory/signals.md, (6)].

    >>> value([1.0, 2.5], 1.0, 0.8, 0.7).round(9).tolist()
    [0.422944476, 0.791253554]
    """
    given = (np.asarray(x, np.float64) for x in (doubt, change_rate))
    s, rate, r, pi = np.broadcast_arrays(*given, _shares("recall", recall), _shares("precision", precision, above=0))
    silent, signals = (1.0 - r) * rate, r * rate / pi
    lies = signals * (1.0 - pi)
    each, certain = signal_doubt(pi), np.exp(-s)
    with np.errstate(all="ignore"):
        step = lies / (rate + lies)
        total, weight = np.zeros(s.shape), 1.0 / (rate + lies)
        n = 0
        while n < _MOST:
            left = s - (n * each if n else 0.0)
            some = (left > 0.0) & (s < np.inf)  # what certainty is worth is known without a sum
            if not some.any():
                break
            time = np.where(some, np.where(silent > 0, left / silent, np.inf), 0.0)
            paid = np.where(signals > 0, special.gammainc(n + 1, signals * time) / signals, 0.0)
            term = weight * special.gammainc(n + 1, (rate + lies) * time) - certain * paid
            total = total + np.where(some, term, 0.0)
            weight, n = weight * step, n + 1
        total = np.where(signals > 0, total, p2(s) / rate)
        return np.asarray(np.where(rate > 0, np.where(s < np.inf, total, 1.0 / rate), 0.0))


def mean_cycle(doubt: ArrayLike, change_rate: ArrayLike, recall: ArrayLike, precision: ArrayLike) -> Floats:
    """The mean time that a fresh copy takes to reach a doubt: a member polled there is polled once so often.

    M(S) = Σ over n with n·B < S of P(n+1, γ·τ)/γ, τ = (S − n·B)/α; S/λ without signals. The value's slope is V' =
    e^(−S)·M, and 1/M is how fast what a member brings falls with its due. Signals pushed; known rates.
    [docs/theory/signals.md, (6)].

    >>> round(float(mean_cycle(1.0, 1.0, 0.8, 0.7)), 6)
    0.872114
    """
    given = (np.asarray(x, np.float64) for x in (doubt, change_rate))
    s, rate, r, pi = np.broadcast_arrays(*given, _shares("recall", recall), _shares("precision", precision, above=0))
    silent, signals, each = (1.0 - r) * rate, r * rate / pi, signal_doubt(pi)
    total = np.zeros(s.shape)
    with np.errstate(all="ignore"):
        for n in range(_MOST):
            left = s - (n * each if n else 0.0)
            some = left > 0.0
            if not some.any():
                break
            time = np.where(some, np.where(silent > 0, left / silent, np.inf), 0.0)
            total = total + np.where(some & (signals > 0), special.gammainc(n + 1, signals * time) / signals, 0.0)
        return np.asarray(np.where(signals > 0, total, s / rate))


def limit(change_rate: ArrayLike) -> Floats:
    """What a poll of a member is worth at most, 1/change_rate: it is abandoned iff due is as much, whatever the noise.

    >>> limit([0.5, 2.0]).tolist()
    [2.0, 0.5]
    """
    rate = np.asarray(change_rate, np.float64)
    with np.errstate(divide="ignore"):
        return np.asarray(np.where(rate > 0, 1.0 / rate, 0.0))


def doubt_for(due: ArrayLike, change_rate: ArrayLike, recall: ArrayLike, precision: ArrayLike) -> Floats:
    """The doubt at which a poll is worth `due`; inf for an abandoned member.

    The root S of V(S) = due, by bisection: V is continuous and rises. e^(−S) per unit of weight is what the member
    brings per unit of time at the optimum, its polls paid. Without silence, doubt only comes in steps of one signal,
    and the root lies where the next signal passes it. Relative error below 1e-12. [docs/theory/signals.md, (6)].

    >>> round(float(doubt_for(0.3, 1.0, 0.8, 0.7)), 9)
    0.673691634
    """
    w, rate, r, pi = np.broadcast_arrays(*(np.asarray(x, np.float64) for x in (due, change_rate, recall, precision)))
    low, high = np.full(w.shape, np.log(1e-9)), np.full(w.shape, np.log(CERTAIN))
    for _ in range(60):
        middle = 0.5 * (low + high)
        enough = value(np.exp(middle), rate, r, pi) >= w
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return np.asarray(np.where(w * rate < 1.0, np.where(w > 0, np.exp(high), 0.0), np.inf))


def listed_freshness(
    interval: ArrayLike, due: ArrayLike, change_rate: ArrayLike, recall: ArrayLike, precision: ArrayLike
) -> Floats:
    """What a member brings per unit of time and weight, its polls paid, if its listing is polled every `interval`.

    e^(−S)·(1 − e^(−λT))/(λT), S from `doubt_for`, and never less than plain polling brings, e^(−y) with
    P(2, y) = λ·due. A lower estimate (1, 4, 9 and 12 % low at λT = .05, .2, .5 and 1 for recall .8, precision .7 and
    due .3/λ), exact for exact signals below the plain interval. Signals worth nothing bring less than plain polling, so
    that such a listing is dropped by itself. [docs/theory/signals.md, (7)].

    >>> listed_freshness([0.05, 5.0], 0.3, 1.0, 0.8, 0.7).round(6).tolist()
    [0.497287, 0.333755]
    """
    t, w, rate, r, pi = np.broadcast_arrays(
        *(np.asarray(x, np.float64) for x in (interval, due, change_rate, recall, precision))
    )
    with np.errstate(all="ignore"):
        kept = np.where(rate * t > 0, -np.expm1(-rate * t) / (rate * t), 1.0)
        plain = np.exp(-p2_inverse(np.minimum(rate * w, 1.0)))
    return np.asarray(np.maximum(np.exp(-doubt_for(w, rate, r, pi)) * kept, plain))


def _shares(name: str, given: ArrayLike, above: float | None = None) -> Floats:
    found = numbers(
        name, given, above=above, least=None if above is not None else 0.0, most=1.0, remedy="give a share of one"
    )
    # Smaller ones lose their digits: none at all is nearer.
    return np.where(found < _LEAST, 0.0, found) if above is None else found
