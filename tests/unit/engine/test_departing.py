"""Members that leave a listing: paused when it is sure, resumed when they come back, forgotten when it is time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from unstale.adapters.memory_store import MemoryStore
from unstale.engine.departing import Missing, depart, departures, missing_of
from unstale.listings.records import CollectionMember, ListingEntry, ListingPoll
from unstale.ports import Claim, Listing
from unstale.units import DAY

PLACE = "https://example.org/sitemap.xml"
PAGES = [f"https://example.org/{name}" for name in "abcdef"]
HOUR = 3600.0


def claim(form: str = "sitemap", source: int = 1, **options: object) -> Claim:
    return Claim(source, 1, PLACE, "http", 0.0, {"collection": form, **options}, 0.0)


def shown(*names: str, complete: bool = True, cursor: str | None = None) -> ListingPoll:
    return ListingPoll(tuple(ListingEntry(f"https://example.org/{n}") for n in names), (), cursor, complete)


@pytest.fixture
def store() -> MemoryStore:
    """A sitemap, source 1, that tells of the pages a to f, sources 2 to 7."""
    made = MemoryStore()
    made.add([Listing(PLACE), *(Listing(page) for page in PAGES)], 0.0)
    made.enlist([CollectionMember(1, i, page) for i, page in enumerate(PAGES, 2)])
    return made


def paused(store: MemoryStore) -> list[int]:
    return store.search(paused=True)


def test_who_is_missed_twice_is_paused_and_resumed_when_shown_again(store: MemoryStore) -> None:
    assert depart(store, claim(), shown(*"abcde"), HOUR).pause == ()
    assert depart(store, claim(), shown(*"abcde"), 2 * HOUR).pause == (7,)
    assert paused(store) == [7]
    assert missing_of(store, 1) == {7: Missing(HOUR, 2 * HOUR)}
    assert depart(store, claim(), shown(*"abcdef"), 3 * HOUR).resume == (7,)
    assert paused(store) == []
    assert missing_of(store, 1) == {}


def test_who_is_shown_between_two_misses_is_not_gone(store: MemoryStore) -> None:
    for hour, names in enumerate(("abcde", "abcdef", "abcde", "abcdef"), 1):
        depart(store, claim(), shown(*names), hour * HOUR)
    assert paused(store) == []


def test_a_listing_that_says_the_same_as_before_confirms_what_it_misses(store: MemoryStore) -> None:
    depart(store, claim(), shown(*"abcde"), HOUR)
    assert depart(store, claim(), None, 2 * HOUR).pause == (7,)


@pytest.mark.parametrize("names", ["", "ab"])
def test_a_listing_that_loses_half_of_them_pauses_nobody_for_a_day(store: MemoryStore, names: str) -> None:
    for hour in range(1, 25):
        assert depart(store, claim(), shown(*names), hour * HOUR).pause == (), hour
    assert len(depart(store, claim(), shown(*names), HOUR + DAY).pause) == 6 - len(names)


def test_a_listing_that_was_broken_for_a_while_has_done_nothing(store: MemoryStore) -> None:
    for hour in range(1, 20):
        depart(store, claim(), shown(), hour * HOUR)
    depart(store, claim(), shown(*"abcdef"), 20 * HOUR)
    depart(store, claim(), shown(), 40 * HOUR)
    assert paused(store) == []


@pytest.mark.parametrize(
    ("form", "listing"),
    [("feed", shown("a")), ("sitemap", shown("a", complete=False)), ("sitemap", shown("a", cursor="2"))],
)
def test_a_listing_that_does_not_show_all_misses_nobody(store: MemoryStore, form: str, listing: ListingPoll) -> None:
    for day in (1, 2, 3):
        depart(store, claim(form), listing, day * DAY)
    assert (paused(store), missing_of(store, 1)) == ([], {})


def test_after_the_stated_time_they_are_removed(store: MemoryStore) -> None:
    for day in (1, 2, 31):
        depart(store, claim(), shown(*"abcde"), day * DAY)
        assert paused(store) == ([7] if day > 1 else [])
    assert depart(store, claim(), shown(*"abcde"), 32 * DAY).forget == (7,)
    assert store.find(PAGES[5]) is None
    assert missing_of(store, 1) == {}


def test_the_stated_time_is_the_owners(store: MemoryStore) -> None:
    for day, forgotten in ((1, ()), (2, ()), (5, (7,))):
        assert depart(store, claim(forget_after=3), shown(*"abcde"), day * DAY).forget == forgotten


def test_whom_the_owner_paused_or_resumed_stays_so(store: MemoryStore) -> None:
    (page,) = store.listings([7])
    store.add([replace(page, paused=True)], 0.0, duplicates="replace")
    for hour in (1, 2, 3):
        depart(store, claim(), shown(*"abcde"), hour * HOUR)
    depart(store, claim(), shown(*"abcdef"), 4 * HOUR)
    assert paused(store) == [7], "the owner has paused it, and only the owner resumes it"
    store.add([replace(page, paused=False)], 0.0, duplicates="replace")
    for hour in (5, 6):
        depart(store, claim(), shown(*"abcde"), hour * HOUR)
    store.add([replace(page, paused=False)], 0.0, duplicates="replace")
    depart(store, claim(), shown(*"abcde"), 7 * HOUR)
    assert paused(store) == [], "the owner has resumed it"
    depart(store, claim(), shown(*"abcde"), 90 * DAY)
    assert store.find(PAGES[5]) == 7


def test_whom_another_collection_shows_is_not_gone(store: MemoryStore) -> None:
    (other,) = store.add([Listing("https://example.org/index.html")], 0.0)
    store.enlist([CollectionMember(other, 7, PAGES[5])])
    for hour in (1, 2, 3):
        depart(store, claim(), shown(*"abcde"), hour * HOUR)
    assert paused(store) == []
    for hour in (4, 5):
        depart(store, claim(source=other), shown(), hour * DAY)
    depart(store, claim(), shown(*"abcde"), 6 * DAY)
    assert paused(store) == [7], "no collection shows it any more"


def test_those_long_gone_do_not_count_as_lost_now() -> None:
    known = [CollectionMember(1, i, page) for i, page in enumerate(PAGES)]
    gone = {i: Missing(0.0, HOUR) for i in (0, 1, 2)}
    found = departures(known, set(PAGES[4:]), {**gone, 3: Missing(DAY)}, DAY + HOUR)
    assert found.pause == (3,)
