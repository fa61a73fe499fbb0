"""How sources of each kind are polled: a row for every kind in `unstale.kinds`, with its maker and its gate.

Rules of this file:
1. A maker makes the fetcher of its kind when the first source of that kind is polled; until then nothing is loaded.
2. A gate judges an address and options without dialling: what it refuses, the fetcher would refuse at every poll.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unstale.adapters.addresses import Gate, plain_host, web_address
from unstale.adapters.api_terms import ApiTerms, terms_of
from unstale.adapters.body_room import BodyRoom
from unstale.adapters.browser_fetcher import BrowserMeans
from unstale.adapters.file_places import allowed_spot
from unstale.adapters.sql_places import allowed_database
from unstale.adapters.target_places import TargetPlace
from unstale.addresses import host_of
from unstale.frozen import dataclass
from unstale.ports import Aside, Fetcher

if TYPE_CHECKING:
    from unstale.adapters.http_fetcher import HttpFetcher
    from unstale.adapters.poller_fetcher import PollerFetcher


@dataclass(frozen=True, slots=True)
class Means:
    """What fetchers have at hand: which networks, folders and schemes are granted, and how they appear on the web.

    `robots` is the name that robots.txt is asked for, empty if it is not asked. `held` are files of our own, `target`
    the one for copies of tables, `replica` our name among replicas.
    """

    gate: Gate = field(default_factory=Gate)
    roots: tuple[Path, ...] = ()
    schemes: tuple[str, ...] = ()
    held: tuple[Path, ...] = ()
    target: TargetPlace = Path("unstale-tables.db")
    agent: str = "unstale"
    robots: str = ""
    connections: int = 512
    seconds: float = 30.0
    proxy: str = ""
    ca_file: str = ""
    replica: str = ""
    #: the browser that draws pages which need one
    browser: BrowserMeans = field(default_factory=BrowserMeans)
    now: Callable[[], float] = time.time
    #: what the settings say of APIs
    apis: tuple[ApiTerms, ...] = ()
    #: where strangers' bodies are parsed; none: in a thread
    aside: Aside | None = None
    #: what bodies that are being polled may have together; none: each fetcher has its own
    room: BodyRoom | None = None
    #: processes that poll the web; 0: it is polled in this one
    pollers: int = 0
    #: where parts of tables are kept that are on their way to another machine; none: nowhere
    parts: Path | None = None


#: the fetcher of another kind, for those that look through it
Others = Callable[[str], Fetcher]


@dataclass(frozen=True, slots=True)
class Way:
    """How one kind is polled: `make` its fetcher, `admit` an address in its one spelling or raise InputError."""

    make: Callable[[Means, Others], Fetcher]
    admit: Callable[[str, Mapping[str, Any], Means], str]


def granted(
    allow_networks: Iterable[str] = (),
    roots: Iterable[str | Path] = (),
    schemes: Iterable[str] = (),
    held: Iterable[str | Path] = (),
) -> Means:
    """Means with what settings grant, and the rest as it is by default."""
    folders = tuple(Path(root).resolve() for root in roots)
    return Means(Gate(allow_networks), folders, tuple(schemes), tuple(Path(file) for file in held))


def plain_web(means: Means) -> HttpFetcher:
    """A way to the web without robots.txt: for other replicas, which are there to be asked."""
    from unstale.adapters.http_fetcher import HttpFetcher

    return HttpFetcher(means.gate, **_web_terms(means))


def _apart(means: Means) -> PollerFetcher:
    from unstale.adapters.poller_fetcher import PollerFetcher

    return PollerFetcher(means.pollers, means.gate, **_web_terms(means))


def _web_terms(means: Means) -> dict[str, Any]:
    return {
        "agent": means.agent,
        "connections": means.connections,
        "proxy": means.proxy,
        "ca_file": means.ca_file,
        "room": means.room,
        "now": means.now,
    }


def _web(means: Means, others: Others) -> Fetcher:
    fetcher = _apart(means) if means.pollers else plain_web(means)
    if not means.robots:
        return fetcher
    from unstale.adapters.polite_fetcher import PoliteFetcher
    from unstale.adapters.robots import Robots

    robots = Robots(fetcher.look, agent=means.robots, seconds=means.seconds, now=means.now)
    return PoliteFetcher(fetcher, robots, now=means.now)


def _feed(means: Means, others: Others) -> Fetcher:
    from unstale.adapters.feed_fetcher import FeedFetcher

    return FeedFetcher(others("http"), means.aside)


def _browser(means: Means, others: Others) -> Fetcher:
    from unstale.adapters.browser_fetcher import BrowserFetcher

    fetcher = BrowserFetcher(means.gate, means.browser, agent=means.agent, now=means.now)
    if not means.robots:
        return fetcher
    from unstale.adapters.polite_fetcher import PoliteFetcher
    from unstale.adapters.robots import Robots

    # Asked once in the plain way, which is at hand: a browser draws what robots.txt allows.
    plain = plain_web(means)
    return PoliteFetcher(
        fetcher, Robots(plain.look, agent=means.robots, seconds=means.seconds, now=means.now), now=means.now
    )


def _replica(means: Means, others: Others) -> Fetcher:
    from unstale.adapters.replica_fetcher import ReplicaFetcher

    return ReplicaFetcher(plain_web(means), name=means.replica, now=means.now)


def _file(means: Means, others: Others) -> Fetcher:
    from unstale.adapters.file_fetcher import FileFetcher

    return FileFetcher(means.gate, roots=means.roots, schemes=means.schemes, now=means.now)


def _sql(means: Means, others: Others) -> Fetcher:
    from unstale.adapters.sql_fetcher import SqlFetcher

    return SqlFetcher(means.target, means.gate, roots=means.roots, held=means.held, parts=means.parts, now=means.now)


def _api(means: Means, others: Others) -> Fetcher:
    from unstale.adapters.api_auth import ApiAuth
    from unstale.adapters.api_fetcher import ApiFetcher

    auth = ApiAuth(means.gate, agent=means.agent, ca_file=means.ca_file, now=means.now)
    return ApiFetcher(plain_web(means), auth, means.target, means.apis, now=means.now)


def _on_the_web(address: str, options: Mapping[str, Any], means: Means) -> str:
    if (host := plain_host(address)) is not None:
        means.gate.check_host(host)
        return address
    found = web_address(address)
    means.gate.check_host(found.host)
    return found.text


def _at_a_replica(address: str, options: Mapping[str, Any], means: Means) -> str:
    upstream = options.get("upstream")
    if not upstream:
        return _on_the_web(address, options, means)
    _on_the_web(str(upstream), {}, means)
    return address


def _at_an_api(address: str, options: Mapping[str, Any], means: Means) -> str:
    found = _on_the_web(address, options, means)
    terms_of(found, options, means.apis)
    return found


def _among_files(address: str, options: Mapping[str, Any], means: Means) -> str:
    where = allowed_spot(address, means.roots, means.schemes)
    if where.scheme in ("ftp", "sftp"):
        means.gate.check_host(where.host)
    return address


def _own_files(means: Means) -> tuple[Path, ...]:
    return (*means.held, means.target) if isinstance(means.target, Path) else means.held


def _in_a_database(address: str, options: Mapping[str, Any], means: Means) -> str:
    if not allowed_database(address, options, means.roots, _own_files(means)):
        for host in host_of(address).split(","):
            means.gate.check_host(host)
    return address


WAYS: Mapping[str, Way] = {
    "http": Way(_web, _on_the_web),
    "feed": Way(_feed, _on_the_web),
    "file": Way(_file, _among_files),
    "sql": Way(_sql, _in_a_database),
    "api": Way(_api, _at_an_api),
    "browser": Way(_browser, _on_the_web),
    "replica": Way(_replica, _at_a_replica),
}
