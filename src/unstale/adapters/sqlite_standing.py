"""Who stands otherwise in SQLite than was told: looked for among the states that were appended since."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from unstale.adapters.sqlite_states import StoreConnection, carray
from unstale.ports import Head, unlike


def heads(db: StoreConnection, sources: Sequence[int]) -> list[Head]:
    """How sources stand, those that exist. Inside a transaction."""
    rows: Any = db.execute(
        "SELECT b.source, b.latest, b.version, b.last, b.due, b.failures FROM carray(?) w "
        "CROSS JOIN states b ON b.id = w.value",
        (carray(db.places.of_all(sources)),),
    )
    return list(map(Head._make, rows))


class ToldHeads:
    """What was told, and up to which state it is known to be true."""

    def __init__(self) -> None:
        self._told, self._upto = dict[int, Head](), 0

    def unlike(self, db: StoreConnection, told: Mapping[int, Head]) -> tuple[list[Head], list[int]]:
        """Of sources that stood so: those that stand otherwise now, and those that are gone. Inside a transaction."""
        last = db.places.last
        if last - self._upto > len(told):
            # Reading all of them takes no longer.
            which = list(told)
        else:
            since: Any = db.execute("SELECT source FROM states WHERE id > ?", (self._upto,))
            moved, before = {source for (source,) in since}, self._told
            # Of most it is the same object as last time.
            which = [one for one, head in told.items() if one in moved or before.get(one) is not head]
        others, gone = unlike(heads(db, which), {one: told[one] for one in which})
        self._told, self._upto = dict(told), last
        for one in (*(head.source for head in others), *gone):
            # It is told again until somebody asks with what was answered.
            del self._told[one]
        return others, gone
