"""A PostgreSQL store of before goes on in the middle of its work, whatever its tables were: see `make_claims`."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import numpy as np
import psycopg
import pytest
import zstandard

from support.postgres import postgres
from unstale.adapters.postgres_crew import PostgresCrew
from unstale.keeper.outcomes import Answer
from unstale.ports import Entry

RECORDED, PAUSED, POLLED, SENT = range(1, 5)


@pytest.mark.parametrize("version", [2, 3])
def test_claims_and_times_are_where_they_were_and_old_programs_are_sent_away(version: int) -> None:
    packed = (Path(__file__).parent / f"store-tables-{version}.sql.zst").read_bytes()
    with postgres() as server:
        server.run(zstandard.ZstdDecompressor().decompress(packed).decode())
        old = psycopg.connect(server.address(), application_name="unstale")
        with closing(old), closing(PostgresCrew(server.address(), own_time=False)) as store:
            # A program of before finds its session ended: it comes back, and is told that it is too old.
            with pytest.raises(psycopg.OperationalError):
                old.execute("SELECT 1")
            fleet = store.fleet(19)
            assert fleet.source.tolist() == [RECORDED, PAUSED, POLLED, SENT]
            assert fleet.due.tolist()[0] == 5000.0
            assert fleet.due[SENT - 1] > 103.0
            assert fleet.beliefs[0].tolist() == list(range(19))
            assert fleet.paused.tolist() == [False, True, False, False]
            assert store.claimed() == [POLLED]
            # Who was sent away comes back when it was told to; who is paused does not wait.
            assert store.waiting(1e9) == [(SENT, float(fleet.due[SENT - 1])), (RECORDED, 5000.0)]
            (claim,) = store.claim(200.0, 9, lease=60.0, owner="new")
            assert claim.source == SENT
            belief = np.zeros(19).tobytes()
            assert store.record([Entry(claim, Answer.UNCHANGED, 201.0, 300.0, belief)]) == [True]
            # What an old worker had begun is over with its lease.
            assert [c.source for c in store.claim(2000.0, 9, lease=60.0, owner="new")] == [POLLED, SENT]
            # Shards are there to be held, and every source belongs to one.
            store.beat("new", 0.0, 0.0, 1.0, {}, None)
            assert len(store.hold("new").epochs) == 1024
            assert store.held_fleet("new", 19).source.tolist() == [RECORDED, PAUSED, POLLED, SENT]
            counters = store.counters()
            ended = sum(counters.get(name, 0) for name in ("recorded", "given_back", "expired", "ended"))
            assert counters["claimed"] == ended + len(store.claimed())
            copy = store.copy(RECORDED)
            assert copy is not None
            assert copy.body.data == b"as it was"
