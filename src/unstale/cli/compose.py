"""Where adapters meet the engine: from settings to a running application. Nothing else knows both sides.

Every way to the network goes through one gate, made from the settings.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from unstale.adapters.environment import filled
from unstale.adapters.normalise import Normaliser
from unstale.adapters.sqlite_store import SqliteStore
from unstale.cli.compiling import Compiling
from unstale.cli.engine_terms import config_of as config_of
from unstale.cli.engine_terms import rules_of as rules_of
from unstale.cli.fetchers import Fetchers, admission_of
from unstale.cli.live_telling import LiveTelling
from unstale.cli.locking import locked
from unstale.cli.mended import retry_mended, watch
from unstale.cli.progress import ProgressKeeper
from unstale.cli.settings import Settings, is_shared
from unstale.cli.telling import receivers
from unstale.engine.clock import SystemClock
from unstale.engine.host_limits import HostLimits
from unstale.engine.joining import member_like
from unstale.engine.judge import judge_aside
from unstale.engine.loop import Engine
from unstale.engine.outcomes import PollOutcome
from unstale.engine.store_executor import StoreExecutor
from unstale.errors import InputError, sentence
from unstale.fingerprint import Content
from unstale.keeper.outcomes import Answer
from unstale.ports import Claim, Listing

#: seconds for telling what is left at the end, if the grace is over
TELLING = 0.5
Tell = Callable[[str, Mapping[str, Any]], None]


def content_of(claim: Claim) -> Content | None:
    """What counts in the body of a source: all of it, unless its owner or its kind says otherwise."""
    said = claim.options or {}
    own: Content | None = _normaliser(json.dumps(said["normalise"], sort_keys=True)) if said.get("normalise") else None
    if claim.kind == "browser":
        from unstale.adapters.browser_content import BrowserContent

        own = BrowserContent(own, said.get("picture") is True)
    if own is None and claim.kind == "feed":
        from unstale.adapters.feed_content import feed_content

        own = feed_content
    if said.get("triggers"):
        from unstale.adapters.triggers import Triggers

        return Triggers.said(said["triggers"], own)
    return own


def member_of(
    settings: Settings, forbids: Callable[[str, str], str] = lambda kind, address: ""
) -> Callable[[Claim, str, str], Listing]:
    """How whom a collection tells of is listed: by what the settings take for granted, and only what they grant.

    Nor is anybody listed whom polls would find forbidden: `forbids` says why a site does not allow an address.
    """
    own, check = settings.defaults, admission_of(settings)

    def made(claim: Claim, address: str, inner: str) -> Listing:
        bare = member_like(claim, address, inner)
        place = check(bare.address, bare.kind, bare.options)
        if why := forbids(bare.kind, place):
            raise InputError(why)
        return replace(
            bare,
            address=place,
            weight=own.weight * bare.weight,
            cost=own.cost,
            shortest=own.min_interval,
            longest=own.max_interval,
        )

    return made


@lru_cache(maxsize=4096)
def _normaliser(written: str) -> Normaliser:
    return Normaliser(**json.loads(written))


def open_store(settings: Settings) -> SqliteStore:
    """The store of the settings."""
    return SqliteStore(settings.store, versions=settings.keep, horizon=settings.horizon, steady=time.monotonic)


@contextmanager
def alone(settings: Settings) -> Iterator[None]:
    """The right to run the one engine of a store; StoreError if another process has it."""
    if is_shared(settings.store):
        raise InputError(sentence("store", "in PostgreSQL", "is kept fresh by workers", "start `unstale worker`"))
    path = Path(settings.store)
    if not path.exists():
        # What is locked is the file itself, so there has to be one.
        SqliteStore(path).close()
    with locked(path):
        yield


class Application:
    """An engine with everything around it: fetchers, host_limits, those who are told of changes."""

    def __init__(
        self, settings: Settings, tell: Tell = lambda name, facts: None, *, budget: float | None = None
    ) -> None:
        self.settings, self.clock = settings, SystemClock()
        self.executor = StoreExecutor(lambda: open_store(settings), quick=True)
        self.fetchers = Fetchers(settings, self.clock.now, ProgressKeeper(self.executor), pollers=settings.http.pollers)
        aside = self.fetchers.sandbox
        self.deliveries = LiveTelling(
            self.executor, lambda more: receivers(settings, self.executor, content_of, aside, more), self.clock
        )
        self.tell = tell
        #: called when everything is on the disk, whatever still has to end
        self.recorded: Callable[[], None] = lambda: None
        _check_others(settings)
        config = config_of(settings) if budget is None else replace(config_of(settings), budget=budget)
        self.compiling = Compiling(config.objective)
        self.engine = Engine(
            self.executor,
            config,
            self.clock,
            self.fetchers.look,
            begin=self.fetchers.begin,
            content=content_of,
            host_limits=HostLimits(rules_of(settings)),
            tell=self._heard,
            aside=self.fetchers.sandbox,
            member_of=member_of(settings, self.fetchers.forbids),
            listens=self.compiling.ready,
        )

    def _heard(self, name: str, facts: Mapping[str, Any]) -> None:
        if name == "changed":
            self.deliveries.nudge()
        self.tell(name, facts)

    async def run(self, stop: asyncio.Event) -> None:
        """Keep copies fresh until `stop` is set; what is in flight then ends or is given back."""
        telling, loop = asyncio.Event(), asyncio.get_running_loop()
        deliveries = asyncio.create_task(self.deliveries.run(telling))
        others = asyncio.create_task(_others(self, telling))
        mended = asyncio.create_task(_mended(self, telling))
        stopped = asyncio.create_task(_moment(stop))
        beside = (deliveries, others, mended)
        try:
            await self.executor.do(lambda store: retry_mended(store, self.fetchers, self.clock.now()), long=True)
            await self.engine.run(stop)
        finally:
            self.compiling.close()
            telling.set()
            left = max(stopped.result() + self.engine.config.grace - loop.time() if stopped.done() else 0.0, TELLING)
            stopped.cancel()
            ended, _ = await asyncio.wait(set(beside), timeout=left)
            for task in beside:
                task.cancel()
            # First what was recorded: libcurl waits for every name that is being looked up when it ends.
            self.executor.close()
            self.recorded()
            await self.fetchers.close()
        for task in ended:
            # A fault of ours is not to be hidden.
            task.result()


async def _moment(stop: asyncio.Event) -> float:
    """When `stop` is set, by the loop's time."""
    await stop.wait()
    return asyncio.get_running_loop().time()


async def _mended(application: Application, stop: asyncio.Event) -> None:
    """Files that may be read again are tried at once, where there are files to poll."""
    settings = application.settings
    if settings.files.roots:
        await watch(lambda: StoreExecutor(lambda: open_store(settings)), application.clock.now, stop)


def _check_others(settings: Settings) -> None:
    """Say at once what is wrong with what the settings say of other replicas."""
    from unstale.adapters.addresses import web_address
    from unstale.engine.peer_terms import PeerTerms

    own = settings.replicas
    filled(own.token)
    for address in (*own.peers, *([own.upstream] if own.upstream else [])):
        web_address(address)
    if own.peers:
        PeerTerms(own.peers, own.rate, own.ask, float(own.share))


async def _others(application: Application, stop: asyncio.Event) -> None:
    """Other replicas, as the settings name them: one to follow, peers to ask. Until `stop` is set."""
    own = application.settings.replicas
    if not (own.upstream or own.peers):
        return
    from unstale.adapters.replica_peering import ReplicaPeering
    from unstale.engine.following import Following
    from unstale.engine.peer_terms import PeerTerms
    from unstale.engine.peers import Peers

    web = application.fetchers.plain_web()
    headers = {"Authorization": f"Bearer {own.token}"} if own.token else {}
    secret = {name: filled(value) for name, value in headers.items()}
    peering = ReplicaPeering(
        web, name=own.name, limit=application.settings.http.limit, headers=secret, now=application.clock.now
    )
    parts: list[Coroutine[Any, Any, None]] = []
    # A executor of its own, as any other process has: the engine notices what is written elsewhere, not what it writes.
    executor = StoreExecutor(lambda: open_store(application.settings))
    if own.upstream:
        following = Following(
            own.upstream,
            peering,
            executor,
            application.clock,
            select=own.select,
            headers=headers,
            tell=application.tell,
        )
        parts.append(following.run(stop))
    if own.peers:
        config = PeerTerms(own.peers, own.rate, own.ask, float(own.share))
        peers = Peers(config, peering, executor, application.engine.accept, application.clock, tell=application.tell)
        application.engine.peers = peers.view
        parts.append(peers.run(stop))
    try:
        await asyncio.gather(*parts)
    finally:
        await web.close()
        executor.close()


async def poll_once(settings: Settings, claims: Sequence[Claim]) -> list[PollOutcome]:
    """Look at claimed sources once, without an engine."""
    clock = SystemClock()
    fetchers = Fetchers(settings, clock.now)

    async def look(claim: Claim) -> PollOutcome:
        fetched = await fetchers.look(claim)
        if fetched.body is not None:
            # Bytes of its own: all outcomes are held here, and those that wait for room would wait for ever.
            fetched = replace(fetched, body=bytes(fetched.body))
        try:
            answer, body = await judge_aside(claim, fetched, content_of(claim), fetchers.sandbox)
        except InputError as error:
            answer, body = Answer.FAILED, None
            fetched = replace(fetched, answer=answer, body=None, reason=str(error))
        return PollOutcome(claim, answer, fetched, body)

    try:
        return list(await asyncio.gather(*map(look, claims)))
    finally:
        await fetchers.close()
