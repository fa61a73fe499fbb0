"""The store of the settings, opened: to be read, to be written, and as the service that every command and face asks."""

from __future__ import annotations

import getpass
import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unstale.calendar import written_hours
from unstale.cli import locking
from unstale.cli.settings import Settings, is_shared, near
from unstale.errors import MissingExtraError, OlderStoreError, StoreError, sentence

if TYPE_CHECKING:
    from unstale.adapters.admission import Admission
    from unstale.ports import Listing, ReadStore, Store
    from unstale.service import FleetService, ServiceSettings
    from unstale.service.records import Budget
    from unstale.service.service_settings import Granted, ReadList


#: seconds that two clocks may be apart and count as the same
APART = 1.0


def read_store(settings: Settings) -> ReadStore:
    """The store, to be read and nothing else."""
    if is_shared(settings.store):
        from unstale.adapters.postgres_replica import PostgresReplica

        return PostgresReplica(address_of(settings.store))
    from unstale.adapters.sqlite_replica import SqliteReplica

    _there(settings)
    locking.check_name(Path(settings.store))
    try:
        return SqliteReplica(settings.store)
    except OlderStoreError as older:
        _bring_up(settings, older)
    return SqliteReplica(settings.store)


def _bring_up(settings: Settings, older: OlderStoreError) -> None:
    """Bring the store of an earlier version up, as any command that writes would, unless its engine is running."""
    from unstale.cli.compose import alone

    try:
        with alone(settings):
            write_store(settings).close()
    except StoreError:
        raise older from None


def write_store(settings: Settings, *, create: bool = False) -> Store:
    """The store, to be changed; made if it may be."""
    if is_shared(settings.store):
        from unstale.adapters.postgres_store import PostgresStore

        return PostgresStore(
            address_of(settings.store), versions=settings.keep, horizon=settings.horizon, create=create
        )
    from unstale.adapters.sqlite_store import SqliteStore

    if not create:
        _there(settings)
    locking.check_name(Path(settings.store))
    # What is polled by a command makes nothing old either when the clock was set.
    steady = time.monotonic
    return SqliteStore(settings.store, versions=settings.keep, horizon=settings.horizon, create=create, steady=steady)


@contextmanager
def serving(settings: Settings, *, create: bool = False) -> Iterator[FleetService]:
    """The service of the settings' store, as long as the context lasts; with `create` the store is made if missing."""
    from unstale.service.edits import acting

    if create:
        write_store(settings, create=True).close()
    service = service_of(settings)
    try:
        with acting(_me()):
            yield service
    finally:
        service.close()


def _me() -> str:
    """Who gives commands here."""
    try:
        return f"{getpass.getuser()}, by command"
    except (OSError, KeyError, ImportError):
        return "somebody, by command"


def service_of(settings: Settings, *, afar: bool = False) -> FleetService:
    """The service of the settings' store: it reads, and writes where it is told to, `afar` if over the network."""
    from unstale.service import FleetService

    store = read_store(settings)
    clock = clock_of(settings, store)
    terms = terms_of(settings, afar=afar, clock=clock)
    return FleetService(store, terms, writing=lambda: write_store(settings), clock=clock)


def clock_of(settings: Settings, store: ReadStore) -> Callable[[], float]:
    """The time by which a store is asked and changed: its server's, for one that others share from other machines."""
    if not is_shared(settings.store):
        return _machine_time
    from unstale.adapters.postgres_link import PostgresLink
    from unstale.engine.clock import StoreTime

    assert isinstance(store, PostgresLink)
    return StoreTime(store.server_time, store.time_if_idle)


def _machine_time() -> float:
    return time.time()


def terms_of(settings: Settings, *, afar: bool = False, clock: Callable[[], float] = _machine_time) -> ServiceSettings:
    """What the settings say, as far as the service needs it; `afar`: for those who write over the network."""
    from unstale.cli.engine_terms import config_of, rules_of
    from unstale.service import ServiceSettings

    @cache
    def admission() -> Admission:
        # Asked for by those who add sources: then once, and only they need all kinds of fetchers.
        from unstale.adapters.admission import names_in
        from unstale.cli.fetchers import admission_of

        granted = (*settings.server.environment, *names_in(settings.defaults.headers)) if afar else None
        return admission_of(settings, granted)

    return ServiceSettings(
        config=config_of(settings),
        rules=rules_of(settings),
        granted=lambda name: granted(settings, name),
        running=lambda: engine_runs(settings),
        listing=lambda said, before: listing_of(settings, admission(), said, before),
        lists=lambda data: _listed(settings, admission(), data),
        file=str(settings.path or ""),
        changed_at=lambda: written_at(settings.path, clock()),
        written=_written(settings),
    )


def _written(settings: Settings) -> dict[str, tuple[str, str]]:
    """Settings of the fleet as a whole, as they are written; what can be changed while it runs first."""
    from unstale.cli.engine_terms import config_of
    from unstale.engine.said_settings import LIVE
    from unstale.service.words import span

    config, meant = config_of(settings), {one.name: one.metadata["meaning"] for one in fields(settings) if one.metadata}
    said = {name: one.written(getattr(config, one.field)) for name, one in LIVE.items()}
    meant["contracts"] = "What is promised of sources by tags, like orders: 1h; news: 1d 95%; none: nothing."
    meant["hosts"] = (
        "Time between polls of a host, and polls of it at a time, like shop.example: 5s; api.example: 1s 4; others are "
        "treated as the settings file says."
    )
    said |= {"cost_in": settings.cost_in, "keep": f"{settings.keep:,}", "horizon": span(settings.horizon)}
    return {name: (value, meant[name]) for name, value in said.items()}


def settled(settings: Settings, option: float | None) -> Budget:
    """At a start: the last word on the budget made to count, an option of the command being one; the one in force."""
    from unstale.service import FleetService

    store = write_store(settings, create=True)
    try:
        # Whoever starts is not the one that ran before.
        clock = clock_of(settings, store)
        terms = replace(terms_of(settings, clock=clock), running=lambda: False)
        return FleetService(store, terms, writing=lambda: store, clock=clock).settle(option)
    finally:
        store.close()


def listing_of(settings: Settings, check: Admission, said: Mapping[str, Any], before: Listing | None) -> Listing:
    """A source as it is described, over what was said of it before or what the settings take for granted.

    Intervals that are numbers are seconds, and no longest one is null; as text they are what people write.
    """
    from unstale.cli.adding import _base
    from unstale.lists import rows

    base = _base(settings) if before is None else before
    fields = dict(said)
    if not isinstance(fields.get("min_interval", ""), str):
        base = replace(base, shortest=float(fields.pop("min_interval")))
    if not isinstance(fields.get("max_interval", ""), str):
        most = fields.pop("max_interval")
        base = replace(base, longest=math.inf if most is None else float(most))
    if fields.get("host") == "":
        # An empty host is one to be found anew from the address.
        base = replace(base, host="")
    return rows.listing_of(fields, base, check if before is None else check.changing(before))


def _listed(settings: Settings, check: Admission, data: bytes) -> ReadList:
    """A list as it was sent, over what the settings take for granted; nothing that it names is got for it."""
    from unstale.cli.adding import _base
    from unstale.lists.read import read_list
    from unstale.service.service_settings import ReadList

    found = read_list(data, base=_base(settings), check=check)
    problems = tuple((one.line, one.reason) for one in found.problems)
    return ReadList(tuple(found.listings), problems, found.unused)


def granted(settings: Settings, name: str) -> Granted:
    """What the settings grant a host."""
    from unstale.service.service_settings import Granted

    own = settings.host(name)
    return Granted(own.spacing, own.concurrency, own.budget or math.inf, written_hours(own.windows))


def engine_runs(settings: Settings) -> bool | None:
    """Whether a process keeps this store file fresh now; None where the system cannot tell."""
    return locking.engine_runs(Path(settings.store))


def address_of(store: str) -> str:
    """The address of a PostgreSQL database with its secrets filled in."""
    from unstale.adapters.environment import filled

    try:
        import psycopg  # noqa: F401
    except ImportError:
        raise MissingExtraError("psycopg", "postgres") from None
    return filled(store)


def _there(settings: Settings) -> None:
    if not Path(settings.store).exists():
        raise StoreError(
            sentence(
                "store",
                repr(near(settings.store)),
                "does not exist",
                "add sources with `unstale add`, or name it with --store",
            )
        )


def written_at(path: Path | None, now: float) -> float:
    """When a settings file was written, by a clock that says it is `now`: this machine's may be set to anything."""
    off = now - time.time()
    try:
        return path.stat().st_mtime + (off if abs(off) > APART else 0.0) if path is not None else 0.0
    except OSError:
        return 0.0
