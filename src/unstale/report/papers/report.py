"""The report from its parts: figures drawn, rows written, one file of HTML."""

from __future__ import annotations

from collections.abc import Callable

from unstale.core.trace import Trace
from unstale.report.papers import (
    figures_000,
    figures_000_models,
    figures_002,
    figures_003,
    figures_004,
    figures_004_replicas,
    figures_history,
    html,
)
from unstale.report.papers.build import Findings
from unstale.report.papers.figure import Drawing, svg
from unstale.report.papers.item import Simulate

DRAWINGS: dict[str, Drawing] = {
    **figures_000.FIGURES,
    **figures_000_models.FIGURES,
    **figures_002.FIGURES,
    **figures_003.FIGURES,
    **figures_004.FIGURES,
    **figures_004_replicas.FIGURES,
}


def render(
    findings: Findings,
    simulate: Simulate | None,
    facts: str,
    progress: Callable[[str], None] = lambda name: None,
    *,
    trace: Trace | None = None,
    source: str | None = None,
) -> str:
    """All findings with their figures as HTML, those of histories of this trace if there is one; needs matplotlib."""
    drawings = DRAWINGS | figures_history.figures(trace, source)
    shown = {name for chapter in findings.chapters for group in chapter.groups for name in group.figures}
    figures = {}
    for name, drawing in drawings.items():
        if name in shown:
            progress(name)
            figures[name] = svg(name, drawing, simulate)
    return html.write(findings, figures, drawings, facts)
