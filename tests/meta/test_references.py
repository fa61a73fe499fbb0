"""Citations lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support.documents import PAGES, ROOT, name

PAPERS = {"000", "001", "002", "003", "004"}
#: [003 eq. 42], [004, between eqs. 18 and 19], [003 Fig. 10, 000 sect. 4]
_PAPER = r"(?<![\w.])0\d\d\b(?!\.\d)"
_BRACKETS = re.compile(rf"\[([^\[\]]*{_PAPER}[^\[\]]*)\]")
_PLACE = re.compile(
    r"\b(eqs?\.|sect\.|section|Table|Tables|Fig\.|Figure|[Tt]heorems?|[Ll]emma|[Dd]efinitions?|Def\.|Algorithms?|"
    r"Remark|footnote|appendix|between)"
)
FILES = [*sorted((ROOT / "src").rglob("*.py")), *PAGES]


def _citations(path: Path) -> list[str]:
    return [" ".join(found.split()) for found in _BRACKETS.findall(path.read_text("utf-8"))]


@pytest.mark.parametrize("path", [f for f in FILES if _citations(f)], ids=name)
def test_a_citation_names_a_paper_and_a_place(path: Path) -> None:
    for citation in _citations(path):
        numbers = set(re.findall(_PAPER, citation))
        assert numbers <= PAPERS, f"[{citation}] names a paper that docs/references.md does not have"
        assert citation in PAPERS or _PLACE.search(citation), f"[{citation}] says no place in the paper"


def test_the_papers_are_listed() -> None:
    text = (ROOT / "docs/references.md").read_text("utf-8")
    assert set(re.findall(r"^\| (\d{3}) \|", text, re.MULTILINE)) == PAPERS


def test_sections_the_code_points_to_exist() -> None:
    pointed = {m for f in (ROOT / "src").rglob("*.py") for m in re.findall(r"\b(G\.\d) in docs", f.read_text("utf-8"))}
    headings = re.findall(r"^#+ .*?\b(G\.\d)\b", (ROOT / "docs/theory/price.md").read_text("utf-8"), re.MULTILINE)
    assert pointed
    assert pointed <= set(headings)


def test_all_errata_are_told() -> None:
    text = (ROOT / "docs/errata.md").read_text("utf-8")
    assert [int(n) for n in re.findall(r"^\| (\d{1,2}) \|", text, re.MULTILINE)] == list(range(1, 27))
