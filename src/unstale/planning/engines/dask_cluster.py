"""A Dask cluster as an engine: one that runs somewhere, or workers of this machine."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from unstale.errors import InputError, MissingExtraError, UnstaleError, sentence
from unstale.planning.engines import Found, Thing

#: seconds until an address that does not answer is given up
PATIENCE = 10.0


class DaskCluster:
    """The workers of a Dask scheduler at HOST:PORT, or as many processes here as asked for."""

    def __init__(self, workers: int | None = None, address: str | None = None) -> None:
        try:
            distributed: Any = import_module("distributed")
        except ImportError:
            raise MissingExtraError("dask", "dask") from None
        self.name = "dask" if address is None else f"dask://{address}"
        self._local: Any = None
        # what happens to workers is told by errors, or does not matter
        logging.getLogger("distributed").setLevel(logging.CRITICAL)
        if address is None:
            self._local = distributed.LocalCluster(workers, threads_per_worker=1, dashboard_address="127.0.0.1:0")
        try:
            self._client: Any = distributed.Client(self._local or f"tcp://{address}", timeout=PATIENCE)
        except (OSError, ValueError) as error:
            reason = "does not answer" if isinstance(error, OSError) else "is no address"
            raise InputError(
                sentence("engine", repr(self.name), reason, "give a Dask scheduler as dask://HOST:PORT")
            ) from None
        if not self._client.scheduler_info(n_workers=-1)["workers"]:
            self.close()
            raise InputError(sentence("engine", repr(self.name), "has no workers", "start some: dask worker HOST:PORT"))

    def map(self, work: Callable[..., Found], things: Sequence[Thing], *same: Any) -> list[Found]:
        """work(thing, *same) of each thing, in order."""
        from distributed import CancelledError, KilledWorker

        # not pure: a file can be another one the next time
        futures = self._client.map(lambda thing: work(thing, *same), things, pure=False)
        try:
            return list(self._client.gather(futures))
        except KilledWorker:
            raise UnstaleError(
                sentence(
                    "engine",
                    repr(self.name),
                    "lost the same work several times",
                    "look whether workers run out of memory",
                )
            ) from None
        except ModuleNotFoundError as error:
            raise InputError(
                sentence(
                    "engine",
                    repr(self.name),
                    f"has workers without {error.name}",
                    "install unstale there, in the same version",
                )
            ) from None
        except (CancelledError, OSError):
            rule = "went away while it worked"
            raise UnstaleError(sentence("engine", repr(self.name), rule, "look at it, then plan again")) from None
        finally:
            self._client.cancel(futures)

    def close(self) -> None:
        """Let go of the cluster; workers that were started here end."""
        self._client.close()
        if self._local is not None:
            self._local.close()
