"""`unstale top`: a running engine, seen from another terminal. Everything is read from the store."""

from __future__ import annotations

import time

import click

from unstale.cli.service import serving
from unstale.cli.settings import load, near, settings_options
from unstale.cli.show import console

#: seconds between two looks, and the share of the time that looking may take
LIVE, SHARE = 1.0, 0.1


@click.command()
@settings_options
def top(config: str | None, store: str | None) -> None:
    """Watch how fresh the copies are, what it costs and what is worst, until Ctrl-C.

    It reads the store and nothing else, so it can be looked at from anywhere the file is; whether an engine runs is
    said too. Where there is no terminal, it is printed once.
    """
    from unstale.cli.panel import AROUND, Panel

    settings = load(config, store=store)
    out = console()
    with serving(settings) as service:
        panel = Panel(service, f"unstale keeps {near(settings.store)} fresh; Ctrl-C ends this view only")
        if not out.is_terminal:
            out.print(panel.draw(out.width, 10), highlight=False)
            return
        from rich.live import Live

        try:
            with Live(console=out, auto_refresh=False, screen=True) as live:
                before = 0.0
                # A terminal that is gone is none: nobody would ever press Ctrl-C.
                while out.is_terminal:
                    begun = time.monotonic()
                    live.update(panel.draw(out.width, out.height - AROUND), refresh=True)
                    took = time.monotonic() - begun
                    # The first look loads what it needs, and says nothing about the others.
                    time.sleep(max(LIVE, min(took, before) / SHARE))
                    before = took
        except KeyboardInterrupt:
            return
