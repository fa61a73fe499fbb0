"""`unstale lab`: real replicas on this machine, what they reach, and what theory says they should."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import click

from unstale.cli.lab_experiment import LabRow, experiment
from unstale.cli.show import console, grid
from unstale.units import DAY, many, parse_rate

if TYPE_CHECKING:
    from unstale.lab.setups import Setup

Verdict = Literal["agree", "differ", "late"]

#: replicas unless told otherwise: of a cascade, of peers, of those that readers choose from
DEPTH, PEERS, CHOICE = 3, 5, 3
CHANGE_RATE = "45/min"
#: beyond so many standard errors, theory and measurement do not agree
AGREE = 5.0
#: polls that take effect later than so many intervals, on average, measure the machine and not the theory
LATE = 0.1


@click.command()
@click.argument("topology", type=click.Choice(["single", "cascade", "peers", "redundant", "design"]))
@click.argument("file", required=False, metavar="[FILE.toml]")
@click.option("--depth", type=int, help=f"Replicas in a row of a cascade; {DEPTH} if not told.")
@click.option("--peers", type=int, help=f"Replicas that ask each other; {PEERS} if not told.")
@click.option("--replicas", type=int, help=f"Replicas that redundant readers choose from; {CHOICE} if not told.")
@click.option("--k", type=int, help="Peers of one contact (1 if not told), or replicas that one reader asks (2).")
@click.option("--both", is_flag=True, help="Peers: whoever is asked takes what is newer from who asks, too.")
@click.option(
    "--choose",
    type=click.Choice(["random", "recent"]),
    help="Peers: whom to ask of those that the source lists, any (if not told) or who polled it last.",
)
@click.option("--leave-rate", help="Peers: how often each leaves, another one coming in its place with nothing.")
@click.option("--brain", is_flag=True, help="Single, cascade, peers: poll when the engine's brain says so.")
@click.option("--sources", default=50, show_default=True, help="How many there are.")
@click.option("--changes", default=1200, show_default=True, help="Measure for as long as so many changes take.")
@click.option("--change-rate", help=f"How often a source changes; {CHANGE_RATE} if not told.")
@click.option("--sync-rate", default="1/s", show_default=True, help="How often a replica polls each of them.")
@click.option("--peer-rate", default="1/s", show_default=True, help="How often a peer contacts another.")
@click.option("--seed", default=1, show_default=True, help="Another seed, other changes and polls.")
@click.option("--plot", metavar="FILE", help="Draw what was measured beside theory into FILE (.png, .svg, .html).")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object; rates per second.")
def lab(
    topology: str,
    file: str | None,
    depth: int | None,
    peers: int | None,
    replicas: int | None,
    k: int | None,
    both: bool,
    choose: Literal["random", "recent"] | None,
    leave_rate: str | None,
    brain: bool,
    sources: int,
    changes: int,
    change_rate: str | None,
    sync_rate: str,
    peer_rate: str,
    seed: int,
    plot: str | None,
    as_json: bool,
) -> None:
    """Run replicas on this machine and compare their freshness with theory.

    A web site of sources that change at random is served here, and every replica is a process of its own:

    \b
      single     one replica polls the sources
      cascade    each replica polls the one before it, the first the sources
      peers      all poll the sources, and ask each other
      redundant  all poll the sources, readers ask several and take the freshest
      design     what `unstale topology FILE.toml` calls combined: layers with rates of their own

    Stores, servers, fetchers, digests and the client are the real ones. Polls come at random times at a fixed rate
    instead of those that the engine would choose, because that is what theory speaks of; evenly where a design says so.
    A design's rates are scaled: its source changes at --change-rate, or as often as this machine can follow.

    How late polls took effect is told. The command fails where theory and measurement differ by more than five
    standard errors, and where the machine was too busy to poll in time, so that neither can be said. With --brain
    theory is that of even polls, each right after whoever is followed; what chance would have come to is told.
    """
    from unstale.lab.setups import Setup, predicted
    from unstale.report.picture import checked

    fits = {
        "single": ("", 1),
        "cascade": ("depth", DEPTH),
        "peers": ("peers", PEERS),
        "redundant": ("replicas", CHOICE),
        "design": ("", 0),
    }
    option, usual = fits[topology]
    for name, told in {"depth": depth, "peers": peers, "replicas": replicas}.items():
        if told is not None and name != option:
            alone = "its file says how many there are" if topology == "design" else "it is one replica"
            hint = f"it takes --{option}" if option else alone
            raise click.UsageError(f"--{name} is not for `unstale lab {topology}`: {hint}")
    if brain and topology in ("redundant", "design"):
        raise click.UsageError(f"--brain is not for `unstale lab {topology}`: its theory is of polls by chance")
    for name, given in {"both": both, "choose": choose, "leave-rate": leave_rate}.items():
        if given and topology != "peers":
            raise click.UsageError(f"--{name} is not for `unstale lab {topology}`: nobody asks each other there")
    if choose == "recent" and (both or leave_rate):
        raise click.UsageError("--choose recent is without --both and --leave-rate: theory has no number for these")
    if (file is None) == (topology == "design"):
        raise click.UsageError(
            f"`unstale lab {topology}` takes {'the file of a question' if file is None else 'no file'}"
        )
    if k is not None and topology in ("single", "cascade", "design"):
        raise click.UsageError(f"--k is not for `unstale lab {topology}`: nobody has a choice there")
    count = {"depth": depth, "peers": peers, "replicas": replicas}.get(option)
    if plot is not None:
        checked(plot)
    if file is not None:
        from unstale.cli.lab_design import setup_of

        setup = setup_of(file, change_rate, sources, changes, seed)
    else:
        setup = Setup(
            topology,
            usual if count is None else count,
            (2 if topology == "redundant" else 1) if k is None else k,
            sources,
            changes,
            parse_rate(change_rate or CHANGE_RATE, "change_rate") / DAY,
            parse_rate(sync_rate, "sync_rate") / DAY,
            parse_rate(peer_rate, "peer_rate") / DAY,
            seed,
            both=both,
            choose=choose or "random",
            leave_rate=parse_rate(leave_rate, "leave_rate") / DAY if leave_rate else 0.0,
            brain=brain,
        )
    predicted(setup)
    if not as_json:
        lasting = setup.settling + setup.measuring
        console().print(_about(setup) + f"; this takes {lasting:.0f} s and what starting takes", highlight=False)
    rows, facts = asyncio.run(experiment(setup))
    verdict = judged(setup, rows, facts)
    if plot is not None:
        from unstale.report.lab import draw

        draw(_about(setup), [(row.place, row.model, row.measured.value, row.measured.error) for row in rows], plot)
    if as_json:
        click.echo(
            json.dumps(
                {
                    "topology": topology,
                    "verdict": verdict,
                    **facts,
                    "places": [
                        {
                            "place": row.place,
                            "theory": row.model,
                            "measured": row.measured.value,
                            "error": row.measured.error,
                        }
                        for row in rows
                    ],
                }
            )
        )
    else:
        _print(setup, rows, facts, verdict, plot)
    if verdict != "agree":
        sys.exit(1)


def judged(setup: Setup, rows: Sequence[LabRow], facts: dict[str, Any]) -> Verdict:
    """Whether theory and measurement agree, or polls came too late to tell."""
    if facts["late_seconds"] * setup.sync_rate > LATE:
        return "late"
    return "differ" if any(abs(row.measured.off(row.model)) > AGREE for row in rows) else "agree"


def _about(setup: Setup) -> str:
    def each(rate: float) -> str:
        return f"{rate:g}/s"

    if setup.layers:
        said = [f"{many(each.machines, 'replica')} polling {each.sync_rate:.3g}/s" for each in setup.layers]
        return (
            f"{', below them '.join(said)}, of {many(setup.sources, 'source')}, which change {setup.change_rate:.3g}/s"
        )
    what = {
        "single": "one replica",
        "cascade": f"a cascade of {many(setup.replicas, 'replica')}",
        "peers": f"{many(setup.replicas, 'replica')} that contact {_whom(setup)} {each(setup.peer_rate)}",
        "redundant": f"{many(setup.replicas, 'replica')}, of which readers ask {setup.asked}",
    }[setup.topology]
    return (
        f"{what}, polling each of {many(setup.sources, 'source')} {each(setup.sync_rate)}, which change "
        f"{each(setup.change_rate)}"
    )


def _whom(setup: Setup) -> str:
    whom = f"{setup.asked} of the others"
    return f"the {setup.asked} that polled last" if setup.choose == "recent" else whom


def _by_chance(setup: Setup) -> str:
    from unstale.lab.setups import predicted

    return ", ".join(f"{100 * fresh:.1f} %" for fresh in predicted(replace(setup, brain=False)).values())


def _print(setup: Setup, rows: Sequence[LabRow], facts: dict[str, Any], verdict: Verdict, plot: str | None) -> None:
    table = grid("", "theory", "measured", "standard error", "off by")
    for row in rows:
        off = row.measured.off(row.model)
        table.add_row(
            row.place,
            f"{100 * row.model:.1f} %",
            f"{100 * row.measured.value:.1f} %",
            f"{100 * row.measured.error:.1f} %",
            f"{off:+.1f} standard errors",
        )
    say = console()
    say.print(table, highlight=False)
    far = [row.place for row in rows if abs(row.measured.off(row.model)) > AGREE]
    said = {
        "agree": "theory and measurement agree",
        "differ": f"theory and measurement differ at {', '.join(far)}",
        "late": "nothing can be said of theory: this machine was too busy to poll in time, try lower rates",
    }[verdict]
    after = float(facts["late_seconds"])
    late = f"{1000 * after:.0f} ms late, {100 * after * setup.sync_rate:.1f} % of an interval"
    taken = (
        f", {many(sum(facts['taken_from_peers']), 'copy', 'copies')} from peers"
        if any(facts["taken_from_peers"])
        else ""
    )
    chance = f"; by chance it would have been {_by_chance(setup)}" if setup.brain else ""
    gone = f", {many(facts['left'], 'replica')} left and others came" if facts["left"] else ""
    say.print(
        f"{said}: {many(facts['changes'], 'change')} and {many(sum(facts['polls']), 'poll')}, on average {late}"
        f"{taken}{gone}{chance}; {facts['whole_seconds']:.0f} s in all",
        highlight=False,
    )
    if plot is not None:
        say.print(f"drawn into {plot}", highlight=False)
