"""Sources of which several collections tell: each goes by the best of them, and hears all that are trusted.

Rules of this file:
1. A source's *home* is the collection by which its polls are planned; what its others told is kept beside, and polls
   teach what they are worth as they do for the home.
2. The home is the trusted one that leaves fewest changes unsaid and says fewest that were none; it moves only to one
   that is clearly better, so that two alike do not take turns.
3. A signal of a trusted collection counts, whoever is home.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unstale.core.checks import Floats
from unstale.core.learning.columns import Bits, Integers
from unstale.core.signals.choices import Mind
from unstale.core.signals.columns import MemberColumns, member_columns
from unstale.core.signals.hearing import taught_beside
from unstale.core.signals.trust import shared_precision, silence_of

#: by so much a collection must be better to become home
_CLEARLY = 0.05
#: what belongs to a collection's word about a member, and goes with it
_WORD = ("told", "check", "uncovered", "hits", "tries", "signals", "heard")


class Overlap:
    """What collections that are not home have told: pair k is source `row[k]` and collection `of[k]`, rows rising."""

    def __init__(self, pairs: Sequence[tuple[Integers, int]], now: float) -> None:
        row = np.concatenate([rows for rows, _ in pairs] + [np.empty(0, np.int64)]).astype(np.int64)
        of = np.concatenate([np.full(len(rows), g, np.int64) for rows, g in pairs] + [np.empty(0, np.int64)])
        order = np.lexsort((of, row))
        self.row, self.of = row[order], of[order]
        self.words: MemberColumns = member_columns(len(row), now)

    def __len__(self) -> int:
        return len(self.row)

    def join(self, rows: Integers, g: int, uncovered: Floats) -> None:
        """A collection tells of these rows too, from now on; `uncovered` is what it has not told of them."""
        new = ~np.isin(rows, self.row[self.of == g])
        words = member_columns(int(new.sum()), 0.0)
        words.uncovered[:] = uncovered[new]
        row, of = np.concatenate([self.row, rows[new]]), np.concatenate([self.of, np.full(len(words.told), g)])
        order = np.lexsort((of, row))
        self.row, self.of = row[order], of[order]
        both = zip(self.words, words, strict=True)
        self.words = MemberColumns(*(np.concatenate(pair)[order] for pair in both))

    def heard(self, g: int, rows: Integers, told: Floats, before: float, last: Floats) -> Integers:
        """A collection told that these rows, of which it is not home, changed; those of which that is news."""
        order = np.argsort(rows, kind="stable")
        rows, told = rows[order], told[order]
        mine = np.flatnonzero(self.of == g)
        at = np.searchsorted(self.row[mine], rows)
        inside = at < len(mine)
        inside[inside] = self.row[mine[at[inside]]] == rows[inside]
        pair, rows, told = mine[at[inside]], rows[inside], told[inside]
        self.words.heard[pair] = np.minimum(self.words.heard[pair].astype(np.int64) + 1, 65_535)
        newer = told > last[rows]
        pair, rows, told = pair[newer], rows[newer], told[newer]
        again = (self.words.signals[pair] == 0) | (self.words.told[pair] <= before)
        self.words.signals[pair] += again
        self.words.told[pair] = told
        return pair

    def taught(self, rows: Integers, polled_at: Floats, changed: Bits, mind: Mind) -> None:
        """What polls found, before beliefs have learned from it, teaches trust in all who told of these rows."""
        first, end = np.searchsorted(self.row, rows, "left"), np.searchsorted(self.row, rows, "right")
        if (first < end).any():
            taught_beside(rows, first, end, self.of, polled_at, changed, self.words, mind)

    def move(self, home: Integers, mind: Mind) -> bool:
        """Change homes to those that are clearly better; whether any was changed."""
        if not len(self):
            return False
        collections = mind.collections
        worth = np.array(
            [
                (1.0 - silence_of(g, collections, mind.fleet)) * shared_precision(g, collections, mind.fleet)
                if collections.trusted[g]
                else 0.0
                for g in range(len(collections.trusted))
            ]
        )
        # The best of each source's others: rows rise, and within each the best comes last.
        order = np.lexsort((worth[self.of], self.row))
        best = order[np.append(self.row[order][1:] != self.row[order][:-1], True)]
        best = best[worth[self.of[best]] > worth[home[self.row[best]]] + _CLEARLY]
        if not len(best):
            return False
        rows = self.row[best]
        home[rows], self.of[best] = self.of[best], home[rows].copy()
        for name in _WORD:
            here, beside = getattr(mind.members, name), getattr(self.words, name)
            here[rows], beside[best] = beside[best], here[rows].copy()
        return True
