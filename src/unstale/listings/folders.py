"""Folders of files as listings: on this machine, on FTP and SFTP servers, in buckets; those within are listings too."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

from unstale.errors import InputError, sentence
from unstale.listings.taking import Taker

#: where a percent sign in an address begins a code; names of objects are what they are
_CODED = ("file", "ftp", "sftp")


def read_folder(data: bytes, to: Taker) -> None:
    """Every file with its time, size and, where the store has one, its own tag: one JSON object for each name.

    >>> from unstale.listings.readers import read_listing
    >>> line = b'[{"name": "a b.csv", "kind": "file", "size": 7, "modified": 1714566600.0}]'
    >>> entry, = read_listing("folder", line, "sftp://example.org/pub/*.csv", now=2e9).entries
    >>> entry.address, entry.time
    ('sftp://example.org/pub/a%20b.csv', 1714566600.0)
    """
    inside = folder_of(to.base)
    coded = inside.partition("://")[0] in _CODED
    for one in _names(data):
        name, kind = str(one.get("name", "")), one.get("kind")
        address = inside + (quote(name) if coded else name)
        if not name or "/" in name:
            to.refused["not an address"] += 1
        elif kind == "folder":
            to.inner(address)
        elif kind == "file":
            time = one.get("modified")
            moved = float(time) if isinstance(time, int | float) else None
            # Without a tag of the store's own, time and size together tell that it is another.
            tag = one.get("tag") or f"{'' if moved is None else moved} {one.get('size', '')}"
            if not to.take(address, moved, str(tag)):
                return


def folder_of(address: str) -> str:
    """The folder that is looked at, with its slash: a pattern chooses among its names.

    >>> folder_of("s3://bucket/logs"), folder_of("file:///data/*.csv")
    ('s3://bucket/logs/', 'file:///data/')
    """
    head, _, last = address.rpartition("/")
    return f"{head}/" if "*" in last else f"{address.rstrip('/')}/"


def _names(data: bytes) -> list[dict[str, Any]]:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, list):
        remedy = "give the address of a folder, or say how it is read with --listing"
        raise InputError(sentence("collection", "as polled", "is no folder", remedy))
    return [one for one in found if isinstance(one, dict)]
