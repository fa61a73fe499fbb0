"""Those who are told of changes as they were set up in a browser: in the store, their secrets by name or sealed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

from unstale.errors import require
from unstale.frozen import dataclass

#: the setting that holds them, and how many there may be
RECEIVERS, MOST = "receivers", 50


@dataclass(frozen=True, slots=True)
class NewsReceiver:
    """Who is told, over which way, of what, when and in which words.

    `address` is the name of an environment variable ($NAME), or sealed; it is never shown.
    """

    name: str
    via: str
    address: str
    tags: tuple[str, ...] = ()
    hours: tuple[str, ...] = ()
    first: bool = False
    title: str = ""
    text: str = ""
    #: addresses of sources of which it is told besides those with one of its tags; without either, of all
    sources: tuple[str, ...] = ()

    @property
    def listener(self) -> str:
        """The name under which the store knows how far it was told: it outlives a change of its address."""
        return f"news {self.name}"


def kept_receivers(receivers: Sequence[NewsReceiver]) -> bytes:
    """As they are stored; InputError for one without a name, or named as another is.

    >>> read_receivers(kept_receivers([NewsReceiver("chat", "notify", "$CHAT", tags=("news",))]))[0].tags
    ('news',)
    """
    names = [one.name for one in receivers]
    require(len(names) <= MOST, "receivers", f"of which there are {len(names)}", f"are more than {MOST}", "remove some")
    for name in names:
        require(name.strip() and name.isprintable(), "receiver", repr(name[:40]), "has no name", "give it one")
        require(names.count(name) == 1, "receiver", repr(name[:40]), "is there twice", "name it otherwise")
    return json.dumps([asdict(one) for one in receivers]).encode()


def read_receivers(kept: bytes) -> list[NewsReceiver]:
    """As they were stored; none where nothing can be read."""
    try:
        found = json.loads(kept or b"[]")
        return [
            NewsReceiver(
                **{**one, **{name: tuple(one.get(name, ())) for name in ("tags", "hours", "sources")}},
            )
            for one in found
        ]
    except (ValueError, TypeError, KeyError):
        return []
