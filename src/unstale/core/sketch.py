"""The mergeable summary of a fleet: some thousands of numbers that give its price, whatever its size.

At a price a source spends mass·shape(price·u), with mass = cost·change_rate and u = cost·change_rate/weight,
the inverse of the price that abandons it. So all that matters of a fleet is how its mass lies along u.

Rules of this file:
1. Cells are cut from the bits of u, the same everywhere, so that sketches add up. A cell is named by the bits that
   its numbers share, a 1 behind them and zeros to the end, all moved up by one place: a node of the binary tree
   over all doubles, and names ascend as their cells do.
2. A cell keeps four moments of its mass. Two weighted points have the same four (Gauss's rule), so smooth
   shapes are integrated to about 1e-9, and a cell with one or two kinds of sources is exact.
3. Cells of 128 per octave come first. One that holds too much of the mass at and below it, so that abandonment in
   its midst would be felt, is cut again, at worst down to single doubles.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unstale.core.checks import Floats, number
from unstale.core.gamma2 import BLOCK, p2_inverse
from unstale.core.kernels.numpy_pass import BIN_BITS, HIGHEST, LOWEST
from unstale.core.kernels.passes import PassColumns, compiled_for, in_threads, response
from unstale.core.roots.passes import search
from unstale.core.sketch_cells import Ints, cell_of, edges_of, open_bits
from unstale.errors import InputError, require, sentence
from unstale.frozen import dataclass

#: how many cells of the first level there are in all, 2048 octaves' worth
BINS = 2048 << BIN_BITS
#: sources per table: bounds rounding, and how much one thread takes at a time
CHUNK = 1 << 22
#: the most bits by which a cell is cut at a time
CUT = 12
#: shares of the mass up to its end above which a cell is cut again: if filled evenly, and if not
EVEN_SHARE, ROUGH_SHARE = 2.0**-7, 2.0**-11

_HEADER = struct.Struct("<4sBBxxII")
_MAGIC, _VERSION = b"USKT", 2
_CELL = 8 + 4 * 8
# the bits of u that cells of the first level leave open
_FIRST = 52 - BIN_BITS

# a step in price wide enough to see past rounding, narrow enough for a derivative
_STEP = 1e-6
# a share of 0 would mean endless polls
_SMALLEST = float(np.finfo(float).smallest_normal)
# evenly spaced places in a cell
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
    """How a fleet's mass cost·change_rate lies along u = cost·change_rate/weight, in sparse cells.

    `cells` ascend (rule 1 says how they are named); row i of `moments` holds Σ mass·vᵏ for k = 0..3, v in [−½, ½)
    being the place in the cell.

    How far off its price is, counted in budget spent: cells away from abandonment are right to 1e-8, and the one
    it crosses holds less than a two-thousandth of the mass that can be polled, or is evenly filled, or holds
    one or two kinds of sources. That makes 1e-5 for fleets spread over octaves and less than 1e-3 for fleets
    squeezed into one, and it survives `+`, whose cells are those of both sides.
    """

    cells: NDArray[np.uint64]
    moments: Floats

    @staticmethod
    def of(change_rate: ArrayLike, weight: ArrayLike, cost: ArrayLike | None = None) -> Sketch:
        """The sketch of a fleet; a source with a change rate or weight of 0 leaves no trace.

        >>> Sketch.of([1.0, 1.0], [1.0, 2.0]).moments[:, 0]
        array([1., 1.])
        """
        columns = PassColumns.of(change_rate, weight, cost)
        return _refined(Sketch.of_columns(columns), columns)

    @staticmethod
    def of_columns(columns: PassColumns) -> Sketch:
        """Cells of the first level only, in one pass: enough to start an exact search from."""
        size = columns.change_rate.size
        compiled = compiled_for(size)

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
            return Sketch(cell_of(used.astype(np.int64) << _FIRST, _FIRST), table[used])

        nothing = Sketch(np.empty(0, np.uint64), np.empty((0, 4)))
        return sum(in_threads(part, -(-size // CHUNK), size), nothing)

    def __add__(self, other: Sketch) -> Sketch:
        """The sketch of both fleets together."""
        cells = np.union1d(self.cells, other.cells)
        moments = np.zeros((cells.size, 4))
        for part in (self, other):
            moments[np.searchsorted(cells, part.cells)] += part.moments
        return Sketch(cells, moments)

    def spent(self, price: float, shape: Shape = polls_per_change) -> float:
        """About what the fleet spends at a price, Σ mass·shape(price·u)."""
        price = number("price", price, above=0, infinite=True)
        return SketchPoints(self).total(price, shape)

    def price(self, budget: float, shape: Shape = polls_per_change) -> float:
        """About the price at which the fleet spends the budget; 0 if it spends nothing at any price."""
        budget = number("budget", budget, above=0, remedy="give what may be spent per unit of time")
        if self.cells.size == 0:
            return 0.0
        points = SketchPoints(self)

        def total(price: float) -> tuple[float, float]:
            here, there = points.total(price, shape), points.total(price * (1 + _STEP), shape)
            return here, (there - here) / _STEP

        # the square-root law, and a price at which something is still polled
        with np.errstate(over="ignore"):
            start = min(np.sum(points.mass / np.sqrt(points.u) / budget) ** 2, 1.0 / points.u.min()) / 2
        return search(total, budget, max(float(start), _SMALLEST), rtol=1e-7, elasticity=0.1).price

    def to_bytes(self) -> bytes:
        """The sketch for another machine: 40 bytes a cell, little endian, with a checksum."""
        body = self.cells.astype("<u8").tobytes() + self.moments.astype("<f8").tobytes()
        return _HEADER.pack(_MAGIC, _VERSION, BIN_BITS, self.cells.size, zlib.crc32(body)) + body

    @staticmethod
    def from_bytes(data: bytes) -> Sketch:
        """The sketch that `to_bytes` wrote, anywhere."""
        remedy = "give what Sketch.to_bytes returned"
        try:
            magic, version, bits, size, checksum = _HEADER.unpack_from(data)
        except struct.error:
            raise InputError(sentence("data", f"of {len(data)} bytes", "must be a sketch", remedy)) from None
        require(magic == _MAGIC, "data", f"starting with {magic!r}", "must be a sketch", remedy)
        require(
            (version, bits) == (_VERSION, BIN_BITS),
            "data",
            f"of version {version}.{bits}",
            f"must be of version {_VERSION}.{BIN_BITS}",
            "sketch the fleet again",
        )
        body = data[_HEADER.size :]
        require(
            len(body) == _CELL * size and zlib.crc32(body) == checksum,
            "data",
            f"of {len(data)} bytes",
            "must be a whole and unaltered sketch",
            remedy,
        )
        cells = np.frombuffer(body, "<u8", size).astype(np.uint64)
        return Sketch(cells, np.frombuffer(body, "<f8", offset=8 * size).astype(np.float64).reshape(size, 4))


class SketchPoints:
    """A sketch as weighted points: two per cell with its moments, many where sources are being abandoned."""

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
        low, high = edges_of(sketch.cells)
        places = np.clip([mean + deviation * far, mean - deviation / far], -0.5, 0.5)
        self.u = low + (places + 0.5) * (high - low)
        share = 1.0 / (1.0 + far * far)
        self.mass = m0 * np.array([share, 1.0 - share])
        self.low, self.high, self.bin_mass, self.mean = low, high, m0, mean
        # a cell filled evenly, or with a slight slope, as big fleets fill it
        self.smooth = (np.abs(12 * variance - 1) < 0.2) & (np.abs(mean) < 0.1)

    def total(self, price: float, shape: Shape) -> float:
        """Σ mass·shape(price·u)."""
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            spending = (self.mass * shape(np.maximum(price * self.u, _SMALLEST))).sum(axis=0)
            # where sources are abandoned the shape bends too sharply for two points
            low, high = self.low * price, self.high * price
            fine = self.smooth & (low < 1.0) & (1.0 - high < 4.0 * (high - low))
            low, width, mean = (x[fine, np.newaxis] for x in (self.low, self.high - self.low, self.mean))
            inside = (1.0 + 12.0 * mean * _EVEN) * shape(price * (low + (_EVEN + 0.5) * width))
            spending[fine] = self.bin_mass[fine] * inside.mean(axis=1)
            return float(spending.sum())

    def coarseness(self) -> Floats:
        """By how much each cell holds too much of the mass up to its end for abandonment inside it to go unfelt."""
        order = np.argsort(self.high, kind="stable")
        share = np.empty(order.size)
        share[order] = self.bin_mass[order] / np.cumsum(self.bin_mass[order])
        return share / np.where(self.smooth, EVEN_SHARE, ROUGH_SHARE)


def _refined(sketch: Sketch, columns: PassColumns) -> Sketch:
    """The sketch with coarse cells cut again, until none is left or they are single doubles."""
    kept, cut, need = _split(sketch, SketchPoints(sketch).coarseness())
    if not cut.size:
        return sketch
    bits, mass = _sources_in(cut, columns)
    cell = cell_of(bits, _FIRST)
    while cut.size:
        rest = np.maximum(open_bits(cut) - need, 0)[np.searchsorted(cut, cell)]
        names, place = np.unique(cell_of(bits, rest), return_inverse=True)
        inside = (bits & ((1 << rest) - 1)) / np.exp2(rest) - 0.5
        fresh = Sketch(names, np.stack([np.bincount(place, mass * inside**k, names.size) for k in range(4)], axis=1))
        both = kept + fresh
        coarseness = SketchPoints(both).coarseness()[np.searchsorted(both.cells, names)]
        coarseness[open_bits(names) == 0] = 0.0
        good, cut, need = _split(fresh, coarseness)
        kept = kept + good
        again = (coarseness > 1.0)[place]
        bits, mass, cell = bits[again], mass[again], names[place[again]]
    return kept


def _split(sketch: Sketch, coarseness: Floats) -> tuple[Sketch, NDArray[np.uint64], Ints]:
    """The cells to keep, the cells to cut, and by how many bits: as even parts would need, and one more."""
    coarse = coarseness > 1.0
    need = np.clip(np.ceil(np.log2(coarseness[coarse])) + 1, 1, CUT).astype(np.int64)
    return Sketch(sketch.cells[~coarse], sketch.moments[~coarse]), sketch.cells[coarse], need


def _sources_in(cells: NDArray[np.uint64], columns: PassColumns) -> tuple[Ints, Floats]:
    """Bits of u and mass of the sources in these cells of the first level."""
    wanted = np.zeros(BINS, bool)
    wanted[(cells >> np.uint64(_FIRST + 1)).astype(np.intp)] = True
    found = []
    for start in range(0, columns.change_rate.size, CHUNK):
        rows = slice(start, start + CHUNK)
        r, w = columns.change_rate[rows], columns.weight[rows]
        alive = (r > 0.0) & (w > 0.0)
        with np.errstate(over="ignore"):
            mass = (r * columns.cost[rows] if columns.cost.size else r)[alive]
            bits = np.clip(mass / w[alive], LOWEST, HIGHEST).view(np.int64)
        inside = wanted[bits >> _FIRST]
        found.append((bits[inside], mass[inside]))
    return np.concatenate([bits for bits, _ in found]), np.concatenate([mass for _, mass in found])


def _fill(columns: PassColumns, start: int, stop: int, table: Floats) -> tuple[int, int]:
    """Add sources start..stop to a table of cells by four moments; the cells touched, first and last."""
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
