"""What goes to the log: events with stable names, facts and, where something of ours went wrong, the traceback.

Rules of this file:
1. Every event has its name, level and meaning in `EVENTS`; its page in the documentation is held to it.
2. A library does not decide where a log goes: without a handler nothing is written. `to_json` is the command's.
3. Facts are plain JSON and hold no secret: what may is left out by whoever logs.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Mapping
from typing import Any, TextIO

from unstale.errors import UnstaleError
from unstale.frozen import dataclass

DEBUG, INFO, WARNING, ERROR = logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR
LOGGER = logging.getLogger("unstale")
LOGGER.addHandler(logging.NullHandler())


@dataclass(frozen=True, slots=True)
class EventKind:
    """How loud an event is, and what it means."""

    level: int
    meaning: str
    #: whether an error's own words go along: a driver's may hold an address, or a secret
    words: bool = True


#: all events, by name
EVENTS: dict[str, EventKind] = {
    "started": EventKind(INFO, "polling begins; `budget` is cost per second"),
    "loaded": EventKind(INFO, "the fleet was read from the store"),
    "stopped": EventKind(INFO, "polling has ended, everything is recorded"),
    "members": EventKind(
        INFO,
        "a collection told of sources; `added` are new, `refused` were left out, `why` has how many by reason",
    ),
    "departures": EventKind(INFO, "a collection no longer shows members, or shows them again; how many of each"),
    "changed": EventKind(DEBUG, "a poll found a new version"),
    "poll_failed": EventKind(INFO, "a poll had no answer; `reason` says why"),
    "fault": EventKind(ERROR, "a fault of ours ended one poll, which counts as failed"),
    "schema_changed": EventKind(WARNING, "the schema of a table changed: `what`, and whether its copy is `held`"),
    "driver_failed": EventKind(WARNING, "a driver raised what nobody expected; the poll counts as failed", words=False),
    "lineage_failed": EventKind(WARNING, "what is told of a copy's run reached neither its file nor its server"),
    "store_failed": EventKind(WARNING, "the store failed; outcomes are kept and it is tried again"),
    "store_lost": EventKind(ERROR, "the store's file was deleted, replaced or cut; nothing is polled any more"),
    "clock_jumped": EventKind(WARNING, "the system's clock was set by `seconds`; all times follow it"),
    "parser_ended": EventKind(WARNING, "a body could not be parsed within its limits; its process was ended"),
    "poller_ended": EventKind(WARNING, "a process that polls died or hung: its polls failed, another takes over"),
    "failover": EventKind(
        WARNING, "another PostgreSQL server took over, or the store was restored: what it does not know is polled again"
    ),
    "elected": EventKind(INFO, "this worker plans for all"),
    "compiling_failed": EventKind(
        ERROR, "a fault of ours ended what compiles beside the polls; they may wait for it once"
    ),
    "plan_failed": EventKind(ERROR, "a fault of ours ended one plan; workers go on at the last price"),
    "terms_differ": EventKind(
        WARNING, "this worker's settings say another budget, burst or objective than the store, which all go by"
    ),
    "followed": EventKind(INFO, "sources of the upstream replica were taken over"),
    "upstream_failed": EventKind(WARNING, "the upstream replica could not be seen"),
    "peer_failed": EventKind(INFO, "another replica could not be asked; it rests"),
    "peer_dropped": EventKind(WARNING, "another replica said what is not so; it rests for long"),
    "tell_failed": EventKind(WARNING, "someone who is told of changes did not take them; it is tried again"),
    "template_failed": EventKind(
        WARNING, "a template for news could not be filled in; they were told in the usual words"
    ),
    "untold_dropped": EventKind(WARNING, "too many changes waited for someone who is told of them: the oldest went"),
    "stop_overdue": EventKind(ERROR, "something did not end within the grace; the process was ended"),
    "edited": EventKind(INFO, "somebody changed something through the server; `who` did `what`"),
    "request_failed": EventKind(ERROR, "a fault of ours ended one request to the server"),
    "stock_unwritten": EventKind(WARNING, "what a proxy keeps could not be written; it is still in memory"),
}

Tell = Callable[[str, Mapping[str, Any]], None]


def log(event: str, facts: Mapping[str, Any] | None = None, error: BaseException | None = None) -> None:
    """Write an event to the log. If it is loud, the traceback of `error`, or of what is being handled, goes along."""
    kind, error = EVENTS[event], error or sys.exc_info()[1]
    if LOGGER.isEnabledFor(kind.level):
        if error is not None and not kind.words:
            error = UnstaleError(type(error).__name__).with_traceback(error.__traceback__)
        trouble = error if kind.level >= WARNING else None
        LOGGER.log(kind.level, event, exc_info=trouble, extra={"event": event, "facts": dict(facts or {})})


def logged(tell: Tell) -> Tell:
    """What hears of events, with a log of all of them."""

    def both(event: str, facts: Mapping[str, Any]) -> None:
        log(event, facts)
        tell(event, facts)

    return both


class JsonLines(logging.Formatter):
    """A JSON object a line: `at`, `level`, `event`, its facts, and `traceback` if there is one.

    >>> record = LOGGER.makeRecord("unstale", WARNING, "", 0, "x", (), None, extra={"event": "x", "facts": {"a": 1}})
    >>> record.created = 5.0
    >>> JsonLines().format(record)
    '{"at": 5.0, "level": "warning", "event": "x", "a": 1}'
    """

    def format(self, record: logging.LogRecord) -> str:
        """One line; what others log has its `message` and no event of its own."""
        event = getattr(record, "event", None)
        facts = getattr(record, "facts", {}) if event else {"logger": record.name, "message": record.getMessage()}
        line = {"at": round(record.created, 3), "level": record.levelname.lower(), "event": event or "log", **facts}
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


def to_json(stream: TextIO | None = None) -> None:
    """Write everything from `info` on as JSON lines, to standard error unless told."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines())
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    LOGGER.setLevel(INFO)
