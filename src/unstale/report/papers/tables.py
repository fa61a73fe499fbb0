"""The numbered tables of the papers in their own layout, printed and computed side by side."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from unstale.frozen import dataclass


@dataclass(frozen=True, slots=True)
class Cell:
    """A number of a table: what is printed, and the item (and its key, place in a list, or both) that computes it."""

    id: str
    printed: str = ""
    key: str | int | tuple[str, int] | None = None

    def of(self, found: Mapping[str, Any]) -> float:
        """Its number among the computed values of the item by label, "" if the item has just one."""
        label, place = self.key if isinstance(self.key, tuple) else (self.key, self.key)
        value = found[label if isinstance(label, str) else ""]
        return float(value[place] if isinstance(place, int) else value)


@dataclass(frozen=True, slots=True)
class Table:
    """A table of a paper; cells are text or numbers to look up."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str | Cell, ...], ...]


def rounds_to(computed: float, printed: str) -> bool:
    """Whether a computed number, rounded where the printed one ends, is the printed one.

    >>> rounds_to(0.8349, "0.84"), rounds_to(1.1499, "1.15"), rounds_to(398.7, "400 days"), rounds_to(31 / 72, "31/72")
    (False, True, True, True)
    """
    text = printed.split()[0]
    if "/" in text:
        top, bottom = text.split("/")
        return math.isclose(computed, int(top) / int(bottom), rel_tol=1e-12)
    shown = Decimal(text)
    # A whole number may have been rounded at any of its final zeros.
    last = Decimal(1).scaleb(int(shown.as_tuple().exponent)) if "." in text else _step(int(text))
    return abs(Decimal(repr(float(computed))) - shown) <= last / 2


def _step(whole: int) -> Decimal:
    zeros = len(str(whole)) - len(str(whole).rstrip("0"))
    return Decimal(10) ** zeros


_RATIOS = ("0.5", "1", "2", "5")
_ORDERS = (
    ("fixed order", "fixed", "(1−e^(−r))/r", "I·(1/2 − 1/r + (1−e^(−r))/r²)"),
    ("random order", "random-order", "(1 − ((1−e^(−r))/r)²)/r", "I·(1/3 + (1/2 − 1/r)² − ((1−e^(−r))/r²)²)"),
    ("purely random", "purely-random", "1/(1+r)", "I·r/(1+r)"),
)
_GAMMA = ("r1.d2_0.25", "r1.d2_0.5", "r1.d2_1", "r2.d2_0.5", "r2.d2_1", "r2.d2_2", "r5.d2_0.25", "r5.d2_1", "r5.d2_4")
_SPLITS = (
    ("a", 1, 1, 0, "1/36"),
    ("b", 1, 0, 1, "9/36"),
    ("c", 2, 2, 0, "2/36"),
    ("d", 2, 1, 1, "10/36"),
    ("e", 2, 0, 2, "12/36"),
    ("f", 5, 3, 2, "30/72"),
    ("g", 5, 2, 3, "31/72"),
    ("h", 10, 9, 1, "36/72"),
    ("i", 10, 7, 3, "41/72"),
    ("j", 10, 5, 5, "40/72"),
)

_COOPERATIVE = (
    ("0.4", "270", "1865", "6.9"),
    ("0.5", "90", "590", "6.6"),
    ("0.6", "50", "134", "2.7"),
    ("0.7", "33", "42", "1.3"),
)
_REDUNDANT = (
    ("0.1", "21.8 1.1", "18.0 0.90"),
    ("0.3", "26.6 1.3", "14.6 0.73"),
    ("0.5", "32.8 1.6", "12.5 0.63"),
    ("0.7", "42.3 2.1", "11.2 0.56"),
)


def _ratios(level: str, kind: str, printed: str = "") -> tuple[Cell, Cell]:
    replicas, _, requests = printed.partition(" ")
    return Cell(f"L4.TableII.{level}", replicas, (kind, 0)), Cell(f"L4.TableII.{level}", requests, (kind, 1))


def _rates(title: str, id_: str, printed: str) -> tuple[str | Cell, ...]:
    return (title, *(Cell(id_, text, i) for i, text in enumerate(printed.split())))


TABLES = {
    "000 Table 2": Table(
        "Freshness and age by order of polls",
        ("order", "measure", "formula", *(f"r = {r}" for r in _RATIOS)),
        tuple(
            (name, measure, formula, *(Cell(f"C.T2.{kind}.{key}.r{r}") for r in _RATIOS))
            for name, key, *formulas in _ORDERS
            for measure, kind, formula in (("freshness", "F", formulas[0]), ("age (I = 1)", "A", formulas[1]))
        ),
    ),
    "000 Table 3": Table(
        "Freshness and age when change rates follow a gamma law",
        ("polling", "measure", *(f"r = {name[1]}, δ² = {name[6:]}" for name in _GAMMA)),
        tuple(
            (rule, measure, *(Cell(f"C.T3.{name}", key=f"{kind}_{rule}") for name in _GAMMA))
            for rule in ("uniform", "proportional")
            for measure, kind in (("freshness", "F"), ("age (I = 1)", "A"))
        ),
    ),
    "000 Table 4": Table(
        "Two sources that change 9 times and once a day: what polls gain",
        ("row", "f₁ + f₂", "f₁", "f₂", "gain"),
        tuple(
            (f"({row})", str(total), str(one), str(other), Cell(f"C.T4.{row}", printed))
            for row, total, one, other, printed in _SPLITS
        ),
    ),
    "000 Table 5": Table(
        "Best sync rates for change rates 1 to 5",
        ("", *(f"e{i}" for i in range(1, 6))),
        (
            ("(a) change rate", "1", "2", "3", "4", "5"),
            _rates("(b) sync rate, freshness", "C.T5.b", "1.15 1.36 1.35 1.14 0.00"),
            _rates("(c) sync rate, age", "C.T5.c", "0.84 0.97 1.03 1.07 1.09"),
        ),
    ),
    "000 Table 6": Table(
        "100 million sources, each polled once a month on average",
        ("", "proportional", "uniform", "optimal"),
        (
            ("freshness", Cell("C.T6.F_prop", "0.12"), Cell("C.T6.F_unif", "0.57"), Cell("C.T6.F_opt", "0.62")),
            ("age", Cell("C.T6.A_prop", "400 days"), Cell("C.T6.A_unif", "5.6 days"), Cell("C.T6.A_opt", "4.3 days")),
        ),
    ),
    "004 Table I": Table(
        "Best service rate without and with cooperation",
        ("1 − ε", "non-cooperative R", "cooperative R", "ratio"),
        tuple(
            (
                level,
                Cell(f"L4.32.{level}", alone, "R"),
                Cell(f"L4.TableI.{level}", together, "R"),
                Cell(f"L4.TableI.{level}", ratio, "ratio_to_eq32"),
            )
            for level, alone, together, ratio in _COOPERATIVE
        ),
    ),
    "004 Table II": Table(
        "Replicas m*/m and requests R*/R of clients that ask 20 replicas, against those that ask one; what is printed "
        "under Pareto belongs to α = 2",
        (
            "1 − ε",
            *(
                f"{kind}, {ratio}"
                for kind in ("Pareto α = 3", "Pareto α = 2", "exponential", "constant")
                for ratio in ("m*/m", "R*/R")
            ),
        ),
        tuple(
            (
                level,
                *_ratios(level, "pareto_alpha3", pareto),
                *_ratios(level, "pareto_alpha2"),
                *_ratios(level, "exp", "20 1"),
                *_ratios(level, "const", even),
            )
            for level, pareto, even in _REDUNDANT
        ),
    ),
}
