"""`unstale backup` and `unstale doctor`: a second store in time, and whether the first one is well."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from unstale.cli.choose import counted, near
from unstale.cli.reading import reading, size, span
from unstale.cli.service import serving
from unstale.cli.settings import load, one_file, settings_options
from unstale.cli.show import Stages
from unstale.units import many

if TYPE_CHECKING:
    from unstale.cli.doctor import Replayed
    from unstale.cli.settings import Settings


@click.command()
@click.argument("file")
@settings_options
@click.pass_context
def backup(ctx: click.Context, file: str, config: str | None, store: str | None) -> None:
    """Copy the whole store to FILE, while everything goes on.

    FILE is a store of its own, as of one instant: `unstale status --store FILE` reads it. It appears whole or not at
    all, and never replaces another one. Before that it is read back, and every copy in it compared with its sum: what
    was found damaged is said, and the exit code is 1. `unstale restore FILE` goes back to it.
    """
    from unstale.adapters.sqlite_replica import SqliteReplica

    begun, settings = time.monotonic(), one_file(load(config, store=store), "back it up with pg_dump")
    with Stages(1) as stages, reading(settings) as replica:
        stages.next("copying")
        assert isinstance(replica, SqliteReplica)
        problems = replica.backup(file)
    took = time.monotonic() - begun
    click.echo(f"wrote {near(str(Path(file).absolute()))}: {size(Path(file).stat().st_size)} in {span(took)}")
    for problem in problems:
        click.echo(f"! {problem}, in the store as in its backup: mend it with `unstale doctor --repair`")
    ctx.exit(1 if problems else 0)


@click.command()
@click.option("--scrub", is_flag=True, help="Read every copy, and do nothing else.")
@click.option("--repair", is_flag=True, help="Do that, and have sources polled anew whose copies are damaged.")
@click.option("--quick", is_flag=True, help="Do not read every copy, and replay 1,000 sources only.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@settings_options
@click.pass_context
def doctor(
    ctx: click.Context, scrub: bool, repair: bool, quick: bool, as_json: bool, config: str | None, store: str | None
) -> None:
    """Is everything as it should be? Verify the store, and learn all that polls taught again.

    The store and every copy are checked against their sums, and beliefs against what replaying the observations gives,
    bit for bit. Then due times, the clock, the environment, the disk and the engine. Each finding is a sentence with
    its remedy. The exit code is 0 if all is well and 1 if something was found.

    `--scrub` only reads every copy. `--repair` also has the engine ask anew for what is damaged; until it has, whoever
    reads such a copy is told that it is damaged. Versions before the newest cannot be had again.
    """
    from unstale.cli.doctor import examine

    settings = load(config, store=store)
    if scrub or repair:
        if quick:
            raise click.UsageError("--quick reads no copy: leave it out")
        ctx.exit(_scrubbed(settings, repair, as_json))
    with Stages(5) as stages, serving(settings) as service:
        checked, findings, replayed = examine(service, settings, quick, stages.next)
    if as_json:
        worst = replayed.worst if math.isfinite(replayed.worst) else None
        told = {
            "sources": replayed.sources,
            "equal": replayed.equal,
            "differ": replayed.differ,
            "unknown": replayed.unknown,
            "largest_difference": worst,
        }
        click.echo(json.dumps({"checked": checked, "findings": findings, "replayed": told}))
    else:
        for line in [*checked, _said(replayed)]:
            click.echo(f"  {line}")
        for finding in findings:
            click.echo(f"! {finding}")
        click.echo("all is well" if not findings else f"{len(findings)} finding{'s' * (len(findings) > 1)}")
    ctx.exit(1 if findings else 0)


def _scrubbed(settings: Settings, repair: bool, as_json: bool) -> int:
    """Read every copy, and have what is damaged polled anew if asked; the exit code."""
    with Stages(1) as stages, serving(settings) as service:
        stages.next("reading every copy")
        damaged = service.store.damaged()
        mended = service.repair(damaged) if repair else 0
    if as_json:
        told = [{"source": source, "version": version} for source, version in damaged]
        click.echo(json.dumps({"damaged": told, "polled_anew": mended}))
    elif not damaged:
        click.echo("every copy matches its sum")
    else:
        for source, version in damaged:
            click.echo(f"! copy {version} of source {source} is damaged")
        old = len(damaged) - mended
        rest = f", {many(old, 'is an old version', 'are old versions')} that no poll brings back" if old else ""
        remedy = f"{mended} polled anew as the budget allows{rest}" if repair else "mend with `unstale doctor --repair`"
        click.echo(f"{len(damaged)} damaged: {remedy}")
    return 1 if damaged else 0


def _said(replayed: Replayed) -> str:
    """How the beliefs compare with what replaying gave.

    >>> from unstale.cli.doctor import Replayed
    >>> _said(Replayed(3, 40, 2, 1, 0, 0, 1e-15))
    '3 sources replayed, 40 polls: 2 beliefs equal bit for bit, 1 differs by 1e-15 at most'
    """
    words = [f"{many(replayed.equal, 'belief')} equal bit for bit"]
    if replayed.differ:
        words.append(f"{replayed.differ:,} differ{'s' * (replayed.differ == 1)} by {replayed.worst:.0e} at most")
    if replayed.unknown:
        words.append(f"{replayed.unknown:,} cannot be rebuilt")
    if replayed.moving:
        words.append(f"{replayed.moving:,} polled meanwhile")
    return f"{counted(replayed.sources)} replayed, {many(replayed.polls, 'poll')}: {', '.join(words)}"
