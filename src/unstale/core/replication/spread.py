"""How a change spreads among cooperating replicas, drawn: for every process, and for peers that polled recently.

A change makes all replicas stale, whatever they held, and polls and contacts come without regard to changes. So
one change is like every other: the times until each replica has it say everything, and the changes themselves
need not be drawn.
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

from unstale.core.checks import Floats, number
from unstale.core.inverse import change_process
from unstale.core.processes import Process
from unstale.core.replication.cooperation import meeting_chance
from unstale.errors import require

Selection = Literal["random", "recent"]


def drawn_freshness(
    changes: Process | float,
    polls: Process,
    contacts: Process,
    replicas: int,
    peers: int,
    rng: np.random.Generator,
    *,
    selection: Selection = "random",
    runs: int = 20_000,
) -> tuple[float, float]:
    """Freshness of cooperating replicas from drawn times of spread, and its standard error.

    `E[age_survival_changes(T)]`, T the time from a change until a replica has it; the mean over all replicas
    and `runs` changes. Averaging over the changes themselves leaves a smaller error than a simulation has.
    All processes independent; a bare rate of changes is Poisson. [004 sect. VI, Figure 11].

    >>> from unstale.core.processes import Poisson
    >>> mean, error = drawn_freshness(1.0, Poisson(1.0), Poisson(10.0), 10, 1, np.random.default_rng(1))
    >>> abs(mean - 0.767861185711) < 5 * error < 0.01
    True
    """
    times = spread_times(polls, contacts, replicas, peers, runs, rng, selection)
    share = np.asarray(change_process(changes).age_survival(times)).mean(axis=1)
    return float(share.mean()), float(share.std(ddof=1) / np.sqrt(runs))


def spread_times(
    polls: Process,
    contacts: Process,
    replicas: int,
    peers: int,
    runs: int,
    rng: np.random.Generator,
    selection: Selection = "random",
) -> Floats:
    """Times from a change until each replica has it: by its own poll of the source, or by a peer that has it.

    Each row is one change. Random peers are drawn anew at each contact; recent ones are those that had polled
    the source last when the replica did so itself, which is when the source names them. So until a replica
    polls again, and is fresh, it asks the same ones. [004 sect. VI-A].

    >>> from unstale.core.processes import Constant, Poisson
    >>> spread_times(Constant(1.0), Poisson(1.0), 3, 2, 2, np.random.default_rng(1)).shape
    (2, 3)
    """
    m, k = checked_peers(replicas, peers, selection)
    runs = int(number("runs", runs, least=2, remedy="give the number of changes to draw"))
    gap = polls.sample_length_biased(rng, (runs, m))
    since = gap * rng.random((runs, m))
    asked = _recent_peers(since, polls, k, rng) if selection == "recent" else None
    chance = meeting_chance(m, k)
    source, contact = gap - since, contacts.sample_age(rng, (runs, m))
    times = np.full((runs, m), np.inf)
    open_ = np.arange(runs)
    while len(open_):
        # the next event of each run that is still spreading; what is fresh has none
        due = np.where(np.isinf(times[open_]), np.minimum(source[open_], contact[open_]), np.inf)
        who = due.argmin(axis=1)
        now = due[np.arange(len(open_)), who]
        if asked is None:
            fresh = np.isfinite(times[open_]).sum(axis=1)
            told = rng.random(len(open_)) < chance[np.minimum(fresh, m - 1)]
        else:
            told = np.isfinite(times[open_[:, None], asked[open_, who]]).any(axis=1)
        has = told | (source[open_, who] <= now)
        times[open_[has], who[has]] = now[has]
        contact[open_[~has], who[~has]] += contacts.sample(rng, int(np.sum(~has)))
        open_ = open_[np.isinf(times[open_]).any(axis=1)]
    return times


def checked_peers(replicas: int, peers: int, selection: Selection) -> tuple[int, int]:
    """The numbers of replicas and of peers asked, as whole numbers that allow contacts."""
    m = int(number("replicas", replicas, least=2, remedy="one has nobody to ask"))
    k = int(number("peers", peers, least=1, most=m - 1, remedy="ask one other replica at least, and none twice"))
    require(selection in get_args(Selection), "selection", repr(selection), "must be random or recent", "name one")
    return m, k


def _recent_peers(since: Floats, polls: Process, peers: int, rng: np.random.Generator) -> np.ndarray:
    """For each replica, the others that had polled the source last when it did, `since` ago; most recent first."""
    runs, m = since.shape
    last = np.full((runs, m, m), np.inf)
    back = since.copy()
    open_ = np.arange(runs)
    while len(open_):
        # of a replica that polled after it, the poll before that counts, and so on backwards
        earlier = back[open_][:, None, :] > since[open_][:, :, None]
        last[open_] = np.where(earlier & np.isinf(last[open_]), back[open_][:, None, :], last[open_])
        open_ = open_[(back[open_] <= since[open_].max(axis=1, keepdims=True)).any(axis=1)]
        back[open_] += polls.sample(rng, (len(open_), m))
    last[:, np.arange(m), np.arange(m)] = np.inf
    return np.argsort(last, axis=2)[:, :, :peers]
