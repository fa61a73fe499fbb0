"""What the origin's addresses hold at any time: sources as HTML and as feeds, and lists of them.

/s/0 … /s/N-1         the sources                     /list.txt, /list.csv    their addresses
/feed/0 … /feed/N-1   the same as Atom feeds          /sitemap.xml            with the times of their last changes
/s/                   as the index of a folder        /lying-sitemap.xml      with times of changes that never were
/                     where to begin                  /recent.atom            the sources that changed last
                                                      /truth.csv              every change so far: source, t
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from html import escape

import numpy as np

from unstale.core.checks import number
from unstale.core.processes.named import named
from unstale.core.trace import Trace
from unstale.frozen import dataclass
from unstale.origin.changes import Changing, spread_rates
from unstale.origin.listings import folder, moment, recent, sitemap
from unstale.units import many

#: changes that the feed of a source tells
ENTRIES = 20
_WORDS = (
    "a copy is fresh until its source changes and nobody tells so we poll and what a poll finds teaches how long to "
    "wait before the next one while the budget lasts for sources that change too fast are better left alone "
)
_STARTS = [word.start() for word in re.finditer(r"\w+", _WORDS)]
_HTML, _ATOM, _XML = b"text/html; charset=utf-8", b"application/atom+xml", b"application/xml"
_TEXT, _CSV = b"text/plain; charset=utf-8", b"text/csv; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Document:
    """What an address holds from `since` until `until`; its body is written when somebody wants it.

    Without an `etag` it is no source, and every request gets the body.
    """

    media_type: bytes
    body: Callable[[], bytes]
    etag: bytes = b""
    version: int = -1
    since: float = 0.0
    until: float = 0.0


class Site:
    """A web site of sources that change by known laws; bodies have `size` bytes, or what they need.

    >>> site = Site.of(2, change_rate=0.1, process="constant", seed=1, start=0.0)
    >>> then = site.find(b"/s/1", 100.0)
    >>> then.version, b"version 10" in then.body(), len(then.body())
    (10, True, 2000)
    """

    def __init__(self, changing: Changing, *, size: int = 2000) -> None:
        self.changing = changing
        self._size = int(number("size", size, least=0, most=1e8, remedy="give the bytes of a body, such as 2000"))
        self._text = (_WORDS * (2 + self._size // len(_WORDS))).encode()
        # Two origins never share a validator, so a copy of one is not taken for current at the other.
        self._edition = f"{int(changing.start * 1e3):x}.{changing.seed:x}"
        self._held: dict[bytes, Document] = {}
        self._lie: Changing | None = None

    @classmethod
    def of(
        cls,
        sources: int,
        change_rate: float,
        process: str | Sequence[str] = "poisson",
        *,
        spread: float = 0.0,
        seed: int = 1,
        start: float | None = None,
        size: int = 2000,
    ) -> Site:
        """Sources with processes as people write them, in turn; `change_rate` per second is the mean of theirs."""
        shapes = [named(text, 1.0) for text in ([process] if isinstance(process, str) else process)]
        rates = spread_rates(sources, change_rate, spread, seed)
        return cls(Changing(shapes, rates, seed=seed, start=time.time() if start is None else start), size=size)

    def __len__(self) -> int:
        return len(self.changing)

    @cached_property
    def paths(self) -> tuple[str, ...]:
        """Where the sources are."""
        return tuple(f"/s/{i}" for i in range(len(self)))

    def find(self, path: bytes, t: float, base: str = "") -> Document | None:
        """What is at `path` at t, None if nothing ever is; `base` goes before the paths in lists."""
        held = self._held.get(path)
        if held is not None and held.since <= t < held.until:
            return held
        where, _, name = path[1:].partition(b"/")
        if where in (b"s", b"feed") and (i := self._row(name)) is not None:
            document = self._source(i, t) if where == b"s" else self._feed(i, t, base)
            self._held[path] = document
            return document
        lists: dict[bytes, tuple[bytes, Callable[[], str]]] = {
            b"/": (_HTML, partial(self._index, base)),
            b"/list.txt": (_TEXT, lambda: "".join(f"{base}{path}\n" for path in self.paths)),
            b"/list.csv": (_CSV, lambda: "address,weight\n" + "".join(f"{base}{path},1\n" for path in self.paths)),
            b"/sitemap.xml": (_XML, lambda: sitemap(base, self.paths, self._changed(t))),
            b"/lying-sitemap.xml": (_XML, lambda: sitemap(base, self.paths, self._lied(t))),
            b"/recent.atom": (_ATOM, lambda: recent(base, self.paths, self._changed(t), self.changing.start)),
            b"/s/": (_HTML, lambda: folder(self.paths, self._changed(t))),
            b"/truth.csv": (_CSV, partial(self._truth, base, t)),
            b"/robots.txt": (_TEXT, lambda: f"User-agent: *\nDisallow:\nSitemap: {base}/sitemap.xml\n"),
        }
        if path not in lists:
            return None
        media_type, text = lists[path]
        return Document(media_type, lambda: text().encode())

    def truth(self, t: float, base: str = "") -> Trace:
        """Every change up to t, sources named by their addresses."""
        return self.changing.trace([base + path for path in self.paths], t)

    def _row(self, name: bytes) -> int | None:
        row = int(name) if name.isdigit() and len(name) < 10 else -1
        return row if 0 <= row < len(self) and name == b"%d" % row else None

    def _source(self, i: int, t: float) -> Document:
        version, since, until = self.changing.at(i, t)
        etag = f'"{self._edition}.{i}.{version}"'.encode()
        return Document(_HTML, partial(self._html, i, version, since), etag, version, since, until)

    def _html(self, i: int, version: int, since: float) -> bytes:
        head = (
            f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>Source {i}, version {version}</title>'
            f"</head>\n<body><h1>Source {i}</h1>\n<p>This is version {version}, as it is since "
            f"<time>{moment(since)}</time>.</p>\n<p>"
        ).encode()
        tail = b"</p></body></html>\n"
        room = max(self._size - len(head) - len(tail), 0)
        begin = _STARTS[(i * 31 + version * 7) % len(_STARTS)]
        return head + self._text[begin : begin + room] + tail

    def _feed(self, i: int, t: float, base: str) -> Document:
        version, since, until = self.changing.at(i, t)
        etag = f'"{self._edition}.f{i}.{version}"'.encode()
        return Document(_ATOM, partial(self._atom, i, version, since, base), etag, version, since, until)

    def _atom(self, i: int, version: int, since: float, base: str) -> bytes:
        home = escape(f"{base}/s/{i}")
        recent = list(enumerate(self.changing.times(i, since).tolist(), 1))[-ENTRIES:] if version else []
        entries = "".join(
            f"<entry><id>{home}#{number}</id><title>Version {number}</title><updated>{moment(at)}</updated>"
            f'<link href="{home}"/></entry>\n'
            for number, at in reversed(recent)
        )
        return (
            f'<?xml version="1.0" encoding="utf-8"?>\n<feed xmlns="http://www.w3.org/2005/Atom"><id>{home}</id>'
            f"<title>Source {i}</title><author><name>origin</name></author><updated>{moment(since)}</updated>\n"
            f"{entries}</feed>\n"
        ).encode()

    def _index(self, base: str) -> str:
        lists = "".join(
            f'<li><a href="{p}">{p}</a></li>'
            for p in ("/list.csv", "/list.txt", "/sitemap.xml", "/recent.atom", "/s/", "/truth.csv", "/feed/0")
        )
        links = " ".join(f'<a href="{path}">{path}</a>' for path in self.paths[:100])
        return (
            f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>Origin</title></head><body>\n'
            f"<h1>{many(len(self), 'source that changes', 'sources that change')}</h1>\n<p>Keep copies of them: "
            f"<code>unstale add --from {escape(base)}/list.csv</code></p>\n"
            f"<ul>{lists}</ul>\n<p>{links}</p></body></html>\n"
        )

    def _changed(self, t: float) -> Callable[[int], float]:
        return lambda i: self.changing.at(i, t)[1]

    def _lied(self, t: float) -> Callable[[int], float]:
        """Times of changes by the same laws that have nothing to do with those of the sources."""
        if self._lie is None:
            self._lie = self.changing.otherwise()
        lie = self._lie
        return lambda i: lie.at(i, t)[1]

    def _truth(self, base: str, t: float) -> str:
        truth = self.truth(t, base)
        which = np.repeat(np.arange(len(truth)), truth.counts()).tolist()
        rows = (f"{truth.names[i]},{at!r}\n" for i, at in zip(which, truth.times.tolist(), strict=True))
        return "source,t\n" + "".join(rows)
