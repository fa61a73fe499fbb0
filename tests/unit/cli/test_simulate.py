"""`unstale simulate`: predicted beside simulated, for a plan it wrote itself and for scenarios."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from unstale.cli.main import unstale
from unstale.cli.simulate import simulate
from unstale.core.processes.named import named
from unstale.core.staleness import freshness
from unstale.errors import InputError
from unstale.sim.scenarios import SCENARIOS

CSV = "id,change_rate,weight,cost,process\na,1,1,1,\nb,3/h,5,1,pareto:3\nc,0.5,2,2,poisson\nd,300,1,1,\n"


def run(*args: str) -> Result:
    return CliRunner().invoke(unstale, ["simulate", *args])


def data(*args: str) -> dict[str, Any]:
    result = run(*args, "--json")
    assert result.exit_code == 0, result.output
    parsed: dict[str, Any] = json.loads(result.stdout)
    return parsed


@pytest.fixture
def plan(tmp_path: Path) -> str:
    fleet, out = tmp_path / "fleet.csv", tmp_path / "plan.csv"
    fleet.write_text(CSV)
    made = CliRunner().invoke(unstale, ["plan", str(fleet), "--budget", "30/day", "-o", str(out)])
    assert made.exit_code == 0, made.output
    return str(out)


def test_a_plan_achieves_what_it_promised(plan: str) -> None:
    got = data(plan, "--days", "50", "--seed", "3")
    assert got["sources"] == 4
    assert got["runs"] == 200
    (way,) = got["ways"]
    fresh = way["freshness"]
    assert abs(fresh["simulated"] - fresh["predicted"]) < 5 * fresh["error"]
    assert fresh["error"] < 0.01
    # d is abandoned, so the age of the fleet grows: JSON has no infinity
    assert way["age"]["predicted"] is None
    assert way["age"]["simulated"] is None
    worst = {row["id"]: row for row in got["worst"]}
    assert set(worst) == {"a", "b", "c", "d"}
    assert worst["d"]["sync_rate"] == 0
    assert worst["d"]["freshness"]["simulated"] == 0
    b = worst["b"]
    assert b["freshness"]["predicted"] == pytest.approx(freshness(named("pareto:3", 72.0), b["sync_rate"]))
    assert abs(b["freshness"]["simulated"] - b["freshness"]["predicted"]) < 5 * b["freshness"]["error"]


def test_the_same_seed_prints_the_same(plan: str) -> None:
    assert data(plan) == data(plan)
    assert data(plan) != data(plan, "--seed", "2")


def test_rivals_spend_the_same_and_are_not_fresher(plan: str) -> None:
    got = {way["name"]: way for way in data(plan, "--compare")["ways"]}
    assert set(got) == {"plan", "uniform", "proportional"}
    ours = got["plan"]["freshness"]
    for rival in ("uniform", "proportional"):
        theirs = got[rival]["freshness"]
        assert abs(theirs["simulated"] - theirs["predicted"]) < 5 * theirs["error"]
        assert theirs["simulated"] < ours["simulated"]


@pytest.mark.parametrize("order", ["random", "purely-random"])
def test_orders(plan: str, order: str) -> None:
    even, other = data(plan)["ways"][0]["freshness"], data(plan, "--order", order)["ways"][0]["freshness"]
    assert other["predicted"] < even["predicted"]
    assert abs(other["simulated"] - other["predicted"]) < 5 * other["error"]


def test_the_table(plan: str, tmp_path: Path) -> None:
    figure = tmp_path / "seen.svg"
    text = run(plan, "--plot", str(figure)).stdout
    assert "4 sources, 200 times 30 days" in text
    assert "most staleness" in text
    assert "grows" in text
    assert "±" in text
    assert "predicted freshness" in figure.read_text("utf-8")


@pytest.mark.parametrize("name", SCENARIOS)
def test_scenarios(name: str) -> None:
    got = data(name, "--days", "5")
    assert got["scenario"] == name
    assert len(got["ways"]) >= 2
    assert SCENARIOS[name].line in run(name, "--days", "5").stdout
    help_ = " ".join((simulate.help or "").split())
    assert f"{name} {SCENARIOS[name].line}" in help_


def test_a_big_fleet_is_simulated_twice(tmp_path: Path) -> None:
    file, n = tmp_path / "plan.csv", 120_000
    rate = np.random.default_rng(1).lognormal(-2, 1, n)
    rows = "".join(f"s{i},{r:.6g},0.1\n" for i, r in enumerate(rate))
    file.write_text("id,change_rate,sync_rate\n" + rows)
    got = data(str(file), "--days", "10")
    assert got["runs"] == 2
    fresh = got["ways"][0]["freshness"]
    assert abs(fresh["simulated"] - fresh["predicted"]) < 5 * fresh["error"]
    assert fresh["error"] < 1e-3
    # so few are simulated more often, and their errors are good
    assert all(abs(s["simulated"] - s["predicted"]) < 5 * s["error"] for s in (w["freshness"] for w in got["worst"]))


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["moon"], "plan 'moon' is neither a file nor a scenario: take one of five-sources"),
        (["fleet.csv"], "has no column sync_rate: write one with unstale plan"),
        (["news", "--days", "0"], "days 0.0 must be a finite number above 0"),
        (["news", "--seed", "-1"], "seed -1.0 must be"),
        (["phase-lock", "--plot", "x.png"], "has nothing to show"),
        (["news", "--plot", "x.doc"], "has an unknown ending"),
        (["bad.csv"], r"sync_rate\[1\] -2.0 must be"),
        (["idle.csv", "--compare"], "plan without polls has no budget to compare"),
        (["light.csv"], "has only weights of 0: give some source a weight"),
        (["idle.csv", "--days", "-1"], "days -1.0 must be"),
    ],
)
def test_refusals(args: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("fleet.csv").write_text(CSV)
    Path("bad.csv").write_text("id,change_rate,sync_rate\na,1,1\nb,1,-2\n")
    Path("light.csv").write_text("id,change_rate,sync_rate,weight\na,1,1,0\n")
    Path("idle.csv").write_text("id,change_rate,sync_rate\na,1,0\n")
    result = run(*args)
    assert isinstance(result.exception, InputError)
    with pytest.raises(InputError, match=message):
        raise result.exception
