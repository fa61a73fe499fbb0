"""What the settings say, as far as the service needs it: limits of hosts, how sources and lists are read."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any

from unstale.engine.config import EngineConfig
from unstale.engine.host_limits import Rules
from unstale.errors import InputError, sentence
from unstale.frozen import dataclass
from unstale.ports import Listing

#: makes a listing of what is said of a source; of one that is listed already, over what was said of it before
MakeListing = Callable[[Mapping[str, Any], Listing | None], Listing]


def _no_engine() -> bool | None:
    return None


def _no_listing(said: Mapping[str, Any], before: Listing | None) -> Listing:
    raise InputError(sentence("sources", "to list", "cannot be judged here", "give the terms a `listing`"))


@dataclass(frozen=True, slots=True)
class ReadList:
    """A list of sources as it was read: those in it, bad lines with what is wrong, and what nobody here reads."""

    listings: tuple[Listing, ...]
    problems: tuple[tuple[int, str], ...] = ()
    unused: tuple[str, ...] = ()


def _no_lists(data: bytes) -> ReadList:
    raise InputError(sentence("lists", "of sources", "cannot be judged here", "give the terms `lists`"))


@dataclass(frozen=True, slots=True)
class Granted:
    """What the settings grant a host: seconds between polls, polls at a time, most cost per second, hours in words."""

    spacing: float = 0.0
    concurrency: int = 0
    cap: float = math.inf
    windows: str = ""


@dataclass(frozen=True, slots=True)
class ServiceSettings:
    """What the settings say, as far as the service needs it.

    `file` names the settings file ("" for none) and `changed_at` when it was last written; `running` tells whether an
    engine keeps the store (None: that cannot be told).
    """

    config: EngineConfig
    rules: Callable[[str], Rules]
    granted: Callable[[str], Granted] = lambda name: Granted()
    running: Callable[[], bool | None] = _no_engine
    listing: MakeListing = _no_listing
    #: reads a list of sources in any form that people keep
    lists: Callable[[bytes], ReadList] = _no_lists
    file: str = ""
    changed_at: Callable[[], float] = lambda: 0.0
    #: settings of the fleet as a whole by name, each as it is written, with its meaning
    written: Mapping[str, tuple[str, str]] = field(default_factory=dict)
