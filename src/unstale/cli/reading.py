"""What the reading commands share: a store opened for reading, beliefs of its fleet, times as people say them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unstale.cli.settings import is_shared
from unstale.core.checks import Floats
from unstale.core.learning.outlook import even_freshness
from unstale.units import DAY, format_duration

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.table import Table

    from unstale.adapters.sqlite_replica import SqliteReplica
    from unstale.cli.settings import Settings
    from unstale.keeper.scheduler import Integers
    from unstale.ports import FleetColumns

#: sources that tell how a fleet would do under another way of polling
_ENOUGH = 20_000
#: the longest address that a table shows whole
_LONG = 60


@contextmanager
def reading(settings: Settings) -> Iterator[SqliteReplica]:
    """The store of the settings, to be read and nothing else."""
    from unstale.adapters.sqlite_replica import SqliteReplica
    from unstale.cli.choose import near
    from unstale.errors import StoreError, sentence

    if is_shared(settings.store):
        from unstale.adapters.environment import filled
        from unstale.adapters.postgres_replica import PostgresReplica

        shared: Any = PostgresReplica(filled(settings.store))
        try:
            yield shared
        finally:
            shared.close()
        return
    if not Path(settings.store).exists():
        raise StoreError(
            sentence(
                "store",
                repr(near(settings.store)),
                "does not exist",
                "add sources with `unstale add`, or name it with --store",
            )
        )
    replica = SqliteReplica(settings.store)
    try:
        yield replica
    finally:
        replica.close()


def engine_runs(settings: Settings) -> bool | None:
    """Whether a process keeps this store fresh now; None where the system cannot tell."""
    if is_shared(settings.store):
        return None
    try:
        import fcntl
    except ImportError:
        return None
    try:
        # Who runs an engine holds this file, see `compose.alone`; a shared look lets others look too.
        with Path(f"{settings.store}.engine").open() as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def engine_says(settings: Mapping[str, bytes]) -> dict[str, Any]:
    """What the last engine wrote of itself; nothing if there was none."""
    try:
        said = json.loads(settings.get("engine", b"{}"))
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}


@dataclass(frozen=True, slots=True)
class BeliefPart:
    """Some rows of a fleet, as far as an outlook needs them."""

    beliefs: Floats
    last: Floats
    found: Floats
    settings: Mapping[str, bytes]


def even_share(standing: FleetColumns, rows: Integers, interval: float) -> float:
    """The freshness if these sources were all polled at one interval: of many, every so manieth is asked."""
    rows = rows[:: -(-len(rows) // _ENOUGH) or 1]
    part = BeliefPart(standing.beliefs[rows], standing.last[rows], standing.found[rows], standing.settings)
    return even_freshness(part, standing.weight[rows], interval)


def span(seconds: float) -> str:
    """A length of time as people say it.

    >>> span(90.0), span(float("inf"))
    ('1.5 min', 'never')
    """
    return "never" if math.isnan(seconds) else format_duration(seconds / DAY)


def ago(then: float, now: float) -> str:
    """How long ago something was, or how far ahead it is.

    >>> ago(40.0, 100.0), ago(160.0, 100.0), ago(100.0, 100.0), ago(float("-inf"), 100.0)
    ('1 min ago', 'in 1 min', 'now', 'never')
    """
    if not math.isfinite(then):
        return "never"
    if abs(now - then) < 0.5:
        return "now"
    return f"{span(now - then)} ago" if then < now else f"in {span(then - now)}"


def iso(time: float | None) -> str | None:
    """A time in UTC, ISO 8601; None for none.

    >>> iso(1714557600.25), iso(float("-inf"))
    ('2024-05-01T10:00:00.250000Z', None)
    """
    if time is None or not math.isfinite(time):
        return None
    try:
        return datetime.fromtimestamp(time, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    except (ValueError, OverflowError, OSError):
        return None


def brief(address: str) -> str:
    """An address that fits into a table."""
    return address if len(address) <= _LONG else f"{address[:28]}…{address[-31:]}"


def firm(table: Table) -> Table:
    """The table, of which only the last column gives way where it does not fit: texts are cut, never numbers."""
    for column in table.columns[:-1]:
        column.min_width = max([len(str(column.header)), *(len(str(cell)) for cell in column.cells)])
    return table


def size(count: int) -> str:
    """Bytes as people say them.

    >>> size(0), size(1500), size(2_500_000)
    ('0 B', '1.5 kB', '2.5 MB')
    """
    amount = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if amount < 999.5 or unit == "GB":
            break
        amount /= 1000.0
    return f"{amount:.3g} {unit}"
