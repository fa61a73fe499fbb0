"""OPML, in which feed readers keep their subscriptions: outlines with an xmlUrl are feeds, folders are passed over.

What OPML has no word for stands in attributes `unstale:weight` and so on, which other readers ignore.
"""

from __future__ import annotations

from typing import Any

from unstale.errors import InputError
from unstale.lists.markup import walk
from unstale.lists.rows import Rows, known

PREFIX = "unstale:"


def read_opml(data: bytes, rows: Rows) -> None:
    """Every outline with an address, at whatever depth."""

    def begin(path: list[str], attributes: dict[str, str], line: int) -> None:
        # Readers write xmlUrl, xmlurl and XMLURL.
        own = {name.lower(): value for name, value in attributes.items()}
        if path[-1].lower() != "outline" or "xmlurl" not in own:
            return None
        address = own["xmlurl"]
        fields: dict[str, Any] = {"address": address, "kind": "feed"}
        title = own.get("title") or own.get("text")
        if title and title != address:
            fields["options"] = {"title": title}
        try:
            fields |= {known(n.removeprefix(PREFIX)): v for n, v in attributes.items() if n.startswith(PREFIX)}
        except InputError as error:
            return rows.refuse(line, str(error))
        return rows.take(line, fields)

    walk(data, rows, begin=begin)
