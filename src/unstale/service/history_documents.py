"""What happened, in plain JSON: polls, kept versions, prices and beliefs as they were."""

from __future__ import annotations

from typing import Any

from unstale.ports import Edition, Observation
from unstale.service.beliefs import BeliefPoint
from unstale.service.documents import finite, iso
from unstale.service.entries import FeedEntries
from unstale.service.records import LogLine, PricePoint
from unstale.units import DAY


def point(one: PricePoint) -> dict[str, Any]:
    """A stretch of the history."""
    told: dict[str, Any] = finite(
        {
            "price": one.price,
            "budget_per_day": DAY * one.budget,
            "fresh": one.fresh,
            "even": one.even,
            "polls": one.polls,
            "changed": one.changed,
            "failed": one.failed,
            "spent": one.spent,
        }
    )
    return {"at": iso(one.at)} | told


def observation(one: Observation) -> dict[str, Any]:
    """One poll as it was recorded."""
    return {
        "polled_at": iso(one.polled_at),
        "answer": one.answer.value,
        "elapsed": finite(one.elapsed),
        "modified_at": iso(one.modified),
        "received": one.received,
        "reason": one.reason,
    }


def version(one: Edition) -> dict[str, Any]:
    """One kept version, without its bytes."""
    return {
        "version": one.version,
        "taken_at": iso(one.taken_at),
        "media_type": one.media_type,
        "size": one.size,
        "sha256": one.digest.hex(),
    }


def entries(found: FeedEntries) -> dict[str, Any]:
    """Entries of a feed, newest first."""
    told = [
        {
            "number": one.number,
            "title": one.title,
            "link": one.link,
            "time": one.time,
            "first_seen": iso(one.first_at),
            "last_seen": iso(found.last_seen(one)),
            "there": found.there(one),
            "version": one.first_version,
            "edits": one.edits,
            "edited_at": iso(one.edited_at),
        }
        for one in found.entries
    ]
    return {"entries": told, "total": found.total, "before": found.more}


def belief(one: BeliefPoint) -> dict[str, Any]:
    """A change rate as it was believed at a time."""
    told: dict[str, Any] = finite({"change_rate": one.change_rate, "low": one.low, "high": one.high})
    return {"at": iso(one.at)} | told


def log_line(one: LogLine) -> dict[str, Any]:
    """One of the newest polls; names of events are stable."""
    return {
        "token": one.token,
        "event": f"poll.{one.answer}",
        "at": iso(one.at),
        "source": one.source,
        "address": one.address,
    }
