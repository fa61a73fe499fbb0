"""What `unstale run` holds in memory, with all its processes, while every source sends as much as it may, and more."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path

from support.heavy import KINDS, peak

#: sources of each kind of heavy answer, and seconds after which it ends in any case
EACH, SECONDS = 6, 150.0


def memory(first: int, count: int, folder: Path) -> Counter[str]:
    """Bodies of 16 MB of all kinds, bombs among them, and JSON of 16 MB alone, of which a part is dropped."""
    found: Counter[str] = Counter({"rounds": 1})
    for name, kinds in (("of all kinds", list(KINDS)), ("of JSON", ["json"])):
        with tempfile.TemporaryDirectory(dir=folder) as place:
            most, _ = peak(Path(place), kinds, EACH, SECONDS, polls=2 * EACH * len(kinds))
        found[f"megabytes of its own {name}"] = round(most.own)
        found[f"megabytes with the files of libraries {name}"] = round(most.resident)
        found["over 256 MB of its own"] += int(most.own > 256.0)
    return found
