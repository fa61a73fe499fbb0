"""The mergeable summary of a fleet: a few thousand numbers that give its price, whatever its size.

At a price a source spends mass·shape(price·u), with mass = cost·change_rate and u = cost·change_rate/weight,
the inverse of the price that abandons it. So all that matters of a fleet is how its mass lies along u.

Rules of this file:
1. Bins are cut from the bits of u: 128 per octave, the same everywhere, so that sketches add up.
2. A bin keeps four moments of its mass. Two weighted points have the same four (Gauss's rule), so smooth
   shapes are integrated to about 1e-9, and a bin with one or two kinds of sources is exact.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unstale.core.checks import Floats, number
from unstale.core.gamma2 import BLOCK, p2_inverse
from unstale.core.kernels.numpy_pass import BIN_BITS, HIGHEST, LOWEST
from unstale.core.kernels.passes import COMPILED_FROM, Columns, in_threads, numba_pass, response
from unstale.core.kernels.search import search
from unstale.errors import InputError, require, sentence

#: how many bins there are in all, 2048 octaves' worth
BINS = 2048 << BIN_BITS
#: sources per table: bounds rounding, and how much one thread takes at a time
CHUNK = 1 << 22

_HEADER = struct.Struct("<4sBBxxII")
_MAGIC, _VERSION = b"USKT", 1

# a step in price wide enough to see past rounding, narrow enough for a derivative
_STEP = 1e-6
# a share of 0 would mean endless polls
_SMALLEST = float(np.finfo(float).smallest_normal)
# evenly spaced places in a bin
_EVEN = (np.arange(128) + 0.5) / 128 - 0.5

Shape = Callable[[Floats], Floats]


def polls_per_change(share: Floats) -> Floats:
    """sync_rate/change_rate under Poisson freshness, as a function of price·cost·change_rate/weight.

    1/x with P(2, x) = share, and 0 from share = 1 on, where the source is abandoned.

    >>> polls_per_change(np.array([0.5, 1.0])).round(6)
    array([0.595824, 0.      ])
    """
    fused = response(np.ones(share.size), share.reshape(-1))
    return 1.0 / p2_inverse(share) if fused is None else fused[0].reshape(share.shape)


@dataclass(frozen=True, slots=True, eq=False)
class Sketch:
    """How a fleet's mass cost·change_rate lies along u = cost·change_rate/weight, in sparse bins.

    `bins` ascend; row i of `moments` holds Σ mass·vᵏ for k = 0..3, v in [−½, ½) being the place in the bin.

    How far off its price is, counted in budget spent: bins away from abandonment are right to 1e-8, so what
    can be wrong is the spending of the two or three bins that abandonment crosses, and only if these hold
    three kinds of sources or more, unevenly. Big fleets fill them evenly: the error is about 1e-6 for 1e7
    sources and 1e-4 for 1e5. There is no bound for a fleet squeezed into 1% of cost·change_rate/weight with a
    budget that abandons part of it; `kernels.solve` takes any sketch's price as its start and is exact.
    """

    bins: NDArray[np.int32]
    moments: Floats

    @staticmethod
    def of(change_rate: ArrayLike, weight: ArrayLike, cost: ArrayLike | None = None) -> Sketch:
        """The sketch of a fleet, in one pass; a source with a change rate or weight of 0 leaves no trace."""
        return Sketch.of_columns(Columns.of(change_rate, weight, cost))

    @staticmethod
    def of_columns(columns: Columns) -> Sketch:
        """The sketch of a fleet given as checked columns."""
        size = columns.change_rate.size
        compiled = numba_pass() if size >= COMPILED_FROM else None

        def part(i: int) -> Sketch:
            table = np.zeros((BINS, 4))  # untouched memory costs nothing
            rows = slice(i * CHUNK, (i + 1) * CHUNK)
            if compiled is not None:
                first, last, strange = compiled.sketch_table(*(c[rows] for c in columns), table)
                if strange:
                    table[:] = 0.0
            if compiled is None or strange:
                first, last = _fill(columns, rows.start, min(rows.stop, size), table)
            used = first + np.flatnonzero(table[first : last + 1, 0])
            return Sketch(used.astype(np.int32), table[used])

        count = -(-size // CHUNK)
        return sum(in_threads(part, count, size), Sketch(np.empty(0, np.int32), np.empty((0, 4))))

    def __add__(self, other: Sketch) -> Sketch:
        """The sketch of both fleets together."""
        bins = np.union1d(self.bins, other.bins)
        moments = np.zeros((bins.size, 4))
        for part in (self, other):
            moments[np.searchsorted(bins, part.bins)] += part.moments
        return Sketch(bins, moments)

    def spent(self, price: float, shape: Shape = polls_per_change) -> float:
        """About what the fleet spends at a price, Σ mass·shape(price·u)."""
        price = number("price", price, above=0, infinite=True)
        return _Points(self).total(price, shape)

    def price(self, budget: float, shape: Shape = polls_per_change) -> float:
        """About the price at which the fleet spends the budget; 0 if it spends nothing at any price."""
        budget = number("budget", budget, above=0, remedy="give what may be spent per unit of time")
        if self.bins.size == 0:
            return 0.0
        points = _Points(self)

        def total(price: float) -> tuple[float, float]:
            here, there = points.total(price, shape), points.total(price * (1 + _STEP), shape)
            return here, (there - here) / _STEP

        # the square-root law, and a price at which something is still polled
        with np.errstate(over="ignore"):
            start = min(np.sum(points.mass / np.sqrt(points.u) / budget) ** 2, 1.0 / points.u.min()) / 2
        return search(total, budget, max(float(start), _SMALLEST), rtol=1e-7, elasticity=0.1).price

    def to_bytes(self) -> bytes:
        """The sketch for another machine: 36 bytes a bin, little endian, with a checksum."""
        body = self.bins.astype("<i4").tobytes() + self.moments.astype("<f8").tobytes()
        return _HEADER.pack(_MAGIC, _VERSION, BIN_BITS, self.bins.size, zlib.crc32(body)) + body

    @staticmethod
    def from_bytes(data: bytes) -> Sketch:
        """The sketch that `to_bytes` wrote, anywhere."""
        remedy = "give what Sketch.to_bytes returned"
        try:
            magic, version, bits, size, checksum = _HEADER.unpack_from(data)
        except struct.error:
            raise InputError(sentence("data", f"of {len(data)} bytes", "must be a sketch", remedy)) from None
        require(magic == _MAGIC, "data", f"starting with {magic!r}", "must be a sketch", remedy)
        require((version, bits) == (_VERSION, BIN_BITS), "data", f"of version {version}.{bits}",
                f"must be of version {_VERSION}.{BIN_BITS}", "sketch the fleet again")  # fmt: skip
        body = data[_HEADER.size :]
        require(len(body) == 36 * size and zlib.crc32(body) == checksum, "data", f"of {len(data)} bytes",
                "must be a whole and unaltered sketch", remedy)  # fmt: skip
        bins = np.frombuffer(body, "<i4", size).astype(np.int32)
        return Sketch(bins, np.frombuffer(body, "<f8", offset=4 * size).astype(np.float64).reshape(size, 4))


class _Points:
    """A sketch as weighted points: two per bin with its moments, many where sources are being abandoned."""

    def __init__(self, sketch: Sketch) -> None:
        m0, m1, m2, m3 = sketch.moments.T
        mean = m1 / m0
        variance = np.maximum(m2 / m0 - mean * mean, 0.0)
        third = m3 / m0 - 3.0 * mean * (m2 / m0) + 2.0 * mean**3
        # below this the two points are one, but for rounding
        apart = variance > 1e-14
        deviation = np.sqrt(np.where(apart, variance, 1.0))
        skew = np.where(apart, third / deviation**3, 0.0)
        # one point lies this many deviations off the mean, the other its inverse on the other side
        far = np.where(skew > 0, 1.0, -1.0) * (np.abs(skew) / 2 + np.sqrt(1 + skew * skew / 4))
        deviation = np.where(apart, deviation, 0.0)
        low, high = _edge(sketch.bins), _edge(sketch.bins + 1)
        places = np.clip([mean + deviation * far, mean - deviation / far], -0.5, 0.5)
        self.u = low + (places + 0.5) * (high - low)
        share = 1.0 / (1.0 + far * far)
        self.mass = m0 * np.array([share, 1.0 - share])
        self.low, self.high, self.bin_mass, self.mean = low, high, m0, mean
        # a bin filled evenly, or with a slight slope, as big fleets fill it
        self.smooth = (np.abs(12 * variance - 1) < 0.2) & (np.abs(mean) < 0.1)

    def total(self, price: float, shape: Shape) -> float:
        """Σ mass·shape(price·u)."""
        with np.errstate(over="ignore", divide="ignore"):
            spending = (self.mass * shape(np.maximum(price * self.u, _SMALLEST))).sum(axis=0)
            # where sources are abandoned the shape bends too sharply for two points
            fine = self.smooth & (self.low * price < 1.0) & (self.high * price > 1.0 - 4 / (1 << BIN_BITS))
            low, width, mean = (x[fine, np.newaxis] for x in (self.low, self.high - self.low, self.mean))
            inside = (1.0 + 12.0 * mean * _EVEN) * shape(price * (low + (_EVEN + 0.5) * width))
            spending[fine] = self.bin_mass[fine] * inside.mean(axis=1)
            return float(spending.sum())


def _edge(bins: NDArray[np.int32]) -> Floats:
    return (bins.astype(np.int64) << (52 - BIN_BITS)).view(np.float64)


def _fill(columns: Columns, start: int, stop: int, table: Floats) -> tuple[int, int]:
    """Add sources start..stop to a table of bins by four moments; the bins touched, first and last."""
    first, last = BINS, -1
    for at in range(start, stop, BLOCK):
        r, w, c = columns.rows(at, min(at + BLOCK, stop))
        columns.refuse_invalid(r, w, c)
        alive = (r > 0.0) & (w > 0.0)
        with np.errstate(over="ignore"):
            mass = (c * r)[alive]
            u = np.clip(mass / w[alive], LOWEST, HIGHEST)
        if not mass.size:
            continue
        most = float(mass.max())
        require(most < np.inf, "cost·change_rate", most, "must be finite for a sketch", "use other units")
        bits = u.view(np.int64)
        bins = bits >> (52 - BIN_BITS)
        place = (((bits << BIN_BITS) & ((1 << 52) - 1)) | (1023 << 52)).view(np.float64) - 1.5
        low = int(bins.min())
        for k in range(4):
            column = np.bincount(bins - low, mass)
            table[low : low + column.size, k] += column
            mass = mass * place
        first, last = min(first, low), max(last, low + column.size - 1)
    return first, last
