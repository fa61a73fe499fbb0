"""Due times of held sources follow the price, from one look to the next but one."""

from __future__ import annotations

from unstale.core.checks import Floats
from unstale.keeper.listing_pace import ListingPace
from unstale.keeper.scheduler import Integers, Scheduler


def followed(scheduler: Scheduler, now: float, look: float, pace: ListingPace | None) -> tuple[Integers, Floats, float]:
    """The rows whose due times move until then, and where to; and what polls by signals cost per second."""
    scheduler.press_hosts(now, now + look)
    by_signals = 0.0
    if pace is not None and scheduler.collected is not None:
        by_signals = scheduler.collected.follow(scheduler.price, scheduler.failures > 0, pace)
    rows, due = scheduler.moves(now, now + 2.0 * look)
    # Who is due already stays so.
    later = (due > now) | (scheduler.due_at[rows] > now)
    return rows[later], due[later], by_signals
