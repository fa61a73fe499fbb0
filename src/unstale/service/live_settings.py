"""Settings of the fleet as a whole: what is in force, who said so, and which can be changed while things run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from unstale.engine.said import By
from unstale.engine.said_settings import LIVE, SAID, SettingSaid, kept_words, read_words
from unstale.errors import InputError, require, sentence, suggestion
from unstale.frozen import dataclass
from unstale.service.documents import iso
from unstale.service.service_settings import ServiceSettings

#: characters of a value
LONGEST = 1000


@dataclass(frozen=True, slots=True)
class SettingView:
    """A setting: its value as it is written, what it means, whether it can change while things run; who said it, when
    (-inf: not known)."""

    name: str
    value: str
    meaning: str
    live: bool
    by: str
    at: float

    @property
    def set_here(self) -> bool:
        """Whether it was said to the store, and not in the settings."""
        return self.by not in ("default", "settings")


def views(kept: bytes, terms: ServiceSettings, running: bool | None) -> list[SettingView]:
    """What an engine on this store goes by, or would go by if it were started now."""
    words, changed = read_words(kept), terms.changed_at()
    if not running:
        words = {name: one for name, one in words.items() if one.outlasts(_settled(name, terms), changed)}
    file = ("settings", changed) if terms.file else ("default", -math.inf)
    found = []
    for name, (value, meaning) in terms.written.items():
        said = words.get(name)
        own = (value, *file) if said is None else (said.value, said.by, said.at)
        found.append(SettingView(name, own[0], meaning, name in LIVE, own[1], own[2]))
    return found


def said(kept: bytes, terms: ServiceSettings, name: str, value: str | None, by: By, now: float) -> bytes:
    """The words of a store with one more, or without one; InputError for what is no setting that can change so."""
    if name not in LIVE:
        rule = "cannot be changed while things run" if name in terms.written else "is unknown"
        remedy = suggestion(name, list(LIVE), f"those that can are {', '.join(LIVE)}")
        raise InputError(sentence("setting", repr(name[:40]), rule, remedy))
    words = read_words(kept)
    words.pop(name, None)
    if value is not None:
        value = value.strip()
        require(len(value) <= LONGEST, name, f"of {len(value)} characters", "is too long", f"use {LONGEST} at most")
        LIVE[name].read(value)
        words[name] = SettingSaid(value, by, now, _settled(name, terms))
    return kept_words(words)


def settle(kept: bytes, terms: ServiceSettings) -> dict[str, bytes]:
    """At a start: what has to be written into the store, so that the last words count; nothing if they do."""
    words, changed = read_words(kept), terms.changed_at()
    left = {name: one for name, one in words.items() if one.outlasts(_settled(name, terms), changed)}
    return {SAID: kept_words(left)} if left != words else {}


def document(found: Sequence[SettingView]) -> dict[str, Any]:
    """The settings in plain JSON."""
    return {
        "settings": [
            {
                "name": one.name,
                "value": one.value,
                "meaning": one.meaning,
                "live": one.live,
                "set_here": one.set_here,
                "by": one.by,
                "since": iso(one.at),
            }
            for one in found
        ]
    }


def _settled(name: str, terms: ServiceSettings) -> str:
    return LIVE[name].written(getattr(terms.config, LIVE[name].field))
