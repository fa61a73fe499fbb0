"""What several files of these tests ask for."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.poll_forker import Forker


@pytest.fixture(scope="module")
def forker() -> Iterator[Forker]:
    """Begins polls in processes that can be killed."""
    found = Forker()
    yield found
    found.close()
