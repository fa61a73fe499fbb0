"""A page as a browser drew it: its markup and, behind it, its picture; both in one body that is still HTML.

The picture stands in the last comment, base64, where browsers, readers of text and readers of parts look past it.
"""

from __future__ import annotations

import base64
import binascii

MEDIA_TYPE = "text/html; charset=utf-8"
_BEGIN, _END = b"\n<!--unstale-picture:image/png:", b"-->\n"


def with_picture(markup: bytes, picture: bytes) -> bytes:
    """Markup and picture in one body.

    >>> apart(with_picture(b"<p>Trains</p>", b"PNG"))
    (b'<p>Trains</p>', b'PNG')
    """
    return markup + _BEGIN + base64.b64encode(picture) + _END


def apart(body: bytes) -> tuple[bytes, bytes | None]:
    """The markup of a body, and its picture if it has one.

    >>> apart(b"<p>Trains</p>")
    (b'<p>Trains</p>', None)
    """
    at = body.rfind(_BEGIN) if body.endswith(_END) else -1
    if at < 0:
        return body, None
    try:
        return body[:at], base64.b64decode(body[at + len(_BEGIN) : -len(_END)], validate=True)
    except binascii.Error:
        return body, None
