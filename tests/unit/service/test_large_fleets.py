"""What is asked of one source of a large fleet is answered from a part of it, and is what the whole says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from unstale.adapters.sqlite_store import SqliteStore
from unstale.cli.service import service_of
from unstale.cli.settings import Settings
from unstale.core.checks import Floats
from unstale.core.learning.learner import Learner
from unstale.core.learning.state import kept
from unstale.keeper.outcomes import Answer
from unstale.keeper.scheduler import Integers
from unstale.ports import Entry, FleetColumns, Listing, Price
from unstale.service import FleetService, fleet_service, preview
from unstale.service.moment import Moment

COUNT, DAY, NOW = 600, 86_400.0, 1_700_000_000.0


@pytest.fixture
def service(tmp_path: Path) -> Iterator[FleetService]:
    """A fleet that was polled, and what an engine said beside its price."""
    rng, learner = np.random.default_rng(5), Learner(COUNT, DAY)
    for day in range(5):
        times = NOW - DAY * (5 - day) + rng.uniform(0.0, 1000.0, COUNT)
        learner.observe(np.arange(COUNT), times, rng.random(COUNT) < rng.choice([0.1, 0.5, 0.9], COUNT))
    store = SqliteStore(tmp_path / "store.db")
    store.add([Listing(f"https://h{n % 9}.example/{n}", weight=1.0 + n % 3) for n in range(COUNT)], NOW - 9 * DAY)
    claims = store.claim(NOW, COUNT, lease=60.0, owner="a")
    rows = learner.columns.rows
    store.record(
        [Entry(c, Answer.UNCHANGED, NOW - 60.0, NOW + DAY, rows[c.source - 1].tobytes()) for c in claims],
        settings={"learner": kept(learner), "engine": json.dumps({"at": NOW, "surcharges": {}}).encode()},
        price=Price(NOW, 5000.0, COUNT / DAY),
    )
    store.close()
    made = service_of(Settings(store=str(tmp_path / "store.db")))
    made.clock = lambda: NOW
    yield made
    made.close()


def test_a_part_explains_a_source_as_the_whole_does(service: FleetService, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = [service.explain(source) for source in range(1, COUNT, 61)]
    monkeypatch.setattr(fleet_service, "SAMPLE", 100)
    monkeypatch.setattr(fleet_service, "FEW", 10)
    part = [service.explain(source) for source in range(1, COUNT, 61)]
    assert [one.sentence for one in part] == [one.sentence for one in whole]
    assert [one.bound for one in part] == [one.bound for one in whole]
    np.testing.assert_allclose([one.interval for one in part], [one.interval for one in whole], rtol=1e-9)
    np.testing.assert_allclose([one.twice_weight for one in part], [one.twice_weight for one in whole], rtol=1e-9)
    # What another budget would do is known from the part alone: a hundred of six hundred.
    np.testing.assert_allclose([one.twice_budget for one in part], [one.twice_budget for one in whole], rtol=0.05)


def test_neither_an_edit_nor_a_look_at_a_source_reads_the_fleet(
    service: FleetService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fleet_service, "SAMPLE", 100)

    def refuse(width: int) -> FleetColumns:
        raise AssertionError("the whole fleet is read")

    monkeypatch.setattr(service.store, "fleet", refuse)
    service.edit([7], {"weight": 9.0})
    (seen,) = service.views([7])
    assert seen.listing.weight == 9.0
    assert service.explain(7).source.listing.weight == 9.0
    assert service.preview(COUNT / DAY).sources == COUNT


def test_a_price_that_a_few_misjudge_is_found_all_the_same(
    service: FleetService, monkeypatch: pytest.MonkeyPatch
) -> None:
    exact = service.preview(COUNT / DAY)
    # One source tells about where it is, which is nowhere near.
    monkeypatch.setattr(preview, "_FEW", 1)
    monkeypatch.setattr(preview, "_NEAR", 1.0001)
    other = service.preview(COUNT / DAY)
    assert other.price == pytest.approx(exact.price, rel=2e-3)
    assert other.fresh == pytest.approx(exact.fresh, abs=1e-3)


def test_how_often_all_are_polled_is_found_only_for_who_sorts_by_it(
    service: FleetService, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    intervals = Moment.intervals

    def counted(self: Moment, rows: Integers) -> Floats:
        asked.append(len(rows))
        return intervals(self, rows)

    monkeypatch.setattr(Moment, "intervals", counted)
    columns = service.columns()
    columns.views(columns.find(sort="fresh", limit=5)[0])
    assert asked == [5]
    ids, _ = columns.find(sort="interval", limit=COUNT)
    waits = [one.interval for one in columns.views(ids)]
    assert waits == sorted(waits)
    columns.find(sort="interval", down=True)
    assert asked == [5, COUNT, COUNT]


def test_asking_how_long_sources_wait_leaves_their_weights(service: FleetService, tmp_path: Path) -> None:
    told = json.dumps({"at": NOW, "surcharges": {"": 4.0}}).encode()
    with closing(SqliteStore(tmp_path / "store.db")) as store:
        store.record([], settings={"engine": told})
    moment, rows = service.moment(), np.arange(COUNT)
    weight = moment.scheduler.weight.copy()
    once = moment.waits(rows)
    assert moment.surcharge(rows).tolist() == [4.0] * COUNT
    assert moment.waits(rows).tolist() == once.tolist()
    assert moment.scheduler.weight.tolist() == weight.tolist()
