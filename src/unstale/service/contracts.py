"""Whether contracts of freshness are kept: each by itself, with the sources that break it, and what keeping it takes.

A contract is kept while the last answer of each of its sources is no longer ago than it allows: then no copy lacks an
older change, whatever happened at the source. Paused sources are not judged, new ones have that long for a first copy.
"""

from __future__ import annotations

import math

import numpy as np

from unstale.core.checks import Floats
from unstale.engine.contracts import EARLY, OWN
from unstale.keeper.scheduler import Bits, Integers
from unstale.ports import ReadStore
from unstale.service.contract_views import BrokenPromise, ContractView
from unstale.service.moment import Moment, listed, reasons

#: sources that are named of a broken contract
_NAMED = 5


def contracts(store: ReadStore, moment: Moment) -> tuple[ContractView, ...]:
    """Every contract that has sources, in the order of the settings, those of sources themselves last."""
    promises, standing = moment.promises, moment.standing
    mine, rows = promises.rows(standing.source)
    awake = ~standing.paused[rows]
    mine, rows = mine[awake], rows[awake]
    if not len(mine):
        return ()
    allowed = promises.allowed(mine, moment.seen.change_rate[rows])
    since = moment.now - standing.last[rows]
    late = since > allowed
    waiting = _waiting(store, moment, rows, allowed) & late
    found = []
    for place, name in sorted(enumerate(promises.names), key=lambda one: one[0] or math.inf):
        of = promises.contract[mine] == place
        if not of.any():
            continue
        broken = np.flatnonzero(of & late & ~waiting)
        broken = broken[np.argsort(-since[broken] / allowed[broken], kind="stable")]
        few = rows[broken[:_NAMED]]
        names, why = listed(store, standing.source[few].tolist()), reasons(store, moment, few)
        worst = [
            BrokenPromise(names[source], float(since[i]), float(allowed[i]), why.get(source, ""))
            for i, source in zip(broken[:_NAMED].tolist(), standing.source[few].tolist(), strict=True)
            if source in names
        ]
        terms = moment.config.contracts.get(name) if name != OWN else None
        found.append(
            ContractView(
                name,
                "" if terms is None else terms.words,
                int(of.sum()),
                int((of & waiting).sum()),
                len(broken),
                float((standing.cost[rows[of]] / (EARLY * allowed[of])).sum()),
                tuple(worst),
            )
        )
    return tuple(found)


def allowances(moment: Moment) -> dict[int, float]:
    """How long ago the last answer of each source with a contract may be, by the strictest of its contracts."""
    promises, standing = moment.promises, moment.standing
    mine, rows = promises.rows(standing.source)
    found = np.full(len(standing.source), np.inf)
    np.minimum.at(found, rows, promises.allowed(mine, moment.seen.change_rate[rows]))
    return {int(standing.source[row]): float(found[row]) for row in np.unique(rows)}


def needed(moment: Moment) -> float:
    """What keeping all contracts takes, cost per second: of each source the strictest."""
    standing = moment.standing
    _, rows = moment.promises.rows(standing.source)
    rows = rows[~standing.paused[rows]]
    # Each once; np.unique would load more than the rest of a command's numbers take.
    once = np.flatnonzero(np.bincount(rows, minlength=len(standing.source)))
    return float((standing.cost[once] / standing.longest[once]).sum())


def _waiting(store: ReadStore, moment: Moment, rows: Integers, allowed: Floats) -> Bits:
    """Which of these rows were added so lately that their first copy is not late."""
    standing = moment.standing
    new = np.isneginf(standing.last[rows]) & (standing.failures[rows] == 0)
    ids = standing.source[rows[new]].tolist()
    added = {one.id: one.added_at or 0.0 for one in store.listings(ids)} if ids else {}
    found = np.zeros(len(rows), np.bool_)
    found[new] = [moment.now - added.get(source, 0.0) <= most for source, most in zip(ids, allowed[new], strict=True)]
    return found
