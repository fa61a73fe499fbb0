"""Objects in S3, Google Cloud Storage and Azure, through fsspec's drivers. A folder is what begins with its name."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from datetime import datetime
from typing import Any

from unstale.adapters.addresses import Gate, web_address
from unstale.adapters.file_places import CHUNK, FolderEntry, Found, Leash, Spot, permitted
from unstale.errors import InputError
from unstale.logs import log
from unstale.moments import moment

_DRIVERS = {"s3": "s3fs", "gs": "gcsfs", "gcs": "gcsfs", "az": "adlfs", "abfs": "adlfs"}
#: what the drivers call our options
_NAMES = {
    "s3": {"key": "key", "secret": "secret", "token": "token", "endpoint": "endpoint_url"},
    "gs": {"token": "token"},
    "az": {"account": "account_name", "secret": "account_key", "token": "sas_token"},
}
_TAGS = ("ETag", "etag", "generation", "md5Hash", "content_md5")
_TIMES = ("LastModified", "last_modified", "updated", "mtime")
#: stores are kept, for each has its own connections; so many at most
MOST_STORES = 32


class ObjectPlace:
    """An object, or what begins with its name and a slash.

    Options: `key`, `secret`, `token`, `endpoint`, `region` (S3); `token` (Google); `account`, `secret`, `token`
    (Azure). Without any the store is asked as a stranger; `ambient: true` uses what the machine has.
    """

    def __init__(
        self, where: Spot, options: Mapping[str, Any], gate: Gate, leash: Leash, stores: MutableMapping[Any, Any]
    ) -> None:
        self._leash = leash
        self._path = f"{where.host}/{where.path}".rstrip("/")
        given = _given(where.scheme, options)
        if endpoint := given.get("endpoint_url"):
            # Judged now, dialled later and by name: the driver offers no other way.
            there = web_address(str(endpoint))
            permitted(there.host.strip("[]"), int(there.origin.rpartition(":")[2]), gate)
        known = (where.scheme, repr(sorted(given.items())))
        if known not in stores:
            while len(stores) >= MOST_STORES:
                stores.pop(next(iter(stores)))
            stores[known] = _store(where.scheme, given)
        self._store = stores[known]

    def look(self) -> Found:
        """What is there now, by the store's own tag."""
        info = self._ask(self._store._info, self._path)
        tag = next((str(info[key]) for key in _TAGS if info.get(key)), "")
        size, modified = int(info.get("size") or 0), _modified(info)
        media_type = str(info.get("ContentType") or info.get("contentType") or "")
        return Found(
            tag or f"{modified} {size}", bool(tag), size, modified, modified, info["type"] == "directory", media_type
        )

    def read(self, limit: int) -> Iterator[bytes]:
        """The content in pieces from S3, whose endpoint may be a stranger's; in one from the others."""
        if isinstance(self._store.protocol, tuple) and "s3" in self._store.protocol:
            file = self._ask(self._store.open_async, self._path)
            try:
                while piece := self._ask(file.read, CHUNK):
                    yield piece
            finally:
                if file.r is not None:
                    self._store.loop.call_soon_threadsafe(file.r.close)
        elif self.look().size:  # stores refuse a range of nothing
            yield self._ask(self._store._cat_file, self._path, start=0, end=limit + 1)

    def members(self) -> Iterator[FolderEntry]:
        """The names up to the next slash."""
        for info in self._ask(self._store._ls, self._path, detail=True):
            name = str(info["name"]).rstrip("/").rpartition("/")[2]
            kind = "folder" if info["type"] == "directory" else "file"
            tag = next((str(info[key]) for key in _TAGS if info.get(key)), "")
            yield FolderEntry(name, kind, int(info.get("size") or 0), _modified(info), tag)

    def close(self) -> None:
        """Nothing: stores are kept."""

    def _ask(self, what: Callable[..., Any], *given: Any, **named: Any) -> Any:
        """What the driver answers in the time that is left; its own words may tell more than a reason should."""
        from fsspec.asyn import sync

        left = self._leash.left

        async def within() -> Any:
            # Not sync's own timeout, which leaves what it waited for running.
            return await asyncio.wait_for(what(*given, **named), left)

        self._store.invalidate_cache()
        try:
            return sync(self._store.loop, within)
        except OSError:
            raise
        except Exception as error:
            log("driver_failed", {"kind": "file", "place": "objects"})
            raise InputError(f"the exchange broke off ({type(error).__name__})") from None


def _given(scheme: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Our options as the driver's."""
    kind = {"gcs": "gs", "abfs": "az"}.get(scheme, scheme)
    given = {theirs: options[ours] for ours, theirs in _NAMES[kind].items() if options.get(ours)}
    stranger = not options.get("ambient") and not {"secret", "token"} & set(options)
    if kind == "s3" and options.get("region"):
        given["client_kwargs"] = {"region_name": options["region"]}
    if stranger:
        given |= {"token": "anon"} if kind == "gs" else {"anon": True}
    return given


def _store(scheme: str, given: Mapping[str, Any]) -> Any:
    try:
        import fsspec

        kind: Any = fsspec.get_filesystem_class(scheme)
    except ImportError:
        raise InputError(f"{scheme} needs a driver: pip install {_DRIVERS[scheme]}") from None
    extra = {"config_kwargs": {"connect_timeout": 10, "read_timeout": 30, "retries": {"max_attempts": 1}}}
    try:
        return kind(skip_instance_cache=True, use_listings_cache=False, **given, **(extra if scheme == "s3" else {}))
    except Exception as error:
        log("driver_failed", {"kind": "file", "place": scheme})
        raise InputError(f"its driver refused the options ({type(error).__name__}): check them") from None


def _modified(info: Mapping[str, Any]) -> float | None:
    when = next((info[key] for key in _TIMES if info.get(key)), None)
    if isinstance(when, datetime):
        return when.timestamp()
    seconds, zoneless = moment(when) if isinstance(when, str) else (float("nan"), True)
    return None if zoneless or seconds != seconds else seconds
