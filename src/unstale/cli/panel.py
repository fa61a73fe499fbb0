"""A calm panel of a running engine: how fresh the copies are, what it costs, what goes on."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from unstale.cli.show import grid
from unstale.units import DAY, format_duration, format_rate

if TYPE_CHECKING:
    from unstale.engine.loop import Engine
    from unstale.engine.summary import FleetSummary

More = Callable[[], Sequence[tuple[str, str, str]]]

#: seconds over which the pace is shown, and sources that are listed
PACE, LISTED = 30.0, 8
_BARS = " ▁▂▃▄▅▆▇█"


class Panel:
    """Draws an engine; `names` gives a source's address by its id, `more` lines of others: name, number, words."""

    def __init__(self, engine: Engine, title: str, names: dict[int, str], more: More | None = None) -> None:
        self._engine, self._title, self._names, self._more = engine, title, names, more
        self._past: deque[tuple[float, int, int, int]] = deque()
        self._fresh: deque[float] = deque(maxlen=24)

    def draw(self, summary: FleetSummary) -> RenderableType:
        """The panel at this moment."""
        engine = self._engine
        now, counters = time.monotonic(), engine.counters
        self._past.append((now, counters.polls, counters.changed, counters.failed))
        while now - self._past[0][0] > PACE:
            self._past.popleft()
        self._fresh.append(summary.fresh)
        return Group(
            Text(self._title, style="bold"), self._numbers(summary), Text(""), self._sources(summary), self._trouble()
        )

    def _numbers(self, summary: FleetSummary) -> Table:
        engine, counters = self._engine, self._engine.counters
        (then, polls, changed, failed), (now, *latest) = self._past[0], self._past[-1]
        span = max(now - then, 1e-9)
        pace = (latest[0] - polls) / span
        table = Table(box=None, show_header=False, padding=(0, 1))
        table.add_column(style="dim")
        table.add_column(justify="right", no_wrap=True)
        table.add_column(no_wrap=True)
        line = "".join(_BARS[min(int(8.999 * max(x, 0.0)), 8)] for x in self._fresh)
        table.add_row("freshness", f"[bold green]{100 * summary.fresh:.1f} %[/]", f"believed now  [green]{line}[/]")
        if summary.even:
            table.add_row("", f"{100 * summary.even:.1f} %", "if all were polled equally often, for the same budget")
        never = int((np.isneginf(engine.scheduler.answered) & (engine.scheduler.failures == 0)).sum())
        if never:
            count = len(engine.scheduler.ids)
            table.add_row("first round", f"{count - never:,}", f"of {count:,} sources polled")
        for row in self._more() if self._more else ():
            table.add_row(*row)
        allowed = format_rate(DAY * engine.config.budget)
        table.add_row(
            "polls", _per(pace), f"of {allowed} allowed; {counters.polls:,} so far, {engine.in_flight} in flight"
        )
        share = (latest[1] - changed) / max(latest[0] - polls, 1)
        table.add_row("changes", f"{counters.changed:,}", f"found, by {100 * share:.0f} % of the polls")
        table.add_row(
            "failures", f"{counters.failed:,}", _per((latest[2] - failed) / span) if counters.failed else "none"
        )
        table.add_row("price", f"{engine.scheduler.price:.3g} s", "of freshness for a poll")
        return table

    def _sources(self, summary: FleetSummary) -> Table:
        scheduler, outlook = self._engine.scheduler, summary.outlook
        table = grid("source", "changes every", "polled every", "fresh now", "next poll")
        known = [k for k in range(len(summary.rows)) if math.isfinite(scheduler.answered[summary.rows[k]])]
        known.sort(key=lambda k: -float(outlook.change_rate[k]))
        step = max(len(known) / LISTED, 1.0)
        now = self._engine.clock.now()
        waits = scheduler.learner.columns.interval
        for k in (known[int(i * step)] for i in range(min(LISTED, len(known)))):
            row = int(summary.rows[k])
            name = self._names.get(int(scheduler.ids[row]), str(scheduler.ids[row]))
            due = scheduler.due_at[row]
            coming = "now" if not due > now else format_duration((due - now) / DAY)
            table.add_row(
                name if len(name) <= 32 else "…" + name[-31:],
                format_duration(1.0 / float(outlook.change_rate[k]) / DAY),
                format_duration(float(waits[row]) / DAY),
                f"{100 * float(outlook.fresh[k]):.0f} %",
                coming if math.isfinite(due) else "polling",
            )
        return table

    def _trouble(self) -> RenderableType:
        troubles = list(self._engine.counters.troubles)[:3]
        if not troubles:
            return Text("")
        return Text("\n".join(["", *(f"{reason}" for _, _, reason in troubles)]), style="yellow")


def _per(rate: float) -> str:
    return format_rate(DAY * rate) if rate > 0 else "0"
