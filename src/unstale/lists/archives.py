"""What other monitors keep that is no text: changedetection.io's backup (ZIP), Uptime Kuma's database (SQLite).

Rules of this file:
1. Both become the JSON that older versions of theirs exported, so that it is understood in one place.
2. Files come from strangers: how much is unpacked and how long a database may compute is bounded, and nothing else of
   them is opened.
"""

from __future__ import annotations

import io
import json
import re
import sqlite3
import zipfile
import zlib
from contextlib import closing
from typing import Any

from unstale.errors import InputError, require, sentence

ZIP, SQLITE = b"PK\x03\x04", b"SQLite format 3\0"
#: bytes of what is of interest in a backup, and of one file there
_WHOLE, _ONE = 2**28, 2**24
_PART = re.compile(r"([^/]+)/(watch|tag)\.json")
#: thousands of steps that a database may take
_STEPS = 5_000


def watches_in(data: bytes, name: str) -> bytes:
    """The watches and tags of a backup of changedetection.io: one file each, or all in one in older ones."""
    kept: dict[str, dict[str, Any]] = {"watch": {}, "tag": {}}
    left = _WHOLE
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as packed:
            for one in packed.infolist():
                part = _PART.fullmatch(one.filename)
                if part is None and one.filename != "url-watches.json":
                    continue
                with packed.open(one) as file:
                    text = file.read(min(left, _WHOLE if part is None else _ONE) + 1)
                left -= len(text)
                if part is None:
                    return text
                require(left >= 0, "list", repr(name), f"unpacks to more than {_WHOLE:,} bytes", "unpack and split it")
                kept[part[2]][part[1]] = json.loads(text)
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError, ValueError, RecursionError):
        raise InputError(sentence("list", repr(name), "cannot be unpacked", "make the backup again")) from None
    require(
        kept["watch"],
        "list",
        repr(name),
        "is a ZIP without watches of changedetection.io",
        "give what is in it",
    )
    return json.dumps({"watching": kept["watch"], "settings": {"application": {"tags": kept["tag"]}}}).encode()


def monitors_in(data: bytes, name: str) -> bytes:
    """The monitors and tags of a database of Uptime Kuma."""
    # A database that was written ahead of itself is opened as one that was not: what stood beside it is not here.
    data = data[:18] + b"\1\1" + data[20:]
    with closing(sqlite3.connect(":memory:")) as db:
        steps = iter(range(_STEPS))
        try:
            db.deserialize(data)
            db.set_progress_handler(lambda: next(steps, None) is None, 1000)
            db.execute("PRAGMA trusted_schema = OFF")
            db.row_factory = sqlite3.Row
            monitors = [dict(row) for row in db.execute("SELECT * FROM monitor ORDER BY id")]
            tags: dict[Any, list[Any]] = {}
            for monitor, tag in db.execute(
                "SELECT m.monitor_id, t.name FROM monitor_tag m JOIN tag t ON t.id = m.tag_id ORDER BY m.id"
            ):
                tags.setdefault(monitor, []).append({"name": tag})
        except (sqlite3.Error, ValueError, OverflowError, MemoryError):
            raise InputError(
                sentence("list", repr(name), "is no database of Uptime Kuma", "give its kuma.db, or one of the formats")
            ) from None
    found = [{**one, "tags": tags.get(one.get("id"), [])} for one in monitors]
    return json.dumps({"monitorList": found}, default=str).encode()
