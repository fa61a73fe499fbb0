"""A fleet whose sources change, or matter, in different ways."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unstale.core.checks import Floats
from unstale.core.values.base import Rows, Value
from unstale.errors import require


class Mixed(Value):
    """Parts of a fleet with a value of their own: `parts` are (rows, value), and every row is in one part.

    >>> from unstale.core.values.laws import MissedChanges, SummedLag
    >>> Mixed([([0, 2], MissedChanges([1.0, 4.0])), ([1], SummedLag([3.0]))]).value(2.0)
    array([2., 8., 8.])
    """

    def __init__(self, parts: Sequence[tuple[ArrayLike, Value]]) -> None:
        self.parts = [(np.asarray(rows, dtype=np.intp).reshape(-1), value) for rows, value in parts]
        for k, (rows, value) in enumerate(self.parts):
            rule = f"must be as many as its {len(value)} sources"
            require(len(rows) == len(value), f"parts[{k}] rows", len(rows), rule, "give one row per source")
        seen = np.sort(np.concatenate([np.empty(0, np.intp), *(rows for rows, _ in self.parts)]))
        require(
            np.array_equal(seen, np.arange(len(seen))),
            "parts rows",
            seen[:5].tolist(),
            f"must be 0 to {len(seen) - 1}, each once",
            "put every source into one part",
        )
        self._length = len(seen)

    def __len__(self) -> int:
        return self._length

    def value(self, interval: Floats) -> Floats:
        return self._each(lambda value, x: value.value(x), interval)

    def slope(self, interval: Floats) -> Floats:
        return self._each(lambda value, x: value.slope(x), interval)

    def interval(self, value: Floats) -> Floats:
        return self._each(lambda part, x: part.interval(x), value)

    def limit(self) -> Floats:
        return self._each(lambda value, x: value.limit(), np.float64(0.0))

    def free(self) -> Floats:
        return self._each(lambda value, x: value.free(), np.float64(0.0))

    def staleness(self, interval: Floats) -> Floats:
        return self._each(lambda value, x: value.staleness(x), interval)

    def take(self, rows: Rows) -> Mixed:
        chosen = np.arange(self._length)[rows]
        place: NDArray[np.intp] = np.empty(self._length, np.intp)
        owner: NDArray[np.intp] = np.empty(self._length, np.intp)
        for k, (mine, _) in enumerate(self.parts):
            place[mine], owner[mine] = np.arange(len(mine)), k
        parts: list[tuple[ArrayLike, Value]] = []
        for k, (_, value) in enumerate(self.parts):
            new = np.flatnonzero(owner[chosen] == k)
            if len(new):
                parts.append((new, value.take(place[chosen[new]])))
        return Mixed(parts)

    def _each(self, answer: Callable[[Value, Floats], Floats], x: ArrayLike) -> Floats:
        column = np.broadcast_to(np.asarray(x, dtype=np.float64), (self._length,))
        out = np.empty(self._length)
        for rows, value in self.parts:
            out[rows] = answer(value, column[rows])
        return out
