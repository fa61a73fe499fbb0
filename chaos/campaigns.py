"""The campaigns: what does what how often, and which of its figures must be what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Campaign:
    """`whole` rounds at share 1, so many `at_once`, at least `fewest`; these figures must be 0 (or reach `least`).

    One that is `measured` begins anew each time: its figures are of one run. Those of one that is `told_whole` are of
    all its rounds so far: the last are not added to them, they take their place.
    """

    module: str
    function: str
    whole: int
    at_once: int
    zero: tuple[str, ...]
    fewest: int = 0
    least: tuple[str, int] | None = None
    measured: bool = False
    told_whole: bool = False


_KILLED = ("lost", "corrupt", "torn", "miscounted", "halves")
_TAIL = (
    "lost beside the tail",
    "not polled again",
    "numbers given twice",
    "false words",
    "corrupt",
    "over ten seconds",
)
_CREW = ("miscounted", "not polled again", "too close at a host", "damaged")
_CLOCK = ("late sources", "seconds over twice the budget", "faults", "negative durations", "observations dropped")
_GROWN = ("files grown by a fifth", "memory grown by 16 MB", "more open files", "damaged", "miscounted")
_OVERLOAD = (
    "others ten points before the valuable",
    "below 95 % of the best freshness",
    "not recovered in two minutes",
    "unbounded",
)
_SIMULATED = (
    "miscounted",
    "applied twice",
    "copies nobody sent",
    "old copies",
    "late sources",
    "over the budget",
    "broken beliefs",
)
_LEFT = ("tasks left behind", "handles left behind")
_LIARS = ("bogus", "of the future", "honest ones left alone", "asked without end")
_BETWEEN = ("not as fresh again", "wrong copies", "honest ones banned", "damaged")
_SLOW = ("health over 1 s", "health not told", "over 64 MB more")
CAMPAIGNS = {
    "kills": Campaign("kills", "polling", 10_000, 50, _KILLED),
    "command kills": Campaign("kills", "commands", 3_000, 30, _KILLED),
    "power cuts": Campaign("store_faults", "power_cuts", 10_000, 100, _KILLED),
    "failing disk": Campaign("store_faults", "failing", 1_000, 10, (*_KILLED, "crashes")),
    "failover": Campaign("failover", "failover", 50, 5, _TAIL, 1),
    "server kills": Campaign("stores", "crashes", 500, 10, ("lost", "corrupt"), 3),
    "sleepers": Campaign("stores", "sleepers", 500, 50, ("applied twice", "miscounted", "corrupt"), 10),
    "stores": Campaign("stores", "steps", 1_000_000, 25_000, ("differences",), 200),
    "seeds": Campaign("simulated", "seeds", 20_000, 200, (*_SIMULATED, "not the same again"), 5),
    "fail-points": Campaign(
        "fail_points", "fail_points", 100, 50, (*_SIMULATED, "tasks left behind", "handles left behind"), 20
    ),
    "liars": Campaign("liars", "liars", 10_000, 500, _LIARS, 112),
    "noisy": Campaign(
        "noisy",
        "noisy",
        1_000,
        1_000,
        ("kinds over 20 % off",),
        12,
        ("percent of changes caught in two intervals", 99),
        True,
    ),
    "canaries": Campaign("canaries", "canaries", 1, 1, ("shows a secret", "sources refused"), 1, measured=True),
    "slow": Campaign("served", "slow", 2_000, 2_000, _SLOW, 200, measured=True),
    "cases": Campaign("served", "cases", 10_000, 1_500, ("breaches",), 300),
    "renders": Campaign("renders", "renders", 20_000, 1_000, ("scripts that ran",), 200),
    "workers": Campaign("workers", "faults", 2_200, 50, _CREW, 10),
    "flips": Campaign("flips", "flips", 1_000, 50, ("wrong bytes served",)),
    "inner addresses": Campaign("inputs", "inside", 5_000, 500, ("dialled",), 1_000),
    "bombs": Campaign("inputs", "bombs", 500, 10, ("not stopped", "over 32 MB"), 10),
    "numbers": Campaign("inputs", "numbers", 1, 1, ("taken",), 1, measured=True),
    "draining": Campaign(
        "telling", "draining", 50_000, 50_000, ("missing", "out of order"), 5_000, ("told a second", 1000), True
    ),
    "telling kills": Campaign("telling", "killed", 1_000, 50, ("missing", "out of order"), 10),
    "month down": Campaign("telling", "month", 300_000, 300_000, ("missing", "out of order"), 6_000, measured=True),
    "clock jumps": Campaign("clocks", "jumps", 1_000, 100, _CLOCK, 10),
    "hostile": Campaign("hostile", "hostile", 120, 120, (), 10, ("percent kept", 95), True),
    "memory": Campaign("memory", "memory", 1, 1, ("over 256 MB of its own",), 1, measured=True),
    "network": Campaign("network", "network", 500, 500, ("miscounted", "wrong copies", "damaged"), 60, measured=True),
    "database network": Campaign("network", "database", 500, 100, _CREW, 40),
    "replica network": Campaign("network", "replicas", 500, 100, _BETWEEN, 40),
    "branches": Campaign(
        "branches",
        "branches",
        42,
        1,
        ("important branches not taken",),
        1,
        ("percent of branches", 95),
        told_whole=True,
    ),
    "mutants": Campaign("branches", "mutants", 30, 6, ("not noticed",), 2),
    "routes": Campaign("rules", "routes", 1, 1, ("unexpected",), 1, ("rounds", 1000), True),
    "rules": Campaign("rules", "code", 1, 1, ("findings", "wrong types", "rules of rooms broken"), 1, measured=True),
    "builds": Campaign(
        "rules",
        "builds",
        1,
        1,
        ("taken though it loses commits", "refused though it is mended"),
        1,
        measured=True,
    ),
    "restarts": Campaign(
        "resuming",
        "restarts",
        100,
        100,
        ("never polled", "over two seconds of processor time", "damaged"),
        3,
        measured=True,
    ),
    "full disk": Campaign(
        "resuming", "full_disk", 200, 200, ("miscounted", "damaged", "not within 30 s"), 5, measured=True
    ),
    "soak": Campaign("long", "soak", 365, 365, _GROWN, 30, measured=True),
    "overload": Campaign("overload", "overload", 4, 4, _OVERLOAD, 4, measured=True),
    "fuzzing": Campaign("__main__", "_fuzzing", 600, 10, ("broken",), 2),
}


def missed(name: str, figures: Mapping[str, int]) -> list[str]:
    """What must not be and is, by a campaign's figures."""
    one = CAMPAIGNS[name]
    wrong = [f"{name}: {figures[figure]:,} {figure}" for figure in one.zero if figures.get(figure)]
    if one.least is not None and (reached := figures.get(one.least[0], 0)) < one.least[1]:
        wrong.append(f"{name}: {reached:,} {one.least[0]}, wanted {one.least[1]:,}")
    return wrong
