"""What is typed to find sources: read as people mean it, found as a plain look at every source would."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unstale.adapters.sqlite_store import SqliteStore
from unstale.cli.service import service_of
from unstale.cli.settings import Settings
from unstale.errors import InputError
from unstale.keeper.outcomes import Answer
from unstale.ports import Entry, Listing
from unstale.service import FleetService, columns, names
from unstale.service.saved import SavedSearch, read_searches
from unstale.service.search import Term, parse

NOW = time.time()


@pytest.mark.parametrize(
    ("typed", "terms"),
    [
        ("", ()),
        ("  -  ", ()),
        ("News", (Term("text", "news"),)),
        ('"two words"', (Term("text", "two words"),)),
        ("https://a.example/x?y=1", (Term("text", "https://a.example/x?y=1"),)),
        ("tag:News -kind:feed", (Term("tag", "News"), Term("kind", "feed", negated=True))),
        ('tag:"a b"', (Term("tag", "a b"),)),
        ("Failing -paused", (Term("state", "failing"), Term("state", "paused", negated=True))),
        ("fresh<50% weight>=3", (Term("fresh", 0.5, "<"), Term("weight", 3.0, ">="))),
        ("changed<1d age>90s", (Term("changed", 86400.0, "<"), Term("age", 90.0, ">"))),
        ("<script>alert(1)</script>", (Term("text", "<script>alert(1)</script>"),)),
        ('onerror="x"', (Term("text", 'onerror="x'),)),
    ],
)
def test_terms(typed: str, terms: tuple[Term, ...]) -> None:
    assert parse(typed) == terms


@pytest.mark.parametrize(
    ("typed", "why"),
    [
        ("fresh<", "must be compared with a number"),
        ("age>soon", "length of time"),
        ("frsh<0.5", "did you mean 'fresh'"),
        ("weight>x", "must be compared"),
        (" ".join("abcdefgh" * 10), "more than 50"),
    ],
)
def test_what_nothing_fulfils_is_told(typed: str, why: str) -> None:
    with pytest.raises(InputError, match=why):
        parse(typed)


@given(st.text(max_size=200))
def test_whatever_is_typed_is_read_or_refused(typed: str) -> None:
    try:
        terms = parse(typed)
    except InputError:
        return
    assert all(one.value != "" or one.name in ("tag", "host", "kind", "title") for one in terms)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FleetService]:
    path = tmp_path_factory.mktemp("search") / "s.db"
    store = SqliteStore(path)
    store.add([one for i in range(40) for one in [_listing(i)]], NOW - 500.0)
    claims = store.claim(NOW, 30, lease=60.0, owner="t")
    answers = [Answer.FAILED if claim.source % 7 == 0 else Answer.CHANGED for claim in claims]
    store.record([Entry(c, a, NOW - 10.0 * c.source, NOW + 60.0) for c, a in zip(claims, answers, strict=True)])
    store.close()
    service = service_of(Settings(store=str(path)))
    service.clock = lambda: NOW
    yield service
    service.close()


def _listing(i: int) -> Listing:
    options = {"tags": [f"t{i % 3}", "Ünï"], "title": f"Title {i}"} if i % 2 else {}
    return Listing(
        f"https://h{i % 4}.example/{i}",
        "feed" if i % 5 == 0 else "http",
        weight=float(i % 6),
        host=f"h{i % 4}.example",
        options=options,
        paused=i % 11 == 0,
    )


FOUND: dict[str, Callable[[int], bool]] = {
    "tag:t1": lambda i: i % 2 == 1 and i % 3 == 1,
    "tag:t1 tag:Ünï": lambda i: i % 2 == 1 and i % 3 == 1,
    "-tag:Ünï": lambda i: i % 2 == 0,
    "kind:feed paused": lambda i: i % 5 == 0 and i % 11 == 0,
    "kind:feed -paused weight<2": lambda i: i % 5 == 0 and i % 11 != 0 and i % 6 < 2,
    "host:h2.example weight=5": lambda i: i % 4 == 2 and i % 6 == 5,
    "title:9": lambda i: i % 2 == 1 and "9" in str(i),
    "title 3": lambda i: i % 2 == 1 and "3" in str(i) + f"h{i % 4}",
    "h1.example -/1": lambda i: i % 4 == 1 and not str(i).startswith("1"),
    "-example": lambda i: False,
    "id<=3": lambda i: i < 3,
    "nobody": lambda i: False,
}


@pytest.mark.parametrize("most", [5000, 2], ids=["few", "many"])
@pytest.mark.parametrize("typed", FOUND)
def test_found_are_those_who_fulfil_all(
    service: FleetService, typed: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(columns, "COUNTED", most)
    want = [i + 1 for i in range(40) if FOUND[typed](i)]
    assert service.found(typed) == want
    got, total = service.columns().find(parse(typed), limit=100)
    assert (got, total) == (want, len(want))


def test_states_and_times(service: FleetService) -> None:
    polled = [i + 1 for i in range(40) if i % 11 != 0][:30]
    failing = [one for one in polled if one % 7 == 0]
    assert service.found("failing") == failing
    assert service.found("never") == sorted(set(failing) | {i + 1 for i in range(40) if i % 11} - set(polled))
    answered = sorted(set(polled) - set(failing))
    assert service.found("checked<105s") == [one for one in answered if one < 11]
    assert service.found("due<2min due>30s") == sorted(polled)


def test_titles_are_searched_by_their_name_alone_in_large_fleets(
    service: FleetService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(names, "TITLED", 10)
    assert service.found("title") == []
    assert service.found("title:title") == [i + 1 for i in range(40) if i % 2]
    assert service.found("-title:title") == [i + 1 for i in range(40) if not i % 2]
    assert service.found("title:") == [i + 1 for i in range(40)]


def test_titles_are_searched_as_people_read_them(service: FleetService) -> None:
    service.edit([1], {"options": {"title": "ZÜRICH 50%_\nTrains"}})
    for typed in ("title:zürich", "title:Zürich", "title:%_", 'title:"50%_ trains"'):
        assert service.found(typed) == [1], typed
    assert service.found("title:zrich") == []


def test_lines_are_found_wherever_they_lie(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["", "abab", "xaba", "b", "ÄBa", "aab"]
    for block in (1, 2, 3, 5, 1000):
        monkeypatch.setattr(names, "_BLOCK", block)
        lines = names.Lines.of(texts)
        for wanted in ("", "a", "ab", "bab", "äb", "b\nb", "abab", "none of them has this, and it is long"):
            want = [i for i, text in enumerate(texts) if wanted in text.lower()]
            # A line has an end that nobody looks for.
            assert lines.having(wanted.encode()).tolist() == want, (block, wanted)


def test_searches_are_kept_under_names(tmp_path: Path) -> None:
    SqliteStore(tmp_path / "s.db").close()
    service = service_of(Settings(store=str(tmp_path / "s.db")))
    assert service.searches() == []
    mine = [SavedSearch("Mine", "tag:me"), SavedSearch("In trouble", "failing", "failures", True)]
    service.save_searches(mine)
    assert service.searches() == mine
    for wrong in ([mine[0], mine[0]], [SavedSearch(" ", "x")], [SavedSearch("Bad", "fresh<x")]):
        with pytest.raises(InputError):
            service.save_searches(wrong)
    assert service.searches() == mine, "what cannot be saved changes nothing"
    service.close()
    assert read_searches(b"[1") == read_searches(b'[{"nmae": 1}]') == []
