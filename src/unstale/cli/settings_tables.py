"""Everything that unstale.toml can say, table by table: each setting with its default, its form and its meaning.

A setting is declared once, with its default as it would be written, how it is read and what it means; the page of
settings in the documentation is checked against this. Times are seconds and rates per second once read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from unstale.calendar import Hours
from unstale.cli import forms
from unstale.cli.kind_settings import ApiSettings, BrowserSettings, Files, Http, Sql, setting
from unstale.frozen import dataclass


@dataclass(frozen=True, slots=True)
class OnChange:
    """Whom to tell of changes: exactly one of webhook, command, log and notify."""

    webhook: str = setting("", forms.place, "Post every change to this address; what is secret in it as $NAME.")
    secret: str = setting("", forms.reference, "The environment variable whose value signs what is posted, as $NAME.")
    command: tuple[str, ...] = setting([], forms.texts, "Run this program with these arguments for every change.")
    log: str = setting("", forms.text, "Append every change to this file, one JSON object a line.")
    notify: str = setting(
        "", forms.reference, "The environment variable with the address of a service that Apprise knows, as $NAME."
    )
    first: bool = setting(False, forms.flag, "Whether first copies are told too, which are no changes.")
    tags: tuple[str, ...] = setting([], forms.texts, "Tell only of sources with one of these tags; none: of all.")
    sources: tuple[str, ...] = setting(
        [],
        forms.texts,
        "Tell only of the sources with these addresses, and of those with one of the tags.",
    )
    hours: tuple[Hours, ...] = setting(
        [], forms.windows, "When it is told; what changes between is told then. None: at once."
    )
    title: str = setting("", forms.text, "With notify: a template for the title of a message; empty: as ever.")
    text: str = setting("", forms.text, "With notify: a template for its text; empty: as ever.")


@dataclass(frozen=True, slots=True)
class HostSettings:
    """What holds for one host instead of [http]."""

    spacing: float = setting("1s", forms.seconds, "Time between the starts of two polls.")
    concurrency: int = setting(2, forms.whole, "Polls at a time.")
    budget: float = setting("", forms.cap, "What its polls may cost at most; empty: only the budget of all limits it.")
    leave: float = setting(
        0, forms.part, "The share of that, and of the quota that the host itself tells, which is left to others."
    )
    windows: tuple[Hours, ...] = setting([], forms.windows, "When it may be polled; none: whenever all may.")


@dataclass(frozen=True, slots=True)
class ContractSettings:
    """What is promised of all sources with one tag."""

    fresh_within: float = setting(
        "0s", forms.seconds, "No copy lacks a change that is older than this; 0s: none that there was."
    )
    target: float = setting(1, forms.share, "The share of the time for which that holds; 1: always.")


@dataclass(frozen=True, slots=True)
class Defaults:
    """What `unstale add` takes for granted of a new source."""

    weight: float = setting(1, forms.amount, "How much its freshness counts.")
    cost: float = setting(1, forms.above_zero, "What one poll of it takes from the budget.")
    min_interval: float = setting("0s", forms.seconds, "Never poll it sooner again than this.")
    max_interval: float = setting("", forms.longest, "Poll it at least this often; empty: as seldom as the price says.")
    headers: Mapping[str, str] = setting({}, forms.headers, "Sent with every poll; secrets as $NAME.")
    normalise: Mapping[str, Any] = setting(
        {},
        forms.normalise,
        "What counts as a change: selectors and pointers are dropped, keep and keep_pointers are all that counts; "
        "whitespace, case, digits and dates may be ignored.",
    )


@dataclass(frozen=True, slots=True)
class Server:
    """How copies are served."""

    listen: str = setting("127.0.0.1:8600", forms.text, "The address and port to serve at.")
    address: str = setting(
        "", forms.text, "Where people reach the dashboard, like https://unstale.example.org: news link to it."
    )
    token: str = setting(
        "$UNSTALE_TOKEN", forms.reference, "The environment variable with the token that writing needs, as $NAME."
    )
    names: tuple[str, ...] = setting(
        [], forms.texts, "Names besides localhost by which clients on this machine, or a proxy there, may call it."
    )
    environment: tuple[str, ...] = setting(
        [],
        forms.texts,
        "Environment variables that may be named by who adds sources over the network, like GITHUB_*.",
    )
    weigh: bool = setting(False, forms.flag, "Whether sources weigh more the more their copies are read.")
    reader_password: str = setting(
        "", forms.reference, "The environment variable with a password for looking at the dashboard, as $NAME."
    )
    operator_password: str = setting(
        "", forms.reference, "The environment variable with a password for changing things there, as $NAME."
    )
    readers: Mapping[str, str] = setting(
        {}, forms.people, "People who may look, each with the environment variable of a password, as $NAME."
    )
    operators: Mapping[str, str] = setting(
        {}, forms.people, "People who may change things, each with the environment variable of a password, as $NAME."
    )
    key: str = setting(
        "",
        forms.reference,
        "The environment variable with the key that seals secrets which were entered in the browser, as $NAME.",
    )
    icons: bool = setting(
        False, forms.flag, "Whether the dashboard shows the icons of sites: the server asks each site for its own."
    )
    hub_secret: str = setting(
        "", forms.reference, "The environment variable with the secret that hubs sign with (WebSub), as $NAME."
    )


@dataclass(frozen=True, slots=True)
class Replicas:
    """Other replicas: which to follow, which to ask, what they are told."""

    name: str = setting("", forms.text, "This replica's name among others: a copy that came through it is not taken.")
    upstream: str = setting("", forms.text, "A replica to follow, like http://10.0.0.7:8600: its sources become ours.")
    select: str = setting("*", forms.text, "Which of its sources: a pattern with * and ?, or a part of the address.")
    token: str = setting("", forms.reference, "The environment variable with the token that they ask for, as $NAME.")
    peers: tuple[str, ...] = setting([], forms.texts, "Replicas to ask now and then for copies newer than ours.")
    rate: float = setting("1/min", forms.rate, "How often peers are asked.")
    ask: int = setting(1, forms.whole, "How many of them are asked at a time.")
    share: int = setting("256KiB", forms.size, "What they may send us, per second on average.")
    tell: bool = setting(False, forms.flag, "Whether others are told at /digest which sources we have, and how fresh.")


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything in unstale.toml. Paths are absolute: relative ones are meant from the folder of the file."""

    store: str = setting("unstale.db", forms.text, "The file that holds sources, copies and what polls taught.")
    budget: float = setting(
        "1000/day", forms.rate, "What all polls together may cost; a poll costs 1 unless its source says otherwise."
    )
    cost_in: str = setting(
        "polls",
        forms.cost_in,
        "What the budget counts: polls, or calls, rows or bytes, of which polls' use is measured and learned.",
    )
    objective: str = setting(
        "freshness", forms.objective, "What the budget is spent for: freshness, age, missed, deadline:1h and others."
    )
    burst: float = setting(
        "auto", forms.burst, "Budget that may be spent at once after a pause; auto: about what a second brings."
    )
    first_round: float = setting(
        "60/min",
        forms.allowance,
        "First polls of new sources that may be made beside the budget, within their hosts' limits; empty: none.",
    )
    windows: tuple[Hours, ...] = setting(
        [], forms.windows, "When polls are allowed, like 22:00-06:00 Mon-Fri Europe/Berlin; none: always."
    )
    keep: int = setting(3, forms.whole, "Versions of a source that are kept.")
    horizon: float = setting("90d", forms.some_seconds, "How long observations are kept.")
    http: Http = field(default_factory=Http)
    files: Files = field(default_factory=Files)
    sql: Sql = field(default_factory=Sql)
    browser: BrowserSettings = field(default_factory=BrowserSettings)
    on_change: tuple[OnChange, ...] = ()
    hosts: Mapping[str, HostSettings] = field(default_factory=dict)
    contracts: Mapping[str, ContractSettings] = field(default_factory=dict)
    apis: Mapping[str, ApiSettings] = field(default_factory=dict)
    defaults: Defaults = field(default_factory=Defaults)
    server: Server = field(default_factory=Server)
    replicas: Replicas = field(default_factory=Replicas)
    #: where the settings came from, None if there is no file
    path: Path | None = None

    def host(self, name: str) -> HostSettings:
        """What holds for one host: its own settings, otherwise those of [http].

        >>> Settings().host("example.org").spacing, Settings().host("127.0.0.1").spacing
        (1.0, 0.0)
        """
        return self.hosts.get(name) or self.usual_host(is_private(name))

    def usual_host(self, near: bool) -> HostSettings:
        """What holds for hosts of which nothing is said, on private networks (`near`) or elsewhere."""
        return HostSettings(
            spacing=0.0 if near else self.http.spacing,
            concurrency=self.http.connections if near else self.http.concurrency,
        )


#: tables of settings, and those that come several times
TABLES: dict[str, type] = {
    "http": Http,
    "files": Files,
    "sql": Sql,
    "browser": BrowserSettings,
    "defaults": Defaults,
    "server": Server,
    "replicas": Replicas,
}


SEVERAL: dict[str, type] = {
    "on_change": OnChange,
    "hosts": HostSettings,
    "contracts": ContractSettings,
    "apis": ApiSettings,
}


def is_shared(store: str) -> bool:
    """Whether a store is a PostgreSQL database, which many machines may share, and not a file.

    >>> is_shared("postgresql://me@db/fleet"), is_shared("unstale.db")
    (True, False)
    """
    return store.startswith(("postgresql://", "postgres://"))


def is_private(host: str) -> bool:
    """This machine or a private network, as far as the name tells: there manners are the owner's own business."""
    if host[-1:].isalpha() and ":" not in host:
        # No number, and nothing that need be read as one.
        return host == "localhost" or host.endswith(".localhost")
    try:
        return not ip_address(host.strip("[]")).is_global
    except ValueError:
        return host in ("", "localhost") or host.endswith(".localhost")
