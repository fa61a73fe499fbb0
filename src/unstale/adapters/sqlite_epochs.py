"""Every shared state the learner has had, as long as an observation was made under it: replaying needs the same one.

An epoch begins after the outcomes it was recorded with. `uses` counts its observations; nobody asks for one without.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import apsw

from unstale.ports import Entry, Price


def current(db: apsw.Connection, stamped: int = 0) -> int:
    """The epoch in force, 0 before any; so many new observations are stamped with it."""
    epoch: int = db.execute("SELECT max(id) FROM epochs").get or 0
    if epoch and stamped:
        db.execute("UPDATE epochs SET uses = uses + ? WHERE id = ?", (stamped, epoch))
    return epoch


def begin(db: apsw.Connection, value: bytes, entries: Sequence[Entry], price: Price | None) -> None:
    """A new epoch, if the learner's state is another than before."""
    epoch = current(db)
    if db.execute("SELECT value FROM epochs WHERE id = ?", (epoch,)).get == value:
        return
    at = max((e.polled_at for e in entries), default=price.at if price else None)
    db.execute("INSERT INTO epochs(id, at, uses, value) VALUES (?, ?, 0, ?)", (epoch + 1, at, value))
    db.execute("DELETE FROM epochs WHERE id = ? AND uses = 0", (epoch,))


def release(db: apsw.Connection, stamps: Iterable[tuple[int]]) -> None:
    """Observations with these stamps are gone; an epoch that is over goes with its last one."""
    gone = Counter(epoch for (epoch,) in stamps if epoch)
    db.executemany("UPDATE epochs SET uses = uses - ? WHERE id = ?", ((n, epoch) for epoch, n in gone.items()))
    db.executemany(
        "DELETE FROM epochs WHERE id = ? AND uses = 0 AND id < (SELECT max(id) FROM epochs)",
        ((epoch,) for epoch in gone),
    )
