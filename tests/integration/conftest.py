"""What several files of these tests ask for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from support.poll_forker import Forker
from support.postgres import Postgres, postgres
from unstale.adapters.postgres_crew import PostgresCrew


@pytest.fixture(scope="module")
def forker() -> Iterator[Forker]:
    """Begins polls in processes that can be killed."""
    found = Forker()
    yield found
    found.close()


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    """A PostgreSQL that the tests of a file share."""
    with postgres() as running:
        yield running


@pytest.fixture
def store(server: Postgres) -> Iterator[PostgresCrew]:
    """An empty store in it, as workers have it."""
    server.run("DROP SCHEMA IF EXISTS unstale CASCADE")
    with closing(PostgresCrew(server.address())) as opened:
        yield opened
