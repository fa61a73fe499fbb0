"""How often listings are polled whatever they are worth: what whoever plans tells those who hold collections."""

from __future__ import annotations

from typing import NamedTuple


class ListingPace(NamedTuple):
    """Seconds between listings: on trial, and while they are new (0: none is).

    And the shortest and longest interval that is tried for one that is used.
    """

    trial: float
    new: float
    least: float
    most: float
