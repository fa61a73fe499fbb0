"""The files of the dashboard, read once. What is not in the table is not there, whatever a path looks like."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from unstale.server.headers import Field

_TYPES = {
    "html": b"text/html; charset=utf-8",
    "js": b"text/javascript; charset=utf-8",
    "css": b"text/css; charset=utf-8",
    "svg": b"image/svg+xml",
}
_FOLDERS = ("", "views/", "vendor/")
#: nothing comes from elsewhere, nothing inline runs, nobody frames it
POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; frame-src 'self'; "
    b"object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    b"require-trusted-types-for 'script'; trusted-types 'none'"
)
#: said with everything that the dashboard sends
SAID: tuple[Field, ...] = (
    (b"content-security-policy", POLICY),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"server", b"unstale"),
)


class File(NamedTuple):
    """One file as it is sent; its ETag is that of its bytes."""

    body: bytes
    etag: bytes
    fields: tuple[Field, ...]


@cache
def table() -> dict[str, File]:
    """Every file by the path it is served at.

    >>> sorted(path for path in table() if path.count("/") == 1), "/dashboard/app.js" in table()
    (['/'], True)
    """
    root = files(__package__) / "static"
    found = {}
    for folder in _FOLDERS:
        for one in (root / folder if folder else root).iterdir():
            ending = one.name.rpartition(".")[2]
            if one.is_file() and ending in _TYPES:
                path = "/" if one.name == "index.html" else f"/dashboard/{folder}{one.name}"
                found[path] = _file(one.read_bytes(), _TYPES[ending])
    return found


def _file(body: bytes, media_type: bytes) -> File:
    etag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'.encode()
    fields = (
        (b"content-type", media_type),
        (b"content-length", b"%d" % len(body)),
        (b"etag", etag),
        # Asked for each time, and mostly not sent again: an upgrade shows at once.
        (b"cache-control", b"no-cache"),
        *SAID,
    )
    return File(body, etag, fields)
