"""Parts of a table on disk: whole or not there, private, and gone when nobody asks for them."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from unstale.adapters.sql_parts import KEPT, TableParts
from unstale.errors import InputError, StoreError


def test_a_part_is_there_when_it_is_whole(tmp_path: Path) -> None:
    parts = TableParts(tmp_path / "parts", "orders")
    place = parts.place("range 1")

    def broken() -> Iterator[bytes]:
        yield b"1,2\n"
        raise InputError("the connection was cut")

    with pytest.raises(InputError):
        parts.add(place, broken())
    assert list((tmp_path / "parts/orders").iterdir()) == []
    parts.add(place, [b"1,2\n", b"3,4\n"])
    assert parts.place("range 1").read_bytes() == b"1,2\n3,4\n"
    assert not parts.place("range 1, changed").exists()
    assert stat.S_IMODE((tmp_path / "parts/orders").stat().st_mode) == 0o700


def test_what_is_not_asked_for_goes(tmp_path: Path) -> None:
    folder = tmp_path / "parts"
    old, parts = TableParts(folder, "old"), TableParts(folder, "orders")
    old.add(old.place("x"), [b"x"])
    then = (folder / "old").stat().st_mtime - KEPT - 60
    os.utime(folder / "old", (then, then))
    for name in ("a", "b"):
        parts.add(parts.place(name), [b"x"])
    parts.set_division({"blocks": 64})
    parts.keep({parts.place("b")})
    again = TableParts(folder, "orders")
    assert not (folder / "old").exists()
    assert (parts.place("a").exists(), parts.place("b").exists(), again.division()) == (False, True, {"blocks": 64})
    again.clear()
    assert not folder.exists()


def test_a_folder_that_cannot_be_used_is_said_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "parts").write_text("a file")
    with pytest.raises(StoreError, match="could not be used"):
        TableParts(tmp_path / "parts", "orders")
