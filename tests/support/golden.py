"""The papers' numbers, recomputed independently, as tests by their id.

The report's `values.json` holds, for each number of the papers, the inputs, what the paper prints, the right value
and its tolerance. A test claims entries with `@golden(...)`; a meta test fails when an entry is claimed by nobody.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np
import pytest


@dataclass(frozen=True)
class Entry:
    id: str
    seed: str
    place: str
    inputs: dict[str, Any]
    printed: Any
    value: Any
    tolerance: Any
    verdict: str
    reason: str

    def check(self, got: Any) -> None:
        """Assert that `got` has the structure of `value` and each number is within tolerance."""
        _compare(self.id, got, self.value, self.tolerance)


def _load() -> dict[str, Entry]:
    text = (files("unstale.report.papers") / "values.json").read_text("utf-8")
    return {e["id"]: Entry(**e) for e in json.loads(text)}


ENTRIES = _load()
#: ids claimed by the tests imported so far
CLAIMED: set[str] = set()


def golden(*ids: str, prefix: str | None = None) -> Callable[[Any], Any]:
    """Run the test once for each named entry (or all whose id starts with `prefix`), passed as `entry`."""
    chosen = [ENTRIES[i] for i in ids]
    if prefix is not None:
        chosen += [e for i, e in ENTRIES.items() if i.startswith(prefix)]
    assert chosen, f"no golden entry for {ids} {prefix}"
    CLAIMED.update(e.id for e in chosen)
    return pytest.mark.parametrize("entry", chosen, ids=[e.id for e in chosen])


def _compare(where: str, got: Any, want: Any, tolerance: Any) -> None:
    if isinstance(want, dict):
        assert set(got) == set(want), f"{where}: keys {sorted(got)} instead of {sorted(want)}"
        for key, w in want.items():
            t = tolerance.get(key, 0) if isinstance(tolerance, dict) else tolerance
            _compare(f"{where}[{key}]", got[key], w, t)
    elif isinstance(want, list):
        assert len(got) == len(want), f"{where}: {len(got)} values instead of {len(want)}"
        for i, (g, w) in enumerate(zip(got, want, strict=True)):
            t = tolerance[i] if isinstance(tolerance, list) else tolerance
            _compare(f"{where}[{i}]", g, w, t)
    elif isinstance(want, bool):
        assert bool(got) is want, f"{where}: {got} instead of {want}"
    elif want == "inf":
        assert math.isinf(got), f"{where}: {got} instead of inf"
    elif isinstance(want, str):
        assert got is True or got == want, f"{where}: identity does not hold: {want}"
    else:
        slack = tolerance * max(1.0, abs(want)) if tolerance else math.ulp(want)
        assert np.isfinite(got), f"{where}: {got} instead of {want}"
        assert abs(got - want) <= slack, f"{where}: {got!r} instead of {want!r} ± {slack:g}"
