"""Figures as files of every kind, by what is in them: signatures, and the words a reader sees."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from unstale.core.trace import Trace
from unstale.errors import InputError
from unstale.report import backtest, curve, fit, lab, simulation, status, topology
from unstale.report.picture import ENDINGS, checked, save
from unstale.study.fitting.diagnosis import diagnose
from unstale.study.fitting.profile import profile

pytest.importorskip("matplotlib")

X = np.array([1.0, 10.0, 100.0])
SHARE = np.array([0.2, 0.5, 0.9])


def _history(path: str) -> None:
    times = np.cumsum(np.random.default_rng(1).exponential(3600.0, 60))
    trace = Trace.of(["a<b"] * 60, times)
    fit.draw(diagnose(trace), profile(trace, 0.0), trace, "UTC", path)


#: figure -> how it is drawn, and what it must say
DRAWN: dict[str, tuple[Callable[[str], None], str]] = {
    "plan": (lambda path: curve.draw((X, SHARE), 10.0, 0.5, path), "now: 10 per day, 50.0 %"),
    "simulate": (lambda path: simulation.draw({"even": (SHARE, SHARE, SHARE / 50)}, path), "predicted freshness (%)"),
    "topology": (lambda path: topology.draw({"tree": (SHARE, X)}, {"tree": 10.0}, 0.5, path), "tree (best at the"),
    "backtest": (
        lambda path: backtest.draw(
            {"ours": [(1.0, 0.5, 0.01), (2.0, 0.7, 0.01)]}, path, ours="ours", oracle="truth", label="freshness (%)"
        ),
        "polls per change",
    ),
    "status": (lambda path: status.draw(60 * X, 30 * X, SHARE, path), "believed fresh now (%)"),
    "lab": (lambda path: lab.draw("Two & one", [("first", 0.5, 0.49, 0.01)], path), "theory 50.0 %"),
    "fit": (_history, "the law of the gaps"),
}


class _Outside(HTMLParser):
    """Everything that a page would load or run."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        held = {name: value or "" for name, value in attrs}
        places = [value for name, value in held.items() if name in ("src", "href", "xlink:href", "data")]
        self.found += [f"{tag} {place}" for place in places if not place.startswith(("#", "data:image/png"))]
        if tag in ("script", "link", "iframe"):
            self.found.append(tag)


@pytest.mark.parametrize("figure", DRAWN)
def test_a_page_holds_the_whole_figure_and_loads_nothing(figure: str, tmp_path: Path) -> None:
    draw, words = DRAWN[figure]
    path = tmp_path / "figure.html"
    draw(str(path))
    text = path.read_text("utf-8")
    assert text.startswith("<!doctype html>")
    outside = _Outside()
    outside.feed(text)
    assert not outside.found
    drawn = ET.fromstring(re.search(r"<svg.*</svg>", text, re.DOTALL)[0])  # type: ignore[index]
    read = " ".join("".join(part.itertext()) for part in drawn.iter("{http://www.w3.org/2000/svg}text"))
    assert words in read
    title = re.search(r"<title>(.+?)</title>", text)
    assert title is not None
    assert f"<h1>{title[1]}</h1>" in text
    assert drawn.attrib["aria-label"]


@pytest.mark.parametrize(("ending", "begins"), [(".png", b"\x89PNG"), (".svg", b"<?xml"), (".pdf", b"%PDF")])
@pytest.mark.parametrize("figure", ["plan", "lab"])
def test_other_endings_are_what_they_say(figure: str, ending: str, begins: bytes, tmp_path: Path) -> None:
    path = tmp_path / f"figure{ending.upper()}"
    DRAWN[figure][0](str(path))
    assert path.read_bytes().startswith(begins)


def test_what_a_source_is_called_cannot_become_markup(tmp_path: Path) -> None:
    path = tmp_path / "a.html"
    _history(str(path))
    text = path.read_text("utf-8")
    assert "a<b" not in text
    assert "The history of a&lt;b" in text


@pytest.mark.parametrize("figure", DRAWN)
def test_a_bad_path_is_one_sentence(figure: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"has an unknown ending: use \.png, \.svg, \.pdf or \.html"):
        DRAWN[figure][0](str(tmp_path / "figure.gif"))
    with pytest.raises(InputError, match="is in no directory: make the directory first"):
        DRAWN[figure][0](str(tmp_path / "none" / "figure.png"))
    assert not list(tmp_path.iterdir())


def test_what_cannot_be_written_is_said(tmp_path: Path) -> None:
    from matplotlib.figure import Figure

    for ending in ENDINGS:
        (folder := tmp_path / f"a{ending}").mkdir()
        assert checked(str(folder)) == str(folder)
        made: Any = Figure()
        with pytest.raises(InputError, match=r"cannot be written \(Is a directory\): choose another"):
            save(made, str(folder), "nothing")
