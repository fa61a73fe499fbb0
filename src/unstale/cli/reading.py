"""What the reading commands share: a store opened for reading, sizes and addresses as people read them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from unstale.cli.service import read_store
from unstale.service.documents import iso as iso
from unstale.service.words import ago as ago
from unstale.service.words import span as span

if TYPE_CHECKING:
    from rich.table import Table

    from unstale.cli.settings import Settings
    from unstale.ports import ReadStore

#: the longest address that a table shows whole
_LONG = 60


@contextmanager
def reading(settings: Settings) -> Iterator[ReadStore]:
    """The store of the settings, to be read and nothing else."""
    store = read_store(settings)
    try:
        yield store
    finally:
        store.close()


def brief(address: str) -> str:
    """An address that fits into a table."""
    return address if len(address) <= _LONG else f"{address[:28]}…{address[-31:]}"


def firm(table: Table) -> Table:
    """The table, of which only the last column gives way where it does not fit: texts are cut, never numbers."""
    for column in table.columns[:-1]:
        column.min_width = max([len(str(column.header)), *(len(str(cell)) for cell in column.cells)])
    return table


def size(count: int) -> str:
    """Bytes as people say them.

    >>> size(0), size(1500), size(2_500_000)
    ('0 B', '1.5 kB', '2.5 MB')
    """
    amount = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if amount < 999.5 or unit == "GB":
            break
        amount /= 1000.0
    return f"{amount:.3g} {unit}"
