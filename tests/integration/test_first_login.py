"""The first start of `unstale serve` by somebody who has set nothing: the link it prints, the token that lasts."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import requests

from support.patience import BUSY
from unstale.adapters.sqlite_store import SqliteStore
from unstale.ports import Listing

PATIENCE = 10.0 * BUSY


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The line that the command prints."""
    command = [sys.executable, "-c", "from unstale.cli.main import main; main()", "serve", "--listen", "127.0.0.1:0"]
    env = {name: value for name, value in os.environ.items() if not name.startswith("UNSTALE_")}
    process = subprocess.Popen(
        [*command, "--store", "s.db"], cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        yield process.stdout.readline()
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE)


def test_the_link_logs_in_once_and_the_token_lasts(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "s.db")
    store.add([Listing("https://a.example/")], time.time())
    store.close()
    with served(tmp_path) as line:
        said = re.fullmatch(
            r"serving s\.db at (\S+)/ \(to change things there open (\S+)/#key=([\w-]+) once, "
            r"or log in with the token in (\S+)\), stop with Ctrl-C\n",
            line,
        )
        assert said, line
        at, _, key, file = said.groups()
        token = (tmp_path / file).read_text().strip()
        # Everybody here may look; nothing is changed by who has not said who he is, and he is asked.
        assert requests.get(f"{at}/api/v1/status", timeout=PATIENCE).status_code == 200
        stranger = requests.patch(f"{at}/api/v1/sources/1", json={"weight": 2}, timeout=PATIENCE)
        assert (stranger.status_code, "Bearer" in stranger.headers["www-authenticate"]) == (401, True)
        assert file in requests.get(f"{at}/dashboard/session", timeout=PATIENCE).json()["kept"]
        browser = {"Origin": at}
        for status in (200, 401):
            got = requests.post(f"{at}/dashboard/login", json={"secret": key}, headers=browser, timeout=PATIENCE)
            assert got.status_code == status
        assert "neither the token nor a password" in got.json()["detail"]
    with served(tmp_path) as line:
        at = line.split(" at ")[1].split("/ ")[0]
        who = {"Authorization": f"Bearer {token}"}
        changed = requests.patch(f"{at}/api/v1/sources/1", json={"weight": 2}, headers=who, timeout=PATIENCE)
        assert (changed.status_code, changed.json()["weight"]) == (200, 2.0)
        assert key not in line, "another start, another link"
