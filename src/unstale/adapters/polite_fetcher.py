"""Asking the site first: a fetcher that polls only what robots.txt allows, and passes on the pause that it asks for."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace

from unstale.adapters.robots import Robots
from unstale.errors import InputError
from unstale.keeper.outcomes import Answer
from unstale.ports import CallOff, Ended, Fetched, Fetcher, QuickFetcher, Request


class PoliteFetcher:
    """Looks through another fetcher at what a site's robots.txt allows. Both together keep to the poll's deadline."""

    def __init__(self, inner: Fetcher, robots: Robots, *, now: Callable[[], float] = time.time) -> None:
        self._inner, self._robots, self._now = inner, robots, now
        self._quick = inner if isinstance(inner, QuickFetcher) else None

    async def fetch(self, request: Request) -> Fetched:
        """Look once, if it is allowed."""
        begun = self._now()
        try:
            async with asyncio.timeout(request.seconds):
                permission = await self._robots.ask(request.address)
        except InputError as error:
            return Fetched(Answer.FAILED, begun, reason=str(error))
        except TimeoutError:
            return Fetched(Answer.FAILED, begun, reason=f"no answer about robots.txt within {request.seconds:g} s")
        if not permission.allowed:
            return Fetched(
                Answer.FAILED,
                begun,
                reason=permission.reason,
                retry_after=permission.retry_after,
                requests=permission.requests,
            )
        left = max(request.seconds - (self._now() - begun), 0.001)
        fetched = await self._inner.fetch(request if left == request.seconds else replace(request, seconds=left))
        if not (permission.delay or permission.requests):
            return fetched
        return replace(fetched, spacing=permission.delay, requests=fetched.requests + permission.requests)

    def begin(self, request: Request, ended: Ended) -> CallOff | None:
        """Look without being awaited, where the site's rules are known and allow it."""
        if self._quick is None:
            return None
        try:
            permission = self._robots.known(request.address)
        except InputError:
            return None
        if permission is None or not permission.allowed:
            return None
        delay = permission.delay
        if not delay:
            return self._quick.begin(request, ended)

        def spaced(found: Fetched | Exception) -> None:
            ended(found if isinstance(found, Exception) else replace(found, spacing=delay))

        return self._quick.begin(request, spaced)

    def forbids(self, address: str) -> str:
        """Why a site's rules, as far as they are known, do not allow an address; empty if they do, or are not known.

        A site that is in trouble forbids nothing for long.
        """
        permission = self._robots.known(address)
        lasting = permission is not None and not permission.allowed and permission.retry_after is None
        return permission.reason if lasting and permission is not None else ""

    async def close(self) -> None:
        """Give back the connections of the fetcher inside."""
        await self._inner.close()
