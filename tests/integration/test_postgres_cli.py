"""`unstale worker` as an operator runs it: processes, a real origin, HTTP; what the origin saw is what was recorded."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner

from support.postgres import postgres
from unstale.adapters.postgres_crew import PostgresCrew
from unstale.cli.settings import Settings
from unstale.cli.worker import grants_of, move, worker
from unstale.errors import UnstaleError
from unstale.ports import Listing

SOURCES, BUDGET, SECONDS = 60, 30.0, 14.0
RUN = "from unstale.cli.{0} import {0}; {0}()"


def test_two_workers_poll_an_origin_within_one_budget(tmp_path: Path) -> None:
    settings, log, told = tmp_path / "unstale.toml", tmp_path / "log.jsonl", tmp_path / "changes.jsonl"
    settings.write_text(
        f'[http]\nallow_networks = ["127.0.0.0/8"]\nrobots = false\ntimeout = "5s"\n[[on_change]]\nlog = "{told}"\n'
    )
    with postgres() as server:
        origin = subprocess.Popen(
            [
                sys.executable,
                "-c",
                RUN.format("origin"),
                "--sources",
                str(SOURCES),
                "--changes",
                "30/min",
                "--port",
                "0",
                "--log",
                str(log),
                "--json",
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert origin.stdout is not None
            address = json.loads(origin.stdout.readline())["address"]
            store = PostgresCrew(server.address())
            ids = store.add([Listing(f"{address}/s/{n}") for n in range(SOURCES)], time.time())
            workers = [
                subprocess.Popen(
                    [
                        sys.executable,
                        "-c",
                        RUN.format("worker"),
                        "--store",
                        server.address(),
                        "--budget",
                        f"{BUDGET:g}/s",
                        "--for",
                        f"{SECONDS:g}s",
                        "--config",
                        str(settings),
                    ],
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                )
                for _ in range(2)
            ]
            said = [one.communicate(timeout=60)[0] for one in workers]
        finally:
            origin.terminate()
            origin.communicate(timeout=10)
        polls = sum(int(text.rpartition("Stopped after ")[2].split()[0].replace(",", "")) for text in said)
        tally = store.counters()
        assert polls == tally["recorded"] == tally["claimed"] > 2 * SOURCES
        assert polls <= BUDGET * SECONDS + 2 * BUDGET
        asked = Counter(json.loads(line)["path"] for line in log.read_text().splitlines())
        for n, source in enumerate(ids):
            assert asked[f"/s/{n}"] == len(store.observations(source))
            copy = store.copy(source)
            assert copy is not None
            assert copy.body.data
        # Whoever planned also told of the changes, once each.
        events = [json.loads(line) for line in told.read_text().splitlines()]
        assert len(events) == len({json.dumps(event) for event in events}) > 0
        store.close()


def test_hosts_are_granted_what_the_settings_say() -> None:
    grant = grants_of(Settings())
    public, home = grant("example.org", 0.0), grant("127.0.0.1", 0.0)
    assert (public.spacing, public.concurrency, public.opens_in) == (1.0, 2, 0.0)
    assert (home.spacing, home.concurrency) == (0.0, 1_000_000)


@pytest.mark.parametrize(
    ("command", "given", "words"),
    [
        (worker, ["--store", "unstale.db"], "is no PostgreSQL database: write postgresql://user@host/database"),
        (worker, ["--store", "postgresql://me:s3cret@127.0.0.1:1/x"], "127.0.0.1:1/x cannot be reached: check host"),
        (worker, ["--store", "postgresql://h/x", "--budget", "lots"], "budget 'lots' is not a rate"),
        (move, ["--from", "sqlite:/nowhere/x.db", "--to", "postgresql://127.0.0.1:1/x"], "does not exist: check"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(command: object, given: list[str], words: str) -> None:
    answer = CliRunner().invoke(command, given)  # type: ignore[arg-type]
    assert isinstance(answer.exception, UnstaleError)
    assert words in str(answer.exception)
    assert "s3cret" not in str(answer.exception)
