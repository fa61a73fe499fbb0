"""An engine whose fleet is hostile to three tenths: how many polls the healthy keep, against a fleet without them."""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from pathlib import Path

from support.engine_victim import engines, settings_file
from unstale.adapters.sqlite_store import SqliteStore
from unstale.origin.hostile import KINDS
from unstale.origin.server import Origin
from unstale.origin.site import Site
from unstale.ports import Listing

#: one of each hostile behaviour to seven healthy sources for every three of them, polled at least so often
HEALTHY, LONGEST = 7 * len(KINDS) // 3, 20.0
ALLOWED = ("127.0.0.2/32", "127.0.0.3/32")


def hostile(first: int, count: int, folder: Path) -> Counter[str]:
    """Both fleets for so many seconds, one after the other, the same healthy sources in each."""
    kinds, rest = KINDS, len(KINDS)
    polls: dict[str, int] = {}
    answers = 0
    for fleet in ("calm", "hostile"):
        with (
            tempfile.TemporaryDirectory(dir=folder) as place,
            Origin(Site.of(HEALTHY, change_rate=0.3), host="127.0.0.2").in_thread() as origin,
            Origin(Site.of(rest, 0.3), host="127.0.0.3").in_thread() as zoo,
            engines(Path(place)) as parent,
        ):
            config = settings_file(Path(place), 'budget = "150/s"', ALLOWED, 'timeout = "1s"\nlimit = "1MiB"')
            store = SqliteStore(Path(place) / "unstale.db")
            store.add([Listing(origin.address + path, longest=LONGEST) for path in origin.site.paths], time.time())
            calm = [Listing(zoo.address + path, host=f"h{n}", longest=LONGEST) for n, path in enumerate(zoo.site.paths)]
            bad = [
                Listing(f"{zoo.address}/hostile/{kinds[n % len(kinds)]}?{n}", host=f"h{n}", longest=LONGEST)
                for n in range(rest)
            ]
            store.add(calm if fleet == "calm" else bad, time.time())
            life = parent.begin(config)
            began = time.monotonic()
            while store.counters().get("recorded", 0) < HEALTHY and time.monotonic() - began < 60.0:
                time.sleep(0.05)
            begun = origin.now()
            time.sleep(float(count))
            times = origin.polls().times
            polls[fleet] = int(((times > begun) & (times <= begun + count)).sum())
            if fleet == "hostile":
                answers = store.counters().get("recorded", 0)
            life.end()
            store.close()
    return Counter(
        {
            "rounds": answers,
            "polls of the healthy beside calm ones": polls["calm"],
            "polls of the healthy beside hostile ones": polls["hostile"],
            "percent kept": round(100 * polls["hostile"] / max(polls["calm"], 1)),
            "hostile behaviours": len(kinds),
        }
    )
