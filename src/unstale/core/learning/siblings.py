"""Siblings: sources that change together. A change found at one makes the copies of its siblings doubtful.

Who stands in one folder is often changed by one hand at one time. No listing says so, but polls do: of a change that a
poll finds at one source its siblings are told, as far as it may have come after their own last polls and was not told
before. What that foretells is learned from what polls of siblings find, family by family, and used only where it has
foretold better than beliefs alone, by credit as the week's clock and bursts are.

Rules of this file:
1. With a sibling's change told, doubt is a·λ·time + e·told: a is the share of changes that come untold, e what a change
   told foretells. A poll pays at about the same doubt as ever: so whoever is told is due sooner, and whoever is not,
   later. That goes into `head_start`, and who reckons due times need know nothing of it.
2. Where it is not trusted nothing is moved: not a digit changes. Beliefs learn as if there were no siblings.
3. A family is a folder; of a large one at most `MOST` are told, neighbours by name: what a find costs is bounded.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unstale.core.checks import Floats
from unstale.core.learning.column_beliefs import Bits, gathered
from unstale.core.learning.column_due import rounded_all
from unstale.core.learning.columns import LearnerColumns
from unstale.core.learning.kin_gains import gains
from unstale.core.learning.mixture import Shared, scratch

Integers = NDArray[np.int64]

#: members of a family that tell each other, at most
MOST = 64
#: changes that a sibling's change is first thought to foretell; the fleet's guess counts as so many told
_FIRST, _STRENGTH = 0.1, 3.0
#: what beliefs foretell is taken for right as if so many changes had shown it
_SURE = 5.0
#: but the share of changes that come untold is never taken for less
_LEAST = 0.4
#: told more changes than this, a source is told no more
_MANY = 4.0
#: siblings are used where the fleet's credit and the family's own are above these; a good or bad name is bounded
_CREDIT, _EARNED, _WORST, _BEST = 10.0, 3.0, -10.0, 40.0
#: what tallies keep from one look at the fleet to the next
_KEPT = 0.95
#: what is learned of a family, as it is kept: its folder's number, and the columns of `Siblings.tallies`
_FAMILY = np.dtype([("folder", "<u4"), ("tallies", "<f4", (6,))])


class Families(NamedTuple):
    """Sources by folders: the family of each, -1: none; those who have one, by family and name; a number for each.

    The number is that of the folder's name, whoever else there is.
    """

    of: NDArray[np.int32]
    order: NDArray[np.int32]
    folder: NDArray[np.uint32]


def folder_number(name: object) -> int:
    """A number for the folder in which a source of this name stands; 0: in none.

    >>> folder_number("web/css/color") == folder_number("web/css/top?x=/"), folder_number("about")
    (True, 0)
    """
    folder = name.split("?", 1)[0].rpartition("/")[0] if isinstance(name, str) else ""
    return zlib.crc32(folder.encode("utf-8", "replace"))


def families(names: Sequence[object]) -> Families:
    """Who stands in the same folder is of one family; who stands there alone has none.

    >>> families(["web/css/color", "web/css/top", "web/html", "about", "web/css/all"]).of.tolist()
    [0, 0, -1, -1, 0]
    """
    number = np.array([folder_number(name) for name in names], np.uint32)
    folder, of, size = np.unique(number, return_inverse=True, return_counts=True)
    taken = (size > 1) & (folder > 0)
    place = np.where(taken, np.cumsum(taken) - 1, -1)
    kin = np.flatnonzero(taken[of])
    order = sorted(kin.tolist(), key=lambda i: (of[i], str(names[i])))
    return Families(place[of].astype(np.int32), np.array(order, np.int32), folder[taken])


def siblings_of(names: Sequence[object], state: bytes = b"") -> Siblings | None:
    """The siblings among sources of these names, as far as `state` knows them; None if nobody has any."""
    if not len(names):
        return None
    found = families(names)
    if not len(found.folder):
        return None
    made = Siblings(found)
    made.restore(state)
    return made


class Siblings:
    """What changes found at sources foretell of their siblings."""

    def __init__(self, families: Families) -> None:
        self.families, count = families, len(families.folder)
        self._starts = np.searchsorted(families.of[families.order], np.arange(count + 1))
        self._place = np.zeros(len(families.of), np.int32)
        self._place[families.order] = np.arange(len(families.order))
        #: changes that each source was told of since its last poll, and the seconds by which it is due sooner for them
        self.heard = np.zeros(len(families.of), np.float32)
        self.sooner = np.zeros(len(families.of), np.float32)
        #: of each family: changes told to those who were polled then, changes that these account for, changes that came
        #: otherwise, changes that beliefs foretold, changes found; and the credit of siblings
        self.tallies = np.zeros((6, count))
        self.credit = 0.0
        self._learn()

    def judge(
        self, rows: Integers, polled_at: Floats, changed: Bits, columns: LearnerColumns, shared: Shared
    ) -> Floats:
        """Learn from polls, before beliefs do: whether siblings foretold better, and what they account for.

        Of each poll that share of a change which is news to its family: the rest was told by siblings.
        """
        news = np.ones(len(rows))
        some = np.flatnonzero((self.families.of[rows] >= 0) & (columns.last[rows] < polled_at))
        rows, changed = rows[some], changed[some]
        if not len(rows):
            return news
        elapsed, family = polled_at[some] - columns.last[rows], self.families.of[rows]
        heard, share, pace = np.minimum(self.heard[rows], _MANY), self.alone[family], self._pace[family]
        extra, room = self.foretells[family] * heard, scratch(len(shared.half_lives))
        # Beliefs that foretell too much or too little all the time are set right first: that is no merit of siblings.
        likely, gained = gains(rows, elapsed, changed, share, extra, pace, columns.rows, shared, room)
        alone, plain = share * likely, pace * likely
        # Of the changes behind what was found, those that siblings account for: a step of expectation and maximisation.
        behind = np.where(changed, 1.0 / -np.expm1(-np.maximum(alone + extra, 1e-9)), 0.0)
        found = np.where(changed, plain / -np.expm1(-np.maximum(plain, 1e-9)), 0.0)
        for tally, more in zip(
            self.tallies, (heard, behind * extra, behind * alone, likely, found, gained), strict=True
        ):
            np.add.at(tally, family, more)
        np.clip(self.tallies[5], _WORST, _BEST, out=self.tallies[5])
        self.credit = min(max(self.credit + float(gained.sum()), _WORST), _BEST)
        news[some] = alone / np.maximum(alone + extra, 1e-300)
        return news

    def tell(
        self,
        polled: Integers,
        rows: Integers,
        polled_at: Floats,
        before: Floats,
        news: Floats,
        columns: LearnerColumns,
        shared: Shared,
    ) -> None:
        """Changes were found at `rows` of those polled, since polls at `before`: siblings are told what is news."""
        self.heard[polled] = self.sooner[polled] = 0.0
        told = list[Integers]()
        for row, now, last, share in zip(*(part.tolist() for part in (rows, polled_at, before, news)), strict=True):
            family = self.families.of[row]
            if family >= 0 and last < now:
                begin, end = self._starts[family : family + 2]
                begin += (self._place[row] - begin) // MOST * MOST
                kin = self.families.order[begin : min(begin + MOST, end)]
                kin = kin[(kin != row) & (columns.last[kin] < now)]
                # When it came between the two polls is not known: any moment is as likely.
                self.heard[kin] += share * np.minimum((now - columns.last[kin]) / (now - last), 1.0)
                told.append(kin)
        self.hasten(np.unique(np.concatenate([*told, polled])), columns, shared)

    def review(self, columns: LearnerColumns) -> None:
        """Look at all families again: what their members' changes foretell, and whether that is used."""
        self._learn()
        self.tallies[:5] *= _KEPT
        lost = np.flatnonzero((self.sooner != 0.0) & ~self._trusting)
        columns.head_start[lost] -= self.sooner[lost]
        self.sooner[lost] = 0.0

    def hasten(self, rows: Integers, columns: LearnerColumns, shared: Shared) -> None:
        """Let these be due sooner as they were told of changes, and later as they were not, where that is trusted.

        Their intervals are those at the last price.
        """
        rows = rows[self.trusted[self.families.of[rows]]] if self.trusted.any() else rows[:0]
        if len(rows):
            family, interval = self.families.of[rows], columns.interval[rows]
            rate = gathered(np.ascontiguousarray(columns.rows[rows].T), shared).rate
            told = self.foretells[family] * np.minimum(self.heard[rows], _MANY) / rate
            pace = self._pace[family]
            wait = (pace * interval - told) / np.clip(self.alone[family], _LEAST * pace, pace)
            sooner = rounded_all(np.maximum(interval - wait, interval - columns.longest[rows])).astype(np.float32)
            columns.head_start[rows] += sooner - self.sooner[rows].astype(np.float64)
            self.sooner[rows] = sooner

    def renew(self, columns: LearnerColumns, shared: Shared) -> None:
        """The same for everybody who waits: intervals have moved with the price."""
        if self.trusted.any():
            self.hasten(np.flatnonzero(self._trusting & np.isfinite(columns.last)), columns, shared)

    def kept(self) -> bytes:
        """What was learned of families, by their folders."""
        made = np.empty(len(self.families.folder), _FAMILY)
        made["folder"], made["tallies"] = self.families.folder, self.tallies.T
        return np.float64(self.credit).tobytes() + made.tobytes()

    def restore(self, state: bytes) -> None:
        """Go on with what was kept; families that it does not name are new."""
        self.credit, made = _read(state)
        _, here, there = np.intersect1d(self.families.folder, made["folder"], return_indices=True)
        self.tallies[:, here] = made["tallies"][there].T
        self._learn()

    def _learn(self) -> None:
        _, _, own, expected, found, _ = self.tallies
        #: changes that a change told foretells, and where that is used
        self.foretells, self.trusted = _foretold(self.tallies, self.credit)
        self._trusting = (self.families.of >= 0) & self.trusted[self.families.of]
        #: changes that come otherwise, and all of them, in terms of what beliefs foretell
        self.alone, self._pace = ((part + _SURE) / (expected + _SURE) for part in (own, found))


def foretold_by(state: bytes, name: str) -> float:
    """Changes of a source that a change found at a sibling foretells, by what was kept; 0 where that is not used."""
    credit, made = _read(state)
    foretells, trusted = _foretold(made["tallies"].T, credit)
    return float(np.where(trusted & (made["folder"] == folder_number(name)), foretells, 0.0).max(initial=0.0))


def _foretold(tallies: Floats, credit: float) -> tuple[Floats, Bits]:
    told, accounted, credits = tallies[0], tallies[1], tallies[5]
    fleet = (accounted.sum() + _STRENGTH * _FIRST) / (told.sum() + _STRENGTH)
    return (accounted + _STRENGTH * fleet) / (told + _STRENGTH), (credits > _EARNED) & (credit > _CREDIT)


def _read(state: bytes) -> tuple[float, np.ndarray]:
    """The fleet's credit and the families that were kept; none in what is no state."""
    if len(state) < 8 or (len(state) - 8) % _FAMILY.itemsize:
        return 0.0, np.empty(0, _FAMILY)
    return float(np.frombuffer(state[:8])[0]), np.frombuffer(state[8:], _FAMILY)
