"""What signals have been worth so far: precision, silence, delay and credit, learned from what polls of members find.

Rules of this file:
1. Only polls of members teach trust. A listing's silence is no evidence: one that never speaks would confirm itself.
2. Counts fade with each lesson. The fleet is the prior of a collection, the collection that of a member.
3. `credit` is the log likelihood that signals have gained over the same belief without them, or over how often each
   member is signalled, whichever has foretold better: who is signalled often may change often, but when is what
   counts. Credit alone decides whether signals are used. Trust is earned before it is given, by a new collection
   soon, where the fleet's signals have proved good at once; there is a wide step between losing it and winning it
   back: a liar may not flap.
4. Silence is learned only where nothing may have scrolled out: a change that did must not be laid to a feed's charge,
   for one that is taken for silent is not polled, and nothing would ever clear it.
"""

from __future__ import annotations

import math

import numpy as np

from unstale.core.checks import Floats
from unstale.core.learning.compiled import compiled
from unstale.core.signals.columns import CollectionColumns, MemberColumns
from unstale.core.signals.scalars import LEAST_PRECISION

#: what counts keep at each lesson: a member's, a collection's, the fleet's
_OWN, _COLLECTION, _FLEET = 0.95, 0.998, 0.9995
#: the prior of one in terms of the other, in polls; the fleet's own prior: 3 hits in 3.3
_STRENGTH, _FIRST_HITS, _FIRST_TRIES = 3.0, 3.0, 3.3
#: of silence: the fleet's first guess is 0.05, and each prior counts as so many expected changes
_SILENT, _FIRST_SILENT = 2.0, 0.1
_MOST_PRECISE, _LEAST_SILENT, _MOST_SILENT = 0.9999, 1e-6, 0.999
#: credit is kept within these: merits of long ago are soon used up, and so is a bad name
WORST, BEST = -10.0, 40.0
#: an outcome is never given less probability
_LEAST = 1e-3
#: what counts of changes found and foretold keep at each lesson, and how many of both are there before the first
_CALIBRATED, _SURE = 0.99, 5.0
#: how many signals the belief stands for where it is asked how often signals came
_PRIOR = 1.0
#: how often they came counts once it is so far ahead of beliefs, in logarithms; no lead is ever longer than the second
_AHEAD, _SWAYED = 1.0, 3.0
#: trust is lost below these (collection, fleet), and won back above these
_LOST, _FLEET_LOST, _WON, _FLEET_WON = -3.0, -6.0, 6.0, 0.0
#: a collection that never lost it earns it above the first; the fleet's good name, above the second, does so too
_EARNED, _FLEET_EARNED = 3.0, 6.0
#: the fleet's credit where a liar's would not have come so far by chance
PROVEN = 20.0
#: lessons after which a collection that has not earned trust is no longer new
PROBATION = 60.0
#: lateness fades this much at each listing that shows a signal
_LATE = 0.995

#: members' times are kept in single precision: to this share
_ROUNDED = 1e-6

# places in the fleet's row
HITS, TRIES, SILENT, WATCHED, CREDIT = range(5)


@compiled
def precision_of(i: int, g: int, members: MemberColumns, collections: CollectionColumns, fleet: Floats) -> float:
    """The share of a member's signals that is true, as far as polls have shown."""
    return own_precision(members.hits[i], members.tries[i], shared_precision(g, collections, fleet))


@compiled
def shared_precision(g: int, collections: CollectionColumns, fleet: Floats) -> float:
    """The share of a collection's signals that is true: what is believed of a member without polls."""
    of_fleet = (fleet[HITS] + _FIRST_HITS) / (fleet[TRIES] + _FIRST_TRIES)
    return float((collections.hits[g] + _STRENGTH * of_fleet) / (collections.tries[g] + _STRENGTH))


@compiled
def own_precision(hits: float, tries: float, shared: float) -> float:
    """The share of a member's signals that is true, given that of its collection."""
    own = (hits + _STRENGTH * shared) / (tries + _STRENGTH)
    return float(min(max(own, LEAST_PRECISION), _MOST_PRECISE))


@compiled
def silence_of(g: int, collections: CollectionColumns, fleet: Floats) -> float:
    """The share of changes that a collection does not signal."""
    of_fleet = (fleet[SILENT] + _FIRST_SILENT) / (fleet[WATCHED] + _SILENT)
    own = (collections.silent[g] + _SILENT * of_fleet) / (collections.watched[g] + _SILENT)
    return float(min(max(own, _LEAST_SILENT), _MOST_SILENT))


@compiled
def unsaid_ahead(g: int, collections: CollectionColumns, fleet: Floats) -> float:
    """The share of changes to come that a collection will not signal: silent ones, and those that scroll out."""
    shown = 1.0 - collections.missed[g] / collections.within[g] if collections.within[g] > 0.0 else 1.0
    return float(min(1.0 - (1.0 - silence_of(g, collections, fleet)) * max(shown, 0.0), _MOST_SILENT))


@compiled
def pace_of(g: int, collections: CollectionColumns) -> float:
    """Signals per second that a collection gives, as listings have shown it; 0 before the first.

    Entries that scrolled out were never seen: those on show are counted in the time that they tell of.
    """
    told = collections.within[g] - collections.missed[g]
    return float(collections.came[g] / told) if told > 0.0 else 0.0


@compiled
def unheard(i: int, g: int, now: float, copied: float, members: MemberColumns, collections: CollectionColumns) -> float:
    """Of the time since a copy, how much no listing has told of."""
    known = max(collections.asof[g] - collections.late[g], copied)
    apart = now - known + collections.uncovered[g] - members.uncovered[i]
    return float(min(max(apart, 0.0), max(now - copied, 0.0)))


@compiled
def _scrolled(i: int, g: int, members: MemberColumns, collections: CollectionColumns) -> bool:
    """Whether there is a time since a member's copy of which a listing told nothing.

    Entries scroll out when many change at once, so such a hole hides more than its length says.
    """
    return bool(collections.uncovered[g] - members.uncovered[i] > _ROUNDED * collections.uncovered[g])


@compiled
def open_time(
    i: int,
    g: int,
    now: float,
    copied: float,
    members: MemberColumns,
    collections: CollectionColumns,
    fleet: Floats,
) -> float:
    """The time since a copy in which a change may be untold: what no listing covered, and a share of the rest."""
    apart = unheard(i, g, now, copied, members, collections)
    return silence_of(g, collections, fleet) * max(now - copied - apart, 0.0) + apart


@compiled
def doubt_of(
    i: int,
    g: int,
    now: float,
    copied: float,
    rate: float,
    precision: float,
    silence: float,
    members: MemberColumns,
    collections: CollectionColumns,
) -> float:
    """The doubt about a member's copy: `noisy.doubt` of what is kept of it."""
    apart = unheard(i, g, now, copied, members, collections)
    covered = max(now - copied - apart, 0.0)
    told = -math.log1p(-precision) * members.signals[i] if members.signals[i] > 0 else 0.0
    return rate * (silence * covered + apart) + told


@compiled
def _share(doubt: float) -> float:
    """The probability of a change at a doubt, never quite 0 or 1."""
    return min(max(-math.expm1(-doubt), _LEAST), 1.0 - _LEAST)


@compiled
def _often(
    i: int, g: int, now: float, copied: float, rate: float, members: MemberColumns, collections: CollectionColumns
) -> float:
    """The changes to expect since a copy if a member changes as often as it was signalled before; 0: it was not."""
    before = float(members.heard[i]) - float(members.signals[i])
    if before <= 0.0:
        return 0.0
    watched = max(copied - collections.since[g], 0.0)
    return float((before + _PRIOR) / (watched + _PRIOR / rate) * (now - copied))


@compiled
def lesson(
    i: int,
    g: int,
    now: float,
    copied: float,
    changed: bool,
    without: float,
    quiet: float,
    members: MemberColumns,
    collections: CollectionColumns,
    fleet: Floats,
) -> None:
    """What a poll of a member teaches of its signals.

    `without` is the log probability that its belief alone gave to the outcome, `quiet` that of no change in the time
    that signals leave open (`open_time`) by the same belief: who says nothing then gains nothing and loses nothing.
    """
    hit = 1.0 if changed else 0.0
    rate, precision = float(members.rate[i]), precision_of(i, g, members, collections, fleet)
    silence = silence_of(g, collections, fleet)
    told = -math.log1p(-precision) * members.signals[i] if members.signals[i] > 0 else 0.0
    plain = -math.log1p(-min(math.exp(without), 1.0 - _LEAST)) if changed else -without
    # Beliefs that foretell too little all the time would make any signal look good: first they are set right.
    pace = (collections.found[g] + _SURE) / (collections.expected[g] + _SURE)
    often = _often(i, g, now, copied, rate, members, collections)
    usual = (collections.found[g] + _SURE) / (collections.counted[g] + _SURE)
    stale, believed = _share(pace * -quiet + told), _share(pace * plain)
    # Who was never signalled before is one of whom that has no word.
    counted = _share(usual * often) if often > 0.0 else believed
    lead = collections.often[g]
    better = math.log(counted / believed) if changed else math.log((1.0 - counted) / (1.0 - believed))
    collections.often[g] = min(max(lead + better, -_SWAYED), _SWAYED)
    gained = math.log(stale / believed) if changed else math.log((1.0 - stale) / (1.0 - believed))
    if lead > _AHEAD:
        # What half belief and half how often it was signalled would have foretold too is no merit of signals.
        mixed = 0.5 * (believed + counted)
        gained -= max(math.log(mixed / believed) if changed else math.log((1.0 - mixed) / (1.0 - believed)), 0.0)
    collections.counted[g] = _CALIBRATED * collections.counted[g] - math.expm1(-(often if often > 0.0 else plain))
    collections.found[g] = _CALIBRATED * collections.found[g] + hit
    collections.expected[g] = _CALIBRATED * collections.expected[g] - math.expm1(-plain)
    collections.credit[g] = min(max(collections.credit[g] + gained, WORST), BEST)
    # What is pushed by whoever likes must not take away the good name of listings.
    of_all = fleet if not collections.push[g] else np.zeros(5)
    of_all[CREDIT] = min(max(of_all[CREDIT] + gained, WORST), BEST)
    # A poll of whom no listing could have told since the copy teaches nothing of it: it does not end its probation. A
    # feed is not kept new for longer: heard so seldom it runs over, and it is by what scrolls out that it is judged.
    listened = min(max(collections.asof[g] - copied, 0.0) / (now - copied), 1.0)
    whole = members.signals[i] > 0 or collections.entries[g] > 0.0
    collections.lessons[g] += 1.0 if whole else listened
    apart = unheard(i, g, now, copied, members, collections)
    covered = now - copied - apart
    if members.signals[i] > 0:
        members.hits[i], members.tries[i] = _OWN * members.hits[i] + hit, _OWN * members.tries[i] + 1.0
        collections.hits[g] = _COLLECTION * collections.hits[g] + hit
        collections.tries[g] = _COLLECTION * collections.tries[g] + 1.0
        of_all[HITS], of_all[TRIES] = _FLEET * of_all[HITS] + hit, _FLEET * of_all[TRIES] + 1.0
    elif covered > 0.0 and not _scrolled(i, g, members, collections):
        # A change without a signal lay in the covered time, or after the last listing.
        share = hit * silence * covered / (silence * covered + apart)
        watched = -math.expm1(-rate * covered)
        collections.silent[g] = _COLLECTION * collections.silent[g] + share
        collections.watched[g] = _COLLECTION * collections.watched[g] + watched
        of_all[SILENT] = _FLEET * of_all[SILENT] + share
        of_all[WATCHED] = _FLEET * of_all[WATCHED] + watched


@compiled
def forget(i: int, g: int, members: MemberColumns, collections: CollectionColumns) -> None:
    """A member has a new copy: its signals are dealt with."""
    members.signals[i] = 0
    members.uncovered[i] = collections.uncovered[g]
    members.check[i] = np.inf


@compiled
def judge(collections: CollectionColumns, fleet: Floats) -> None:
    """Which collections are trusted, by their credit and the fleet's."""
    for g in range(len(collections.credit)):
        credit = collections.credit[g]
        of_all = credit if collections.push[g] else fleet[CREDIT]
        if collections.trusted[g]:
            if credit <= _LOST or of_all <= _FLEET_LOST:
                collections.trusted[g], collections.lessons[g] = False, math.inf
        elif collections.lessons[g] == math.inf:
            collections.trusted[g] = credit > _WON and of_all > _FLEET_WON
        else:
            earned = credit > _EARNED and of_all > _FLEET_WON
            collections.trusted[g] = earned or (credit >= 0.0 and of_all > _FLEET_EARNED)


@compiled
def unproven(g: int, collections: CollectionColumns) -> bool:
    """Whether a collection is still so new that it is listed more often than on trial, to learn what it is worth."""
    return bool(not collections.trusted[g] and collections.lessons[g] < PROBATION and collections.credit[g] > _LOST)


@compiled
def late(g: int, told: float, before: float, collections: CollectionColumns) -> None:
    """A change told only now that an earlier listing should have told: how late tidings may come."""
    collections.late[g] = max(_LATE * collections.late[g], before - told)
