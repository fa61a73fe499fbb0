"""`GET /metrics`: how the replica stands, in Prometheus' text format. Times are gauges, nothing is told per source."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from unstale.keeper.outcomes import Answer
from unstale.ports import HostCount
from unstale.server.books import Books, Slowly
from unstale.server.endpoints import NOT_KEPT

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Sample = tuple[Mapping[str, str], float]


class Metrics:
    """Reads what is counted; `served` counts answers of copies by their status."""

    def __init__(self, books: Books, clock: Callable[[], float], served: Mapping[int, int]) -> None:
        self._books, self._clock, self._served, self._slowly = books, clock, served, Slowly(5.0)

    async def tell(self, _: Request) -> Response:
        """All families."""
        hosts = await self._slowly.get("hosts", self._books.hosts)
        text = await asyncio.to_thread(self._read, hosts)
        return Response(text, media_type=MEDIA_TYPE, headers=NOT_KEPT)

    def _read(self, hosts: Sequence[HostCount]) -> str:
        books = self._books
        counters, engine = books.counters(), books.engine()
        price = next(iter(books.prices(self._clock() - 3600.0)[-1:]), None)
        total, paused = sum(one.sources for one in hosts), sum(one.paused for one in hosts)
        failing = sum(one.failing for one in hosts)
        one: Mapping[str, str] = {}
        lines: list[str] = []

        def family(name: str, kind: str, meaning: str, *samples: Sample) -> None:
            lines.extend(written(f"unstale_{name}", kind, meaning, samples))

        family(
            "polls_total",
            "counter",
            "Polls recorded, by what they found.",
            *(({"answer": a.value}, counters.get(a.value, 0)) for a in Answer),
        )
        family("received_bytes_total", "counter", "Bytes that polls brought.", (one, counters.get("bytes", 0)))
        family(
            "sources",
            "gauge",
            "Sources by state.",
            ({"state": "polled"}, total - paused - failing),
            ({"state": "failing"}, failing),
            ({"state": "paused"}, paused),
        )
        family("hosts", "gauge", "Hosts that have sources.", (one, len(hosts)))
        family("last_poll_timestamp_seconds", "gauge", "When a source last answered.", *_at(books.answered_at()))
        family(
            "engine_running",
            "gauge",
            "Whether an engine polls from this store.",
            (one, float(bool(engine.get("running")))),
        )
        family("engine_start_timestamp_seconds", "gauge", "When the engine started.", *_at(engine.get("started_at")))
        family("engine_last_plan_timestamp_seconds", "gauge", "When the engine last planned.", *_at(engine.get("at")))
        family("budget_per_second", "gauge", "What all polls together may cost.", (one, books.budget()[0]))
        family(
            "spent_total",
            "counter",
            "What polls have cost since the engine started.",
            (one, float(engine.get("spent") or 0.0)),
        )
        if price is not None:
            family("price", "gauge", "Staleness that one more unit of budget would remove.", (one, price.price))
            family(
                "expected_freshness_ratio", "gauge", "Expected freshness of the copies, by weight.", (one, price.fresh)
            )
            family("even_freshness_ratio", "gauge", "The same, were all polled equally often.", (one, price.even))
        family(
            "copy_requests_total",
            "counter",
            "Requests for copies, by the status of the answer.",
            *(({"status": str(status)}, count) for status, count in sorted(self._served.items())),
        )
        return "\n".join(lines) + "\n"


def written(name: str, kind: str, meaning: str, samples: Sequence[Sample]) -> list[str]:
    """One family of samples, nothing if there are none.

    >>> print(*written("unstale_polls_total", "counter", "Polls.", [({"answer": "failed"}, 3)]), sep="|")
    # HELP unstale_polls_total Polls.|# TYPE unstale_polls_total counter|unstale_polls_total{answer="failed"} 3
    """
    if not samples:
        return []
    lines = [f"# HELP {name} {meaning}", f"# TYPE {name} {kind}"]
    for labels, value in samples:
        told = ",".join(f'{label}="{text}"' for label, text in labels.items())
        lines.append(f"{name}{'{' + told + '}' if told else ''} {value!r}")
    return lines


def _at(time: Any) -> list[Sample]:
    return [({}, float(time))] if isinstance(time, int | float) and math.isfinite(time) else []
