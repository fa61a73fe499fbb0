"""Why a source is polled as it is: one sentence, the numbers behind it, and what would change it."""

from __future__ import annotations

import math

import numpy as np

from unstale.core.learning.mixture import favoured
from unstale.core.learning.siblings import foretold_by
from unstale.core.roots.falling import falls_to
from unstale.engine.collecting import SIBLINGS, SIGNALS
from unstale.engine.listed import COLLECTION
from unstale.engine.pricing import DEARER
from unstale.keeper.costs import POLLS, stated
from unstale.listings.records import CHANNELS
from unstale.ports import ReadStore
from unstale.secrecy import shown_address
from unstale.service.collections import MEMBERS, UNPLANNED, USED, collections, planned, together, worths
from unstale.service.copying import copying
from unstale.service.moment import Moment, listed, reasons
from unstale.service.noise import noise
from unstale.service.probes import looked_at
from unstale.service.records import Explanation, SourceView
from unstale.service.words import coming, span

#: polls that are shown, and sources that tell what another price would cost
SHOWN, _ENOUGH = 5, 20_000
#: weights are sought up to this many times the present one
_MOST = 1e6


def explain(store: ReadStore, moment: Moment, source: int, running: bool | None = None) -> Explanation | None:
    """The case of one source of a fleet, or of enough of it; None if there is no such source."""
    row = int(np.searchsorted(moment.standing.source, source))
    found = listed(store, [source])
    if source not in found or row >= len(moment.standing.source) or moment.standing.source[row] != source:
        return None
    rows = np.array([row])
    (view,) = moment.views(rows, found, reasons(store, moment, rows))
    wait = float(moment.waits(rows)[0])
    bound = moment.bound(row, wait)
    weight, budget = _twice(moment, row, view, wait, bound)
    noisy = noise(store, source)
    usual = sentence_of(view, wait, bound, moment.now) + _kin(moment, view) + _members_only(store, view)
    under_way = copying(store, moment.standing.settings, moment.now, running)
    return Explanation(
        at=moment.now,
        source=view,
        sentence=_told_of(store, moment, view) or usual,
        bound=bound,
        interval=wait,
        price=moment.scheduler.price,
        price_at=moment.price_at,
        half_life=favoured(moment.standing.beliefs[row], moment.scheduler.learner.shared),
        budget=moment.config.budget,
        twice_weight=weight,
        twice_budget=budget,
        polls=tuple(store.observations(source, SHOWN)),
        noise="" if noisy is None else noisy.sentence(source),
        looked_at=looked_at(store, found[source]),
        copying=next((one.sentence for one in under_way if one.listing.id == source), ""),
        costs=_costs(moment, row, view),
    )


def _costs(moment: Moment, row: int, view: SourceView) -> str:
    """What a poll takes from a budget that does not count polls, and how that is known."""
    unit, cost = moment.config.cost_in, float(moment.standing.cost[row])
    if unit == POLLS:
        return ""
    about = f"{cost:,.0f} {unit[:-1] if round(cost) == 1 else unit}"
    if stated(moment.standing.listed[row]):
        return f"a poll of it costs {about}, as is stated of it"
    if math.isinf(view.checked_at):
        return f"a poll of it counts as {about} until one has shown what it takes"
    return f"a poll of it costs about {about}, as its polls have shown"


def _told_of(store: ReadStore, moment: Moment, view: SourceView) -> str:
    """The sentence of a collection, or of a member of one that is used; empty for any other source."""
    setting = moment.standing.settings.get(SIGNALS, b"")
    known = {one.listing.id: one for one in collections(store, setting) if one.state != MEMBERS} if setting else {}
    if view.listing.paused or view.failures or not known:
        return ""
    if view.listing.id in known:
        return known[view.listing.id].sentence(moment.now)
    for member in store.members(source=view.listing.id):
        told = known.get(member.collection)
        if told is not None and told.state == USED and together(store, told.listing, view.listing):
            place = shown_address(told.listing.address)
            rare = "and seldom besides, in case that is silent" if told.silence > 0.0 else "and not besides"
            return f"polled when {place} says that it changed and a poll pays at today's price, {rare}"
    for pushed in store.pushes([view.listing.id]):
        told = known.get(CHANNELS.get(pushed.address, 0))
        if told is not None and told.state == USED:
            unsaid = f"and besides by itself: {told.silence:.0%} of changes go unsaid"
            return f"polled when a {pushed.address} says that it changed and a poll pays at today's price, {unsaid}"
    return ""


def _members_only(store: ReadStore, view: SourceView) -> str:
    """What a collection is for where workers poll it and do not plan by it; empty elsewhere."""
    if not view.listing.options.get(COLLECTION) or store.alive() is None:
        return ""
    known = planned(store) and view.listing.id in worths(store.setting(SIGNALS))
    return "" if known else f"; its members come and go by it{UNPLANNED}"


def _kin(moment: Moment, view: SourceView) -> str:
    """What siblings foretell of a source, where that moves its polls; empty elsewhere."""
    asleep = view.listing.paused or view.failures or math.isinf(view.checked_at)
    foretold = 0.0 if asleep else foretold_by(moment.standing.settings.get(SIBLINGS, b""), view.listing.address)
    if foretold == 0.0:
        return ""
    return f"; sooner after a change is found at a sibling in its folder, which foretells {foretold:.2g} of its own"


def sentence_of(view: SourceView, wait: float, bound: str, now: float) -> str:
    """The one sentence: how often it is polled, and because of what."""
    listing, failures = view.listing, view.failures
    if listing.paused:
        return f"not polled: it is paused, `unstale resume {listing.id}` takes it up again"
    if failures:
        times = "failed" if failures == 1 else f"failed {failures:,} times in a row"
        reason = f" ({view.reason})" if view.reason else ""
        never = ", and it has never answered" if math.isinf(view.checked_at) else ""
        due = coming(view.due_at, now)
        return f"polled again {due}: its last poll {times}{reason}{never}; from the third on each doubles the wait"
    if math.isinf(view.checked_at):
        return f"polled {coming(view.due_at, now)} for the first time: nothing is known of it yet"
    changes = (
        f"it changes about every {span(1.0 / view.change_rate)} "
        f"(between {span(1.0 / view.high)} and {span(1.0 / view.low)})"
    )
    weighs, every = f"weighs {listing.weight:g}", span(wait)
    if bound == "shortest":
        return f"polled every {every}: that is its min-interval; {changes}, {weighs}, and a poll would pay sooner"
    if bound == "eager":
        return f"polled every {every}: no source is polled more than 1,000 times as often as the mean one; {changes}"
    if bound == "longest":
        return f"polled every {every}: that is its max-interval; {changes}, {weighs}, and alone a poll would pay later"
    if bound == "contract":
        return (
            f"polled every {every}, a tenth sooner than its contract allows: {changes}, {weighs}, and alone a poll "
            "would pay later"
        )
    if bound == "abandoned":
        return (
            f"abandoned at today's price, but looked at every {every} in case its habits change: {changes}, "
            f"{weighs}, and no poll pays within that time"
        )
    dear = view.surcharge > DEARER
    dearer = f", {view.surcharge:.2g} times as dear at its host, whose cap binds," if dear else ""
    return f"polled every {every}: {changes}, {weighs}, and at today's price{dearer} a poll pays after {every}"


def _twice(moment: Moment, row: int, view: SourceView, wait: float, bound: str) -> tuple[float, float]:
    """The weight at which the source would be polled twice as often, and the budget; NaN where neither would do it."""
    asleep = view.listing.paused or math.isinf(view.checked_at) or view.failures > 0
    learner, wanted = moment.scheduler.learner, 0.5 * wait
    out_of_reach = wanted < learner.columns.shortest[row]
    if asleep or bound not in ("price", "abandoned") or view.listing.weight <= 0.0 or out_of_reach:
        return math.nan, math.nan

    def wait_at(factor: float) -> float:
        """Being so many times as heavy is the same as a price so many times lower."""
        return float(learner.waits_of([row], moment.scheduler.price * view.surcharge / factor)[0])

    if wait_at(_MOST) > wanted:
        return math.nan, math.nan
    factor = falls_to(wait_at, wanted, 1.0, _MOST)
    dear = view.surcharge > DEARER
    budget = math.nan if dear else moment.config.budget * _spent(moment, factor) / _spent(moment, 1.0)
    return view.listing.weight * factor, budget


def _spent(moment: Moment, factor: float) -> float:
    """What the fleet would cost per second at a price so many times lower."""
    rows = moment.rows[:: -(-len(moment.rows) // _ENOUGH) or 1]
    waits = moment.scheduler.learner.waits_of(rows, moment.scheduler.price / factor)
    return float((moment.standing.cost[rows] / waits).sum())
