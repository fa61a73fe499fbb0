"""A fleet in Parquet files, planned on three Dask workers of 2 GB each and by the processes of this machine.

The single-machine plan of the same sources is the reference, for time and for what comes out. With --shards: what is
lost when a thousand machines hear of the price late.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import distributed
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from harness import Table
from unstale.core import kernels
from unstale.planning.distributed import plan_parts
from unstale.planning.engines import PartsRunner
from unstale.planning.engines.dask_cluster import DaskCluster
from unstale.planning.engines.processes import Processes
from unstale.planning.parts_plan import PartsPlan
from unstale.sim.shards import Weather, shard_run

FILE = 1 << 22
WORKERS = 3
MEMORY = "2GB"
# neither has types
local_cluster: Any = distributed.LocalCluster
client_of: Any = distributed.Client


def write_fleet(folder: Path, count: int) -> None:
    """Sources with lognormal change rates and Pareto weights, four million to a file."""
    folder.mkdir(parents=True)
    for i, start in enumerate(range(0, count, FILE)):
        n = min(FILE, count - start)
        rng = np.random.default_rng([7, i])
        rate, weight = np.exp(2.0 * rng.standard_normal(n)), (1.0 - rng.random(n)) ** -0.5
        table = pa.table({"id": np.arange(start, start + n), "change_rate": rate, "weight": weight})
        pq.write_table(table, folder / f"part-{i:04}.parquet", row_group_size=1 << 20)


def peak() -> int:
    """The most memory a worker has held, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def columns(folder: Path, name: str) -> np.ndarray:
    files = sorted(folder.glob("*.parquet"))
    return np.concatenate([pq.read_table(f, columns=[name]).column(0).to_numpy() for f in files])


def run(engine: PartsRunner, folder: Path, budget: float, output: Path) -> tuple[PartsPlan, dict[str, float]]:
    """A plan, and the seconds of its stages."""
    begun: list[tuple[str, float]] = []
    made = plan_parts(
        str(folder),
        engine,
        budget=budget,
        output=str(output),
        stage=lambda name: begun.append((name.split()[0], time.perf_counter())),
    )
    begun.append(("end", time.perf_counter()))
    seconds: dict[str, float] = {}
    for (name, at), (_, until) in pairwise(begun):
        seconds[name] = seconds.get(name, 0.0) + until - at
    return made, seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sources", type=float, default=1e7)
    parser.add_argument("--budget", type=float, default=0.25, help="polls per source and day")
    parser.add_argument("--shards", action="store_true", help="simulate shards that hear of the price late instead")
    parser.add_argument("--folder", type=Path, help="where the files stand, or are made")
    options = parser.parse_args()
    if options.shards:
        shards()
        return
    count = int(options.sources)
    with tempfile.TemporaryDirectory() as place:
        folder = options.folder or Path(place) / "fleet"
        if not folder.exists():
            write_fleet(folder, count)
        compare(folder, Path(place), count, options.budget * count)


def compare(folder: Path, place: Path, count: int, budget: float) -> None:
    """Both engines and one machine on the same files."""
    name = "distributed" if count == 10_000_000 else f"distributed_{count:.0e}".replace("+", "")
    table = Table(name, f"{count:,} sources in Parquet, planned in parts")
    size = f"{count:.0e}".replace("+0", "")
    found: dict[str, PartsPlan] = {}
    with local_cluster(WORKERS, threads_per_worker=1, memory_limit=MEMORY, dashboard_address="127.0.0.1:0") as cluster:
        dask = DaskCluster(address=cluster.scheduler_address.removeprefix("tcp://"))

        def on_dask() -> None:
            found["dask"], seconds = run(dask, folder, budget, place / "dask")
            found_seconds.update(seconds)

        found_seconds: dict[str, float] = {}
        kernels.warm()
        single: dict[str, tuple[float, np.ndarray]] = {}

        def alone() -> None:
            root, rates = kernels.plan(
                columns(folder, "change_rate"), columns(folder, "weight"), None, budget, rtol=1e-11
            )
            single["one"] = root.price, rates

        table.measure(
            size,
            {"one machine, price and rates, not written": alone, f"dask, {WORKERS} workers, written": on_dask},
            reference="one machine, price and rates, not written",
            rounds=1,
        )
        with client_of(cluster) as client:
            memory = max(client.run(peak).values())
        dask.close()
    price, rates = single["one"]
    got = columns(place / "dask", "sync_rate")
    table.fact("most memory of a worker, MB", f"{memory / 1e6:.0f}", "2,000")
    table.fact("price, relative to one machine's", f"{found['dask'].price / price - 1:+.1e}", "1e-9")
    table.fact("rates apart by, over the largest", f"{np.abs(got - rates).max() / rates.max():.1e}", "1e-9")
    table.fact("budget missed by", f"{found['dask'].summary()['certificate']['budget']:.1e}", "1e-9")
    table.fact("passes to the price, after the sketches", found["dask"].passes, "-")
    for stage, seconds in found_seconds.items():
        table.fact(f"seconds, {stage}", f"{seconds:.1f}", "-")
    read = sum(f.stat().st_size for f in folder.glob("*.parquet"))
    written = sum(f.stat().st_size for f in (place / "dask").glob("*.parquet"))
    table.fact("bytes per source, read", f"{read / count:.1f}", "-")
    table.fact("bytes per source, written", f"{written / count:.1f}", "-")
    if count <= 10_000_000:
        engine = Processes(WORKERS)
        begin = time.perf_counter()
        made, _ = run(engine, folder, budget, place / "processes")
        table.fact(f"seconds, processes:{WORKERS}", f"{time.perf_counter() - begin:.1f}", "-")
        engine.close()
        table.fact("processes give dask's price", str(made.price == found["dask"].price), "bit by bit")
    table.write()


def shards() -> None:
    """A thousand shards that hear of the price late, in calm and in rough weather."""
    table = Table("shards", "1,000 shards of 10 sources that hear of the price late, over 3 days")
    for name, weather in (("drift", Weather()), ("drift, budget halved or restored twice a day", Weather(cuts=2.0))):
        for label, stale in (("1 h", 1 / 24), ("15 min", 1 / 96)):
            run = shard_run(1000, 10, stale=stale, days=3, rng=np.random.default_rng(17), weather=weather)
            bar = "0.5 %" if label == "1 h" else "-"
            lost, strictly = (f"{100 * e.value:.3f} ± {100 * e.error:.3f} %" for e in (run.lost, run.lost_strictly))
            table.fact(f"{name}: freshness lost, heard every {label}", lost, bar)
            table.fact(f"{name}: the same, budget not carried over, {label}", strictly, "-")
            table.fact(f"{name}: price off by, {label}", f"{100 * run.price_error:.1f} %", "-")
    table.write()


if __name__ == "__main__":
    main()
