"""What ends a collection's probation: polls that a listing came before, and signals."""

from __future__ import annotations

import math

import numpy as np
import pytest

from unstale.core.signals.columns import CollectionColumns, collection_columns, member_columns
from unstale.core.signals.trust import PROBATION, lesson, unproven

POLLS, DAY = int(2 * PROBATION), 86_400.0


def polled(copied: float, heard: float, now: float, signals: int = 0, entries: float = 0.0) -> CollectionColumns:
    """A collection after many polls that found nothing, each of a copy taken at `copied`, all heard of at `heard`."""
    collections, members, fleet = (
        collection_columns(np.ones(1), np.full(1, entries), 0.0),
        member_columns(1, 0.0),
        np.zeros(5),
    )
    members.rate[:] = 1.0 / DAY
    collections.asof[0], collections.uncovered[0] = heard, 0.0
    for _ in range(POLLS):
        members.signals[0] = signals
        lesson(0, 0, now, copied, False, -(now - copied) / DAY, 0.0, members, collections, fleet)
    return collections


@pytest.mark.parametrize("heard", [0.0, DAY])
def test_polls_that_no_listing_came_before_leave_a_collection_new(heard: float) -> None:
    collections = polled(copied=DAY, heard=heard, now=2.0 * DAY)
    assert collections.lessons[0] == 0.0
    assert unproven(0, collections)


def test_a_poll_counts_by_the_time_that_a_listing_told_of() -> None:
    quarter, whole = (polled(copied=DAY, heard=heard * DAY, now=2.0 * DAY) for heard in (1.25, 2.0))
    assert quarter.lessons[0] == pytest.approx(POLLS / 4)
    assert whole.lessons[0] == POLLS
    assert unproven(0, quarter)
    assert not unproven(0, whole)


def test_who_is_polled_after_a_signal_counts_in_full() -> None:
    told = polled(copied=DAY, heard=1.25 * DAY, now=2.0 * DAY, signals=1)
    assert told.lessons[0] == POLLS
    assert math.isfinite(told.credit[0])


def test_a_feed_is_not_kept_new_for_longer() -> None:
    assert polled(copied=DAY, heard=DAY, now=2.0 * DAY, entries=20.0).lessons[0] == POLLS
