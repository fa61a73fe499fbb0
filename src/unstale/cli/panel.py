"""A calm panel of a fleet: how fresh the copies are, what it costs, what goes on. It draws what the service says."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from unstale.cli.reading import brief
from unstale.cli.status import numbers, table
from unstale.secrecy import shown_address
from unstale.units import DAY, format_rate, many

if TYPE_CHECKING:
    from unstale.service import FleetService
    from unstale.service.records import Status, Totals

#: gives lines of others: name, number, words
More = Callable[[], Sequence[tuple[str, str, str]]]

#: seconds over which the pace is shown, looks of which the freshness is drawn, and reasons of failures that are told
PACE, COURSE, TROUBLES = 60.0, 24, 3
#: lines around the table of sources
AROUND = 14
_BARS = " ▁▂▃▄▅▆▇█"


class Panel:
    """Draws a fleet as it stands, and its pace since it was looked at first, a minute ago at most."""

    def __init__(self, service: FleetService, title: str, more: More = tuple) -> None:
        self._service, self._title, self._more = service, title, more
        self._past: deque[tuple[float, Totals]] = deque()
        self._fresh: deque[float] = deque(maxlen=COURSE)

    def draw(self, width: int, rows: int) -> RenderableType:
        """The fleet at this moment, with so many sources at most, those that harm freshness most first."""
        status = self._service.status(limit=max(rows, 1))
        self._past.append((time.monotonic(), status.totals))
        while self._past[-1][0] - self._past[0][0] > PACE:
            self._past.popleft()
        self._fresh.append(status.fresh if status.counts.polled else 0.0)
        return Group(
            Text(self._title, style="bold"),
            self._numbers(status),
            Text(""),
            table(status, width) if status.worst else Text(""),
            _troubles(status),
        )

    def _numbers(self, status: Status) -> Table:
        """The numbers, and below them polls, new copies and failures, as they were recorded while we looked."""
        (then, first), (now, last) = self._past[0], self._past[-1]
        drawn: Table = numbers(status)
        course = "".join(_BARS[min(int(8.999 * max(x, 0.0)), 8)] for x in self._fresh)
        drawn.add_row("course", f"[green]{course}[/green]", "of the freshness while this is open")
        for row in self._more():
            drawn.add_row(*row)
        names = {"polls": "polls", "new copies": "changed", "failures": "failed"}
        for name, counter in names.items():
            total: int = getattr(last, counter)
            rate = (total - getattr(first, counter)) / max(now - then, 1e-9)
            drawn.add_row(name, f"{total:,}", f"so far, {_per(rate)} now" if now > then else "so far")
        return drawn


def line(status: Status) -> str:
    """The same where there is no terminal, in one line."""
    even = "mostly a guess yet" if status.guess else f"{100 * status.even:.1f} % if all were polled equally often"
    done = status.engine
    return (
        f"freshness {100 * status.fresh:.1f} % ({even}), "
        f"{many(done.polls, 'poll')}, {many(done.changed, 'change')}, {many(done.failed, 'failure')}"
    )


def _troubles(status: Status) -> Text:
    said = [
        f"{brief(shown_address(one.listing.address))}: {one.reason or 'no reason told'}"
        for one in status.worst
        if one.failures
    ]
    return Text("\n".join(["", *said[:TROUBLES]]) if said else "", style="yellow")


def _per(rate: float) -> str:
    return format_rate(DAY * rate) if rate > 0 else "0"
