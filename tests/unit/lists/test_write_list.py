"""What is written is read again as it was."""

from __future__ import annotations

import math
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from unstale.adapters.addresses import web_address
from unstale.addresses import host_of, kind_of
from unstale.errors import InputError
from unstale.lists.read import read_list
from unstale.lists.write import write_list
from unstale.ports import Listing

ENDINGS = [".csv", ".jsonl", ".opml", ".txt"]
FLEET = [
    Listing("https://example.org/", host="example.org"),
    Listing(
        'https://example.org/it\'s?a="1"&b=<2>',
        "feed",
        0.1,
        1e-9,
        'a group, of "many" <hosts>',
        0.1,
        1e6,
        {"title": "Ünï\n\x01code & 'quotes' \"too\"", "headers": {"Cookie": "a=$TOKEN"}, "depth": 3},
        True,
    ),
    Listing("file:///a folder/with 'spaces' and, commas", "file", 1 / 3, 2.5, "", 12345.678901),
    Listing("postgresql://me:$PASSWORD@db.example/d", "sql", 0.0, host="db.example", options={"table": "a.b"}),
    Listing("https://example.org/news.rss", "http", 3.0, host="example.org"),
    Listing("custom://x/y", "replica", host="x", options={"title": "2024", "list": [1, None, {"a": True}]}),
]


def spelled(address: str, kind: str, options: object) -> str:
    """The spelling alone: what may be listed is another test's business."""
    return web_address(address).text if kind in ("http", "feed") else address


@pytest.mark.parametrize("ending", ENDINGS)
def test_round_trip(ending: str, tmp_path: Path) -> None:
    file = tmp_path / f"fleet{ending}"
    assert write_list(FLEET, str(file)) == len(FLEET)
    parsed = read_list(str(file), check=spelled)
    assert parsed.problems == []
    assert parsed.listings == FLEET
    assert [p.name for p in tmp_path.iterdir()] == [file.name]
    os.umask(mask := os.umask(0))
    assert file.stat().st_mode & 0o777 == 0o666 & ~mask


_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | _TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXT, inner, max_size=3),
    max_leaves=6,
)


@st.composite
def fleets(draw: st.DrawFn) -> list[Listing]:
    places = draw(
        st.lists(
            st.from_regex(r"(https|s3|sqlite)://[a-z]{1,8}/[!-~ä]{0,10}", fullmatch=True).map(
                lambda text: text.replace("\\", "").partition("#")[0]
            ),
            unique=True,
            min_size=1,
            max_size=5,
        )
    )
    found = {}
    for place in places:
        kind = kind_of(place)
        address = spelled(place, kind, {})
        shortest = draw(st.integers(0, 10**9)) / 1000
        options = draw(
            st.dictionaries(
                st.from_regex(r"[a-z]{1,5}", fullmatch=True),
                _JSON.filter(lambda v: v is not None and v != {} and v != ""),
                max_size=3,
            )
        )
        found[address] = Listing(
            address,
            kind,
            draw(st.floats(0, 1e9)),
            draw(st.floats(1e-9, 1e9)),
            draw(st.just(host_of(address)) | st.from_regex(r"[!-~]{1,9}", fullmatch=True)),
            shortest,
            draw(st.just(math.inf) | st.integers(10**9, 10**12).map(lambda span: span / 1000)),
            options,
            draw(st.booleans()),
        )
    return list(found.values())


@pytest.mark.parametrize("ending", ENDINGS)
@given(fleet=fleets())
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_round_trip_of_any_fleet(ending: str, fleet: list[Listing], tmp_path: Path) -> None:
    file = tmp_path / f"fleet{ending}"
    write_list(fleet, str(file))
    parsed = read_list(str(file))
    assert parsed.problems == []
    assert parsed.listings == fleet


def test_a_file_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    file = tmp_path / "fleet.csv"
    file.write_text("before")

    def breaking() -> object:
        yield FLEET[0]
        raise RuntimeError("gone")

    with pytest.raises(RuntimeError, match="gone"):
        write_list(breaking(), str(file))  # type: ignore[arg-type]
    assert file.read_text() == "before"
    assert list(tmp_path.iterdir()) == [file]


def test_where_it_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"unknown ending: use \.csv, \.jsonl, \.opml or \.txt"):
        write_list(FLEET, "fleet.xls")
    with pytest.raises(InputError, match="cannot be written \\(No such file or directory\\)"):
        write_list(FLEET, str(tmp_path / "none" / "fleet.csv"))


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_secret_that_an_older_store_holds_is_written_as_its_name(ending: str, tmp_path: Path) -> None:
    file = tmp_path / f"fleet{ending}"
    write_list([Listing("https://a.org/x?access_token=abcdef&page=2", host="a.org")], str(file))
    assert "abcdef" not in file.read_text()
    (again,) = read_list(str(file), check=spelled).listings
    assert again.address == "https://a.org/x?access_token=$ACCESS_TOKEN&page=2"


def test_what_is_dear_by_its_kind_is_so_unless_somebody_says_otherwise(tmp_path: Path) -> None:
    rows = "https://a.example/ kind=browser\nhttps://b.example/ kind=browser cost=1\nhttps://c.example/\n"
    (tmp_path / "l.txt").write_text(rows, "utf-8")
    found = read_list(str(tmp_path / "l.txt")).listings
    assert [one.cost for one in found] == [10.0, 1.0, 1.0]
    write_list(found, str(tmp_path / "again.csv"))
    assert [one.cost for one in read_list(str(tmp_path / "again.csv")).listings] == [10.0, 1.0, 1.0]
