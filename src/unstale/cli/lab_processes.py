"""The replicas of `unstale lab` as processes of this machine: started together, ended together, whatever happens."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

from unstale.cli.children import ended_within
from unstale.errors import ReplicaError
from unstale.lab.measure import ServedVersions
from unstale.lab.setups import SLACK, Setup

#: seconds in which a replica must be up, or have ended
PATIENCE = 60.0
#: mean intervals by which a replica with a brain begins before the one that follows it
AHEAD = 3.0


class LabReplicas:
    """All replicas of an experiment: `async with Replicas(setup, folder) as replicas`.

    Those who come in place of others are started with the rest, and idle until their time has come.
    """

    def __init__(self, setup: Setup, folder: Path) -> None:
        self._setup, self._folder = setup, folder
        self._running: list[asyncio.subprocess.Process] = []
        #: for each place who is there from when on, and where all of them serve
        self._tenants: list[list[tuple[float, int]]] = [[(0.0, i)] for i in range(setup.replicas)]
        self._places: list[str] = []
        self._sources: list[str] = []

    @property
    def addresses(self) -> list[str]:
        """Where the replicas that are there now serve."""
        return [self._places[tenants[-1][1]] for tenants in self._tenants]

    async def __aenter__(self) -> Self:
        setup = self._setup
        place = [*range(setup.replicas), *(slot for _, slot in setup.leaving)]
        try:
            for i, slot in enumerate(place):
                with (self._folder / f"{i}.errors").open("wb") as errors:
                    process = await asyncio.create_subprocess_exec(
                        sys.executable,
                        "-m",
                        "unstale.cli.lab_node",
                        stdin=asyncio.subprocess.PIPE,
                        stdout=asyncio.subprocess.PIPE,
                        stderr=errors,
                        # Fifty sources are not worth a second of compiling in each process.
                        env=os.environ | {"NUMBA_DISABLE_JIT": "1"},
                    )
                self._running.append(process)
                layer, _ = setup.members[slot]
                follows = setup.brain and setup.upstream[slot] is not None
                told = {
                    "name": f"replica-{i + 1}",
                    "store": str(self._folder / f"{i}.db"),
                    "notes": str(self._folder / f"{i}.jsonl"),
                    "seed": [setup.seed, i],
                    "sync_rate": layer.sync_rate * (SLACK if follows else 1.0),
                    "peer_rate": layer.peer_rate,
                    "asked": setup.asked if setup.topology == "peers" else 1,
                    "both": setup.both,
                    "choose": setup.choose,
                    "brain": setup.brain,
                    "even": setup.topology == "design" and layer.group == 1,
                }
                await self._tell(i, told)
            for i in range(len(place)):
                self._places.append(f"http://127.0.0.1:{(await self._heard(i))['port']}")
        except BaseException:
            await self._end()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._end()

    async def begin(self, sources: Sequence[str]) -> None:
        """Let all of them poll."""
        self._sources = list(sources)
        for i in range(self._setup.replicas):
            await self._begin(i, i)
            if self._setup.brain and self._setup.topology == "cascade":
                # Who follows somebody that has nothing yet takes it for failed, and comes back late.
                await asyncio.sleep(AHEAD / self._setup.sync_rate)

    async def leave(self) -> None:
        """Let replicas leave, and others come in their places, when it is their time."""
        began = time.monotonic()
        for came, (at, slot) in enumerate(self._setup.leaving, self._setup.replicas):
            await asyncio.sleep(max(began + at - time.monotonic(), 0.0))
            gone = self._tenants[slot][-1][1]
            self._tenants[slot].append((time.time(), came))
            await self._tell(gone, {})
            await self._begin(came, slot)

    async def finish(self) -> list[dict[str, Any]]:
        """End all of them; what each says it did."""
        for tenants in self._tenants:
            await self._tell(tenants[-1][1], {})
        there = sorted(i for tenants in self._tenants for _, i in tenants)
        return [await self._heard(i) for i in there]

    def served(self, sources: Sequence[str]) -> list[list[ServedVersions]]:
        """From when on which place served which version of which source; who comes new has none."""
        return [
            [_joined(tenants, [notes[s] for notes in all_notes]) for s in range(len(sources))]
            for tenants in self._tenants
            for all_notes in [[_notes(self._folder / f"{i}.jsonl", sources) for _, i in tenants]]
        ]

    async def _begin(self, i: int, slot: int) -> None:
        """Let one poll: whom, and whether it hears of peers from the source or is told of them."""
        upstream, (_, others) = self._setup.upstream[slot], self._setup.members[slot]
        listed = self._setup.topology == "peers"
        await self._tell(
            i,
            {
                "sources": self._sources,
                "upstream": "" if upstream is None else self._places[upstream],
                "peers": [] if listed else [self._places[k] for k in others],
                "listed": listed,
                "here": self._places[i],
            },
        )

    async def _tell(self, i: int, told: dict[str, Any]) -> None:
        inlet = self._running[i].stdin
        assert inlet is not None
        inlet.write(json.dumps(told).encode() + b"\n")
        try:
            await inlet.drain()
        except OSError:
            raise self._broken(i) from None

    async def _heard(self, i: int) -> dict[str, Any]:
        outlet = self._running[i].stdout
        assert outlet is not None
        try:
            line = await asyncio.wait_for(outlet.readline(), PATIENCE)
            said: dict[str, Any] = json.loads(line)
        except (TimeoutError, ValueError):
            raise self._broken(i) from None
        return said

    def _broken(self, i: int) -> ReplicaError:
        errors = (self._folder / f"{i}.errors").read_text("utf-8", "replace").strip().splitlines()
        return ReplicaError(f"replica {i + 1} of the lab broke off: {errors[-1] if errors else 'it said nothing'}")

    async def _end(self) -> None:
        for process in self._running:
            if process.returncode is None:
                assert process.stdin is not None
                process.stdin.close()
        for process in self._running:
            await ended_within(process, 10.0)


def _notes(file: Path, sources: Sequence[str]) -> list[ServedVersions]:
    noted: dict[str, list[tuple[float, int]]] = defaultdict(list)
    for line in file.read_text("utf-8").splitlines():
        source, t, version = json.loads(line)
        noted[source].append((t, version))
    columns = (np.array(noted[source], dtype=np.float64).reshape(-1, 2) for source in sources)
    return [ServedVersions(rows[:, 0], rows[:, 1]) for rows in columns]


def _joined(tenants: Sequence[tuple[float, int]], notes: Sequence[ServedVersions]) -> ServedVersions:
    """What those who were in one place one after the other served of a source; -1 until one that came has a copy."""
    ends = [since for since, _ in tenants[1:]] + [np.inf]
    t, version = list[float](), list[float]()
    for (since, _), until, one in zip(tenants, ends, notes, strict=True):
        there = one.t < until
        t += [since, *one.t[there].tolist()]
        version += [-1.0, *one.version[there].tolist()]
    return ServedVersions(np.array(t), np.array(version))
