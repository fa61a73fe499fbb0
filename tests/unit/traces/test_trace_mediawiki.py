"""Histories of a wiki: saved answers in the shapes that MediaWiki gives, and a server that gives them."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import parse_qs, quote, urlsplit

import pytest

from unstale.core.trace import Trace
from unstale.errors import InputError
from unstale.traces import web
from unstale.traces.mediawiki import read_mediawiki

NOW = 1_800_000_000.0


@pytest.fixture(autouse=True)
def direct(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy of the machine that runs the tests must not come between."""
    monkeypatch.setenv("no_proxy", "*")


#: 2024-05-01T10:00:00Z and so many minutes later
MAY = 1_714_557_600


def stamp(minute: int) -> str:
    return f"2024-05-01T10:{minute:02}:00Z"


def sets(trace: Trace) -> dict[str, list[int]]:
    return {name: [round((t - MAY) / 60) for t in trace.changes(i)] for i, name in enumerate(trace.names)}


def revisions(*minutes: int) -> list[dict[str, Any]]:
    return [
        {"revid": 1000 + m, "parentid": 999 + m, "user": "A", "timestamp": stamp(m), "comment": ""} for m in minutes
    ]


FIRST = {
    "batchcomplete": "",
    "query": {
        "normalized": [{"from": "coffee", "to": "Coffee"}],
        "pages": {
            "604727": {"pageid": 604727, "ns": 0, "title": "Coffee", "revisions": revisions(5, 3, 1)},
            "-1": {"ns": 0, "title": "Nothing", "missing": ""},
        },
    },
}
SECOND = {
    "continue": {"rvcontinue": "x", "continue": "||"},
    "query": {"pages": [{"pageid": 1, "ns": 0, "title": "Tea", "revisions": revisions(9, 2)}]},
}
ALL = {"query": {"allrevisions": [{"pageid": 1, "title": "Tea", "revisions": revisions(4)}]}}
RECENT = {"query": {"recentchanges": [{"type": "edit", "title": "Milk", "timestamp": stamp(7)}]}}


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize(
    ("saved", "want"),
    [
        (FIRST, {"Coffee": [1, 3, 5]}),
        (SECOND, {"Tea": [2, 9]}),
        ([FIRST, SECOND, ALL, RECENT], {"Coffee": [1, 3, 5], "Milk": [7], "Tea": [2, 4, 9]}),
        ({"title": "Rum", "revisions": revisions(8)}, {"Rum": [8]}),
    ],
    ids=["first format", "second format", "several", "one title"],
)
def test_saved_answers(tmp_path: Path, saved: Any, want: dict[str, list[int]], indent: int | None) -> None:
    file = tmp_path / "history.json"
    file.write_text(json.dumps(saved, indent=indent))
    trace, problems = read_mediawiki([str(file)], now=NOW)
    assert sets(trace) == want
    # newest first is how a wiki answers, and no problem
    assert not problems.counts()


def test_json_lines_and_several_files(tmp_path: Path) -> None:
    lines = [
        FIRST,
        {"title": "Tea", "timestamp": stamp(1)},
        {"page_title": "Tea", "rev_timestamp": stamp(2)},
        {"name": "Tea", "date_modified": stamp(3)},
        {"title": "Tea", "timestamp": MAY + 240},
        {"title": "Tea", "timestamp": stamp(1)},
        {"title": "Tea", "timestamp": "soon"},
        {"title": "Tea", "timestamp": "2033-01-01T00:00:00Z"},
        {"title": "Tea", "revisions": [{"revid": 5}, 6]},
        {"revisions": revisions(1)},
        {"nothing": "here"},
        [RECENT, 5],
        {"query": {"pages": [8, {"title": "Tea"}], "recentchanges": [{"title": "Tea"}], "allrevisions": 3}},
        7,
    ]
    a, b = tmp_path / "a.jsonl", tmp_path / "b.json"
    a.write_text("\n\n".join(json.dumps(line) for line in lines) + "\n{broken\n")
    b.write_text(json.dumps(RECENT))
    trace, problems = read_mediawiki([str(a), str(b)], now=NOW)
    assert sets(trace) == {"Coffee": [1, 3, 5], "Milk": [7], "Tea": [1, 2, 3, 4]}
    assert problems.counts() == {"malformed": 5, "missing_source": 2, "missing_time": 3, "future": 1, "duplicate": 2}
    assert problems.rows == 8 + 5 + 2 + 3 + 1 + 2


def test_refused_files(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"file 'no\.json' does not exist"):
        read_mediawiki(["no.json"])
    file = tmp_path / "h.json"
    file.write_text("<mediawiki/>")
    with pytest.raises(InputError, match="has no change that can be used: 1 row cannot be read"):
        read_mediawiki([str(file)])
    file.write_text(json.dumps({"error": {"code": "maxlag", "info": "Waiting for a database server."}}))
    with pytest.raises(InputError, match=r"answers with an error: Waiting for a database server\."):
        read_mediawiki([str(file)])


class Wiki(BaseHTTPRequestHandler):
    """Answers like api.php, two revisions at a time."""

    history: ClassVar = {"Coffee": [9, 7, 5, 3, 1], "Café au lait": [2]}
    asked: ClassVar[list[dict[str, str]]] = []
    agents: ClassVar[set[str]] = set()

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        ask = {name: values[0] for name, values in parse_qs(parts.query).items()}
        self.asked.append(ask)
        self.agents.add(self.headers["User-Agent"])
        answers: dict[str, tuple[int, bytes, dict[str, str]]] = {
            "/html/api.php": (200, b"<html>", {}),
            "/busy/api.php": (429, b"", {"Retry-After": "30"}),
            "/file/api.php": (302, b"", {"Location": "file:///etc/hostname"}),
            "/ftp/api.php": (302, b"", {"Location": "ftp://localhost/x"}),
            "/loop/api.php": (302, b"", {"Location": self.path}),
            "/big/api.php": (200, b" " * 5000, {}),
            "/circle/api.php": (200, json.dumps(SECOND).encode(), {}),
            "/moved/api.php": (301, b"", {"Location": f"/w/api.php?{parts.query}"}),
        }
        code, body, headers = answers.get(parts.path) or (200, self.answer(ask), {})
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def answer(self, ask: dict[str, str]) -> bytes:
        title, start = ask["titles"], int(ask.get("rvcontinue", 0))
        if title not in self.history:
            return json.dumps({"query": {"pages": [{"ns": 0, "title": title, "missing": True}]}}).encode()
        minutes = self.history[title]
        found: dict[str, Any] = {
            "query": {"pages": [{"title": title, "revisions": revisions(*minutes[start : start + 2])}]}
        }
        if start + 2 < len(minutes):
            found["continue"] = {"rvcontinue": str(start + 2), "continue": "||"}
        return json.dumps(found).encode()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def wiki() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Wiki)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_a_wiki_is_asked_to_the_end(wiki: str) -> None:
    Wiki.asked.clear()
    trace, problems = read_mediawiki([f"{wiki}/w/api.php?titles=Coffee"], titles=["Café au lait"], now=NOW)
    assert sets(trace) == {"Café au lait": [2], "Coffee": [1, 3, 5, 7, 9]}
    assert not problems.counts()
    assert [ask.get("rvcontinue") for ask in Wiki.asked] == [None, "2", "4", None]
    for ask in Wiki.asked:
        assert ask["rvlimit"] == "max"
        assert (ask["action"], ask["prop"], ask["format"]) == ("query", "revisions", "json")
    assert all(agent.startswith("unstale/") for agent in Wiki.agents)


def test_titles_in_the_address(wiki: str) -> None:
    address = f"{wiki}/w/api.php?titles={quote('Coffee|Café au lait')}&rvstart=2024-05-02T00:00:00Z"
    assert sets(read_mediawiki([address], now=NOW)[0]).keys() == {"Coffee", "Café au lait"}
    assert Wiki.asked[-1]["rvstart"] == "2024-05-02T00:00:00Z"
    assert sets(read_mediawiki([f"{wiki}/moved/api.php?titles=Coffee"], now=NOW)[0]) == {"Coffee": [1, 3, 5, 7, 9]}


@pytest.mark.parametrize(
    ("path", "match"),
    [
        ("/w/api.php", r"names no title: give one like https://.*titles=Coffee"),
        ("/wiki/Coffee", r"is not that of an api\.php"),
        ("/w/api.php?titles=Kaffee", "title 'Kaffee' does not exist at .*: check its spelling"),
        ("/html/api.php?titles=Coffee", "does not answer in JSON"),
        ("/busy/api.php?titles=Coffee", "answers 429 Too Many Requests: try again in 30 s"),
        ("/file/api.php?titles=Coffee", "answers 302"),
        ("/ftp/api.php?titles=Coffee", "cannot be reached .unknown url type: ftp"),
        ("/loop/api.php?titles=Coffee", "answers 302 .*infinite loop"),
        ("/circle/api.php?titles=Coffee", "goes in circles"),
    ],
)
def test_answers_that_are_refused(wiki: str, path: str, match: str) -> None:
    with pytest.raises(InputError, match=match) as error:
        read_mediawiki([wiki + path])
    assert "\n" not in str(error.value)


def test_limits(wiki: str) -> None:
    assert web.load(f"{wiki}/big/api.php", limit=5000) == b" " * 5000
    with pytest.raises(InputError, match="answers more than 4,999 bytes"):
        web.load(f"{wiki}/big/api.php", limit=4999)
    for address in ("file:///etc/hostname", "ftp://localhost/x", "data:,x", "/etc/hostname"):
        with pytest.raises(InputError, match="is not on the web"):
            web.load(address)
    with pytest.raises(InputError, match="contains a space or control character"):
        web.load(f"{wiki}/a b")
    with pytest.raises(InputError, match="cannot be reached"):
        web.load("http://127.0.0.1:1/")


class Slow(BaseHTTPRequestHandler):
    """Never finishes: it sends a byte now and then, as long as somebody listens."""

    stop = threading.Event()

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        while not self.stop.wait(0.02):
            try:
                self.wfile.write(b" ")
            except OSError:
                return

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def test_a_server_that_drips_is_left() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Slow)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    with pytest.raises(InputError, match=r"did not answer within 0\.2 s"):
        web.load(f"http://127.0.0.1:{server.server_port}/", seconds=0.2)
    Slow.stop.set()
    server.shutdown()
    server.server_close()
