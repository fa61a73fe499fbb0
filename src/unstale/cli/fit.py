"""`unstale fit`: what kind of changes does this history hold, and what does that mean for polling?"""

from __future__ import annotations

import difflib
import json
import math
from typing import TYPE_CHECKING, Any

import click

from unstale.cli.show import Stages, console, grid, moment
from unstale.errors import InputError, require, sentence
from unstale.service.documents import finite
from unstale.units import format_duration, format_rate, many

if TYPE_CHECKING:
    from unstale.core.trace import Trace

#: fewer changes than this say nothing about one source
FEWEST = 5
#: a shape this large says no more than that it is large
_BOUND = 9_999
#: quantile -> how it is called, and what it would be
_QUANTILES = {
    "variation": ("gaps: spread / mean", "Poisson: 1, bursts: more"),
    "mean_over_median": ("gaps: mean / median", "Poisson: 1.44"),
    "weibull_shape": ("Weibull shape", "Poisson: 1, bursts: less"),
    "pareto_alpha": ("Pareto alpha", "long silences: 2 or less"),
    "memory": ("gap to gap correlation", "no memory: 0"),
    "hurst": ("Hurst exponent", "no long memory: 0.5"),
    "clumping_1_days": ("clumping in 1 day", "Poisson: 1"),
    "clumping_7_days": ("clumping in 7 days", "Poisson: 1"),
    "clumping_30_days": ("clumping in 30 days", "Poisson: 1"),
    "growth": ("rate: late / early half", "no drift: 1"),
    "overspend": ("polls: Poisson / needed", "for 80 % freshness"),
}


@click.command()
@click.argument("file", metavar="TRACE")
@click.option("--source", metavar="NAME", help="Look at this source in detail.")
@click.option(
    "--at-least",
    type=click.IntRange(min=FEWEST),
    default=31,
    show_default="31",
    help="Judge the sources with so many changes.",
)
@click.option("--from", "start", metavar="DATE", help="Leave out what is earlier: 2024, 2024-05 or 2024-05-01.")
@click.option("--to", "end", metavar="DATE", help="Leave out this date and what is later.")
@click.option(
    "--utc-offset",
    type=float,
    default=0.0,
    show_default="0",
    metavar="HOURS",
    help="Hours of the day are those of a clock so far ahead of UTC.",
)
@click.option("--plot", metavar="FILE", help="Draw gaps, hours, course and cost into FILE (.png, .svg, .html).")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object; per day, and days.")
def fit(
    file: str,
    source: str | None,
    at_least: int,
    start: str | None,
    end: str | None,
    utc_offset: float,
    plot: str | None,
    as_json: bool,
) -> None:
    """What kind of changes does TRACE hold, and what does that mean for polling?

    TRACE is a table with the columns source and t, one row for each change (CSV, Parquet, JSON lines). Without
    --source it summarises all sources with enough changes: which law their gaps follow, whether they are Poisson,
    remember, drift or follow the clock, and what a plan that takes them for Poisson would spend too much.
    The history must be complete: gaps that were measured by polling are another matter.

    \b
      unstale fit trace.parquet
      unstale fit trace.parquet --source news/front --plot front.png
      unstale fit trace.parquet --from 2023 --to 2025 --at-least 100
    """
    with Stages() as stages:
        stages.next("loading")
        from unstale.report import diagnosis as report
        from unstale.report.fit import draw
        from unstale.report.picture import checked
        from unstale.study.fitting.diagnosis import diagnose
        from unstale.study.fitting.profile import profile
        from unstale.traces.read import read

        plot = plot and checked(plot)
        first, last = moment("from", start), moment("to", end)
        window = -math.inf if first is None else first, math.inf if last is None else last
        require(window[0] < window[1], "from", start, f"must be before {end}", "exchange them")
        stages.next("reading")
        trace, problems = read(file)
        trace = trace.between(*window).having(1)
        require(len(trace), "trace", repr(file), "has no change between these dates", "choose others")
        single = source is not None or len(trace) == 1
        judged = _one(trace, source or trace.names[0], file) if single else trace.having(at_least)
        require(
            len(judged),
            "trace",
            repr(file),
            f"has no source with {at_least} changes",
            f"its most active one has {int(trace.counts().max(initial=0))}, lower --at-least",
        )
        stages.next("fitting")
        seen = diagnose(judged)
        shown = judged if single else trace
        when = profile(shown, utc_offset)
        facts = report.source_facts(seen, when) if single else report.fleet_facts(trace, seen, when)
        advice = (report.source_advice if single else report.fleet_advice)(facts)
        clock = "UTC" + (f"{utc_offset:+g} h" if utc_offset else "")
        if plot:
            stages.next("drawing")
            draw(seen, when, shown, clock, plot)
    if as_json:
        click.echo(json.dumps(finite(facts | {"problems": problems.counts(), "advice": advice})))
        return
    out = console()
    for line in problems.lines():
        out.print(f"[yellow]note:[/yellow] {line}", highlight=False, soft_wrap=True)
    (_print_source if single else _print_fleet)(facts, at_least, clock)
    out.print("\n[bold]What this means for polling[/bold]", highlight=False)
    for text in advice:
        out.print(f"- {text}", highlight=False, soft_wrap=True)
    if plot:
        out.print(f"\nThe figures are in {plot}.", highlight=False)


def _one(trace: Trace, name: str, file: str) -> Trace:
    if name not in trace.names:
        near = difflib.get_close_matches(name, trace.names, 3)
        remedy = f"did you mean {', '.join(near)}" if near else f"it has {', '.join(trace.names[:3])}, …"
        raise InputError(sentence("source", repr(name), f"is not in {file!r}", remedy))
    one = trace.take([trace.names.index(name)])
    require(
        one.counts()[0] >= FEWEST,
        "source",
        repr(name),
        f"has {one.counts()[0]} changes, {FEWEST} are needed",
        "choose another, or a longer history",
    )
    return one


def _print_fleet(facts: dict[str, Any], at_least: int, clock: str) -> None:
    out = console()
    out.print(
        f"[bold]{many(facts['sources'], 'source')}, {many(facts['changes'], 'change')} from {facts['first']} to "
        f"{facts['last']}[/bold]",
        highlight=False,
    )
    judged = f"{facts['judged']:,} with at least {many(at_least, 'change')}"
    out.print(f"{judged} {'is' if facts['judged'] == 1 else 'are'} judged.\n", highlight=False)
    table = grid("", "p10", "p50", "p90", "")
    for name, (label, meaning) in _QUANTILES.items():
        if (row := facts["quantiles"][name]) is not None:
            few = "" if row["sources"] == facts["judged"] else f"of {row['sources']:,}"
            cells = (_short(row[p]) for p in ("p10", "p50", "p90"))
            table.add_row(label, *cells, "; ".join(filter(None, (meaning, few))))
    out.print(table)
    out.print()
    shares = {name: _percent(share) for name, share in facts["shares"].items()}
    loose = {name: shares[f"{name}_if_bursts_are_ignored"] for name in ("drifting", "with_daily_cycle")}
    families = ", ".join(f"{name} {_percent(share)}" for name, share in facts["families"].items())
    together = _percent(facts["changes_at_the_same_time"])
    _print_lines(
        ("not Poisson", f"{shares['not_exponential']} have gaps that are not exponential (5 % would by chance)"),
        ("steady", f"{shares['steadier_than_poisson']} have gaps that vary by less than 0.7 of their mean"),
        ("memory", f"in {shares['remembering']} short gaps follow short ones"),
        ("drift", f"the rate of {shares['drifting']} is not constant ({loose['drifting']} if bursts count as drift)"),
        (
            "time of day",
            f"{shares['with_daily_cycle']} follow the clock ({loose['with_daily_cycle']} if bursts count as a cycle)",
        ),
        ("", _hours(facts["rhythm"], clock)),
        ("best law", families),
        ("together", f"{together} of the changes come at the very time of another source's"),
    )


def _print_source(facts: dict[str, Any], _: int, clock: str) -> None:
    out = console()
    gaps, fits = facts["gaps"], facts["fits"]
    out.print(
        f"[bold]{facts['source']}: {many(facts['changes'], 'change')} from {facts['first']} to {facts['last']}, "
        f"{format_rate(facts['change_rate'])}[/bold]\n",
        highlight=False,
        soft_wrap=True,
    )
    typical, mean, longest = (format_duration(gaps[name]) for name in ("median", "mean", "longest"))
    lines = [
        ("gaps", f"half are shorter than {typical}, the mean is {mean}, the longest {longest}"),
        ("law", f"{_odds(facts['exponential_p'], 'not Poisson', 'may be Poisson')}; {_law(facts)}"),
    ]
    if facts["memory"] is not None:
        word = "like each other" if facts["memory"] > 0 else "unlike each other"
        text = _odds(facts["memory_p"], f"successive gaps are {word}", "successive gaps are unrelated")
        lines.append(("memory", f"{text}, correlation {facts['memory']:.2f}"))
    if facts["hurst"] is not None:
        lines.append(("long memory", f"Hurst exponent {facts['hurst']:.2f} ± {facts['hurst_error']:.2f} (0.5 is none)"))
    lines.append(
        (
            "drift",
            f"{_odds(facts['drift_p'], 'the rate drifts', 'no drift to be seen')}; "
            f"second half over first: {facts['growth']:.2f}",
        )
    )
    known = {days: fano for days, fano in facts["clumping"].items() if fano is not None}
    if known:
        often, windows = " / ".join(f"{fano:.3g}" for fano in known.values()), " / ".join(known)
        unit = "day" if windows == "1" else "days"
        lines.append(("clumping", f"counts over {windows} {unit} vary {often} times as much as Poisson's"))
    lines.append(
        (
            "time of day",
            f"{_odds(facts['rhythm']['p'], 'follows the clock', 'no cycle to be seen', 0.01)}; "
            f"{_hours(facts['rhythm'], clock)}",
        )
    )
    _print_lines(*lines)
    out.print()
    table = grid("law", "parameters", "AIC above best", "BIC above best")
    least = {key: min(row[key] for row in fits.values()) for key in ("aic", "bic")}
    for name, row in sorted(fits.items(), key=lambda item: item[1]["aic"]):
        table.add_row(name, _parameters(row), *(f"{row[key] - least[key]:,.1f}" for key in ("aic", "bic")))
    out.print(table)
    out.print()
    table = grid("freshness", "needs a poll every", "a Poisson plan polls every", "times the polls")
    for row in facts["polls"]:
        every, assumed = (format_duration(1 / row[key]) for key in ("sync_rate", "if_poisson"))
        table.add_row(f"{100 * row['freshness']:g} %", every, assumed, f"{row['if_poisson'] / row['sync_rate']:.2f}")
    out.print(table)


def _print_lines(*lines: tuple[str, str]) -> None:
    for label, text in lines:
        console().print(f" {label:<12} {text}", highlight=False, soft_wrap=True)


def _law(facts: dict[str, Any]) -> str:
    from unstale.report.diagnosis import CLOCKWORK

    return "like clockwork" if facts["gaps"]["variation"] < CLOCKWORK else f"{facts['family']} fits best"


def _parameters(row: dict[str, float]) -> str:
    if row.get("alpha", 0.0) >= _BOUND:
        return "as exponential"
    shown = {"rate": format_rate, "scale": format_duration, "median": format_duration}
    numbers = {key: value for key, value in row.items() if key not in ("aic", "bic")}
    return ", ".join(f"{key} {shown.get(key, _short)(value)}" for key, value in numbers.items())


def _hours(rhythm: dict[str, Any], clock: str) -> str:
    parts = []
    if (ratio := rhythm["busiest_over_quietest"]) is not None:
        more = "nothing" if math.isinf(ratio) else f"{ratio:.3g} times as much as"
        parts.append(f"busiest at {rhythm['busiest_hour']}:00 {clock}, {more} at {rhythm['quietest_hour']}:00")
    if rhythm["weekend_over_weekday"] is not None:
        parts.append(f"weekend {rhythm['weekend_over_weekday']:.2f} of weekdays")
    return ", ".join(parts) or "less than a day is known"


def _odds(p: float, yes: str, no: str, level: float = 0.05) -> str:
    shown = "p < 0.0001" if p < 1e-4 else f"p = {p:.2g}"
    return f"{yes if p < level else no} ({shown})"


def _short(x: float) -> str:
    return "10,000+" if x >= _BOUND else f"{x:.3g}"


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"
