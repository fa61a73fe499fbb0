"""Tables that belong together: read at one moment of their source, and switched to in one step.

Rules of this file:
1. Who is a member is written down in the target when a table of the group is polled: a poll of any of them copies all.
2. A group is of one database. A member that was not polled itself for KEPT seconds has left; one whose table is gone is
   left out until it is there again.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from unstale.adapters.sql_copying import Copying, table_name
from unstale.adapters.sql_flight import SqlFlight
from unstale.adapters.sql_places import Ask
from unstale.adapters.sql_probe import Look
from unstale.adapters.sql_source import Source
from unstale.adapters.sql_targets import LocalTable, Target
from unstale.errors import InputError

#: seconds after which who was not polled itself is no member any more
KEPT = 30 * 86400.0


def group_name(wanted: Ask) -> str:
    """What tells a group from all others."""
    return ascii((wanted.address, wanted.group))


def members(wanted: Ask, tables: Target, now: float) -> list[Ask]:
    """All tables of a group, this one among them, which is written down; the same order for everybody."""
    tables.join_group(group_name(wanted), table_name(wanted), json.dumps(asdict(wanted)), now)
    found = [_read(text) for text in tables.group(group_name(wanted), now - KEPT)]
    return sorted(found, key=table_name)


def copy_group(
    wanted: Ask,
    all_of_them: Sequence[Ask],
    source: Source,
    tables: Target,
    flight: SqlFlight,
    now: float,
    folder: Path | None = None,
) -> tuple[Look, LocalTable, int, int]:
    """Copy all members: what was seen of this one, its table after it, and how many bytes and rows came."""
    received, came, own, copy = 0, 0, None, None
    copies = []
    try:
        with tables.together():
            for one in all_of_them:
                asked = table_name(one) == table_name(wanted)
                beside = source if asked else source.beside(one)
                if beside is not None:
                    copy = Copying(one, beside, tables, flight, now, folder)
                    copies.append(copy)
                    done = copy.run()
                    received, came = received + copy.received, came + copy.came
                    own = done if asked else own
    except InputError as error:
        if copy is not None:
            # Nothing of this poll is kept, but what is held is told.
            with suppress(InputError):
                copy.heed()
            if table_name(copy.wanted) != table_name(wanted):
                raise InputError(f"{copy.wanted.table}, of the same group: {error}") from None
        raise
    for copy in copies:
        copy.settled()
    assert own is not None
    return *own, received, came


def _read(text: str) -> Ask:
    told = json.loads(text)
    return Ask(**{**told, "key": tuple(told["key"])})
