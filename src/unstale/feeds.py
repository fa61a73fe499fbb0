"""Reading feeds, RSS, Atom and JSON Feed: their entries, without building a tree and without trusting a byte.

What strangers write is bounded before it is read: entities that grow, marks without end and deep nesting are refused.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping
from typing import Any
from xml.parsers import expat

from unstale.errors import InputError, sentence
from unstale.frozen import dataclass

#: more marks (`<` of XML; `{`, `[` and `,` of JSON) than any feed has, and still read in half a second
MOST_MARKS = 200_000
#: the same for what is quicker to read, or common in texts: `=` and, where it is to be mended, `&`
MOST_SIGNS = 2 * MOST_MARKS
DEEPEST = 200
#: expat keeps other threads waiting while it reads a piece, and reads what a piece cuts apart again
_PIECE = 2**20
_ROOTS = ("rss", "rdf", "feed")
_ENTRIES = ("item", "entry")
#: RSS 2.0 · RSS 1.0 · Atom 1.0 · Atom 0.3
_TIMES = ("pubdate", "date", "published", "updated", "issued", "modified")
_FIELDS = {
    "guid": "id",
    "id": "id",
    "title": "title",
    "link": "link",
    "enclosure": "link",
    "description": "content",
    "summary": "content",
    "content": "content",
    "encoded": "content",
    **dict.fromkeys(_TIMES, "times"),
}
#: vocabularies whose words mean in every feed what they mean at home; others reuse the words for something else
_KNOWN = (
    "",
    "http://www.w3.org/2005/Atom",
    "http://purl.org/dc/elements/1.1/",
    "http://purl.org/dc/terms/",
    "http://purl.org/rss/1.0/modules/content/",
)
_ABOUT = "http://www.w3.org/1999/02/22-rdf-syntax-ns# about"
_JSON_FIELDS = {
    "id": "id",
    "url": "link",
    "external_url": "link",
    "title": "title",
    "content_html": "content",
    "content_text": "content",
    "summary": "content",
    "date_published": "times",
    "date_modified": "times",
}

# What hand-made generators get wrong: names of HTML, bare ampersands, bytes that are no text, an idle document type.
_DOCTYPE = re.compile(r"<!DOCTYPE[^\[>]{0,1000}>")
_AMPERSAND = re.compile(r"&(?!(?:amp|lt|gt|quot|apos|#[0-9]{1,7}|#x[0-9A-Fa-f]{1,6});)(\w{1,31};)?")
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]+")
_DECLARATION = re.compile(r"^\s*<\?xml[^>]{0,200}\?>")
_ENCODING = re.compile(rb"""^\s*<\?xml[^>]{0,200}?encoding=["']([A-Za-z0-9._-]{1,40})""")


@dataclass(frozen=True, slots=True)
class FeedEntry:
    """One entry: what it says, as written; a field that is there twice has both. `times` are not read yet."""

    id: tuple[str, ...] = ()
    link: tuple[str, ...] = ()
    title: tuple[str, ...] = ()
    content: tuple[str, ...] = ()
    times: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Feed:
    """The entries of a feed in its own order, and the hubs (WebSub) that tell when there are new ones."""

    entries: tuple[FeedEntry, ...]
    hubs: tuple[str, ...] = ()


def read_feed(data: bytes, name: str = "''", *, repair: bool = False) -> Feed:
    """The feed in `data`, or InputError with a sentence that calls it `name`; in a second at most, whatever it is.

    With `repair`, XML that is broken in the usual ways is mended and read again.

    >>> read_feed(b"<rss><channel><item><guid>7</guid><title>New</title></item></channel></rss>").entries[0].title
    ('New',)
    """
    if data.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"{":
        return _json(data, name)
    if data.count(b"<") > MOST_MARKS or data.count(b"=") > MOST_SIGNS:
        raise _no_feed(name, f"it has more than {MOST_MARKS} marks")
    try:
        return _xml(data, name)
    except InputError:
        if not repair or data.count(b"&") > MOST_SIGNS:
            raise
    return _xml(_repaired(data), name)


def _xml(data: bytes, name: str) -> Feed:
    reader = _Reader(name)
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.characters
    # Entities that grow without end, or that read other files, need a document type: feeds do not.
    parser.StartDoctypeDeclHandler = reader.doctype
    try:
        for at in range(0, len(data), _PIECE):
            parser.Parse(data[at : at + _PIECE], False)
        parser.Parse(b"", True)
    except expat.ExpatError as error:
        raise _no_feed(name, f"its XML is broken ({error})") from None
    except (LookupError, ValueError, UnicodeError) as error:
        if isinstance(error, InputError):
            raise
        raise _no_feed(name, f"its text cannot be decoded ({error})") from None
    return Feed(tuple(reader.entries), tuple(reader.hubs))


class _Reader:
    """Collects the fields that are direct children of entries; deeper ones belong to what an entry was taken from."""

    def __init__(self, name: str) -> None:
        self.entries: list[FeedEntry] = []
        self.hubs: list[str] = []
        self._name = name
        self._path: list[str] = []
        #: how deep the entry is that we are in, the vocabulary it is written in, and its fields so far
        self._entry, self._home = 0, ""
        self._fields: dict[str, list[str]] = {}
        self._text: list[str] | None = None

    def doctype(self, *_: object) -> None:
        """Refuse it."""
        raise _no_feed(self._name, "it declares a document type, which may hide anything")

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        """An element begins."""
        home, _, local = name.rpartition(" ")
        local = local.lower()
        self._path.append(local)
        depth = len(self._path)
        if depth == 1 and local not in _ROOTS:
            raise _no_feed(self._name, f"it is <{local[:40]}>, not RSS or Atom")
        if depth > DEEPEST:
            raise _no_feed(self._name, f"it is nested more than {DEEPEST} deep")
        if not self._entry:
            if local in _ENTRIES:
                self._entry, self._home = depth, home
                about = attributes.get(_ABOUT)
                self._fields = {"id": [about]} if about else {}
            elif local == "link" and attributes.get("rel") == "hub" and attributes.get("href"):
                self.hubs.append(attributes["href"])
        elif depth > self._entry + 1:
            if self._text is not None:
                # inside a field: the markup is part of what it says
                self._text.append(f"<{local}{''.join(f' {k}={v!r}' for k, v in sorted(attributes.items()))}>")
        elif local in _FIELDS and (home == self._home or home in _KNOWN):
            there = attributes.get("href") or attributes.get("url") or attributes.get("src") or ""
            self._text = [there if attributes.get("rel", "alternate") in ("alternate", "enclosure") else ""]

    def characters(self, text: str) -> None:
        """Text, whole or a part."""
        if self._text is not None:
            self._text.append(text)

    def end(self, _: str) -> None:
        """An element ends."""
        depth, local = len(self._path), self._path.pop()
        if self._text is not None and depth == self._entry + 1:
            if text := "".join(self._text).strip():
                self._fields.setdefault(_FIELDS[local], []).append(text)
            self._text = None
        if depth == self._entry:
            self._entry = 0
            self.entries.append(FeedEntry(**{field: tuple(texts) for field, texts in self._fields.items()}))


def _repaired(data: bytes) -> bytes:
    declared = _ENCODING.search(data)
    try:
        text = data.decode(declared[1].decode() if declared else "utf-8-sig", "replace")
    except (LookupError, UnicodeError):
        text = data.decode("utf-8", "replace")
    text = _DECLARATION.sub("", text.removeprefix("\ufeff"))
    text = _DOCTYPE.sub("", _UNPRINTABLE.sub("", text), 1)
    return _AMPERSAND.sub(_named, text).strip().encode()


def _named(found: re.Match[str]) -> str:
    """`&nbsp;` as the character it means, a bare `&` as one."""
    meant = html.unescape(found[0]) if found[1] else ""
    return html.escape(meant, quote=False) if len(meant) == 1 else f"&amp;{found[1] or ''}"


def _json(data: bytes, name: str) -> Feed:
    if sum(map(data.count, (b"{", b"[", b","))) > MOST_MARKS:
        raise _no_feed(name, f"it has more than {MOST_MARKS} marks")
    try:
        feed: Any = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise _no_feed(name, f"its JSON is broken ({error})") from None
    items = feed.get("items")
    if not isinstance(items, list):
        raise _no_feed(name, "its JSON has no items")
    hubs = feed.get("hubs")
    hubs = [hub.get("url") for hub in hubs if isinstance(hub, dict)] if isinstance(hubs, list) else []
    return Feed(tuple(map(_json_entry, items)), tuple(hub for hub in hubs if isinstance(hub, str)))


def _json_entry(item: Any) -> FeedEntry:
    fields: dict[str, list[str]] = {}
    for key, field in _JSON_FIELDS.items():
        value = item.get(key) if isinstance(item, dict) else None
        if value and isinstance(value, str | int | float):
            fields.setdefault(field, []).append(str(value))
    return FeedEntry(**{field: tuple(texts) for field, texts in fields.items()})


def _no_feed(name: str, why: str) -> InputError:
    return InputError(sentence("feed", name, "cannot be read", why))
