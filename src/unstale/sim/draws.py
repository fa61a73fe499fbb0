"""Random numbers and gaps between events, compiled: the same bits on every machine, thread and order of work.

Rules of this file:
1. It loads numba, so only what simulates imports it. Without numba the same functions run as
   plain Python, give the same numbers bit for bit, and take some hundred times longer.
2. A stream of random numbers is one number; who draws from it hands it on.
3. A law of gaps is (kind, shape, scale); a scale of inf means that no event ever comes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from unstale.core import processes
from unstale.core.compiling import kept, text_stamp

try:
    import numba
except ImportError:
    numba = None

F = TypeVar("F", bound=Callable[..., Any])

EXPONENTIAL, CONSTANT, UNIFORM, PARETO, WEIBULL, GAMMA, LOGNORMAL, TRIANGULAR, SWEEP = range(9)
Law = tuple[int, float, float]

#: files of this room with functions that are compiled into each other
TOGETHER = ("draws", "kernels", "layers", "replication", "backtest.rule_kernels")

_WORD = 2**64 - 1
# SplitMix64 (Steele, Lea, Flood 2014): a counter stepped by the golden ratio, each value mixed by Stafford's 13
_STEP, _MIX1, _MIX2 = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


def compiled(function: F) -> F:
    """The function, compiled where numba is installed."""
    # no fast arithmetic: plain Python must give the same bits
    if numba is None:
        return function
    return kept(function, text_stamp("unstale.sim", TOGETHER), nogil=True, error_model="numpy")


if numba is None:

    def word(x: int) -> Any:
        """An integer as 64 bits."""
        return int(x) & _WORD

    def mixed(z: Any) -> Any:
        """Sixty-four bits, thoroughly mixed."""
        z = ((z ^ (z >> 30)) * _MIX1) & _WORD
        z = ((z ^ (z >> 27)) * _MIX2) & _WORD
        return z ^ (z >> 31)

    def stepped(state: Any, steps: int) -> Any:
        """The counter, some steps on."""
        return (state + _STEP * steps) & _WORD

    def share(z: Any) -> float:
        """The upper 53 bits as a number in (0, 1]."""
        return float((z >> 11) + 1) * 2.0**-53

else:
    _S, _M1, _M2 = np.uint64(_STEP), np.uint64(_MIX1), np.uint64(_MIX2)
    _30, _27, _31, _11, _1 = (np.uint64(k) for k in (30, 27, 31, 11, 1))

    def word(x: int) -> Any:
        """An integer as 64 bits."""
        return np.uint64(int(x) & _WORD)

    @compiled
    def mixed(z: Any) -> Any:
        """Sixty-four bits, thoroughly mixed."""
        z = (z ^ (z >> _30)) * _M1
        z = (z ^ (z >> _27)) * _M2
        return z ^ (z >> _31)

    @compiled
    def stepped(state: Any, steps: int) -> Any:
        """The counter, some steps on."""
        return state + _S * np.uint64(steps)

    @compiled
    def share(z: Any) -> float:
        """The upper 53 bits as a number in (0, 1]."""
        return np.float64((z >> _11) + _1) * 2.0**-53


@compiled
def stream(seed: Any, source: int, lane: int) -> Any:
    """Where the random numbers of a lane of a source begin."""
    return mixed(stepped(mixed(stepped(mixed(stepped(seed, 1)), source + 1)), lane + 1))


@compiled
def unit(state: Any) -> tuple[float, Any]:
    """A number in (0, 1], and the stream after it."""
    state = stepped(state, 1)
    return share(mixed(state)), state


@compiled
def normal(state: Any) -> tuple[float, Any]:
    """A standard normal number (Box and Muller)."""
    u, state = unit(state)
    v, state = unit(state)
    return math.sqrt(-2.0 * math.log(u)) * math.cos(2.0 * math.pi * v), state


@compiled
def gamma(shape: float, state: Any) -> tuple[float, Any]:
    """A Gamma(shape, 1) number (Marsaglia and Tsang 2000)."""
    boost = 1.0
    if shape < 1.0:
        u, state = unit(state)
        boost = u ** (1.0 / shape)
        shape += 1.0
    d = shape - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        x, state = normal(state)
        u, state = unit(state)
        v = 1.0 + c * x
        v = v * v * v  # a power would round otherwise in Python
        if v > 0.0 and math.log(u) < 0.5 * x * x + d - d * v + d * math.log(v):
            return boost * d * v, state


@compiled
def gap(kind: int, shape: float, scale: float, state: Any) -> tuple[float, Any]:
    """The next gap of a law, mostly by inversion."""
    if kind == CONSTANT:
        return scale, state
    if kind == GAMMA:
        x, state = gamma(shape, state)
        return scale * x, state
    if kind == LOGNORMAL:
        x, state = normal(state)
        return scale * math.exp(shape * x), state
    u, state = unit(state)
    if kind == EXPONENTIAL:
        return -scale * math.log(u), state
    if kind == PARETO:
        return scale * math.expm1(-math.log(u) / shape), state
    if kind == WEIBULL:
        return scale * (-math.log(u)) ** (1.0 / shape), state
    if kind == UNIFORM:
        return scale * (shape + (1.0 - shape) * u), state
    v, state = unit(state)
    return scale * (u + v), state


@compiled
def met(kind: int, shape: float, scale: float, state: Any) -> tuple[float, float, Any]:
    """The gap in progress at a random time: how long it has lasted and how long it will; length-biased."""
    if kind == EXPONENTIAL:
        x, state = gamma(2.0, state)
    elif kind == CONSTANT:
        x = 1.0
    elif kind == UNIFORM:
        u, state = unit(state)
        x = math.sqrt(shape * shape + (1.0 - shape * shape) * u)
    elif kind == PARETO:
        x, state = gamma(2.0, state)
        y, state = gamma(shape - 1.0, state)
        x = x / y
    elif kind == WEIBULL:
        y, state = gamma(1.0 + 1.0 / shape, state)
        x = y ** (1.0 / shape)
    elif kind == GAMMA:
        x, state = gamma(shape + 1.0, state)
    elif kind == LOGNORMAL:
        y, state = normal(state)
        x = math.exp(shape * (y + shape))
    else:
        u, state = unit(state)
        v, state = unit(state)
        x = math.sqrt(u) + v
    u, state = unit(state)
    return scale * x * u, scale * x * (1.0 - u), state


def law_of(process: processes.Process) -> Law | None:
    """The law of a process as the kernels know it, or None if it is none of theirs.

    >>> law_of(processes.Uniform(1.0, 4.0)) == (UNIFORM, 0.25, 4.0)
    True
    """
    match process:
        case processes.Poisson():
            return EXPONENTIAL, 0.0, process.mean
        case processes.Constant():
            return CONSTANT, 0.0, process.gap
        case processes.Uniform():
            return UNIFORM, process.low / process.high, process.high
        case processes.Pareto():
            return PARETO, process.alpha, process.scale
        case processes.Weibull():
            return WEIBULL, process.shape, process.scale
        case processes.Gamma():
            return GAMMA, process.shape, process.scale
        case processes.LogNormal():
            return LOGNORMAL, process.sigma, process.median
        case processes.Triangular():
            return TRIANGULAR, 0.0, process.mean
    return None
