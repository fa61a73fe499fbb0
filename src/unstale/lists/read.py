"""Reading a list of sources, whatever it is: the format is told by its content and its name."""

from __future__ import annotations

import re
import sys
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from unstale.errors import InputError, require, sentence
from unstale.lists.archives import SQLITE, ZIP, monitors_in, watches_in
from unstale.lists.exports import exported_by, read_changedetection, read_uptime_kuma
from unstale.lists.opml import read_opml
from unstale.lists.rows import Check, ListReader, Parsed, column
from unstale.lists.sitemap import read_sitemap
from unstale.lists.tables import delimiter_of, read_csv, read_jsonl, read_parquet
from unstale.lists.text import read_text
from unstale.lists.urlwatch import is_urlwatch, read_urlwatch
from unstale.ports import Listing

#: bytes of a list, and sitemaps in an index, that are read
LIMIT, MOST_SITEMAPS = 2**30, 1000
#: what a packed list may unpack to
UNPACKED = 2**28
FORMATS = ("csv", "jsonl", "parquet", "opml", "sitemap", "text", "changedetection", "uptime-kuma", "urlwatch")
_ENDINGS = {
    ".csv": "csv",
    ".tsv": "csv",
    ".tab": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".txt": "text",
    ".text": "text",
    ".list": "text",
}
_ROOTS = {"opml": "opml", "urlset": "sitemap", "sitemapindex": "sitemap"}
_COMMENT = re.compile(r"<!--.*?(-->|$)", re.DOTALL)
_ROOT = re.compile(r"<(?:[A-Za-z][\w.-]*:)?([A-Za-z][\w.-]*)")
_BINARY = bytes(set(range(32)) - set(b"\t\n\f\r\x1b")) + b"\x7f"


def as_it_is(address: str, kind: str, options: Mapping[str, Any]) -> str:
    """The check that refuses nothing."""
    return address


def read_list(
    place: str | bytes,
    *,
    format: str | None = None,
    base: Listing | None = None,
    check: Check = as_it_is,
    load: Callable[[str], bytes] | None = None,
    weigh: bool = False,
) -> Parsed:
    """The sources in a file, at a web address, in standard input (`-`), or in the bytes themselves.

    Every line that breaks a rule is a problem, addresses that come twice too; nothing is raised for it. `base` has what
    a line leaves open (its kind "" means: by the address). `check` gives an address its one spelling or refuses it.
    `load` gets what is on the web, also the sitemaps of an index; without it only files are read.

    >>> read_list(b"https://example.org/news weight=3\\nexample.org\\n").listings[0].weight
    3.0
    """
    rows = ListReader(base or Listing("", ""), check)
    name = place if isinstance(place, str) else "list"
    data = unpacked(_bytes(place, load) if isinstance(place, str) else place, name)
    kind = format or format_of(name, data)
    require(kind in FORMATS, "format", repr(kind), "is unknown", f"choose one of {', '.join(FORMATS)}")
    unused: tuple[str, ...] = ()
    if kind == "parquet":
        unused = read_parquet(data, rows)
    elif kind == "opml":
        unused = read_opml(data, rows)
    elif kind == "sitemap":
        _follow(read_sitemap(data, rows, weigh=weigh), rows, load, weigh)
    else:
        text = decoded(data)
        readers = {
            "text": read_text,
            "csv": read_csv,
            "jsonl": read_jsonl,
            "changedetection": read_changedetection,
            "uptime-kuma": read_uptime_kuma,
            "urlwatch": read_urlwatch,
        }
        unused = readers[kind](text, rows) or ()
    if not rows.listings and not rows.problems:
        raise InputError(sentence("list", repr(name), "has no sources", "give at least one address"))
    return Parsed(rows.listings, rows.problems, unused)


def format_of(name: str, data: bytes) -> str:
    """The format of a list, by its content where that tells, otherwise by its name.

    >>> format_of("a.xml", b"<opml/>"), format_of("-", b"address,weight\\n"), format_of("a.txt", b"")
    ('opml', 'csv', 'text')
    """
    if data[:4] == b"PAR1":
        return "parquet"
    head = decoded(data[:4096]).lstrip()
    if head.startswith("<"):
        found = _ROOT.search(_COMMENT.sub("", head))
        root = found[1].lower() if found else ""
        if root in ("rss", "feed", "rdf"):
            raise InputError(sentence("list", repr(name), "is a feed, not a list of feeds", "add its address itself"))
        if root not in _ROOTS:
            raise InputError(sentence("list", repr(name), f"is <{root}>", "give OPML or a sitemap"))
        return _ROOTS[root]
    sample = data[:4096]
    if not data.startswith((b"\xff\xfe", b"\xfe\xff")) and len(sample.translate(None, _BINARY)) < 0.9 * len(sample):
        raise InputError(sentence("list", repr(name), "is not text", f"give one of {', '.join(FORMATS)}"))
    if known := _ENDINGS.get(Path(name.removesuffix(".gz")).suffix.lower()):
        return known
    if head.startswith("{"):
        return exported_by(decoded(data)) or "jsonl"
    if is_urlwatch(head):
        return "urlwatch"
    header = head.partition("\n")[0]
    return "csv" if any(column(cell) == "address" for cell in header.split(delimiter_of(header))) else "text"


def decoded(data: bytes) -> str:
    """The text in bytes: UTF-8, or UTF-16 with its mark. What is neither is kept as half characters, and refused later.

    >>> decoded(b"\\xef\\xbb\\xbfaddress")
    'address'
    """
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", "replace")
    return data.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape")


def unpacked(data: bytes, name: str) -> bytes:
    """What gzip has packed, unless it is a bomb, or what a file of another monitor holds; anything else as it is."""
    if data.startswith((ZIP, SQLITE)):
        return (watches_in if data.startswith(ZIP) else monitors_in)(data, name)
    parts, left = [], UNPACKED
    while data[:2] == b"\x1f\x8b":
        unpacker = zlib.decompressobj(31)
        try:
            parts.append(unpacker.decompress(data, left + 1))
        except zlib.error as error:
            raise InputError(sentence("list", repr(name), f"cannot be unpacked ({error})", "pack it again")) from None
        left -= len(parts[-1])
        require(left >= 0, "list", repr(name), f"unpacks to more than {UNPACKED:,} bytes", "unpack and split it")
        require(unpacker.eof, "list", repr(name), "is packed, but its end is missing", "get it again")
        data = unpacker.unused_data
    return b"".join(parts) if parts else data


def _bytes(place: str, load: Callable[[str], bytes] | None) -> bytes:
    if place == "-":
        return _limited(sys.stdin.buffer, "from standard input")
    if place.lower().startswith(("http://", "https://")):
        require(load, "list", repr(place[:80]), "is on the web", "save it and give the file")
        assert load is not None
        return load(place)
    require("\0" not in place, "list", repr(place[:80]), "is no path", "check it")
    try:
        with Path(place).open("rb") as file:
            return _limited(file, repr(place))
    except OSError as error:
        why = (error.strerror or "unreadable").lower()
        raise InputError(sentence("list", repr(place), f"cannot be read ({why})", "check the path")) from None


def _limited(file: BinaryIO, name: str) -> bytes:
    data = file.read(LIMIT + 1)
    require(len(data) <= LIMIT, "list", name, f"has more than {LIMIT:,} bytes", "split it")
    return data


def _follow(inner: list[tuple[int, str]], rows: ListReader, load: Callable[[str], bytes] | None, weigh: bool) -> None:
    """The sitemaps of an index, one level deep."""
    require(not inner or load, "list", f"of {len(inner):,} sitemaps", "is an index", "give these sitemaps one by one")
    require(
        len(inner) <= MOST_SITEMAPS,
        "list",
        f"of {len(inner):,} sitemaps",
        f"is longer than {MOST_SITEMAPS:,}",
        "give them one by one",
    )
    for line, address in inner:
        rows.place = ""
        try:
            data = unpacked(load(address) if load else b"", address)
        except InputError as error:
            rows.refuse(line, str(error))
            continue
        rows.place = address
        for deeper, _ in read_sitemap(data, rows, weigh=weigh):
            rows.refuse(deeper, "it is an index inside an index: give it on its own")
