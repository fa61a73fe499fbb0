"""Tokens with scopes open what they say and nothing else, until they end; they are kept as digests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.programs import TOKEN, Programs
from unstale.errors import InputError
from unstale.service.tokens import TOKENS, made_token, read_tokens

SOURCE = {"address": "https://example.org/"}
#: what is asked for, with what, and which scope opens it
ASKED: list[tuple[str, str, Any, str]] = [
    ("GET", "/api/v1/status", None, "read"),
    ("GET", "/changes.json", None, "read"),
    ("GET", "/copies/1", None, "read"),
    ("POST", "/api/v1/sources/1/hint", None, "poll"),
    ("POST", "/api/v1/hints", {"sources": [1]}, "poll"),
    ("PATCH", "/api/v1/sources/1", {"weight": 2}, "edit"),
    ("POST", "/api/v1/sources", [{"address": "https://b.example/"}], "edit"),
    ("PUT", "/api/v1/budget", {"budget_per_day": 10}, "edit"),
    ("PUT", "/dashboard/receivers", {"name": "x"}, ""),
    ("POST", "/dashboard/tokens", {"name": "x", "scopes": ["edit"], "days": 1}, ""),
    ("POST", "/dashboard/tokens/removals", {"mark": "x"}, ""),
    ("GET", "/api/v1/sources/1/websub", None, ""),
    ("GET", "/dashboard/tokens", None, ""),
]


@pytest.fixture
def programs(tmp_path: Path) -> Any:
    made = Programs(tmp_path / "s.db")
    yield made
    made.close()


@pytest.mark.parametrize("scope", ["read", "poll", "edit"])
def test_a_scope_opens_what_it_says_and_nothing_else(programs: Programs, scope: str) -> None:
    token = programs.make(scope)
    for method, path, body, wanted in ASKED:
        status, said = programs.ask(method, path, body, token)
        assert (status == 403) == (wanted != scope), (method, path, status, said)
        assert status not in (401, 500, 503), said


def test_a_token_ends_by_time_and_by_hand_and_is_nowhere(programs: Programs) -> None:
    token, other = programs.make("read", "poll"), programs.make("read")
    kept = programs.shelf.setting(TOKENS)
    assert token.encode() not in kept
    _, listed = programs.ask("GET", "/dashboard/tokens", None, TOKEN)
    assert token not in str(listed)
    assert read_tokens(kept)[0].scopes == ("read", "poll")
    assert programs.ask("GET", "/api/v1/status", None, token)[0] == 200
    assert programs.ask("GET", "/api/v1/status", None, token[:-1] + "!")[0] == 401
    mark = json.loads(listed)["tokens"][0]["mark"]
    assert programs.ask("POST", "/dashboard/tokens/removals", {"mark": mark}, TOKEN)[0] == 200
    assert programs.ask("GET", "/api/v1/status", None, token)[0] == 401, "ended at once"
    assert programs.ask("GET", "/api/v1/status", None, other)[0] == 200
    programs.now += 2 * 86_400.0
    assert programs.ask("GET", "/api/v1/status", None, other)[0] == 401


@pytest.mark.parametrize(("scopes", "until"), [([], 5.0), (["write"], 5.0), (["read", "x"], 5.0), (["read"], 1.0)])
def test_what_cannot_be_a_token(scopes: list[str], until: float) -> None:
    with pytest.raises(InputError):
        made_token("p", scopes, 1.0, until)
    assert read_tokens(b"{") == read_tokens(b"[7]") == []
