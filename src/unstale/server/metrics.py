"""`GET /metrics`: how the replica stands, in Prometheus' text format. Times are gauges, nothing is told per source."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from starlette.requests import Request
from starlette.responses import Response

from unstale.server.endpoints import NOT_KEPT
from unstale.server.slowly import Slowly
from unstale.service import FleetService
from unstale.service.records import EngineState, Status

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Sample = tuple[Mapping[str, str], float]
Family = tuple[str, str, str, Sequence[Sample]]
_ONE: Mapping[str, str] = {}


class Metrics:
    """Renders the status; `served` counts answers of copies by their status."""

    def __init__(self, service: FleetService, served: Mapping[int, int], slowly: Slowly) -> None:
        self._service, self._served, self._slowly = service, served, slowly

    async def tell(self, _: Request) -> Response:
        """All families."""
        status = await self._slowly.get("status", self._service.status)
        return Response(told(status, self._served), media_type=MEDIA_TYPE, headers=NOT_KEPT)


def told(status: Status, served: Mapping[int, int]) -> str:
    """A status in Prometheus' words."""
    counts, engine, totals, begun = status.counts, status.engine, status.totals, status.first_round
    sound = counts.polled - counts.failing
    families: list[Family] = [
        (
            "polls_total",
            "counter",
            "Polls recorded, by what they found.",
            [({"answer": name}, getattr(totals, name)) for name in ("unchanged", "changed", "failed")],
        ),
        ("first_copies_total", "counter", "Polls that brought a first copy; they count as changed.", _of(totals.first)),
        ("requests_total", "counter", "Requests that polls sent, with redirects and robots.txt.", _of(totals.requests)),
        ("received_bytes_total", "counter", "Bytes that polls brought.", _of(totals.received)),
        ("spent_total", "counter", "What polls have cost, first polls included.", _of(totals.spent)),
        (
            "sources",
            "gauge",
            "Sources by state.",
            [
                ({"state": "polled"}, sound),
                ({"state": "failing"}, counts.failing),
                ({"state": "paused"}, counts.paused),
            ],
        ),
        ("sources_never_answered", "gauge", "Sources that have not answered yet.", _of(counts.never_answered)),
        ("sources_never_polled", "gauge", "Sources that the first round has not reached.", _of(counts.never_polled)),
        (
            "first_round_left_seconds",
            "gauge",
            "How long the first round will still take.",
            _of(0.0 if begun is None else begun.left),
        ),
        ("hosts", "gauge", "Hosts that have sources.", _of(status.hosts)),
        ("last_poll_timestamp_seconds", "gauge", "When a source last answered.", _of(engine.last_answer)),
        ("engine_running", "gauge", "Whether an engine polls from this store.", _of(float(bool(engine.running)))),
        ("workers", "gauge", "Workers that share this store.", _of(engine.workers)),
        ("engine_start_timestamp_seconds", "gauge", "When the engine started.", _of(engine.started_at)),
        ("engine_last_plan_timestamp_seconds", "gauge", "When the engine last planned.", _of(engine.at)),
        ("budget_per_second", "gauge", "What all polls together may cost.", _of(status.budget.rate)),
        ("spent_last_hour", "gauge", "What polls have cost in the last hour.", _of(status.spent_hour)),
        ("spent_last_day", "gauge", "What polls have cost in the last day.", _of(status.spent_day)),
        ("price", "gauge", "Staleness that one more unit of budget would remove.", _of(status.price)),
        ("expected_freshness_ratio", "gauge", "Expected freshness of the copies, by weight.", _of(status.fresh)),
        ("expected_freshness_error", "gauge", "How far off that may be, 95 times of 100.", _of(status.fresh_error)),
        ("even_freshness_ratio", "gauge", "The same, were all polled equally often.", _of(status.even)),
        ("even_freshness_error", "gauge", "How far off that may be, 95 times of 100.", _of(status.even_error)),
        ("learned_ratio", "gauge", "Share of the weight that was looked at twice.", _of(status.learned)),
        ("expected_age_seconds", "gauge", "Expected age of the copies, by weight.", _of(status.age)),
        (
            "contract_sources",
            "gauge",
            "Sources of a contract, by whether it is kept of them.",
            [
                ({"contract": one.name, "state": state}, count)
                for one in status.contracts
                for state, count in (("kept", one.sources - one.broken), ("broken", one.broken))
            ],
        ),
        (
            "copying_rows",
            "gauge",
            "Rows of tables that are being copied now, by whether they are here.",
            [
                ({"source": str(one.listing.id), "state": state}, count)
                for one in status.copying
                for state, count in (("here", one.progress.rows), ("left", one.progress.of - one.progress.rows))
            ],
        ),
        ("contracts_need_per_second", "gauge", "What keeping all contracts takes.", _of(status.contracts_need)),
        ("hosts_held", "gauge", "Hosts whose cap makes polls dearer.", _of(len(status.surcharges))),
        *workers(engine),
        (
            "copy_requests_total",
            "counter",
            "Requests for copies, by the status of the answer.",
            [({"status": str(code)}, count) for code, count in sorted(served.items())],
        ),
    ]
    lines = [line for name, kind, meaning, samples in families for line in _family(name, kind, meaning, samples)]
    return "\n".join(lines) + "\n"


def workers(engine: EngineState) -> list[Family]:
    """What each worker tells of itself, and who plans; nothing where one engine polls."""

    def of(name: str) -> list[Sample]:
        return [({"worker": one.owner}, one.facts[name]) for one in engine.crew if name in one.facts]

    answers = [
        ({"worker": one.owner, "answer": answer}, one.facts[answer])
        for one in engine.crew
        for answer in ("unchanged", "changed", "failed")
        if answer in one.facts
    ]
    shares = [({"worker": one.owner}, one.share) for one in engine.crew]
    planner: list[Sample] = [({"worker": engine.planner}, 1)] if engine.planner else []
    return [
        ("worker_polls_total", "counter", "Polls of a worker since it started, by what they found.", answers),
        ("worker_late_total", "counter", "Claims that a worker could not begin in time and passed on.", of("late")),
        ("worker_share_per_second", "gauge", "A worker's share of the budget.", shares),
        ("worker_in_flight", "gauge", "Polls that a worker has under way.", of("in_flight")),
        ("worker_lag_seconds", "gauge", "How long after they were due a worker claims sources.", of("lag")),
        ("worker_price", "gauge", "The price that a worker goes by.", of("price")),
        ("worker_start_timestamp_seconds", "gauge", "When a worker started.", of("started_at")),
        ("worker_plans", "gauge", "The worker that plans for all.", planner),
        ("plan_seconds", "gauge", "How long its last plan took.", _of(engine.planned_in) if planner else []),
    ]


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


def _family(name: str, kind: str, meaning: str, samples: Sequence[Sample]) -> list[str]:
    return written(f"unstale_{name}", kind, meaning, samples)


def _of(value: float | None) -> list[Sample]:
    """One sample without labels; none of what is not known."""
    return [] if value is None or not math.isfinite(value) else [(_ONE, value)]
