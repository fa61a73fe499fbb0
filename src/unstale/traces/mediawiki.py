"""Revision histories of a MediaWiki: each title is a source, each revision a change of it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from unstale.core.trace import Trace
from unstale.errors import InputError, sentence
from unstale.traces import web
from unstale.traces.judge import judge_texts
from unstale.traces.problems import Problems

#: lists of titles in an answer of the API
_SINGLE = "recentchanges"
_LISTS = ("pages", "allrevisions", _SINGLE)
_TITLES = ("title", "page_title", "name")
_TIMES = ("timestamp", "rev_timestamp", "date_modified")
_ASK = {"action": "query", "prop": "revisions", "rvprop": "timestamp", "format": "json", "formatversion": "2"}
_EXAMPLE = "https://en.wikipedia.org/w/api.php?titles=Coffee"

Change = tuple[str | None, str | None]


def read_mediawiki(
    places: Sequence[str],
    *,
    titles: Sequence[str] = (),
    now: float | None = None,
) -> tuple[Trace, Problems]:
    """The changes of each title in files or at addresses, and what was wrong with them.

    A file holds answers of the API (prop=revisions, list=allrevisions or list=recentchanges, either format version),
    one or a list of them, or JSON lines: an answer, a title with its revisions, or a title with one timestamp in each.
    An address is that of a wiki's api.php; its histories are asked for whole, for `titles` and those it names itself.
    """
    changes: list[Change] = []
    malformed = 0
    for place in places:
        for thing in _ask(place, titles) if web.is_address(place) else _documents(place):
            found = None if thing is None else _walk(thing, place)
            malformed += found is None
            changes += found or []
    return judge_texts(", ".join(places), changes, now=now, malformed=malformed)


def _documents(path: str) -> Iterator[Any]:
    """Each JSON value of a file, line by line where lines are values of their own; None for a line that is none."""
    if not Path(path).is_file():
        raise InputError(sentence("file", repr(path), "does not exist", "check the path"))
    with Path(path).open("rb") as lines:
        for number, line in enumerate(lines):
            if not line.strip():
                continue
            thing = _parsed(line)
            # a value that begins in the first line and does not end there is the whole file
            whole = _parsed(Path(path).read_bytes()) if thing is None and number == 0 else None
            found = thing if whole is None else whole
            yield from found if isinstance(found, list) else [found]
            if whole is not None:
                return


def _parsed(text: bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _walk(thing: Any, place: str) -> list[Change] | None:
    """The changes in an answer, in a title with its revisions or in a single revision; None if it is none of them."""
    if not isinstance(thing, dict):
        return None
    if isinstance(error := thing.get("error"), dict):
        why = web.one_line(str(error.get("info") or error))
        raise InputError(sentence("wiki", repr(place), "answers with an error", why))
    if isinstance(query := thing.get("query"), dict):
        return [change for name in _LISTS for entry in _listed(query.get(name)) for change in _changes(entry, name)]
    if "revisions" in thing:
        return _changes(thing)
    return _changes(thing, _SINGLE) if _text(thing, _TIMES) else None


def _changes(entry: Any, kind: str = "") -> list[Change]:
    """The revisions of a title, of which an answer may hold none; or the one change that an entry is."""
    parts = [entry] if kind == _SINGLE or not isinstance(entry, dict) else _listed(entry.get("revisions"))
    return [(_text(entry, _TITLES), _text(part, _TIMES)) for part in parts]


def _listed(things: Any) -> list[Any]:
    """A list; the first format version has objects instead, with numbers for names."""
    return things if isinstance(things, list) else list(things.values()) if isinstance(things, dict) else []


def _text(thing: Any, names: tuple[str, ...]) -> str | None:
    if not isinstance(thing, dict):
        return None
    value = next((thing[name] for name in names if thing.get(name) is not None), None)
    return None if value is None or isinstance(value, bool | dict | list) else str(value)


def _ask(address: str, titles: Sequence[str]) -> Iterator[Any]:
    """The API's answers for one title after the other: it gives long histories for single ones only."""
    parts = urlsplit(address)
    if not parts.path.endswith("api.php"):
        raise InputError(sentence("address", repr(address), "is not that of an api.php", f"give one like {_EXAMPLE}"))
    given = dict(parse_qsl(parts.query))
    wanted = dict.fromkeys([*filter(None, given.pop("titles", "").split("|")), *titles])
    if not wanted:
        raise InputError(sentence("address", repr(address), "names no title", f"give one like {_EXAMPLE}"))
    base = parts._replace(query="", fragment="").geturl()
    for title in wanted:
        more: dict[str, str] = {}
        seen = []
        while True:
            answer = _parsed(
                web.load(f"{base}?{urlencode({'rvlimit': 'max'} | given | _ASK | {'titles': title} | more)}")
            )
            if not isinstance(answer, dict):
                raise InputError(
                    sentence("address", repr(address), "does not answer in JSON", f"is it like {_EXAMPLE}?")
                )
            _exists(answer, title, address)
            yield answer
            onward = answer.get("continue")
            if not isinstance(onward, dict):
                break
            more = {str(name): str(value) for name, value in onward.items()}
            if more in seen:
                raise InputError(
                    sentence("address", repr(address), "goes in circles", "save its answers and give files")
                )
            seen.append(more)


def _exists(answer: dict[str, Any], title: str, address: str) -> None:
    query = answer.get("query")
    for entry in _listed(query.get("pages")) if isinstance(query, dict) else ():
        if isinstance(entry, dict) and ("missing" in entry or "invalid" in entry):
            raise InputError(sentence("title", repr(title), f"does not exist at {address!r}", "check its spelling"))
