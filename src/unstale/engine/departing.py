"""Members that a listing no longer shows: missed at first, then paused, at last forgotten.

Rules of this file:
1. Only a listing of all members, read whole, can miss one. A feed never does.
2. One look is no proof: who is paused was missed by two looks in a row. Of a listing that lost half its members at
   once, or all, they must have been missing for a day besides: a broken listing pauses nobody.
3. The owner's word stands: who was paused by hand stays so, who was resumed by hand is not paused again. Whom another
   collection shows is not gone.
4. Who is shown again is polled again, with all that was learned; after the stated time sources are removed.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import field, replace

from unstale.frozen import dataclass
from unstale.listings.paged import only_new
from unstale.listings.records import CollectionMember, ListingPoll
from unstale.listings.taking import ELSEWHERE
from unstale.ports import Claim, Store, number_of
from unstale.units import DAY

#: the setting that holds who is missing, by collection and source
MISSING = "missing"
#: the option that says after how many days without a word a member is forgotten
FORGET_AFTER = "forget_after"
USUAL_DAYS = 30.0
#: a listing that misses more than this share of its members must miss them for so long
_LOST, _CONFIRMED = 0.5, DAY


@dataclass(frozen=True, slots=True)
class Missing:
    """Since when a listing has not shown a member, and since when it is paused because of that (None: it is not)."""

    missed: float
    gone: float | None = None


@dataclass(frozen=True, slots=True)
class Departures:
    """Who is missing now, by source, and who is to be paused, to be resumed and to be forgotten because of it."""

    missing: Mapping[int, Missing] = field(default_factory=dict)
    pause: tuple[int, ...] = ()
    resume: tuple[int, ...] = ()
    forget: tuple[int, ...] = ()


def departures(
    known: Sequence[CollectionMember],
    shown: Collection[str],
    missing: Mapping[int, Missing],
    now: float,
    forget_after: float = USUAL_DAYS * DAY,
) -> Departures:
    """What a whole listing means for those whom it does not show, or shows again.

    >>> known = [CollectionMember(1, source, f"https://example.org/{source}") for source in (7, 8, 9)]
    >>> there = {"https://example.org/7", "https://example.org/8"}
    >>> first = departures(known, there, {}, now=100.0)
    >>> first.missing, first.pause, departures(known, there, first.missing, now=200.0).pause
    ({9: Missing(missed=100.0, gone=None)}, (), (9,))
    """
    lost = {member.source for member in known if member.address not in shown}
    counted = sum(source not in missing or missing[source].gone is None for source in lost)
    left = len(known) - sum(one.gone is not None for source, one in missing.items() if source in lost)
    pause_after = _CONFIRMED if counted > _LOST * left else 0.0
    kept, pause, forget = dict[int, Missing](), [], []
    for source in sorted(lost):
        one = missing.get(source, Missing(now))
        if one.gone is None and one.missed < now and now - one.missed >= pause_after:
            one = replace(one, gone=now)
            pause.append(source)
        elif one.gone is not None and now - one.gone >= forget_after:
            forget.append(source)
            continue
        kept[source] = one
    resume = tuple(source for source, one in sorted(missing.items()) if source not in lost and one.gone is not None)
    return Departures(kept, tuple(pause), resume, tuple(forget))


def missing_of(store: Store, collection: int) -> dict[int, Missing]:
    """Whom a collection misses, as the store has it."""
    said = _kept(store).get(str(collection), {})
    return {int(source): Missing(missed or 0.0, gone) for source, (missed, gone) in said.items()}


def depart(store: Store, claim: Claim, shown: ListingPoll | None, now: float) -> Departures:
    """Pause, resume and forget members of a collection by what its listing shows (None: what it did before)."""
    missing = missing_of(store, claim.source)
    if not (missing if shown is None else whole(claim, shown)):
        return Departures(missing)
    known = store.members(claim.source)
    if shown is None:
        there = {member.address for member in known if member.source not in missing}
    else:
        there = {entry.address for entry in shown.entries} | set(shown.more)
    days = number_of(claim.options, FORGET_AFTER, USUAL_DAYS)
    found = departures(known, there, missing, now, days * DAY)
    elsewhere: set[int] = set()
    if found.pause or found.forget:
        # Only now is it asked who else tells of them.
        elsewhere = _shown_elsewhere(store, claim.source)
    pause = _listed(store, found.pause, elsewhere, paused=False)
    resume = _listed(store, found.resume, set(), paused=True)
    forget = _listed(store, found.forget, elsewhere, paused=True)
    moved = [replace(one, paused=True) for one in store.listings(pause)]
    moved += [replace(one, paused=False) for one in store.listings(resume)]
    if moved:
        store.add(moved, now, duplicates="replace")
    if forget:
        store.remove(forget)
    # Whom the owner had paused, or another shows, stays missing without being gone.
    ours = set(pause)
    kept = {s: replace(m, gone=None) if s in found.pause and s not in ours else m for s, m in found.missing.items()}
    if kept != missing:
        _keep(store, claim.source, kept)
    return Departures(kept, tuple(pause), tuple(resume), tuple(forget))


def whole(claim: Claim, shown: ListingPoll) -> bool:
    """Whether a listing shows all that it ever will, so that whom it does not show is missing."""
    options = claim.options or {}
    # Of sources elsewhere it may say what it knows; whether they are there is for their own listings to say.
    return shown.complete and shown.cursor is None and not only_new(options) and not options.get(ELSEWHERE)


def _listed(store: Store, sources: Sequence[int], but: Collection[int], *, paused: bool) -> list[int]:
    """Of these sources those that are in the store, paused or not as told."""
    return [one.id for one in store.listings([s for s in sources if s not in but]) if one.paused == paused]


def _shown_elsewhere(store: Store, collection: int) -> set[int]:
    """The sources that other collections tell of and do not miss."""
    missed = {(int(other), int(source)) for other, said in _kept(store).items() for source in said}
    return {m.source for m in store.members() if m.collection != collection and (m.collection, m.source) not in missed}


def _kept(store: Store) -> dict[str, dict[str, list[float | None]]]:
    """Who is missing, by collection and source, in plain JSON."""
    said: dict[str, dict[str, list[float | None]]] = json.loads(store.setting(MISSING) or b"{}")
    return said


def _keep(store: Store, collection: int, missing: Mapping[int, Missing]) -> None:
    said = _kept(store)
    said[str(collection)] = {str(source): [one.missed, one.gone] for source, one in missing.items()}
    if not missing:
        del said[str(collection)]
    store.record([], settings={MISSING: json.dumps(said).encode()})
