"""The part of `unstale get` that asks replicas over HTTP instead of the store here."""

from __future__ import annotations

import asyncio
import math
import os
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from unstale.cli.reading import ago, iso, span
from unstale.errors import ReplicaError, require, sentence

if TYPE_CHECKING:
    from unstale.adapters.replica_client import Freshest


def named(text: str) -> list[str]:
    """Replicas from `a:8600,http://b:8600`; http is meant where nothing is said.

    >>> named("127.0.0.1:8600, https://b.example")
    ['http://127.0.0.1:8600', 'https://b.example']
    """
    given = [one.strip() for one in text.split(",")]
    return [one if "://" in one else f"http://{one}" for one in given if one]


def freshest(source: str, replicas: Sequence[str], k: int | None = None, oldest: float = math.inf) -> Freshest:
    """The freshest of `k` replicas' copies, two if not told; ReplicaError if it was looked at longer than `oldest` ago.

    UNSTALE_TOKEN, if set, is told to all of them, and lets those that are behind be hinted.
    """
    from unstale.adapters.replica_client import ReplicaClient

    require(replicas, "replicas", "''", "name nobody", "give them like a.example:8600,b.example:8600")
    client = ReplicaClient(
        replicas, k=min(2, len(replicas)) if k is None else k, token=os.environ.get("UNSTALE_TOKEN", "")
    )
    found = asyncio.run(client.get(source))
    age = time.time() - found.reading.as_of
    if age > oldest:
        raise ReplicaError(
            sentence(
                "copy",
                f"of {source}",
                f"is as of {span(age)} ago, which is more than {span(oldest)}",
                "ask more of them, or allow more",
            )
        )
    return found


def facts_of(found: Freshest) -> dict[str, Any]:
    """What is known of the copy, in plain JSON."""
    best = found.reading
    return {
        "replica": best.replica,
        "as_of": iso(best.as_of),
        "version": best.version,
        "media_type": best.media_type,
        "bytes": len(found.body),
        "etag": best.etag,
        "via": list(best.via),
        "asked": [
            {
                "replica": one.replica,
                "as_of": None if one.reason else iso(one.as_of),
                "etag": one.etag or None,
                "reason": one.reason or None,
            }
            for one in found.answers
        ],
        "behind": list(found.told),
    }


def line_of(found: Freshest) -> str:
    """How fresh it is, in one line."""
    best, now = found.reading, time.time()
    good = [one for one in found.answers if not one.reason]
    behind = f"; behind and told: {', '.join(found.told)}" if found.told else ""
    failed = (
        f"; failed: {'; '.join(one.reason for one in found.answers if one.reason)}"
        if len(good) < len(found.answers)
        else ""
    )
    return f"as of {ago(best.as_of, now)}, from {best.replica}, the freshest of {len(good)}{behind}{failed}"
