"""Polling files and objects: on this machine, on FTP and SFTP servers, in object stores. Nothing is ever written.

A look first asks for time and size, or the store's own tag; only what differs is read. The work is synchronous and
runs in threads, a few at most: one that hangs is left behind at its deadline and its connections are cut.
"""

from __future__ import annotations

import asyncio
import contextlib
import fnmatch
import json
import mimetypes
import os
import queue
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from unstale.adapters.addresses import Gate
from unstale.adapters.environment import filled
from unstale.adapters.file_places import Found, Leash, Place, Spot, granted_scheme, spot
from unstale.adapters.local_files import LocalPlace
from unstale.adapters.normalise import content_hash
from unstale.errors import InputError, sentence
from unstale.keeper.outcomes import Answer
from unstale.kinds import COMMON, KINDS
from unstale.logs import log
from unstale.ports import Fetched, Request

#: what was written less than so many seconds ago may be written again at the same time and size, by some clock
SETTLED = 60.0
#: a file that is written while it is read is read again, so often
TRIES = 3
SCHEMES = KINDS["file"].schemes
#: what a source's options may say about the way to it; `$NAME` stands for a value of the environment
OPTIONS = KINDS["file"].options.keys() - COMMON.keys()


class FileFetcher:
    """Looks at files, objects and folders; a folder, or a pattern like `folder/*.csv`, is the list of its names.

    Files of this machine must lie below `roots`, other `schemes` (of `SCHEMES`) are polled only if named. `gate` says
    which hosts may be dialled. At most `threads` looks go on at a time, those that hang included.
    """

    def __init__(
        self,
        gate: Gate | None = None,
        *,
        roots: Iterable[str | Path] = (),
        schemes: Iterable[str] = (),
        threads: int = 16,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._gate = gate or Gate()
        self._roots = tuple(Path(root).resolve() for root in roots)
        self._schemes = {"file", *schemes}
        if unknown := sorted(self._schemes - set(SCHEMES)):
            raise InputError(
                sentence("schemes", repr(unknown[0]), "is not polled", f"use some of {', '.join(SCHEMES)}")
            )
        self._now = now
        self._free = asyncio.Semaphore(threads)
        self._closed = False
        self._flights: set[asyncio.Future[Fetched]] = set()
        #: what threads wait for, and how many do; None ends one
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._idle = 0
        self._stores: dict[Any, Any] = {}

    async def fetch(self, request: Request) -> Fetched:
        """Look once; see `unstale.ports.Fetcher` for what is promised."""
        polled_at = self._now()
        label = ""
        try:
            where = spot(request.address)
            label = f"{where.label}: "
            granted_scheme(where, self._schemes)
            return await self._within(request.seconds, lambda leash: self._look(where, request, leash, polled_at))
        except InputError as error:
            reason = f"{label}{error}"
        except TimeoutError:
            reason = f"{label}no whole answer within {request.seconds:g} s"
        except FileNotFoundError:
            reason = f"{label}it does not exist"
        except PermissionError:
            reason = f"{label}it may not be read"
        except Exception as error:
            # What a driver says of its error may hold an address or a name; what kind it is does not.
            log("driver_failed", {"kind": "file", "place": label.rstrip(": ")})
            number = error.errno if isinstance(error, OSError) else None
            reason = f"{label}it could not be read ({os.strerror(number) if number else type(error).__name__})"
        return Fetched(Answer.FAILED, polled_at, reason=reason)

    async def close(self) -> None:
        """End what is in flight as FAILED, and all that comes."""
        self._closed = True
        for flight in self._flights:
            flight.cancel()
        for _ in range(self._idle):
            self._jobs.put(None)
        self._idle = 0
        self._stores.clear()

    async def _within(self, seconds: float, work: Callable[[Leash], Fetched]) -> Fetched:
        """What `work` returns in a thread, unless it takes too long or the fetcher is closed."""
        if self._closed:
            raise InputError("the fetcher is closed")
        leash = Leash(seconds)
        flight = asyncio.ensure_future(self._in_thread(lambda: work(leash)))
        self._flights.add(flight)
        try:
            async with asyncio.timeout(seconds):
                return await flight
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            raise InputError("the fetcher was closed before the answer came") from None
        finally:
            self._flights.discard(flight)
            leash.cut()

    async def _in_thread(self, work: Callable[[], Fetched]) -> Fetched:
        """Work in a thread, which becomes free when the work ends and not when we stop waiting for it."""
        await self._free.acquire()
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Fetched] = loop.create_future()

        def end(fetched: Fetched | None, error: BaseException | None) -> None:
            self._free.release()
            if self._closed:
                self._jobs.put(None)
            else:
                self._idle += 1
            if done.done():
                return
            if fetched is not None:
                done.set_result(fetched)
            else:
                done.set_exception(error or AssertionError())

        def run() -> None:
            fetched, fault = None, None
            try:
                fetched = work()
            except BaseException as error:
                fault = error
            if self._closed:
                # The loop may be gone before it can tell this thread to end.
                self._jobs.put(None)
            loop.call_soon_threadsafe(end, fetched, fault)

        if self._idle:
            self._idle -= 1
        else:
            try:
                # Not of a pool: those are waited for when the process ends, and one that hangs would hold it.
                threading.Thread(target=_serve, args=(self._jobs,), name="unstale-file", daemon=True).start()
            except RuntimeError:
                self._free.release()
                raise InputError("no thread could be started for it: too many are running") from None
        self._jobs.put(run)
        return await done

    def _look(self, where: Spot, request: Request, leash: Leash, polled_at: float) -> Fetched:
        with contextlib.closing(self._place(where, request, leash)) as place:
            found = place.look()
            if found.folder or where.pattern:
                return _listed(place, found, where, request, leash, polled_at)
            if request.etag == _validator(found.tag):
                return Fetched(Answer.UNCHANGED, polled_at, etag=request.etag, address=request.address)
            for _ in range(TRIES):
                body = _body(place, found, request.limit, leash)
                found, before = place.look(), found
                if found.tag == before.tag:
                    etag = _validator(found.tag, None if _settled(found, polled_at) else body)
                    break
            else:
                etag = None  # written all the while: no tag belongs to what was read
            # The same again, not settled yet. Once it is, the body goes out with a tag that needs no reading.
            if request.etag and request.etag == etag:
                return Fetched(Answer.UNCHANGED, polled_at, etag=etag, address=request.address, received=len(body))
            times = (found.modified,) if found.modified and 0.0 < found.modified < polled_at and etag else ()
            return Fetched(
                Answer.CHANGED,
                polled_at,
                body,
                found.media_type or _media_type(where.path),
                etag,
                changed_at=times,
                address=request.address,
                received=len(body),
            )

    def _place(self, where: Spot, request: Request, leash: Leash) -> Place:
        if where.scheme == "file":
            return LocalPlace(where.path, self._roots)
        options = {
            key: filled(value) if isinstance(value, str) else value
            for key, value in request.options.items()
            if key in OPTIONS
        }
        if where.scheme == "ftp":
            from unstale.adapters.ftp_files import FtpPlace

            return FtpPlace(where, options, self._gate, leash)
        if where.scheme == "sftp":
            from unstale.adapters.sftp_files import SftpPlace

            return SftpPlace(where, options, self._gate, leash)
        from unstale.adapters.object_files import ObjectPlace

        return ObjectPlace(where, options, self._gate, leash, self._stores)


def _serve(jobs: queue.SimpleQueue[Callable[[], None] | None]) -> None:
    # a loop that was left behind is closed, and takes no answer
    with contextlib.suppress(RuntimeError):
        while job := jobs.get():
            job()


def _body(place: Place, found: Found, limit: int, leash: Leash) -> bytes:
    held = bytearray()
    if found.size <= limit:
        for piece in place.read(limit):
            held += piece
            _ = leash.left
            if len(held) > limit:
                break
        else:
            return bytes(held)
    raise InputError(f"the body has more than {limit} bytes")


def _listed(place: Place, found: Found, where: Spot, request: Request, leash: Leash, polled_at: float) -> Fetched:
    """A folder as a body: one line of JSON for each name, in order."""
    lines, size, times = [], 0, [found.modified or 0.0]
    for member in place.members():
        _ = leash.left
        if where.pattern and not fnmatch.fnmatchcase(member.name, where.pattern):
            continue
        told = asdict(member)
        if not member.tag:
            del told["tag"]
        lines.append((member.name, json.dumps(told)))
        times.append(member.modified or 0.0)
        size += len(lines[-1][1]) + 2
        if size > request.limit:
            raise InputError(f"the body has more than {request.limit} bytes")
    body = ("[" + ",".join(f"\n{line}" for _, line in sorted(lines)) + "\n]\n").encode()
    etag = _validator("", body)
    if request.etag == etag:
        return Fetched(Answer.UNCHANGED, polled_at, etag=etag, address=request.address, received=len(body))
    latest = max(times)
    return Fetched(
        Answer.CHANGED,
        polled_at,
        body,
        "application/json",
        etag,
        address=request.address,
        changed_at=(latest,) if 0.0 < latest < polled_at else (),
        received=len(body),
    )


def _validator(tag: str, body: bytes | None = None) -> str:
    """A validator in the form of an ETag: the hash of a tag, and of the content where the tag is not enough."""
    short = content_hash(tag.encode())[:32]
    return f'"{short}"' if body is None else f'"{short}.{content_hash(body)[:32]}"'


def _settled(found: Found, now: float) -> bool:
    return found.exact or (found.written is not None and found.written < now - SETTLED)


def _media_type(path: str) -> str:
    kind, packed = mimetypes.guess_type(path, strict=False)
    return f"application/{packed}" if packed else kind or "application/octet-stream"
