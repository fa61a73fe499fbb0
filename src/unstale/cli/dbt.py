"""How fresh sources are in the shape of dbt's `sources.json`, for whatever reads that already."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from unstale import __version__
from unstale.cli.choose import listings_of
from unstale.cli.reading import iso

if TYPE_CHECKING:
    from unstale.ports import FleetColumns, ReadStore

SCHEMA = "https://schemas.getdbt.com/dbt/sources/v3.json"
_PERIODS = (("day", 86_400), ("hour", 3_600), ("minute", 60))


def sources_json(
    replica: ReadStore,
    standing: FleetColumns,
    now: float,
    warn_after: float | None,
    error_after: float | None,
    allowed: Mapping[int, float] | None = None,
) -> tuple[dict[str, Any], str]:
    """The document, and the worst that is in it: pass, warn or fail.

    What dbt calls loading is an answered poll; the limits are seconds since then. A source with a contract, in
    `allowed`, goes by that, unless `error_after` is given for all. A source that never answered is a
    runtime error, paused ones are left out.
    """
    ids = standing.source[~standing.paused].tolist()
    last = dict(zip(standing.source.tolist(), standing.last.tolist(), strict=True))
    found: list[dict[str, Any]] = []
    for one in listings_of(replica, ids):
        name = f"source.unstale.{one.host or one.kind}.{one.address}"
        checked = last[one.id]
        if not math.isfinite(checked):
            newest = replica.observations(one.id, 1)
            error = newest[0].reason if newest else "it was never polled"
            found.append({"unique_id": name, "error": error, "status": "runtime error"})
            continue
        since = now - checked
        most = (allowed or {}).get(one.id) if error_after is None else error_after
        criteria = {"warn_after": period(warn_after), "error_after": period(most), "filter": None}
        status = "error" if _beyond(since, most) else "warn" if _beyond(since, warn_after) else "pass"
        found.append(
            {
                "unique_id": name,
                "max_loaded_at": iso(checked),
                "snapshotted_at": iso(now),
                "max_loaded_at_time_ago_in_s": since,
                "status": status,
                "criteria": criteria,
                "adapter_response": {},
                "timing": [],
                "thread_id": "",
                "execution_time": 0.0,
            }
        )
    statuses = {one["status"] for one in found}
    worst = "fail" if statuses & {"error", "runtime error"} else "warn" if "warn" in statuses else "pass"
    metadata = {
        "dbt_schema_version": SCHEMA,
        "dbt_version": "0.0.0",
        "generated_at": iso(now),
        "invocation_id": None,
        "env": {"generated_by": f"unstale {__version__}"},
    }
    return {"metadata": metadata, "results": found, "elapsed_time": 0.0}, worst


def _beyond(since: float, limit: float | None) -> bool:
    return limit is not None and since > limit


def period(seconds: float | None) -> dict[str, Any]:
    """A limit in the largest unit that holds it in whole numbers; minutes are rounded up.

    >>> period(7200.0), period(90.0), period(None)
    ({'count': 2, 'period': 'hour'}, {'count': 2, 'period': 'minute'}, {'count': None, 'period': None})
    """
    if seconds is None:
        return {"count": None, "period": None}
    name, length = next(
        ((name, length) for name, length in _PERIODS if seconds and seconds % length == 0), _PERIODS[-1]
    )
    return {"count": math.ceil(seconds / length), "period": name}
