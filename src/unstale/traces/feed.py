"""Feeds: RSS, Atom and JSON Feed. A feed is one source, and the times of its entries are when it changed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from unstale import feeds
from unstale.core.trace import Trace
from unstale.errors import InputError, sentence
from unstale.feeds import FeedEntry
from unstale.moments import moment
from unstale.traces import web
from unstale.traces.judge import judge_texts
from unstale.traces.problems import Problems


def read_feed(places: Sequence[str], *, now: float | None = None) -> tuple[Trace, Problems]:
    """The changes of feeds in files or at addresses, named as given, and what was wrong with them.

    An entry changed its feed when it was published, and again when it was modified later. A feed shows its newest
    entries only, so its trace is as long as its window.
    """
    rows: list[tuple[str, str | None]] = []
    for place in places:
        for entry in _entries(place):
            # the same moment is often written twice, in two formats
            kept = {moment(text)[0]: text for text in entry.times}
            rows += [(place, text) for text in kept.values()] or [(place, None)]
    return judge_texts(", ".join(places), rows, now=now)


def _entries(place: str) -> tuple[FeedEntry, ...]:
    if web.is_address(place):
        data = web.load(place)
    elif Path(place).is_file():
        data = Path(place).read_bytes()
    else:
        raise InputError(sentence("file", repr(place), "does not exist", "check the path"))
    return feeds.read_feed(data, repr(place)).entries
