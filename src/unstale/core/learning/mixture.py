"""What is known of one source: several beliefs that forget at different speeds, and how well each has foretold.

A row of K half-lives holds 3·K + 4 numbers: the shape and the exposure that polls have added to the prior, faded, the
standing of each half-life, its log likelihood of what the polls found, faded too; and last, once for all half-lives,
what the polls said as they said it (`core.evidence`), from which the prior and intervals for the rate are read. This
file alone knows where in a row they are; others ask `parts` and `said`.

Rules of this file:
1. Only scalars and small arrays, so that it compiles; the caller gives the room (`Scratch`) to work in.
2. What is known is prior + evidence. Fading takes evidence away, so that a source not heard of for long is again a
   source we know nothing about, and a better prior serves every source at once.
3. The value of a poll is the mean of the beliefs' values, weighted by their standing: it is linear in the law of
   the first change, so no single half-life need be chosen.
4. What polls said fades with the half-life that foretells best, and hardly while that is the slowest: a source that
   keeps its rate is known the better the longer it is polled. Rows without room for it do without.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from unstale.core.checks import Floats
from unstale.core.evidence import together
from unstale.core.learning.compiled import pasted
from unstale.core.learning.exactly import for_numbers
from unstale.core.learning.gamma import after_change
from unstale.core.learning.harm import Harm, harm_value

#: what a standing keeps at each poll: about fifty polls count
MEMORY = 0.98
#: a half-life with less weight does not change an interval
NEGLIGIBLE = 1e-4
#: intervals are solved to this share of themselves
CLOSE = 1e-3
STEPS = 60
#: what differs by this factor differs for certain, however values are rounded
SURELY = 1.0 + 1e-6
_LN2 = math.log(2.0)
#: the least probability an outcome is given: no surprise can rule a half-life out for ever
LEAST = 1e-12
#: intervals that differ by less are taken for equal
ALIKE = 1e-3


#: numbers that keep what polls said: changes of known time, time without changes, late polls and their span
SAID = 4
#: how much longer than it says the slowest half-life lasts for what polls said
SLOWER = 10.0

_one_more = pasted(together, for_numbers(together))


class Shared(NamedTuple):
    """What all sources of a fleet share: the prior's shape and exposure, the half-lives and their log weights."""

    prior: Floats
    half_lives: Floats
    favour: Floats
    #: what polls are for
    harm: Harm


class Scratch(NamedTuple):
    """Scratch columns of one thread: each half-life's shape, exposure and weight."""

    shape: Floats
    exposure: Floats
    weight: Floats


def scratch(half_lives: int) -> Scratch:
    """Scratch for so many half-lives."""
    return Scratch(np.empty(half_lives), np.empty(half_lives), np.empty(half_lives))


def width(half_lives: int) -> int:
    """The numbers in a row."""
    return 3 * half_lives + SAID


def parts(rows: Floats) -> tuple[Floats, Floats, Floats]:
    """The shapes, exposures and standings in a row or in many, a column for each half-life: views, to be written too.

    >>> [part.tolist() for part in parts(np.arange(10.0))]
    [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]
    """
    count = (rows.shape[-1] - SAID) // 3
    return rows[..., :count], rows[..., count : 2 * count], rows[..., 2 * count : 3 * count]


def learned(rows: Floats) -> Floats:
    """The part of rows that polls are decided by: shapes, exposures and standings, without what polls said."""
    return rows[..., :-SAID]


def favoured(row: Floats, shared: Shared) -> float:
    """The half-life that has foretold best, in seconds."""
    return float(shared.half_lives[int(np.argmax(parts(row)[2] + shared.favour))])


@pasted
def gather(row: Floats, shared: Shared, at: Scratch) -> float:
    """Fill the room from a row, and return the mean change rate."""
    count = len(shared.half_lives)
    highest = -math.inf
    for k in range(count):
        at.shape[k] = shared.prior[0] + row[k]
        at.exposure[k] = shared.prior[1] + row[count + k]
        at.weight[k] = row[2 * count + k] + shared.favour[k]
        highest = max(highest, at.weight[k])
    total = 0.0
    for k in range(count):
        at.weight[k] = math.exp(at.weight[k] - highest) if at.weight[k] != highest else 1.0
        total += at.weight[k]
    mean = 0.0
    for k in range(count):
        at.weight[k] /= total
        mean += at.weight[k] * at.shape[k] / at.exposure[k]
    return mean


@pasted
def foretold(at: Scratch, elapsed: float, changed: bool) -> float:
    """The log probability that the gathered beliefs gave to this outcome."""
    total = 0.0
    for k in range(len(at.weight)):
        still = -at.shape[k] * math.log1p(elapsed / at.exposure[k])
        total += at.weight[k] * (-math.expm1(still) if changed else math.exp(still))
    return math.log(max(total, LEAST))


@pasted
def note(row: Floats, shared: Shared, at: Scratch, elapsed: float, passed: float, changed: bool, since: float) -> None:
    """Keep in a gathered row what a poll said, before it is learned from; arguments as `learn` has them."""
    count = len(shared.half_lives)
    said = 3 * count
    if len(row) < said + SAID:
        return
    if row[said] + row[said + 1] + row[said + 2] == 0.0:
        # Kept by a version that had no such numbers, or blank: what the slowest half-life knows, which is 0 then.
        row[said], row[said + 1] = row[0], row[count]
    best, rate = 0, 0.0
    for k in range(count):
        rate += at.weight[k] * at.shape[k] / at.exposure[k]
        if at.weight[k] > at.weight[best]:
            best = k
    kept = math.exp2(-elapsed / (shared.half_lives[best] * (SLOWER if best == 0 else 1.0)))
    for k in range(said, said + 3):
        row[k] *= kept
    if not changed:
        row[said + 1] += passed
    elif since == since:
        row[said] += 1.0
        row[said + 1] += since
    elif passed > 0.0:
        late, span = row[said + 2], row[said + 3]
        if late == 0.0:
            span = passed
        if abs(passed - span) <= ALIKE * span:
            late += 1.0
        else:
            late, span = _one_more(late, span, passed, rate)
        row[said + 2], row[said + 3] = late, span


@pasted
def learn(row: Floats, shared: Shared, at: Scratch, elapsed: float, passed: float, changed: bool, since: float) -> None:
    """Teach a gathered row what a poll found.

    `elapsed` is the time since the last answer, `passed` the same on the fleet's clock. `since` is how long ago the
    source says it last changed, on that clock, or NaN: exact then, and matched by two moments otherwise.
    """
    note(row, shared, at, elapsed, passed, changed, since)
    count = len(shared.half_lives)
    for k in range(count):
        still = -at.shape[k] * math.log1p(passed / at.exposure[k])
        told = math.log(max(-math.expm1(still), LEAST)) if changed else still
        row[2 * count + k] = MEMORY * row[2 * count + k] + told
        shape, exposure = 0.0, passed
        if changed and since == since:
            shape, exposure = 1.0, since
        elif changed:
            matched, stretched = after_change(at.shape[k], at.exposure[k], passed)
            shape, exposure = matched - at.shape[k], stretched - at.exposure[k]
        # What was known fades; what was just seen does not.
        kept = math.exp2(-elapsed / shared.half_lives[k])
        row[k] = max(kept * row[k] + shape, 0.0)
        row[count + k] = max(kept * row[count + k] + exposure, 0.0)


@pasted
def rate_if(row: Floats, shared: Shared, at: Scratch, quiet: float, since: float, twice: bool) -> float:
    """The mean change rate that a row would have if nothing had changed for `quiet`, then something, `since` ago.

    Without a change if `since` is NaN. The same as to `learn` all of it and `gather`, in one pass, and nothing is
    learned. The silence since the change may count twice, with the change and as time without one: changes come in
    bursts, so that long silence says more than a steady rate would. Who chooses by it keeps copies fresher.
    """
    count = len(shared.half_lives)
    highest = -math.inf
    for k in range(count):
        shape, exposure, standing = row[k], row[count + k], row[2 * count + k]
        if quiet > 0.0:
            still = -(shared.prior[0] + shape) * math.log1p(quiet / (shared.prior[1] + exposure))
            kept = math.exp(-_LN2 * quiet / shared.half_lives[k])
            shape, exposure, standing = kept * shape, kept * exposure + quiet, MEMORY * standing + still
        if since == since:
            still = -(shared.prior[0] + shape) * math.log1p(since / (shared.prior[1] + exposure))
            kept = math.exp(-_LN2 * since / shared.half_lives[k])
            shape, exposure = kept * shape + 1.0, kept * exposure + since
            standing = MEMORY * standing + math.log(max(-math.expm1(still), LEAST))
            if twice:
                still = -(shared.prior[0] + shape) * math.log1p(since / (shared.prior[1] + exposure))
                exposure, standing = exposure + since, MEMORY * standing + still
        at.exposure[k] = (shared.prior[0] + shape) / (shared.prior[1] + exposure)
        at.weight[k] = standing + shared.favour[k]
        highest = max(highest, at.weight[k])
    total, mean = 0.0, 0.0
    for k in range(count):
        weight = math.exp(at.weight[k] - highest)
        total += weight
        mean += weight * at.exposure[k]
    return mean / total


@pasted
def value(at: Scratch, shared: Shared, elapsed: float) -> tuple[float, float]:
    """The value of polling after `elapsed`, and its slope."""
    worth, slope, one, steep, shape, exposure = 0.0, 0.0, 0.0, 0.0, math.nan, math.nan
    for k in range(len(at.weight)):
        if at.weight[k] > NEGLIGIBLE:
            # Beliefs that are alike are worth the same: those of a source just met, or whose rate is known.
            if at.shape[k] != shape or at.exposure[k] != exposure:
                shape, exposure = at.shape[k], at.exposure[k]
                one, steep = harm_value(shared.harm, shape, exposure, elapsed)
            worth += at.weight[k] * one
            slope += at.weight[k] * steep
    return worth, slope


@pasted
def _surely_reaches(at: Scratch, shared: Shared, elapsed: float, worth: float) -> bool:
    """Whether one half-life alone shows that the value after `elapsed` is above `worth`; the others add to it."""
    best = 0
    for k in range(len(at.weight)):
        if at.weight[k] > at.weight[best]:
            best = k
    least = at.weight[best] * harm_value(shared.harm, at.shape[best], at.exposure[best], elapsed)[0]
    return bool(least > SURELY * worth)


@pasted
def _surely_below(at: Scratch, shared: Shared, elapsed: float, worth: float) -> bool:
    """Whether the value after `elapsed` is below `worth`, as no first change is likelier than at the very start.

    By rate·∫ y·w(y) dy, the value if every change counted, at or above every other.
    """
    rate, most, harm = 0.0, 0.0, shared.harm
    for k in range(len(at.weight)):
        rate += at.weight[k] * at.shape[k] / at.exposure[k]
    for j in range(len(harm.age)):
        y = harm.age[j]
        left = elapsed - y
        if left <= 0.0:
            break
        most += harm.jump[j] * 0.5 * left * (elapsed + y) + harm.bend[j] * left * left * (2.0 * elapsed + y) / 6.0
    return bool(SURELY * rate * most < worth)


@pasted
def interval(at: Scratch, shared: Shared, worth: float, shortest: float, longest: float, guess: float) -> float:
    """The wait after which a poll has the value `worth`, within its bounds: Newton in logarithms, kept in a bracket."""
    if not _surely_reaches(at, shared, longest, worth) and value(at, shared, longest)[0] <= worth:
        return longest
    if not _surely_below(at, shared, shortest, worth) and value(at, shared, shortest)[0] >= worth:
        return shortest
    low, high = math.log(shortest), math.log(longest)
    x = min(max(math.log(guess), low), high)
    for _ in range(STEPS):
        t = math.exp(x)
        reached, slope = value(at, shared, t)
        if reached > worth:
            high = x
        else:
            low = x
        following = 0.5 * (low + high)
        if reached > 0.0 and slope > 0.0:
            step = x - math.log(reached / worth) * reached / (slope * t)
            if low < step < high:
                following = step
        if abs(following - x) < CLOSE:
            return math.exp(following)
        x = following
    return math.exp(x)
