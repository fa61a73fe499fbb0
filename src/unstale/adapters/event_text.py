"""An event as JSON, the same words for everyone who is told."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from unstale.ports import Event
from unstale.secrecy import shown_address


def event_text(event: Event) -> bytes:
    """One line of JSON without its end.

    >>> event_text(Event(7, 3, "http://x/", 2, 1e9, bytes(2))).decode()
    '{"number":7,"source":3,"address":"http://x/","version":2,"at":1000000000.0,"time":"2001-09-09T01:46:40+00:00","digest":"0000","first":false}'
    """
    told: dict[str, Any] = {
        "number": event.number,
        "source": event.source,
        "address": shown_address(event.address),
        "version": event.version,
        "at": event.at,
        "time": event_time(event.at),
        "digest": event.digest.hex(),
        "first": event.first,
    }
    if event.link or event.title or event.tags or event.lines:
        changes = [{"sign": sign, "line": line} for sign, line in event.lines]
        known = {"title": event.title, "tags": event.tags, "changes": changes, "more": event.more, "link": event.link}
        told |= known
    return json.dumps(told, ensure_ascii=False, separators=(",", ":")).encode()


def event_time(at: float) -> str | None:
    """When it was, as ISO 8601 has it; None where a clock that jumped has written a time that no calendar has."""
    try:
        return datetime.fromtimestamp(at, UTC).isoformat()
    except (ValueError, OverflowError, OSError):
        return None
