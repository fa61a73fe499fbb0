"""Feeds: RSS, Atom and JSON Feed. A feed is one source, and the times of its entries are when it changed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from xml.parsers import expat

from unstale.core.trace import Trace
from unstale.errors import InputError, sentence
from unstale.traces import web
from unstale.traces.judge import judge_texts
from unstale.traces.problems import Problems
from unstale.traces.times import moment

_ROOTS = ("rss", "rdf", "feed")
_ENTRIES = ("item", "entry")
#: RSS 2.0 · RSS 1.0 · Atom 1.0 · Atom 0.3
_TIMES = ("pubdate", "date", "published", "updated", "issued", "modified")
_JSON_TIMES = ("date_published", "date_modified")


def read_feed(places: Sequence[str], *, now: float | None = None) -> tuple[Trace, Problems]:
    """The changes of feeds in files or at addresses, named as given, and what was wrong with them.

    An entry changed its feed when it was published, and again when it was modified later. A feed shows its newest
    entries only, so its trace is as long as its window.
    """
    rows: list[tuple[str, str | None]] = []
    for place in places:
        for texts in _entries(place):
            # the same moment is often written twice, in two formats
            kept = {moment(text)[0]: text for text in texts}
            rows += [(place, text) for text in kept.values()] or [(place, None)]
    return judge_texts(", ".join(places), rows, now=now)


def _entries(place: str) -> list[list[str]]:
    """The times in each entry of a feed, as written."""
    if web.is_address(place):
        data = web.load(place)
    elif Path(place).is_file():
        data = Path(place).read_bytes()
    else:
        raise InputError(sentence("file", repr(place), "does not exist", "check the path"))
    if data.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"{":
        return list(_json(data, place))
    reader = _Reader(place)
    try:
        reader.parser.Parse(data, True)
    except expat.ExpatError as error:
        raise _no_feed(place, f"its XML is broken ({error})") from None
    except (LookupError, ValueError, UnicodeError) as error:
        if isinstance(error, InputError):
            raise
        raise _no_feed(place, f"its text cannot be decoded ({error})") from None
    return reader.entries


class _Reader:
    """Collects the times that are direct children of entries, without building a tree."""

    def __init__(self, place: str) -> None:
        self.place = place
        self.entries: list[list[str]] = []
        self._path: list[str] = []
        self._entry = 0
        self._text: list[str] | None = None
        self.parser = expat.ParserCreate(namespace_separator=" ")
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._characters
        # Entities that grow without end, or that read other files, need a document type: feeds do not.
        self.parser.StartDoctypeDeclHandler = self._doctype

    def _doctype(self, *_: object) -> None:
        raise _no_feed(self.place, "it declares a document type, which may hide anything")

    def _start(self, name: str, _: object) -> None:
        local = name.rpartition(" ")[2].lower()
        self._path.append(local)
        if len(self._path) == 1 and local not in _ROOTS:
            raise _no_feed(self.place, f"it is <{local}>, not RSS or Atom")
        if not self._entry and local in _ENTRIES:
            self._entry = len(self._path)
            self.entries.append([])
        # deeper ones belong to something else, such as the feed that an entry was taken from
        elif self._entry and len(self._path) == self._entry + 1 and local in _TIMES:
            self._text = []

    def _characters(self, text: str) -> None:
        if self._text is not None:
            self._text.append(text)

    def _end(self, _: str) -> None:
        if self._text is not None and len(self._path) == self._entry + 1:
            if text := "".join(self._text).strip():
                self.entries[-1].append(text)
            self._text = None
        if len(self._path) == self._entry:
            self._entry = 0
        self._path.pop()


def _json(data: bytes, place: str) -> Iterator[list[str]]:
    try:
        feed: Any = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise _no_feed(place, f"its JSON is broken ({error})") from None
    items = feed.get("items")
    if not isinstance(items, list):
        raise _no_feed(place, "its JSON has no items")
    for item in items:
        yield [str(item[name]) for name in _JSON_TIMES if item.get(name)] if isinstance(item, dict) else []


def _no_feed(place: str, why: str) -> InputError:
    return InputError(sentence("feed", repr(place), "cannot be read", why))
