"""The report as one file of HTML that loads nothing: styles, tables and figures are all inside."""

from __future__ import annotations

import math
from collections import Counter
from html import escape
from importlib.resources import files
from typing import Any

from unstale.report.papers.build import Findings, ReportRow
from unstale.report.papers.contents import Chapter, ItemGroup
from unstale.report.papers.figure import Drawing
from unstale.report.papers.item import NOT_REPEATED, ItemPart, SimulatedMean
from unstale.report.papers.tables import TABLES, Cell, Table, rounds_to
from unstale.report.papers.wording import anchor, given, greek, marked, shown_name, shown_value

#: verdict -> (what the report calls it, its colour, what it means)
VERDICTS = {
    "reproduces": ("reproduces", "good", "the paper's number or formula is right"),
    "reproduces within rounding": ("within rounding", "good", "right to the digits printed"),
    "reproduces approximately": ("approximately", "fair", "right in order and size, not in digits"),
    "reproduces in part": ("in part", "fair", "some of the printed numbers are right"),
    "OCR damaged (reconstructed)": ("rebuilt", "fair", "illegible in our text of the paper, derived anew"),
    "superseded (closed form exists)": ("superseded", "fair", "there is a better answer than the paper's"),
    "right, but numerically unsafe as written": (
        "unsafe as written",
        "fair",
        "right on paper, wrong in floating point",
    ),
    "outside the stated assumptions": ("outside assumptions", "fair", "a case the paper excludes"),
    "paper is wrong": ("paper is wrong", "bad", "see the erratum"),
    "internally inconsistent as printed": ("inconsistent", "bad", "printed numbers contradict each other"),
    "not reproducible": ("not reproducible", "bad", "needs data that was not published"),
    "extra golden": ("not printed", "none", "computed for completeness; the paper shows at most a curve"),
    "derived": ("derived here", "none", "in none of the papers"),
}
_UNPRINTED = {"formula": "formula", "formulas": "formulas", "(plot)": "only plotted", "(none)": "–", "—": "–"}


def write(findings: Findings, figures: dict[str, str], drawings: dict[str, Drawing], facts: str) -> str:
    """The whole report; `figures` are SVG by name, `drawings` their titles and captions, `facts` how it was made."""
    style = (files("unstale.report.papers") / "style.css").read_text("utf-8")
    body = "".join(_chapter(chapter, findings, figures, drawings) for chapter in findings.chapters)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>The papers, computed again</title><style>{style}</style></head><body>"
        f"<nav>{_contents(findings, figures)}</nav><main><h1>The papers, computed again</h1>"
        f"{_summary(findings, figures, facts)}{_errata(findings)}{body}"
        "</main></body></html>\n"
    )


def _contents(findings: Findings, figures: dict[str, str]) -> str:
    lines = ['<a class="top" href="#summary">Summary</a>', '<a class="top" href="#errata">Errata</a>']
    for chapter in findings.chapters:
        title = escape(chapter.title.split(":")[0])
        lines.append(f'<a class="top" href="#{chapter.key}">{" and ".join(chapter.papers)} {title}</a>')
        for i, group in enumerate(chapter.groups):
            if any(id_ in findings.rows for id_ in group.ids):
                lines.append(f'<a href="#{chapter.key}-{i}">{escape(group.title)}</a>')
                lines += [
                    f'<a class="fig" href="#{anchor(name)}">{name[4:]}</a>' for name in group.figures if name in figures
                ]
    return "".join(lines)


def _summary(findings: Findings, figures: dict[str, str], facts: str) -> str:
    failed, computed = findings.failed, findings.rows.values()
    verdicts = Counter(_judged(row) for row in findings.rows.values())
    simulated = sum(any(part.simulated is not None for part in row.parts) for row in computed)
    wrong = (
        ""
        if not failed
        else ('<p class="alarm">Outside their tolerance: ' + ", ".join(_link(row) for row in failed) + "</p>")
    )
    cards = [
        (len(findings.rows), "numbers and claims"),
        (len(computed) - len(failed), "computed, within tolerance"),
        (len(failed), "outside tolerance"),
        (simulated, "also simulated"),
        (len(findings.errata), "errata"),
        (len(figures), "figures"),
    ]
    table = "".join(
        f'<tr><td>{_chip(verdict)}</td><td class="num">{verdicts[verdict]}</td><td>{meaning}</td></tr>'
        for verdict, (_, _, meaning) in VERDICTS.items()
        if verdicts[verdict]
    )
    return (
        '<section id="summary"><p>Every numbered table, every figure that can be recomputed and every quoted number '
        "of the papers Unstale is built on: what is printed, what the library computes, what a simulation gives, "
        "and who is right. Letters are those of the paper in question.</p>"
        '<div class="cards">'
        + "".join(f'<div class="card"><b>{n}</b>{what}</div>' for n, what in cards)
        + f"</div>{wrong}<table class='small'><thead><tr><th>verdict</th><th>entries</th><th>meaning</th></tr></thead>"
        f"<tbody>{table}</tbody></table><p class='note'>How to read a row: <em>computed</em> is the library's value, "
        "compared with one computed independently; <em>tolerance</em> is how far apart the two may be, relative to "
        "the value where that exceeds 1, and ulp means equal but for the last digit. <em>Simulated</em> is a mean ± "
        "its standard error; “no error” marks an infinite variance. "
        f"{escape(facts)}</p></section>"
    )


def _errata(findings: Findings) -> str:
    rows = "".join(
        f'<tr id="erratum-{e.number}"><td class="num">{e.number}</td><td>{marked(e.place)}</td>'
        f"<td>{marked(e.printed)}</td><td><b>{marked(e.right)}</b></td><td>{marked(e.why)} <span class='ids'>"
        + " ".join(f'<a href="#{anchor(id_)}">{escape(id_)}</a>' for id_ in e.ids if id_ in findings.rows)
        + "</span></td></tr>"
        for e in findings.errata
    )
    return (
        '<section id="errata"><h2>Errata</h2><p>What the papers print wrong, most consequential first.</p>'
        '<div class="wide"><table class="errata"><thead><tr><th>#</th><th>place</th><th>printed</th><th>right</th>'
        f"<th>why</th></tr></thead><tbody>{rows}</tbody></table></div></section>"
    )


def _chapter(chapter: Chapter, findings: Findings, figures: dict[str, str], drawings: dict[str, Drawing]) -> str:
    badge = f'<span class="paper">{" and ".join(chapter.papers)}</span> ' if chapter.papers else ""
    groups = "".join(
        _group(f"{chapter.key}-{i}", group, findings, figures, drawings) for i, group in enumerate(chapter.groups)
    )
    return (
        f'<section id="{chapter.key}"><h2>{badge}{escape(chapter.title)}</h2>'
        f"<p>{escape(chapter.about)}</p>{groups}</section>"
    )


def _group(
    place: str, group: ItemGroup, findings: Findings, figures: dict[str, str], drawings: dict[str, Drawing]
) -> str:
    rows = [findings.rows[id_] for id_ in group.ids if id_ in findings.rows]
    if not rows:
        return ""
    drawn = "".join(
        f'<figure id="{anchor(name)}">{figures[name]}<figcaption><b>{name}. {escape(drawings[name].title)}.</b> '
        f"{_caption(drawings[name], findings.simulated)}</figcaption></figure>"
        for name in group.figures
        if name in figures
    )
    simulated = any(part.simulated is not None for row in rows for part in row.parts)
    heads = ["what", "printed", "computed", "tolerance", *(["simulated"] if simulated else []), "verdict"]
    head = "".join(f"<th>{name}</th>" for name in heads)
    return (
        f'<h3 id="{place}">{escape(group.title)}</h3><p>{escape(group.about)}</p>'
        f"{''.join(_table(name, TABLES[name], findings) for name in group.tables)}{drawn}"
        f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>'
        + "".join(_row(row, simulated) for row in rows)
        + "</tbody></table></div>"
    )


def _table(name: str, table: Table, findings: Findings) -> str:
    head = "".join(f"<th>{escape(cell)}</th>" for cell in table.head)
    cells = [[marked(c) if isinstance(c, str) else _number(c, findings) for c in row] for row in table.rows]
    rows = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in cells)
    printed = any(isinstance(c, Cell) and c.printed for row in table.rows for c in row)
    small = " In small type: what the paper prints." if printed else ""
    return (
        f'<div class="wide"><table class="layout"><caption><b>{name[4:]}.</b> {escape(table.title)}.{small}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody>"
        "</table></div>"
    )


def _number(cell: Cell, findings: Findings) -> str:
    """The computed number of a cell, and the printed one, struck out if rounding does not give it."""
    value = cell.of({part.label: part.computed for part in findings.rows[cell.id].parts})
    shown = f'<a href="#{anchor(cell.id)}">{"∞" if math.isinf(value) else f"{value:.4f}"}</a>'
    if not cell.printed:
        return shown
    right = rounds_to(value, cell.printed)
    return f'{shown} <small class="{"right" if right else "wrong"}">{escape(cell.printed)}</small>'


def _caption(drawing: Drawing, simulated: bool) -> str:
    missing = " Simulated points are left out." if drawing.overlaid and not simulated else ""
    return marked(drawing.caption + missing)


def _row(row: ReportRow, simulated: bool) -> str:
    item, n = row.item, max(1, len(row.parts))
    setup = ", ".join(f"{greek(key)} = {given(value)}" for key, value in item.inputs.items())
    what = f'{marked(item.place)}<span class="setup">{marked(setup)}</span><span class="ids">{escape(item.id)}</span>'
    printed = _UNPRINTED.get(item.printed, marked(item.printed))
    verdict = _chip(_judged(row))
    if row.erratum:
        verdict += f' <a class="erratum" href="#erratum-{row.erratum.number}">erratum {row.erratum.number}</a>'
    if not row.holds:
        verdict += ' <span class="chip bad">outside tolerance</span>'
    edges = (f'<td rowspan="{n}">{what}</td><td rowspan="{n}">{printed}</td>', f'<td rowspan="{n}">{verdict}</td>')
    span = 6 if simulated else 5
    said = row.reason[:1].upper() + row.reason[1:].removesuffix(".") + "."
    reason = f'<tr class="why"><td colspan="{span}">{marked(said)}</td></tr>' if row.reason else ""
    lines = []
    for i, part in enumerate(row.parts):
        cells = _cells(part, simulated)
        first = f' id="{anchor(item.id)}" class="first"' if i == 0 else ""
        lines.append(f"<tr{first}>{edges[0] if i == 0 else ''}{cells}{edges[1] if i == 0 else ''}</tr>")
    return "".join(lines) + reason


def _cells(part: ItemPart, simulated: bool) -> str:
    label = f'<span class="label">{shown_name(part.label)}</span>' if part.label else ""
    computed = part.expected if part.computed is True and isinstance(part.expected, str) else part.computed
    mark = "" if part.holds else ' <b class="off">✗</b>'
    exact = escape(f"computed {part.computed}, independently {part.expected}", quote=True)
    cells = f'<td class="num" title="{exact}">{label}{marked(shown_value(computed))}{mark}</td>'
    cells += f'<td class="num">{_tolerance(part)}</td>'
    if simulated:
        cells += f'<td class="num">{_estimates(part.simulated)}</td>'
    return cells


def _tolerance(part: ItemPart) -> str:
    if isinstance(part.expected, bool | str) or part.computed == NOT_REPEATED:
        return ""
    if isinstance(part.tolerance, list):
        return ", ".join(f"{t:.1g}" for t in part.tolerance)
    return f"{part.tolerance:.1g}" if part.tolerance else "ulp"


def _estimates(found: Any) -> str:
    if found is None:
        return ""
    if isinstance(found, list):
        return ", ".join(_estimates(each) or "–" for each in found)
    return _estimate(found)


def _estimate(found: SimulatedMean) -> str:
    """A value with as many digits as its error allows."""
    if not math.isfinite(found.error):
        return f"{found.value:.3g} <small>no error</small>"
    if found.error == 0:
        return f"{found.value:.6g}"
    digits = max(0, 1 - math.floor(math.log10(found.error)))
    return f"{found.value:.{digits}f}&nbsp;±&nbsp;{found.error:.{digits}f}"


def _link(row: ReportRow) -> str:
    return f'<a href="#{anchor(row.item.id)}">{escape(row.item.id)}</a>'


def _judged(row: ReportRow) -> str:
    return row.item.verdict if row.item.papers else "derived"


def _chip(verdict: str) -> str:
    name, color, _ = VERDICTS[verdict]
    return f'<span class="chip {color}">{name}</span>'
