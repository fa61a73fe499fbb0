"""How a copied table is looked at, and why so: the probe that its last change was found by."""

from __future__ import annotations

import json
from collections.abc import Mapping

from unstale.ports import Listing, ReadStore
from unstale.units import many

_WHYS = {
    "changed": "by its column {changed}, which its owner named: only rows since the last reading are read",
    "xmin": "by the numbers of its row versions, which PostgreSQL keeps: no column of changes is needed",
    "count": "by counting rows, as its owner wants: changes of rows are found at the next sweep",
    "since": "by asking for what changed since the last reading, which this API can tell",
    "all": "by reading all of its records: no parameter was named by which this API tells what changed",
}
_SUMMED = "by a checksum that PostgreSQL makes of all rows: it is a view or a query, whose rows have no versions"
_MYSQL = (
    "by a checksum that the server makes of all rows, for they have no versions that it tells: "
    "name a column of changes (changed=…) to spare it that"
)
_READ = "by reading and comparing all rows at every poll: name a column of changes (changed=…) to read fewer"


def looked_at(store: ReadStore, listing: Listing) -> str:
    """One sentence about a table's probe; empty for what is no table, or was not copied yet."""
    if listing.kind not in ("sql", "api") or listing.options.get("collection"):
        return ""
    copy = store.copy(listing.id)
    told = _account(copy.body.data if copy is not None else b"")
    kind = str(told.get("probe", ""))
    if kind == "checksum":
        server = listing.address.partition(":")[0].partition("+")[0]
        reason = _SUMMED if server.startswith("postgres") else _MYSQL if server in ("mysql", "mariadb") else _READ
        reason = "as its owner wants, " + reason if listing.options.get("probe") == kind else reason
    else:
        reason = _WHYS.get(kind, "").format(changed=listing.options.get("changed", ""))
    rows = told.get("rows")
    size = f"; it has {many(rows, 'row')}" if isinstance(rows, int) else ""
    return f"looked at {reason}{size}" if reason else ""


def _account(body: bytes) -> Mapping[str, object]:
    try:
        found = json.loads(body)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
