"""Sitemaps: every <loc> is a source, or in an index another sitemap."""

from __future__ import annotations

from typing import Any

from unstale.lists.markup import walk
from unstale.lists.rows import ListReader


def read_sitemap(data: bytes, rows: ListReader, *, weigh: bool = False) -> list[tuple[int, str]]:
    """The sources of a sitemap; the sitemaps in it are returned with their lines.

    With `weigh`, a source weighs twice its <priority>, so that the usual 0.5 weighs 1. The other dates and rates in
    sitemaps are seldom true, and what polls teach is: they are not read.
    """
    inner: list[tuple[int, str]] = []
    fields: dict[str, Any] = {}

    def end(path: list[str], text: str, line: int) -> None:
        where, name = (path[-2] if len(path) > 1 else ""), path[-1]
        if name == "loc" and where == "url":
            fields["address"] = text
        elif name == "loc" and where == "sitemap":
            inner.append((line, text))
        elif name == "priority" and where == "url" and weigh:
            fields["weight"] = _doubled(text)
        elif name == "url":
            rows.take(line, fields)
            fields.clear()

    walk(data, rows, end=end)
    return inner


def _doubled(text: str) -> float | str:
    """What is not a number is left as it is, for the row to be refused."""
    try:
        return 2 * float(text)
    except ValueError:
        return text
