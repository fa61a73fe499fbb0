"""What a brain with signals decides: which members to poll after a listing, and when to poll the listing.

Rules of this file:
1. The one price decides everything. A member is polled when its value at its present doubt reaches price·cost/weight; a
   listing at the interval at which what all members gain by it, less what it costs, is most.
2. Members of a collection that is not used are polled as if there were none: by `learning.columns.wait`.
3. Rates for planning take a trusted listing's word for silence; rates that are kept never do.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from unstale.core.checks import Floats
from unstale.core.learning.columns import Bits, Integers, LearnerColumns, SharedTiming
from unstale.core.learning.compiled import compiled, compiled_loop
from unstale.core.learning.mixture import Scratch, Shared, gather, rate_if
from unstale.core.signals.aged import ripe_age
from unstale.core.signals.columns import CollectionColumns, MemberColumns
from unstale.core.signals.scalars import paying, plain_gaps, poisson_tail, pushed, window_value
from unstale.core.signals.trust import (
    CREDIT,
    PROVEN,
    doubt_of,
    own_precision,
    pace_of,
    precision_of,
    shared_precision,
    silence_of,
    unsaid_ahead,
)

#: half of the logarithmic width by which what a poll must be worth differs from copy to copy, so that members that are
#: alike do not all become worth a poll at once
_JITTER = 0.2
#: a member not worth a poll after its signal is looked at again when its silence has grown by this share of itself
_GROWN = 0.25
#: or by this share of what a poll must bring
_LEAST_PAUSE = 0.02
_GOLDEN = 0.6180339887498949
#: the share of entries still on show below which a feed is not left alone
_LEAST_SHOWN = 0.5
#: entries come in bursts: a feed runs over as if there were so many times as many
_CROWDED = 1.5


class Mind(NamedTuple):
    """All that a brain with signals knows: beliefs, trust, and room to work in (`at`)."""

    columns: LearnerColumns
    shared: Shared
    timing: SharedTiming
    members: MemberColumns
    collections: CollectionColumns
    fleet: Floats
    at: Scratch
    #: whether harm grows with age; else a copy is fresh or not
    aged: bool


@compiled
def rate_after(i: int, now: float, told: float, mind: Mind) -> float:
    """The believed rate if the signal at `told` is true and nothing changed since; without a signal, if nothing did."""
    last, since, quiet = mind.columns.last[i], math.nan, 0.0
    if told > last:
        quiet, since = told - last, max(now - told, 1.0)
    elif now > last:
        quiet = now - last
    return rate_if(mind.columns.rows[i], mind.shared, mind.at, quiet, since, mind.fleet[CREDIT] >= PROVEN)


@compiled
def due_for(i: int, price: float, mind: Mind) -> float:
    """What a poll of a member must bring, in seconds of freshness of its weight."""
    columns = mind.columns
    return float(price * columns.cost[i] / columns.weight[i]) if columns.weight[i] > 0.0 else math.inf


@compiled
def worth_polling(i: int, g: int, now: float, price: float, mind: Mind) -> bool:
    """Whether a signalled member is worth a poll now; its believed rate is renewed."""
    columns, members, collections, fleet = mind.columns, mind.members, mind.collections, mind.fleet
    copied, rate = columns.last[i], rate_after(i, now, members.told[i], mind)
    members.rate[i] = rate
    precision, silence = precision_of(i, g, members, collections, fleet), silence_of(g, collections, fleet)
    doubt = doubt_of(i, g, now, copied, rate, precision, silence, members, collections)
    wanted = due_for(i, price, mind) * _turn(i, copied)
    if mind.aged:
        ripe = members.told[i] + ripe_age(rate, wanted / precision) <= now
        return bool((members.signals[i] > 0 and ripe) or now - copied > columns.longest[i])
    ahead = unsaid_ahead(g, collections, fleet)
    return pushed(rate, ahead, precision, min(doubt, 50.0))[0] >= wanted or now - copied > columns.longest[i]


@compiled_loop
def worth_polling_of(rows: Integers, g: int, now: float, price: float, mind: Mind) -> Bits:
    """`worth_polling` for many: what is the same for all members is asked once, and no columns are handed on."""
    columns, members, collections, fleet = mind.columns, mind.members, mind.collections, mind.fleet
    worth = np.zeros(len(rows), np.bool_)
    shared, silence = shared_precision(g, collections, fleet), silence_of(g, collections, fleet)
    ahead = unsaid_ahead(g, collections, fleet)
    for k in range(len(rows)):
        i = rows[k]
        copied, rate = columns.last[i], rate_after(i, now, members.told[i], mind)
        members.rate[i] = rate
        precision = own_precision(members.hits[i], members.tries[i], shared)
        doubt = doubt_of(i, g, now, copied, rate, precision, silence, members, collections)
        wanted = due_for(i, price, mind) * _turn(i, copied)
        if mind.aged:
            enough = members.signals[i] > 0 and members.told[i] + ripe_age(rate, wanted / precision) <= now
        else:
            enough = pushed(rate, ahead, precision, min(doubt, 50.0))[0] >= wanted
        worth[k] = enough or now - copied > columns.longest[i]
    return worth


@compiled
def _turn(i: int, copied: float) -> float:
    """What a poll of a copy must be worth in terms of its due: another for each copy."""
    return math.exp(2.0 * _JITTER * (((i + 1) * _GOLDEN + copied * _GOLDEN) % 1.0 - 0.5))


@compiled
def look_again(i: int, now: float, price: float, mind: Mind) -> None:
    """Note when a signalled member that is not worth a poll is looked at again."""
    members = mind.members
    since = max(now - members.told[i], 0.0)
    pause = _LEAST_PAUSE * min(due_for(i, price, mind), mind.columns.longest[i])
    members.check[i] = since + max(_GROWN * since, pause)


@compiled_loop
def pending(price: float, now: float, starts: Integers, which: Integers, mind: Mind) -> float:
    """What it would cost to poll now every signalled member that is worth it at a price, where signals are used."""
    total = 0.0
    for g in range(len(starts) - 1):
        if mind.collections.used[g]:
            for j in range(starts[g], starts[g + 1]):
                i = which[j]
                if (
                    mind.members.signals[i] > 0
                    and math.isfinite(mind.columns.last[i])
                    and worth_polling(i, g, now, price, mind)
                ):
                    total += mind.columns.cost[i]
    return total


@compiled
def next_unasked(i: int, g: int, mind: Mind) -> float:
    """When a member of a used collection is polled without a signal: a blind poll, or one for safety.

    Its doubt grows by silent changes alone, from what it was at the last listing; blind polls are those of a window.
    """
    columns, members, collections, fleet = mind.columns, mind.members, mind.collections, mind.fleet
    copied, rate = columns.last[i], float(members.rate[i])
    heard = max(collections.asof[g], copied)
    latest = copied + columns.longest[i]
    due = latest
    if members.signals[i] == 0:
        silence = silence_of(g, collections, fleet)
        doubt = doubt_of(i, g, heard, copied, rate, 0.5, silence, members, collections)
        level = float(members.level[i])
        if level < math.inf:
            due = heard + max(level - doubt, 0.0) / (silence * rate)
        if members.spacing[i] > 0.0:
            due = min(due, heard + members.spacing[i])
    return float(min(due, latest))


@compiled_loop
def due_times(rows: Integers, homes: Integers, now: float, price: float, mind: Mind) -> Floats:
    """When these members of the collections `homes`, which are used, are due.

    Who is worth a poll because of a signal has been due since it was told, and not since now: who waits longest comes
    first.
    """
    columns, members, due = mind.columns, mind.members, np.empty(len(rows))
    for k in range(len(rows)):
        i, g = rows[k], homes[k]
        if members.signals[i] > 0 and worth_polling(i, g, now, price, mind):
            at = min(members.told[i], now)
        else:
            at = next_unasked(i, g, mind)
        due[k] = max(at, columns.last[i] + columns.shortest[i])
    return due


@compiled
def shown_share(entries: float, expected: float) -> float:
    """`partial.shown_share` for one feed: the share of signals still on show after so many are expected."""
    if entries <= 0.0 or expected <= 1e-9:
        return 1.0
    if expected > 20.0 * entries:
        return entries / expected
    n = int(entries)
    return min(1.0 - poisson_tail(n - 1, expected) + n / expected * poisson_tail(n, expected), 1.0)


@compiled_loop
def look(price: float, starts: Integers, which: Integers, grid: Floats, table: Floats, mind: Mind) -> float:
    """Set the interval of every trusted collection, and each member's level and spacing; what will be spent per second.

    Members stand in `which`, those of collection g from starts[g] to starts[g+1]. An interval is that of the grid at
    which Σ max(g(T), plain) − price·cost/T is most; a collection for which none beats plain polling is not used.
    """
    columns, members, collections, fleet = mind.columns, mind.members, mind.collections, mind.fleet
    spent = 0.0
    for g in range(len(starts) - 1):
        size = starts[g + 1] - starts[g]
        collections.used[g] = False
        collections.interval[g] = math.inf
        collections.told_cost[g] = 0.0
        if not collections.trusted[g] or size == 0:
            continue
        shared, silence = shared_precision(g, collections, fleet), silence_of(g, collections, fleet)
        ahead = unsaid_ahead(g, collections, fleet)
        plain, gain, level, cycle = np.empty(size), np.empty(size), np.empty(size), np.empty(size)
        signals = 0.0
        for j in range(size):
            i = which[starts[g] + j]
            rate = float(members.rate[i])
            due = price * columns.cost[i] / columns.weight[i] if columns.weight[i] > 0.0 else math.inf
            plain[j] = plain_gaps(due * rate, table)
            precision = own_precision(members.hits[i], members.tries[i], shared)
            doubt = paying(rate, ahead, precision, due, float(members.level[i]))
            members.level[i] = doubt
            gain[j] = columns.weight[i] * math.exp(-plain[j])
            level[j] = math.exp(-doubt)
            cycle[j] = pushed(rate, ahead, precision, doubt)[1] if doubt < math.inf else math.inf
            signals += (1.0 - silence) * rate / precision
        signals = max(signals, pace_of(g, collections))
        best, chosen = 0.0, -1
        for k in range(len(grid)):
            shown = shown_share(collections.entries[g], _CROWDED * signals * grid[k])
            if shown < _LEAST_SHOWN:
                break
            more = -price * collections.cost[g] / grid[k]
            for j in range(size):
                i = which[starts[g] + j]
                if level[j] > 0.0:
                    due = price * columns.cost[i] / columns.weight[i]
                    value = window_value(float(members.rate[i]), level[j], plain[j], due, grid[k])[0]
                    more += shown * max(columns.weight[i] * value / grid[k] - gain[j], 0.0)
            if more > best:
                best, chosen = more, k
        if chosen < 0:
            continue
        span = grid[chosen]
        shown = shown_share(collections.entries[g], _CROWDED * signals * span)
        collections.used[g] = True
        collections.interval[g] = span
        at_once, evenly = collections.cost[g] / span, 0.0
        for j in range(size):
            i = which[starts[g] + j]
            members.spacing[i] = 0.0
            if level[j] <= 0.0:
                continue
            rate = float(members.rate[i])
            due = price * columns.cost[i] / columns.weight[i]
            _, blind, spacing = window_value(rate, level[j], plain[j], due, span)
            if blind:
                members.spacing[i] = spacing
            kept = -math.expm1(-rate * span) / (rate * span)
            at_once += columns.cost[i] * shown * kept / cycle[j]
            evenly += columns.cost[i] * (shown * blind / span + (1.0 - shown) * rate / max(plain[j], 1e-9))
        collections.told_cost[g] = at_once
        spent += at_once + evenly
    return spent


@compiled_loop
def renew_rates(starts: Integers, which: Integers, mind: Mind) -> None:
    """Each member's believed rate for planning: with the word of a trusted listing for its silence."""
    columns, members, collections = mind.columns, mind.members, mind.collections
    for g in range(len(starts) - 1):
        for j in range(starts[g], starts[g + 1]):
            i = which[j]
            if collections.trusted[g]:
                heard = max(collections.asof[g] - collections.late[g], columns.last[i])
                told = members.told[i] if members.signals[i] > 0 else -math.inf
                members.rate[i] = rate_after(i, max(heard, told), told, mind)
            else:
                members.rate[i] = gather(columns.rows[i], mind.shared, mind.at)
