"""What polls are for: the one table of objectives. Plan, learner, engine, backtest and settings all read it.

To add one, add a row here, and its penalty's formula if there is none yet.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from unstale.core.checks import Floats
from unstale.core.penalties import Constant, Deadline, Linear, Penalty, Power, Saturating
from unstale.core.points_penalty import Points
from unstale.errors import InputError, sentence
from unstale.frozen import dataclass
from unstale.units import parse_duration

if TYPE_CHECKING:
    from unstale.core.processes.base import Process
    from unstale.core.values import Value


@dataclass(frozen=True, slots=True)
class Objective:
    """What a budget is spent for: the penalty of a copy's age, or (`every`) of the lag of each change that it lacks."""

    name: str
    penalty: Penalty
    every: bool = False

    def value(self, change_rate: ArrayLike, *, order: str = "fixed", changes: Process | None = None) -> Value:
        """What polls are worth under it, in columns."""
        from unstale.core.values import value_of  # only plans need values in columns

        if not self.every:
            return value_of("penalty", change_rate, order=order, changes=changes, penalty=self.penalty)
        plain = {Constant: "missed", Linear: "lag"}.get(type(self.penalty))
        if plain is not None:
            return value_of(plain, change_rate, order=order)
        return value_of("missed", change_rate, order=order, penalty=self.penalty)


class ObjectiveRow(NamedTuple):
    """One row of the table: how it is written, what it means, and its penalty.

    `argument` makes the penalty from what stands after the colon and the length of a day; without one, `penalty` is it.
    `chords` are ages at which a penalty that is no table of points is cut into straight lines, given a mean interval.
    """

    spelling: str
    line: str
    penalty: Penalty | None = None
    argument: Callable[[str, float], Penalty] | None = None
    every: bool = False
    chords: Callable[[Penalty, float], Floats] | None = None


def _power(text: str, day: float) -> Penalty:
    try:
        degree = float(text)
    except ValueError:
        raise InputError(sentence("objective", repr(f"power:{text}"), "needs a number", "write power:2")) from None
    return Linear() if degree == 1 else Power(degree)


def _deadline(text: str, day: float) -> Penalty:
    return Deadline(parse_duration(text, "objective") * day)


def _saturating(text: str, day: float) -> Penalty:
    return Saturating(parse_duration(text, "objective") * day)


def _points(text: str, day: float) -> Penalty:
    pairs = []
    for one in text.split(","):
        age, _, harm = one.partition("=")
        try:
            pairs.append((parse_duration(age.strip(), "objective") * day, float(harm)))
        except ValueError:
            said = repr(f"points:{text}")
            raise InputError(
                sentence("objective", said, "needs pairs of age and harm", "write points:1h=0.5,1d=1")
            ) from None
    return Points(pairs)


def _around_mean(penalty: Penalty, mean_interval: float) -> Floats:
    return mean_interval * np.concatenate([[0.0], np.geomspace(1e-3, 60.0, 47)])


def _around_scale(penalty: Penalty, mean_interval: float) -> Floats:
    assert isinstance(penalty, Saturating)
    return penalty.scale * np.concatenate([[0.0], np.geomspace(0.03, 9.0, 30)])


#: every objective, by the word that names it
OBJECTIVES: dict[str, ObjectiveRow] = {
    "freshness": ObjectiveRow("freshness", "the share of copies that equal their source", Constant()),
    "age": ObjectiveRow("age", "how old copies are: an hour behind is worse than a minute", Linear()),
    "missed": ObjectiveRow("missed", "how many changes copies lack", Constant(), every=True),
    "lag": ObjectiveRow("lag", "the lags of all changes that copies lack, summed", Linear(), every=True),
    "deadline": ObjectiveRow("deadline:TIME", "copies older than TIME are worthless, others good", argument=_deadline),
    "saturating": ObjectiveRow(
        "saturating:TIME", "harm grows with age and levels off after TIME", argument=_saturating, chords=_around_scale
    ),
    "power": ObjectiveRow("power:NUMBER", "harm is age to the power of NUMBER", argument=_power, chords=_around_mean),
    "points": ObjectiveRow(
        "points:TIME=HARM,…", "harm by age as a table of points, straight between them", argument=_points
    ),
}
SPELLINGS = ", ".join(row.spelling for row in OBJECTIVES.values())


def objective_of(text: str, *, day: float = 1.0) -> Objective:
    """The objective that a text names; `day` is the length of a day in the unit of time that is counted in.

    >>> objective_of("deadline:6h", day=86_400.0).penalty
    Deadline(tau=21600.0)
    """
    word, colon, argument = text.partition(":")
    row = OBJECTIVES.get(word)
    if row is not None and row.penalty is not None and not colon:
        return Objective(text, row.penalty, row.every)
    if row is not None and row.argument is not None and argument:
        return Objective(text, row.argument(argument, day), row.every)
    raise InputError(sentence("objective", repr(text), "is not known", f"use one of {SPELLINGS}"))
