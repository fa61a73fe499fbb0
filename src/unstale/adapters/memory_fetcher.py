"""Sources that live in memory: the fake that ships, for tests, trials and examples."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from unstale.adapters.normalise import content_hash
from unstale.frozen import dataclass
from unstale.keeper.outcomes import Answer
from unstale.ports import Fetched, Request


@dataclass(frozen=True, slots=True)
class _Remembered:
    body: bytes = b""
    media_type: str = ""
    changed_at: float | None = None
    seconds: float = 0.0
    reason: str = ""
    retry_after: float | None = None


class MemoryFetcher:
    """Looks at what `put` and `fail` have set; each body's hash is its validator.

    >>> fetcher = MemoryFetcher(now=lambda: 7.0)
    >>> fetcher.put("memory:a", b"hello")
    >>> asyncio.run(fetcher.fetch(Request("memory:a"))).body
    b'hello'
    """

    def __init__(self, *, now: Callable[[], float] = time.time) -> None:
        self._now = now
        self._held: dict[str, _Remembered] = {}
        self._closed = asyncio.Event()
        #: every request, in order
        self.asked: list[Request] = []

    def put(
        self,
        address: str,
        body: bytes,
        *,
        media_type: str = "text/plain",
        changed_at: float | None = None,
        seconds: float = 0.0,
    ) -> None:
        """From now on the source has this body, and takes so many seconds to send it."""
        self._held[address] = _Remembered(body, media_type, changed_at, seconds)

    def fail(self, address: str, reason: str, *, retry_after: float | None = None) -> None:
        """From now on the source fails with this reason."""
        self._held[address] = _Remembered(reason=reason, retry_after=retry_after)

    async def fetch(self, request: Request) -> Fetched:
        """Look once; see `unstale.ports.Fetcher` for what is promised."""
        polled_at = self._now()
        self.asked.append(request)
        held = self._held.get(request.address, _Remembered(reason="there is no such source in memory"))
        reason = held.reason or await self._arrival(held, request)
        if reason:
            return Fetched(Answer.FAILED, polled_at, reason=reason, retry_after=held.retry_after)
        etag = f'"{content_hash(held.body)}"'
        if request.etag == etag:
            return Fetched(Answer.UNCHANGED, polled_at, etag=etag, address=request.address)
        times = () if held.changed_at is None else (held.changed_at,)
        return Fetched(
            Answer.CHANGED,
            polled_at,
            held.body,
            held.media_type,
            etag,
            changed_at=times,
            address=request.address,
            received=len(held.body),
        )

    async def close(self) -> None:
        """End what is in flight as FAILED, and all that comes."""
        self._closed.set()

    async def _arrival(self, held: _Remembered, request: Request) -> str:
        """Why the body does not arrive, empty if it does."""
        if held.seconds and not self._closed.is_set():
            try:
                await asyncio.wait_for(self._closed.wait(), min(held.seconds, request.seconds))
            except TimeoutError:
                if held.seconds > request.seconds:
                    return f"no whole answer within {request.seconds:g} s"
        if self._closed.is_set():
            return "the fetcher is closed"
        return f"the body has more than {request.limit} bytes" if len(held.body) > request.limit else ""
