"""The cache against a scripted origin, by RFC 9111: what is reused, what is asked for, and what is said about it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest

from support.cache_suite import HERE, Said, Stage, date, said
from unstale.keeper.outcomes import Answer
from unstale.server.proxy.origin import Served

T = TypeVar("T")


def play(scene: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(scene)


async def twice(first: Said, pause: float, **request: str) -> tuple[Stage, Served]:
    """One response, a pause, and a second request; the origin has another answer ready."""
    stage = Stage(first, said(200, b"new", cache_control="no-store"))
    await stage.get()
    stage.wait(pause)
    served = await stage.get(**request)
    assert served is not None
    return stage, served


REUSED = {
    "max-age": ({"cache_control": "max-age=60"}, 59.0),
    "a large max-age": ({"cache_control": "max-age=99999999999"}, 1e9),
    "s-maxage before max-age": ({"cache_control": "max-age=1, s-maxage=60"}, 30.0),
    "max-age before a past Expires": ({"cache_control": "max-age=60", "expires": date(-10), "date": date()}, 30.0),
    "Expires": ({"expires": date(60), "date": date()}, 59.0),
    "Expires by the origin's clock": ({"expires": date(1060), "date": date(1000)}, 30.0),
    "a quoted number": ({"cache_control": 'max-age="60"'}, 30.0),
    "an Age that is no number": ({"cache_control": "max-age=60", "age": "old"}, 30.0),
    "the first of two Ages": ({"cache_control": "max-age=60", "age": "0, 100"}, 30.0),
    "a tenth of the time since Last-Modified": ({"last_modified": date(-1000), "date": date()}, 99.0),
    "a targeted field before Cache-Control": ({"cdn_cache_control": "max-age=60", "cache_control": "no-store"}, 30.0),
    "no-cache that names a field": ({"cache_control": 'max-age=60, no-cache="a"', "a": "1"}, 30.0),
    "must-revalidate while fresh": ({"cache_control": "max-age=60, must-revalidate"}, 30.0),
    "a cookie with an explicit lifetime": ({"cache_control": "max-age=60", "set_cookie": "a=b"}, 30.0),
}

ASKED_AGAIN = {
    "past max-age": ({"cache_control": "max-age=60"}, 60.0),
    "past a shorter s-maxage": ({"cache_control": "max-age=60, s-maxage=1"}, 1.0),
    "older than max-age on arrival": ({"cache_control": "max-age=60", "age": "61"}, 0.0),
    "made long ago by its Date": ({"cache_control": "max-age=60", "date": date(-61)}, 0.0),
    "Expires that is no date": ({"expires": "0", "date": date()}, 0.0),
    "max-age=0 before a future Expires": ({"cache_control": "max-age=0", "expires": date(60)}, 0.0),
    "max-age in single quotes": ({"cache_control": "max-age='60'"}, 0.0),
    "max-age inside another value": ({"cache_control": 'a="max-age=60"'}, 0.0),
    "max-age with a space": ({"cache_control": "max-age= 60"}, 0.0),
    "a fraction": ({"cache_control": "max-age=60.5"}, 0.0),
    "the first of two max-ages": ({"cache_control": "max-age=1, max-age=60"}, 1.0),
    "private": ({"cache_control": "private, max-age=60"}, 0.0),
    "no-store in any case": ({"cache_control": "No-StOrE, max-age=60"}, 0.0),
    "no-cache": ({"cache_control": "no-cache, max-age=60"}, 0.0),
    "nothing to go by": ({}, 0.0),
    "Vary on everything": ({"cache_control": "max-age=60", "vary": "foo, *"}, 0.0),
    "a targeted field that forbids": ({"cdn_cache_control": "no-store", "cache_control": "max-age=60"}, 0.0),
    "a malformed targeted field": ({"cdn_cache_control": "max-age=60, &", "cache_control": "no-store"}, 0.0),
    "a cookie on a guess": ({"last_modified": date(-1000), "date": date(), "set_cookie": "a=b"}, 1.0),
}


@pytest.mark.parametrize("case", REUSED)
def test_reused(case: str) -> None:
    headers, pause = REUSED[case]
    stage, served = play(twice(said(200, b"body", **headers), pause))
    assert (served.body, stage.count) == (b"body", 1)
    assert "a" not in served.fields
    assert served.how.startswith("hit; ttl=")


@pytest.mark.parametrize("case", ASKED_AGAIN)
def test_asked_again(case: str) -> None:
    headers, pause = ASKED_AGAIN[case]
    stage, served = play(twice(said(200, b"body", **headers), pause))
    assert (served.body, stage.count) == (b"new", 2)


@pytest.mark.parametrize(
    ("wish", "hit"),
    [
        ("max-age=10", False),
        ("max-age=100", True),
        ("min-fresh=50", False),
        ("min-fresh=10", True),
        ("no-cache", False),
        ("no-store", False),
        ("max-age=10, max-stale", True),
        ("unheard-of", True),
    ],
)
def test_what_the_client_wishes_while_fresh(wish: str, hit: bool) -> None:
    stage, _ = play(twice(said(200, b"body", cache_control="max-age=60"), 30.0, cache_control=wish))
    assert (stage.count == 1) is hit


@pytest.mark.parametrize(
    ("control", "wish", "hit"),
    [
        ("max-age=60", "max-stale", True),
        ("max-age=60", "max-stale=40", True),
        ("max-age=60", "max-stale=39", False),
        ("max-age=60, must-revalidate", "max-stale", False),
        ("s-maxage=60", "max-stale", False),
        ("max-age=60, proxy-revalidate", "max-stale", False),
    ],
)
def test_what_the_client_accepts_once_stale(control: str, wish: str, hit: bool) -> None:
    stage, _ = play(twice(said(200, b"body", cache_control=control), 100.0, cache_control=wish))
    assert (stage.count == 1) is hit


def test_pragma_means_nothing() -> None:
    stage, _ = play(twice(said(200, b"body", cache_control="max-age=60", pragma="no-cache"), 1.0, pragma="no-cache"))
    assert stage.count == 1


def test_only_if_cached_is_nothing_when_nothing_is() -> None:
    assert play(Stage().get(cache_control="only-if-cached")) is None


@pytest.mark.parametrize(
    ("status", "control", "hit"),
    [
        (404, "", True),
        (201, "", False),
        (599, "", False),
        (599, "public", True),
        (302, "max-age=60", True),
        (599, "max-age=60", True),
        (599, "max-age=60, must-understand", False),
        (503, "max-age=60", True),
        (200, "max-age=60, no-store, must-understand", True),
    ],
)
def test_statuses(status: int, control: str, hit: bool) -> None:
    first = said(status, b"body", cache_control=control, last_modified=date(-10_000), date=date())
    assert (play(twice(first, 1.0))[0].count == 1) is hit


def test_age_counts_the_way_and_the_stay() -> None:
    async def scene() -> Served | None:
        stage = Stage(said(200, b"body", cache_control="max-age=100", age="30", date=date(2)))
        stage.origin.delay = 2.0
        await stage.get()
        stage.wait(5.5)
        return await stage.get()

    served = play(scene())
    assert served is not None
    assert (served.fields.first("age"), served.fields.first("date")) == ("37", date(2))
    assert served.how == "hit; ttl=62"


def test_a_304_freshens_and_brings_new_fields() -> None:
    async def scene() -> tuple[Stage, Served | None, Served | None]:
        stage = Stage(
            said(
                200,
                b"body",
                ("a", "1"),
                ("b", "1"),
                cache_control="max-age=5",
                etag='"1"',
                last_modified=date(-9),
                content_length="4",
            ),
            said(304, b"", cache_control="max-age=50", a="2", content_length="99", connection="b", etag='"1"'),
        )
        await stage.get()
        stage.wait(10.0)
        confirmed = await stage.get()
        stage.wait(10.0)
        return stage, confirmed, await stage.get()

    stage, confirmed, later = play(scene())
    assert (stage.count, stage.sent("if-none-match"), stage.sent("if-modified-since")) == (2, '"1"', date(-9))
    for served in (confirmed, later):
        assert served is not None
        assert (served.status, served.body) == (200, b"body")
        assert [served.fields.first(name) for name in ("a", "b", "content-length")] == ["2", "1", "4"]
    assert confirmed is not None
    assert confirmed.how == "fwd=stale; fwd-status=304; stored"


def test_a_304_for_another_entity_is_not_believed() -> None:
    async def scene() -> tuple[Stage, Served | None]:
        stage = Stage(
            said(200, b"old", cache_control="max-age=5", etag='"1"'),
            said(304, b"", etag='"2"'),
            said(200, b"new", etag='"2"'),
        )
        await stage.get()
        stage.wait(10.0)
        return stage, await stage.get()

    stage, served = play(scene())
    assert served is not None
    assert (served.body, stage.count, stage.sent("if-none-match")) == (b"new", 3, None)


def test_the_client_s_condition_is_judged_here() -> None:
    first = said(200, b"body", cache_control="max-age=5", etag='W/"1"', content_length="4", date=date())
    stage, served = play(twice(first, 1.0, if_none_match='"0", "1"'))
    assert (served.status, served.body, stage.count) == (304, b"", 1)
    assert served.fields.first("etag") == 'W/"1"'
    assert "content-length" not in served.fields
    # without Last-Modified the time of making counts
    first = said(200, b"body", cache_control="max-age=5", date=date())
    assert play(twice(first, 1.0, if_modified_since=date(0)))[1].status == 304
    first = said(200, b"body", cache_control="max-age=5", date=date())
    assert play(twice(first, 1.0, if_modified_since=date(-1)))[1].status == 200


def test_without_anything_held_the_client_s_condition_goes_on() -> None:
    async def scene() -> tuple[Stage, Served | None]:
        stage = Stage(said(304, b"", etag='"7"'))
        return stage, await stage.get(if_none_match='"7"')

    stage, served = play(scene())
    assert served is not None
    assert (served.status, stage.sent("if-none-match")) == (304, '"7"')


def test_variants_are_kept_apart_and_one_answer_may_serve_both() -> None:
    async def scene() -> list[tuple[object, int]]:
        stage = Stage(
            said(200, b"one", cache_control="max-age=60", vary="Foo", etag='"1"'),
            said(200, b"two", cache_control="max-age=60", vary="Foo", etag='"2"'),
            said(304, b"", cache_control="max-age=60", etag='"1"'),
        )
        got = []
        for foo in ("1", "2", "1", "2", "3", "3"):
            served = await stage.get(foo=foo)
            assert served is not None
            got.append((served.body, stage.count))
        assert stage.sent("if-none-match") == '"2", "1"'
        return got

    assert play(scene()) == [(b"one", 1), (b"two", 2), (b"one", 2), (b"two", 2), (b"one", 3), (b"one", 3)]


@pytest.mark.parametrize(
    ("first", "second", "hit"),
    [
        ("en, de", "de,en", True),
        ("en, de", "DE , eN", True),
        ("de, en;q=0.5", "en, de;q=0.5", False),
        ("en", "fr;q=0.5, de", True),
        ("en", "fr, de", False),
        ("en", "fr", False),
    ],
)
def test_languages(first: str, second: str, hit: bool) -> None:
    async def scene() -> int:
        answer = said(200, b"body", cache_control="max-age=60", vary="Accept-Language", content_language="de")
        stage = Stage(answer, said())
        await stage.get(accept_language=first)
        await stage.get(accept_language=second)
        return stage.count

    assert (play(scene()) == 1) is hit


@pytest.mark.parametrize(
    ("asked", "status", "body", "said_range"),
    [
        ("bytes=0-1", 206, b"01", "bytes 0-1/10"),
        ("bytes=7-", 206, b"789", "bytes 7-9/10"),
        ("bytes=-2", 206, b"89", "bytes 8-9/10"),
        ("bytes=10-", 416, b"", "bytes */10"),
        ("bytes=0-1,4-5", 200, b"0123456789", None),
        ("lines=1-2", 200, b"0123456789", None),
    ],
)
def test_ranges_of_a_whole_response(asked: str, status: int, body: bytes, said_range: str | None) -> None:
    stage, served = play(twice(said(200, b"0123456789", cache_control="max-age=60"), 1.0, range=asked))
    assert (served.status, served.body, served.fields.first("content-range")) == (status, body, said_range)
    assert stage.count == 1


def test_if_range() -> None:
    def first() -> Said:
        return said(200, b"0123456789", cache_control="max-age=60", etag='"1"', last_modified=date(-5))

    for condition, status in (('"1"', 206), ('"2"', 200), ('W/"1"', 200), (date(-5), 206), (date(-6), 200)):
        assert play(twice(first(), 1.0, range="bytes=0-1", if_range=condition))[1].status == status


def test_partial_responses_are_kept_if_they_hold_what_they_say() -> None:
    async def scene(span: str, asked: str) -> tuple[int, object]:
        stage = Stage(said(206, b"45678", cache_control="max-age=60", content_range=span), said())
        await stage.get(range="bytes=4-8")
        served = await stage.get(range=asked)
        assert served is not None
        return stage.count, served.body

    assert play(scene("bytes 4-8/10", "bytes=6-7")) == (1, b"67")
    assert play(scene("bytes 4-8/10", "bytes=6-")) == (2, b"body")
    assert play(scene("bytes 4-8/10", "bytes=3-5")) == (2, b"body")
    assert play(scene("bytes 4-9/10", "bytes=6-7")) == (2, b"body")


def test_a_head_is_answered_from_the_stock_and_freshens_it() -> None:
    async def scene(agreeing: bool) -> tuple[list[int], object]:
        stage = Stage(
            said(200, b"body", cache_control="max-age=5", etag='"1"', a="1", content_length="4"),
            said(200, b"", cache_control="max-age=50", etag='"1"' if agreeing else '"2"', content_length="4"),
            said(200, b"newer"),
        )
        await stage.get()
        counts = []
        head = await stage.get("HEAD")
        assert head is not None
        assert (head.body, head.fields.first("content-length")) == (b"", "4")
        counts.append(stage.count)
        stage.wait(10.0)
        head = await stage.get("HEAD")
        assert head is not None
        assert head.fields.first("a") == ("1" if agreeing else None)
        counts.append(stage.count)
        served = await stage.get()
        assert served is not None
        return [*counts, stage.count], served.body

    assert play(scene(True)) == ([1, 2, 2], b"body")
    assert play(scene(False)) == ([1, 2, 3], b"newer")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "M-SEARCH"])
@pytest.mark.parametrize("status", [200, 302, 404, 500])
def test_what_a_change_makes_doubtful_is_forgotten(method: str, status: int) -> None:
    async def scene() -> list[bool]:
        stage = Stage(
            *[said(200, b"body", cache_control="max-age=60") for _ in range(4)],
            said(status, b"", location="/b", content_location="c"),
        )
        places = [HERE, "http://origin.example/b", "http://origin.example/c", "http://other.example/b"]
        for place in places:
            await stage.get(address=place)
        await stage.get(method, HERE)
        return [place in stage.cache.stock for place in places]

    kept = status >= 400
    assert play(scene()) == [kept, kept, kept, True]


def test_the_answer_to_a_post_may_be_that_of_a_get() -> None:
    async def scene(place: str) -> int:
        stage = Stage(said(200, b"body", cache_control="max-age=60", content_location=place), said())
        await stage.get("POST")
        await stage.get()
        return stage.count

    assert (play(scene("/a")), play(scene("/b"))) == (1, 2)


@pytest.mark.parametrize(
    ("control", "hit"),
    [
        ("max-age=60", False),
        ("public, max-age=60", True),
        ("s-maxage=60", True),
        ("max-age=60, must-revalidate", True),
    ],
)
def test_credentials(control: str, hit: bool) -> None:
    async def scene() -> int:
        stage = Stage(said(200, b"body", cache_control=control), said())
        await stage.get(authorization="secret")
        await stage.get()
        return stage.count

    assert (play(scene()) == 1) is hit


FAILURES = [ConnectionError("origin.example: gone"), 503]


@pytest.mark.parametrize("failure", FAILURES, ids=str)
@pytest.mark.parametrize(
    ("control", "late", "wish", "stands_in"),
    [
        ("max-age=5", 10.0, "", True),
        ("max-age=5", 90_000.0, "", False),
        ("max-age=5, stale-if-error=20", 10.0, "", True),
        ("max-age=5, stale-if-error=20", 30.0, "", False),
        ("max-age=5, must-revalidate", 10.0, "", False),
        ("max-age=5, proxy-revalidate", 10.0, "", False),
        ("s-maxage=5", 10.0, "", False),
        ("max-age=5", 10.0, "no-cache", False),
        ("max-age=5", 10.0, "max-age=1, stale-if-error=60", True),
    ],
)
def test_an_older_answer_stands_in_for_a_failing_origin(
    failure: OSError | int, control: str, late: float, wish: str, stands_in: bool
) -> None:
    async def scene() -> Served | None:
        last = failure if isinstance(failure, OSError) else said(failure, b"down")
        stage = Stage(said(200, b"body", cache_control=control), last)
        await stage.get()
        stage.wait(late)
        return await stage.get(**({"cache_control": wish} if wish else {}))

    if not stands_in and isinstance(failure, OSError):
        with pytest.raises(ConnectionError, match="gone"):
            play(scene())
        return
    served = play(scene())
    assert served is not None
    assert (served.status, served.body) == ((200, b"body") if stands_in else (503, b"down"))
    if stands_in:
        assert "fwd=stale" in served.how
        assert "ttl=-" in served.how


def test_stale_while_revalidate_asks_behind_and_once() -> None:
    async def scene() -> list[object]:
        stage = Stage(
            said(200, b"old", cache_control="max-age=5, stale-while-revalidate=20"),
            said(200, b"new", cache_control="max-age=5"),
            said(200, b"last"),
        )
        await stage.get()
        stage.wait(10.0)
        got = [served.body for _ in range(3) if (served := await stage.get())]
        for _ in range(20):
            await asyncio.sleep(0)
        got += [served.body for _ in range(1) if (served := await stage.get())]
        stage.wait(30.0)
        got += [served.body for _ in range(1) if (served := await stage.get())]
        assert stage.count == 3
        return got

    assert play(scene()) == [b"old", b"old", b"old", b"new", b"last"]


def test_many_who_want_the_same_are_one_question() -> None:
    async def scene(control: str) -> tuple[int, list[object]]:
        stage = Stage(*[said(200, b"%d" % n, cache_control=control) for n in range(10)])
        served = await asyncio.gather(*[stage.get() for _ in range(10)])
        return stage.count, sorted({str(one.body) for one in served if one})

    assert play(scene("max-age=60")) == (1, ["b'0'"])
    count, bodies = play(scene("no-store"))
    assert (count, len(bodies)) == (10, 10)


def test_long_bodies_pass_and_are_kept_up_to_a_bound() -> None:
    async def scene(size: int) -> tuple[int, bool]:
        stage = Stage(*[said(200, bytes(size), cache_control="max-age=60") for _ in range(2)], largest=3_000_000)
        one, two = await stage.get(), await stage.get()
        assert one is not None
        assert two is not None
        return stage.count, one.body == two.body == bytes(size)

    assert play(scene(2_500_000)) == (1, True)
    assert play(scene(3_500_000)) == (2, True)


def test_what_breaks_off_is_not_kept() -> None:
    async def scene(size: int) -> int:
        broken = Said(200, [("cache-control", "max-age=60")], bytes(size), breaks_after=size // 2)
        stage = Stage(broken, said(200, b"whole", cache_control="max-age=60"))
        with pytest.raises(ConnectionError):
            await stage.get()
        served = await stage.get()
        assert served is not None
        assert served.body == b"whole"
        return stage.count

    assert (play(scene(200_000)), play(scene(2_500_000))) == (2, 2)


def test_a_learned_lifetime_replaces_the_guess_and_never_the_origin_s_word() -> None:
    async def scene(learned: float | None, **headers: str) -> int:
        stage = Stage(said(200, b"body", **headers), said(), learned=lambda address: learned)
        await stage.get()
        stage.wait(50.0)
        await stage.get()
        return stage.count

    modified = {"last_modified": date(-1000), "date": date()}
    assert play(scene(None, **modified)) == 1
    assert play(scene(20.0, **modified)) == 2
    assert play(scene(60.0)) == 1
    assert play(scene(60.0, cache_control="max-age=10")) == 2
    assert play(scene(10.0, cache_control="max-age=60")) == 1


def test_renewing_tells_what_an_engine_wants_to_know() -> None:
    async def scene() -> list[object]:
        stage = Stage(
            said(200, b"one", cache_control="max-age=60", etag='"1"', vary="Foo"),
            said(304, b"", cache_control="max-age=60"),
            said(200, b"two", cache_control="max-age=60", content_type="text/plain", last_modified=date(-7)),
            said(500, b"", cache_control="max-age=60"),
            said(200, b"", cache_control="no-store"),
            OSError("gone"),
        )
        await stage.get(foo="1")
        told = []
        for _ in range(5):
            stage.wait(1.0)
            told.append(await stage.cache.renew(HERE))
        assert stage.origin.asked[1][2].lines == (("foo", "1"), ("if-none-match", '"1"'))
        assert (told[1].body, told[1].media_type, told[1].changed_at) == (b"two", "text/plain", (1_700_000_000.0 - 7,))
        assert told[4].reason == "gone"
        return [one.answer for one in told]

    failed = [Answer.FAILED] * 3
    assert play(scene()) == [Answer.UNCHANGED, Answer.CHANGED, *failed]


def test_hop_by_hop_fields_stay_behind() -> None:
    async def scene() -> Served | None:
        stage = Stage(said(200, b"body", cache_control="max-age=60", connection="a", a="1", b="2", keep_alive="5"))
        await stage.get()
        return await stage.get()

    served = play(scene())
    assert served is not None
    assert {name for name, _ in served.fields.lines} == {"cache-control", "b", "date", "age"}


def test_conditions_that_guard_against_overwriting_are_the_origin_s() -> None:
    stage, _ = play(twice(said(200, b"body", cache_control="max-age=60", etag='"1"'), 1.0, if_match='"1"'))
    assert (stage.count, stage.sent("if-match")) == (2, '"1"')


def part(content: bytes, span: str, etag: str = '"1"') -> Said:
    return said(206, content, content_range=f"bytes {span}", etag=etag, cache_control="max-age=60")


def test_a_first_part_is_completed_by_the_rest() -> None:
    async def scene() -> None:
        stage = Stage(part(b"01234", "0-4/10"), part(b"56789", "5-9/10"))
        await stage.get(range="bytes=0-4")
        served = await stage.get()
        assert served is not None
        assert (served.status, served.body, served.fields.first("content-length")) == (200, b"0123456789", "10")
        assert "content-range" not in served.fields
        assert (stage.sent("range"), stage.sent("if-range"), stage.count) == ("bytes=5-", '"1"', 2)
        again = await stage.get()
        assert again is not None
        assert (again.status, again.body, stage.count) == (200, b"0123456789", 2)

    play(scene())


@pytest.mark.parametrize(
    "rest",
    [
        said(200, b"another one", etag='"2"', cache_control="max-age=60"),
        part(b"56789", "5-9/10", '"2"'),
        part(b"6789", "6-9/10"),
        part(b"5678", "5-8/10"),
        part(b"567890", "5-10/11"),
        said(416, b""),
        said(206, b"56789", etag='"1"'),
    ],
    ids=["the whole", "another tag", "a gap", "too little", "another length", "no such range", "no range said"],
)
def test_parts_that_do_not_belong_together_are_not_joined(rest: Said) -> None:
    async def scene() -> tuple[int, bytes]:
        stage = Stage(part(b"01234", "0-4/10"), rest, said(200, b"another one", etag='"2"'))
        await stage.get(range="bytes=0-4")
        served = await stage.get()
        assert served is not None
        assert isinstance(served.body, bytes)
        return served.status, served.body

    assert play(scene()) == (200, b"another one")


def test_weakly_tagged_parts_are_asked_for_anew() -> None:
    async def scene() -> tuple[int, bytes]:
        stage = Stage(
            part(b"01234", "0-4/10", 'W/"1"'), part(b"56789", "5-9/10", 'W/"1"'), said(200, b"0123456789", etag='W/"1"')
        )
        await stage.get(range="bytes=0-4")
        served = await stage.get()
        assert served is not None
        return served.status, served.body  # type: ignore[return-value]

    assert play(scene()) == (200, b"0123456789")
