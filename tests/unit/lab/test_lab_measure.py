"""Freshness from logs is the share of time, whatever way it is counted, and standard errors are what they say."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from unstale.core.checks import Floats
from unstale.core.processes import Poisson
from unstale.core.replication.redundancy import freshest_freshness
from unstale.errors import InputError
from unstale.lab.measure import BATCHES, ServedVersions, estimate, fresh_time
from unstale.lab.setups import Setup, predicted


def world(
    rng: np.random.Generator, sources: int, replicas: int, end: float
) -> tuple[list[Floats], list[list[ServedVersions]]]:
    """Changes at rate 1, and replicas that poll at rate 2 and serve what they found at once."""
    changes = [np.cumsum(rng.exponential(1.0, int(3 * end) + 50)) for _ in range(sources)]
    served = []
    for _ in range(replicas):
        one = []
        for times in changes:
            polls = np.cumsum(rng.exponential(0.5, int(4 * end) + 50))
            one.append(ServedVersions(polls, np.searchsorted(times, polls, side="right").astype(np.float64)))
        served.append(one)
    return changes, served


def test_shares_of_time_against_many_looks() -> None:
    changes, served = world(np.random.default_rng(1), 3, 3, 20.0)
    shares = fresh_time(changes, served, 5.0, 15.0, asked=2)
    looks = np.linspace(5.0, 15.0, 400_001)[:-1] + 10.0 / 800_000
    for s in range(3):
        true = np.searchsorted(changes[s], looks, side="right")
        fresh = np.array([one[s].version[np.searchsorted(one[s].t, looks, side="right") - 1] == true for one in served])
        assert shares[:-1, s].mean(axis=1) == pytest.approx(fresh.mean(axis=1), abs=2e-4)
        pairs = np.mean([(fresh[a] | fresh[b]).mean() for a, b in combinations(range(3), 2)])
        assert shares[-1, s].mean() == pytest.approx(pairs, abs=2e-4)
        each = fresh[0].reshape(BATCHES, -1).mean(axis=1)
        assert shares[0, s] == pytest.approx(each, abs=1e-3)


def test_simulated_replicas_agree_with_theory_and_their_errors_are_honest() -> None:
    model, rng = freshest_freshness(1.0, Poisson(2.0), 2), np.random.default_rng(2)
    offs = []
    for _ in range(40):
        changes, served = world(rng, 20, 2, 40.0)
        offs.append(estimate(fresh_time(changes, served, 10.0, 40.0, asked=2)[-1]).off(model))
    # Standard scores of 40 runs; the larger of two errors makes them a little small.
    assert np.abs(np.mean(offs)) < 5 / np.sqrt(40)
    assert 0.5 < np.std(offs) < 1.4


def test_no_copy_is_not_fresh() -> None:
    nothing = ServedVersions(np.empty(0), np.empty(0))
    assert fresh_time([np.array([3.0])], [[nothing]], 0.0, 10.0).max() == 0.0
    late = ServedVersions(np.array([5.0]), np.array([1.0]))
    assert fresh_time([np.array([3.0])], [[late]], 0.0, 10.0)[0].mean() == pytest.approx(0.5)


def test_equal_batches_have_no_error() -> None:
    same = estimate(np.full((3, BATCHES), 0.25))
    assert (same.value, same.error, same.off(0.25), same.off(0.3)) == (0.25, 0.0, 0.0, np.inf)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"topology": "star"}, "topology 'star' is unknown"),
        ({"replicas": 17}, "must be at most 16"),
        ({"replicas": 0}, "must be a finite number at least 1: count from 1"),
        ({"topology": "peers", "replicas": 1}, "nobody has himself as a peer"),
        ({"topology": "peers", "asked": 3}, "k 3 must be at most 2"),
        ({"topology": "redundant", "asked": 4}, "k 4 must be at most 3"),
        ({"sources": 1}, "sources 1"),
        ({"change_rate": 0.0}, "change_rate 0"),
    ],
)
def test_what_cannot_be_is_refused(given: dict[str, object], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        Setup(**({"topology": "cascade", "replicas": 3} | given))  # type: ignore[arg-type]


def test_setups_and_their_theory() -> None:
    chain = Setup("cascade", 3, change_rate=0.5, sync_rate=1.0)
    assert chain.upstream == (None, 0, 1)
    assert list(predicted(chain).values()) == pytest.approx([2 / 3, 4 / 9, 8 / 27], rel=1e-12)
    assert Setup("peers", 3).upstream == (None, None, None)
    # Two peers, all rates 1: 1/2·(2/3 + 2/3·2/3), the chain of one birth and another.
    two = Setup("peers", 2, change_rate=1.0, sync_rate=1.0, peer_rate=1.0)
    assert list(predicted(two).values()) == pytest.approx([0.5 * (2 / 3 + 2 / 3 * 2 / 3)], rel=1e-12)
    assert Setup("single", 1, sources=50, changes=1000, change_rate=0.5).measuring == 40.0
