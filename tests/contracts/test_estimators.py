"""What every estimator of a change rate promises; members are discovered, so a new one outside the table fails."""

import itertools
import math
from collections.abc import Iterator

import numpy as np
import pytest

from unstale.study.estimators import ESTIMATORS, BiasRow, Estimator, Observations, bias_table
from unstale.study.estimators.table import simulated


def members(cls: type[Estimator] = Estimator) -> Iterator[type[Estimator]]:
    for sub in cls.__subclasses__():
        yield sub
        yield from members(sub)


ALL = [pytest.param(e, id=e.name) for e in ESTIMATORS]
BITS = [pytest.param(e, id=e.name) for e in ESTIMATORS if e.sees == "bits"]


def history(runs: int = 40, polls: int = 12, seed: int = 5) -> Observations:
    return simulated(0.8, 1.5, polls, runs, np.random.default_rng(seed), "poisson")


def test_every_member_is_in_the_table() -> None:
    assert set(members()) == {type(e) for e in ESTIMATORS}
    assert len({e.name for e in ESTIMATORS}) == len(ESTIMATORS)


@pytest.mark.parametrize("estimator", ALL)
def test_it_says_what_it_assumes_and_where_it_is_from(estimator: Estimator) -> None:
    assert estimator.sees in ("bits", "last-modified")
    assert estimator.timing in ("any", "even", "poisson")
    assert any(year in estimator.citation for year in ("1993", "2003", "2021"))


@pytest.mark.parametrize("estimator", ALL)
def test_sources_do_not_know_each_other(estimator: Estimator) -> None:
    seen = history()
    together = estimator.estimate(seen)
    counts = np.arange(len(seen)) % 12 + 1
    rows = np.concatenate([np.arange(a, a + c) for a, c in zip(seen.starts[:-1], counts, strict=True)])
    assert seen.since is not None
    ragged = Observations.of(
        seen.intervals[rows], seen.changed[rows], since=seen.since[rows], counts=counts, sync_rate=seen.sync_rate
    )
    apart = estimator.estimate(ragged)
    for i in (0, 11, 23, 30):
        for column, n in ((together, 12), (apart, counts[i])):
            here = slice(seen.starts[i], seen.starts[i] + n)
            one = Observations.of(seen.intervals[here], seen.changed[here], since=seen.since[here], sync_rate=1 / 1.5)
            assert column[i] == pytest.approx(estimator.estimate(one)[0], rel=1e-12)


@pytest.mark.parametrize("estimator", ALL)
def test_the_unit_of_time_does_not_matter(estimator: Estimator) -> None:
    seen = history()
    assert seen.since is not None
    for unit in (1e-9, 86400.0):
        other = Observations.of(
            (seen.intervals * unit).reshape(40, 12),
            seen.changed.reshape(40, 12),
            since=(seen.since * unit).reshape(40, 12),
            sync_rate=seen.sync_rate / unit,
        )
        assert np.allclose(estimator.estimate(other) * unit, estimator.estimate(seen), rtol=1e-12)
        assert estimator.mean(0.8 / unit, 1.5 * unit, 12) * unit == pytest.approx(estimator.mean(0.8, 1.5, 12))


@pytest.mark.parametrize("estimator", ALL)
def test_nothing_seen_is_a_rate_of_zero(estimator: Estimator) -> None:
    assert estimator.estimate(Observations.of([1.0, 3.0], [0, 0], since=np.nan)).tolist() == [0.0]
    assert estimator.mean(0.0, 1.0, 7) == estimator.bias(0.0, 1.0, 7) == estimator.chance_of_inf(0.0, 1.0, 7) == 0.0


@pytest.mark.parametrize("estimator", BITS)
@pytest.mark.parametrize(("change_rate", "interval"), [(0.05, 1.0), (0.7, 2.0), (3.0, 0.9)])
def test_the_mean_is_that_of_all_histories(estimator: Estimator, change_rate: float, interval: float) -> None:
    # all 2^7 histories of 7 polls, each with its probability
    x = change_rate * interval
    changed = x / (1 + x) if estimator.timing == "poisson" else 1 - math.exp(-x)
    bits = np.array(list(itertools.product([0, 1], repeat=7)))
    chance = np.prod(np.where(bits == 1, changed, 1 - changed), axis=1)
    estimates = estimator.estimate(Observations.of(interval, bits))
    finite = np.isfinite(estimates)
    want = np.dot(chance[finite], estimates[finite]) / chance[finite].sum()
    assert estimator.mean(change_rate, interval, 7) == pytest.approx(want, rel=1e-11)
    assert estimator.bias(change_rate, interval, 7) == pytest.approx(want - change_rate, abs=1e-11)
    assert estimator.chance_of_inf(change_rate, interval, 7) == pytest.approx(chance[~finite].sum(), abs=1e-15)


@pytest.mark.parametrize("estimator", [p for p in ALL if p.id != "naive"])
def test_many_polls_leave_no_bias(estimator: Estimator) -> None:
    assert abs(estimator.bias(0.5, 1.0, 20_000)) < 2e-4 * 0.5


@pytest.mark.parametrize("estimator", ALL)
def test_extremes_are_numbers(estimator: Estimator) -> None:
    for x, n in itertools.product((1e-300, 1e-9, 40.0, 1e5, 1e300), (1, 2, 400)):
        assert estimator.mean(x, 1.0, n) >= 0
        assert 0 <= estimator.chance_of_inf(x, 1.0, n) <= 1
    seen = Observations.of([1e-300, 1e300, 1.0, 1e-320], [1, 0, 1, 1], since=[0.0, np.nan, 0.5, 0.0])
    assert np.all(np.isfinite(estimator.estimate(seen)))


@pytest.mark.parametrize("estimator", ALL)
def test_impossible_arguments_are_one_sentence(estimator: Estimator) -> None:
    for arguments in ((-1.0, 1.0, 1), (1.0, 0.0, 1), (1.0, 1.0, 0), (1.0, 1.0, 2.5), (np.nan, 1.0, 1)):
        for ask in (estimator.mean, estimator.bias, estimator.chance_of_inf):
            with pytest.raises(ValueError, match=r"must be .*: give"):
                ask(*arguments)


def test_the_table_has_a_row_for_each_and_is_repeatable() -> None:
    rows = bias_table(1.0, 0.5, 6, np.random.default_rng(2), runs=50)
    assert [row.estimator for row in rows] == [e.name for e in ESTIMATORS]
    assert rows == bias_table(1.0, 0.5, 6, np.random.default_rng(2), runs=50)
    assert all(isinstance(row, BiasRow) and row.rmse >= abs(row.mean - 1.0) for row in rows)
