"""What the server asks of a store beyond `Replica`, and of whoever can have a source polled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from unstale.ports import Replica


class Head(NamedTuple):
    """How a source stands: the token of its newest observation, its newest version (0: none), when it last answered
    (-inf: never), when it is due, and how many polls failed since."""

    latest: int
    version: int
    checked: float
    due: float
    failures: int


@dataclass(frozen=True, slots=True)
class Edition:
    """What is known of one kept version besides its bytes.

    `before` is when the version before it was taken, 0 if that is not kept.
    """

    version: int
    taken_at: float
    media_type: str
    last_modified: str | None
    digest: bytes
    size: int
    before: float
    #: the replicas it came through, nearest to the source first
    via: str = ""


class Shelf(Replica, Protocol):
    """A store as the server reads it. Rows are plain: a store does not know the server."""

    def mark(self) -> bytes | None:
        """Other bytes whenever anything was committed, for less than a microsecond; None if that cannot be told."""

    def head_rows(self, sources: Sequence[int]) -> list[tuple[int, int, int, float, float, int]]:
        """How sources stand now, those that exist: the source and the fields of `Head`."""

    def edition_row(
        self, source: int, version: int
    ) -> tuple[int, float, str, str | None, bytes, int, float, str] | None:
        """One kept version without its bytes, the fields of `Edition`."""

    def packed(self, source: int, version: int) -> bytes | None:
        """Its bytes as one zstd frame, not yet checked against the digest."""

    def heard(self) -> float:
        """When any source last answered; -inf if none of the newest thousand polls was answered."""


def edition_of(shelf: Shelf, source: int, version: int) -> Edition | None:
    """One kept version without its bytes."""
    row = shelf.edition_row(source, version)
    return None if row is None else Edition(*row)


class Asker(Protocol):
    """Has a source polled once, within the budget."""

    async def ask(self, source: int, deadline: float) -> Head | None:
        """How it stands after the first poll that ended since the call, answered or not; None if none did in time."""

    async def hint(self, source: int) -> None:
        """Make it due now, and do not wait."""
