"""Lists that somebody else wrote: what they say is taken, but names nothing of our environment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from unstale.errors import require
from unstale.kinds import known_kind
from unstale.lists.rows import Check
from unstale.ports import Listing
from unstale.secrecy import REFERENCE, as_written


def strangers_check(check: Check, place: str, base: Listing) -> Check:
    """The check of what a list on the web says: nothing of our environment is filled into a stranger's words."""
    ours = str(dict(base.options))

    def judged(address: str, kind: str, options: Mapping[str, Any]) -> str:
        web = "http" in known_kind(kind).schemes
        written = as_written(address, place) if web else address
        said = [value for name, value in options.items() if name not in ("title", "tags")]
        named = [one[0] for one in REFERENCE.finditer(str(said)) if one[0] not in ours]
        named += [] if web else REFERENCE.findall(address)
        remedy = "say it yourself with --header or --option, or import the list from a file"
        require(not named, "name", ", ".join(named)[:80], "of our environment is in a list on the web", remedy)
        return check(written, kind, options)

    return judged
