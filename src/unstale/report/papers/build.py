"""Everything the report says, as data: each item computed, simulated and judged."""

from __future__ import annotations

from collections.abc import Callable

from unstale.frozen import dataclass
from unstale.report.papers.contents import CHAPTERS, Chapter
from unstale.report.papers.item import Computation, Erratum, Item, ItemPart, Simulate, Simulation, errata, items, parts
from unstale.report.papers.items_000 import CHO
from unstale.report.papers.items_000_budget import BUDGET
from unstale.report.papers.items_002 import AZAR
from unstale.report.papers.items_003 import LI
from unstale.report.papers.items_003_fleets import WIKI
from unstale.report.papers.items_003_limits import LIMITS
from unstale.report.papers.items_004 import HOPS
from unstale.report.papers.items_004_redundancy import REDUNDANCY
from unstale.report.papers.items_004_replicas import REPLICAS
from unstale.report.papers.items_general import GENERAL

_CATALOGS = (CHO, BUDGET, AZAR, LI, LIMITS, WIKI, HOPS, REPLICAS, REDUNDANCY, GENERAL)


@dataclass(frozen=True, slots=True)
class ReportRow:
    """An item and what came out."""

    item: Item
    parts: tuple[ItemPart, ...]
    erratum: Erratum | None

    @property
    def holds(self) -> bool:
        """Whether every value is within its tolerance."""
        return all(part.holds for part in self.parts)

    @property
    def reason(self) -> str:
        """Why the verdict is not simply that the paper is right."""
        return self.item.reason or (self.erratum.why if self.erratum else "")


@dataclass(frozen=True, slots=True)
class Findings:
    """All rows of the chosen papers by id, and their errata."""

    rows: dict[str, ReportRow]
    errata: tuple[Erratum, ...]
    chapters: tuple[Chapter, ...]
    simulated: bool

    @property
    def failed(self) -> list[ReportRow]:
        """Rows with a value outside its tolerance, or a simulation more than 5 standard errors away."""
        return [row for row in self.rows.values() if not row.holds]


def computations() -> dict[str, Computation]:
    """All computations by id of item."""
    return {id_: function for catalog in _CATALOGS for id_, function in catalog.computations.items()}


def simulations() -> dict[str, Simulation]:
    """All simulations by id of item."""
    return {id_: function for catalog in _CATALOGS for id_, function in catalog.simulations.items()}


def build(
    only: str | None = None, simulate: Simulate | None = None, progress: Callable[[str], None] = lambda id_: None
) -> Findings:
    """Compute every item of all papers, or of one; with `simulate`, simulate what can be."""
    compute, sample = computations(), simulations()
    wrong = {id_: erratum for erratum in errata() for id_ in erratum.ids}
    rows = {}
    for id_, item in items().items():
        if only is not None and only not in item.papers:
            continue
        progress(id_)
        found: tuple[ItemPart, ...] = ()
        if id_ in compute:
            seen = sample[id_](item, simulate) if simulate is not None and id_ in sample else None
            found = tuple(parts(item, compute[id_](item), seen))
        rows[id_] = ReportRow(item, found, wrong.get(id_))
    return Findings(
        rows,
        tuple(erratum for erratum in errata() if rows.keys() & erratum.ids),
        tuple(chapter for chapter in CHAPTERS if only is None or only in chapter.papers),
        simulate is not None,
    )
