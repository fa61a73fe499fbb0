"""Sources that change at every poll: noticed, with what differs each time, and nothing offered that could do harm."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.asgi import Kept
from support.patience import SOON
from unstale.cli.service import service_of
from unstale.cli.settings import Settings
from unstale.core.learning.state import WIDTH
from unstale.ports import Listing
from unstale.service.noise import BYTES, elements, members, noise, tried


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Kept]:
    kept = Kept(tmp_path / "s.db")
    yield kept
    kept.close()


def lived(kept: Kept, content: Callable[[int], str | None], media_type: str = "text/html", polls: int = 7) -> None:
    for i in range(polls):
        told = content(i)
        kept.poll(None if told is None else told.encode(), media_type)
        kept.now += 100.0


def test_a_clock_is_found_by_its_name(kept: Kept) -> None:
    lived(kept, lambda i: f"<body><p id=clock>12:0{i}</p><p class=news>the same</p><p>text</p>")
    found = noise(kept.shelf, 1)
    assert found is not None
    assert (found.changed, found.polls, found.selectors) == (6, 6, ("p#clock",))
    assert found.offer == {"selectors": ["p#clock"]}
    assert "`unstale edit 1 --drop 'p#clock'`" in found.sentence(1)
    assert ("+", "<body><p id=clock>12:06</p><p class=news>the same</p><p>text</p>") in found.lines


def test_a_member_of_json_is_found_by_its_pointer(kept: Kept) -> None:
    lived(kept, lambda i: f'{{"now": {i}, "items": [{{"id": 1, "views": {i}}}]}}', "application/json")
    found = noise(kept.shelf, 1)
    assert found is not None
    assert found.offer == {"pointers": ["/now", "/items/*/views"]}


def test_numbers_alone_can_be_left_out(kept: Kept) -> None:
    lived(kept, lambda i: f"loaded in {i} ms", "text/plain")
    found = noise(kept.shelf, 1)
    assert found is not None
    assert found.offer == {"digits": True}


def test_what_differs_in_a_listing_is_what_it_is_polled_for(kept: Kept) -> None:
    """To leave numbers out of a sitemap would leave out its dates, and with them every signal."""
    one = Listing("https://a.example/0", options={"collection": "sitemap"})
    kept.store.add([one], kept.now, duplicates="replace")
    lived(kept, lambda i: f"<url><loc>/a</loc><lastmod>2024-05-0{i + 1}</lastmod></url>", "application/xml")
    assert noise(kept.shelf, 1) is None


@pytest.mark.parametrize("polls", [2, 4])
def test_a_few_polls_tell_nothing(kept: Kept, polls: int) -> None:
    lived(kept, str, polls=polls)
    assert noise(kept.shelf, 1) is None


def test_a_source_that_rests_now_and_then_is_none(kept: Kept) -> None:
    lived(kept, lambda i: None if i % 2 else str(i), polls=10)
    assert noise(kept.shelf, 1) is None


def test_what_a_stranger_wrote_becomes_no_command(kept: Kept) -> None:
    evil = "x'; rm -rf ~; '"
    lived(kept, lambda i: f'{{"{evil}": {i}, "a": "b{i}"}}', "application/json")
    found = noise(kept.shelf, 1)
    assert found is not None
    assert found.pointers == ()
    assert "rm" not in found.sentence(1)


def test_much_text_is_not_offered(kept: Kept) -> None:
    lived(kept, lambda i: f"<div id=content>{'word ' * 100}{i}</div>")
    found = noise(kept.shelf, 1)
    assert found is not None
    assert found.selectors == ()


@pytest.mark.parametrize("evil", [b"<a>", b"</a>", b"<p class='", b"<", b"<p id=x>y"])
def test_no_page_takes_long(evil: bytes) -> None:
    begun = time.monotonic()
    elements(evil * (BYTES // len(evil)))
    assert time.monotonic() - begun < SOON


def test_deep_json_is_read_or_left() -> None:
    assert members(b"[" * 10_000 + b"1" + b"]" * 10_000) in ({}, {"/*" * 10_000: "1"})
    assert members(b"[[1], [2]]") == {"/*/*": "1\n2"}
    assert members(b"no json") == members(b"3") == {}


def test_trying_tells_what_is_left() -> None:
    assert tried([]) == {"copies": 0, "same": True, "counts": [], "lines": []}
    assert tried(["one"])["counts"] == ["one"]
    assert tried(["a", "b"])["same"] is False


def test_what_is_left_out_no_longer_counts_in_the_belief(kept: Kept, tmp_path: Path) -> None:
    lived(kept, lambda i: f"<p id=now>{i}</p><p>same</p>")
    service = service_of(Settings(store=str(tmp_path / "s.db")))
    try:
        service.edit([1], {"weight": 2.0})
        assert noise(kept.shelf, 1) is not None, "another weight says nothing of what counts"
        service.edit([1], {"options": {"normalise": {"selectors": ["#now"]}}})
        assert noise(kept.shelf, 1) is None
        begun = kept.shelf.checkpoint(1)
        assert begun is not None
        assert (begun.belief, begun.latest) == (None, kept.shelf.observations(1)[0].token)
        assert not kept.shelf.fleet(WIDTH).beliefs[0].any()
        service.edit([1], {"options": {"normalise": {"selectors": ["#now", "p"]}}})
        again = kept.shelf.checkpoint(1)
        assert again == begun, "it is noisy no more: what it learns from here on stays"
    finally:
        service.close()
