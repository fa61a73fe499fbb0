"""From settings to polls: what fetchers have at hand, what sources may be listed, and one look at a claimed source.

Secrets are read from the environment when a poll begins, and are kept in no store, log or file.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

from unstale import __version__
from unstale.adapters.addresses import Gate
from unstale.adapters.admission import Admission
from unstale.adapters.api_terms import ApiTerms
from unstale.adapters.body_room import BodyRoom
from unstale.adapters.browser_fetcher import BrowserMeans
from unstale.adapters.environment import filled, filled_address, hidden
from unstale.adapters.lineage import Lineage, LineageFile
from unstale.adapters.sandbox import Sandbox
from unstale.adapters.target_places import target_place
from unstale.adapters.ways import WAYS, Means, plain_web
from unstale.cli.engine_terms import LONGEST_POLL
from unstale.cli.progress import ProgressKeeper
from unstale.cli.settings import Settings, is_shared
from unstale.core.checks import number
from unstale.errors import UnstaleError
from unstale.keeper.outcomes import Answer
from unstale.kinds import KINDS, known_kind
from unstale.listings.paged import goes_on
from unstale.ports import CallOff, Claim, Ended, Fetched, Fetcher, Listing, Progress, QuickFetcher, Request

if TYPE_CHECKING:
    from unstale.adapters.http_fetcher import HttpFetcher
    from unstale.adapters.lineage_post import LineagePost

#: nobody writes to it
_NO_HEADERS: Mapping[str, str] = {}


def agent(settings: Settings) -> str:
    """How polls name themselves: the program, and whom to write to."""
    name = settings.http.agent or f"unstale/{__version__}"
    return f"{name} (+{settings.http.contact})" if settings.http.contact else name


def means_of(settings: Settings, now: Callable[[], float] = time.time) -> Means:
    """What the settings give fetchers; the secrets in it are still names."""
    http, files = settings.http, settings.files
    return Means(
        Gate(http.allow_networks),
        tuple(Path(root).resolve() for root in files.roots),
        files.schemes,
        () if is_shared(settings.store) else (Path(settings.store),),
        target_place(settings.sql.target or "unstale-tables.db"),
        agent(settings),
        (http.agent or "unstale").partition("/")[0] if http.robots else "",
        http.connections,
        http.timeout,
        filled(http.proxy),
        http.ca_file,
        settings.replicas.name,
        BrowserMeans(
            settings.browser.program,
            filled(settings.browser.endpoint),
            settings.browser.pages,
            settings.browser.sandbox,
        ),
        now,
        apis_of(settings),
    )


def apis_of(settings: Settings) -> tuple[ApiTerms, ...]:
    """What the settings say of APIs."""
    return tuple(
        ApiTerms(**{one.name: getattr(api, one.name) for one in fields(ApiTerms)}) for api in settings.apis.values()
    )


def admission_of(settings: Settings, names: tuple[str, ...] | None = None) -> Admission:
    """The check of a source that is to be listed, by what the settings grant; every face calls this one.

    `names` are those of the environment that may be written; None: all.
    """
    return Admission(means_of(settings), names=names)


class Fetchers:
    """Looks at sources of every kind. A kind's fetcher is made when the first source of that kind is polled.

    Who polls for long may have `pollers`, processes that look at the web.
    """

    def __init__(
        self,
        settings: Settings,
        now: Callable[[], float],
        progress: ProgressKeeper | None = None,
        *,
        pollers: int = 0,
    ) -> None:
        self._settings, self._now, self._progress = settings, now, progress
        #: where strangers' bodies are parsed
        self.sandbox = Sandbox()
        # Beside the store there is a disk; the system's folder for such files may be memory.
        beside = None if is_shared(settings.store) else Path(settings.store).parent
        room = BodyRoom(settings.http.bodies, folder=beside)
        parts = (beside or Path()) / ".unstale.parts"
        self._means = replace(means_of(settings, now), aside=self.sandbox, room=room, parts=parts, pollers=pollers)
        told = settings.sql.lineage
        self._teller = _teller(told, settings.sql.lineage_token, self._means) if told else None
        self._lineage = Lineage(self._teller, self._means.target, now) if self._teller else None
        self._made: dict[str, Fetcher] = {}
        #: of those, the ones that need not be awaited
        self._quick: dict[str, QuickFetcher | None] = {}
        self._usually: dict[str, tuple[float, int, bool]] = {}

    async def look(self, claim: Claim) -> Fetched:
        """Poll a claimed source; what stands in its way on our side is a failure too, in one sentence."""
        begun = self._now()
        try:
            fetcher = self._fetcher(claim.kind)
            request = self._request(claim)
        except UnstaleError as error:
            return Fetched(Answer.FAILED, begun, reason=str(error))
        if claim.kind == "http" and claim.options and "collection" in claim.options:
            from unstale.adapters.listing_fetcher import ListingFetcher  # who adds sources reads no collections

            fetcher = ListingFetcher(fetcher, self._means.aside, now=self._now)
        if claim.kind == "sql" and "collection" not in (claim.options or {}):
            return _shown(claim, request, await self._copied(fetcher, claim, request))
        return _shown(claim, request, await fetcher.fetch(request))

    def begin(self, claim: Claim, ended: Ended) -> CallOff | None:
        """Poll a claimed source without being awaited; None, and nothing was done, if `look` has to be awaited."""
        if claim.options and "collection" in claim.options:
            return None
        try:
            if claim.kind not in self._quick:
                fetcher = self._fetcher(claim.kind)
                self._quick[claim.kind] = fetcher if isinstance(fetcher, QuickFetcher) else None
            if (quick := self._quick[claim.kind]) is None:
                return None
            request = self._request(claim)
        except UnstaleError:
            return None

        address = claim.address

        def came(found: Fetched | Exception) -> None:
            if isinstance(found, Exception) or found.address == address:
                ended(found)
            else:
                ended(_shown(claim, request, found))

        return quick.begin(request, came)

    def ready(self, listing: Listing) -> bool:
        """Whether nothing on our side stands in the way of polling a source, as far as can be told without a poll."""
        try:
            self._request(Claim(listing.id, 0, listing.address, listing.kind, 0.0, listing.options))
            if listing.kind not in self._made:
                Admission(self._means).changing(listing)(listing.address, listing.kind, listing.options)
        except UnstaleError:
            return False
        return True

    def forbids(self, kind: str, address: str) -> str:
        """Why a site that was asked before does not allow an address of it to be polled; empty if it does."""
        from unstale.adapters.polite_fetcher import PoliteFetcher  # who asks no sites needs none

        fetcher = self._made.get(kind)
        return fetcher.forbids(address) if isinstance(fetcher, PoliteFetcher) else ""

    def use(self, kind: str, fetcher: Fetcher) -> None:
        """Look at sources of one more kind with this fetcher."""
        self._made[kind] = fetcher
        self._quick.pop(kind, None)

    async def close(self) -> None:
        """Give back what all fetchers hold."""
        for fetcher in reversed(self._made.values()):
            await fetcher.close()
        self._made.clear()
        self._quick.clear()
        if self._teller is not None:
            await asyncio.to_thread(self._teller.close)
        await self.sandbox.close()

    def plain_web(self) -> HttpFetcher:
        """A way to the web without robots.txt: for other replicas, which are there to be asked."""
        return plain_web(self._means)

    async def _copied(self, fetcher: Fetcher, claim: Claim, request: Request) -> Fetched:
        """Copy a table, and tell of it while that goes on and when it has ended."""
        keeper, lineage = self._progress, self._lineage
        hears = None if keeper is None else keeper.heard(claim.source)
        run = None if lineage is None else lineage.run(claim.address, request.options)

        def hear(told: Progress) -> None:
            if run is not None:
                run.begun()
            if hears is not None:
                hears(told)

        try:
            found = await fetcher.fetch(replace(request, hear=hear))
        finally:
            if keeper is not None:
                await keeper.ended(claim.source)
        if run is not None:
            await asyncio.to_thread(run.ended, found)
        return found

    def _fetcher(self, kind: str) -> Fetcher:
        if kind not in self._made:
            self._made[kind] = WAYS[known_kind(kind).name].make(self._means, self._fetcher)
        return self._made[kind]

    def _request(self, claim: Claim) -> Request:
        options, (seconds, limit, web) = claim.options, self._usual(claim.kind)
        headers, digest = _NO_HEADERS, claim.fingerprint if claim.kind == "http" else None
        etag, last_modified = claim.etag, claim.last_modified
        if options:
            said = options.get("headers")
            headers = {name: filled(value) for name, value in said.items()} if isinstance(said, dict) else _NO_HEADERS
            seconds = min(_number(options, "timeout", seconds), LONGEST_POLL)
            limit = int(_number(options, "limit", limit))
            # Another replica knows the source by the address that names its secret.
            web = web and "upstream" not in options
            digest = None if "normalise" in options else digest
            if claim.fingerprint is None and options.get("collection") and not goes_on(options):
                # It is read by other words than its last copy was: all of it is needed, though nothing has changed.
                etag = last_modified = None
        return Request(
            filled_address(claim.address) if web and "$" in claim.address else claim.address,
            etag,
            last_modified,
            headers,
            options,
            limit,
            seconds,
            claim.last,
            claim.begin_by,
            digest,
        )

    def _usual(self, name: str) -> tuple[float, int, bool]:
        """How long a poll of a kind may take and how much it may bring unless its source says, and whether by HTTP."""
        if (known := self._usually.get(name)) is None:
            # Programs may bring kinds of their own.
            kind, http = KINDS.get(name), self._settings.http
            seconds = min((kind and kind.seconds) or http.timeout, LONGEST_POLL)
            known = self._usually[name] = seconds, int(http.limit), kind is not None and "http" in kind.schemes
        return known


def _teller(place: str, token: str, means: Means) -> LineageFile | LineagePost:
    """Who takes what is told of copies' runs: a file, or a server at an address."""
    if "://" not in place:
        return LineageFile(Path(place))
    from unstale.adapters.lineage_post import LineagePost

    address = filled_address(place)
    return LineagePost(address, means.gate, token=filled(token), agent=means.agent, ca_file=means.ca_file)


def _shown(claim: Claim, request: Request, fetched: Fetched) -> Fetched:
    """What came back with an address that may be kept: it, or where redirects led, may hold what we filled in."""
    if fetched.address in ("", claim.address):
        return fetched
    here = fetched.address == request.address
    return replace(fetched, address=claim.address if here else hidden(fetched.address, claim.address))


def _number(options: Mapping[str, object], name: str, usual: float) -> float:
    """A source's own word for a limit, as `--option timeout=120` says it, in seconds or bytes."""
    told = options.get(name)
    return usual if told is None else number(f"option {name}", told, above=0, remedy="correct it")
