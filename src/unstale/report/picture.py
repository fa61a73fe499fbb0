"""Figures as files: .png, .svg, .pdf, or .html, one page that needs nothing from elsewhere."""

from __future__ import annotations

import io
import re
from html import escape
from pathlib import Path
from typing import Any

from unstale.errors import MissingExtraError, require
from unstale.writing import whole_file

ENDINGS = (".png", ".svg", ".pdf", ".html")
_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>body {{ margin: 2rem auto; max-width: 75rem; padding: 0 1rem; font: 16px/1.5 system-ui, sans-serif;
background: #fff; color: #1f2328 }} svg {{ width: 100%; height: auto }}</style></head>
<body><h1>{title}</h1>
{drawn}
</body></html>
"""


def checked(path: str, name: str = "plot") -> str:
    """A path that a figure can be written to, before time is spent on what it will show.

    >>> checked("figure.html")
    'figure.html'
    """
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError:
        raise MissingExtraError("matplotlib", "plot") from None
    known = ", ".join(ENDINGS[:-1])
    require(
        Path(path).suffix.lower() in ENDINGS, name, repr(path), "has an unknown ending", f"use {known} or {ENDINGS[-1]}"
    )
    require(Path(path).absolute().parent.is_dir(), name, repr(path), "is in no directory", "make the directory first")
    return path


def save(figure: Any, path: str, title: str, *, dpi: int = 150) -> None:
    """Write a matplotlib figure; `title` says in a page of HTML what is seen."""
    ending = Path(checked(path)).suffix.lower()
    with whole_file(path, "plot") as out:
        if ending == ".html":
            out.write(_PAGE.format(title=escape(title), drawn=_svg(figure, title, dpi)).encode())
        else:
            figure.savefig(out, format=ending[1:], dpi=dpi)


def _svg(figure: Any, title: str, dpi: int) -> str:
    """The figure as an element of a page; its letters stay letters, to be found and read aloud."""
    from matplotlib import rc_context

    text = io.StringIO()
    with rc_context({"svg.fonttype": "none"}):
        figure.savefig(text, format="svg", dpi=dpi)
    drawn = text.getvalue()
    drawn = re.sub(r"<metadata>.*?</metadata>", "", drawn[drawn.index("<svg") :], flags=re.DOTALL)
    return drawn.replace("<svg ", f'<svg role="img" aria-label="{escape(title)}" ', 1)
