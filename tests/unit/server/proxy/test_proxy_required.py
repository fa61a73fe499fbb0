"""Every group of the public conformance suite, by its names: what it requires of a shared cache, on a clock of ours.

The suite itself needs Node.js and four minutes; this is what it requires, in our own words, for every run of the tests.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from support.cache_suite import HERE, Said, Stage, date, said

#: by the suite's name of a test: what the origin says first, seconds that pass, whether the stock answers then
Case = tuple[dict[str, str], float, bool]
FRESH = "max-age=3600"


def control(text: str, pause: float = 3.0, reused: bool = False, **more: str) -> Case:
    return {"cache_control": text, "date": date(), **more}, pause, reused


def expires(text: str, reused: bool = False, **more: str) -> Case:
    return {"expires": text, "date": date(), **more}, 3.0, reused


def cdn(text: str, reused: bool = False, **more: str) -> Case:
    return {"cdn_cache_control": text, "date": date(), **more}, 3.0, reused


FRESHNESS: dict[str, Case] = {
    "freshness-max-age-stale": control("max-age=2"),
    "freshness-max-age-0": control("max-age=0", 0.0),
    "freshness-max-age-age": control(FRESH, age="7200"),
    "freshness-max-age-0-expires": control("max-age=0", expires=date(5000)),
    "freshness-max-age-negative": control("max-age=-3600"),
    "freshness-s-maxage-shared": control("s-maxage=3600", reused=True),
    "freshness-max-age-s-maxage-shared-longer": control("max-age=3600, s-maxage=1"),
    "freshness-max-age-s-maxage-shared-longer-reversed": control("s-maxage=1, max-age=3600"),
    "freshness-max-age-ignore-quoted": control('extension="max-age=3600", max-age=1'),
    "freshness-max-age-ignore-quoted-rev": control('max-age=1, extension="max-age=3600"'),
    "freshness-max-age-leading-zero": control("max-age=003600", reused=True),
    "freshness-max-age-single-quoted": control("max-age='3600'"),
    "age-parse-nonnumeric": control(FRESH, age="abc", reused=True),
    "age-parse-negative": control(FRESH, age="-7200", reused=True),
    "age-parse-float": control(FRESH, age="7200.0", reused=True),
    "age-parse-large": control(FRESH, age="2147483648"),
    "age-parse-larger": control(FRESH, age="2147483649"),
    "age-parse-suffix": control(FRESH, age="7200, 0"),
    "age-parse-prefix": control(FRESH, age="0, 7200", reused=True),
    "freshness-expires-past": expires(date(-3600)),
    "freshness-expires-present": expires(date()),
    "freshness-expires-old-date": expires(date(-3000), date=date(-3600)),
    "freshness-expires-invalid": expires("0"),
    "freshness-expires-age-slow-date": expires(date(10), date=date(-10), age="25"),
    "freshness-expires-age-fast-date": expires(date(20), date=date(10), age="25"),
    "freshness-expires-invalid-utc": expires("Thu, 18 Aug 2050 02:01:18 UTC"),
    "freshness-expires-invalid-aest": expires("Thu, 18 Aug 2050 02:01:18 AEST"),
    "freshness-expires-invalid-2-digit-year": expires("Thu, 18 Aug 50 02:01:18 GMT"),
    "freshness-expires-invalid-no-comma": expires("Thu 18 Aug 2050 02:01:18 GMT"),
    "freshness-expires-invalid-multiple-spaces": expires("Thu, 18  Aug  2050 02:01:18 GMT"),
    "freshness-expires-invalid-date-dashes": expires("Thu, 18-Aug-2050 02:01:18 GMT"),
    "freshness-expires-invalid-time-periods": expires("Thu, 18 Aug 2050 02.01.18 GMT"),
    "freshness-expires-invalid-1-digit-hour": expires("Thu, 18 Aug 2050 2:01:18 GMT"),
    "freshness-expires-invalid-multiple-lines": expires("Thu, 18 Aug 2050 02:01:18 GMT, Thu, 18 Aug 2050 02:01:19 GMT"),
    "cc-resp-private-shared": control("private, max-age=3600"),
    "cc-resp-no-store": control("no-store"),
    "cc-resp-no-store-case-insensitive": control("No-StOrE"),
    "cc-resp-no-store-fresh": control("no-store, max-age=3600"),
    "cc-resp-no-cache": control("no-cache"),
    "cc-resp-no-cache-case-insensitive": control("No-CaChE"),
    "cc-resp-must-revalidate-stale": control("max-age=2, must-revalidate"),
    "stale-while-revalidate-window": control("max-age=1, stale-while-revalidate=1", 4.0),
    "vary-star": control(FRESH, vary="*"),
    "vary-syntax-star": control(FRESH, vary="*"),
    "vary-syntax-star-star": control(FRESH, vary="*, *"),
    "vary-syntax-empty-star": control(FRESH, vary=", *"),
    "vary-syntax-star-foo": control(FRESH, vary="*, Foo"),
    "vary-syntax-foo-star": control(FRESH, vary="Foo, *"),
    "cdn-max-age-age": cdn(FRESH, age="12000"),
    "cdn-max-age-0": cdn("max-age=0"),
    "cdn-max-age-0-expires": cdn("max-age=0", expires=date(5000)),
    "cdn-max-age-long-cc-max-age": cdn(FRESH, reused=True, cache_control="max-age=1"),
    "cdn-private": cdn("private, max-age=3600"),
    "cdn-no-cache": cdn("no-cache"),
    "cdn-no-store-cc-fresh": cdn("no-store", cache_control=FRESH),
    "cdn-fresh-cc-nostore": cdn(FRESH, reused=True, cache_control="no-store"),
    "cdn-cc-invalid-sh-type-unknown": cdn("max-age=3600, &&", cache_control="no-store"),
    "cdn-cc-invalid-sh-type-wrong": cdn('max-age="3600"', cache_control="no-store"),
    "interim-not-cached": ({}, 0.0, False),
}


def scene(*answers: Said | OSError, pause: float = 3.0, **second: Any) -> tuple[Stage, Any]:
    """A request, a pause, another request: the stage, and the second answer."""

    async def play() -> tuple[Stage, Any]:
        stage = Stage(*answers)
        await stage.get(**second.pop("first", {}))
        stage.wait(pause)
        return stage, await stage.get(**second)

    return asyncio.run(play())


@pytest.mark.parametrize("name", FRESHNESS)
def test_freshness(name: str) -> None:
    headers, pause, reused = FRESHNESS[name]
    stage, _ = scene(said(200, b"old", **headers), said(200, b"new"), pause=pause)
    assert stage.count == (1 if reused else 2)


@pytest.mark.parametrize(
    "status", [200, 203, 204, 299, 301, 302, 303, 307, 308, 400, 404, 410, 499, 500, 502, 503, 504, 599]
)
def test_a_stale_answer_of_any_status_is_asked_for_again(status: int) -> None:
    """status-*-stale"""
    stage, served = scene(said(status, cache_control="max-age=2"), said(200, b"new"))
    assert (stage.count, served.body) == (2, b"new")


def test_what_must_be_understood_is() -> None:
    """status-599-must-understand"""
    assert scene(said(599, cache_control="max-age=3600, must-understand"), said())[0].count == 2


@pytest.mark.parametrize("status", [201, 202, 403, 502, 503, 504, 599])
def test_no_guess_for_these(status: int) -> None:
    """heuristic-*-not_cached"""
    assert scene(said(status, last_modified=date(-100_000), date=date()), said())[0].count == 2


@pytest.mark.parametrize("strict", ["must-revalidate", "proxy-revalidate", "no-cache", "s-maxage=2"])
def test_nothing_stands_in_where_that_is_forbidden(strict: str) -> None:
    """stale-close-*"""
    with pytest.raises(OSError, match="gone"):
        scene(said(200, cache_control=f"max-age=2, {strict}"), ConnectionError("gone"))


VARIES: dict[str, tuple[str, dict[str, str], dict[str, str], bool]] = {
    "vary-match": ("Foo", {"foo": "1"}, {"foo": "1"}, True),
    "vary-no-match": ("Foo", {"foo": "1"}, {"foo": "2"}, False),
    "vary-omit-stored": ("Foo", {}, {"foo": "1"}, False),
    "vary-omit": ("Foo", {"foo": "1"}, {}, False),
    "vary-2-no-match": ("Foo, Bar", {"foo": "1", "bar": "a"}, {"foo": "2", "bar": "a"}, False),
    "vary-2-match-omit": ("Foo, Bar", {"foo": "1"}, {"foo": "1", "bar": "a"}, False),
    "vary-3-no-match": (
        "Foo, Bar, Baz",
        {"foo": "1", "bar": "a", "baz": "x"},
        {"foo": "1", "bar": "a", "baz": "y"},
        False,
    ),
}


@pytest.mark.parametrize("name", VARIES)
def test_variants(name: str) -> None:
    vary, first, second, reused = VARIES[name]
    stage, _ = scene(said(200, cache_control=FRESH, vary=vary), said(), first=first, **second)
    assert stage.count == (1 if reused else 2)


KEPT = ["Test-Header", "Content-Location", "Content-MD5", "Content-Type", "ETag", "Set-Cookie", "X-Frame-Options"]
GONE = ["Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authentication-Info", "Proxy-Authorization"]
GONE += ["Proxy-Connection", "TE", "Transfer-Encoding", "Upgrade"]


@pytest.mark.parametrize("name", KEPT + GONE)
def test_which_fields_are_stored(name: str) -> None:
    """headers-store-*"""
    _, served = scene(said(200, b"body", (name.lower(), '"value"'), cache_control=FRESH))
    assert (name.lower() in served.fields) == (name in KEPT)


def test_fields_that_connection_names_are_not_stored() -> None:
    """headers-omit-headers-listed-in-Connection"""
    _, served = scene(said(200, cache_control=FRESH, connection="a, b", a="1", b="2", c="3"))
    assert [name in served.fields for name in "abc"] == [False, False, True]


@pytest.mark.parametrize("name", ["Test-Header", "Content-Foo", "Cache-Control"])
def test_a_304_updates_what_is_stored(name: str) -> None:
    """304-etag-update-response-*, 304-lm-use-stored-*, other-date-update"""
    key, new = name.lower().replace("-", "_"), "max-age=77"
    first = {"cache_control": "max-age=1", "etag": '"1"', key: "max-age=1"}
    _, served = scene(
        said(200, b"body", content_length="4", other="kept", **first),
        said(304, b"", etag='"1"', content_length="9", date=date(3), **{"cache_control": "max-age=2", key: new}),
    )
    fields = served.fields
    assert (served.status, served.body, fields.first(name.lower())) == (200, b"body", new)
    assert [fields.first(other) for other in ("content-length", "other", "date")] == ["4", "kept", date(3)]


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "M-SEARCH"])
def test_what_may_have_changed_is_forgotten(method: str) -> None:
    """invalidate-*"""

    async def play() -> int:
        stage = Stage(said(200, cache_control=FRESH), said(), said())
        for asked in ("GET", method, "GET"):
            await stage.get(asked)
        return stage.count

    assert asyncio.run(play()) == 3


def test_conditions_of_clients() -> None:
    """conditional-304-etag, conditional-etag-precedence, conditional-etag-vary-headers"""
    first = said(200, cache_control=FRESH, etag='"1"', last_modified=date(-100), vary="Foo")
    tag, since = {"foo": "1", "if_none_match": '"1"'}, {"if_modified_since": date(-500)}
    stage, served = scene(first, first={"foo": "1"}, **tag, **since)
    assert (stage.count, served.status) == (1, 304)
    stage, served = scene(first, said(200, b"new"), first={"foo": "2"}, **tag)
    assert stage.count == 2


def test_parts_are_told_with_what_is_stored() -> None:
    """partial-use-headers, partial-use-stored-headers"""
    _, served = scene(said(200, b"0123456789", cache_control=FRESH, a="1"), range="bytes=2-4")
    told = [served.fields.first(name) for name in ("a", "content-range", "content-length")]
    assert (served.status, served.body, told) == (206, b"234", ["1", "bytes 2-4/10", "3"])


def test_credentials_are_not_shared() -> None:
    """other-authorization"""
    stage, _ = scene(said(200, cache_control=FRESH), said(), first={"authorization": "FOO"})
    assert stage.count == 2


def test_age_is_told_and_grows() -> None:
    """other-age-gen, other-age-update-expires, other-age-update-max-age"""
    assert scene(said(200, cache_control=FRESH, age="30"))[1].fields.first("age") == "33"
    assert scene(said(200, expires=date(500), date=date(), age="30"))[1].fields.first("age") == "33"


def test_queries_tell_addresses_apart() -> None:
    """query-args-different"""
    stage, _ = scene(said(200, cache_control=FRESH), said(), address=f"{HERE}?other")
    assert stage.count == 2
