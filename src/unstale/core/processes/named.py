"""Processes by name, as people write them: `poisson`, `pareto:3`, `weibull:0.7`, and polls by their order."""

from __future__ import annotations

from collections.abc import Callable

from unstale.core.processes.base import Process
from unstale.core.processes.constant import Constant
from unstale.core.processes.gamma import Gamma
from unstale.core.processes.lognormal import LogNormal
from unstale.core.processes.pareto import Pareto
from unstale.core.processes.poisson import Poisson
from unstale.core.processes.triangular import Triangular
from unstale.core.processes.uniform import Uniform
from unstale.core.processes.weibull import Weibull
from unstale.errors import InputError, sentence

#: name -> (what its number means or None, how to build it with a given rate)
_KINDS: dict[str, tuple[str | None, Callable[[float, float], Process]]] = {
    "poisson": (None, lambda rate, _: Poisson(rate)),
    "constant": (None, lambda rate, _: Constant(1.0 / rate)),
    "uniform": (None, lambda rate, _: Uniform(0.0, 2.0 / rate)),
    "pareto": ("alpha", lambda rate, alpha: Pareto.from_rate(alpha, rate)),
    "weibull": ("shape", lambda rate, shape: Weibull.from_rate(shape, rate)),
    "gamma": ("shape", lambda rate, shape: Gamma.from_rate(shape, rate)),
    "lognormal": ("sigma", lambda rate, sigma: LogNormal.from_rate(sigma, rate)),
}
#: the orders of 000 are gap laws: even, triangular, exponential [000 Lemma 2]
ORDERS: dict[str, Callable[[float], Process]] = {
    "fixed": lambda rate: Constant(1.0 / rate),
    "random": lambda rate: Triangular(1.0 / rate),
    "purely-random": Poisson,
}
SPELLINGS = ", ".join(f"{name}:{word}" if word else name for name, (word, _) in _KINDS.items())


def polling(text: str, rate: float) -> Process:
    """Polls in an order (`fixed`, `random`, `purely-random`) or with gaps of a named kind."""
    if text in ORDERS:
        return ORDERS[text](rate)
    try:
        return named(text, rate)
    except InputError as error:
        raise InputError(f"{error}, fixed, random or purely-random") from None


def named(text: str, rate: float) -> Process:
    """The process written `kind` or `kind:number`, with this rate.

    >>> named("pareto:3", 2.0).rate
    2.0
    """
    kind, _, argument = text.strip().lower().partition(":")
    word, build = _KINDS.get(kind, (None, None))
    if build is None:
        raise InputError(sentence("process", repr(text), "is not known", f"use one of {SPELLINGS}"))
    try:
        number = float(argument) if word else 0.0
    except ValueError:
        raise InputError(
            sentence("process", repr(text), f"needs a number for {word}", f"write it like {kind}:2")
        ) from None
    if argument and not word:
        raise InputError(sentence("process", repr(text), "takes no number", f"write {kind}"))
    return build(rate, number)
