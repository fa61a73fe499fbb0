"""Made `store-0.1.db.zst` and what stands in it, once, with the code of 0.1: `git archive f96f989 | tar -x -C FOLDER`,
then `PYTHONPATH=FOLDER/src:FOLDER/tests python tests/earlier/make_store.py`. Kept to tell where the file is from."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import numpy as np
import zstandard

from support.virtual import START, World, run_virtually  # type: ignore[attr-defined,unused-ignore]
from unstale.adapters.sqlite_store import SqliteStore
from unstale.ports import Listing

HERE = Path(__file__).parent
HOUR = 3600.0
RATES = np.array([12.0, 6.0, 3.0, 1.0, 0.3, 0.0]) / HOUR


def main() -> None:
    """Six sources polled for six hours of virtual time, sixty times an hour."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store.db"
        store = SqliteStore(path)
        world = World(RATES, START + 6 * HOUR)
        listings = [
            Listing(f"memory:{i}", kind="memory", weight=1.0 + i, host="a.example" if i % 2 else "b.example")
            for i in range(len(RATES))
        ]
        store.add(listings, START)
        run_virtually(world, 60.0 / HOUR, 6 * HOUR, store=store)  # type: ignore[arg-type,unused-ignore]
        fleet = store.fleet(15)
        told = {
            "addresses": [one.address for one in store.listings(fleet.source.tolist())],
            "weight": fleet.weight.tolist(),
            "due": fleet.due.tolist(),
            "last": fleet.last.tolist(),
            "beliefs": fleet.beliefs.tolist(),
            "learner": fleet.settings["learner"].hex(),
            "price": fleet.price.price,
            "polls": [len(store.observations(source, 10_000)) for source in fleet.source.tolist()],
            "copies": [store.copy(source).body.data.decode() for source in fleet.source.tolist()],
            "counters": dict(sorted(store.counters().items())),
        }
        store.close()
        packed = zstandard.ZstdCompressor(level=19).compress(path.read_bytes())
    (HERE / "store-0.1.db.zst").write_bytes(packed)
    (HERE / "store-0.1.json").write_text(json.dumps(told) + "\n")


if __name__ == "__main__":
    main()
