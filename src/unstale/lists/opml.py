"""OPML, in which feed readers keep their subscriptions: outlines with an xmlUrl are feeds, others are folders.

A feed's folders become its tags; one that stands in several folders is one source with the tags of all of them.
What OPML has no word for stands in attributes `unstale:weight` and so on, which other readers ignore; what others write
so is in `opml_readers`.
"""

from __future__ import annotations

from typing import Any

from unstale.errors import InputError
from unstale.lists.markup import walk
from unstale.lists.opml_readers import taken
from unstale.lists.rows import ListReader, known

PREFIX = "unstale:"


def read_opml(data: bytes, rows: ListReader) -> tuple[str, ...]:
    """Every outline with an address, at whatever depth; the names of what is said of them and was not taken over."""
    unused: set[str] = set()
    #: the folders that are open, with their depth
    folders: list[tuple[int, str]] = []

    def begin(path: list[str], attributes: dict[str, str], line: int) -> None:
        # Readers write xmlUrl, xmlurl and XMLURL.
        own = {name.lower(): value for name, value in attributes.items()}
        if path[-1].lower() != "outline":
            return None
        while folders and folders[-1][0] >= len(path):
            folders.pop()
        title = (own.get("title") or own.get("text") or "").strip()
        more, left = taken(attributes)
        unused.update(left)
        if "xmlurl" not in own:
            return folders.append((len(path), title))
        address = own["xmlurl"]
        fields: dict[str, Any] = {"address": address, "kind": "feed"}
        tags = list(dict.fromkeys(name for _, name in folders if name))
        options = {"title": title if title != address else "", "tags": tags, "normalise": more.pop("normalise", {})}
        if any(options.values()):
            fields["options"] = {name: value for name, value in options.items() if value}
        fields |= more
        try:
            fields |= {known(n.removeprefix(PREFIX)): v for n, v in attributes.items() if n.startswith(PREFIX)}
        except InputError as error:
            return rows.refuse(line, str(error))
        return rows.take(line, fields, merge=True)

    walk(data, rows, begin=begin)
    return tuple(sorted(unused))
