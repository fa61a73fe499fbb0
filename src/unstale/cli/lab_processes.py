"""The replicas of `unstale lab` as processes of this machine: started together, ended together, whatever happens."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

from unstale.errors import ReplicaError
from unstale.lab.measure import ServedVersions
from unstale.lab.setups import Setup

#: seconds in which a replica must be up, or have ended
PATIENCE = 60.0


class LabReplicas:
    """All replicas of an experiment: `async with Replicas(setup, folder) as replicas`."""

    def __init__(self, setup: Setup, folder: Path) -> None:
        self._setup, self._folder = setup, folder
        self._running: list[asyncio.subprocess.Process] = []
        self.addresses: list[str] = []

    async def __aenter__(self) -> Self:
        setup = self._setup
        try:
            for i, (layer, _) in enumerate(setup.members):
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
                told = {
                    "name": f"replica-{i + 1}",
                    "store": str(self._folder / f"{i}.db"),
                    "notes": str(self._folder / f"{i}.jsonl"),
                    "seed": [setup.seed, i],
                    "sync_rate": layer.sync_rate,
                    "peer_rate": layer.peer_rate,
                    "asked": setup.asked if setup.topology == "peers" else 1,
                    "brain": setup.brain,
                    "even": setup.topology == "design" and layer.group == 1,
                }
                await self._tell(i, told)
            for i in range(setup.replicas):
                self.addresses.append(f"http://127.0.0.1:{(await self._heard(i))['port']}")
        except BaseException:
            await self._end()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._end()

    async def begin(self, sources: Sequence[str]) -> None:
        """Let all of them poll."""
        for i, upstream in enumerate(self._setup.upstream):
            others = [self.addresses[k] for k in self._setup.members[i][1]]
            await self._tell(
                i,
                {
                    "sources": list(sources),
                    "upstream": "" if upstream is None else self.addresses[upstream],
                    "peers": others,
                    "here": self.addresses[i] if self._setup.both else "",
                },
            )

    async def finish(self) -> list[dict[str, Any]]:
        """End all of them; what each says it did."""
        for i in range(len(self._running)):
            await self._tell(i, {})
        return [await self._heard(i) for i in range(len(self._running))]

    def served(self, sources: Sequence[str]) -> list[list[ServedVersions]]:
        """From when on which replica served which version of which source."""
        return [_notes(self._folder / f"{i}.jsonl", sources) for i in range(len(self._running))]

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
            try:
                await asyncio.wait_for(process.wait(), 10.0)
            except TimeoutError:
                process.kill()
                await process.wait()


def _notes(file: Path, sources: Sequence[str]) -> list[ServedVersions]:
    noted: dict[str, list[tuple[float, int]]] = defaultdict(list)
    for line in file.read_text("utf-8").splitlines():
        source, t, version = json.loads(line)
        noted[source].append((t, version))
    columns = (np.array(noted[source], dtype=np.float64).reshape(-1, 2) for source in sources)
    return [ServedVersions(rows[:, 0], rows[:, 1]) for rows in columns]
