"""Citations lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

from support.documents import PAGES, ROOT, name
from support.source import MODULES, text

PAPERS = {"000", "001", "002", "003", "004"}
#: [003 eq. 42], [004, between eqs. 18 and 19], [003 Fig. 10, 000 sect. 4]
_PAPER = r"(?<![\w.])0\d\d\b(?!\.\d)"
_BRACKETS = re.compile(rf"\[([^\[\]]*{_PAPER}[^\[\]]*)\]")
_PLACE = re.compile(
    r"\b(eqs?\.|sect\.|section|Table|Tables|Fig\.|Figure|[Tt]heorems?|[Ll]emma|[Dd]efinitions?|Def\.|Algorithms?|"
    r"Remark|footnote|appendix|between)"
)
FILES = [*MODULES, *PAGES]


def _citations(path: Path) -> list[str]:
    return [" ".join(found.split()) for found in _BRACKETS.findall(text(path))]


def test_a_citation_names_a_paper_and_a_place() -> None:
    cited = [(path, citation) for path in FILES for citation in _citations(path)]
    assert len(cited) > 100
    for path, citation in cited:
        numbers = set(re.findall(_PAPER, citation))
        assert numbers <= PAPERS, f"{name(path)}: [{citation}] names a paper that docs/references.md does not have"
        assert citation in PAPERS or _PLACE.search(citation), f"{name(path)}: [{citation}] says no place in the paper"


def test_the_papers_are_listed() -> None:
    listed = (ROOT / "docs/references.md").read_text("utf-8")
    assert set(re.findall(r"^\| (\d{3}) \|", listed, re.MULTILINE)) == PAPERS


def test_sections_the_code_points_to_exist() -> None:
    pointed = {m for path in MODULES for m in re.findall(r"\b(G\.\d) in docs", text(path))}
    headings = re.findall(r"^#+ .*?\b(G\.\d)\b", (ROOT / "docs/theory/price.md").read_text("utf-8"), re.MULTILINE)
    assert pointed
    assert pointed <= set(headings)


def test_all_errata_are_told() -> None:
    told = (ROOT / "docs/errata.md").read_text("utf-8")
    assert [int(n) for n in re.findall(r"^\| (\d{1,2}) \|", told, re.MULTILINE)] == list(range(1, 27))
