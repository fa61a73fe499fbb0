"""What `unstale doctor` looks at, one question after the other; a finding is one sentence with its remedy."""

from __future__ import annotations

import math
import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from unstale.cli.choose import counted, listings_of, near
from unstale.cli.reading import size, span
from unstale.cli.settings import is_shared
from unstale.frozen import dataclass
from unstale.keeper.replay import PastPolls, Taught, blank, replay
from unstale.ports import widened
from unstale.service.beliefs import polls_of
from unstale.units import many

if TYPE_CHECKING:
    from unstale.cli.settings import Settings
    from unstale.ports import FleetColumns, Observation, ReadStore
    from unstale.service import FleetService

#: sources that a quick look replays, whose options it reads, and that are replayed together
_QUICK, _ENOUGH, _TOGETHER = 1000, 20_000, 1000
#: beliefs that differ by no more are the same, computed by another compiler
_ROUNDING = 1e-9
#: a clock may be so many seconds ahead of another one; what disk there must be, as a share of the store
_AHEAD, _ROOM = 5.0, 0.25
#: beyond so many sources learning should be compiled
_COMPILED = 50_000
#: polls that are looked at for times that cannot be true, and seconds by which polls may end in another order
_LATEST, _LEASE = 10_000, 3600.0
_ALL = 2**62
_NAME = re.compile(r"\$(?:(\w+)|\{(\w+)\})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Replayed:
    """How stored beliefs compare with replayed ones; `worst` is the largest difference of their numbers.

    `unknown` miss a shared state of the learner; `moving` were polled while they were read.
    """

    sources: int
    polls: int
    equal: int
    differ: int
    unknown: int
    moving: int
    worst: float


def examine(
    service: FleetService, settings: Settings, quick: bool, stage: Callable[[str], None]
) -> tuple[list[str], list[str], Replayed]:
    """What was looked at, what was found, and how the replay went."""
    stage("verifying")
    replica = service.store
    one_file = not is_shared(settings.store)
    what = "file" if one_file else "store"
    findings = [] if quick else [f"{problem}: {_remedy(problem)}" for problem in replica.verify()]
    checked = [] if quick else [f"the {what} and every copy in it match their sums" if not findings else f"the {what}"]
    stage("reading")
    moment = service.moment()
    standing, now, budget = moment.standing, moment.now, moment.config.budget
    stage("replaying")
    replayed = replay_all(replica, standing, quick)
    if replayed.worst > _ROUNDING:
        off = f"off by up to {replayed.worst:.0e}" if math.isfinite(replayed.worst) else "of other times"
        findings.append(
            f"beliefs of {counted(replayed.differ)} are not what polls taught, {off}: copies are not "
            "touched by it, and further polls mend it"
        )
    stage("looking")
    findings += [*_waiting(standing, now, budget), *_clock(standing, now), *_misdated(replica), *_learner(standing)]
    if untold := replica.counters().get("untold", 0):
        findings.append(
            f"{many(untold, 'change was', 'changes were')} dropped before everybody was told of them: see to those in "
            "[[on_change]], and let them read what the copies hold now"
        )
    findings += _environment(replica, standing, _ENOUGH if quick else _ALL)
    checked.append(f"{counted(len(standing.source))}: due times, clock, names of the environment")
    stage("machine")
    findings += [*(_disk(settings) if one_file else ()), *_machine(service, standing)]
    if one_file:
        free = shutil.disk_usage(Path(settings.store).parent).free
        checked.append(f"SQLite {_sqlite()}, {size(free)} of disk free")
    else:
        checked.append(f"{near(settings.store)} answers; its disk and its backups are its server's")
    return checked, findings, replayed


def _remedy(problem: str) -> str:
    return "poll it anew with `unstale doctor --repair`" if problem.startswith("copy ") else "restore a backup"


def replay_all(replica: ReadStore, standing: FleetColumns, quick: bool) -> Replayed:
    """Learn again what polls taught, from the checkpoints on, and compare with the beliefs that are stored."""
    ids = standing.source
    if quick:
        ids = ids[:: -(-len(ids) // _QUICK) or 1]
    counts = np.zeros(5, dtype=np.int64)
    worst = 0.0
    for begin in range(0, len(ids), _TOGETHER):
        part, largest = _compare(replica, ids[begin : begin + _TOGETHER].tolist())
        counts, worst = counts + part, max(worst, largest)
    polls, equal, differ, unknown, moving = (int(count) for count in counts)
    return Replayed(len(ids), polls, equal, differ, unknown, moving, worst)


def _compare(replica: ReadStore, ids: list[int]) -> tuple[np.ndarray[Any, Any], float]:
    from unstale.core.learning.mixture import learned
    from unstale.core.learning.outlook import WIDTH

    before = replica.columns_of(ids, WIDTH)
    ids = before.source.tolist()
    start, told = _start(replica, ids, WIDTH)
    after = replica.columns_of(ids, WIDTH)
    # Read last: every epoch that one of these polls names has begun by now.
    taught = replay(told, start, {one.number: one.state for one in replica.epochs()})
    if len(after.source) != len(ids):
        return np.array([0, 0, 0, 0, len(ids)]), 0.0
    still = (before.beliefs == after.beliefs).all(axis=1) & (before.last == after.last)
    # Not what polls said beside it: an earlier version kept none, and who goes on from there never has it all.
    ours, stored = learned(taught.rows), learned(before.beliefs)
    same = (ours == stored).all(axis=1) & (taught.last == before.last)
    differ = still & taught.known & ~same
    off = np.abs(ours - stored)[differ] / np.maximum(np.abs(stored[differ]), 1.0)
    worst = float(off.max(initial=0.0))
    if (taught.last != before.last)[differ].any():
        worst = math.inf
    return np.array(
        [
            len(told.source),
            (still & taught.known & same).sum(),
            differ.sum(),
            (still & ~taught.known).sum(),
            (~still).sum(),
        ]
    ), worst


def _start(replica: ReadStore, ids: list[int], width: int) -> tuple[Taught, PastPolls]:
    """Where to begin, the checkpoint or nothing, and the polls since, oldest first."""
    start = blank(len(ids), width)
    rows: list[int] = []
    polls: list[Observation] = []
    for row, source in enumerate(ids):
        # Before the checkpoint: it can move on meanwhile, and what it covers may be dropped.
        seen = replica.observations(source, _ALL)
        held = replica.checkpoint(source)
        if held is not None:
            start.last[row], start.found[row] = held.last, held.found
            start.rows[row] = np.frombuffer(widened(held.belief, width))
            seen = [one for one in seen if one.token > held.latest]
        rows += [row] * len(seen)
        polls += reversed(seen)
    return start, polls_of(rows, polls)


def _waiting(standing: FleetColumns, now: float, budget: float) -> Iterator[str]:
    from unstale.core.learning.learner import EXPLORE
    from unstale.core.learning.reach import FAILURE_SPREAD, MOST_DOUBLINGS

    awake = ~standing.paused
    if lost := int(np.isnan(standing.due[awake]).sum()):
        yield f"due times of {counted(lost)} are no numbers: mend them with `unstale pause` and `unstale resume`"
    if never := int(np.isposinf(standing.due[awake]).sum()):
        yield f"due times of {counted(never)} are never: poll them with `unstale hint`"
    cost = float(standing.cost[awake].sum())
    if standing.price is not None and standing.price.budget > 0.0:
        # They were found at the budget of then.
        budget = min(budget, standing.price.budget)
    if cost > 0.0:
        scale = EXPLORE * cost / budget
        longest = np.maximum(np.minimum(standing.longest, scale), standing.shortest)
        # After failures the wait is longer, and a new price may come with twice the old interval.
        longest = 2.0 * longest * np.where(standing.failures > 0, (1.0 + FAILURE_SPREAD) * 2.0**MOST_DOUBLINGS, 1.0)
        far = awake & np.isfinite(standing.due) & (standing.due > np.maximum(standing.last, now) + longest)
        if count := int(far.sum()):
            yield (
                f"due times of {counted(count)} lie beyond any wait at this budget: poll them with `unstale hint`, "
                "or start the engine anew"
            )


def _clock(standing: FleetColumns, now: float) -> Iterator[str]:
    ahead = standing.last[np.isfinite(standing.last)]
    count = int((ahead > now + _AHEAD).sum())
    if count:
        yield (
            f"last answers of {counted(count)} lie in the future, up to {span(float(ahead.max()) - now)} from now: "
            "set this machine's clock"
        )


def _misdated(replica: ReadStore) -> Iterator[str]:
    """Polls whose time cannot be true: those recorded after them are dated long before."""
    recent = replica.recent(_LATEST)
    earliest, count, most = math.inf, 0, 0.0
    for one in recent:
        if one.polled_at > earliest + _LEASE:
            count, most = count + 1, max(most, one.polled_at - earliest)
        earliest = min(earliest, one.polled_at)
    if count:
        yield (
            f"{count:,} of the newest {len(recent):,} polls {'is' if count == 1 else 'are'} dated after later ones, "
            f"by up to {span(most)}: the clock was set meanwhile, the order is right and the times are not; "
            "there is nothing to do"
        )


def _learner(standing: FleetColumns) -> Iterator[str]:
    from unstale.core.learning.state import unpacked

    state = standing.settings.get("learner")
    if state is not None and unpacked(state) is None:
        yield "what the fleet has in common was stored by another version: it is learned anew, there is nothing to do"


def _environment(replica: ReadStore, standing: FleetColumns, most: int) -> Iterator[str]:
    missing: dict[str, list[str]] = {}
    ids = standing.source[~standing.paused]
    for one in listings_of(replica, ids[:: -(-len(ids) // most) or 1].tolist()):
        if one.options:
            for name in _names(dict(one.options)):
                if name not in os.environ:
                    missing.setdefault(name, []).append(one.address)
    for name, addresses in sorted(missing.items()):
        more = f" and {len(addresses) - 1:,} more" if len(addresses) > 1 else ""
        needed = f"needed by {addresses[0]}{more}"
        yield f"environment variable {name} is not set here, {needed}: set it where the engine runs"


def _names(thing: Any) -> set[str]:
    """The names of the environment that options refer to."""
    if isinstance(thing, str):
        return {first or second for first, second in _NAME.findall(thing)}
    inside = thing.values() if isinstance(thing, dict) else thing if isinstance(thing, list) else ()
    return set().union(*(_names(part) for part in inside))


def _disk(settings: Settings) -> Iterator[str]:
    file = Path(settings.store)
    held, free = file.stat().st_size, shutil.disk_usage(file.parent).free
    if free < _ROOM * held:
        yield (
            f"disk of {near(settings.store)} has {size(free)} left for a store of {size(held)}: make room, or "
            "lower keep and horizon in the settings"
        )


def _machine(service: FleetService, standing: FleetColumns) -> Iterator[str]:
    from importlib.util import find_spec

    if find_spec("numba") is None and len(standing.source) > _COMPILED:
        yield (
            f"numba is not installed, and {counted(len(standing.source))} learn slowly without it: "
            "pip install 'unstale[fast]'"
        )
    if service.running() is False:
        how = "`unstale run`" if service.store.alive() is None else "`unstale worker`"
        yield f"no engine is running, copies grow old: start it with {how}"
    if waiting := service.budget().waiting:
        yield waiting


def _sqlite() -> str:
    import apsw

    return apsw.sqlite_lib_version()
