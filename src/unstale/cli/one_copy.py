"""`unstale freshness` and `unstale sync-rate`: one source, one copy."""

from __future__ import annotations

import json
import math
from typing import Any

import click

from unstale.core.processes.named import SPELLINGS, named, polling
from unstale.errors import require
from unstale.units import format_duration, format_rate, parse_duration, parse_rate

_change_rate = click.option("--change-rate", required=True, help="How often the source changes, e.g. 1/day.")
_changes = click.option("--changes", default="poisson", show_default=True, help=f"How changes come: {SPELLINGS}.")
_polls = click.option(
    "--polls",
    default="fixed",
    show_default=True,
    help="How polls come: fixed, random or purely-random, or a kind as in --changes.",
)
_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object; rates per day, times in days.")


@click.command()
@_change_rate
@click.option("--sync-rate", required=True, help="How often it is polled, e.g. 3/h or 15m.")
@_changes
@_polls
@_json
def freshness(change_rate: str, sync_rate: str, changes: str, polls: str, as_json: bool) -> None:
    """How fresh is a copy of a source that changes and is polled this often?

    \b
      unstale freshness --change-rate 1/day --sync-rate 1/day
      unstale freshness --change-rate 3/h --sync-rate 15m --changes pareto:3
    """
    from unstale.core import staleness

    source, poller = _pair(change_rate, sync_rate, changes, polls)
    twice = poller.with_rate(2 * poller.rate)
    result: dict[str, Any] = {
        "change_rate": source.rate,
        "sync_rate": poller.rate,
        "freshness": staleness.freshness(source, poller),
        "age": staleness.age(source, poller),
        "missed_changes": staleness.missed_changes(source, poller),
        "freshness_at_twice_the_rate": staleness.freshness(source, twice),
    }
    lines = [
        ("freshness", _percent(result["freshness"]), "of the time the copy equals the source"),
        ("age", format_duration(result["age"]), "on average since the first change it lacks"),
        ("missed", f"{result['missed_changes']:.3g}", "changes it lacks, on average"),
        ("twice", _percent(result["freshness_at_twice_the_rate"]), "freshness if polled twice as often"),
    ]
    if changes != "poisson":
        result["freshness_if_poisson"] = staleness.freshness(source.rate, poller)
        lines.append(("poisson", _percent(result["freshness_if_poisson"]), "freshness if changes came without memory"))
    _show(result, lines, as_json)


@click.command("sync-rate")
@_change_rate
@click.option("--target-freshness", type=float, help="Share of time the copy shall equal the source, e.g. 0.8.")
@click.option("--target-staleness", type=float, help="Share of time it may be stale, e.g. 0.2.")
@click.option("--target-age", help="Mean age it may have, e.g. 2h.")
@click.option("--target-consistency", type=float, help="Share of reads that shall be stale by at most --within.")
@click.option("--within", help="Staleness that does not count yet, e.g. 10m; with --target-consistency.")
@_changes
@_polls
@_json
def sync_rate(
    change_rate: str,
    target_freshness: float | None,
    target_staleness: float | None,
    target_age: str | None,
    target_consistency: float | None,
    within: str | None,
    changes: str,
    polls: str,
    as_json: bool,
) -> None:
    """How often must a source be polled to be this fresh?

    \b
      unstale sync-rate --target-freshness 0.8 --change-rate 1/day
      unstale sync-rate --target-age 10m --change-rate 3/h --changes pareto:3
    """
    from unstale.core.inverse import sync_rate_for
    from unstale.core.staleness import age, freshness

    if target_staleness is not None:
        require(
            0 < target_staleness <= 1, "target-staleness", target_staleness, "must be above 0 and at most 1", "try 0.2"
        )
        require(
            target_freshness is None,
            "target-staleness",
            target_staleness,
            "says the same as target-freshness",
            "give one of them",
        )
        target_freshness = 1.0 - target_staleness
    require(
        (target_consistency is None) == (within is None),
        "within",
        within,
        "and target-consistency belong together",
        "give both or none",
    )
    source, shape = _pair(change_rate, change_rate, changes, polls)
    targets: dict[str, Any] = {
        "freshness": target_freshness,
        "age": None if target_age is None else parse_duration(target_age, "target-age"),
        "consistency": None if within is None else (parse_duration(within, "within"), target_consistency),
    }
    rate = sync_rate_for(source, polls=shape, **targets)
    result = {"change_rate": source.rate, "sync_rate": rate, "interval": 1 / rate if rate else float("inf")}
    lines = [
        ("sync rate", format_rate(rate), "polls"),
        (
            "interval",
            format_duration(result["interval"]),
            "between polls" + ("" if polls == "fixed" else ", on average"),
        ),
    ]
    if rate > 0:
        poller = shape.with_rate(rate)
        result |= {"freshness": freshness(source, poller), "age": age(source, poller)}
        lines.append(("freshness", _percent(result["freshness"]), "of the time the copy equals the source"))
        lines.append(("age", format_duration(result["age"]), "on average since the first change it lacks"))
    if changes != "poisson":
        assumed = sync_rate_for(source.rate, polls=shape, **targets)
        result["sync_rate_if_poisson"] = assumed
        lines.append(("poisson", format_rate(assumed), "polls it would seem to need if changes had no memory"))
    _show(result, lines, as_json)


def _pair(change_rate: str, sync_rate: str, changes: str, polls: str) -> tuple[Any, Any]:
    often = parse_rate(change_rate, "change-rate")
    require(often > 0, "change-rate", change_rate, "must be above 0", "a source that never changes needs one poll")
    polled = parse_rate(sync_rate, "sync-rate")
    require(polled > 0, "sync-rate", sync_rate, "must be above 0", "a source that is never polled has no freshness")
    return named(changes, often), polling(polls, polled)


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _show(result: dict[str, Any], lines: list[tuple[str, str, str]], as_json: bool) -> None:
    if as_json:
        # JSON has no infinity: what never ends is null.
        click.echo(json.dumps({k: float(v) if math.isfinite(v) else None for k, v in result.items()}))
        return
    name, value = (max(len(line[i]) for line in lines) for i in (0, 1))
    for line in lines:
        click.echo(f"{line[0]:<{name}}  {line[1]:>{value}}  {line[2]}")
