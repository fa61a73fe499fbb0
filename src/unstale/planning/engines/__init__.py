"""Who does the work of a plan in parts: processes of this machine, or the workers of a Dask cluster.

Rules of this room:
1. An engine maps a function over things and gives what it returned, in their order. Nothing is kept on workers
   between two maps, so a worker that dies costs time and never changes an answer.
2. Functions and things travel to the workers, so functions stand in a module, and workers need unstale too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from unstale.errors import InputError, sentence

Thing = TypeVar("Thing")
Found = TypeVar("Found")

USAGE = "write processes:3, dask (workers of this machine) or dask://HOST:PORT"


class PartsRunner(Protocol):
    """Two methods are all that planning needs of a cluster: what was found comes back in order, or an error does."""

    def map(self, work: Callable[..., Found], things: Sequence[Thing], *same: Any) -> list[Found]:
        """work(thing, *same) of each thing, in order; done again elsewhere where a worker died."""

    def close(self) -> None:
        """Let the workers go that this engine started."""


def engine_of(text: str) -> PartsRunner:
    """The engine that a text names: `processes`, `processes:3`, `dask`, `dask:3` or `dask://HOST:PORT`.

    >>> engine_of("spark")
    Traceback (most recent call last):
    unstale.errors.InputError: engine 'spark' is not known: write processes:3, dask (workers of this machine) or dask://HOST:PORT
    """
    kind, _, rest = text.partition(":")
    if kind == "processes":
        from unstale.planning.engines.processes import Processes

        return Processes(_count(text, rest))
    if kind == "dask":
        from unstale.planning.engines.dask_cluster import DaskCluster

        return (
            DaskCluster(address=rest.removeprefix("//")) if rest.startswith("//") else DaskCluster(_count(text, rest))
        )
    raise InputError(sentence("engine", repr(text), "is not known", USAGE))


def _count(text: str, workers: str) -> int | None:
    """How many workers were asked for; None for as many as there are cores."""
    if not workers and not text.endswith(":"):
        return None
    if not (workers.isascii() and workers.isdigit() and 1 <= int(workers) <= 1024):
        raise InputError(sentence("engine", repr(text), "has no number of workers from 1 to 1024", USAGE))
    return int(workers)
