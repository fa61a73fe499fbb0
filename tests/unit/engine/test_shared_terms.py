"""Terms that workers share: whose settings file has the word."""

from __future__ import annotations

import pytest

from unstale.engine.config import EngineConfig
from unstale.engine.shared_terms import SharedTerms, agreed


def test_the_file_that_was_changed_last_has_the_word() -> None:
    first = SharedTerms.of(EngineConfig(20.0, burst=5.0), changed_at=100.0)
    assert agreed(first, b"") == (first, first.kept())
    # The same said later is nothing new; another one said earlier is overruled; said later it counts.
    assert agreed(SharedTerms.of(EngineConfig(20.0, burst=5.0), 300.0), first.kept()) == (first, None)
    older = SharedTerms.of(EngineConfig(10.0), changed_at=50.0)
    assert agreed(older, first.kept()) == (first, None)
    newer = SharedTerms.of(EngineConfig(10.0), changed_at=150.0)
    assert agreed(newer, first.kept()) == (newer, newer.kept())


WORTHLESS = b'{"budget": -1, "burst": 0, "objective": "age", "first_rate": 0, "changed_at": 0}'


@pytest.mark.parametrize("value", [b"", b"7", b"[]", b'{"budget": 1}', b"\xff", WORTHLESS])
def test_what_makes_no_sense_is_as_if_nothing_was_kept(value: bytes) -> None:
    assert SharedTerms.read(value) is None


def test_terms_rule_over_a_workers_own_settings_and_nothing_else_of_them() -> None:
    config = SharedTerms(2.0, 7.0, "age", 0.5, 0.0).over(EngineConfig(9.0, owner="w", polls=3, lease=4.0))
    assert (config.budget, config.settled, config.burst) == (2.0, 2.0, 7.0)
    assert (config.objective, config.first_rate) == ("age", 0.5)
    assert (config.owner, config.polls, config.lease) == ("w", 3, 4.0)
