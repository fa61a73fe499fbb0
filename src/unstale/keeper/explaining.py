"""Why a source is polled as often as it is, in one sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from unstale.core.learning.reach import BY_CHANCE
from unstale.units import DAY, format_duration

if TYPE_CHECKING:
    from unstale.keeper.scheduler import Scheduler

#: a wait this near to its longest is that one
_NEAR = 0.999


def explained(scheduler: Scheduler, source: int | str, row: int) -> str:
    """One sentence about a source at today's price."""
    columns = scheduler.learner.columns
    if scheduler.paused[row]:
        return f"{source} is paused."
    if scheduler.failures[row]:
        count = int(scheduler.failures[row])
        rarely = ", ever more rarely" * (count > BY_CHANCE)
        return f"{source} has failed {count} time{'s' * (count > 1)} in a row: it is tried again{rarely}."
    if not np.isfinite(scheduler.answered[row]):
        return f"{source} has not been polled yet: it is due as soon as the budget allows."
    wait = float(scheduler.learner.waits_of([row], scheduler.price)[0])
    rate, every = float(scheduler.learner.change_rate()[row]), format_duration(wait / DAY)
    weight = float(scheduler.weight[row])
    about = f"it changes about every {format_duration(1.0 / rate / DAY)}, weighs {weight:g}"
    kin = scheduler.learner.siblings
    if kin is not None and kin.sooner[row] > 0.0:
        every = format_duration(max(wait - float(kin.sooner[row]), float(columns.shortest[row])) / DAY)
        return f"{source} is polled {every} after its last poll: {about}, and siblings of it were found changed since."
    if wait >= _NEAR * columns.longest[row]:
        return f"{source} is polled every {every}, its longest wait: {about}, and at today's price no poll pays sooner."
    if wait <= columns.shortest[row] / _NEAR:
        return f"{source} is polled every {every}, its shortest wait: {about}, and a poll would pay sooner still."
    return f"{source} is polled every {every}: {about}, and at today's price a poll pays after {every}."
