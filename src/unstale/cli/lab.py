"""`unstale lab`: real replicas on this machine, what they reach, and what theory says they should."""

from __future__ import annotations

import asyncio
import json
import re
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click
import numpy as np

from unstale.cli.show import console, grid
from unstale.errors import UnstaleError
from unstale.units import DAY, parse_rate

if TYPE_CHECKING:
    from unstale.lab.measure import MeasuredFreshness
    from unstale.lab.setups import Setup
    from unstale.origin.server import Origin

Verdict = Literal["agree", "differ", "late"]

#: replicas unless told otherwise: of a cascade, of peers, of those that readers choose from
DEPTH, PEERS, CHOICE = 3, 5, 3
#: reads per second of the redundant lab, each from several replicas
READS = 8.0
#: beyond so many standard errors, theory and measurement do not agree
AGREE = 5.0
#: polls that take effect later than so many intervals, on average, measure the machine and not the theory
LATE = 0.1
#: where files cost no disk, if there is such a place: replicas sync every poll to the disk, all of them to the same one
_MEMORY = Path("/dev/shm")
_VERSION = re.compile(rb"version (\d+)")


@dataclass(frozen=True, slots=True)
class LabRow:
    """One place where freshness was measured."""

    place: str
    model: float
    measured: MeasuredFreshness


@click.command()
@click.argument("topology", type=click.Choice(["single", "cascade", "peers", "redundant"]))
@click.option("--depth", type=int, help=f"Replicas in a row of a cascade; {DEPTH} if not told.")
@click.option("--peers", type=int, help=f"Replicas that ask each other; {PEERS} if not told.")
@click.option("--replicas", type=int, help=f"Replicas that redundant readers choose from; {CHOICE} if not told.")
@click.option("--k", type=int, help="Peers of one contact (1 if not told), or replicas that one reader asks (2).")
@click.option("--sources", default=50, show_default=True, help="How many there are.")
@click.option("--changes", default=1200, show_default=True, help="Measure for as long as so many changes take.")
@click.option("--change-rate", default="45/min", show_default=True, help="How often a source changes.")
@click.option("--sync-rate", default="1/s", show_default=True, help="How often a replica polls each of them.")
@click.option("--peer-rate", default="1/s", show_default=True, help="How often a peer contacts another.")
@click.option("--seed", default=1, show_default=True, help="Another seed, other changes and polls.")
@click.option("--plot", metavar="FILE", help="Draw what was measured beside theory into FILE (.png, .svg, .html).")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object; rates per second.")
def lab(
    topology: str,
    depth: int | None,
    peers: int | None,
    replicas: int | None,
    k: int | None,
    sources: int,
    changes: int,
    change_rate: str,
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

    Stores, servers, fetchers, digests and the client are the real ones. Polls come at random times at a fixed rate
    instead of those that the engine would choose, because that is what theory speaks of.

    How late polls took effect is told. The command fails where theory and measurement differ by more than five
    standard errors, and where the machine was too busy to poll in time, so that neither can be said.
    """
    from unstale.lab.setups import Setup, predicted
    from unstale.report.picture import checked

    fits = {
        "single": ("", 1),
        "cascade": ("depth", DEPTH),
        "peers": ("peers", PEERS),
        "redundant": ("replicas", CHOICE),
    }
    option, usual = fits[topology]
    for name, told in {"depth": depth, "peers": peers, "replicas": replicas}.items():
        if told is not None and name != option:
            hint = f"it takes --{option}" if option else "it is one replica"
            raise click.UsageError(f"--{name} is not for `unstale lab {topology}`: {hint}")
    if k is not None and topology in ("single", "cascade"):
        raise click.UsageError(f"--k is not for `unstale lab {topology}`: nobody has a choice there")
    count = {"depth": depth, "peers": peers, "replicas": replicas}.get(option)
    if plot is not None:
        checked(plot)
    setup = Setup(
        topology,
        usual if count is None else count,
        (2 if topology == "redundant" else 1) if k is None else k,
        sources,
        changes,
        parse_rate(change_rate, "change_rate") / DAY,
        parse_rate(sync_rate, "sync_rate") / DAY,
        parse_rate(peer_rate, "peer_rate") / DAY,
        seed,
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


async def experiment(setup: Setup) -> tuple[list[LabRow], dict[str, Any]]:
    """Run it; what was measured at each place, and what was done."""
    from unstale.cli.lab_processes import LabReplicas
    from unstale.lab.measure import fresh_time
    from unstale.origin.log import RequestLog
    from unstale.origin.server import Origin
    from unstale.origin.site import Site

    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="unstale-lab-", dir=_MEMORY if _MEMORY.is_dir() else None) as folder:
        site = Site.of(setup.sources, setup.change_rate, seed=setup.seed)
        async with (
            Origin(site, log=RequestLog(keep=1)) as origin,
            LabReplicas(setup, Path(folder)) as replicas,
        ):
            sources = [origin.address + path for path in site.paths]
            await replicas.begin(sources)
            await asyncio.sleep(setup.settling)
            start = origin.now()
            readers = asyncio.create_task(_read(setup, origin, replicas.addresses, sources))
            await asyncio.sleep(setup.measuring)
            end = origin.now()
            readers.cancel()
            reads = await readers
            said = await replicas.finish()
            served = replicas.served(sources)
        changes = [site.changing.times(i, end) for i in range(len(site))]
    shares = fresh_time(changes, served, start, end, setup.asked)
    facts = {
        "changes": int(sum(np.count_nonzero(times > start) for times in changes)),
        "seconds": end - start,
        "whole_seconds": time.monotonic() - began,
        "polls": [one["polls"] for one in said],
        "failed": [one["failed"] for one in said],
        "late_seconds": sum(one["late"] for one in said) / max(sum(one["polls"] for one in said), 1),
        "reads": len(reads),
        "taken_from_peers": [sum(peer["taken"] for peer in one["peers"]) for one in said],
    }
    return _rows(setup, shares, reads), facts


def _rows(setup: Setup, shares: Any, reads: Sequence[bool]) -> list[LabRow]:
    from unstale.lab.measure import MeasuredFreshness, estimate
    from unstale.lab.setups import predicted

    model = predicted(setup)
    if setup.topology in ("single", "cascade"):
        found = [estimate(share) for share in shares[:-1]]
    else:
        found = [estimate(shares[:-1].mean(axis=0)), estimate(shares[-1])][: len(model)]
    rows = [LabRow(place, expected, one) for (place, expected), one in zip(model.items(), found, strict=True)]
    if reads:
        mean, expected = float(np.mean(reads)), rows[-1].model
        # Of a share near 0 or 1 the sample knows its own spread badly; what theory expects does not.
        rows.append(
            LabRow(
                f"{len(reads)} reads",
                expected,
                MeasuredFreshness(mean, (expected * (1 - expected) / len(reads)) ** 0.5),
            )
        )
    return rows


async def _read(setup: Setup, origin: Origin, replicas: Sequence[str], sources: Sequence[str]) -> list[bool]:
    """Read random sources at random times until cancelled, as a client does; whether each answer was fresh."""
    fresh: list[bool] = []
    if setup.topology != "redundant":
        return fresh
    from unstale.adapters.replica_client import ReplicaClient

    rng = np.random.default_rng([setup.seed, 1_000_000])
    client = ReplicaClient(replicas, k=setup.asked, rng=rng)
    try:
        while True:
            await asyncio.sleep(float(rng.exponential(1.0 / READS)))
            i = int(rng.integers(len(sources)))
            true = origin.site.changing.at(i, origin.now())[0]
            try:
                found = _VERSION.search((await client.get(sources[i])).body)
            except UnstaleError:
                found = None
            # What changed while the answer was under way is not held against it.
            fresh.append(found is not None and int(found[1]) >= true)
    except asyncio.CancelledError:
        return fresh


def _about(setup: Setup) -> str:
    def each(rate: float) -> str:
        return f"{rate:g}/s"

    what = {
        "single": "one replica",
        "cascade": f"a cascade of {setup.replicas} replicas",
        "peers": f"{setup.replicas} replicas that contact {setup.asked} of the others {each(setup.peer_rate)}",
        "redundant": f"{setup.replicas} replicas, of which readers ask {setup.asked}",
    }[setup.topology]
    return (
        f"{what}, polling each of {setup.sources} sources {each(setup.sync_rate)}, which change "
        f"{each(setup.change_rate)}"
    )


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
    taken = f", {sum(facts['taken_from_peers']):,} copies from peers" if any(facts["taken_from_peers"]) else ""
    say.print(
        f"{said}: {facts['changes']:,} changes and {sum(facts['polls']):,} polls, on average {late}{taken}; "
        f"{facts['whole_seconds']:.0f} s in all",
        highlight=False,
    )
    if plot is not None:
        say.print(f"drawn into {plot}", highlight=False)
