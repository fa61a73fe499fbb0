"""`unstale.toml`: what the command needs to know beyond its sources. Every setting is optional.

Here is how the file is found and read; what can stand in it is in `settings_tables`.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import Field, fields, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

import click

from unstale.addresses import without_secrets
from unstale.cli import forms
from unstale.cli.kind_settings import ApiSettings as ApiSettings
from unstale.cli.kind_settings import Files as Files
from unstale.cli.kind_settings import Http as Http
from unstale.cli.kind_settings import Sql as Sql
from unstale.cli.settings_tables import SEVERAL as SEVERAL
from unstale.cli.settings_tables import TABLES as TABLES
from unstale.cli.settings_tables import ContractSettings as ContractSettings
from unstale.cli.settings_tables import Defaults as Defaults
from unstale.cli.settings_tables import HostSettings as HostSettings
from unstale.cli.settings_tables import OnChange as OnChange
from unstale.cli.settings_tables import Replicas as Replicas
from unstale.cli.settings_tables import Server as Server
from unstale.cli.settings_tables import Settings as Settings
from unstale.cli.settings_tables import is_shared as is_shared
from unstale.errors import InputError, require, sentence, suggestion

NAME = "unstale.toml"
F = TypeVar("F", bound=Callable[..., Any])


def load(path: str | Path | None = None, *, store: str | None = None) -> Settings:
    """The settings in a file; without a path, in UNSTALE_CONFIG or in the nearest unstale.toml upwards from here.

    `store` overrules the file's. Without a file everything has its default.
    """
    file = _find(path)
    given = _toml(file) if file else {}
    folder = (file.parent if file else Path()).absolute()
    settings = replace(_settings(given, folder), path=file)
    if store:
        settings = replace(settings, store=store if is_shared(store) else str(Path(store).absolute()))
    return settings


def poller(store: str) -> str:
    """The command that polls what a store lists.

    >>> poller("unstale.db"), poller("postgresql://me@db/fleet")
    ('unstale run', 'unstale worker')
    """
    return "unstale worker" if is_shared(store) else "unstale run"


def near(path: str) -> str:
    """A path as it is seen from here; a database by its place, without who asks and with what.

    >>> near("postgresql://me:s3cret@db/fleet?password=x")
    'postgresql://db/fleet'
    """
    if is_shared(path):
        return without_secrets(path)
    try:
        return str(Path(path).relative_to(Path.cwd()))
    except ValueError:
        return path


def one_file(settings: Settings, remedy: str) -> Settings:
    """The settings, if their store is a file of ours and no database that others look after."""
    require(not is_shared(settings.store), "store", "in PostgreSQL", "is not a file", remedy)
    return settings


def settings_options(command: F) -> F:
    """The options with which every command finds its settings and its store: `config` and `store`."""
    command = click.option(
        "--store",
        metavar="FILE",
        envvar="UNSTALE_STORE",
        help="The store; as in the settings, or unstale.db, if not told.",
    )(command)
    return click.option(
        "--config",
        metavar="FILE",
        envvar="UNSTALE_CONFIG",
        help="The settings; the nearest unstale.toml upwards if not told.",
    )(command)


def _settings(given: Mapping[str, Any], folder: Path) -> Settings:
    plain = {name: value for name, value in given.items() if name not in {*TABLES, *SEVERAL}}
    found = _read(Settings, plain, "")
    parts: dict[str, Any] = {
        name: _read(kind, _table(name, given[name]), f"{name}.") for name, kind in TABLES.items() if name in given
    }
    settings: Settings = replace(found, **parts)
    defaults = settings.defaults
    require(
        defaults.min_interval <= defaults.max_interval,
        "defaults.min_interval",
        f"{defaults.min_interval:g} s",
        f"must not exceed max_interval {defaults.max_interval:g} s",
        "swap them",
    )

    def at(text: str) -> str:
        return str(folder / Path(text).expanduser())

    http = settings.http
    return replace(
        settings,
        store=settings.store if is_shared(settings.store) else at(settings.store),
        http=replace(http, ca_file=at(http.ca_file) if http.ca_file else ""),
        files=replace(settings.files, roots=tuple(at(root) for root in settings.files.roots)),
        sql=_sql(settings.sql, at, folder),
        on_change=tuple(_on_change(i, one, at) for i, one in enumerate(_list("on_change", given.get("on_change", [])))),
        hosts=_hosts(_table("hosts", given.get("hosts", {})), settings),
        apis=_apis(_table("apis", given.get("apis", {}))),
        contracts=_contracts(_table("contracts", given.get("contracts", {}))),
    )


def _on_change(i: int, given: Any, at: Callable[[str], str]) -> OnChange:
    name = f"on_change[{i}]"
    found: OnChange = _read(OnChange, _table(name, given), f"{name}.")
    ways = [way for way in ("webhook", "command", "log", "notify") if getattr(found, way)]
    require(
        len(ways) == 1,
        name,
        f"with {' and '.join(ways) or 'nothing'}",
        "must be one of webhook, command, log and notify",
        "write a table for each",
    )
    return replace(found, log=at(found.log)) if found.log else found


def _sql(own: Sql, at: Callable[[str], str], folder: Path) -> Sql:
    target, lineage = _target(own.target, at) or _usual_target(folder), own.lineage
    return replace(own, target=target, lineage=_target(lineage, at))


def _target(told: str, at: Callable[[str], str]) -> str:
    """Where copies of tables go: a place on this disk is seen from the settings' folder, an address is what it is."""
    return told if not told or "://" in told else at(told)


def _usual_target(folder: Path) -> str:
    """Where copies of tables go if nobody says: who has copies in SQLite keeps them there."""
    old = folder / "unstale-tables.db"
    return str(old if old.exists() or find_spec("duckdb") is None else old.with_suffix(".duckdb"))


def _apis(given: Mapping[str, Any]) -> dict[str, ApiSettings]:
    found = {}
    for name, table in given.items():
        own: ApiSettings = _read(ApiSettings, _table(f"apis.{name}", table), f"apis.{name}.")
        base = own.base.startswith(("http://", "https://"))
        remedy = 'write it like "https://api.example.org/v1/"'
        require(base, f"apis.{name}.base", repr(own.base), "is where no API is", remedy)
        found[name] = own
    return found


def _contracts(given: Mapping[str, Any]) -> dict[str, ContractSettings]:
    found = {}
    for tag, table in given.items():
        name = f"contracts.{tag}"
        own: ContractSettings = _read(ContractSettings, _table(name, table), f"{name}.")
        rule, remedy = "promises nothing that polls can keep", 'write fresh_within = "1h", or target = 0.95, or both'
        require(own.fresh_within > 0.0 or own.target < 1.0, name, "(given)", rule, remedy)
        found[tag] = own
    return found


def _hosts(given: Mapping[str, Any], settings: Settings) -> dict[str, HostSettings]:
    found = {}
    for name, table in given.items():
        own = _read(HostSettings, _table(f"hosts.{name}", table), f"hosts.{name}.")
        usual = settings.host(name)
        found[name.lower()] = replace(
            own,
            spacing=own.spacing if "spacing" in table else usual.spacing,
            concurrency=own.concurrency if "concurrency" in table else usual.concurrency,
        )
    return found


def _read(kind: type, given: Mapping[str, Any], where: str) -> Any:
    """One table of settings: names that are none are refused, with what they could have meant."""
    known: dict[str, Field[Any]] = {f.name: f for f in fields(kind) if f.metadata}
    others = {*TABLES, *SEVERAL} if kind is Settings else set()
    for name in given.keys() - known.keys():
        there = [*known, *sorted(others)]
        remedy = suggestion(name, there, f"there are {', '.join(there)}", where)
        raise InputError(sentence("setting", repr(where + name), "is unknown", remedy))
    return kind(**{name: known[name].metadata["read"](where + name, value) for name, value in given.items()})


def _table(name: str, given: Any) -> Mapping[str, Any]:
    if not isinstance(given, dict):
        raise forms.refused(name, given, "must be a table", f"write it as [{name}]")
    return given


def _list(name: str, given: Any) -> list[Any]:
    if not isinstance(given, list):
        raise forms.refused(name, "given", "must be a list of tables", f"write each as [[{name}]]")
    return given


def _find(path: str | Path | None) -> Path | None:
    if given := path or os.environ.get("UNSTALE_CONFIG"):
        file = Path(given).absolute()
        require(file.is_file(), "settings", repr(str(given)), "are no file", "check the path")
        return file
    here = Path.cwd()
    return next((file for folder in (here, *here.parents) if (file := folder / NAME).is_file()), None)


def _toml(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text("utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(sentence("settings", repr(str(file)), "cannot be read", str(error))) from None
    except OSError as error:
        raise InputError(
            sentence("settings", repr(str(file)), f"cannot be read ({error.strerror})", "check its permissions")
        ) from None
