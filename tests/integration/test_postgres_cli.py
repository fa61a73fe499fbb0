"""`unstale worker` as an operator runs it: processes, a real origin, HTTP; what the origin saw is what was recorded."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
import requests
from click.testing import CliRunner

from support.postgres import postgres
from support.worker_crew import until
from unstale.adapters.postgres_crew import PostgresCrew
from unstale.cli.main import main
from unstale.cli.moving import move
from unstale.cli.worker import worker
from unstale.errors import UnstaleError
from unstale.keeper.outcomes import Answer
from unstale.ports import Body, Entry, Listing

SOURCES, BUDGET, SECONDS = 60, 30.0, 14.0
RUN = "from unstale.cli.{0} import {0}; {0}()"


def test_two_workers_poll_an_origin_within_one_budget(tmp_path: Path) -> None:
    settings, log, told = tmp_path / "unstale.toml", tmp_path / "log.jsonl", tmp_path / "changes.jsonl"
    settings.write_text(
        f'[http]\nallow_networks = ["127.0.0.0/8"]\nrobots = false\ntimeout = "5s"\n[[on_change]]\n'
        f'log = "{told}"\nfirst = true\n'
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
        assert polls == tally["recorded"] == tally["claimed"] - tally.get("given_back", 0) > 2 * SOURCES
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


@pytest.mark.parametrize(
    ("command", "given", "words"),
    [
        (worker, ["--store", "unstale.db"], "is no PostgreSQL database: write postgresql://user@host/database"),
        (worker, ["--store", "postgresql://h/x", "--budget", "lots"], "budget 'lots' is not a rate"),
        (move, ["--from", "sqlite:/nowhere/x.db", "--to", "postgresql://127.0.0.1:1/x"], "does not exist: check"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(command: object, given: list[str], words: str) -> None:
    answer = CliRunner().invoke(command, given)  # type: ignore[arg-type]
    assert isinstance(answer.exception, UnstaleError)
    assert words in str(answer.exception)
    assert "s3cret" not in str(answer.exception)


def test_a_server_beside_workers_serves_copies_api_metrics_and_dashboard(tmp_path: Path) -> None:
    """`unstale serve` on PostgreSQL, as a process; the password in the store's address is seen nowhere."""
    token = "0123456789abcdef" * 2
    with postgres() as server:
        address = server.address() + "&password=s3cret"
        store = PostgresCrew(address)
        (source,) = store.add([Listing("https://a.example/", host="a.example")], time.time())
        (claim,) = store.claim(time.time(), 1, lease=60.0, owner="test")
        store.record([Entry(claim, Answer.CHANGED, time.time(), time.time() + 60.0, body=Body(b"hello", "text/plain"))])
        store.beat("worker", 0.0, 0.0, 1.0, {}, None)
        process = subprocess.Popen(
            [sys.executable, "-c", "from unstale.cli.main import main; main()", "serve", "--listen", "127.0.0.1:0"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            env={**os.environ, "UNSTALE_STORE": address, "UNSTALE_TOKEN": token},
        )
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line.startswith("serving postgresql:///postgres at http://127.0.0.1:"), process.stderr
            origin = "http://" + line.partition("http://")[2].partition("/")[0]
            store.beat("worker", 0.0, 0.0, 1.0, {}, None)
            status = requests.get(f"{origin}/api/v1/status", timeout=60)
            assert status.json()["engine"]["workers"] == 1
            assert status.json()["totals"]["polls"] == status.json()["totals"]["first"] == 1
            assert requests.get(f"{origin}/copies/{source}", timeout=60).content == b"hello"
            assert "unstale_workers 1" in requests.get(f"{origin}/metrics", timeout=60).text
            assert requests.get(f"{origin}/", timeout=60).status_code == 200
            who = {"Authorization": f"Bearer {token}"}
            put = requests.put(f"{origin}/api/v1/budget", json={"budget_per_day": 77}, headers=who, timeout=60)
            assert (put.json()["budget_per_day"], put.json()["by"]) == (pytest.approx(77.0), "api")
            new = [{"address": "https://b.example/"}]
            assert requests.post(f"{origin}/api/v1/sources", json=new, headers=who, timeout=60).status_code == 201
            assert requests.get(f"{origin}/api/v1/sources/{source}/explain", timeout=60).json()["sentence"]

            def shown() -> set[str]:
                table = requests.get(f"{origin}/dashboard/table?sort=fresh", timeout=60).json()
                return {row["address"] for row in table["sources"]}

            # At once, unless the machine is too busy to read two sources in a quarter of a second.
            until(lambda: shown() == {"https://a.example/", "https://b.example/"}, 10.0)
        finally:
            process.terminate()
            out, errors = process.communicate(timeout=60)
        store.close()
        doctor = subprocess.run(
            [sys.executable, "-c", "from unstale.cli.main import main; main()", "doctor", "--store", address, "--json"],
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
            cwd=tmp_path,
        )
    assert not doctor.stderr, doctor.stderr
    found = json.loads(doctor.stdout)
    assert found["replayed"]["sources"] == 2
    assert found["replayed"]["differ"] == 0
    for said in (line, out, errors, doctor.stdout, doctor.stderr):
        assert "s3cret" not in said


def test_what_cannot_be_reached_is_named_without_its_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for secret in ("postgresql://me:s3cret@127.0.0.1:1/x", "postgresql://127.0.0.1:1/x?user=me&password=s3cret"):
        for words in (["status"], ["top"], ["doctor"], ["budget"], ["list"], ["add", "https://a.org/"]):
            monkeypatch.setattr(sys, "argv", ["unstale", *words, "--store", secret])
            with pytest.raises(SystemExit) as ended:
                main()
            said = capsys.readouterr()
            assert ended.value.code != 0
            assert "cannot be reached" in said.err, (words, said.err)
            assert "s3cret" not in said.out + said.err
