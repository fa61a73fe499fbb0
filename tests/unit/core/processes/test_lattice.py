"""Lattice detection: rounding is forgiven, coincidence is not."""

from __future__ import annotations

import math

import numpy as np
import pytest

from unstale.core.processes import Constant, Empirical, Mixture, Poisson, Superposition
from unstale.core.processes.lattice import common_span


@pytest.mark.parametrize(
    ("values", "span"),
    [
        ([3.7], 3.7),
        ([6.0, 10.0, 15.0], 1.0),
        ([0.3, 0.5, 1.1], 0.1),
        ([1 / 3, 2 / 3, 1.0], 1 / 3),
        ([3600.0, 86400.0, 604800.0], 3600.0),
        ([1.0, 999_999.0], 1.0),
        ([7e-9, 21e-9], 7e-9),
        ([5e200, 7.5e200], 2.5e200),
    ],
)
def test_multiples_are_found(values, span):
    assert common_span(np.array(values)) == pytest.approx(span, rel=1e-12)


@pytest.mark.parametrize("values", [[1.0, math.sqrt(2)], [1.0, math.pi, 2.0], [1.0, 5e6], [1.0, 1.0 + 1e-9]])
def test_incommensurable_values_have_no_span(values):
    assert common_span(np.array(values)) is None


def test_random_gaps_are_no_lattice():
    rng = np.random.default_rng(11)
    assert not any(common_span(rng.exponential(1.0, 3)) for _ in range(2000))
    assert sum(common_span(rng.exponential(1.0, 2)) is not None for _ in range(2000)) <= 10
    assert common_span(rng.exponential(1.0, 100_000)) is None


def test_observed_whole_seconds_are_a_lattice_of_a_second():
    gaps = np.random.default_rng(12).integers(1, 500_000, 10_000).astype(float)
    assert Empirical(gaps).span == 1.0


def test_spans_of_combined_processes():
    assert Mixture([Constant(1.0), Constant(1.5)], [1, 1]).span == pytest.approx(0.5, rel=1e-14)
    assert Mixture([Constant(1.0), Constant(math.e)], [1, 1]).span is None
    assert Mixture([Constant(1.0), Poisson(1.0)], [1, 1]).span is None
    assert Superposition([Constant(1.0), Constant(1.0)]).span is None
    assert Superposition([Constant(1.0)]).span == 1.0
