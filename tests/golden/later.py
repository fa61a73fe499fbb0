"""Golden entries whose part of the library does not exist yet, and the part that will claim them."""

from __future__ import annotations

from support.golden import ENTRIES

_REPLICATION = (
    "L4.24", "L4.28.", "L4.29", "L4.32.", "L4.34-35", "L4.Fig12", "L4.TableI.", "L4.TableII.", "L4.Thm6",
    "L4.coop.", "L4.fig11d", "L4.superlin",
)  # fmt: skip

#: id -> the later part; names ending in a dot stand for all ids that begin so
LATER: dict[str, str] = {
    id_: "replication" for id_ in ENTRIES for name in _REPLICATION
    if id_ == name or (name.endswith(".") and id_.startswith(name))
}  # fmt: skip
