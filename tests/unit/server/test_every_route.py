"""Every route with every method by everybody: who is answered, who is refused, and how."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.asgi import asked
from support.programs import TOKEN, Programs

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
#: whoever asks is told whether the server lives
OPEN = ("/healthz", "/readyz")
#: what a hub or a program calls brings its key in the address; a wrong one finds nothing
KEYED = ("/websub/", "/webhook/")
#: what only the replica's own token opens, and what a token for polls does
OPERATORS = ("/dashboard/tokens", "/dashboard/tokens/removals", "/api/v1/sources/1/websub", "/api/v1/audit")
POLLS = ("/api/v1/sources/1/hint", "/api/v1/sources/1/poll", "/api/v1/hints")
#: it never ends, and has tests of its own
ENDLESS = "/api/v1/events"


def scope(method: str, path: str) -> str:
    """What a token must be for, to be let in; nothing if no scope is enough."""
    if path in OPERATORS:
        return ""
    if method in ("GET", "HEAD"):
        return "read"
    return "poll" if path in POLLS else "edit" if path.startswith("/api/v1/") else ""


def expected(method: str, path: str, known: set[str], who: str) -> set[int]:
    """The answers that may be; whoever is let in may still have asked for what is not there or cannot be."""
    if method not in known:
        return {405}
    if path in OPEN:
        return {200}
    if path.startswith(KEYED):
        return {404}
    if who in ("nobody", "a guess", "one that has ended"):
        return {401}
    return {200, 201, 202, 204, 400, 404, 422, 503} if who in ("operator", scope(method, path)) else {403}


def tried(folder: Path) -> Iterator[tuple[bool, tuple[str, str, str, int]]]:
    """Every route with every method by everybody: whether the answer may be, and which it was."""
    programs = Programs(folder / "s.db")
    tokens = {name: programs.make(name) for name in ("read", "poll", "edit")}
    ended = "one that has ended"
    people = {"nobody": "", "a guess": "0" * len(TOKEN), ended: programs.make("read"), **tokens, "operator": TOKEN}
    _, listed = programs.ask("GET", "/dashboard/tokens", None, TOKEN)
    last = re.findall(r'"mark": ?"([^"]+)"', listed.decode())[-1]
    assert programs.ask("POST", "/dashboard/tokens/removals", {"mark": last}, TOKEN)[0] == 200
    for route in programs.app._rest.routes:
        path = re.sub(r"\{[^}]*\}", "1", route.path)
        for method in METHODS if path != ENDLESS else ():
            for who, token in people.items():
                given = {"authorization": f"Bearer {token}"} if token else {}
                sent = [] if method in ("GET", "HEAD") else [b"{}"]
                status = asked(programs.app, path, method, sent, content_type="application/json", **given).status
                yield status in expected(method, path, route.methods, who), (method, path, who, status)
    programs.close()


def test_every_route_lets_in_whom_it_should_and_nobody_else(tmp_path: Path) -> None:
    answers = list(tried(tmp_path))
    assert [answer for may_be, answer in answers if not may_be] == []
    assert len(answers) > 1000


@pytest.mark.parametrize("path", ["/dashboard/nothing", "/api/v1/", "/../etc/passwd", "/copies/99", "/%00"])
def test_what_is_not_there_is_not_told_to_strangers(path: str, tmp_path: Path) -> None:
    programs = Programs(tmp_path / "s.db")
    assert asked(programs.app, path).status in (401, 404)
    programs.close()
