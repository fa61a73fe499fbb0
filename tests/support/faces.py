"""A store asked on every face: command, API, metrics, dashboard; and the checks that all say the same."""

from __future__ import annotations

import json
import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from support.asgi import asked
from unstale.cli.service import service_of
from unstale.cli.settings import Settings
from unstale.server.app import replica
from unstale.server.dashboard import views

DAY = 86_400.0


@dataclass
class Faces:
    """A store, asked on every face."""

    config: Path
    settings: Settings

    def command(self, command: Any, *words: str) -> str:
        given = CliRunner().invoke(command, [*words, "--config", str(self.config)], catch_exceptions=False)
        assert given.exit_code == 0, given.output
        assert "s3cret" not in given.output, "the password of the store was printed"
        return given.output

    def asked(self) -> dict[str, Any]:
        """API, metrics and dashboard, over ASGI."""
        service = service_of(self.settings)
        try:
            app = replica(service.store, service=service, token="t" * 32, more=views(service))

            def get(path: str) -> Any:
                got = asked(app, path)
                assert got.status == 200, got.body
                assert b"s3cret" not in got.body
                return json.loads(got.body) if path != "/metrics" else got.body.decode()

            paths = ("/api/v1/status", "/api/v1/budget", "/api/v1/plan", "/dashboard/hosts", "/metrics")
            table = "/dashboard/table?sort=age&down=true&limit=200"
            while not (found := get(table))["sorted"]:
                time.sleep(0.05)
            return {path.rpartition("/")[2]: get(path) for path in paths} | {"table": found}
        finally:
            service.close()


def samples(text: str) -> dict[str, float]:
    lines = [line.rpartition(" ") for line in text.splitlines() if not line.startswith("#")]
    return {name.removeprefix("unstale_"): float(value) for name, _, value in lines}


def percent(text: str, words: str) -> float | None:
    found = re.search(rf"([0-9.]+) %\s+{words}", text)
    return float(found[1]) / 100.0 if found else None


def number(text: str, words: str) -> float:
    found = re.search(words, text)
    assert found, f"{words} is not in\n{text}"
    return float(found[1].replace(",", ""))


def check_metrics(metrics: dict[str, float], api: dict[str, Any]) -> None:
    counts, totals = api["sources"], api["totals"]
    assert metrics["budget_per_second"] == pytest.approx(api["budget_per_day"] / DAY)
    for name, value in {
        "expected_freshness_ratio": api["freshness"],
        "expected_freshness_error": api["freshness_error"],
        "even_freshness_ratio": api["freshness_even"],
        "even_freshness_error": api["freshness_even_error"],
        "expected_age_seconds": api["age"],
        "price": api["price"],
        "learned_ratio": api["learned"],
        'sources{state="paused"}': counts["paused"],
        'sources{state="failing"}': counts["failing"],
        'sources{state="polled"}': counts["total"] - counts["paused"] - counts["failing"],
        "sources_never_polled": counts["never_polled"],
        "sources_never_answered": counts["never_answered"],
        'polls_total{answer="changed"}': totals["changed"],
        'polls_total{answer="unchanged"}': totals["unchanged"],
        'polls_total{answer="failed"}': totals["failed"],
        "first_copies_total": totals["first"],
        "requests_total": totals["requests"],
        "spent_total": totals["spent"],
        "spent_last_hour": api["spent_hour"],
        "spent_last_day": api["spent_day"],
        "first_round_left_seconds": (api["first_round"] or {"left": 0.0})["left"],
        "hosts": api["hosts"],
        "hosts_held": len(api["surcharges"]),
        "engine_running": float(bool(api["engine"]["running"])),
    }.items():
        assert metrics.get(name) == value, name


def check_dashboard(told: dict[str, Any], api: dict[str, Any]) -> None:
    counts, table, hosts = api["sources"], told["table"], told["hosts"]["hosts"]
    assert table["total"] == counts["total"]
    assert table["as_of"] == api["at"]
    by_id = {row["id"]: row for row in table["sources"]}
    # Order and values are of one moment.
    ages = [row["age"] for row in table["sources"] if row["age"] is not None and not row["paused"]]
    assert ages == sorted(ages, reverse=True)
    for row in api["worst"]:
        assert by_id.get(row["id"], row) == row
    assert len(api["worst"]) == min(counts["total"] - counts["paused"], 20)
    for name in ("sources", "paused", "failing"):
        assert sum(host[name] for host in hosts) == counts["total" if name == "sources" else name]
    surcharges = {host["host"]: host["surcharge"] for host in hosts if host["surcharge"] > 1.0}
    assert surcharges == api["surcharges"]


def check_text(text: str, api: dict[str, Any]) -> None:
    """What people read is what programs read, rounded."""
    fresh, even = percent(text, "of the copies are believed fresh"), percent(text, "if all were polled equally often")
    assert fresh == (None if api["freshness"] is None else pytest.approx(api["freshness"], abs=5.1e-4))
    assert even == (None if api["freshness_even"] is None else pytest.approx(api["freshness_even"], abs=5.1e-4))
    assert [float(one) for one in re.findall(r"give or take ([0-9.]+)", text)] == [
        pytest.approx(100.0 * error, abs=0.051)
        for error in (api["freshness_error"], api["freshness_even_error"])
        if error is not None
    ]
    assert ("mostly a guess" in text) == (api["freshness"] is not None and api["freshness_even"] is None)
    each = {"h": 24.0, "min": 1440.0}
    said = re.search(r"budget\s+([0-9.]+)/(h|min)", text)
    assert said
    assert float(said[1]) * each[said[2]] == pytest.approx(api["budget_per_day"])
    assert api["budget"]["why"] in text
    assert number(text, r"([0-9.,]+) spent in the last hour") == pytest.approx(api["spent_hour"])
    assert number(text, r"spent in the last hour, ([0-9.,]+) in the last day") == pytest.approx(api["spent_day"])
    assert number(text, r"polls\s+([0-9,]+)\s+recorded") == api["totals"]["polls"]
    begun = api["first_round"]
    assert ("first round" in text) == (begun is not None)
    if begun is not None:
        assert re.search(rf"first round\s+{begun['done']}\s+of {begun['of']} sources polled, about .* left", text)
    words = {True: "running", False: "not running"}[api["engine"]["running"]]
    assert re.search(rf"engine\s+{words}\b", text)
