"""What a listing means for a store: who joins, what is kept, and which time it tells nothing of."""

from __future__ import annotations

import json

import pytest

from unstale.adapters.memory_store import MemoryStore
from unstale.engine.departing import whole
from unstale.engine.joining import BEYOND, FORBIDDEN, UNLISTED, compared, member_like, taken_up
from unstale.engine.listening import uncovered
from unstale.engine.trees import CollectionTrees, root_of, size_of
from unstale.errors import InputError
from unstale.listings.readers import read_plain
from unstale.listings.records import CollectionMember, ListingEntry, ListingPoll
from unstale.ports import Claim, Listing

PLACE = "https://example.org/sitemap.xml"


def claim(form: str = "sitemap", last: float = 100.0, **options: object) -> Claim:
    return Claim(1, 1, PLACE, "http", 0.0, {"collection": form, **options}, last)


def entry(name: str, time: float | None = None, tag: str | None = None) -> ListingEntry:
    return ListingEntry(f"https://example.org/{name}", time, tag)


@pytest.fixture
def store() -> MemoryStore:
    made = MemoryStore()
    made.add([Listing(PLACE, options={"collection": "sitemap"}), Listing("https://example.org/old")], 0.0)
    return made


def take(store: MemoryStore, shown: ListingPoll, held: Claim | None = None) -> tuple[int, int]:
    known = store.members(1)
    taken = taken_up(store, held or claim(), known, compared(known, shown, 200.0), shown, 200.0)
    return taken.added, taken.joined


def test_new_members_are_added_and_known_sources_join(store: MemoryStore) -> None:
    shown = ListingPoll((entry("old", 5.0), entry("new", 6.0)))
    assert take(store, shown) == (1, 2)
    assert [(m.source, m.time, m.told) for m in store.members(1)] == [(2, 5.0, None), (3, 6.0, None)]
    assert take(store, shown) == (0, 0)


def test_a_change_is_kept_with_its_time(store: MemoryStore) -> None:
    take(store, ListingPoll((entry("old", 5.0, "a"), entry("new", 6.0))))
    take(store, ListingPoll((entry("old", 150.0, "b"),)))
    assert [(m.time, m.tag, m.told) for m in store.members(1)] == [(150.0, "b", 150.0), (6.0, None, None)]


def test_no_more_join_than_the_owner_allows(store: MemoryStore) -> None:
    many = ListingPoll(tuple(entry(str(i)) for i in range(9)))
    assert take(store, many, claim(most_members=4)) == (4, 4)
    assert take(store, many, claim(most_members=4)) == (0, 0)


def test_listings_within_listings_bring_no_more_than_the_first_may(store: MemoryStore) -> None:
    """A folder that leads into itself, or a site that makes up one listing within another, has an end."""
    first = Listing(PLACE, options={"collection": "sitemap", "most_members": 50})
    store.add([first, Listing("https://example.org/other.xml")], 0.0, duplicates="replace")
    trees, waiting, looks = CollectionTrees(), [1], 0
    while waiting and looks < 200:
        source, looks = waiting.pop(0), looks + 1
        place, known = store.listings([source])[0], store.members(source)
        held = Claim(source, looks, place.address, "http", 0.0, place.options, 100.0)
        shown = ListingPoll((entry(f"page {source}"),), tuple(f"{place.address}/{k}" for k in range(5)))
        now = 200.0 + looks
        taken = taken_up(store, held, known, compared(known, shown, now), shown, now, member_like, trees)
        assert taken.joined + sum(taken.left_out.values()) == 6
        waiting += [one.id for one in store.listings([m.source for m in store.members(source)]) if one.options]
    assert looks < 200
    assert size_of(store, 1) == 50
    assert taken.left_out == {BEYOND: 6}
    # Another collection of the same site begins anew.
    assert (root_of(store, 3), root_of(store, max(m.source for m in store.members()))) == (3, 1)
    assert trees.room(store, Claim(3, 1, "https://example.org/other.xml", "http", 0.0, {}, 1.0), 300.0) == 10_000
    # What has gone makes room, within an hour.
    store.remove([m.source for m in store.members(1)][:2])
    told = Claim(1, 1, PLACE, "http", 0.0, first.options, 100.0)
    assert trees.room(store, told, now) == 0
    assert trees.room(store, told, now + 3700.0) > 0


def test_what_is_left_out_is_counted(store: MemoryStore) -> None:
    many = ListingPoll(tuple(entry(str(i)) for i in range(9)))
    taken = taken_up(store, claim(most_members=4), [], compared([], many, 200.0), many, 200.0)
    assert (taken.added, taken.joined, taken.left_out) == (4, 4, {BEYOND: 5})

    def never(claim: Claim, address: str, inner: str) -> Listing:
        raise InputError("robots.txt says no")

    taken = taken_up(store, claim(), [], compared([], many, 200.0), many, 200.0, never)
    assert (taken.added, taken.left_out) == (0, {FORBIDDEN: 9})


def test_of_sources_elsewhere_only_those_that_are_listed_are_told_of(store: MemoryStore) -> None:
    """Another Unstale's feed, or a planet's: it may say what changed at a source of ours, and brings no other."""
    store.add([Listing("https://other.example/known")], 0.0)
    named = ("https://other.example/known", "https://other.example/new", "https://example.org/own")
    feed = json.dumps({"version": "https://jsonfeed.org/version/1.1", "items": [{"url": one} for one in named]})
    shut = read_plain("feed", feed.encode(), PLACE, 2e9, {}, PLACE)
    assert shut["refused"] == {"another host": 2}
    options = {"collection": "feed", "elsewhere": True}
    shown = ListingPoll.of_plain(read_plain("feed", feed.encode(), PLACE, 2e9, options, PLACE))
    assert len(shown.entries) == 3
    held = claim("feed", elsewhere=True)
    taken = taken_up(store, held, [], compared([], shown, 200.0), shown, 200.0)
    assert (taken.added, taken.joined, taken.left_out) == (1, 2, {UNLISTED: 1})
    assert [m.address for m in store.members(1)] == ["https://other.example/known", "https://example.org/own"]
    # Nor is anybody gone whom such a listing does not show.
    assert not whole(claim(elsewhere=True), shown)
    assert whole(claim(), shown)


def test_private_addresses_stay_what_they_are_wherever_a_listing_may_tell_of_others() -> None:
    page = b"<urlset><url><loc>http://10.0.0.8/</loc></url><url><loc>file:///etc/passwd</loc></url></urlset>"
    told = read_plain("sitemap", page, PLACE, 2e9, {"elsewhere": True}, PLACE)
    assert (told["entries"], told["refused"]) == ([], {"a private address": 1, "another scheme": 1})


def test_a_listing_within_a_listing_is_a_collection(store: MemoryStore) -> None:
    inner = "https://example.org/sitemap-2.xml"
    assert take(store, ListingPoll((), more=(inner, PLACE))) == (1, 1)
    (source,) = [m.source for m in store.members(1)]
    assert store.listings([source])[0].options == {"collection": "sitemap"}
    assert take(store, ListingPoll((), more=(inner, PLACE))) == (0, 0)


def test_whom_a_listing_does_not_show_is_left_alone() -> None:
    gone = CollectionMember(1, 7, "https://example.org/a", 5.0)
    heard = compared([gone], ListingPoll(()), 200.0)
    assert (heard.words, heard.signals, heard.new) == ((), {}, ())


@pytest.mark.parametrize(
    ("form", "last", "shown", "hole"),
    [
        ("sitemap", 100.0, ListingPoll((entry("a", 150.0),)), 0.0),
        ("sitemap", 100.0, ListingPoll((), complete=False), 100.0),
        ("feed", 100.0, ListingPoll((entry("a", 190.0), entry("b", 150.0))), 50.0),
        ("feed", 100.0, ListingPoll((entry("a", 190.0), entry("b", 50.0))), 0.0),
        ("feed", float("-inf"), ListingPoll((entry("a", 190.0),)), 0.0),
    ],
)
def test_time_that_a_listing_tells_nothing_of(form: str, last: float, shown: ListingPoll, hole: float) -> None:
    assert uncovered(claim(form, last), shown, 200.0) == hole


def test_nothing_of_our_environment_is_filled_into_what_a_stranger_lists() -> None:
    def kept(address: str, ours: str = PLACE) -> str:
        return member_like(Claim(1, 1, ours, "http", 0.0, {"collection": "sitemap"}), address, "").address

    assert kept("https://example.org/x?a=$HOME&b=1") == "https://example.org/x?a=%24HOME&b=1"
    assert kept("HTTPS://example.org/${HOME}/x") == "HTTPS://example.org/%24{HOME}/x"
    assert kept("https://example.org/odata?$top=5") == "https://example.org/odata?$top=5"
    # What our own address names stays a name, but at no other place.
    own = "https://example.org/$KEY/sitemap.xml"
    assert kept("https://example.org/$KEY/x", own) == "https://example.org/$KEY/x"
    assert kept("https://evil.example/$KEY/x", own) == "https://evil.example/%24KEY/x"
    assert kept("https://example.org/$HOME/x", own) == "https://example.org/%24HOME/x"
