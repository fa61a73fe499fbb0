"""The changelog of a Python package index: what was released, uploaded or removed since a serial, over XML-RPC."""

from __future__ import annotations

import re
from urllib.parse import quote

from unstale.errors import InputError, sentence
from unstale.listings.markup import walk
from unstale.listings.packed import unpacked
from unstale.listings.records import serial_tag
from unstale.listings.refs import filled_in
from unstale.listings.taking import Taker

#: rows that an index answers with at most: as many, and there may be more
FULL = 50_000
#: where an index serves a project; an owner may say otherwise with the option `member`
_USUAL = "/simple/{project}/"
_SCALARS = frozenset({"int", "i4", "i8", "string", "nil", "boolean", "double", "dateTime.iso8601"})
_LAST, _SINCE = "changelog_last_serial", "changelog_since_serial"


def call(point: str) -> bytes:
    """What is asked: for all that came after the serial `point`; where there is none yet, for the last one.

    >>> call("7").decode()[59:]
    '<params><param><value><int>7</int></value></param></params></methodCall>'
    """
    known = _number(point) is not None
    asked = f"<param><value><int>{point}</int></value></param>" if known else ""
    name = _SINCE if known else _LAST
    return f"<methodCall><methodName>{name}</methodName><params>{asked}</params></methodCall>".encode()


def read_changelog(data: bytes, to: Taker) -> None:
    """Each project once, by its last row: name, version, seconds, what was done, serial. The cursor is the last serial.

    Members are the projects of the simple index; the option `member` says it otherwise, with {project} (as indexes
    spell it), {name} and {version}. A page that is full is not complete.

    >>> from unstale.listings.readers import read_listing
    >>> row = "".join(f"<value>{one}</value>" for one in (
    ...     "<string>A.b</string>", "1.0", "<int>1714566600</int>", "new release", "<int>42</int>"))
    >>> rows = f"<value><array><data>{row}</data></array></value>"
    >>> answer = f"<methodResponse><params><param><value><array><data>{rows}</data></array></value></param></params>"
    >>> told = read_listing("changelog", f"{answer}</methodResponse>".encode(), "https://example.org/rpc", now=2e9)
    >>> told.entries[0].address, told.entries[0].time, told.entries[0].tag, told.cursor
    ('https://example.org/simple/a-b/', 1714566600.0, 'serial 42', '42')
    """
    answer = _ChangelogAnswer()
    walk(unpacked(data), answer.end, "changelog")
    if answer.fault:
        raise InputError(sentence("changelog", "as asked for", "was not given", _one_line(answer.fault)))
    if not answer.listed and answer.last is None:
        remedy = "give the address at which the index answers XML-RPC"
        raise InputError(sentence("collection", "as polled", "is no changelog", remedy))
    shape = str(to.options.get("member") or _USUAL)
    #: by the name that all spellings of it share
    latest = dict[str, tuple[int, list[str]]]()
    for row in answer.rows:
        serial = _number(row[4]) if len(row) == 5 else None
        if serial is None or not row[0]:
            to.refused["no row"] += 1
        elif serial >= latest.get(project := re.sub(r"[-_.]+", "-", row[0]).lower(), (-1, row))[0]:
            latest[project] = serial, row
    last = max((serial for serial, _ in latest.values()), default=answer.last)
    to.cursor = None if last is None else str(last)
    to.complete = len(answer.rows) < FULL
    for project, (serial, row) in latest.items():
        at = _number(row[2])
        told = {"name": row[0], "version": row[1], "project": project}
        address = filled_in(shape, {key: quote(text, safe="") for key, text in told.items()})
        if not to.take(address, None if at is None else float(at), serial_tag(serial)):
            return


class _ChangelogAnswer:
    """An answer as it is walked through: the rows of an array of arrays, or one number; or why there is none."""

    def __init__(self) -> None:
        self.rows: list[list[str]] = []
        #: whether it is an array at all; one may be empty
        self.listed = False
        self.last: int | None = None
        self.fault = ""
        self._row: list[str] = []
        #: what stands within the value that ends next
        self._scalar: str | None = None

    def end(self, path: list[str], text: str) -> bool:
        name, depth = path[-1], path.count("array")
        if name in _SCALARS:
            self._scalar = text
        elif name == "value":
            told, self._scalar = text if self._scalar is None else self._scalar, None
            if "fault" in path:
                # Its number says less than its words.
                self.fault = max(self.fault, told, key=len)
            elif depth == 2:
                self._row.append(told)
            elif depth == 0:
                self.last = _number(told)
        elif name == "data" and depth == 2:
            self.rows.append(self._row)
            self._row = []
        elif name == "array":
            self.listed = True
            # Behind an array there is no text of its value's own.
            self._scalar = ""
        return True


def _number(text: str) -> int | None:
    """A number as indexes count: whole, from 0 on, in 63 bits."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None


def _one_line(text: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in text[:200]).split())
