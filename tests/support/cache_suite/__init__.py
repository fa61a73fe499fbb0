"""What tests of the proxy share: an origin that follows a script, and a clock that is set by hand."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from email.utils import formatdate

from unstale.server.proxy.cache import Cache
from unstale.server.proxy.fields import Fields, directives
from unstale.server.proxy.origin import Asked, Served
from unstale.server.proxy.upstream import Interim

#: where scripted origins are, and when scripts begin
HERE, BEGIN = "http://origin.example/a", 1_700_000_000.0


@dataclass
class Said:
    """One answer of a script; keywords with underscores are header names."""

    status: int
    lines: list[tuple[str, str]]
    content: bytes = b"body"
    #: raised after this many bytes
    breaks_after: int | None = None
    closed: bool = False
    trailers: Sequence[tuple[str, str]] = ()

    @property
    def body(self) -> AsyncIterator[bytes]:
        return self._pieces()

    async def _pieces(self) -> AsyncIterator[bytes]:
        for at in range(0, len(self.content), 65_536):
            await asyncio.sleep(0)
            if self.breaks_after is not None and at >= self.breaks_after:
                raise ConnectionError("origin.example: the exchange broke off")
            yield self.content[at : at + 65_536]

    async def close(self) -> None:
        self.closed = True


def said(status: int = 200, content: bytes = b"body", *lines: tuple[str, str], **headers: str) -> Said:
    """An answer; `cache_control="max-age=5"` becomes `cache-control: max-age=5`."""
    named = [(name.replace("_", "-"), value) for name, value in headers.items()]
    return Said(status, [*lines, *named], content)


@dataclass
class Script:
    """An upstream that gives these answers in turn; an exception is raised."""

    answers: list[Said | OSError]
    now: float = BEGIN
    delay: float = 0.0
    asked: list[tuple[str, str, Fields]] = field(default_factory=list)

    async def ask(
        self,
        method: str,
        address: str,
        lines: Sequence[tuple[str, str]],
        body: bytes | None = None,
        interim: Interim | None = None,
    ) -> Said:
        self.asked.append((method, address, Fields(tuple(lines))))
        await asyncio.sleep(0)
        self.now += self.delay
        answer = self.answers.pop(0)
        if isinstance(answer, OSError):
            raise answer
        return answer

    async def close(self) -> None:
        pass


def date(seconds: float = 0.0) -> str:
    """A time after the beginning, as HTTP writes it."""
    return formatdate(BEGIN + seconds, usegmt=True)


class Stage:
    """A cache before a scripted origin; `get` plays one request, `wait` lets time pass."""

    def __init__(self, *answers: Said | OSError, **options: object) -> None:
        self.origin = Script(list(answers))
        self.cache = Cache(self.origin, now=lambda: self.origin.now, **options)  # type: ignore[arg-type]

    async def get(self, method: str = "GET", address: str = HERE, **headers: str) -> Served | None:
        """One request and its answer, the body whole."""
        lines = [(name.replace("_", "-"), value) for name, value in headers.items()]
        fields = Fields.of(lines)
        served = await self.cache.answer(Asked(method, address, fields, directives(fields.joined("cache-control"))))
        if served is None or isinstance(served.body, bytes):
            return served
        body = b"".join([chunk async for chunk in served.body])
        return Served(served.status, served.fields, body, served.how)

    def wait(self, seconds: float) -> None:
        self.origin.now += seconds

    @property
    def count(self) -> int:
        """How often the origin was asked."""
        return len(self.origin.asked)

    def sent(self, name: str) -> str | None:
        """A header line of the last request that reached the origin."""
        return self.origin.asked[-1][2].first(name)
