"""`unstale diff`: what changed in a source between two of its versions.

Rules of this file:
1. What strangers wrote never steers the terminal: whatever is no letter is shown by its number.
2. What was cut is told, and nothing is concluded from a cut.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from unstale.cli.choose import find_source
from unstale.cli.service import serving
from unstale.cli.settings import load, settings_options
from unstale.cli.show import console
from unstale.errors import InputError, sentence

if TYPE_CHECKING:
    from unstale.ports import Copy, ReadStore

_STYLES = {"-": "red", "+": "green", "@": "cyan"}


@click.command()
@click.argument("source")
@click.argument("old", type=click.IntRange(min=1), required=False)
@click.argument("new", type=click.IntRange(min=1), required=False)
@click.option("--exit-code", is_flag=True, help="End with 1 if they differ, as diff does.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@settings_options
@click.pass_context
def diff(
    ctx: click.Context,
    source: str,
    old: int | None,
    new: int | None,
    exit_code: bool,
    as_json: bool,
    config: str | None,
    store: str | None,
) -> None:
    """What changed in a source: its newest version beside the one before, or any two that are kept.

    SOURCE is an address, a part of one that no other source has, or an id. OLD alone is compared with the newest.

    \b
      unstale diff example.org/news
      unstale diff example.org/news 3 5
    """
    from unstale.service.difference import difference

    with serving(load(config, store=store)) as service:
        number = find_source(service.store, source)
        first, second = _chosen(service.store, number, old, new)
    found = difference(first.body.data, second.body.data) | {"old": first.version, "new": second.version}
    if as_json:
        click.echo(json.dumps(found))
    else:
        _print(found)
    if exit_code and not found["same"]:
        ctx.exit(1)


def _chosen(store: ReadStore, source: int, old: int | None, new: int | None) -> tuple[Copy, Copy]:
    """The two versions that are compared; both must be kept, and be text."""
    from unstale.service.difference import readable

    kept = store.versions(source)
    if not kept:
        remedy = f"`unstale run` polls it, `unstale explain {source}` says when"
        raise InputError(sentence("source", source, "has no copy yet", remedy))
    # The first version has none before it, and is compared with itself.
    before = kept[min(1, len(kept) - 1)]
    chosen = []
    for version in (before if old is None else old, kept[0] if new is None else new):
        copy = store.copy(source, version)
        if copy is None:
            remedy = f"`unstale history {source}` lists those that are"
            raise InputError(sentence("version", version, f"of source {source} is not kept", remedy))
        if not readable(copy.body.data, copy.body.media_type):
            kind = copy.body.media_type or "of unknown kind"
            remedy = f"take both with `unstale get {source} --version N`"
            raise InputError(sentence("version", version, f"is {kind}, which has no lines", remedy))
        chosen.append(copy)
    return chosen[0], chosen[1]


def _print(found: dict[str, Any]) -> None:
    out = console()
    if found["old"] == found["new"] == 1:
        out.print("version 1 is the first: it has not changed since", highlight=False)
        return
    out.print(f"version {found['old']} → {found['new']}", style="bold", highlight=False)
    for kind, line in found["lines"]:
        shown = f"{kind} {harmless(line)}"
        out.print(shown, style=_STYLES.get(kind), highlight=False, markup=False, soft_wrap=True)
    if found["same"]:
        out.print("they are the same, byte for byte", highlight=False)
    elif found["cut"]:
        out.print("they are too long to be compared whole: what is not shown may differ too", highlight=False)
    elif not found["lines"]:
        out.print("they differ in what ends their lines alone", highlight=False)


def harmless(line: str) -> str:
    """A line whose characters steer no terminal.

    >>> harmless("a\\x1b[31m\\tb\\u202e")
    'a\\\\x1b[31m    b\\\\u202e'
    """
    spaced = line.replace("\t", "    ")
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in spaced)
