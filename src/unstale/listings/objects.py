"""Pages of an object store's listing: the answer to ListObjectsV2, as S3 and its likes write it."""

from __future__ import annotations

from urllib.parse import quote

from unstale.listings.markup import walk
from unstale.listings.packed import unpacked
from unstale.listings.taking import Taker


def read_objects(data: bytes, to: Taker) -> None:
    """Every key with its time and ETag; the cursor is the token of the next page. `base` is where the bucket is."""
    own: dict[str, str] = {}
    scheme, _, place = to.base.partition("?")[0].partition("://")
    web = scheme in ("http", "https")
    bucket = place.rstrip("/") if web else place.partition("/")[0]
    more = {"truncated": False}

    def end(path: list[str], text: str) -> bool:
        name, where = path[-1], path[-2] if len(path) > 1 else ""
        if where == "Contents" and name in ("Key", "LastModified", "ETag"):
            own[name] = text
        elif name == "Contents":
            key, tag = own.pop("Key", ""), own.pop("ETag", "").strip('"')
            if not key.endswith("/"):
                to.take(f"{scheme}://{bucket}/{quote(key) if web else key}", own.pop("LastModified", None), tag or None)
            own.clear()
        elif name == "NextContinuationToken" and len(path) == 2:
            to.cursor = text[:4096] or None
        elif name == "IsTruncated" and len(path) == 2:
            more["truncated"] = text.lower() == "true"
        return True

    walk(unpacked(data), end, "object listing")
    if more["truncated"] and to.cursor is None:
        to.complete = False
