"""Due times of held sources follow the price, from one look to the next but one."""

from __future__ import annotations

from unstale.core.checks import Floats
from unstale.keeper.scheduler import Integers, Scheduler


def followed(scheduler: Scheduler, now: float, look: float) -> tuple[Integers, Floats]:
    """The rows whose due times move until then, and where to."""
    scheduler.press_hosts(now, now + look)
    rows, due = scheduler.moves(now, now + 2.0 * look)
    # Who is due already stays so.
    later = (due > now) | (scheduler.due_at[rows] > now)
    return rows[later], due[later]
