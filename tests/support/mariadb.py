"""A real MariaDB for tests, where one is installed: a server in a folder of its own, reached through its socket."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pymysql

from support.postgres import PATIENCE

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


@contextmanager
def mariadb() -> Iterator[MariaDb]:
    """A server as long as the context lasts."""
    folder = Path(tempfile.mkdtemp(prefix="my", dir="/tmp" if len(tempfile.gettempdir()) > 60 else None))
    begin = folder / "begin.sql"
    made = ["CREATE DATABASE shop;"]
    for user, right in {"owner": "ALL", "reader": "SELECT"}.items():
        made += [f"CREATE USER {user}@'127.0.0.1';", f"GRANT {right} ON shop.* TO {user}@'127.0.0.1';"]
    # Who plays tricks on others sees them, and can end them.
    made.append("GRANT PROCESS, CONNECTION ADMIN ON *.* TO owner@'127.0.0.1';")
    # One statement a line, as the server wants it.
    begin.write_text("\n".join(made) + "\n")
    data, root = folder / "data", os.geteuid() == 0
    if root:
        for place in (folder, begin):
            shutil.chown(place, "nobody")
    who = ["--user=nobody"] if root else []
    process = None
    try:
        common = ["--no-defaults", f"--datadir={data}", *who]
        subprocess.run(
            ["mariadb-install-db", *common, "--auth-root-authentication-method=normal", "--skip-test-db"],
            check=True,
            capture_output=True,
        )
        told = [f"--socket={folder / 'socket'}", f"--pid-file={folder / 'pid'}", f"--init-file={begin}"]
        port = _free_port()
        places = ["--bind-address=127.0.0.1", f"--port={port}", "--skip-name-resolve"]
        loose = ["--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=32M", "--default-time-zone=+05:30"]
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(["mariadbd", *common, *told, *places, *loose], stdout=log, stderr=log)
        server = MariaDb(port)
        _wait(server, process, folder / "log")
        yield server
    finally:
        if process is not None:
            process.kill()
            process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _free_port() -> int:
    """One that was free a moment ago."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        port: int = found.getsockname()[1]
    return port


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
