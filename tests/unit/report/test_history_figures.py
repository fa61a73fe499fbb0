"""The figures that need a history, and what is computed for them."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from unstale.cli.main import unstale
from unstale.core.poisson_orders import order_freshness
from unstale.core.processes import Constant, Empirical
from unstale.core.staleness import freshness
from unstale.core.trace import Trace
from unstale.report.papers.contents import CHAPTERS
from unstale.report.papers.figures_000_models import DAYS, copy_path, day_freshness
from unstale.report.papers.figures_history import class_shares, figures, pooled_gaps
from unstale.report.papers.report import DRAWINGS
from unstale.study.correlation import autocorrelation, power_law
from unstale.study.replayed import stale_by_gaps, stale_share

PAGE = Path(__file__).parents[3] / "docs" / "errata.md"


def test_the_page_names_the_figures_that_are_drawn() -> None:
    drawn = {*DRAWINGS, *figures(None)}
    shown = {name for chapter in CHAPTERS for group in chapter.groups for name in group.figures}
    assert shown == drawn
    told = set()
    for paper, numbers in re.findall(
        r"^\| (\d{3})[^|]*\| ([\d, ]+) \|", PAGE.read_text("utf-8").split("## Figures")[1], re.M
    ):
        told |= {f"{paper} Figure {number}" for number in numbers.split(", ")}
    assert told == drawn
    assert f"{len(drawn)} in all" in PAGE.read_text("utf-8")


def test_a_copy_is_stale_from_the_first_unseen_change_to_the_next_poll() -> None:
    fresh, age = copy_path(np.array([0.5, 0.7, 1.7, 1.9, 3.6, 5.0]))
    assert fresh.tolist() == [1.0, 0.0, 0.0, 1.0, 0.0, 1.0]
    assert age == pytest.approx([0.0, 0.1, 1.1, 0.0, 0.7, 0.0])


def test_when_in_the_day_a_source_is_polled_makes_no_difference_to_its_mean_freshness() -> None:
    at = (np.arange(24_000) + 0.5) / 1000
    means = [float(day_freshness(polled, at).mean()) for polled in DAYS.values()]
    assert means == pytest.approx([float(order_freshness(1.0, 1.0, "fixed"))] * 3, rel=1e-6)


def test_the_law_of_gaps_is_equation_42_and_a_replay_of_independent_gaps_meets_it() -> None:
    gaps = np.array([0.3, 1.1, 4.0, 0.6])
    for interval in (0.25, 1.0, 3.3, 9.0):
        assert 1 - stale_by_gaps(gaps, interval) == pytest.approx(freshness(Empirical(gaps), Constant(interval)))
    times = np.cumsum(np.random.default_rng(4).choice(gaps, 200_000))
    assert stale_share(times, 1.01) == pytest.approx(stale_by_gaps(gaps, 1.01), abs=0.003)


def test_poisson_counts_do_not_correlate_and_swells_do() -> None:
    rng = np.random.default_rng(5)
    none = autocorrelation(np.cumsum(rng.exponential(1.0, 100_000)), 1.0, 50)
    assert np.abs(none).max() < 4.5 / np.sqrt(100_000)
    # counts of a source whose rate follows an autoregressive swell: ρ(h) falls like 0.9^h times its first value
    swell = np.zeros(40_000)
    for i, push in enumerate(rng.normal(0, 0.4, 40_000)):
        swell[i] = 0.9 * swell[i - 1] + push
    counts = rng.poisson(3.0 * np.exp(swell - 0.42))
    times = np.sort(np.repeat(np.arange(40_000.0), counts) + rng.random(counts.sum()))
    found = autocorrelation(times - times[0] + 1e-9, 1.0, 5)
    assert (found[1:] / found[:-1]).tolist() == pytest.approx([0.9] * 4, abs=0.06)
    assert power_law(np.full(3, -1.0)) == (0.0, 0.0)


def test_classes_and_gaps_of_a_trace() -> None:
    day, rng = 86_400.0, np.random.default_rng(6)
    slow = np.cumsum(rng.exponential(10 * day, 400))
    trace = Trace.of(["slow"] * 400 + ["daily"] * 50 + ["once"], [*slow, *(0.9 * day * np.arange(50)), 5.0])
    assert class_shares(trace) == pytest.approx([1 / 3, 0, 1 / 3, 0, 1 / 3])
    assert pooled_gaps(trace).tolist() == pytest.approx((np.diff(slow) / day).tolist())
    drawn = figures(trace, "daily")["003 Figure 9"]
    assert "Of daily, 50 changes" in drawn.caption


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--source", "a"], "give the trace as well"),
        (["--trace", "few.csv", "--source", "b"], "is not in few.csv"),
        (["--trace", "few.csv"], "has 2 changes of that source"),
    ],
)
def test_a_history_that_cannot_be_drawn_is_refused_before_anything_is_computed(
    words: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("few.csv").write_text("source,t\na,1\na,5\n", "utf-8")
    done = CliRunner().invoke(unstale, ["papers", *words])
    assert done.exit_code != 0
    assert said in f"{done.output} {done.exception}"
