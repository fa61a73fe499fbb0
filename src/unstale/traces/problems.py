"""What was wrong with the rows of a trace: counted by kind, said in one line each, never silently used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from unstale.frozen import dataclass

#: kind -> what happened to such rows, for one row and for many
_TEXTS = {
    "malformed": ("{n} row cannot be read and was left out", "{n} rows cannot be read and were left out"),
    "missing_source": ("{n} row names no source and was left out", "{n} rows name no source and were left out"),
    "missing_time": ("{n} row has no time and was left out", "{n} rows have no time and were left out"),
    "future": ("{n} time is in the future and was left out", "{n} times are in the future and were left out"),
    "duplicate": ("{n} row repeats another and was counted once", "{n} rows repeat others and were counted once"),
    "unsorted": (
        "{n} time is earlier than the one before it of the same source: sorted",
        "{n} times are earlier than the one before of the same source: sorted",
    ),
    "zoneless": ("{n} time has no zone and was read as UTC", "{n} times have no zone and were read as UTC"),
}
KINDS = tuple(_TEXTS)


@dataclass(frozen=True, slots=True)
class Problems:
    """How many rows were read, how many of them had which problem, and the first example of each.

    A row that is left out counts under one kind only, and none twice: rows = changes + left out + duplicate.

    >>> print(Problems(rows=10, malformed=1, duplicate=2, examples={"malformed": "'soon' in row 4"}))
    1 row cannot be read and was left out (first: 'soon' in row 4)
    2 rows repeat others and were counted once
    """

    rows: int
    malformed: int = 0
    missing_source: int = 0
    missing_time: int = 0
    future: int = 0
    duplicate: int = 0
    unsorted: int = 0
    zoneless: int = 0
    examples: Mapping[str, str] = field(default_factory=dict)
    #: the columns that were taken for source and time, where the rows came from a table
    columns: tuple[str, str] | None = None

    def counts(self) -> dict[str, int]:
        """The kinds that occurred, and how often."""
        return {kind: count for kind in KINDS if (count := getattr(self, kind))}

    def lines(self) -> list[str]:
        """One line for each kind that occurred."""
        found = []
        for kind, count in self.counts().items():
            first = f" (first: {self.examples[kind]})" if kind in self.examples else ""
            found.append(_TEXTS[kind][count > 1].format(n=f"{count:,}") + first)
        return found

    def __str__(self) -> str:
        return "\n".join(self.lines())
