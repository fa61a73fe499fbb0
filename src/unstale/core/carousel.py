"""A plan laid out as an endless even sequence of slots [002 Algorithm 3].

Rules of this file:
1. A source's j-th poll is released at one slot and due at another, both known beforehand, so the state of a
   carousel is the number of polls given out per source: no lag is accumulated, nothing drifts.
2. Slots are numbered from 1. A release or a tie is decided as in exact arithmetic as long as both sides agree
   to 49 bits, so shares such as 1/3 behave like the fractions they stand for.
"""

from __future__ import annotations

import heapq
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unstale.core.checks import numbers
from unstale.core.compiling import kept
from unstale.errors import require

Slots = NDArray[np.intp]

#: fewer slots than this are laid out faster than a compiler is loaded; and where one is loaded already
WORTH_LOADING, WORTH_COMPILING = 1_000_000, 10_000
#: spare room for 1/3 and its like: a release counts as reached when it is this close
ALMOST = 1.0 - 2.0**-50


class Carousel:
    """Hands out slots forever: which source to poll next, each in proportion to its share and evenly spread.

    For a share p = share/Σshare of n sources (those with share 0 are abandoned), a margin m = 1/(2n−2) and
    a source polled c times before slot t: it may be polled once t·p − c ≥ m, is due when that
    reaches 1 − m, and the earliest due source that may be polled is; ties go to the lowest index.

    After every t slots each source was polled t·p times to within 1 − m, the best bound that any sequence
    can promise, so gaps stay close to 1/p. Rounding adds less than 1e-15·t·p.
    [002 Algorithm 3], whose lines 4–5 and bound are illegible, rebuilt from Tijdeman's chairman assignment.
    Time per slot O(log n), memory O(n). Not a plan for fractional times: slots are equally long.

    >>> carousel = Carousel([1/2, 1/3, 1/6])
    >>> carousel.take(6), carousel.take(6)
    (array([0, 1, 0, 2, 1, 0]), array([0, 1, 0, 2, 1, 0]))
    """

    def __init__(self, share: ArrayLike) -> None:
        given = np.atleast_1d(numbers("share", share, least=0, remedy="give each source's sync_rate or share of slots"))
        # A power of two changes no quotient and keeps the total finite.
        scaled = np.ldexp(given, -np.frexp(np.max(given, initial=0.0))[1])
        self._source = np.flatnonzero(scaled > 0)
        require(
            given.ndim == 1 and len(self._source) > 0,
            "share",
            f"of shape {given.shape}",
            "must be a list with a number above 0",
            "give one per source, not all 0",
        )
        self._share = scaled[self._source]
        self._total = float(self._share.sum())
        self._polled = np.zeros(len(self._source), np.int64)
        self._slot = 0
        self._ahead: Slots = np.empty(0, np.intp)

    def take(self, slots: int) -> Slots:
        """The sources of the next `slots` slots."""
        require(slots >= 0, "slots", slots, "must be at least 0", "give the number of slots to lay out")
        short = slots - len(self._ahead)
        if short > 0:
            # Heaps are rebuilt from the counts: a block as long as the fleet makes that free.
            self._ahead = np.concatenate([self._ahead, self._block(max(short, len(self._source), 4096))])
        taken, self._ahead = self._ahead[:slots].copy(), self._ahead[slots:]
        return taken

    def _block(self, slots: int) -> Slots:
        compiled = _compiled() if slots >= (WORTH_COMPILING if "numba" in sys.modules else WORTH_LOADING) else None
        if compiled is not None:
            out = np.empty(slots, np.intp)
            compiled(self._share, self._total, self._polled, self._slot, out)
        else:
            polled, chosen = self._polled.tolist(), [0] * slots
            _lay_out(self._share.tolist(), self._total, polled, self._slot, chosen)
            self._polled, out = np.array(polled, np.int64), np.array(chosen, np.intp)
        self._slot += slots
        return self._source[out]


def carousel(share: ArrayLike, slots: int, start: int = 0) -> Slots:
    """The source of each of `slots` slots, after the first `start`; see `Carousel`.

    >>> carousel([5, 3, 2], 10)
    array([0, 1, 0, 2, 0, 1, 0, 2, 1, 0])
    """
    endless = Carousel(share)
    endless.take(start)
    return endless.take(slots)


def _lay_out(share: Any, total: float, polled: Any, slot: int, out: Any) -> None:
    """Fill `out`, bring `polled` up to date; runs as it is on lists, compiled on arrays, with one result."""
    n = len(share)
    inverse_margin = max(2 * n - 2, 1)
    # Comprehensions over nothing: a compiler must see what an empty heap will hold.
    released = [(0.0, 0) for _ in range(0)]
    waiting = [((inverse_margin * polled[k] + 1) * total / (inverse_margin * share[k]) * ALMOST, k) for k in range(n)]
    heapq.heapify(waiting)
    for i in range(len(out)):
        slot += 1
        # Some source can always be polled; should rounding say otherwise, the next one to be released is it.
        while len(waiting) > 0 and (waiting[0][0] <= slot or len(released) == 0):
            _, k = heapq.heappop(waiting)
            due = (inverse_margin * (polled[k] + 1) - 1) / share[k]
            # Veltkamp's split leaves 49 bits: 2/(1/3) and 3/(1/2) tie as they should.
            split = due * 17.0
            heapq.heappush(released, (split - (split - due), k))
        _, k = heapq.heappop(released)
        out[i] = k
        polled[k] += 1
        release = (inverse_margin * polled[k] + 1) * total / (inverse_margin * share[k]) * ALMOST
        heapq.heappush(waiting, (release, k))


@cache
def _compiled() -> Callable[..., None] | None:
    """`_lay_out` as machine code, or None where numba is not installed."""
    try:
        return kept(_lay_out, error_model="numpy", nogil=True)
    except ImportError:
        return None
