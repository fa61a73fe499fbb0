"""`unstale fit`: what it says of histories whose law, drift and rhythm we chose."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from unstale.cli.fit import fit
from unstale.errors import InputError
from unstale.study.fitting.gaps import Gaps
from unstale.study.fitting.overspend import polls_for

DAY = 86_400.0
#: a Monday, at midnight
START = 1_700_438_400.0


def run(*args: str) -> Result:
    return CliRunner().invoke(fit, list(args))


def data(*args: str) -> dict[str, Any]:
    done = run(*args, "--json")
    assert done.exit_code == 0, done.output
    parsed: dict[str, Any] = json.loads(done.stdout)
    return parsed


def write(folder: Path, **sources: np.ndarray) -> str:
    file = folder / "trace.csv"
    rows = [f"{name},{t:.3f}\n" for name, times in sources.items() for t in times]
    file.write_text("source,t\n" + "".join(rows))
    return str(file)


def changes(file: str, source: str) -> np.ndarray:
    rows = (line.split(",") for line in Path(file).read_text().splitlines())
    return np.array([float(t) for name, t in rows if name == source])


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Poisson, bursty, office hours, clockwork, a source that slows down, and one with too few changes."""
    rng = np.random.default_rng(1)
    days = np.sort(rng.choice(np.arange(200), 150, replace=False))
    return write(
        tmp_path_factory.mktemp("fleet"),
        poisson=START + np.cumsum(rng.exponential(DAY, 200)),
        bursty=START + np.cumsum(rng.weibull(0.4, 400) * DAY / 4),
        office=START + days * DAY + rng.uniform(9, 11, 150) * 3600,
        clock=START + np.arange(100) * 2 * DAY,
        slowing=START + np.cumsum(rng.exponential(DAY, 200) * np.linspace(0.2, 3, 200)),
        rare=START + np.arange(4) * DAY,
    )


def test_the_fleet_is_summarised(fleet: str) -> None:
    got = data(fleet)
    assert (got["sources"], got["judged"], got["changes"]) == (6, 5, 1054)
    assert got["first"] == "2023-11-20"
    assert got["shares"]["steadier_than_poisson"] == pytest.approx(2 / 5)
    assert got["shares"]["not_exponential"] >= 3 / 5
    assert sum(got["families"].values()) == pytest.approx(1)
    assert got["quantiles"]["variation"]["p10"] < 0.3
    assert got["quantiles"]["hurst"] is None
    assert got["quantiles"]["clumping_1_days"]["sources"] == 5
    assert got["problems"] == {}
    shown = run(fleet).stdout
    assert "6 sources, 1,054 changes from 2023-11-20 to" in shown
    assert "5 with at least 31 changes are judged" in shown
    assert got["advice"][0] in shown
    # nothing is cut off in a terminal of 80 columns
    assert "…" not in shown


def test_poisson_changes_need_only_their_rate(fleet: str) -> None:
    got = data(fleet, "--source", "poisson")
    assert got["exponential_p"] > 0.05
    assert got["change_rate"] == pytest.approx(1.0, abs=5 / 200**0.5)
    assert got["advice"][0].startswith("Nothing in 199 gaps speaks against Poisson changes: the change rate is all")


def test_bursts_are_told_as_bursts(fleet: str) -> None:
    got = data(fleet, "--source", "bursty")
    assert got["family"] == "weibull"
    assert got["fits"]["weibull"]["shape"] == pytest.approx(0.4, abs=5 * 0.78 * 0.4 / 400**0.5)
    # the standard error of a Weibull scale is 1.05/shape/√n of itself
    assert got["fits"]["weibull"]["scale"] == pytest.approx(0.25, rel=5 * 1.05 / 0.4 / 400**0.5)
    assert got["advice"][0].startswith("It is burstier than Poisson: give a plan the process as well as the rate, weib")
    eighty = next(row for row in got["polls"] if row["freshness"] == 0.8)
    gaps = np.diff(changes(fleet, "bursty")) / DAY
    assert eighty["sync_rate"] == pytest.approx(float(polls_for(Gaps.of(gaps), 0.8)[0]), rel=1e-6)
    assert eighty["if_poisson"] > 1.2 * eighty["sync_rate"]
    shown = run(fleet, "--source", "bursty").stdout
    assert "not Poisson (p < 0.0001); weibull fits best" in shown
    assert "would have kept its copy fresh for 80 % of this history; a Poisson plan would spend" in shown


def test_clockwork_is_told_as_clockwork(fleet: str) -> None:
    got = data(fleet, "--source", "clock")
    assert got["gaps"]["all_multiples_of"] == pytest.approx(2.0)
    assert got["advice"][0].startswith("It changes like clockwork, every 2 days")
    assert [row["sync_rate"] for row in got["polls"][1:]] == pytest.approx([1.25, 2.5, 5.0])
    assert "like clockwork" in run(fleet, "--source", "clock").stdout


def test_polled_histories_are_noticed(tmp_path: Path) -> None:
    steps = np.random.default_rng(2).geometric(0.2, 80)
    got = data(write(tmp_path, only=START + np.cumsum(steps) * 3600))
    assert got["gaps"]["all_multiples_of"] == pytest.approx(1 / 24)
    assert any("All gaps are multiples of 1 h: this history was probably" in text for text in got["advice"])


def test_a_clock_of_minutes_is_no_polling(tmp_path: Path) -> None:
    minutes = np.round(np.random.default_rng(3).exponential(600, 60)) + 1
    got = data(write(tmp_path, only=START + np.cumsum(minutes) * 60))
    assert got["gaps"]["all_multiples_of"] == pytest.approx(1 / 1440)
    assert not any("written by polling" in text for text in got["advice"])


def test_a_law_without_a_mean_is_not_proposed(tmp_path: Path) -> None:
    gaps = np.random.default_rng(4).pareto(0.7, 300)
    got = data(write(tmp_path, only=START + np.cumsum(gaps + 0.01) * 60))
    assert got["family"] == "pareto"
    assert got["fits"]["pareto"]["alpha"] < 1
    second = sorted(got["fits"], key=lambda name: got["fits"][name]["aic"])[1]
    assert f"as well as the rate, {second}:" in got["advice"][0]


def test_office_hours_follow_the_clock(fleet: str) -> None:
    got = data(fleet, "--source", "office", "--utc-offset", "-4")
    assert got["rhythm"]["busiest_hour"] in (5, 6)
    assert got["rhythm"]["busiest_over_quietest"] is None
    assert got["rhythm"]["p"] < 1e-9
    assert any(text.startswith("Changes follow the clock, most at") for text in got["advice"])
    assert "UTC-4 h, nothing at" in run(fleet, "--source", "office", "--utc-offset", "-4").stdout


def test_drift_is_told_with_the_rate_of_the_second_half(fleet: str) -> None:
    got = data(fleet, "--source", "slowing")
    assert got["growth"] < 0.7
    times = changes(fleet, "slowing")
    late = np.sum(times > times[[0, -1]].mean()) / (np.ptp(times) / 2 / DAY)
    sentence = next(text for text in got["advice"] if text.startswith("Its rate drifts"))
    told = float(sentence.split("second half, ")[1].split("/week")[0]) / 7
    # n changes bound n − 1 gaps: the two differ by one change in 200
    assert told == pytest.approx(late, rel=0.01)


def test_a_window_of_time_is_judged_alone(fleet: str) -> None:
    got = data(fleet, "--from", "2023-12", "--to", "2024-02-01", "--at-least", "20")
    assert got["first"] >= "2023-12-01"
    assert got["last"] == "2024-01-31"
    assert got["sources"] == 5


def test_the_only_source_is_shown_in_detail(tmp_path: Path) -> None:
    file = write(tmp_path, only=START + np.array([0.0, 1.0, 3.0, 3.5, 9.0]) * DAY)
    got = data(file)
    assert got["source"] == "only"
    assert got["hurst"] is None
    assert got["advice"][-1] == "But 4 gaps are few: take all of this as a rough picture."
    assert run(file).exit_code == 0


def test_bad_rows_are_counted_and_told(tmp_path: Path) -> None:
    file = write(tmp_path, a=START + np.arange(40) * DAY * 1.1)
    with Path(file).open("a") as out:
        out.write(f"a,soon\na,{START}\n")
    assert data(file)["problems"]["malformed"] == 1
    assert data(file)["problems"]["duplicate"] == 1
    assert "note: 1 row cannot be read and was left out" in run(file).stdout


@pytest.mark.parametrize("ending", ["png", "svg"])
@pytest.mark.parametrize("source", [[], ["--source", "bursty"]])
def test_figures_are_drawn(fleet: str, source: list[str], ending: str, tmp_path: Path) -> None:
    file = tmp_path / f"seen.{ending}"
    done = run(fleet, *source, "--plot", str(file))
    assert done.exit_code == 0, done.output
    assert "The figures are in" in done.stdout
    head = file.read_bytes()[:200]
    assert head.startswith(b"\x89PNG") if ending == "png" else b"<?xml" in head
    assert file.stat().st_size > 20_000


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--source", "burst"], "source 'burst' is not in .*: did you mean bursty"),
        (["--source", "rare"], "source 'rare' has 4 changes, 5 are needed"),
        (["--at-least", "500"], "has no source with 500 changes: its most active one has 400, lower --at-least"),
        (["--from", "soon"], "from 'soon' is not a date: write it like 2024"),
        (["--from", "2024", "--to", "2023"], "from 2024 must be before 2023"),
        (["--to", "1999"], "has no change between these dates"),
        (["--utc-offset", "20"], r"utc_offset 20\.0 must be"),
        (["--plot", "x.doc"], "plot 'x.doc' has an unknown ending"),
        (["--plot", "nowhere/x.png"], "plot 'nowhere/x.png' is in no directory"),
    ],
)
def test_refusals(fleet: str, args: list[str], message: str) -> None:
    done = run(fleet, *args)
    assert isinstance(done.exception, InputError)
    with pytest.raises(InputError, match=message):
        raise done.exception


def test_too_low_a_floor_is_a_usage_error(fleet: str) -> None:
    assert run(fleet, "--at-least", "4").exit_code == 2
