"""One run of `unstale lab`: a site, replicas, readers, and what was measured of them."""

from __future__ import annotations

import asyncio
import re
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from unstale.errors import UnstaleError
from unstale.frozen import dataclass

if TYPE_CHECKING:
    from unstale.lab.measure import MeasuredFreshness
    from unstale.lab.setups import Setup
    from unstale.origin.server import Origin

#: reads per second of the redundant lab, each from several replicas
READS = 8.0
#: where files cost no disk, if there is such a place: replicas sync every poll to the disk, all of them to the same one
_MEMORY = Path("/dev/shm")
_VERSION = re.compile(rb"version (\d+)")


@dataclass(frozen=True, slots=True)
class LabRow:
    """One place where freshness was measured."""

    place: str
    model: float
    measured: MeasuredFreshness


async def experiment(setup: Setup) -> tuple[list[LabRow], dict[str, Any]]:
    """Run it; what was measured at each place, and what was done."""
    from unstale.cli.lab_processes import LabReplicas
    from unstale.core.replication.layers import siblings
    from unstale.lab.measure import fresh_time
    from unstale.origin.log import RequestLog
    from unstale.origin.server import Origin
    from unstale.origin.site import Site

    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="unstale-lab-", dir=_MEMORY if _MEMORY.is_dir() else None) as folder:
        site = Site.of(setup.sources, setup.change_rate, seed=setup.seed)
        async with (
            Origin(site, log=RequestLog(keep=1)) as origin,
            LabReplicas(setup, Path(folder)) as replicas,
        ):
            sources = [origin.address + path for path in site.paths]
            await replicas.begin(sources)
            leaving = asyncio.create_task(replicas.leave())
            await asyncio.sleep(setup.settling)
            start = origin.now()
            readers = asyncio.create_task(_read(setup, origin, replicas.addresses, sources))
            await asyncio.sleep(setup.measuring)
            end = origin.now()
            readers.cancel()
            reads = await readers
            await leaving
            said = await replicas.finish()
            served = replicas.served(sources)
        changes = [site.changing.times(i, end) for i in range(len(site))]
    shares = fresh_time(changes, served, start, end, 1 if setup.layers else setup.asked)
    if setup.asked > 1 and setup.layers:
        # whoever asks, asks replicas with the same one above them
        near = [served[i] for i in siblings(setup.layers).tolist()]
        shares[-1] = fresh_time(changes, near, start, end, setup.asked)[-1]
    facts = {
        "changes": int(sum(np.count_nonzero(times > start) for times in changes)),
        "seconds": end - start,
        "whole_seconds": time.monotonic() - began,
        "polls": [one["polls"] for one in said],
        "failed": [one["failed"] for one in said],
        "left": len(setup.leaving),
        "late_seconds": sum(one["late"] for one in said) / max(sum(one["polls"] for one in said), 1),
        "reads": len(reads),
        "taken_from_peers": [sum(peer["taken"] for peer in one["peers"]) for one in said],
    }
    return _rows(setup, shares, reads), facts


def _rows(setup: Setup, shares: Any, reads: Sequence[bool]) -> list[LabRow]:
    from unstale.lab.measure import MeasuredFreshness, estimate
    from unstale.lab.setups import predicted

    model = predicted(setup)
    if setup.layers:
        found = [estimate(shares[list(place)].mean(axis=0)) for place in setup.places.values()]
        found += [estimate(shares[-1])] * (setup.asked > 1)
    elif setup.topology in ("single", "cascade"):
        found = [estimate(share) for share in shares[:-1]]
    else:
        found = [estimate(shares[:-1].mean(axis=0)), estimate(shares[-1])][: len(model)]
    rows = [LabRow(place, expected, one) for (place, expected), one in zip(model.items(), found, strict=True)]
    if reads:
        mean, expected = float(np.mean(reads)), rows[-1].model
        # Of a share near 0 or 1 the sample knows its own spread badly; what theory expects does not.
        rows.append(
            LabRow(
                f"{len(reads)} reads",
                expected,
                MeasuredFreshness(mean, (expected * (1 - expected) / len(reads)) ** 0.5),
            )
        )
    return rows


async def _read(setup: Setup, origin: Origin, replicas: Sequence[str], sources: Sequence[str]) -> list[bool]:
    """Read random sources at random times until cancelled, as a client does; whether each answer was fresh."""
    fresh: list[bool] = []
    if setup.topology != "redundant":
        return fresh
    from unstale.adapters.replica_client import ReplicaClient

    rng = np.random.default_rng([setup.seed, 1_000_000])
    client = ReplicaClient(replicas, k=setup.asked, rng=rng)
    try:
        while True:
            await asyncio.sleep(float(rng.exponential(1.0 / READS)))
            i = int(rng.integers(len(sources)))
            true = origin.site.changing.at(i, origin.now())[0]
            try:
                found = _VERSION.search((await client.get(sources[i])).body)
            except UnstaleError:
                found = None
            # What changed while the answer was under way is not held against it.
            fresh.append(found is not None and int(found[1]) >= true)
    except asyncio.CancelledError:
        return fresh
