"""One truth, many faces: stores in six states, on a file and on PostgreSQL; every number on every face is the same one.

What is asked: `status --json`, `status` as people read it, the API's status and budget, metrics, the dashboard's table
and hosts, `top`. What it must be is computed here, from the beliefs that the test wrote itself.
"""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from scipy.integrate import quad

from support.faces import Faces, check_dashboard, check_metrics, check_text, samples
from support.hand_store import EXPOSURE, HOUR, NOW, belief, survival
from support.postgres import Postgres, postgres
from unstale.adapters.postgres_crew import PostgresCrew
from unstale.cli import service as cli_service
from unstale.cli.budget import budget as budget_command
from unstale.cli.compose import alone
from unstale.cli.service import write_store
from unstale.cli.settings import load
from unstale.cli.status import status as status_command
from unstale.cli.top import top as top_command
from unstale.core.learning.learner import Learner
from unstale.core.learning.state import kept
from unstale.engine.pulse import KEPT, done
from unstale.engine.pulse import kept as kept_pulse
from unstale.keeper.outcomes import Answer
from unstale.ports import LEARNER, Body, Entry, Listing, Price, Store

DAY = 24 * HOUR
#: what the settings say, polls a day, and what polls of every source cost
SETTLED, COST = 240.0, 2.0
NAMES = itertools.count()
#: (shape, exposure, hours since the last answer, weight) of those that answer
KNOWN = [(3.0, 6 * HOUR, 2.0, 1.0), (1.5, 2 * HOUR, 1.0, 4.0), (2.0, 100 * HOUR, 5.0, 1.0), (4.0, 9 * HOUR, 0.5, 2.0)]


@dataclass
class Truth:
    """What was put into a store: polls by answer, what is fresh and would be if polled evenly, how many are what."""

    polls: int = 0
    changed: int = 0
    failed: int = 0
    first: int = 0
    fresh: float | None = None
    even: float | None = None
    total: int = 0
    paused: int = 0
    failing: int = 0
    never_polled: int = 0
    budget: float = SETTLED
    by: str = "settings"

    @property
    def spent(self) -> float:
        return COST * self.polls


class Made:
    """Puts a store into a state, and keeps count."""

    def __init__(self, store: Store) -> None:
        self.store, self.truth = store, Truth()

    def add(self, count: int, weights: list[float], **given: Any) -> list[int]:
        begin = self.truth.total
        self.truth.total += count
        listings = [
            Listing(f"https://site{begin + i}.example/", host=f"site{begin + i}.example", cost=COST, weight=w, **given)
            for i, w in enumerate(weights)
        ]
        return self.store.add(listings, NOW - 100 * HOUR)

    def poll(self, source: int, at: float, answer: Answer, row: bytes | None = None) -> None:
        self.store.set_due([source], [at])
        claims = self.store.claim(at, 1000, lease=60.0, owner="test")
        (claim,) = [one for one in claims if one.source == source]
        body = Body(str(at).encode(), "text/plain") if answer is Answer.CHANGED else None
        reason = "it hangs up" if answer is Answer.FAILED else ""
        due = NOW + 3 * HOUR
        self.store.record([Entry(claim, answer, at, due, row, reason=reason, body=body, cost=COST)])
        self.store.give_back("test")
        self.truth.polls += 1
        self.truth.changed += answer is Answer.CHANGED
        self.truth.first += answer is Answer.CHANGED and claim.version == 0
        self.truth.failed += answer is Answer.FAILED

    def know(self, sources: list[int]) -> None:
        """Let sources be polled twice, so that these beliefs and last answers are theirs."""
        for source, (shape, exposure, hours, _) in zip(sources, KNOWN, strict=True):
            self.poll(source, NOW - hours * HOUR - 60.0, Answer.CHANGED)
            self.poll(source, NOW - hours * HOUR, Answer.UNCHANGED, belief(shape, exposure))

    def price(self, at: float) -> None:
        """Keep a price, with all that was done until then."""
        whole = done(self.store.counters())
        told = Price(at, 600.0, SETTLED / DAY, 0.5, 0.4, whole.polls, whole.changed, whole.failed, whole.spent)
        state = {LEARNER: kept(Learner(1, EXPOSURE)), KEPT: kept_pulse(whole)}
        self.store.record([], settings=state, price=told)


def fresh_sum() -> float:
    return sum(w * survival(hours * HOUR, a, b) for a, b, hours, w in KNOWN)


def even_sum(budget: float, sound: int) -> float:
    """The weighted freshness of those that answer if the budget polled every one that does not fail equally often."""
    every = sound * COST / (budget / DAY)
    return sum(w * quad(survival, 0, every, (a, b), epsabs=0)[0] / every for a, b, _, w in KNOWN)


WEIGHTS = [w for *_, w in KNOWN]


def empty(made: Made) -> None:
    """Nothing was ever added."""


def first_round(made: Made) -> None:
    """Three of eight were polled once: nothing was looked at twice."""
    sources = made.add(8, [1.0] * 8)
    for source in sources[:3]:
        made.poll(source, NOW - 60.0, Answer.CHANGED)
    made.price(NOW - 30.0)
    made.truth.never_polled = 5
    made.truth.fresh = 3 * survival(60.0, 1.0, EXPOSURE) / 8.0


def steady(made: Made) -> None:
    """All were polled twice, two polls came after the last price."""
    sources = made.add(4, WEIGHTS)
    made.know(sources[:4])
    made.price(NOW - 0.4 * HOUR)
    for source in sources[:2]:
        # Nothing changes but the counters: the beliefs stay, the last answer is told anew.
        shape, exposure, hours, _ = KNOWN[source - sources[0]]
        made.poll(source, NOW - hours * HOUR, Answer.UNCHANGED, belief(shape, exposure))
    made.truth.fresh = fresh_sum() / sum(WEIGHTS)
    made.truth.even = even_sum(SETTLED, 4) / sum(WEIGHTS)


def failing(made: Made) -> None:
    """Two more fail for ever: they are stale however they are polled, and their budget is the others'."""
    made.know(made.add(4, WEIGHTS))
    for source in made.add(2, [3.0, 3.0]):
        for n in range(3):
            made.poll(source, NOW - (3 - n) * HOUR, Answer.FAILED)
    made.price(NOW - 60.0)
    made.truth.failing = 2
    made.truth.fresh = fresh_sum() / (sum(WEIGHTS) + 6.0)
    made.truth.even = even_sum(SETTLED, 4) / (sum(WEIGHTS) + 6.0)


def paused(made: Made) -> None:
    """Two more are paused: they count for nothing, on either side."""
    made.know(made.add(4, WEIGHTS))
    made.add(2, [50.0, 50.0], paused=True)
    made.price(NOW - 60.0)
    made.truth.paused = 2
    made.truth.fresh = fresh_sum() / sum(WEIGHTS)
    made.truth.even = even_sum(SETTLED, 4) / sum(WEIGHTS)


def changed(made: Made) -> None:
    """The budget is said anew while an engine runs, see `faces`."""
    steady(made)
    made.truth.budget, made.truth.by = 2.0 * SETTLED, "command"
    made.truth.even = even_sum(2.0 * SETTLED, 4) / sum(WEIGHTS)


STATES: list[Callable[[Made], None]] = [empty, first_round, steady, failing, paused, changed]


@pytest.fixture(scope="module")
def server() -> Iterator[Callable[[], Postgres]]:
    """A server, which is started when somebody asks."""
    with ExitStack() as stack:
        yield lru_cache(lambda: stack.enter_context(postgres()))


@dataclass
class Told(Faces):
    """A store in a state that is known."""

    truth: Truth


@pytest.fixture(params=["sqlite", "postgres"])
def opened(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    server: Callable[[], Postgres],
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[[Callable[[Made], None]], AbstractContextManager[Told]]:
    monkeypatch.setattr(time, "time", lambda: NOW)
    monkeypatch.setenv("COLUMNS", "170")
    store = "a.db"
    if request.param == "postgres":
        name = f"faces{next(NAMES)}"
        server().run(f"CREATE DATABASE {name}")
        store = server().address(name) + "&password=s3cret"
        # Else all faces go by the server's clock.
        monkeypatch.setattr(cli_service, "clock_of", lambda settings, store: lambda: NOW)
    config = tmp_path / "unstale.toml"
    config.write_text(f'store = "{store}"\nbudget = "{SETTLED:g}/day"\nfirst_round = "60/min"\n')

    def open_in(state: Callable[[Made], None]) -> AbstractContextManager[Told]:
        settings = load(config)
        made = Made(write_store(settings, create=True))
        state(made)
        made.store.close()
        faces = Told(config, settings, made.truth)
        if made.truth.by != "command":
            return nullcontext(faces)
        stack = ExitStack()
        if request.param == "sqlite":
            stack.enter_context(alone(settings))
        else:
            crew = PostgresCrew(settings.store)
            crew.beat("worker", 0.1, 0.0, 1.0, {}, None)
            stack.callback(crew.close)
        faces.command(budget_command, f"{made.truth.budget:g}/day")
        return _Held(stack, faces)

    return open_in


class _Held(AbstractContextManager[Told]):
    def __init__(self, stack: ExitStack, faces: Told) -> None:
        self._stack, self._faces = stack, faces

    def __enter__(self) -> Told:
        return self._faces

    def __exit__(self, *_: object) -> None:
        self._stack.close()


@pytest.mark.parametrize("state", STATES, ids=lambda state: state.__name__)
def test_every_face_tells_the_same_and_it_is_true(
    state: Callable[[Made], None], opened: Callable[[Callable[[Made], None]], AbstractContextManager[Told]]
) -> None:
    with opened(state) as faces:
        truth, told = faces.truth, faces.asked()
        plain = json.loads(faces.command(status_command, "--json"))
        text, top = faces.command(status_command), faces.command(top_command)
    api, metrics = told["status"], samples(told["metrics"])

    # The API's object is the command's, but for where the store is.
    assert {name: value for name, value in plain.items() if name != "store"} == api

    # It is true.
    assert api["sources"] == {
        "total": truth.total,
        "paused": truth.paused,
        "failing": truth.failing,
        "never_answered": truth.failing + truth.never_polled,
        "never_polled": truth.never_polled,
    }
    assert api["freshness"] == (None if truth.fresh is None else pytest.approx(truth.fresh, rel=1e-9))
    assert api["freshness_even"] == (None if truth.even is None else pytest.approx(truth.even, rel=1e-7))
    totals = api["totals"]
    assert (totals["polls"], totals["changed"], totals["failed"]) == (truth.polls, truth.changed, truth.failed)
    assert (totals["first"], totals["requests"]) == (truth.first, truth.polls)
    assert api["spent_day"] == totals["spent"] == pytest.approx(truth.spent)
    assert api["budget_per_day"] == pytest.approx(truth.budget)
    assert api["budget"]["by"] == truth.by
    assert api["engine"]["running"] is (truth.by == "command")
    done = truth.total - truth.paused - truth.never_polled
    begun = api["first_round"]
    assert (begun is None) == (truth.never_polled == 0)
    if begun is not None:
        assert (begun["done"], begun["of"]) == (done, truth.total - truth.paused)
        assert begun["left"] > 0.0

    # The other faces say the same.
    assert told["budget"] == api["budget"]
    assert told["plan"]["budget_per_day"] == api["budget_per_day"]
    assert told["plan"]["sources"] == truth.total - truth.paused
    check_metrics(metrics, api)
    check_dashboard(told, api)
    for said in (text, top):
        check_text(said, api)
