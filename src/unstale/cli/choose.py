"""Which sources a command is about, and the store they are in.

A source is named by its address, a part of it that no other address has, or its id; many are chosen by conditions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, TypeVar

import click

from unstale.adapters.addresses import web_address
from unstale.cli.service import write_store
from unstale.cli.settings import Settings
from unstale.cli.settings import near as near
from unstale.errors import InputError, require, sentence, suggestion
from unstale.kinds import known_kind
from unstale.ports import Catalogue, Listing, Store
from unstale.units import many

if TYPE_CHECKING:
    from unstale.service import FleetService

F = TypeVar("F", bound=Callable[..., Any])
#: listings that are read at a time, and addresses that are shown where several are meant
_CHUNK, _SHOWN = 10_000, 5
_ALL = 2**62
_NAMES = ("host", "kind", "paused", "tag")
_WHERE = "Those with host=NAME, kind=NAME, tag=NAME, paused=yes or an address like 'https://a.org/*'."
#: what could be the name of a condition, and is no beginning of an address
_WORD = re.compile(r"\w+", re.ASCII)
_ANY = "*?["


def where_option(command: F) -> F:
    """The option that chooses sources by what they are."""
    return click.option("--where", multiple=True, metavar="CONDITION", help=_WHERE)(command)


@contextmanager
def opened(settings: Settings, *, create: bool = False) -> Iterator[Store]:
    """The store of the settings, made if it may be."""
    store = write_store(settings, create=create)
    try:
        yield store
    finally:
        store.close()


def find_source(replica: Catalogue, text: str) -> int:
    """The id of the one source that is meant, or InputError that names those that could be."""
    source = replica.find(text)
    if source is None and "://" in text:
        try:
            source = replica.find(web_address(text).text)
        except InputError:
            source = None
    if source is None and text.isascii() and text.isdigit() and len(text) < 19 and replica.listings([int(text)]):
        source = int(text)
    return _by_part(replica, text) if source is None else source


def search_option(command: F) -> F:
    """The option that chooses sources by a search, as it is typed in the dashboard."""
    about = "Those that a search finds, like 'tag:news failing fresh<0.5 -paused'."
    return click.option("--search", metavar="SEARCH", help=about)(command)


def chosen(
    service: FleetService, sources: Sequence[str], where: Sequence[str], whole: bool, search: str | None = None
) -> list[Listing]:
    """The sources that are named, fulfil all conditions, are found by a search, or all of them; at least one."""
    replica, ways = service.store, bool(sources) + bool(where) + whole + (search is not None)
    rule = "must be named, or chosen with --where, --search or --all"
    require(ways == 1, "sources", "to work on", rule, "do one of these")
    if search is not None:
        ids = service.found(search)
    elif sources:
        ids = list(dict.fromkeys(find_source(replica, text) for text in sources))
    else:
        ids = matching(replica, where)
    said = f"with {' and '.join(where)}" if where else f"like {search!r}" if search else ""
    require(ids, "sources", said, "are none", "see `unstale list`")
    return list(listings_of(replica, ids))


def matching(replica: Catalogue, where: Sequence[str]) -> list[int]:
    """The sources that fulfil all conditions: host=, kind=, tag=, paused=, or a pattern of addresses; * is any."""
    exact: dict[str, Any] = {}
    patterns = []
    for text in where:
        name, value = _condition(replica, text)
        if name == "paused":
            exact[name] = value == "yes"
        elif name in ("address", "tag") or name in exact or any(c in value for c in _ANY):
            patterns.append((name, value))
        else:
            exact[name] = value
    ids = replica.search(**exact, limit=_ALL)
    if not patterns:
        return ids
    return [one.id for one in listings_of(replica, ids) if all(_fulfils(one, n, p) for n, p in patterns)]


def _condition(replica: Catalogue, text: str) -> tuple[str, str]:
    """A condition as a name and a value; InputError if nothing could ever fulfil it."""
    shown = repr(text[:60])
    name, equals, value = text.partition("=")
    if not equals or not _WORD.fullmatch(name):
        itself = any(c in text for c in _ANY) or replica.find(text) is not None
        require(itself, "condition", shown, "is no whole address", f"write it like '*{text[:40]}*'")
        return "address", text
    if name not in _NAMES:
        there = f"there are {', '.join(_NAMES)} and addresses like 'https://a.org/*'"
        raise InputError(sentence("condition", shown, "is unknown", suggestion(name, _NAMES, there)))
    if name == "paused":
        require(value in ("yes", "no"), "condition", shown, "is unknown", "write paused=yes or paused=no")
    if name == "kind" and not any(c in value for c in _ANY) and not replica.search(kind=value, limit=1):
        # Programs bring kinds of their own, so what the store has is known too.
        known_kind(value)
    return name, value


def _fulfils(one: Listing, name: str, pattern: str) -> bool:
    if name == "tag":
        from unstale.ports import tags_of

        return any(fnmatchcase(tag, pattern) for tag in tags_of(one.options))
    return fnmatchcase(getattr(one, name), pattern)


def listings_of(replica: Catalogue, ids: Sequence[int]) -> Iterator[Listing]:
    """The listings of many sources, some at a time."""
    for begin in range(0, len(ids), _CHUNK):
        yield from replica.listings(ids[begin : begin + _CHUNK])


def counted(count: int) -> str:
    """So many sources.

    >>> counted(1), counted(1203)
    ('1 source', '1,203 sources')
    """
    return many(count, "source")


def _by_part(replica: Catalogue, text: str) -> int:
    found = replica.search(text, limit=_SHOWN + 1) if text else []
    if not found:
        raise InputError(sentence("source", repr(text[:80]), "is not listed", "see `unstale list`"))
    if len(found) > 1:
        named = ", ".join(listing.address[:80] for listing in replica.listings(found[:_SHOWN]))
        remedy = f"say which: {named}{', …' if len(found) > _SHOWN else ''}"
        raise InputError(sentence("source", repr(text[:80]), "is a part of several addresses", remedy))
    return found[0]
