"""Settings that are changed while an engine runs: taken over, and given back to what the settings file says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.virtual import START, Shared, World, run_virtually
from unstale.calendar import parse_hours
from unstale.engine.config import EngineConfig
from unstale.engine.contract_words import read_contracts, written_contracts
from unstale.engine.contracts import Contract
from unstale.engine.host_grants import HostGrant, read_grants, written_grants
from unstale.engine.host_limits import HostLimits, Rules
from unstale.engine.said import BUDGET, BudgetSaid
from unstale.engine.said_settings import SAID, SettingSaid, fields_said, kept_words, read_words
from unstale.errors import InputError
from unstale.ports import Listing

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


def test_a_running_engine_keeps_contracts_that_are_said_until_they_are_taken_back() -> None:
    # Twenty that never change, which the price would look at every five minutes, and thirty that do.
    world, store = World(np.where(np.arange(50) < 20, 1e-9, 0.1), START + 600.0), Shared()

    def say(value: bytes) -> None:
        store.record([], settings={SAID: value})
        store.written += 1

    promise = words(contracts="finance: 20s")
    engine, _ = run_virtually(
        world,
        5.0,
        600.0,
        store=store,
        listing=lambda i: Listing(f"memory:{i}", kind="memory", options={"tags": ["finance"]} if i < 20 else {}),
        visits={200.0: lambda: say(promise), 400.0: lambda: say(b"")},
    )

    def longest(begin: float, end: float) -> float:
        times = [np.array(one)[(np.array(one) > START + begin) & (np.array(one) <= START + end)] for one in world.polls]
        return max(float(np.diff(one).max(initial=0.0)) for one in times[:20])

    assert longest(20.0, 200.0) > 20.0
    # A tenth sooner than the contract needs.
    assert 18.0 <= longest(220.0, 400.0) <= 20.0
    assert longest(420.0, 600.0) > 40.0
    assert engine.config.contracts == {}


def test_a_running_engine_spaces_polls_of_a_host_as_it_is_said_and_then_as_its_settings_say() -> None:
    world, store = World(np.full(10, 1.0), START + 120.0), Shared()

    def say(value: bytes) -> None:
        store.record([], settings={SAID: value})
        store.written += 1

    slowly = words(hosts="slow.example: 4s; other.example: 9s 3")
    engine, _ = run_virtually(
        world,
        3.0,
        120.0,
        store=store,
        listing=lambda i: Listing(f"memory:{i}", kind="memory", host="slow.example" if i < 5 else "fast.example"),
        host_limits=HostLimits(lambda host: Rules(1.0, 2, leave=0.1)),
        visits={40.0: lambda: say(slowly), 80.0: lambda: say(b"")},
    )

    def gaps(begin: float, rows: slice) -> list[float]:
        times = np.sort(np.concatenate([np.array(polls) for polls in world.polls[rows]])) - START
        return list(np.diff(times[(times > begin) & (times <= begin + 30.0)]))

    slow, fast = slice(0, 5), slice(5, 10)
    for begin, apart in ((5.0, 1.0), (50.0, 4.0), (90.0, 1.0)):
        assert apart - 1e-6 <= min(gaps(begin, slow)) <= np.median(gaps(begin, slow)) < 1.5 * apart
        assert 1.0 - 1e-6 <= min(gaps(begin, fast)) < 2.0
    assert engine.host_limits.rules("slow.example") == Rules(1.0, 2, leave=0.1)
    engine.host_limits.grant(read_grants("other.example: 9s 3"))
    assert engine.host_limits.rules("other.example") == Rules(9.0, 3, leave=0.1)


@given(
    st.dictionaries(
        st.from_regex(r"[a-z0-9][a-z0-9.:-]*", fullmatch=True),
        st.builds(
            HostGrant,
            st.integers(0, 10**6).map(float) | st.integers(1, 10**8).map(lambda n: n / 1000.0),
            st.integers(0, 10**6),
        ),
    )
)
def test_grants_are_read_as_they_are_written(grants: dict[str, HostGrant]) -> None:
    assert read_grants(written_grants(grants)) == grants


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("5s", "hosts '5s' names no host: write it like shop.example: 5s; api.example: 1s 4"),
        ("a b: 5s", "hosts 'a b: 5s' names no host: write it like shop.example: 5s; api.example: 1s 4"),
        ("a: 5s; A: 6s", "hosts 'a' is there twice: say each host once"),
        ("a:", "hosts 'a:' grants nothing: write it like shop.example: 5s; api.example: 1s 4"),
        ("a: 5", "hosts 'a: 5' has no unit of time: write it like shop.example: 5s; api.example: 1s 4"),
        ("a: 5s 0", "hosts 'a: 5s 0' lets nobody in: let one poll at a time"),
        ("a: soon", "hosts.a 'soon' is not a length of time: write it like 15m or 2h"),
        ("a: -5s", "hosts.a -5s must be a finite number at least 0: try 1/day or 15m"),
    ],
)
def test_a_grant_that_makes_no_sense_is_refused(text: str, said: str) -> None:
    with pytest.raises(InputError) as refused:
        read_grants(text)
    assert str(refused.value) == said


@given(
    st.dictionaries(
        st.text(st.characters(blacklist_characters=";", blacklist_categories=["Cs", "Z", "Cc"]), min_size=1),
        st.builds(
            Contract,
            st.integers(1, 10**8).map(float) | st.integers(1, 10**8).map(lambda n: n / 1000.0),
            st.integers(1, 10**6).map(lambda n: n / 10**6),
        ),
    )
)
def test_contracts_are_read_as_they_are_written(contracts: dict[str, Contract]) -> None:
    contracts.pop("own", None)
    assert read_contracts(written_contracts(contracts)) == contracts


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1h", "contracts '1h' names no tag: write it like orders: 1h; news: 1d 95%"),
        ("own: 1h", "contracts 'own: 1h' names no tag: write it like orders: 1h; news: 1d 95%"),
        ("a: 1h; a: 2h", "contracts 'a' is there twice: say each tag once"),
        ("a:", "contracts.a '' promises nothing that polls can keep: write 1h or 95%"),
        ("a: 100%", "contracts.a '100%' promises nothing that polls can keep: write 1h or 95%"),
        ("a: soon", "contracts.a 'soon' is not a length of time: write it like 15m or 2h"),
        ("a: 120%", "contracts.a '120%' is no share of the time: write 95%, or any up to 100%"),
        ("a: 1.2.3%", "contracts.a '1.2.3%' is no share of the time: write 95%, or any up to 100%"),
    ],
)
def test_a_contract_that_nobody_can_keep_is_refused(text: str, said: str) -> None:
    with pytest.raises(InputError) as refused:
        read_contracts(text)
    assert str(refused.value) == said
