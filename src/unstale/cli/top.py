"""`unstale top`: a running engine, seen from another terminal. Everything is read from the store."""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING

import click

from unstale.cli.reading import brief
from unstale.cli.service import serving
from unstale.cli.settings import load, near, settings_options
from unstale.cli.show import console
from unstale.secrecy import shown_address

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from unstale.service import FleetService
    from unstale.service.records import Totals

#: seconds between two looks, and the share of the time that looking may take
LIVE, SHARE = 1.0, 0.1
#: lines around the table of sources, and reasons of failures that are told
AROUND, TROUBLES = 14, 3


@click.command()
@settings_options
def top(config: str | None, store: str | None) -> None:
    """Watch how fresh the copies are, what it costs and what is worst, until Ctrl-C.

    It reads the store and nothing else, so it can be looked at from anywhere the file is; whether an engine runs is
    said too. Where there is no terminal, it is printed once.
    """
    settings = load(config, store=store)
    out = console()
    with serving(settings) as service:
        watch = Watch(service, near(settings.store))
        if not out.is_terminal:
            out.print(watch.draw(out.width, 10), highlight=False)
            return
        from rich.live import Live

        try:
            with Live(console=out, auto_refresh=False, screen=True) as live:
                while True:
                    begun = time.monotonic()
                    live.update(watch.draw(out.width, max(out.height - AROUND, 1)), refresh=True)
                    time.sleep(max(LIVE, (time.monotonic() - begun) / SHARE))
        except KeyboardInterrupt:
            return


class Watch:
    """Draws a store as it stands, and its pace since it was looked at first, a minute ago at most."""

    def __init__(self, service: FleetService, name: str) -> None:
        self._service, self._name = service, name
        self._past: deque[tuple[float, Totals]] = deque()
        self._fresh: deque[float] = deque(maxlen=24)

    def draw(self, width: int, rows: int) -> RenderableType:
        """The store at this moment, with so many sources at most, those that harm freshness most first."""
        from rich.console import Group
        from rich.text import Text

        from unstale.cli.status import numbers, table

        status = self._service.status(limit=rows)
        self._past.append((time.monotonic(), status.totals))
        while self._past[-1][0] - self._past[0][0] > 60.0:
            self._past.popleft()
        self._fresh.append(status.fresh if status.counts.polled else 0.0)
        said = [
            f"{brief(shown_address(one.listing.address))}: {one.reason or 'no reason told'}"
            for one in status.worst
            if one.failures
        ]
        return Group(
            Text(f"unstale keeps {self._name} fresh; Ctrl-C ends this view only", style="bold"),
            self._pace(numbers(status)),
            Text(""),
            table(status, width) if status.worst else Text(""),
            Text("\n".join(["", *said[:TROUBLES]]) if said else "", style="yellow"),
        )

    def _pace(self, numbers: Table) -> Table:
        """The numbers, and below them polls, new copies and failures, as they were recorded while we looked."""
        from unstale.cli.panel import _BARS, _per

        (then, first), (now, last) = self._past[0], self._past[-1]
        course = "".join(_BARS[min(int(8.999 * max(x, 0.0)), 8)] for x in self._fresh)
        numbers.add_row("course", f"[green]{course}[/green]", "of the freshness while this is open")
        names = {"polls": "polls", "new copies": "changed", "failures": "failed"}
        for name, counter in names.items():
            total: int = getattr(last, counter)
            rate = (total - getattr(first, counter)) / max(now - then, 1e-9)
            numbers.add_row(name, f"{total:,}", f"so far, {_per(rate)} now" if now > then else "so far")
        return numbers
