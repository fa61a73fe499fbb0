"""Names of the cells of a sketch: the bits that the numbers of a cell share, a one, and zeros for the rest."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unstale.core.checks import Floats

Ints = NDArray[np.int64]


def cell_of(bits: Ints, rest: Ints | int) -> NDArray[np.uint64]:
    """The cells of numbers with these bits, all but the last `rest` of them shared."""
    return np.asarray(((bits >> rest) * 2 + 1) << rest).view(np.uint64)


def open_bits(cells: NDArray[np.uint64]) -> Ints:
    """How many bits each cell leaves open: the zeros at the end of its name."""
    return np.log2((cells & (~cells + np.uint64(1))).astype(np.float64)).astype(np.int64)


def edges_of(cells: NDArray[np.uint64]) -> tuple[Floats, Floats]:
    """The smallest u of each cell, and the first beyond it."""
    rest = open_bits(cells).astype(np.uint64)
    first = cells >> (rest + np.uint64(1))
    return (first << rest).view(np.float64), ((first + np.uint64(1)) << rest).view(np.float64)
