"""Searches that people keep under a name, for everybody who looks at this store."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

from unstale.errors import require
from unstale.frozen import dataclass
from unstale.service.search import parse

#: the setting that holds them, and how many there may be
SAVED, MOST = "searches", 100


@dataclass(frozen=True, slots=True)
class SavedSearch:
    """What is looked for, and how it is sorted."""

    name: str
    search: str
    sort: str = "fresh"
    down: bool = False


def kept_searches(searches: Sequence[SavedSearch]) -> bytes:
    """Searches as they are stored; InputError for one that cannot be searched, or is named as another is.

    >>> read_searches(kept_searches([SavedSearch("In trouble", "failing")]))[0].search
    'failing'
    """
    names = [one.name for one in searches]
    require(len(names) <= MOST, "searches", f"of which there are {len(names)}", f"are more than {MOST}", "remove some")
    for one in searches:
        require(one.name.strip(), "search", repr(one.search[:40]), "has no name", "give it one")
        require(names.count(one.name) == 1, "search", repr(one.name[:40]), "is there twice", "name it otherwise")
        parse(one.search)
    return json.dumps([asdict(one) for one in searches]).encode()


def read_searches(kept: bytes) -> list[SavedSearch]:
    """Searches as they were stored; none where nothing can be read."""
    try:
        return [SavedSearch(**one) for one in json.loads(kept or b"[]")]
    except (ValueError, TypeError):
        return []
