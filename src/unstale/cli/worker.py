"""`unstale worker`: many machines on one PostgreSQL database."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import socket
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from unstale.cli.handing_out import desk_of, handed_out
from unstale.cli.logging_option import log_as, log_option
from unstale.cli.reaching import reached
from unstale.cli.settings import Settings, load, settings_options
from unstale.cli.stopping import Stopping
from unstale.errors import InputError, MissingExtraError, StoreError, sentence
from unstale.logs import log
from unstale.units import DAY, many, parse_duration, parse_rate

if TYPE_CHECKING:
    from unstale.adapters.postgres_crew import PostgresCrew
    from unstale.engine.clock import SharedClock
    from unstale.engine.config import EngineConfig
    from unstale.engine.planner import Planner
    from unstale.engine.store_executor import StoreExecutor
    from unstale.service.records import Budget

#: seconds of silence after which the server ends a worker's session: what it held is free for others
IDLE = 15.0
#: seconds between looks for changes that are still to be told
NUDGE = 0.25
#: seconds between looks at the server's clock, and how often it is looked at before anything is claimed
TIME, READINGS = 5.0, 10


@click.command()
@settings_options
@click.option("--budget", metavar="RATE", help="What all workers' polls together may cost; as in the settings.")
@click.option("--for", "lasting", metavar="TIME", help="End after 10m or 8h; Ctrl-C ends it at any time.")
@click.option("--events", is_flag=True, help="Print what happens, a JSON object a line.")
@click.option(
    "--hand-out",
    metavar="HOST:PORT",
    help="Poll nothing of the web oneself: other crawlers ask here what is due, with the token in UNSTALE_HAND_OUT.",
)
@log_option
def worker(
    config: str | None,
    store: str | None,
    budget: str | None,
    lasting: str | None,
    events: bool,
    hand_out: str | None,
    log_json: bool,
) -> None:
    """Keep copies fresh together with other workers, on this and any number of other machines.

    All of them share one PostgreSQL database, `store` in the settings. They divide hosts and budget among themselves:
    each host is polled by one of them. One is elected to find the price; if it goes, another is within
    seconds. A worker can be ended at any moment, also by force: others take over what it had begun. It waits for a
    server that does not answer, at its start as later.

    \b
      unstale move --from sqlite:unstale.db --to postgresql://me@db/fleet
      unstale worker --store postgresql://me@db/fleet --budget 50000/day
    """
    from unstale.cli.run import _plain, _print_event

    log_as(log_json)
    option = None if budget is None else parse_rate(budget, "budget") / DAY
    seconds = None if lasting is None else DAY * parse_duration(lasting, "for")
    settings = load(config, store=store)
    dsn = postgres_of(settings.store)
    tell = _print_event if events else _plain
    heard: list[Stopping] = []
    try:
        say = (lambda text: None) if events else click.echo
        polls = asyncio.run(_work(settings, dsn, option, seconds, tell, say, heard.append, desk_of(hand_out)))
    finally:
        for stopping in heard:
            stopping.over()
    if not events:
        click.echo(f"Stopped after {many(polls, 'poll')}; everything is recorded.")


def postgres_of(address: str, name: str = "store") -> str:
    """The address of a PostgreSQL database with its secrets filled in."""
    try:
        import psycopg  # noqa: F401
    except ImportError:
        raise MissingExtraError("psycopg", "postgres") from None
    from unstale.adapters.environment import filled

    scheme = address.partition(":")[0]
    if scheme not in ("postgresql", "postgres") or "//" not in address:
        raise InputError(
            sentence(
                name,
                f"with scheme {scheme[:20]!r}",
                "is no PostgreSQL database",
                "write postgresql://user@host/database",
            )
        )
    return filled(address)


async def _work(
    settings: Settings,
    dsn: str,
    option: float | None,
    seconds: float | None,
    tell: Callable[[str, Any], None],
    say: Callable[[str], None],
    ending: Callable[[Stopping], None],
    handing_out: tuple[str, int, str] | None = None,
) -> int:
    """Run a worker, and a planner that waits until it is needed."""
    from unstale.adapters.postgres_crew import PostgresCrew
    from unstale.cli.compose import config_of, content_of, member_of, rules_of
    from unstale.cli.fetchers import Fetchers
    from unstale.cli.mended import retry_mended
    from unstale.cli.progress import ProgressKeeper
    from unstale.cli.service import settled
    from unstale.engine.clock import SharedClock
    from unstale.engine.host_limits import HostLimits
    from unstale.engine.planner import Planner
    from unstale.engine.store_executor import StoreExecutor
    from unstale.engine.worker import Worker
    from unstale.logs import logged
    from unstale.service.budget import sentence as sentence_of

    def opened() -> PostgresCrew:
        return PostgresCrew(
            dsn,
            versions=settings.keep,
            horizon=settings.horizon,
            idle=IDLE,
        )

    owner, clock = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(3)}", SharedClock()
    config = replace(config_of(settings), owner=owner, lease=3.0 * settings.http.timeout + 5.0)
    stop = asyncio.Event()
    stopping = Stopping(stop, config.grace)
    ending(stopping)
    if seconds is not None:
        asyncio.get_running_loop().call_later(seconds, stopping.now)

    def begin() -> tuple[list[StoreExecutor[PostgresCrew]], Budget, EngineConfig]:
        budget = settled(settings, option)
        with contextlib.ExitStack() as undo:
            ways = [undo.enter_context(contextlib.closing(StoreExecutor(opened))) for _ in range(3)]
            for _ in range(READINGS):
                _read_clock(ways[0].store, clock)
            agreed = _agree(ways[0].store, replace(config, budget=budget.rate), settings, clock.now())
            undo.pop_all()
        return ways, budget, agreed

    if (begun := await reached(begin, stop, lambda text: logged(tell)("store_failed", {"reason": text}))) is None:
        stopping.saved()
        return 0
    (executor, life, planning), budget, config = begun
    if budget.set_here:
        say(f"budget {sentence_of(budget)}")
    fetchers = Fetchers(settings, clock.now, ProgressKeeper(executor), pollers=settings.http.pollers)
    desk = None if handing_out is None else await handed_out(fetchers, clock.now, *handing_out)
    engine = Worker(
        executor,
        life,
        config,
        clock,
        fetchers.look,
        rules=rules_of(settings),
        begin=fetchers.begin,
        content=content_of,
        tell=tell,
        aside=fetchers.sandbox,
        member_of=member_of(settings, fetchers.forbids),
    )
    planner = Planner(planning, config, clock, HostLimits(rules_of(settings)), tell)
    others = [
        asyncio.create_task(planner.run(stop)),
        asyncio.create_task(_deliver(settings, opened, planner, clock, stop)),
        asyncio.create_task(_keep_time(executor, clock, stop)),
    ]
    try:
        await executor.insist(lambda store: retry_mended(store, fetchers, clock.now()), stop)
        await engine.run(stop)
    finally:
        stopping.now()
        if desk is not None:
            desk.close()
        await asyncio.gather(*others)
        executor.close()
        life.close()
        planner.close()
        stopping.saved()
        await fetchers.close()
    return engine.counters.polls


def _agree(store: PostgresCrew, config: EngineConfig, settings: Settings, now: float) -> EngineConfig:
    """What all workers go by: the store's word, or this settings file's, if it was changed since."""
    from unstale.cli.service import written_at
    from unstale.engine.shared_terms import TERMS, SharedTerms, agreed
    from unstale.ports import COST_IN

    own = SharedTerms.of(config, written_at(settings.path, now))
    terms, news = agreed(own, store.setting(TERMS))
    if news is not None:
        store.record([], settings={TERMS: news, COST_IN: terms.cost_in.encode()})
    if not own.same(terms):
        log("terms_differ", {"own": asdict(own), "kept": asdict(terms)})
    return replace(terms.over(config), budget=config.budget)


async def _deliver(
    settings: Settings, opened: Callable[[], PostgresCrew], planner: Planner, clock: SharedClock, stop: asyncio.Event
) -> None:
    """Tell of changes as long as this process plans: one of all workers does, and what it leaves the next one tells."""
    from unstale.adapters.sandbox import Sandbox
    from unstale.cli.compose import content_of
    from unstale.cli.live_telling import LiveTelling
    from unstale.cli.telling import receivers
    from unstale.engine.store_executor import StoreExecutor

    while not stop.is_set():
        if planner.elected:
            with contextlib.suppress(StoreError):
                executor, ended, sandbox = StoreExecutor(opened), asyncio.Event(), Sandbox()
                make = partial(receivers, settings, executor, content_of, sandbox)
                deliveries = LiveTelling(executor, make, clock)
                telling = asyncio.create_task(deliveries.run(ended))
                while planner.elected and not stop.is_set():
                    deliveries.nudge()
                    await asyncio.sleep(NUDGE)
                ended.set()
                await telling
                await sandbox.close()
                executor.close()
        await asyncio.sleep(NUDGE)


def _read_clock(store: PostgresCrew, clock: SharedClock) -> None:
    """All workers go by the server's clock, whatever their machines' clocks are set to."""
    asked = clock.steady()
    told = store.server_time()
    clock.heard(asked=asked, told=told, answered=clock.steady())


async def _keep_time(executor: StoreExecutor[PostgresCrew], clock: SharedClock, stop: asyncio.Event) -> None:
    """Ask the server for its time now and then: clocks run differently, and the server's may be set."""
    while not stop.is_set():
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), TIME)
        # Without the server time runs on; who needs it more says what is wrong.
        with contextlib.suppress(StoreError):
            await executor.do(lambda store: _read_clock(store, clock))
