"""`unstale get` and `unstale history`: the copy of a source, and what its polls found."""

from __future__ import annotations

import json
import math
import sys
import time
from typing import TYPE_CHECKING, Any

import click

from unstale.cli.choose import find_source
from unstale.cli.reading import ago, firm, iso, size, span
from unstale.cli.service import serving
from unstale.cli.settings import load, settings_options
from unstale.cli.show import console, grid
from unstale.errors import InputError, StoreError, require, sentence
from unstale.service import history_documents
from unstale.service.documents import finite
from unstale.units import DAY, parse_duration
from unstale.writing import whole_file

if TYPE_CHECKING:
    from unstale.ports import Copy
    from unstale.service import FleetService


@click.command()
@click.argument("source")
@click.option("-o", "--output", metavar="FILE", help="Write the copy to FILE instead of standard output.")
@click.option("--version", type=click.IntRange(min=1), metavar="N", help="A kept version; the newest if not told.")
@click.option("--head", is_flag=True, help="What is known of the copy, without its bytes.")
@click.option("--max-age", metavar="TIME", help="Fail if the source was last checked longer ago, e.g. 1h.")
@click.option(
    "--json", "as_json", is_flag=True, help="What is known of the copy as one JSON object, without its bytes."
)
@click.option("--replicas", metavar="LIST", help="Ask replicas instead, like a:8600,b:8600, and take the freshest.")
@click.option("--k", type=click.IntRange(min=1), help="How many of them to ask; two if not told.")
@settings_options
def get(
    source: str,
    output: str | None,
    version: int | None,
    head: bool,
    max_age: str | None,
    as_json: bool,
    replicas: str | None,
    k: int | None,
    config: str | None,
    store: str | None,
) -> None:
    """The copy of a source, byte for byte; how fresh it is goes to the error stream.

    SOURCE is an address, a part of one that no other source has, or an id.

    \b
      unstale get example.org/news > news.html
      unstale get example.org/prices.csv --max-age 1h -o prices.csv
    """
    oldest = math.inf if max_age is None else DAY * parse_duration(max_age, "max_age")
    if replicas is not None:
        _from_replicas(source, replicas, k, oldest, output, as_json or head)
        return
    with serving(load(config, store=store)) as service:
        number = find_source(service.store, source)
        copy = service.store.copy(number, version)
        facts = _facts(service, number, copy)
    if copy is None:
        raise _missing(facts, version)
    checked = float(facts["since_checked"])
    if checked > oldest:
        raise StoreError(
            sentence(
                "copy",
                f"of {facts['address']}",
                f"was checked {span(checked)} ago, which is more than {span(oldest)}",
                f"poll it now with `unstale poll {number}`",
            )
        )
    if as_json:
        click.echo(json.dumps(finite(_plain(facts))))
    elif head:
        _print_head(facts)
    else:
        _write(copy.body.data, output)
        click.echo(_line(facts), err=True)


def _from_replicas(source: str, replicas: str, k: int | None, oldest: float, output: str | None, facts: bool) -> None:
    from unstale.cli.replicas import facts_of, freshest, line_of, named

    found = freshest(source, named(replicas), k, oldest)
    if facts:
        click.echo(json.dumps(facts_of(found)))
        return
    _write(found.body, output)
    click.echo(line_of(found), err=True)


@click.command()
@click.argument("source")
@click.option("--limit", type=click.IntRange(min=1), default=50, show_default=True, help="Show so many polls.")
@click.option("--changes", is_flag=True, help="Only polls that found a change.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object; times in UTC, lengths in seconds.")
@settings_options
def history(source: str, limit: int, changes: bool, as_json: bool, config: str | None, store: str | None) -> None:
    """What polls of a source found, newest first, and the versions that are kept.

    SOURCE is an address, a part of one that no other source has, or an id.
    """
    with serving(load(config, store=store)) as service:
        now = service.clock()
        number = find_source(service.store, source)
        found = service.history(number, limit, changes=changes)
    listing, polls, kept = found.listing, found.polls, found.versions
    if as_json:
        told = {
            "id": number,
            "address": listing.address,
            "polls": [history_documents.observation(one) for one in polls],
            "versions": [history_documents.version(one) | {"bytes": one.size} for one in kept],
        }
        click.echo(json.dumps(told))
        return
    out = console()
    out.print(listing.address, style="bold", highlight=False, markup=False, soft_wrap=True)
    if not polls:
        out.print("no poll has found a change yet" if changes else "it was never polled", highlight=False)
    else:
        table = grid("polled", "", "answer", "after", "received", "")
        table.columns[2].justify, table.columns[-1].no_wrap = "left", False
        for one in polls:
            since = "" if one.modified is None else f"changed {ago(one.modified, now)}"
            table.add_row(
                _local(one.polled_at),
                ago(one.polled_at, now),
                one.answer.value,
                span(one.elapsed) if math.isfinite(one.elapsed) else "–",
                size(one.received),
                one.reason or since,
            )
        out.print(firm(table), highlight=False, markup=False)
    if found.more:
        out.print("and older ones: see --limit", highlight=False)
    for copy in kept:
        out.print(
            f"version {copy.version}, {size(copy.size)}, taken {ago(copy.taken_at, now)}: "
            f"unstale get {number} --version {copy.version}",
            highlight=False,
            markup=False,
            soft_wrap=True,
        )


def _facts(service: FleetService, source: int, copy: Copy | None) -> dict[str, Any]:
    """What is known of a copy; times are seconds since the epoch."""
    moment = service.moment([source])
    now, standing, seen = moment.now, moment.standing, moment.seen
    last, found = float(standing.last[0]), float(standing.found[0])
    (listing,) = service.store.listings([source])
    newest = (service.store.versions(source) or [0])[0]
    facts: dict[str, Any] = {
        "id": source,
        "address": listing.address,
        "checked_at": last,
        "changed_at": found,
        "since_checked": now - last,
        "fresh": float(seen.fresh[0]),
        "age": float(seen.age[0]),
        "newest": newest,
        "now": now,
    }
    if copy is not None:
        body = copy.body
        facts |= {
            "version": copy.version,
            "taken_at": copy.taken_at,
            "media_type": body.media_type,
            "bytes": len(body.data),
            "sha256": copy.digest.hex(),
            "etag": body.etag,
            "last_modified": body.last_modified,
            "from": body.address or listing.address,
        }
        if copy.version != newest:
            facts |= {"fresh": 0.0, "age": math.nan}
    return facts


def _missing(facts: dict[str, Any], version: int | None) -> InputError:
    if facts["newest"]:
        remedy = f"the newest is {facts['newest']}, see `unstale history {facts['id']}`"
        return InputError(sentence("version", version, f"of {facts['address']} is not kept", remedy))
    return InputError(
        sentence(
            "source",
            facts["address"],
            "has no copy yet",
            f"`unstale run` polls it, `unstale explain {facts['id']}` says when",
        )
    )


def _line(facts: dict[str, Any]) -> str:
    kind = facts["media_type"] or "of unknown kind"
    if facts["version"] != facts["newest"]:
        return (
            f"version {facts['version']}, taken {ago(facts['taken_at'], facts['now'])}, {kind}; "
            f"the newest is version {facts['newest']}"
        )
    return (
        f"checked {ago(facts['checked_at'], facts['now'])}, changed {ago(facts['changed_at'], facts['now'])}, "
        f"fresh with {100 * facts['fresh']:.0f} %; version {facts['version']}, {kind}"
    )


def _plain(facts: dict[str, Any]) -> dict[str, Any]:
    times = {name: iso(facts[name]) for name in ("checked_at", "changed_at", "taken_at")}
    return {name: value for name, value in (facts | times).items() if name not in ("now", "newest")} | {
        "is_newest": facts["version"] == facts["newest"]
    }


def _print_head(facts: dict[str, Any]) -> None:
    from rich.table import Table

    table = Table.grid(padding=(0, 2))
    age = f"{facts['age']:.0f} s" if facts["age"] >= 0.0 else ""
    told = {**_plain(facts), "fresh": f"{facts['fresh']:.3f}", "age": age}
    for name in (
        "address",
        "from",
        "version",
        "media_type",
        "bytes",
        "sha256",
        "etag",
        "last_modified",
        "taken_at",
        "checked_at",
        "changed_at",
        "fresh",
        "age",
    ):
        if told[name] not in (None, ""):
            table.add_row(name.replace("_", " "), str(told[name]))
    console().print(table, highlight=False, markup=False, soft_wrap=True)


def _write(data: bytes, output: str | None) -> None:
    if output is None:
        if sys.stdout.isatty():
            _check_printable(data)
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return
    with whole_file(output) as out:
        out.write(data)


def _check_printable(data: bytes) -> None:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = "\0"
    # An escape sequence of a stranger must not reach the terminal either.
    require(
        not any(c < " " and c not in "\t\n\r\f" for c in text),
        "copy",
        f"of {len(data):,} bytes",
        "is not text and would garble the terminal",
        "write it with -o FILE",
    )


def _local(at: float) -> str:
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))
    except (OverflowError, ValueError, OSError):
        return "?"
