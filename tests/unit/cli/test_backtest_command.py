"""`unstale backtest`: the table, the list of rows, the figure, and one sentence for what cannot be replayed."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from unstale.cli.backtest import backtest
from unstale.errors import InputError
from unstale.sim.backtest.run import POLICIES
from unstale.sim.backtest.uniform import uniform

DAY = 86_400.0
START = 1_704_067_200.0


def run(*args: str) -> Result:
    return CliRunner().invoke(backtest, list(args))


def rows(*args: str) -> list[dict[str, Any]]:
    done = run(*args, "--json")
    assert done.exit_code == 0, done.output
    parsed: list[dict[str, Any]] = json.loads(done.stdout)
    return parsed


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> str:
    """60 Poisson sources from 1 January 2024 on, for 400 days; one row is there twice, one has no time."""
    rng = np.random.default_rng(1)
    lines = ["source,t"]
    for i, rate in enumerate(np.geomspace(0.02, 2, 60)):
        times = START + np.sort(rng.uniform(0, 400 * DAY, rng.poisson(400 * rate)))
        lines += [f"s{i:02},{t:.3f}" for t in times]
    lines += [lines[-1], "s00,never"]
    file = tmp_path_factory.mktemp("backtest") / "trace.csv"
    file.write_text("\n".join(lines) + "\n")
    return str(file)


def test_rows_have_the_promised_keys_and_spend_the_budget(trace: str) -> None:
    got = rows(trace, "--policies", "uniform,oracle,stormcrawler")
    assert [(row["policy"], row["polls_per_change"]) for row in got] == [
        (name, each) for name in ("uniform", "oracle", "stormcrawler") for each in (0.3, 1.0, 3.0)
    ]
    for row in got:
        keys = ["policy", "polls_per_change", "freshness", "freshness_se", "age", "penalty", "polls", "budget"]
        assert list(row) == keys
        assert row["polls"] == pytest.approx(row["budget"], rel=0.005)
        assert 0 < row["freshness"] < 1
        assert 0 < row["freshness_se"] < 0.1
    # age in days: with 3 polls for each change it is not a year, and not a second
    assert 0.01 < got[2]["age"] < 10
    fresh = {(row["policy"], row["polls_per_change"]): row["freshness"] for row in got}
    assert fresh["oracle", 0.3] > fresh["uniform", 0.3] > fresh["stormcrawler", 0.3]


def test_problems_go_to_the_error_stream_of_json(trace: str) -> None:
    done = run(trace, "--policies", "uniform", "--json")
    assert isinstance(json.loads(done.stdout), list)
    assert "note: 1 row cannot be read and was left out" in done.stderr
    assert "note: 1 row repeats another" in done.stderr


def test_the_table_has_a_row_for_each_policy_and_a_headline(trace: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(POLICIES, "unstale", lambda setting, each, seed: uniform(setting, 1.25 * each, seed))
    done = run(trace, "--policies", "unstale,uniform", "--polls-per-change", "1,3")
    assert done.exit_code == 0, done.output
    shown = done.stdout.splitlines()
    assert shown[0].startswith("note: 1 row cannot be read and was left out (first: 'never' in row")
    assert any(line.startswith(" unstale (ours) ") and "±" in line for line in shown)
    assert any(line.startswith(" uniform ") for line in shown)
    assert "60 sources" in done.stdout
    assert "from 2024-01-01 to 2025-02-0" in done.stdout
    saved = [line for line in shown if "the best of the others" in line]
    assert len(saved) == 2
    form = r"The same freshness with (\d+) % fewer polls than uniform, the best of the others, at 1 poll per change\."
    share = re.fullmatch(form, saved[0])
    assert share is not None
    assert int(share[1]) == pytest.approx(20, abs=4)
    assert "it cannot be brought nearer" in done.stdout
    assert "…" not in done.stdout


def test_age_is_shown_as_a_length_of_time(trace: str) -> None:
    shown = run(trace, "--policies", "uniform,limd", "--objective", "age").stdout
    assert "Mean age from" in shown
    assert " days ± " in shown
    assert "…" not in shown


def test_windows_samples_and_seeds(trace: str) -> None:
    whole, half, few, other = (
        rows(trace, "--policies", "uniform", "--polls-per-change", "1", *more)[0]
        for more in (
            (),
            ("--from", "2024-03", "--to", "2024-08"),
            ("--at-most", "7"),
            ("--at-most", "7", "--seed", "2"),
        )
    )
    assert half["budget"] < 0.5 * whole["budget"]
    assert few["budget"] < 0.5 * whole["budget"]
    assert few["freshness"] != other["freshness"]


def test_weights_decide_who_counts(trace: str, tmp_path: Path) -> None:
    weights = tmp_path / "weights.csv"
    weights.write_text("source,weight\n" + "".join(f"s{i:02},{10 if i < 5 else 1}\n" for i in range(50)))
    done = run(trace, "--weights", str(weights), "--policies", "oracle,uniform", "--polls-per-change", "0.3")
    assert "note: 10 of 60 sources have no weight and were left out" in done.stdout
    assert "50 sources" in done.stdout


def test_the_figure_is_drawn(trace: str, tmp_path: Path) -> None:
    for name, more in (("curve.svg", ()), ("age.png", ("--objective", "age"))):
        file = tmp_path / name
        done = run(trace, "--policies", "oracle,uniform,limd", "--plot", str(file), *more)
        assert done.exit_code == 0, done.output
        assert f"The figure is in {file}." in done.stdout.replace("\n", "")
        assert file.stat().st_size > 5000


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("--policies", "random"), "policy 'random' is unknown"),
        (("--polls-per-change", "1,many"), "polls_per_change '1,many' must be numbers: write them like 0.3,1,3"),
        (("--polls-per-change", "-1"), "polls_per_change -1.0 must be a finite number above 0"),
        (("--from", "soon"), "from 'soon' is not a date"),
        (("--from", "2030"), "start 2030-01-01 must be before the end"),
        (("--from", "2025-02-03"), "no source with 5 changes"),
        (("--plot", "curve.doc"), "plot 'curve.doc' has an unknown ending"),
        (("--policies", ","), "policies"),
    ],
)
def test_what_cannot_be_replayed_is_one_sentence(trace: str, args: tuple[str, ...], says: str) -> None:
    done = run(trace, *args)
    assert isinstance(done.exception, InputError)
    assert says in str(done.exception)
