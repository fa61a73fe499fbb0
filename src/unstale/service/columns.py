"""All sources in columns, to be sorted and searched in milliseconds however many there are.

Rule of this file: what is sorted by and what is shown are of one moment, which may be a while ago and is told.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unstale.core.checks import Floats
from unstale.frozen import dataclass
from unstale.ports import ReadStore
from unstale.service.moment import Moment, listed, reasons
from unstale.service.names import Filed, Names, Rows
from unstale.service.own_titles import OwnTitles
from unstale.service.records import SourceView
from unstale.service.search import Term

Mask = NDArray[np.bool_]

#: sources whose tags and kinds are read one by one; of more, the store is asked who has them
COUNTED = 5000
_COMPARE: Mapping[str, Callable[[Floats, float], Mask]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
}


class SortKeys(dict[str, Floats]):
    """What can be sorted by. How often sources are polled takes as long to find as all the rest: it is found when
    somebody first asks for it."""

    def __init__(self, known: Mapping[str, Floats], intervals: Callable[[], Floats]) -> None:
        super().__init__(known)
        self._intervals = intervals

    def __missing__(self, name: str) -> Floats:
        if name != "interval":
            raise KeyError(name)
        found = self[name] = self._intervals()
        return found


@dataclass(frozen=True, slots=True)
class SourceColumns:
    """The fleet as it stood at a time; `by` holds what can be sorted by, paused sources and NaN come last."""

    moment: Moment
    source: Rows
    by: Mapping[str, Floats]
    states: Mapping[str, Mask]
    host: NDArray[np.integer[Any]]
    hosts: Mapping[str, int]
    names: Names
    store: ReadStore

    def views(self, ids: Sequence[int]) -> list[SourceView]:
        """These sources as they stood when they were sorted, in the order given."""
        every = self.moment.standing.source
        wanted = np.array(ids, dtype=np.int64)
        rows = every.searchsorted(wanted)
        rows = rows[every[np.minimum(rows, len(every) - 1)] == wanted] if len(every) else rows[:0]
        return self.moment.views(rows, listed(self.store, ids), reasons(self.store, self.moment, rows))

    def find(
        self, terms: Sequence[Term] = (), *, sort: str = "id", down: bool = False, offset: int = 0, limit: int = 50
    ) -> tuple[list[int], int]:
        """Ids of the sources wanted, in order, and how many there are in all."""
        keys, rows = -self.by[sort] if down else self.by[sort], self._chosen(terms)
        total = len(keys) if rows is None else len(rows)
        return self._ids(_first(keys, rows, offset + limit)[offset:]), total

    def all(self, terms: Sequence[Term]) -> list[int]:
        """Ids of all sources that fulfil the terms, rising."""
        rows = self._chosen(terms)
        return self._ids(np.arange(len(self.source)) if rows is None else rows)

    def _chosen(self, terms: Sequence[Term]) -> Rows | None:
        """The rows that fulfil all terms; None for all."""
        if not terms:
            return None
        mask = np.ones(len(self.source), dtype=np.bool_)
        filed = [one for one in terms if one.name in ("tag", "kind")]
        for term in (one for one in terms if one not in filed):
            mask &= self._holds(term) ^ term.negated
        rows = np.flatnonzero(mask)
        if len(rows) > COUNTED:
            for term in filed:
                there = np.isin(self.source[rows], self.names.under(self.store, term), assume_unique=True)
                rows = rows[there ^ term.negated]
            filed = []
        if filed and len(rows):
            known = self.names.of(self.store, self.source[rows].tolist())
            nothing = Filed((), "")
            told = (known.get(source, nothing) for source in self.source[rows].tolist())
            held = (all(one.has(term) is not term.negated for term in filed) for one in told)
            rows = rows[np.fromiter(held, dtype=np.bool_, count=len(rows))]
        return rows

    def _holds(self, term: Term) -> Mask:
        if term.name == "state":
            return self.states[str(term.value)]
        if term.name == "text":
            return np.isin(self.source, self.names.having(_bytes(term)), assume_unique=True)
        if term.name == "title":
            return np.isin(self.source, self.names.titled(_bytes(term)), assume_unique=True)
        if term.name == "host":
            found: Mask = self.host == self.hosts.get(str(term.value), -1)
            return found
        values = self.by[term.name]
        if term.name in ("changed", "checked"):
            values = self.moment.now - values
        elif term.name == "due":
            values = values - self.moment.now
        # What is not known is neither less nor more.
        return _COMPARE[term.sign](values, float(term.value))

    def _ids(self, rows: Rows) -> list[int]:
        return [int(source) for source in self.source[rows]]


def read(
    store: ReadStore,
    moment: Callable[[], Moment],
    before: SourceColumns | None = None,
    titles: OwnTitles | None = None,
) -> SourceColumns:
    """All sources; the addresses `before` are taken again unless the fleet was edited since."""
    # First the names: who is added in between is found the next time.
    edited = store.counters().get("edited", 0)
    known = None if before is None else before.names
    if known is None or known.edited != edited or (titles is not None and titles.learn(store, known.bare)):
        known = Names.read(store, edited, titles)
    at = moment()
    standing, seen = at.standing, at.seen
    rows = np.flatnonzero(np.isin(standing.source, known.source, assume_unique=True))
    source, host, paused = standing.source[rows], standing.host[rows], standing.paused[rows]
    failures, due, last = standing.failures[rows], standing.due[rows], standing.last[rows]
    fresh = seen.fresh[rows]
    never = np.isneginf(last)

    def polled(values: Floats) -> Floats:
        return np.where(paused | ~np.isfinite(values), np.nan, values)

    by = {
        "id": source.astype(np.float64),
        "weight": standing.weight[rows],
        "failures": failures.astype(np.float64),
        "due": polled(due),
        "cost": standing.cost[rows],
        "changed": polled(standing.found[rows]),
        "checked": polled(last),
        "fresh": np.where(paused, np.nan, fresh),
        "age": polled(seen.age[rows]),
        "change_rate": polled(seen.change_rate[rows]),
    }
    states = {
        "failing": (failures > 0) & ~paused,
        "paused": paused,
        "stale": (fresh < 0.5) & ~paused & ~never,
        "never": never & ~paused,
    }
    hosts = {name: i for i, name in enumerate(standing.hosts)}
    return SourceColumns(at, source, SortKeys(by, partial(at.intervals, rows)), states, host, hosts, known, store)


def _bytes(term: Term) -> bytes:
    return str(term.value).encode("utf-8", "replace")


def _first(keys: Floats, rows: Rows | None, count: int) -> Rows:
    """The `count` rows with the least keys, in order; those without a key come last, equals by row."""
    own = keys if rows is None else keys[rows]
    if count < len(own):
        # All that are as small as the last of them, so that equals are always taken in the same order.
        edge = np.partition(own, count - 1)[count - 1]
        near = np.flatnonzero(own <= edge) if np.isfinite(edge) else np.arange(len(own))
    else:
        near = np.arange(len(own))
    chosen = near[np.argsort(own[near], kind="stable")][:count]
    return chosen if rows is None else rows[chosen]
