"""Golden entries whose part of the library does not exist yet, and the part that will claim them."""

from __future__ import annotations

#: id -> the later part; none is left
LATER: dict[str, str] = {}
