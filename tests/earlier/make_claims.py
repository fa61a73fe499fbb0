"""Made `store-tables-2.sql.zst`, once, with the code of commit e6025d8, whose claims stood in the rows of beliefs:
`git archive e6025d8 | tar -x -C FOLDER`, then `PYTHONPATH=FOLDER/src:tests python tests/earlier/make_claims.py 2`.
And `store-tables-3.sql.zst` with that of 5d5fce1, whose schedule did not know for how long sources wait."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import zstandard

from support.postgres import _installed, postgres
from unstale.adapters.postgres_crew import PostgresCrew
from unstale.adapters.postgres_hosts import Grant
from unstale.keeper.outcomes import Answer
from unstale.ports import Body, Entry, Listing

HERE = Path(__file__).parent
#: sources: one is recorded, one paused, one is being polled, one was sent away from the host of the one being polled
RECORDED, PAUSED, POLLED, SENT = range(1, 5)


def main(version: str) -> None:
    """A store in the middle of its work."""
    with postgres() as server:
        store = PostgresCrew(server.address(), grants=lambda name, now: Grant(10.0, 1) if name == "busy" else Grant())
        store.add([Listing(f"https://example.org/{n}") for n in (RECORDED, PAUSED)], 100.0)
        (first, second) = store.claim(100.0, 2, lease=60.0, owner="w")
        belief = np.arange(19.0).tobytes()
        body = Body(b"as it was", "text/plain", '"e"')
        assert store.record([Entry(first, Answer.CHANGED, 101.0, 5000.0, belief, body=body)]) == [True]
        store.give_back("w", [second])
        store.add([Listing(f"https://example.org/{PAUSED}", paused=True)], 102.0, duplicates="replace")
        store.add([Listing(f"https://busy/{n}", host="busy") for n in (POLLED, SENT)], 103.0)
        assert [claim.source for claim in store.claim(103.0, 9, lease=900.0, owner="w")] == [POLLED]
        store.close()
        words = ["--inserts", "--rows-per-insert=500", "--no-owner", "--no-privileges", server.address()]
        dumped = subprocess.run([_installed() / "bin/pg_dump", *words], check=True, capture_output=True, text=True)
    lines = [line for line in dumped.stdout.splitlines() if line and not line.startswith(("--", "\\", "SET "))]
    packed = zstandard.ZstdCompressor(level=19).compress("\n".join(lines).encode())
    (HERE / f"store-tables-{version}.sql.zst").write_bytes(packed)


if __name__ == "__main__":
    main(sys.argv[1])
