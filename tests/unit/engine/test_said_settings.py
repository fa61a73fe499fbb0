"""Settings that are changed while an engine runs: taken over, and given back to what the settings file says."""

from __future__ import annotations

import numpy as np
import pytest

from support.virtual import START, Shared, World, run_virtually
from unstale.calendar import parse_hours
from unstale.engine.config import EngineConfig
from unstale.engine.said import BUDGET, BudgetSaid
from unstale.engine.said_settings import SAID, SettingSaid, fields_said, kept_words, read_words

HOUR = 3600.0


def words(**said: str) -> bytes:
    return kept_words({name: SettingSaid(value, "api", 1.0, "") for name, value in said.items()})


def test_a_running_engine_goes_by_what_is_said_and_then_by_its_settings_again() -> None:
    world, store = World(np.full(20, 1.0 / 20.0), START + 60.0), Shared()

    def say(value: bytes) -> None:
        store.record([], settings={SAID: value})
        store.written += 1

    hour = int(START // HOUR + 5) % 24
    shut = words(windows=f"{hour:02}:00-{hour:02}:30", objective="age")
    engine, _ = run_virtually(world, 1.0, 60.0, store=store, visits={20.0: lambda: say(shut), 40.0: lambda: say(b"")})
    times = np.sort(np.concatenate([np.array(polls) for polls in world.polls])) - START
    counts = [int(np.sum((times > begin) & (times <= begin + 15.0))) for begin in (4.0, 24.0, 44.0)]
    assert counts[1] == 0, "polls are made in the allowed hours alone"
    assert min(counts[0], counts[2]) > 8
    assert (engine.config.objective, engine.config.hours) == ("freshness", ())


def test_words_count_over_the_config_as_it_was_given_and_nonsense_does_not() -> None:
    given = EngineConfig(2.0, burst=5.0, first_rate=1.0)
    said = {SAID: words(objective="age", burst="auto", first_round="30/min", windows="22:00-06:00")}
    config = given.amended(said | {BUDGET: BudgetSaid(9.0).kept()})
    assert (config.budget, config.objective, config.burst, config.first_rate) == (9.0, "age", 0.0, 0.5)
    assert config.hours == parse_hours("22:00-06:00")
    assert config.rate == pytest.approx(27.0), "a budget confined to some hours is spent in them"
    assert given.amended({}) is given
    assert fields_said(words(objective="fun", burst="many", nothing="x")) == {}
    for value in (b"7", b"[]", b"\xff", b'{"burst": 7}', b'{"burst": {"value": 7}}'):
        assert read_words(value) == {}
