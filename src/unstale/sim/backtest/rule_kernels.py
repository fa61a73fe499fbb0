"""The rules of other software, poll by poll, compiled: one function for all, told apart by a number.

Rules of this file:
1. A rule learns from a poll only what its product sees: whether the source changed (Nutch, StormCrawler, Heritrix,
   proportional), the times of the entries on show (miniflux, NewsBlur), or the first unseen change (LIMD).
2. A rule answers in its own clock, with its own constants; `factor` stretches that clock. Lengths that it compares
   with its intervals (silence, delay) are measured in that clock too, so that the bounds are stretched along.
   Windows over entries (7 or 30 days) belong to the source's clock and stay.
3. Without numba the same functions run as plain Python, some hundred times slower.
4. Errors, hints of servers, batches and hosts are left out: the traces have none.
"""

from __future__ import annotations

import math

import numpy as np

from unstale.core.checks import Floats
from unstale.sim.draws import compiled, stream, unit

NUTCH, STORMCRAWLER, HERITRIX, MINIFLUX, LIMD, NEWSBLUR, PROPORTIONAL = range(7)

_MINUTE, _HOUR, _DAY = 60.0, 3600.0, 86_400.0

# conf/nutch-default.xml, which overrides the constants in the code; beyond 90 days everything is due
_NUTCH_FASTER, _NUTCH_SLOWER, _NUTCH_LEAST, _NUTCH_MOST = 0.8, 1.4, _MINUTE, 90 * _DAY
# in minutes
_STORM_FASTER, _STORM_SLOWER, _STORM_LEAST, _STORM_MOST = 0.5, 1.5, 60.0, 20_160.0
_HERITRIX_FASTER, _HERITRIX_SLOWER, _HERITRIX_LEAST, _HERITRIX_MOST = 1.0 / 1.5, 1.5, _HOUR, 28 * _DAY
_MINIFLUX_LEAST, _MINIFLUX_MOST, _MINIFLUX_WINDOW, _MINIFLUX_TICK = 5 * _MINUTE, _DAY, 7 * _DAY, _HOUR
_LIMD_LEAST, _LIMD_MOST, _LIMD_GROWTH, _LIMD_EASE = _HOUR, 60 * _HOUR, 0.2, 0.02
# in minutes, for one premium subscriber
_NEWSBLUR_DAILY, _NEWSBLUR_SLOW, _NEWSBLUR_SILENT, _NEWSBLUR_MOST = 45.0, 360.0, 720.0, 240.0
_NEWSBLUR_WINDOW = 30 * _DAY


@compiled
def stepwise(interval: float, changed: bool, faster: float, slower: float, least: float, most: float) -> float:
    """Apache Nutch and Heritrix 1: after a change the interval shrinks by a factor, without one it grows by another.

    Nutch's `sync_delta` is left out: after long silence it makes a source due at once, again and again, and only the
    batches of a real Nutch keep it from polling without end.
    """
    return min(max(interval * (faster if changed else slower), least), most)


@compiled
def stormcrawler(interval: float, changed: bool) -> float:
    """StormCrawler: after a change half way to the shortest interval, else half as long again; whole minutes."""
    minutes = interval / _MINUTE
    if changed:
        return math.floor((1.0 - _STORM_FASTER) * minutes + _STORM_FASTER * _STORM_LEAST) * _MINUTE
    return min(math.floor(minutes * _STORM_SLOWER), _STORM_MOST) * _MINUTE


@compiled
def miniflux(entries: Floats) -> float:
    """miniflux, entry_frequency: one poll per mean gap of the week's entries, at whole hours."""
    wait = _MINIFLUX_MOST
    if len(entries) >= 2:
        gap = (entries[-1] - entries[0]) / (len(entries) - 1)
        weekly = math.ceil(_MINIFLUX_WINDOW / gap)
        wait = min(max(_MINIFLUX_WINDOW / weekly, _MINIFLUX_LEAST), _MINIFLUX_MOST)
    return math.ceil(wait / _MINIFLUX_TICK) * _MINIFLUX_TICK


@compiled
def limd(interval: float, delay: float) -> float:
    """Linear increase, multiplicative decrease (Urgaonkar et al. 2001), to copy a change within one hour.

    `delay` is the time since the first unseen change, 0 if there is none. The paper's restart after a long silence is
    left out: it names no length.
    """
    if delay == 0.0:
        interval *= 1.0 + _LIMD_GROWTH
    elif delay > _LIMD_LEAST:
        interval *= _LIMD_LEAST / delay
    else:
        interval *= 1.0 + _LIMD_EASE
    return min(max(interval, _LIMD_LEAST), _LIMD_MOST)


@compiled
def newsblur(entries: int, silence: float, chance: float) -> float:
    """NewsBlur's tiers by entries in 30 days, for one premium subscriber, with up to a quarter on top."""
    daily = entries / 30.0
    if daily >= 1.0:
        minutes = _NEWSBLUR_DAILY
    elif daily > 0.0:
        minutes = _NEWSBLUR_SLOW * (1.0 - daily)
    else:
        minutes = _NEWSBLUR_SILENT * max(1.0, math.floor(silence / _NEWSBLUR_WINDOW))
    minutes = min(minutes, _NEWSBLUR_MOST)
    whole = math.floor(minutes)
    return (minutes + min(math.floor(chance * (whole + 1.0)), whole) / 4.0) * _MINUTE


@compiled
def proportional(elapsed: float, polls: int, hits: int) -> float:
    """One poll for each change that is expected, by the bias-reduced estimate from the polls' outcomes.

    Half a change is added, so that a source in which none was ever seen is polled again.
    """
    return elapsed / (polls * math.log1p((hits + 0.5) / (polls - hits + 0.5)))


@compiled
def play(
    rule: int,
    first: float,
    factor: float,
    seed: int,
    starts: np.ndarray,
    changes: Floats,
    begin: float,
    split: float,
    end: float,
    most: int,
    ends: np.ndarray,
    times: Floats,
) -> int:
    """Poll every source by a rule from `begin` to `end`; returns the polls from `split` on.

    The first poll comes after a random part of the rule's `first` interval. `ends` receives the polls of each source,
    added up, `times` the polls while there is room. Beyond `most` polls in all it stops: the count says too many.
    """
    counted, total = 0, 0
    for i in range(len(starts) - 1):
        past, stop = starts[i], starts[i + 1]
        window, polls, hits = past, 0, 0
        dice = stream(seed, i, 0)
        chance, dice = unit(dice)
        wait = first
        t = begin + factor * first * chance
        while t <= end:
            if total < len(times):
                times[total] = t
            total += 1
            if total > most:
                return most + 1
            if t >= split:
                counted += 1
            now = past
            while now < stop and changes[now] <= t:
                now += 1
            changed = now > past
            polls += 1
            hits += changed
            if rule == NUTCH:
                wait = stepwise(wait, changed, _NUTCH_FASTER, _NUTCH_SLOWER, _NUTCH_LEAST, _NUTCH_MOST)
            elif rule == STORMCRAWLER:
                wait = stormcrawler(wait, changed)
            elif rule == HERITRIX:
                wait = stepwise(wait, changed, _HERITRIX_FASTER, _HERITRIX_SLOWER, _HERITRIX_LEAST, _HERITRIX_MOST)
            elif rule == LIMD:
                wait = limd(wait, max(t - changes[past], 1e-9) / factor if changed else 0.0)
            elif rule == PROPORTIONAL:
                wait = proportional(t - begin, polls, hits)
            else:
                span = _MINIFLUX_WINDOW if rule == MINIFLUX else _NEWSBLUR_WINDOW
                while window < now and changes[window] < t - span:
                    window += 1
                if rule == MINIFLUX:
                    wait = miniflux(changes[window:now])
                else:
                    chance, dice = unit(dice)
                    silence = t - (changes[now - 1] if now > starts[i] else begin)
                    wait = newsblur(now - window, silence, chance)
            past = now
            # a clock has an end to its resolution
            t += max(factor * wait, 1e-3)
        ends[i + 1] = total
    return counted
