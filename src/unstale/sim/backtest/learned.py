"""Our own policy in the backtest: the scheduler, polling at a price that keeps the budget.

Due times are those of the live scheduler, from the same compiled rule; only its fleet is played many polls at a time.
"""

from __future__ import annotations

import numpy as np

from unstale.core import orders
from unstale.core.checks import Floats
from unstale.core.learning.columns import LearnerColumns, SharedTiming, observe
from unstale.core.learning.compiled import compiled_loop
from unstale.core.learning.due import due_after_answer
from unstale.core.learning.learner import Learner
from unstale.core.learning.mixture import Scratch, Shared
from unstale.core.learning.siblings import Siblings, siblings_of
from unstale.sim.backtest.polls import Polls
from unstale.sim.backtest.setting import Setting

#: the price is set anew this often, in mean intervals of the fleet, but not more than once a day of the trace
_PACE = 0.1
_DAY = 86_400.0
_FEWEST, _MOST = 150, 500
#: but not so often that there is nothing to divide
_EACH = 2.0
#: the fleet as a whole is looked at this often over the window
_REVIEWS = 40
#: polls made in one stretch are kept in a column of this size at first
_ROOM = 1 << 16


def learned(setting: Setting, polls_per_change: float, seed: int) -> Polls:
    """The polls of a learner that knows nothing at the start but the budget.

    Between two looks at the price every source is on its own; at each look the price is set so that what falls due
    until the next one spends what the budget allows by then. A poll shows whether something changed, no more.
    """
    trace, sources = setting.trace, len(setting.trace)
    budget = setting.budget(polls_per_change)
    mean = sources / budget
    learner = Learner(sources, mean, start=setting.start, weight=setting.weight, objective=setting.objective)
    turn = np.random.default_rng(seed).random()
    learner.columns.head_start[:] = mean * ((orders.phases(np.full(sources, mean)) + turn) % 1.0)
    span = setting.end - setting.start
    looks = int(min(max(span / max(_PACE * mean, _DAY), _FEWEST), _MOST, max(budget * span / _EACH, 1.0)))
    learner.siblings = siblings_of(trace.names)
    seen = trace.starts[:-1].copy()
    spent, price = 0, learner.typical_price()
    which, times = [np.empty(0, np.int64)], [np.empty(0)]
    for look in range(looks):
        now, until = setting.start + span * look / looks, setting.start + span * (look + 1) / looks
        if look and look % max(looks // _REVIEWS, 1) == 0:
            learner.review()
        allowed = budget * (until - setting.start) - spent
        if allowed < 0.5:
            continue
        price = learner.price_for(allowed, now, until, price)
        rows, polled = _played(learner, trace.starts, trace.times, seen, now, until, price)
        which.append(rows)
        times.append(polled)
        spent += len(rows)
    rows, polled = np.concatenate(which), np.concatenate(times)
    order = np.argsort(rows, kind="stable")
    return Polls(np.searchsorted(rows[order], np.arange(sources + 1)), polled[order])


def _played(
    learner: Learner,
    starts: np.ndarray,
    times: Floats,
    seen: np.ndarray,
    now: float,
    until: float,
    price: float,
) -> tuple[np.ndarray, Floats]:
    size = _ROOM
    while True:
        which, polled, found = np.empty(size, np.int64), np.empty(size), np.empty(size, np.bool_)
        before = learner.columns._replace(**{name: getattr(learner.columns, name).copy() for name in _MOVING})
        counted, past = [getattr(learner.timing, name).copy() for name in _COUNTED], seen.copy()
        made = _play(
            starts,
            times,
            seen,
            now,
            until,
            price,
            which,
            polled,
            found,
            learner.columns,
            learner.shared,
            learner.timing,
            learner._room,
        )
        if made <= size:
            which, polled = which[:made], polled[:made]
            if learner.siblings is not None:
                _tell(learner, learner.siblings, before, which, polled, found[:made])
            return which, polled
        # The column was too short: go back and play again with a longer one.
        for name in _MOVING:
            getattr(learner.columns, name)[:] = getattr(before, name)
        for name, was in zip(_COUNTED, counted, strict=True):
            getattr(learner.timing, name)[:] = was
        seen[:] = past
        size = 2 * made


def _tell(
    learner: Learner, siblings: Siblings, before: LearnerColumns, which: np.ndarray, polled: Floats, found: np.ndarray
) -> None:
    """What polls between two looks say of siblings is told at the second: until then every source is on its own."""
    first = np.flatnonzero(np.concatenate([[True], which[1:] != which[:-1]])) if len(which) else which
    news = np.ones(len(which))
    news[first] = siblings.judge(which[first], polled[first], found[first], before, learner.shared)
    last = np.concatenate([[0.0], polled])[:-1]
    last[first] = before.last[which[first]]
    some = np.flatnonzero(found)
    some = some[np.argsort(polled[some], kind="stable")]
    siblings.tell(which, which[some], polled[some], last[some], news[some], learner.columns, learner.shared)


_MOVING = ("rows", "last", "found", "interval", "head_start")
_COUNTED = ("hours", "silences", "credit")


@compiled_loop
def _play(
    starts: np.ndarray,
    times: Floats,
    seen: np.ndarray,
    now: float,
    until: float,
    price: float,
    which: np.ndarray,
    polled: Floats,
    found: np.ndarray,
    columns: LearnerColumns,
    shared: Shared,
    timing: SharedTiming,
    at: Scratch,
) -> int:
    made = 0
    for i in range(len(starts) - 1):
        while True:
            due = max(due_after_answer(i, i, price, columns, shared, timing, at), now)
            if due >= until:
                break
            first = seen[i]
            while seen[i] < starts[i + 1] and times[seen[i]] <= due:
                seen[i] += 1
            changed = seen[i] > first
            observe(i, due, changed, np.nan, columns, shared, timing, at)
            if made < len(which):
                which[made] = i
                polled[made] = due
                found[made] = changed
            made += 1
    return made
