"""Writing a list of sources so that reading it gives the same ones; a file appears whole or not at all."""

from __future__ import annotations

import csv
import io
import json
import math
import shlex
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TextIO
from xml.sax.saxutils import quoteattr

from unstale.addresses import host_of, kind_of
from unstale.errors import InputError, sentence
from unstale.kinds import KINDS
from unstale.lists.opml import PREFIX
from unstale.ports import Listing, tags_of
from unstale.secrecy import shown_address
from unstale.writing import whole_file

COLUMNS = ("address", "kind", "weight", "cost", "host", "min_interval", "max_interval", "paused", "options")


def write_list(listings: Iterable[Listing], path: str) -> int:
    """Write sources to a .csv, .jsonl, .opml or .txt file; how many."""
    file = Path(path)
    try:
        put = _WRITERS[file.suffix.lower()]
    except KeyError:
        raise InputError(
            sentence("output", repr(path), "has an unknown ending", "use .csv, .jsonl, .opml or .txt")
        ) from None
    with whole_file(path) as raw:
        out = io.TextIOWrapper(raw, encoding="utf-8", newline="")
        try:
            return put(listings, out)
        finally:
            # what is left goes to `raw`, which is closed by who opened it
            out.detach()


def fields(listing: Listing) -> dict[str, Any]:
    """A listing as columns, without those that reading would fill in by itself.

    >>> fields(Listing("https://example.org/news", weight=3.0, host="example.org", shortest=900.0))
    {'address': 'https://example.org/news', 'weight': 3.0, 'min_interval': '900s'}
    """
    found: dict[str, Any] = {"address": shown_address(listing.address)}
    if listing.kind != _usual_kind(listing.address):
        found["kind"] = listing.kind
    if listing.weight != 1.0:
        found["weight"] = listing.weight
    if listing.cost != 1.0 or (listing.kind in KINDS and KINDS[listing.kind].cost != 1.0):
        found["cost"] = listing.cost
    if listing.host != host_of(listing.address):
        found["host"] = listing.host
    if listing.shortest > 0.0:
        found["min_interval"] = f"{_plain(listing.shortest)}s"
    if listing.longest < math.inf:
        found["max_interval"] = f"{_plain(listing.longest)}s"
    if listing.paused:
        found["paused"] = True
    if listing.options:
        found["options"] = dict(listing.options)
    return found


def _csv(listings: Iterable[Listing], out: TextIO) -> int:
    writer, count = csv.writer(out, lineterminator="\n"), 0
    writer.writerow(COLUMNS)
    for listing in listings:
        known = _texts(listing)
        writer.writerow([known.get(name, "") for name in COLUMNS])
        count += 1
    return count


def _jsonl(listings: Iterable[Listing], out: TextIO) -> int:
    count = 0
    for listing in listings:
        out.write(json.dumps(fields(listing)) + "\n")
        count += 1
    return count


def _text(listings: Iterable[Listing], out: TextIO) -> int:
    count = 0
    for listing in listings:
        known = _texts(listing)
        more = [f"{name}={shlex.quote(text)}" for name, text in known.items() if name != "address"]
        address = known["address"]
        quoted = shlex.quote(address) if any(c.isspace() for c in address) else address
        out.write(" ".join([quoted, *more]) + "\n")
        count += 1
    return count


def _opml(listings: Iterable[Listing], out: TextIO) -> int:
    count = 0
    out.write('<?xml version="1.0" encoding="UTF-8"?>\n<opml version="2.0" xmlns:unstale="urn:unstale">\n')
    out.write("<head><title>Sources</title></head>\n<body>\n")
    # Folders of a reader are tags here: a source stands in that of its first one, and keeps all of them.
    folders: dict[str, list[str]] = {}
    for listing in listings:
        known = _texts(listing)
        # The text is for people; the title that counts stands in the options.
        title = "".join(c for c in str(listing.options.get("title", "")) if c.isprintable())
        own = {"type": "rss", "text": title or known["address"], "xmlUrl": known.pop("address")}
        own |= {f"{PREFIX}{name}": text for name, text in known.items()}
        own[f"{PREFIX}kind"] = listing.kind
        line = f"<outline {' '.join(f'{name}={quoteattr(text)}' for name, text in own.items())}/>\n"
        folders.setdefault(_folder(listing), []).append(line)
        count += 1
    for name, lines in folders.items():
        out.writelines([f"<outline text={quoteattr(name)}>\n", *lines, "</outline>\n"] if name else lines)
    out.write("</body>\n</opml>\n")
    return count


def _folder(listing: Listing) -> str:
    """The folder of a source: its first tag, if that reads back as it is."""
    tag = next(iter(tags_of(listing.options)), "")
    return tag if tag == tag.strip() and tag.isprintable() else ""


_WRITERS: dict[str, Callable[[Iterable[Listing], TextIO], int]] = {
    ".csv": _csv,
    ".jsonl": _jsonl,
    ".ndjson": _jsonl,
    ".opml": _opml,
    ".txt": _text,
}


def _texts(listing: Listing) -> dict[str, str]:
    return {name: _plain(value) for name, value in fields(listing).items()}


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "yes"
    if isinstance(value, float):
        return repr(value).removesuffix(".0")
    return value if isinstance(value, str) else json.dumps(value)


def _usual_kind(address: str) -> str:
    try:
        return kind_of(address)
    except InputError:
        return ""
