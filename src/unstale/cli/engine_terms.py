"""What the settings say to the engine and of hosts. By itself, for whoever lists sources needs no engine."""

from __future__ import annotations

from collections.abc import Callable

from unstale.cli.settings import Settings
from unstale.cli.settings_tables import HostSettings, is_private
from unstale.engine.config import EngineConfig
from unstale.engine.contracts import Contract
from unstale.engine.host_grants import HostGrant
from unstale.engine.host_limits import Rules

#: seconds that any poll may take, whatever its source says
LONGEST_POLL = 1800.0


def rules_of(settings: Settings) -> Callable[[str], Rules]:
    """What the settings grant each host."""

    def granted(own: HostSettings) -> Rules:
        cap = own.budget * (1.0 - own.leave)
        spacing = max(own.spacing, 1.0 / cap) if cap and cap < float("inf") else own.spacing
        return Rules(spacing, own.concurrency, own.windows, own.leave)

    # A fleet has thousands of hosts of which nothing is said.
    usual = {near: granted(settings.usual_host(near)) for near in (False, True)}

    def rules(name: str) -> Rules:
        own = settings.hosts.get(name)
        return usual[is_private(name)] if own is None else granted(own)

    return rules


def config_of(settings: Settings) -> EngineConfig:
    """What the engine may spend and how it goes about it."""
    rules = rules_of(settings)
    return EngineConfig(
        settings.budget,
        settings.burst,
        settings.objective,
        settings.windows,
        first_rate=settings.first_round,
        polls=settings.http.connections,
        lease=2.0 * LONGEST_POLL,
        cost_in=settings.cost_in,
        contracts={tag: Contract(one.fresh_within, one.target) for tag, one in settings.contracts.items()},
        granted={name: HostGrant(rules(name).spacing, rules(name).concurrency) for name in settings.hosts},
    )
