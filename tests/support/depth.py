"""How deep a run goes: `make test` tries every second combination of a table of cases, `make soak` all of them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

from hypothesis import settings


def soaking() -> bool:
    """Whether time does not matter."""
    return settings.default is not None and settings.default.max_examples > 1000


def combined(*axes: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Combinations of one value from each axis, as on the squares of one colour: two neighbours never both.

    Every value occurs, and with three axes every pair of values of two of them.
    """
    places = product(*(range(len(axis)) for axis in axes))
    return [
        tuple(axis[i] for axis, i in zip(axes, place, strict=True))
        for place in places
        if soaking() or sum(place) % 2 == 0
    ]
