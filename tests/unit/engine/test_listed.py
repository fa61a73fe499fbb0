"""What a poll of a collection brought is read within the collection's own scope, wherever it was led."""

from __future__ import annotations

import asyncio

import pytest

from unstale.engine.listed import parsed
from unstale.errors import InputError
from unstale.keeper.outcomes import Answer
from unstale.listings.records import ListingPoll
from unstale.ports import Claim, Fetched

PLACE = "https://example.org/sitemap.xml"


def read(*addresses: str, led_to: str = PLACE, own: str = PLACE, **options: str) -> ListingPoll:
    body = f"<urlset>{''.join(f'<url><loc>{one}</loc></url>' for one in addresses)}</urlset>".encode()
    claim = Claim(1, 1, own, "http", 0.0, {"collection": "sitemap", **options})
    told = asyncio.run(parsed(claim, Fetched(Answer.CHANGED, 2e9, body, address=led_to), None))
    assert told is not None
    return told


def test_to_be_led_elsewhere_is_no_leave_to_name_who_is_there() -> None:
    there = "https://files.example.net/sitemap.xml"
    told = read("https://example.org/a", "https://files.example.net/b", led_to=there)
    assert [one.address for one in told.entries] == ["https://example.org/a"]
    assert told.refused == {"another host": 1}
    inside = read("http://10.0.0.8/a", "https://example.org/b", led_to="http://10.0.0.8/sitemap.xml")
    assert (len(inside.entries), inside.refused) == (1, {"a private address": 1})


def test_who_moves_within_the_same_site_says_the_same() -> None:
    told = read("https://www.example.org/a", led_to="https://www.example.org/map.xml", own="http://example.org/map.xml")
    assert len(told.entries) == 1


def test_a_listing_of_which_nothing_can_be_taken_fails_and_says_what_helps() -> None:
    said = r"listing at example.org names nobody to be taken \(2 another host\): add it at example\.com, where it leads"
    with pytest.raises(InputError, match=said):
        read("https://example.com/a", "https://example.com/b", led_to="https://example.com/sitemap.xml")
    with pytest.raises(InputError, match=r"\(1 another host\): add one that is at their host"):
        read("https://other.example/a")
    with pytest.raises(InputError, match=r"\(1 another host, 1 another scheme\): say how it is read with --listing"):
        read("https://other.example/a", "javascript:x")
    # One that is empty, or of which its owner wants nobody, is what it is.
    assert read().entries == ()
    assert read("https://example.org/a", never="*").refused == {"not wanted": 1}


def test_a_page_that_links_to_nobody_here_is_no_failure() -> None:
    body = b'<a href="https://other.example/">elsewhere</a>'
    claim = Claim(1, 1, PLACE, "http", 0.0, {"collection": "links"})
    told = asyncio.run(parsed(claim, Fetched(Answer.CHANGED, 2e9, body, address=PLACE), None))
    assert told is not None
    assert told.refused == {"another host": 1}
