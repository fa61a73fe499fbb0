"""Settings that operators have changed while things run: words in the store, over what the settings file says.

Rules of this file:
1. Here is only what an engine takes over while it runs; all else needs a start.
2. The last word counts, as with the budget: the file says something new only if it says something else than when the
   word was said, and was changed since; from the next start on.
3. A word is kept as people write it, and one that can no longer be read counts nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from unstale.calendar import parse_hours, written_hours
from unstale.core.checks import number
from unstale.core.objectives import objective_of
from unstale.engine.contract_words import read_contracts, written_contracts
from unstale.engine.host_grants import read_grants, written_grants
from unstale.engine.said import By
from unstale.errors import InputError, require
from unstale.frozen import dataclass
from unstale.units import DAY, format_rate, parse_rate

#: the setting of a store that holds the words
SAID = "said"


@dataclass(frozen=True, slots=True)
class LiveSetting:
    """A setting that can change while things run: its field of the engine's config, how it is read and written."""

    field: str
    read: Callable[[str], Any]
    written: Callable[[Any], str]


def _objective(text: str) -> str:
    objective_of(text)
    return text


def _burst(text: str) -> float:
    try:
        return 0.0 if text == "auto" else number("burst", float(text), above=0)
    except ValueError:
        require(False, "burst", repr(text[:40]), "must be a number above 0 or auto", "write it like 20")
        raise


def _allowance(text: str) -> float:
    return number("first_round", parse_rate(text, "first_round") / DAY, above=0) if text else 0.0


#: by name, as the settings file calls them
LIVE: Mapping[str, LiveSetting] = {
    "objective": LiveSetting("objective", _objective, str),
    "burst": LiveSetting("burst", _burst, lambda value: f"{value:g}" if value else "auto"),
    "first_round": LiveSetting("first_rate", _allowance, lambda value: format_rate(DAY * value) if value else ""),
    "windows": LiveSetting("hours", lambda text: parse_hours(text) if text else (), written_hours),
    "contracts": LiveSetting("contracts", read_contracts, written_contracts),
    "hosts": LiveSetting("granted", read_grants, written_grants),
}


@dataclass(frozen=True, slots=True)
class SettingSaid:
    """A word: the value as people write it, who said it and when, and what the settings file said at that time.

    >>> word = SettingSaid("age", "api", at=100.0, settled="freshness")
    >>> word.outlasts("freshness", 200.0), word.outlasts("missed", 50.0), word.outlasts("missed", 200.0)
    (True, True, False)
    """

    value: str
    by: By
    at: float
    settled: str

    def outlasts(self, settled: str, changed_at: float) -> bool:
        """Whether it is later than what the settings say, in a file that was changed last at a time."""
        return not (changed_at > self.at and settled != self.settled)


def read_words(value: bytes) -> dict[str, SettingSaid]:
    """What a store keeps, by name; what makes no sense is left out.

    >>> words = {"objective": SettingSaid("age", "api", 7.0, "freshness")}
    >>> read_words(kept_words(words)) == words, read_words(b""), read_words(b"nonsense")
    (True, {}, {})
    """
    try:
        found = json.loads(value) if value else {}
        words = {name: SettingSaid(**one) for name, one in found.items() if name in LIVE}
        return {name: one for name, one in words.items() if _readable(name, one.value)}
    except (ValueError, TypeError, AttributeError):
        return {}


def kept_words(words: Mapping[str, SettingSaid]) -> bytes:
    """As a store keeps them."""
    return json.dumps({name: asdict(one) for name, one in sorted(words.items())}).encode() if words else b""


def fields_said(value: bytes) -> dict[str, Any]:
    """The fields of an engine's config of which a store says something else.

    >>> fields_said(kept_words({"first_round": SettingSaid("30/min", "api", 7.0, "60/min")}))
    {'first_rate': 0.5}
    """
    return {LIVE[name].field: LIVE[name].read(one.value) for name, one in read_words(value).items()}


def _readable(name: str, value: str) -> bool:
    try:
        LIVE[name].read(value)
    except InputError:
        return False
    return True
