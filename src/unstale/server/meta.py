"""`_meta`: what the header fields of a copy say, as JSON, for who cannot read them or has a cache in between."""

from __future__ import annotations

import json

from unstale.ports import Edition, Head
from unstale.server.headers import SAFE, Believed, Field, expires_at, modified, names, nearest
from unstale.service.documents import iso


def meta(head: Head, edition: Edition, now: float, own: Believed) -> tuple[int, list[Field], bytes]:
    """A status, its fields and its body. Times are absolute, so that no cache on the way makes them wrong.

    `as_of` is when the copy was last known equal to its source, `fresh` how likely it still is, as `fresh_by` believes,
    which is nearest to it; `fresh_here` as we do.
    """
    via, near = names(edition.via), nearest(edition)
    best = own if near is None else near.at(now - head.checked)
    told = {
        "source": head.source,
        "version": edition.version,
        "as_of": iso(head.checked),
        "changed_at": iso(edition.taken_at),
        "modified_at": iso(modified(edition)),
        "expires_at": iso(expires_at(head)),
        "next_check_at": iso(head.due),
        "failures": head.failures,
        "fresh": round(best.fresh, 3),
        "fresh_by": best.by.strip('"'),
        "fresh_here": round(own.fresh, 3),
        "gap_seconds": round(best.gap),
        "told_at": iso(now),
        "via": via,
        "hops": len(via) + 1,
        "media_type": edition.media_type,
        "bytes": edition.size,
        "sha256": edition.digest.hex(),
    }
    body = json.dumps(told).encode()
    fields = [
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(body)),
        (b"cache-control", b"no-store"),
        *SAFE,
    ]
    return 200, fields, body
