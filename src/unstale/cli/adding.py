"""`unstale add` and `unstale import`: from addresses and lists into the store, all or nothing."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from unstale.cli.describe import describing, fields_of
from unstale.cli.looks import feeds, list_at, offered
from unstale.cli.settings import Settings, is_shared, load, poller, settings_options
from unstale.cli.show import Stages
from unstale.errors import InputError, require, sentence
from unstale.kinds import READERS
from unstale.listings.forms import form_of
from unstale.secrecy import shown_address

if TYPE_CHECKING:
    from unstale.lists.rows import Parsed
    from unstale.ports import Listing

#: problems of a list that are shown
SHOWN = 20


@click.command()
@click.argument("addresses", nargs=-1, metavar="[ADDRESS]...")
@click.option(
    "--from",
    "lists",
    multiple=True,
    metavar="FILE",
    help="Read sources from a list: a file, an address, or - for standard input.",
)
@describing
@click.option("--discover", is_flag=True, help="Add the feeds that these pages advertise, name their sitemaps.")
@click.option(
    "--collection",
    "collections",
    multiple=True,
    metavar="ADDRESS",
    help="Add what tells of many sources, a sitemap, feed or index: its members are added and polled by what it says.",
)
@click.option("--listing", metavar="FORM", help=f"How collections are read: {', '.join(READERS)}; guessed if not told.")
@click.option("--weigh", is_flag=True, help="Take weights from the priority that a sitemap gives.")
@click.option("--keep-good", is_flag=True, help="Add the good lines of a list that has bad ones.")
@click.option("--replace", is_flag=True, help="Sources that are known already take what is said now.")
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
@settings_options
def add(
    addresses: tuple[str, ...],
    lists: tuple[str, ...],
    discover: bool,
    collections: tuple[str, ...],
    listing: str | None,
    weigh: bool,
    keep_good: bool,
    replace: bool,
    dry_run: bool,
    config: str | None,
    store: str | None,
    **said: Any,
) -> None:
    """Add sources by their addresses, or from lists.

    A list is a table (.csv, .tsv, .jsonl, .parquet) with a column address and, if you like, kind, weight, cost, host,
    min_interval, max_interval, paused, headers.NAME and options.NAME; text with one address a line, like
    `https://example.org weight=3 min=15m`; OPML; or a sitemap, also packed with gzip. What is said with options holds
    for every source about which its list says nothing else. If one line is wrong, nothing is added.

    \b
      unstale add https://example.org/news --weight 3 --min-interval 15m
      unstale add --from feeds.opml --from https://example.org/sitemap.xml
      unstale add --discover https://example.org/blog
      unstale add --collection https://example.org/sitemap.xml
      unstale add https://api.example.org/v1 --header 'Authorization=Bearer $TOKEN' --drop-json /meta/time
    """
    require(
        addresses or lists or collections,
        "addresses",
        "of sources",
        "are missing",
        "give some, or a list with --from FILE",
    )
    if listing is not None:
        require(collections, "listing", repr(listing), "is how a collection is read", "name that with --collection")
    settings = load(config, store=store)
    if discover:
        require(addresses, "addresses", "of pages", "are missing", "--discover looks at these for feeds")
        said["kind"] = "feed"
        named = dict.fromkeys(one for page in addresses for one in offered(page, settings))
        for one in named:
            click.echo(f"offered {shown_address(one)}: it tells of many pages, add it with --collection")
        found = (feed for page in addresses for feed in feeds(page, settings, required=not named))
        addresses = tuple(dict.fromkeys(found))
        for feed in addresses:
            click.echo(f"found {shown_address(feed)}")
    fields = fields_of(said)
    for address in collections:
        form = listing or form_of(address)
        own = {**fields, "options": {**fields.get("options", {}), "collection": form}}
        (meant,) = _add((address,), (), settings, own, weigh, keep_good, replace, dry_run)
        if listing is None:
            click.echo(f"it is read as {form}, as far as its address tells; --listing says otherwise")
        if not dry_run:
            _collect(meant, settings)
    if collections and is_shared(settings.store):
        click.echo("their members come and go by them; workers plan polls by what one says of members at its own host")
    if addresses or lists:
        _add(addresses, lists, settings, fields, weigh, keep_good, replace, dry_run)


@click.command("import")
@click.argument("file")
@click.option("--keep-good", is_flag=True, help="Take the good lines of a list that has bad ones.")
@settings_options
def import_(file: str, keep_good: bool, config: str | None, store: str | None) -> None:
    """Take over the sources in FILE, and what it says of known ones.

    The same as `unstale add --from FILE --replace`: what `unstale export` wrote comes back as it was.
    """
    _add((), (file,), load(config, store=store), {}, False, keep_good, True, False)


def _add(
    addresses: Sequence[str],
    lists: Sequence[str],
    settings: Settings,
    fields: dict[str, Any],
    weigh: bool,
    keep_good: bool,
    replace: bool,
    dry_run: bool,
) -> list[Listing]:
    from unstale.cli.service import serving

    with Stages(2) as stages, _undisturbed():
        stages.next("reading")
        found, bad = _read(addresses, lists, settings, fields, weigh, keep_good)
        stages.next("comparing" if dry_run else "adding")
        if dry_run and not Path(settings.store).exists():
            new = len(found)
        else:
            with serving(settings, create=True) as service:
                new = len(service.unlisted(found)) if dry_run else service.take(found, replacing=replace)
    _say_added(new, len(found) - new, bad, settings, replace, dry_run)
    return found


def _collect(said: Listing, settings: Settings) -> None:
    """Who was a source already becomes a collection, with all that was said and learned of it."""
    from unstale.cli.service import serving

    with serving(settings) as service:
        source = service.store.find(said.address)
        known = service.store.listings([] if source is None else [source])
        if any(one.options.get("collection") != said.options["collection"] for one in known):
            service.edit([one.id for one in known], {"options": dict(said.options)})
            click.echo(
                f"{shown_address(said.address)} tells of others from now on, read as {said.options['collection']}"
            )


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Without looking for garbage: of a long list everything stays until the end."""
    looked = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if looked:
            gc.enable()


def _read(
    addresses: Sequence[str],
    lists: Sequence[str],
    settings: Settings,
    fields: dict[str, Any],
    weigh: bool,
    keep_good: bool,
) -> tuple[list[Listing], int]:
    """The listings that are to be added, each address once, and how many lines were left out."""
    from unstale.cli.fetchers import admission_of
    from unstale.cli.strangers import strangers_check
    from unstale.lists.read import read_list
    from unstale.lists.rows import listing_of, template

    base, check = template(fields, _base(settings)), admission_of(settings)
    found: dict[str, Listing] = {}
    for address in addresses:
        _no_file(address)
        listing = listing_of({"address": address}, base, check)
        found.setdefault(listing.address, listing)
    bad = 0
    for place in lists:
        judge = strangers_check(check, place, base) if place.lower().startswith(("http://", "https://")) else check
        parsed = read_list(place, base=base, check=judge, load=lambda at: list_at(at, settings), weigh=weigh)
        bad += len(parsed.problems)
        _say_problems(place, parsed, keep_good)
        for listing in parsed.listings:
            found.setdefault(listing.address, listing)
    return list(found.values()), bad


def _base(settings: Settings) -> Listing:
    """What the settings take for granted of a source."""
    from unstale.ports import Listing

    own = settings.defaults
    tables = {"headers": dict(own.headers), "normalise": dict(own.normalise)}
    options = {name: table for name, table in tables.items() if table}
    return Listing("", "", own.weight, own.cost, "", own.min_interval, own.max_interval, options)


def _no_file(address: str) -> None:
    if "://" not in address and Path(address).is_file():
        itself = Path(address).absolute().as_uri()
        remedy = f"write --from {address} if it is a list of sources, or {itself} to keep a copy of it"
        raise InputError(sentence("address", repr(address), "is a file here", remedy))


def _say_problems(place: str, parsed: Parsed, keep_good: bool) -> None:
    """Print what is wrong with a list; unless the good lines are wanted, that is the end."""
    if parsed.unused:
        click.echo(f"of {place} this was not taken over: {', '.join(parsed.unused)[:1000]}", err=True)
    for problem in parsed.problems[:SHOWN]:
        click.echo(str(problem), err=True)
    count = len(parsed.problems)
    if count > SHOWN:
        click.echo(f"… and {count - SHOWN:,} more", err=True)
    if count and not keep_good:
        raise InputError(
            sentence(
                "list",
                repr(place),
                f"has {_lines(count)}, nothing was added",
                "correct them, or add the others with --keep-good",
            )
        )


def _say_added(new: int, known: int, bad: int, settings: Settings, replace: bool, dry_run: bool) -> None:
    from unstale.cli.choose import counted, near

    did, also, where = (
        ("would add", "replace", near(settings.store)) if dry_run else ("added", "replaced", near(settings.store))
    )
    if replace and known:
        text = f"{did} {counted(new)} and {also} {known:,} in {where}"
    else:
        text = f"{did} {counted(new)}{f' ({known:,} known already)' if known else ''} to {where}"
    text += f", {_lines(bad)} left out" if bad else ""
    polls = f"`{poller(settings.store)}` polls {'it' if new == 1 else 'them'}"
    click.echo(text if dry_run or not new else f"{text}; {polls}")


def _lines(count: int) -> str:
    return f"{count:,} bad line{'s' * (count != 1)}"
