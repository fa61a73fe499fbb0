"""When a source says that it changed, at the two moments where the answer turns."""

from __future__ import annotations

import pytest

from unstale.engine.judge import changed_when
from unstale.keeper.outcomes import Answer
from unstale.ports import Claim, Fetched


@pytest.mark.parametrize(
    ("when", "believed"),
    [
        (19.999, False),
        # At the last look it was seen with the change: nothing new.
        (20.0, False),
        (20.001, True),
        # In the moment of the poll: the youngest change that the poll can have seen.
        (50.0, True),
        (50.001, False),
    ],
)
def test_a_told_time_is_believed_after_the_last_look_and_up_to_the_poll(when: float, believed: bool) -> None:
    claim = Claim(1, 1, "http://a.example/", "http", 0.0, last=20.0)
    fetched = Fetched(Answer.CHANGED, 50.0, body=b"x", changed_at=(when,))
    assert changed_when(claim, Answer.CHANGED, fetched) == (when if believed else None)
