"""One hop towards an origin: the contract that a client must keep for the proxy to use it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Protocol

Line = tuple[str, str]
#: hears of an interim answer: its status and its lines
Interim = Callable[[int, Sequence[Line]], None]


class Answered(Protocol):
    """An answer whose head is there and whose body is still coming; taking it raises OSError if it breaks off."""

    @property
    def status(self) -> int:
        """The final status, never 1xx."""

    @property
    def lines(self) -> Sequence[Line]:
        """The header lines as they were sent, repeated ones too; names in lower case."""

    @property
    def body(self) -> AsyncIterator[bytes]:
        """The body, not decoded."""

    @property
    def trailers(self) -> Sequence[Line]:
        """The lines behind the body, once it has been taken to its end; names in lower case."""

    async def close(self) -> None:
        """Want no more of the body; after its end this does nothing."""


class Upstream(Protocol):
    """Asks origins, many at a time.

    Promises: redirects are not followed and bodies not decoded; a body is not read much faster than it is taken;
    nothing is dialled that the settings do not allow; no header is added but Host and Content-Length. An origin that
    gives no answer is an OSError with one sentence, TimeoutError if the wait for it was in vain.
    """

    async def ask(
        self,
        method: str,
        address: str,
        lines: Sequence[Line],
        body: bytes | None = None,
        interim: Interim | None = None,
    ) -> Answered:
        """The answer once its head is there; of those that come before it `interim` hears, but for 100 and 101."""

    async def close(self) -> None:
        """Give back connections; what is under way breaks off."""
