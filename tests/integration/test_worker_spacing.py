"""Hosts are spaced whoever polls them, by the log of an origin that nobody here could deceive."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import numpy as np
import pytest

from support import http_worker_victim
from support.patience import BUSY
from support.postgres import postgres
from support.stamped_origin import stamped_origin
from unstale.adapters.postgres_crew import PostgresCrew
from unstale.ports import Listing

HOSTS = [f"127.0.1.{n}" for n in range(1, 7)]
EACH, SPACING, WORKERS, FAULTS, BUDGET = 5, 1.0, 4, 40, 30.0


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has all of loopback, and stamps what arrives")
def test_no_two_requests_to_a_host_come_closer_than_its_spacing_less_a_twentieth(tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    with postgres() as server, stamped_origin(HOSTS) as origin, closing(PostgresCrew(server.address())) as store:
        hosts = "".join(f'[hosts."{host}"]\nspacing = "{SPACING}s"\n' for host in HOSTS)
        settings = tmp_path / "unstale.toml"
        settings.write_text(
            f'store = "{server.address()}"\nbudget = "{BUDGET:g}/s"\nfirst_round = "3000/min"\n'
            f'[http]\nallow_networks = ["127.0.0.0/8"]\nrobots = false\n{hosts}'
        )
        addresses = [f"http://{host}:{origin.port}/{n}" for n in range(EACH) for host in HOSTS]
        store.add([Listing(address) for address in addresses], time.time())
        program = [sys.executable, http_worker_victim.__file__, str(settings)]
        with (
            (tmp_path / "stderr").open("w") as errors,
            subprocess.Popen(
                program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
            ) as parent,
        ):
            assert parent.stdin is not None
            assert parent.stdout is not None

            def beget() -> int:
                parent.stdin.write("\n")
                parent.stdin.flush()
                return int(parent.stdout.readline())

            workers = [beget() for _ in range(WORKERS)]
            stopped: dict[int, float] = {}
            try:
                _until(lambda: len(origin.log) > 2 * len(HOSTS), 30.0)
                for n in range(FAULTS):
                    time.sleep(float(rng.uniform(0.1, 0.6)))
                    for worker in [worker for worker, at in stopped.items() if time.monotonic() > at]:
                        del stopped[worker]
                        os.kill(worker, signal.SIGCONT)
                    worker = workers[int(rng.integers(WORKERS))]
                    if n % 5 == 4:
                        os.kill(worker, signal.SIGKILL)
                        stopped.pop(worker, None)
                        workers[workers.index(worker)] = beget()
                    elif worker not in stopped:
                        os.kill(worker, signal.SIGSTOP)
                        stopped[worker] = time.monotonic() + float(rng.uniform(0.1, 2.5))
                for worker in stopped:
                    os.kill(worker, signal.SIGCONT)
                # None starves, though there are five times as many sources as hosts have turns for in a second.
                _until(lambda: len({line[1:] for line in origin.log}) == len(addresses), 60.0)
            finally:
                for worker in workers:
                    with suppress(ProcessLookupError):
                        os.kill(worker, signal.SIGCONT)
                        os.kill(worker, signal.SIGKILL)
                parent.stdin.close()
        for host in HOSTS:
            asked = np.sort([at for at, name, _ in origin.log if name == host])
            assert np.diff(asked).min() >= 0.95 * SPACING, (host, np.sort(np.diff(asked))[:5])


def _until(what: Callable[[], bool], seconds: float) -> None:
    ends = time.monotonic() + BUSY * seconds
    while not what():
        assert time.monotonic() < ends, "it did not happen in time"
        time.sleep(0.05)
