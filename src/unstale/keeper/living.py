"""The sources of a living fleet: their names, what is given about each, and a learner for them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import field

import numpy as np

from unstale.core.checks import Floats, number, numbers
from unstale.core.learning.learner import Learner
from unstale.core.learning.state import restore
from unstale.errors import InputError, require, sentence
from unstale.frozen import dataclass
from unstale.keeper.costs import stated

Source = int | str
#: what is given about each source in numbers
GIVEN = ("weight", "cost", "shortest", "longest")
#: what stands in a new source's columns; its due time is when it was added
_NEW = {
    "found": -math.inf,
    "interval": 0.0,
    "answered": -math.inf,
    "not_before": -math.inf,
    "failures": 0,
    "paused": False,
    "held": False,
    "heard": 0.0,
}


def learner_of(
    scale: float, given: Mapping[str, Floats], beliefs: Floats, objective: str, state: bytes = b"", *, own: bool = False
) -> Learner:
    """A learner of sources that have taught `beliefs`, and of a fleet whose shared state was kept.

    `scale` is the mean interval at the budget; half-lives are counted in it, so they move with the fleet. With `own`,
    all that is `given` is the learner's from then on.
    """
    longest = np.minimum(given["longest"], 1e300, out=given["longest"] if own else None)
    learner = Learner(
        len(given["weight"]),
        scale,
        weight=given["weight"],
        cost=given["cost"],
        shortest=given["shortest"],
        longest=longest,
        objective=objective,
        own=own,
    )
    # A scheduler that an older version saved has rows without what polls said.
    missing = learner.columns.rows.shape[1] - beliefs.shape[1]
    rows = np.pad(beliefs, ((0, 0), (0, missing))) if missing > 0 else beliefs
    learner.columns = learner.columns._replace(rows=rows)
    columns = learner.columns
    # A shortest interval that somebody asked for is kept, however seldom it makes us look.
    np.maximum(columns.longest, columns.shortest, out=columns.longest)
    lives = learner.shared.half_lives.copy()
    if restore(learner, state):
        learner.shared.half_lives[:] = lives
    return learner


@dataclass(slots=True)
class Given:
    """What is given about each source and outlives its polls, in columns that grow."""

    weight: list[float] = field(default_factory=list)
    cost: list[float] = field(default_factory=list)
    shortest: list[float] = field(default_factory=list)
    longest: list[float] = field(default_factory=list)
    host: list[str] = field(default_factory=list)
    #: whether somebody has stated its cost
    stated: list[bool] = field(default_factory=list)

    def __post_init__(self) -> None:
        # A scheduler that an older version saved says nothing of it.
        self.stated = self.stated or stated(np.array(self.cost, dtype=np.float64)).tolist()

    def add(
        self,
        sources: Sequence[Source],
        weight: float | Sequence[float],
        cost: float | Sequence[float],
        shortest: float,
        longest: float,
        host: str,
    ) -> None:
        """Columns for new sources; nothing is kept if one of them is wrong."""
        count = len(sources)
        number("shortest", shortest, least=0)
        number("longest", longest, above=0, infinite=True)
        require(shortest <= longest, "shortest", shortest, f"must not exceed longest, {longest}", "swap them")
        heavy = np.broadcast_to(_fitting("weight", numbers("weight", weight, least=0), count), count).tolist()
        dear = np.broadcast_to(_fitting("cost", numbers("cost", cost, above=0), count), count).tolist()
        self.weight += heavy
        self.cost += dear
        self.shortest += [shortest] * count
        self.longest += [longest] * count
        self.host += [host] * count
        self.stated += stated(np.array(dear)).tolist()

    def learn(self, rows: Sequence[int], cost: Sequence[float]) -> None:
        """What polls of some are expected to cost."""
        for row, one in zip(rows, cost, strict=True):
            self.cost[row] = one

    def edit(self, row: int, name: str, value: float | str) -> None:
        """Another value for one source."""
        if name == "host":
            self.host[row] = str(value)
            return
        if name not in GIVEN:
            raise InputError(sentence("edit", repr(name), "is not known", f"use {', '.join(GIVEN)} or host"))
        above = None if name in ("weight", "shortest") else 0.0
        checked = number(name, float(value), least=0.0, above=above, infinite=name == "longest")
        bounds = {"shortest": self.shortest[row], "longest": self.longest[row], name: checked}
        require(
            bounds["shortest"] <= bounds["longest"],
            name,
            checked,
            "would make shortest exceed longest",
            "change the other first",
        )
        getattr(self, name)[row] = checked
        if name == "cost":
            self.stated[row] = bool(stated(np.array(checked)))

    def remove(self, row: int) -> None:
        """Forget one source."""
        for column in (self.weight, self.cost, self.shortest, self.longest, self.host, self.stated):
            del column[row]

    def columns(self) -> dict[str, np.ndarray]:
        """All of it as arrays."""
        made: dict[str, np.ndarray] = {name: np.array(getattr(self, name), dtype=np.float64) for name in GIVEN}
        return made | {"host": np.array(self.host, dtype=str), "stated": np.array(self.stated, dtype=np.bool_)}

    @classmethod
    def none(cls) -> Given:
        """Of no source."""
        return cls()


class SourceNames:
    """The names of sources by row, and the number of each: counted as they come, so that numbers rise with rows."""

    def __init__(self) -> None:
        self._names: list[Source] = []
        self._numbers: list[int] = []
        self._rows: dict[Source, int] | None = {}
        self._added: list[float] = []
        self._following = 0

    @classmethod
    def of_saved(cls, names: Sequence[Source], numbers: Sequence[int], following: int) -> SourceNames:
        """Names as they were saved."""
        made = cls()
        made._names, made._numbers, made._following, made._rows = list(names), list(numbers), following, None
        return made

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, source: object) -> bool:
        return source in self._index()

    def __iter__(self):  # type: ignore[no-untyped-def]
        return iter(self._names)

    @property
    def following(self) -> int:
        """The number that the next source will have."""
        return self._following

    def of(self, row: int) -> Source:
        """The name of a row."""
        return self._names[row]

    def row(self, source: Source) -> int:
        """The row of a name."""
        try:
            return self._index()[source]
        except KeyError:
            raise InputError(sentence("source", repr(source), "is not in the fleet", "add it first")) from None

    def numbers(self) -> np.ndarray:
        """The number of each row, rising."""
        return np.array(self._numbers, dtype=np.int64)

    def add(self, sources: Sequence[Source], now: float) -> None:
        """Names of new sources."""
        index = self._index()
        for source in sources:
            fits = isinstance(source, int | str) and not isinstance(source, bool)
            require(fits, "source", repr(source), "must be text or a whole number", "name it so")
            require(source not in index, "source", repr(source), "is in the fleet already", "edit it instead")
            index[source] = len(self._names)
            self._names.append(source)
            self._numbers.append(self._following)
            self._added.append(now)
            self._following += 1

    def remove(self, source: Source) -> int:
        """Forget a name; the row that it had."""
        row = self.row(source)
        del self._names[row], self._numbers[row]
        self._rows = None
        return row

    def grown(self, living: Mapping[str, np.ndarray], width: int) -> dict[str, np.ndarray]:
        """Columns with rows for the sources that were added since this was asked last, due when they were added."""
        added, self._added = self._added, []
        new = len(added)
        grown = {
            name: np.concatenate([living[name], np.full(new, blank, dtype=living[name].dtype)])
            for name, blank in _NEW.items()
        }
        grown["beliefs"] = np.concatenate([living["beliefs"], np.zeros((new, width))])
        grown["due_at"] = np.concatenate([living["due_at"], np.array(added, dtype=np.float64)])
        return grown

    def _index(self) -> dict[Source, int]:
        if self._rows is None:
            self._rows = {name: row for row, name in enumerate(self._names)}
        return self._rows


def _fitting(name: str, column: Floats, count: int) -> Floats:
    rule = f"must be one, or one for each of the {count} sources"
    require(column.ndim == 0 or column.shape == (count,), name, f"of shape {column.shape}", rule, "give as many")
    return column
