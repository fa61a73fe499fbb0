"""All sources in columns, to be sorted and searched in milliseconds however many there are.

Rules of this file:
1. What is sorted by and what is shown are of one moment, which may be a while ago and is told.
2. Tags, titles and kinds are read when they are first asked for, of those sources alone that fulfil everything else.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field

import numpy as np
from numpy.typing import NDArray

from unstale.core.checks import Floats
from unstale.frozen import dataclass
from unstale.ports import ReadStore, tags_of
from unstale.service.moment import Moment, listed, reasons
from unstale.service.records import SourceView
from unstale.service.search import TEXTS, Term

Rows = NDArray[np.int64]
Mask = NDArray[np.bool_]

#: matches that are counted; where there are more, the first in order are looked for instead
COUNTED = 5000
#: fleets up to this size have their titles searched with their addresses
TITLED = 5000
#: sources that are read at a time, and as many as there can be
_CHUNK, _ALL = 10_000, 2**62
_COMPARE: Mapping[str, Callable[[Floats, float], Mask]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
}


@dataclass(frozen=True, slots=True)
class Filed:
    """What a source is filed under."""

    tags: tuple[str, ...]
    title: str
    kind: str

    def has(self, term: Term) -> bool:
        """Whether a term of a tag, a title or a kind holds."""
        if term.name == "title":
            return str(term.value) in self.title.lower()
        return term.value in self.tags if term.name == "tag" else term.value == self.kind


@dataclass(frozen=True, slots=True)
class Names:
    """Addresses in lower case, one a line, whose they are and where each begins; `edited` counts the store's edits."""

    text: bytes
    begin: Rows
    source: Rows
    edited: int
    filed: dict[int, Filed] = field(default_factory=dict)
    #: the sources under tags, titles and kinds that were asked for among many
    indexed: dict[tuple[str, str], Rows] = field(default_factory=dict)

    def having(self, wanted: bytes, most: int) -> tuple[Rows, bool]:
        """The sources whose address contains this, and whether these are all: about `most` are looked for."""
        places: list[int] = []
        at = self.text.find(wanted)
        while at >= 0 and len(places) <= most:
            places.append(at)
            at = self.text.find(wanted, at + 1)
        lines = np.unique(self.begin.searchsorted(np.array(places, dtype=np.int64), side="right") - 1)
        return self.source[lines], at < 0

    def has(self, source: int, wanted: bytes) -> bool:
        """Whether the address of one source contains this."""
        line = int(self.source.searchsorted(source))
        return self.text.find(wanted, int(self.begin[line]), int(self.begin[line + 1])) >= 0

    def under(self, store: ReadStore, term: Term) -> Rows:
        """The sources that are filed under a tag, a title or a kind, of all there are: the store knows, without telling
        what each is filed under."""
        key = term.name, str(term.value)
        if key not in self.indexed:
            tag, title, kind = (key[1] if term.name == name else None for name in ("tag", "title", "kind"))
            self.indexed[key] = np.array(store.search(tag=tag, title=title, kind=kind, limit=_ALL), dtype=np.int64)
        return self.indexed[key]

    def of(self, store: ReadStore, sources: Sequence[int]) -> Mapping[int, Filed]:
        """What these are filed under; read once until the fleet is edited."""
        missing = [source for source in sources if source not in self.filed]
        for begin in range(0, len(missing), _CHUNK):
            for one in store.listings(missing[begin : begin + _CHUNK]):
                self.filed[one.id] = Filed(tuple(tags_of(one.options)), str(one.options.get("title", "")), one.kind)
        return self.filed


@dataclass(frozen=True, slots=True)
class SourceColumns:
    """The fleet as it stood at a time; `by` holds what can be sorted by, paused sources and NaN come last."""

    moment: Moment
    source: Rows
    by: Mapping[str, Floats]
    states: Mapping[str, Mask]
    host: Rows
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
    ) -> tuple[list[int], int | None]:
        """Ids of the sources wanted, in order, and how many there are in all (None: more than were counted)."""
        keys = -self.by[sort] if down else self.by[sort]
        words = [_bytes(one) for one in terms if one.name == "text" and not one.negated]
        rows = self._chosen(terms)
        if not words:
            total = len(keys) if rows is None else len(rows)
            return self._ids(_first(keys, rows, offset + limit)[offset:]), total
        rare = self._rare(words, rows)
        if rare is not None:
            rows = rare[self._having(rare, words)]
            return self._ids(_first(keys, rows, offset + limit)[offset:]), len(rows)
        chosen: list[int] = []
        for row in _in_order(keys, rows):
            source = int(self.source[row])
            if all(self.names.has(source, word) for word in words):
                chosen.append(source)
                if len(chosen) == offset + limit:
                    break
        return chosen[offset:], None

    def all(self, terms: Sequence[Term]) -> list[int]:
        """Ids of all sources that fulfil the terms, rising."""
        rows = self._chosen(terms)
        words = [_bytes(one) for one in terms if one.name == "text" and not one.negated]
        every = np.arange(len(self.source)) if rows is None else rows
        return self._ids(every[self._having(every, words)] if words else every)

    def _rare(self, words: Sequence[bytes], rows: Rows | None) -> Rows | None:
        """Few rows among which are all that have the words; None if none of them is rare."""
        for word in words:
            having, whole = self.names.having(word, COUNTED)
            if whole:
                found = np.flatnonzero(np.isin(self.source, having, assume_unique=True))
                return found if rows is None else np.intersect1d(found, rows, assume_unique=True)
        return rows if rows is not None and len(rows) <= COUNTED else None

    def _having(self, rows: Rows, words: Sequence[bytes]) -> Mask:
        having = (all(self.names.has(source, word) for word in words) for source in self.source[rows].tolist())
        return np.fromiter(having, dtype=np.bool_, count=len(rows))

    def _chosen(self, terms: Sequence[Term]) -> Rows | None:
        """The rows that fulfil all terms but texts that are sought; None for all."""
        terms = [one for one in terms if one.name != "text" or one.negated]
        if not terms:
            return None
        mask = np.ones(len(self.source), dtype=np.bool_)
        filed = [one for one in terms if one.name in TEXTS and one.name != "host"]
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
            nothing = Filed((), "", "")
            told = (known.get(source, nothing) for source in self.source[rows].tolist())
            held = (all(one.has(term) is not term.negated for term in filed) for one in told)
            rows = rows[np.fromiter(held, dtype=np.bool_, count=len(rows))]
        return rows

    def _holds(self, term: Term) -> Mask:
        if term.name == "state":
            return self.states[str(term.value)]
        if term.name == "text":
            having, _ = self.names.having(_bytes(term), len(self.names.text))
            return np.isin(self.source, having, assume_unique=True)
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


def read(store: ReadStore, moment: Callable[[], Moment], before: SourceColumns | None = None) -> SourceColumns:
    """All sources; the addresses `before` are taken again unless the fleet was edited since."""
    # First the names: who is added in between is found the next time.
    edited = store.counters().get("edited", 0)
    known = before.names if before is not None and before.names.edited == edited else _names(store, edited)
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
        "interval": at.intervals(rows),
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
    return SourceColumns(at, source, by, states, host, hosts, known, store)


def _names(store: ReadStore, edited: int) -> Names:
    addresses = store.addresses()
    source = np.array([number for number, _ in addresses], dtype=np.int64)
    made = Names(b"", np.empty(0, dtype=np.int64), source, edited)
    titled = made.of(store, source.tolist()) if len(addresses) <= TITLED else {}
    lines, begin, at = [], [0], 0
    for number, address in addresses:
        title = f"\t{titled[number].title}" if number in titled and titled[number].title else ""
        line = f"{address}{title}".lower().replace("\n", " ").encode("utf-8", "replace") + b"\n"
        at += len(line)
        lines.append(line)
        begin.append(at)
    return Names(b"".join(lines), np.array(begin, dtype=np.int64), source, edited, made.filed)


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


def _in_order(keys: Floats, rows: Rows | None) -> Iterator[int]:
    """All rows by their keys, sorted only as far as they are asked for."""
    total, given, count = len(keys) if rows is None else len(rows), 0, 2000
    while given < total:
        yield from _first(keys, rows, min(count, total))[given:].tolist()
        given, count = min(count, total), 10 * count
