"""What went wrong, as `application/problem+json` [RFC 9457]: one sentence, never HTML."""

from __future__ import annotations

import json
from http import HTTPStatus

from unstale.server.headers import SAFE, Field


def problem(status: int, detail: str, *more: Field) -> tuple[int, list[Field], bytes]:
    """A status, its fields and its body. `detail` is one sentence.

    >>> problem(404, "there is no source 7")[2]
    b'{"type": "about:blank", "title": "Not Found", "status": 404, "detail": "there is no source 7"}'
    """
    body = json.dumps(
        {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status, "detail": detail}
    ).encode()
    fields = [
        (b"content-type", b"application/problem+json"),
        (b"content-length", b"%d" % len(body)),
        (b"cache-control", b"no-store"),
        *SAFE,
        *more,
    ]
    return status, fields, body
