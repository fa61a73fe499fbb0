"""Plans in parts on a real Dask cluster of three processes, some of which are killed while they work."""

from __future__ import annotations

import gc
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import distributed
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from unstale.errors import InputError
from unstale.planning.distributed import plan_parts
from unstale.planning.engines import engine_of
from unstale.planning.engines.dask_cluster import DaskCluster
from unstale.planning.planner import plan


@pytest.fixture(autouse=True)
def _no_collection_within_dask() -> Iterator[None]:
    """A client of Dask that is collected while a cluster starts waits for a lock that the start holds, for ever."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()
    gc.collect()


FILES, ROWS = 12, 30_000


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    with distributed.LocalCluster(3, threads_per_worker=1, dashboard_address="127.0.0.1:0") as running:
        yield running


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fleet")
    for i in range(FILES):
        rng = np.random.default_rng([11, i])
        columns = {
            "id": np.arange(ROWS) + i * ROWS,
            "change_rate": rng.lognormal(0, 2, ROWS),
            "weight": rng.pareto(2, ROWS),
            "max_interval": np.where(rng.random(ROWS) < 0.1, 30.0, np.inf),
        }
        pq.write_table(pa.table(columns), folder / f"{i:02}.parquet")
    return folder


def at(cluster: Any) -> str:
    return "dask://" + str(cluster.scheduler_address).removeprefix("tcp://")


def tables(folder: Path) -> pa.Table:
    return pa.concat_tables([pq.read_table(f) for f in sorted(folder.glob("*.parquet"))])


class Killer(threading.Thread):
    """Kills a worker that has work, as often as asked."""

    def __init__(self, cluster: Any, times: int) -> None:
        super().__init__(daemon=True)
        self.cluster, self.left, self.killed = cluster, times, []
        self.over = threading.Event()

    def run(self) -> None:
        with distributed.Client(self.cluster, set_as_default=False) as client:
            while self.left and not self.over.wait(0.01):
                busy = [worker for worker, work in client.processing().items() if work]
                pids = {} if not busy else {w: n.pid for n in self.cluster.workers.values() for w in [n.worker_address]}
                if busy and pids.get(busy[0]):
                    os.kill(pids[busy[0]], signal.SIGKILL)
                    self.killed.append(pids[busy[0]])
                    self.left -= 1
                    self.over.wait(2.0)


def test_killed_workers_change_nothing(cluster: Any, fleet: Path, tmp_path: Path) -> None:
    engine = engine_of(at(cluster))
    try:
        calm = plan_parts(str(fleet), engine, budget=200_000, output=str(tmp_path / "calm"))
        killer = Killer(cluster, times=3)
        killer.start()
        while killer.left and killer.is_alive():
            shaken = plan_parts(str(fleet), engine, budget=200_000, output=str(tmp_path / "shaken"))
            assert shaken == calm  # every number of it, bit by bit
        killer.over.set()
        killer.join()
    finally:
        engine.close()
    assert len(set(killer.killed)) == 3
    written = tables(tmp_path / "shaken")
    assert written.equals(tables(tmp_path / "calm"))
    assert len(list((tmp_path / "shaken").iterdir())) == FILES
    alone = plan(tables(fleet), budget=200_000)
    assert calm.price == pytest.approx(alone.price, rel=1e-9)
    rates = written.column("sync_rate").to_numpy()
    assert np.abs(rates - alone.sync_rate).max() <= 1e-9 * alone.sync_rate.max()


def test_errors_come_back_from_workers(cluster: Any, tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1], "change_rate": [-1.0]}), tmp_path / "a.parquet")
    engine = engine_of(at(cluster))
    try:
        with pytest.raises(InputError, match=r"a.parquet': row 1 \(id 1\): change_rate -1 must be a finite number"):
            plan_parts(str(tmp_path), engine, budget=1)
    finally:
        engine.close()


def test_a_wrong_address_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unstale.planning.engines.dask_cluster.PATIENCE", 1.0)
    with pytest.raises(InputError, match=r"engine 'dask://127.0.0.1:1' does not answer"):
        engine_of("dask://127.0.0.1:1")
    with pytest.raises(InputError, match="engine 'dask://' is no address"):
        engine_of("dask://")


def test_a_cluster_without_workers_is_one_sentence() -> None:
    options = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
    empty = distributed.SpecCluster({}, {"cls": distributed.Scheduler, "options": options})
    with empty, pytest.raises(InputError, match="has no workers: start some"):
        engine_of(at(empty))


def test_workers_of_this_machine(fleet: Path) -> None:
    engine = DaskCluster(3)
    try:
        made = plan_parts(str(fleet), engine, target=0.5)
        assert made.summary()["freshness"] == pytest.approx(0.5, abs=1e-9)
    finally:
        engine.close()
