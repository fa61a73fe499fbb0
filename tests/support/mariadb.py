"""A real MariaDB for tests, where one is installed: a server in a folder of its own, reached through its socket."""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pymysql

from support.ports import free_port
from support.postgres import PATIENCE, new_folder

#: why there is none, empty if there is one
MISSING = "" if shutil.which("mariadbd") and shutil.which("mariadb-install-db") else "MariaDB's server is not installed"


@dataclass(frozen=True)
class MariaDb:
    """A running server on loopback."""

    port: int

    def address(self, user: str = "reader") -> str:
        """Its address as SQLAlchemy reads it."""
        return f"mysql+pymysql://{user}@127.0.0.1:{self.port}/shop"

    def run(self, *statements: str) -> list[tuple[Any, ...]]:
        """Execute statements one after the other; the rows of the last one."""
        with pymysql.connect(host="127.0.0.1", port=self.port, user="owner", database="shop", autocommit=True) as db:
            cursor = db.cursor()
            for statement in statements:
                cursor.execute(statement)
            return list(cursor.fetchall())


@cache
def _new() -> Path:
    """A folder of servers' data as it is at first: a copy of it is made faster than another one."""
    folder = new_folder("my")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    words = [*_common(folder), "--auth-root-authentication-method=normal", "--skip-test-db"]
    done = subprocess.run(["mariadb-install-db", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "data"


def _common(folder: Path) -> list[str]:
    """What programs are told of a server's folder: in the common one for temporary files, those who start delete
    the tables of others."""
    places = ["--no-defaults", f"--datadir={folder / 'data'}", f"--tmpdir={folder}"]
    return [*places, "--user=nobody"] if os.geteuid() == 0 else places


@contextmanager
def mariadb() -> Iterator[MariaDb]:
    """A server as long as the context lasts."""
    folder = new_folder("my")
    begin = folder / "begin.sql"
    made = ["CREATE DATABASE shop;"]
    for user, right in {"owner": "ALL", "reader": "SELECT"}.items():
        made += [f"CREATE USER {user}@'127.0.0.1';", f"GRANT {right} ON shop.* TO {user}@'127.0.0.1';"]
    # Who plays tricks on others sees them, and can end them.
    made.append("GRANT PROCESS, CONNECTION ADMIN ON *.* TO owner@'127.0.0.1';")
    # One statement a line, as the server wants it.
    begin.write_text("\n".join(made) + "\n")
    process = None
    try:
        # With owners and rights.
        subprocess.run(["cp", "-a", _new(), folder / "data"], check=True)
        told = [f"--socket={folder / 'socket'}", f"--pid-file={folder / 'pid'}", f"--init-file={begin}"]
        port = free_port()
        places = ["--bind-address=127.0.0.1", f"--port={port}", "--skip-name-resolve"]
        loose = ["--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=32M", "--default-time-zone=+05:30"]
        with (folder / "log").open("wb") as log:
            words = ["mariadbd", *_common(folder), *told, *places, *loose]
            process = subprocess.Popen(words, stdout=log, stderr=log)
        server = MariaDb(port)
        _wait(server, process, folder / "log")
        yield server
    finally:
        if process is not None:
            process.kill()
            process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _wait(server: MariaDb, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        assert process.poll() is None, log.read_text(errors="replace")[-2000:]
        try:
            server.run("SELECT 1")
            return
        except pymysql.Error:
            time.sleep(0.1)
    raise AssertionError(log.read_text(errors="replace")[-2000:])
