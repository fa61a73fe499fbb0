"""Indexes of packages: Python's simple index, npm's changes, Debian's Packages and Release files."""

from __future__ import annotations

import html
import json
import re
from typing import Any
from urllib.parse import urljoin

from unstale.errors import InputError, sentence
from unstale.listings.packed import unpacked
from unstale.listings.records import serial_tag
from unstale.listings.taking import Taker

_LINK = re.compile(r"""<a\s(?:[^<>]{0,500}?\s)?href\s*=\s*["']([^"'<>]{1,2048})["'][^<>]{0,500}>""", re.I)
#: a line of checksums: digest, size, path
_SUM = re.compile(r" ([0-9a-f]{64})\s+(\d{1,18})\s+(\S{1,1024})\Z")
#: marks that a JSON listing may have: more than any has, and still read in seconds
MOST_MARKS = 20_000_000


def read_simple_index(data: bytes, to: Taker) -> None:
    """Projects with their serials, or files of a project with their hashes; in JSON, or in HTML without serials."""
    text = unpacked(data)
    if text.lstrip()[:1] != b"{":
        for found in _LINK.finditer(text.decode("utf-8", "replace")):
            target, _, mark = html.unescape(found[1]).partition("#")
            if not to.take(target, None, mark or None):
                return
        return
    page = parsed(text, "simple index")
    for project in _rows(page, "projects"):
        name = project.get("name")
        if isinstance(name, str) and not to.take(f"{name}/", None, serial_tag(project.get("_last-serial"))):
            return
    for file in _rows(page, "files"):
        hashes = file.get("hashes")
        digest = next(iter(hashes.values()), None) if isinstance(hashes, dict) else None
        when = file.get("upload-time")
        if isinstance(file.get("url"), str) and not to.take(
            file["url"], when if isinstance(when, str) else None, digest if isinstance(digest, str) else None
        ):
            return


def read_changes(data: bytes, to: Taker) -> None:
    """Documents that changed since a sequence number, as CouchDB and npm tell it; the cursor is where to go on."""
    page = parsed(unpacked(data), "list of changes")
    for change in _rows(page, "results"):
        name, seq = change.get("id"), change.get("seq")
        revisions = change.get("changes")
        first = revisions[0] if isinstance(revisions, list) and revisions and isinstance(revisions[0], dict) else {}
        tag = first.get("rev") or (None if seq is None else str(seq))
        if (
            isinstance(name, str)
            and not name.startswith("_design/")
            and not to.take(name, None, str(tag) if tag else None)
        ):
            return
    last = page.get("last_seq")
    to.cursor = None if last is None else str(last)[:4096]


def read_debian(data: bytes, to: Taker) -> None:
    """Packages: each file with its SHA256, from the archive's root on, above `dists/`. Release and InRelease: each
    index with its own, from the file's own directory on."""
    name = digest = ""
    here = to.base
    root = f"{here.partition('/dists/')[0]}/" if "/dists/" in here else here
    sums = False
    for line in unpacked(data).decode("utf-8", "replace").splitlines():
        field, colon, value = line.partition(":")
        if line.startswith(" "):
            if sums and (found := _SUM.match(line.rstrip())) and not to.take(found[3], None, found[1]):
                return
            continue
        sums = field == "SHA256" and not value.strip()
        if not line.strip():
            if name and not to.take(urljoin(root, name), None, digest or None):
                return
            name = digest = ""
        elif colon and field == "Filename":
            name = value.strip()
        elif colon and field == "SHA256":
            digest = value.strip()
    if name:
        to.take(urljoin(root, name), None, digest or None)


def parsed(data: bytes, what: str) -> dict[str, Any]:
    """A JSON object, within bounds."""
    if sum(map(data.count, (b"{", b"[", b","))) > MOST_MARKS:
        raise InputError(sentence(what, f"with more than {MOST_MARKS} marks", "is too large", "ask for it in parts"))
    try:
        page = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise InputError(sentence(what, "as given", "cannot be read", f"its JSON is broken ({error})")) from None
    if not isinstance(page, dict):
        raise InputError(sentence(what, "as given", "cannot be read", "its JSON is no object"))
    return page


def _rows(answer: dict[str, Any], name: str) -> list[dict[str, Any]]:
    rows = answer.get(name)
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
