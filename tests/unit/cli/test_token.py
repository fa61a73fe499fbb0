"""The token of a replica: the operator's own, or one that is made once, kept, and found again."""

from __future__ import annotations

import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from unstale.cli.settings import Settings
from unstale.cli.token import lasting_token
from unstale.errors import StoreError

OWN = "0123456789abcdef" * 2


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.delenv("UNSTALE_TOKEN", raising=False)
    return replace(Settings(), store=str(tmp_path / "s.db"))


def test_it_is_made_once_and_only_its_owner_can_read_it(settings: Settings) -> None:
    first = lasting_token(settings)
    file = Path(settings.store + ".token")
    assert (len(first.text), first.own, file.read_text().strip()) == (64, False, first.text)
    assert "s.db.token" in first.kept
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert lasting_token(settings) == first


def test_the_operator_s_own_counts(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNSTALE_TOKEN", OWN)
    found = lasting_token(settings)
    assert (found.text, found.kept, found.own) == (OWN, "the environment variable UNSTALE_TOKEN", True)
    assert not Path(settings.store + ".token").exists()


def test_where_nothing_can_be_kept_it_is_for_this_run(settings: Settings, tmp_path: Path) -> None:
    for store in ("postgresql://me@db/fleet", str(tmp_path / "no" / "such" / "s.db")):
        one, two = (lasting_token(replace(settings, store=store)) for _ in range(2))
        assert (one.kept, len(one.text)) == ("", 64)
        assert one.text != two.text


def test_what_cannot_be_read_is_told_with_its_remedy(settings: Settings) -> None:
    Path(settings.store + ".token").write_bytes(os.urandom(16) + bytes([255]))
    with pytest.raises(StoreError, match="delete it, and a new one is made"):
        lasting_token(settings)
