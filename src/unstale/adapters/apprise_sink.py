"""Telling of changes by mail, chat or push: whatever service Apprise knows, named by one address.

Rules of this file:
1. It is taken when the service took it; a service that fails is told again, in order.
2. The address is a secret as a whole, and shows nowhere: it is known by its scheme and a mark.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from hashlib import sha256

from unstale.adapters.event_words import in_words
from unstale.errors import InputError, MissingExtraError, sentence
from unstale.ports import Event

#: seconds that one message may take, and events that one message tells of where they wait for each other
SECONDS, TOGETHER = 60.0, 50
#: a title and a text for events
Words = Callable[[Sequence[Event]], Awaitable[tuple[str, str]]]


class AppriseSink:
    """Sends a message per event, or one for many if they are told `together`."""

    width = 1

    def __init__(
        self, address: str, *, together: bool = False, seconds: float = SECONDS, words: Words | None = None
    ) -> None:
        try:
            import apprise
        except ImportError:
            raise MissingExtraError("apprise", "notify") from None
        # Its own words go to who asks for them, and not to the terminal: they may name what is secret.
        logging.getLogger("apprise").addHandler(logging.NullHandler())
        scheme = address.partition(":")[0]
        self._services = apprise.Apprise()
        if not self._services.add(address):
            shown = repr(scheme[:20]) if scheme.isalnum() else "(not shown)"
            remedy = "see Apprise's list of services, like mailto:// or ntfy://"
            raise InputError(sentence("notify", shown, "is no address of a service", remedy))
        self._plain, self._seconds = apprise.NotifyFormat.TEXT, seconds
        self.name = f"notify {scheme} {sha256(address.encode()).hexdigest()[:8]}"
        self.batch = TOGETHER if together else 1
        self._words = words

    async def tell(self, events: Sequence[Event]) -> tuple[int, str]:
        """One message for these; how many were taken, all or none, and why not."""
        title, body = in_words(events) if self._words is None else await self._words(events)
        try:
            async with asyncio.timeout(self._seconds):
                taken = await asyncio.to_thread(
                    self._services.notify, body=body, title=title, body_format=self._plain, interpret_escapes=False
                )
        except TimeoutError:
            return 0, f"{self.name}: it took more than {self._seconds:g} s"
        # Services are others' code: whatever one of them raises is a failure of its own.
        except Exception as error:
            return 0, f"{self.name}: {type(error).__name__}"
        return (len(events), "") if taken else (0, f"{self.name}: the service did not take it")

    async def close(self) -> None:
        """Nothing to give back."""
