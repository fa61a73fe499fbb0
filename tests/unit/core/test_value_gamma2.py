"""P(2, x) and its inverse against 40 digits and more, from 1e-300 to the last double below 1."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import gammaincinv

from unstale.core.gamma2 import BLOCK, by_blocks, p2, p2_inverse


def exact(x: float) -> mp.mpf:
    x = mp.mpf(x)
    with mp.workdps(40 + int(max(0, -2 * mp.log10(x)))):
        return 1 - (1 + x) * mp.exp(-x)


def relative_error_of_inverse(s: float, x: float) -> float:
    """One Newton step from x towards the root, in units of x: the error, when it is small."""
    with mp.workdps(40 + int(max(0, -2 * mp.log10(mp.mpf(x))))):
        return float((exact(x) - mp.mpf(s)) / (mp.mpf(x) ** 2 * mp.exp(-mp.mpf(x))))


GRID = np.concatenate([np.geomspace(1e-150, 1e150, 61), np.geomspace(0.01, 100, 60), [0.999999, 1.0, 1.000001]])
SHARES = np.concatenate(
    [np.geomspace(1e-300, 1e-3, 60), np.linspace(0.002, 0.998, 80), 1 - np.geomspace(2.0**-53, 1e-3, 40)]
)


def test_p2_to_the_last_digits() -> None:
    error = [abs(float(mp.mpf(g) / exact(x) - 1)) for g, x in zip(p2(GRID), GRID, strict=True)]
    assert max(error) < 1e-15


def test_inverse_to_the_last_digits() -> None:
    error = [abs(relative_error_of_inverse(s, x)) for s, x in zip(SHARES, p2_inverse(SHARES), strict=True)]
    assert max(error) < 4e-15


@given(st.floats(1e-300, 1 - 2.0**-53))
def test_inverse_at_any_share(s: float) -> None:
    assert abs(relative_error_of_inverse(s, float(p2_inverse(s)))) < 4e-15


def test_agrees_with_scipy() -> None:
    s = np.linspace(1e-6, 1 - 1e-12, 1001)
    np.testing.assert_allclose(p2_inverse(s), gammaincinv(2, s), rtol=1e-13)


def test_ends() -> None:
    assert p2([0.0, np.inf]).tolist() == [0.0, 1.0]
    assert p2_inverse([0.0, 1.0, 1.5, np.inf]).tolist() == [0.0, np.inf, np.inf, np.inf]
    # the last double below 1: (1+x)·e^(−x) = 2^(−53)
    assert float(p2_inverse(1 - 2.0**-53)) == pytest.approx(40.46, abs=0.01)


def test_shape_is_kept() -> None:
    assert p2(0.5).shape == ()
    assert p2_inverse(np.full((2, 3), 0.5)).shape == (2, 3)


def test_blocks_do_not_show() -> None:
    s = np.random.default_rng(1).random((3, BLOCK))
    np.testing.assert_array_equal(p2_inverse(s)[1], p2_inverse(s[1]))
    assert by_blocks(np.add, s, np.array([[1.0], [2.0], [3.0]]))[2, 5] == s[2, 5] + 3.0
