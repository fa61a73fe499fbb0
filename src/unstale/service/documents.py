"""The service's records in plain JSON: what `--json` prints is what the API answers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from unstale.ports import Listing
from unstale.secrecy import shown_address
from unstale.service.collections import CollectionView
from unstale.service.contract_views import ContractView
from unstale.service.copying import CopyingView
from unstale.service.noise import Noise
from unstale.service.own_titles import given_title
from unstale.service.records import Budget, EngineState, Explanation, HostView, Preview, SourceView, Status, Totals
from unstale.units import DAY


def iso(time: float | None) -> str | None:
    """A time in UTC, ISO 8601; None for none.

    >>> iso(1714557600.25), iso(float("-inf"))
    ('2024-05-01T10:00:00.250000Z', None)
    """
    if time is None or not 0.0 <= time < 253402300799.0:
        return None
    part, whole = math.modf(time)
    micro = round(part * 1e6)
    # Of many times on a page the second is the same as another's.
    return f"{_second(int(whole) + (micro == 1_000_000))}.{micro % 1_000_000:06d}Z"


@lru_cache(maxsize=50_000)
def _second(whole: int) -> str:
    return datetime.fromtimestamp(whole, UTC).isoformat(timespec="seconds")[:19]


def finite(thing: Any) -> Any:
    """The same without infinities and NaN, which JSON has not: null.

    >>> finite({"a": [1.0, float("inf")]})
    {'a': [1.0, None]}
    """
    if isinstance(thing, dict):
        return {key: finite(value) for key, value in thing.items()}
    if isinstance(thing, list):
        return [finite(value) for value in thing]
    return None if isinstance(thing, float) and not math.isfinite(thing) else thing


def _number(value: float) -> float | None:
    """A number of JSON's, as `finite` has it: a page has hundreds of them."""
    return value if -math.inf < value < math.inf else None


def listing(one: Listing) -> dict[str, Any]:
    """What is said of a source."""
    return {
        "id": one.id,
        "address": shown_address(one.address),
        "kind": one.kind,
        "host": one.host,
        "weight": _number(one.weight),
        "cost": _number(one.cost),
        "min_interval": _number(one.shortest),
        "max_interval": _number(one.longest),
        "paused": one.paused,
        "options": dict(one.options),
        "added_at": iso(one.added_at),
    }


def source(one: SourceView, titles: Mapping[int, str] | None = None) -> dict[str, Any]:
    """A source at a moment; `titles` are what sources go by, where that is more than what somebody gave them."""
    told = listing(one.listing)
    told["title"] = (titles or {}).get(one.listing.id, "") or given_title(one.listing)
    told["checked_at"], told["changed_at"] = iso(one.checked_at), iso(one.changed_at)
    told["due_at"] = iso(one.due_at)
    told["failures"], told["reason"] = one.failures, one.reason
    told["fresh"], told["age"] = _number(one.fresh), _number(one.age)
    told["change_rate"] = _number(one.change_rate)
    told["change_rate_low"], told["change_rate_high"] = _number(one.low), _number(one.high)
    told["change_interval"], told["interval"] = _number(one.change_interval), _number(one.interval)
    told["waits_for"], told["surcharge"] = one.waits_for, _number(one.surcharge)
    return told


def budget(one: Budget) -> dict[str, Any]:
    """The budget in force."""
    return {
        "budget_per_day": DAY * one.rate,
        "set_here": one.set_here,
        "by": one.by,
        "since": iso(one.at),
        "why": one.words,
        "waiting": one.waiting,
    }


def engine(one: EngineState) -> dict[str, Any]:
    """What keeps the store fresh."""
    return {
        "running": one.running,
        "at": iso(one.at),
        "started_at": iso(one.started_at),
        "last_poll_at": iso(one.last_poll),
        "last_answer_at": iso(one.last_answer),
        "workers": one.workers,
        "in_flight": one.in_flight,
        "polls": one.polls,
        "first": one.first,
        "changed": one.changed,
        "failed": one.failed,
        "spent": one.spent,
    }


def totals(one: Totals) -> dict[str, Any]:
    """What was recorded since the store was made."""
    return {
        "polls": one.polls,
        "unchanged": one.unchanged,
        "changed": one.changed,
        "failed": one.failed,
        "first": one.first,
        "requests": one.requests,
        "received": one.received,
        "spent": one.spent,
    }


def status(one: Status, verdict: str = "pass", reasons: list[str] | None = None) -> dict[str, Any]:
    """How a fleet stands."""
    counts, begun = one.counts, one.first_round
    told: dict[str, Any] = {
        "at": iso(one.at),
        "summed_at": iso(one.at if one.summed_at is None else one.summed_at),
        "status": verdict,
        "reasons": reasons or [],
        "sources": {
            "total": counts.total,
            "paused": counts.paused,
            "failing": counts.failing,
            "never_answered": counts.never_answered,
            "never_polled": counts.never_polled,
        },
        "first_round": None if begun is None else {"done": begun.done, "of": begun.of, "left": begun.left},
        "freshness": one.fresh,
        "freshness_error": one.fresh_error,
        "freshness_even": one.even,
        "freshness_even_error": one.even_error,
        "learned": one.learned,
        "age": one.age,
        "budget_per_day": DAY * one.budget.rate,
        "budget": budget(one.budget),
        "spent_hour": one.spent_hour,
        "spent_day": one.spent_day,
        "objective": one.objective,
        "price": one.price,
        "price_at": iso(one.price_at),
        "surcharges": dict(one.surcharges),
        "hosts": one.hosts,
        "engine": engine(one.engine),
        "totals": totals(one.totals),
        "collections": [collection(view, one.at) for view in one.collections],
        "contracts": [contract(view) for view in one.contracts],
        "contracts_need_per_day": DAY * one.contracts_need,
        "copying": [under_way(view) for view in one.copying],
        "worst": [source(view) for view in one.worst],
    }
    whole: dict[str, Any] = finite(told)
    return whole


def under_way(one: CopyingView) -> dict[str, Any]:
    """A table that is being copied."""
    told = {name: getattr(one.progress, name) for name in ("rows", "of", "kept", "received", "left")}
    return told | {"id": one.listing.id, "address": shown_address(one.listing.address), "sentence": one.sentence}


def contract(one: ContractView) -> dict[str, Any]:
    """A contract, and whether it is kept."""
    told: dict[str, Any] = finite(
        {
            "name": one.name,
            "terms": one.terms,
            "kept": one.kept,
            "sources": one.sources,
            "waiting": one.waiting,
            "broken": one.broken,
            "needs_per_day": DAY * one.needs,
            "sentence": one.sentence,
            "worst": [
                {
                    "id": broken.listing.id,
                    "address": shown_address(broken.listing.address),
                    "since": broken.since,
                    "allowed": broken.allowed,
                    "reason": broken.reason,
                }
                for broken in one.worst
            ],
        }
    )
    return told


def collection(one: CollectionView, now: float) -> dict[str, Any]:
    """A collection, and what it is worth."""
    told: dict[str, Any] = finite(
        {
            "id": one.listing.id,
            "address": shown_address(one.listing.address),
            "listing": one.form,
            "members": one.members,
            "state": one.state,
            "interval": one.interval,
            "heard_at": iso(one.heard_at),
            "precision": one.precision,
            "silence": one.silence,
            "late": one.late,
            "saved": one.saved,
            "sentence": one.sentence(now),
        }
    )
    return told


def explanation(one: Explanation) -> dict[str, Any]:
    """Why a source is polled as it is."""
    view = one.source
    told: dict[str, Any] = finite(
        {
            "sentence": one.sentence,
            "noise": one.noise,
            "looked_at": one.looked_at,
            "costs": one.costs,
            "copying": one.copying,
            "interval": one.interval,
            "bound": one.bound,
            "waits_for": view.waits_for,
            "half_life": one.half_life,
            "price": one.price,
            "twice": {"weight": one.twice_weight, "budget_per_day": DAY * one.twice_budget},
        }
    )
    return source(view) | told


def noise(one: Noise | None) -> dict[str, Any]:
    """What makes a source change at nearly every poll, and what could be left out; all empty if nothing does."""
    if one is None:
        return {"polls": 0, "changed": 0, "offer": {}, "lines": []}
    return {"polls": one.polls, "changed": one.changed, "offer": one.offer, "lines": [list(line) for line in one.lines]}


def preview(one: Preview) -> dict[str, Any]:
    """What a budget would do."""
    told: dict[str, Any] = finite(
        {
            "budget_per_day": DAY * one.budget,
            "price": one.price,
            "freshness": one.fresh,
            "age": one.age,
            "sources": one.sources,
            "abandoned": one.abandoned,
            "intervals": dict(one.intervals),
        }
    )
    return told


def host(one: HostView) -> dict[str, Any]:
    """A host and what it is granted."""
    granted = one.granted
    told: dict[str, Any] = finite(
        {
            "host": one.name,
            "sources": one.sources,
            "paused": one.paused,
            "failing": one.failing,
            "spacing": granted.spacing,
            "concurrency": granted.concurrency,
            "budget_per_day": DAY * granted.cap,
            "windows": granted.windows,
            "surcharge": one.surcharge,
        }
    )
    return told
