"""What `unstale run` holds in memory, with all its processes, while sources send as much as they may, and more."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from support.heavy import KINDS, peak
from unstale.adapters.sqlite_store import SqliteStore
from unstale.keeper.outcomes import Answer

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is read from /proc")

#: megabytes that no file can give back: 256 are the goal, which `make chaos` measures; other machines and other
#: versions of libraries may take more, but never as much as the bodies together
MOST = 320.0


def test_heavy_answers_of_every_kind_stay_within_bounds(tmp_path: Path) -> None:
    kinds = list(KINDS)
    most, place = peak(tmp_path, kinds, 4, 240.0, polls=2 * 4 * len(kinds))
    # All of these bodies at once would be half a gigabyte, and a gigabyte unpacked.
    assert most.own < MOST
    store = SqliteStore(place)
    seen = {kind: [] for kind in kinds}
    for source in range(1, 4 * len(kinds) + 1):
        seen[kinds[(source - 1) // 4]] += store.observations(source)
    store.close()
    for kind, found in seen.items():
        told = {one.reason for one in found if one.answer is Answer.FAILED}
        assert not any("report it" in reason for reason in told), (kind, told)
        if "bomb" in kind:
            assert all("has more than 16777216 bytes" in reason for reason in told), (kind, told)
        # JSON of 16 MB of which a part is dropped is compared, and small ones are not held up.
        if kind in ("json", "small"):
            assert any(one.answer is Answer.CHANGED for one in found), (kind, told)
