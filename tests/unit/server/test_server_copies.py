"""Copies over ASGI: what is sent, what is said about it, and what is refused."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import apsw
import pytest
import zstandard

from support.asgi import START, Got, Kept, ask, asked
from unstale.ports import Edition, Head
from unstale.server.app import replica
from unstale.server.asking import StoreAsker
from unstale.server.headers import Believed, read_date, times
from unstale.server.heads import Heads
from unstale.server.meta import meta

TEXT = b"the quick brown fox jumps over the lazy dog, again and again and again. " * 30


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Kept]:
    kept = Kept(tmp_path / "s.db")
    yield kept
    kept.close()


@pytest.fixture
def app(kept: Kept) -> object:
    return replica(kept.shelf, clock=kept.clock)


def test_a_copy_and_what_it_says_about_itself(kept: Kept, app: object) -> None:
    kept.poll(TEXT)
    kept.now += 60
    kept.poll()
    kept.now += 12.5
    got = asked(app, "/copies/1")
    assert (got.status, got.body) == (200, TEXT)
    assert got.fields["content-length"] == str(len(TEXT))
    assert read_date(got.fields["date"]) == START + 60, "checked, not changed"
    assert read_date(got.fields["expires"]) == START + 120
    assert got.fields["age"] == "12"
    assert read_date(got.fields["last-modified"]) == START, "changed, not checked"
    assert "max-age" not in got.fields["cache-control"]
    assert f"checked=@{START + 60:.0f}, changed=@{START:.0f}, version=1" in got.fields["replica-status"]
    assert 0.0 < float(got.fields["replica-status"].rpartition("fresh=")[2].partition(";")[0]) < 1.0
    head = asked(app, "/copies/1", "HEAD")
    assert (head.status, head.fields, head.body) == (200, got.fields, b"")


def test_expires_minus_date_minus_age_is_what_is_left(kept: Kept, app: object) -> None:
    """[RFC 9111 4.2]: lifetime Expires − Date, current age Age: what remains is Expires − now."""
    kept.poll(TEXT, wait=600)
    for passed in (0.0, 1.0, 599.0, 700.0):
        kept.now = START + passed
        fields = asked(app, "/copies/1").fields
        lifetime = read_date(fields["expires"]) - read_date(fields["date"])  # type: ignore[operator]
        assert lifetime - int(fields["age"]) == 600 - passed
        assert f"ttl={600 - passed:.0f}" in fields["cache-status"]


def test_codings_have_their_own_tags(kept: Kept, app: object) -> None:
    kept.poll(TEXT)
    plain, packed, zipped = (asked(app, "/copies/1", accept_encoding=a) for a in ("", "zstd, gzip", "gzip"))
    assert [g.fields.get("content-encoding") for g in (plain, packed, zipped)] == [None, "zstd", "gzip"]
    assert plain.body == TEXT == zstandard.decompress(packed.body) == gzip.decompress(zipped.body)
    assert len({g.fields["etag"] for g in (plain, packed, zipped)}) == 3
    assert {g.fields["vary"] for g in (plain, packed, zipped)} == {"accept-encoding"}
    with apsw.Connection(str(kept.store.path), flags=apsw.SQLITE_OPEN_READONLY) as db:
        assert packed.body == db.execute("SELECT body FROM contents").get, "as it was stored"


def test_revalidation(kept: Kept, app: object) -> None:
    kept.poll(TEXT, last_modified="Sat, 15 Nov 2025 19:00:00 GMT")
    full = asked(app, "/copies/1")
    tag = full.fields["etag"]
    for condition in (tag, f'"other", W/{tag}', "*"):
        same = asked(app, "/copies/1", if_none_match=condition)
        assert (same.status, same.body) == (304, b"")
        for name in ("date", "age", "expires", "cache-control", "etag", "vary", "cache-status", "replica-status"):
            assert same.fields[name] == full.fields[name]
    assert asked(app, "/copies/1", if_none_match='"other"').status == 200
    assert asked(app, "/copies/1", if_none_match=tag, accept_encoding="gzip").status == 200
    assert asked(app, "/copies/1", if_modified_since="Sat, 15 Nov 2025 19:00:00 GMT").status == 304
    assert asked(app, "/copies/1", if_modified_since="Sat, 15 Nov 2025 18:59:59 GMT").status == 200
    assert asked(app, "/copies/1", if_modified_since="rubbish").status == 200
    both = {"if_none_match": '"other"', "if_modified_since": "Sat, 15 Nov 2025 19:00:00 GMT"}
    assert asked(app, "/copies/1", **both).status == 200


def test_a_new_version_is_seen_at_once(kept: Kept, app: object) -> None:
    kept.poll(b"one")
    first = asked(app, "/copies/1")
    kept.now += 60
    kept.poll(b"two")
    second = asked(app, "/copies/1", if_none_match=first.fields["etag"])
    assert (second.status, second.body) == (200, b"two")
    assert "version=2" in second.fields["replica-status"]


def test_ranges(kept: Kept, app: object) -> None:
    kept.poll(TEXT)
    full = asked(app, "/copies/1")
    part = asked(app, "/copies/1", range="bytes=4-8")
    assert (part.status, part.body) == (206, b"quick")
    assert part.fields["content-range"] == f"bytes 4-8/{len(TEXT)}"
    assert part.fields["etag"] == full.fields["etag"]
    several = asked(app, "/copies/1", range="bytes=0-2,4-8")
    assert several.status == 206
    assert several.fields["content-type"].startswith("multipart/byteranges; boundary=")
    for condition, status in (
        (full.fields["etag"], 206),
        (full.fields["last-modified"], 206),
        ('"x"', 200),
        (f"W/{full.fields['etag']}", 200),
    ):
        assert asked(app, "/copies/1", range="bytes=0-1", if_range=condition).status == status
    refused = asked(app, "/copies/1", range=f"bytes={len(TEXT)}-")
    assert (refused.status, refused.fields["content-range"]) == (416, f"bytes */{len(TEXT)}")
    assert asked(app, "/copies/1", range="bytes=" + ",".join(f"{3 * i}-{3 * i}" for i in range(99))).status == 416
    assert asked(app, "/copies/1", "HEAD", range="bytes=0-1").status == 200


def test_by_address(kept: Kept, app: object) -> None:
    kept.poll(TEXT)
    got = asked(app, "/copy?source=https%3A%2F%2Fa.example%2F0")
    assert (got.status, got.body, got.fields["content-location"]) == (200, TEXT, "/copies/1")
    assert asked(app, "/copy?source=https://b.example").status == 404
    assert asked(app, "/copy").status == 404


def test_the_belief_of_who_is_nearest_to_the_source_is_passed_along_in_its_name() -> None:
    edition = Edition(1, 100.0, "text/plain", None, b"", 5, 0.0, "lisbon;gap=100, porto")
    head = Head(1, 1, 1, 100.0, 200.0, 0)
    here = times(head, edition)
    fields = dict(here.at(150.0, Believed(0.009, 7.0, "faro")))
    # exp(-50/100), whatever is believed here.
    assert fields[b"replica-status"].endswith(b"hops=3, fresh=0.607;by=lisbon, gap=100")
    assert fields[b"cache-status"].startswith(b"lisbon; hit, porto; hit, faro; hit")
    told = json.loads(meta(head, edition, 150.0, Believed(0.009, 7.0, "faro"))[2])
    assert (told["fresh"], told["fresh_by"], told["fresh_here"]) == (0.607, "lisbon", 0.009)
    assert (told["via"], told["hops"], told["gap_seconds"]) == (["lisbon", "porto"], 3, 100)


def test_what_is_known_of_a_copy_as_json(kept: Kept, app: object) -> None:
    kept.poll(TEXT)
    kept.now += 60
    kept.poll()
    kept.now += 12.5
    got = asked(app, "/copies/1/_meta")
    told = json.loads(got.body)
    fields = asked(app, "/copies/1").fields
    assert (got.status, got.fields["content-type"]) == (200, "application/json")
    assert read_date(fields["date"]) == datetime.fromisoformat(told["as_of"]).timestamp()
    assert read_date(fields["expires"]) == datetime.fromisoformat(told["expires_at"]).timestamp()
    assert read_date(fields["last-modified"]) == datetime.fromisoformat(told["modified_at"]).timestamp()
    assert f"fresh={told['fresh']:.3f};by={told['fresh_by']}" in fields["replica-status"]
    assert (told["version"], told["hops"], told["via"], told["failures"]) == (1, 1, [], 0)
    assert (told["sha256"], told["bytes"]) == (hashlib.sha256(TEXT).hexdigest(), len(TEXT))
    by_address = asked(app, "/copy/_meta?source=https%3A%2F%2Fa.example%2F0")
    assert json.loads(by_address.body) == told
    assert asked(app, "/copies/1/_meta", "HEAD").body == b""
    assert asked(app, "/copies/1/_meta?max_staleness=PT5S").status == 504
    assert asked(app, "/copies/1/_meta?version=7").status == 404
    assert asked(app, "/copies/2/_meta").status == 404


def test_kept_versions_never_change(kept: Kept, app: object) -> None:
    for text in (b"one", b"two", b"three", b"four"):
        kept.poll(text)
        kept.now += 60
    got = asked(app, "/copies/1?version=2")
    assert (got.status, got.body) == (200, b"two")
    assert got.fields["cache-control"] == "max-age=31536000, immutable"
    assert "expires" not in got.fields
    assert asked(app, "/copies/1?version=2", if_none_match=got.fields["etag"]).status == 304
    gone = asked(app, "/copies/1?version=1")
    assert gone.status == 404
    assert json.loads(gone.body)["detail"] == "version 1 of source 1 is not kept: there are 4, 3, 2"


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/copies/2", 404),
        ("/copies/", 404),
        ("/copies/1/", 404),
        ("/copies/01", 404),
        ("/copies/../1", 404),
        ("/copies/1%2e", 404),
        ("/copies/-1", 404),
        ("/copies/" + "9" * 40, 404),
        ("/copies/١", 404),
        ("/copies/1?maxage=3", 400),
        ("/copies/1?max_age=x", 400),
        ("/nothing", 404),
        ("/copies/1?" + "&".join(f"p{i}=1" for i in range(50)), 400),
    ],
)
def test_refusals_are_problems(kept: Kept, app: object, path: str, status: int) -> None:
    kept.poll(TEXT)
    got = asked(app, path)
    assert got.status == status
    assert got.fields["content-type"] == "application/problem+json"
    assert got.fields["x-content-type-options"] == "nosniff"
    assert json.loads(got.body)["status"] == status


def test_only_reading(kept: Kept, app: object) -> None:
    got = asked(app, "/copies/1", "POST")
    assert (got.status, got.fields["allow"]) == (405, "GET, HEAD")


def test_nothing_yet(kept: Kept, app: object) -> None:
    got = asked(app, "/copies/1")
    assert (got.status, got.fields["retry-after"]) == (503, "1")
    assert asked(app, "/copies/1", cache_control="only-if-cached").status == 503


def test_bounds_from_the_copy_alone(kept: Kept, app: object) -> None:
    kept.poll(TEXT)
    kept.now += 40
    assert asked(app, "/copies/1", cache_control="max-age=40").status == 200
    refused = asked(app, "/copies/1?max_age=39")
    assert (refused.status, refused.fields["retry-after"]) == (504, "21")
    assert refused.fields["replica-status"] == f"as-of=@{START:.0f}, version=1"
    assert json.loads(refused.body)["detail"] == "the copy is as of 40 s ago, max-age allows 39 s"
    assert asked(app, "/copies/1", cache_control="min-fresh=21").status == 504
    assert asked(app, "/copies/1", cache_control="no-cache").status == 504
    assert asked(app, "/copies/1", cache_control="no-cache, stale-if-error=5").status == 200
    assert asked(app, "/copies/1?min_version=1").status == 200
    assert asked(app, "/copies/1?min_version=2").status == 504
    kept.now += 80
    assert asked(app, "/copies/1", cache_control="max-stale=60").status == 200
    assert asked(app, "/copies/1", cache_control="max-stale=59").status == 504
    assert asked(app, "/copies/1", cache_control="no-cache, stale-if-error=5").status == 504
    assert asked(app, "/copies/1", cache_control="max-stale").status == 200


def test_a_browser_s_reload_is_a_wish(kept: Kept, app: object) -> None:
    kept.poll(TEXT)
    kept.now += 40
    assert asked(app, "/copies/1", cache_control="max-age=0").status == 504
    assert asked(app, "/copies/1", cache_control="max-age=0", sec_fetch_mode="navigate").status == 200


class Engine:
    """Polls when it is asked to."""

    def __init__(self, kept: Kept, data: bytes | None = None, *, failed: bool = False, mute: bool = False) -> None:
        self.kept, self.data, self.failed, self.mute, self.asks = kept, data, failed, mute, 0

    async def ask(self, source: int, deadline: float) -> Head | None:
        self.asks += 1
        if self.mute:
            return None
        self.kept.now += 0.3
        await self.hint(source)
        self.kept.poll(self.data, failed=self.failed)
        return Heads(self.kept.shelf).of(source)

    async def hint(self, source: int) -> None:
        self.kept.store.set_due([source], [self.kept.now])


def test_a_bound_is_met_by_one_poll(kept: Kept) -> None:
    kept.poll(TEXT)
    kept.now += 40
    engine = Engine(kept, b"new")
    app = replica(kept.shelf, clock=kept.clock, asker=engine)
    assert asked(app, "/copies/1?max_age=60").body == TEXT
    assert engine.asks == 0
    got = asked(app, "/copies/1", cache_control="max-age=0")
    assert (got.status, got.body, got.fields["age"], engine.asks) == (200, b"new", "0", 1)
    kept.now += 40
    assert asked(app, "/copies/1", cache_control="max-age=10, only-if-cached").status == 504
    assert engine.asks == 1


@pytest.mark.parametrize(("engine", "why"), [({"failed": True}, "the poll for it failed"), ({"mute": True}, "max-age")])
def test_a_poll_that_does_not_help(kept: Kept, engine: dict[str, bool], why: str) -> None:
    kept.poll(TEXT)
    kept.now += 40
    app = replica(kept.shelf, clock=kept.clock, asker=Engine(kept, **engine))
    refused = asked(app, "/copies/1?max_age=10")
    assert refused.status == 504
    assert why in json.loads(refused.body)["detail"]
    stale = asked(app, "/copies/1?max_age=10&stale_if_error=1h")
    assert (stale.status, stale.body) == (200, TEXT)


def test_asking_through_the_store(kept: Kept) -> None:
    """Makes the source due, and waits for what another connection records."""
    kept.poll(TEXT)
    kept.now += 10
    app = replica(kept.shelf, clock=kept.clock, asker=StoreAsker(kept.store, kept.shelf, kept.clock))

    async def play() -> tuple[Got, Got]:
        waiting = [asyncio.ensure_future(ask(app, "/copies/1?max_age=5")) for _ in range(2)]
        while not (claims := kept.store.claim(kept.now, 10, lease=60.0, owner="test")):
            await asyncio.sleep(0.001)
        assert [claim.source for claim in claims] == [1]
        kept.store.give_back("test")
        kept.poll(b"new")
        first, second = await asyncio.gather(*waiting)
        return first, second

    for got in asyncio.run(play()):
        assert (got.status, got.body) == (200, b"new")


def test_asking_gives_up_at_the_deadline(kept: Kept) -> None:
    kept.poll(TEXT)

    async def play() -> Head | None:
        asker = StoreAsker(kept.store, kept.shelf, kept.clock)
        waiting = asyncio.ensure_future(asker.ask(1, START + 5))
        await asyncio.sleep(0.01)
        kept.now = START + 6
        return await waiting

    assert asyncio.run(play()) is None


def test_asking_never_makes_it_worse(kept: Kept) -> None:
    """A hint is idempotent, never makes a source later, and changes nothing that others are told."""
    kept.poll(TEXT, wait=600.0)
    app = replica(kept.shelf, clock=kept.clock, asker=StoreAsker(kept.store, kept.shelf, kept.clock), patience=0.0)
    kept.now += 10
    before = asked(app, "/copies/1").fields
    for _ in range(3):
        refused = asked(app, "/copies/1", cache_control="no-cache")
        assert (refused.status, refused.fields["retry-after"]) == (504, "591")
        (head,) = kept.shelf.heads([1])
        assert head.due == START + 10, "due at once, and once"
        assert asked(app, "/copies/1").fields == before
    kept.now += 5
    asked(app, "/copies/1", cache_control="no-cache")
    (head,) = kept.shelf.heads([1])
    assert head.due == START + 10
    assert int(asked(app, "/copies/1").fields["cache-status"].rpartition("ttl=")[2]) == 585


def test_a_poll_that_was_asked_for_and_failed_puts_nothing_off(kept: Kept) -> None:
    kept.poll(TEXT, wait=600.0)
    kept.now += 10

    async def play() -> Head | None:
        asker = StoreAsker(kept.store, kept.shelf, kept.clock)
        waiting = asyncio.ensure_future(asker.ask(1, START + 100))
        while not (claims := kept.store.claim(kept.now, 10, lease=60.0, owner="test")):
            await asyncio.sleep(0.001)
        assert claims
        kept.store.give_back("test")
        kept.poll(failed=True, wait=7200.0)
        return await waiting

    head = asyncio.run(play())
    assert head is not None
    assert (head.failures, head.due) == (1, START + 600)
    assert kept.shelf.heads([1]) == [head]


@pytest.mark.parametrize(
    "pressed",
    [{"sec_fetch_mode": "navigate"}, {"sec_fetch_mode": "no-cors"}, {"upgrade_insecure_requests": "1"}],
    ids=["a page", "a picture", "a page by plain HTTP"],
)
def test_a_browsers_reload_gets_the_copy_with_a_warning(kept: Kept, pressed: dict[str, str]) -> None:
    kept.poll(TEXT)
    kept.now += 40
    app = replica(kept.shelf, clock=kept.clock, asker=Engine(kept, mute=True))
    for control in ("max-age=0", "no-cache"):
        got = asked(app, "/copies/1", cache_control=control, **pressed)
        assert (got.status, got.body) == (200, TEXT)
        assert got.fields["cache-status"].endswith("; detail=bound-unmet")
        assert asked(app, "/copies/1", cache_control=control, sec_fetch_mode="cors").status == 504


def test_a_failing_source_promises_nothing(kept: Kept, app: object) -> None:
    kept.poll(TEXT)
    kept.now += 60
    kept.poll(failed=True, wait=3600.0)
    got = asked(app, "/copies/1")
    assert got.fields["expires"] == got.fields["date"]
    assert "ttl=-60" in got.fields["cache-status"]
    assert asked(app, "/copies/1?min_fresh=1").status == 504


def test_conditions_against_another_copy(kept: Kept, app: object) -> None:
    kept.poll(TEXT)
    first = asked(app, "/copies/1").fields
    assert asked(app, "/copies/1", if_match=first["etag"]).status == 200
    assert asked(app, "/copies/1", if_match="*").status == 200
    assert asked(app, "/copies/1", if_match=f"W/{first['etag']}").status == 412
    assert asked(app, "/copies/1", if_unmodified_since=first["last-modified"]).status == 200
    kept.now += 60
    kept.poll(b"new")
    assert asked(app, "/copies/1", if_match=first["etag"]).status == 412
    assert asked(app, "/copies/1", if_unmodified_since=first["last-modified"]).status == 412
    assert asked(app, "/copies/1", if_unmodified_since="yesterday").status == 200
    assert asked(app, "/copies/1", if_match="*", if_unmodified_since=first["last-modified"]).status == 200


def test_two_versions_in_one_second_are_told_apart_by_their_tags_only(kept: Kept, app: object) -> None:
    kept.poll(b"one", wait=0.3)
    first = asked(app, "/copies/1").fields
    kept.now += 0.4
    kept.poll(b"two")
    got = asked(app, "/copies/1", if_modified_since=first["last-modified"])
    assert (got.status, got.body) == (200, b"two")
    assert "last-modified" not in got.fields
    assert asked(app, "/copies/1", if_none_match=first["etag"], if_modified_since=first["last-modified"]).status == 200
    assert asked(app, "/copies/1", if_none_match=got.fields["etag"]).status == 304


@pytest.mark.parametrize("media_type", ["text/plain;\x0bx", "text/plain\x1c;a", "text/plain;\na", "a/b; c=\x7f", "ä/b"])
def test_a_media_type_that_is_none_is_not_passed_on(kept: Kept, app: object, media_type: str) -> None:
    kept.poll(TEXT, media_type)
    got = asked(app, "/copies/1")
    assert (got.status, got.fields["content-type"]) == (200, "application/octet-stream")
    assert got.fields["cross-origin-resource-policy"] == "same-origin"


def test_a_request_names_one_host(kept: Kept, app: object) -> None:
    kept.poll(TEXT)

    async def statuses(hosts: list[bytes], version: str) -> list[int]:
        found: list[int] = []

        async def send(message: dict[str, object]) -> None:
            if message["type"] == "http.response.start":
                found.append(message["status"])  # type: ignore[arg-type]

        for path in ("/copies/1", "/healthz"):
            scope = {
                "type": "http",
                "http_version": version,
                "method": "GET",
                "path": path,
                "raw_path": path.encode(),
                "query_string": b"",
                "headers": [(b"host", host) for host in hosts],
            }
            await app(scope, None, send)  # type: ignore[operator]
        return found

    assert asyncio.run(statuses([b"a"], "1.1")) == [200, 200]
    assert asyncio.run(statuses([], "1.0")) == [200, 200]
    assert asyncio.run(statuses([], "1.1")) == [400, 400]
    assert asyncio.run(statuses([b"a", b"a"], "1.1")) == [400, 400]


def test_damaged_bytes_are_not_served(kept: Kept, app: object) -> None:
    kept.poll(TEXT)
    with apsw.Connection(str(kept.store.path)) as db:
        body = bytearray(db.execute("SELECT body FROM contents").get)
        body[-3] ^= 4
        db.execute("UPDATE contents SET body = ?", (bytes(body),))
    for coding in ("", "zstd"):
        got = asked(app, "/copies/1", accept_encoding=coding)
        assert got.status == 500
        assert "damaged" in json.loads(got.body)["detail"]


def test_memory_is_bounded(tmp_path: Path) -> None:
    from unstale.server.copies import Copies

    kept = Kept(tmp_path / "many.db", sources=20)
    kept.poll(bytes(range(256)) * 40)
    copies = Copies(kept.shelf, kept.clock, memory=100_000)
    for _ in range(2):
        for source in kept.ids:
            assert asked(copies, f"/copies/{source}").status == 200
            assert copies._held._kept <= 100_000
            assert copies._held._kept == sum(held.size for held in copies._held._held.values())
    assert 1 < len(copies._held._held) < 20
    kept.close()


def test_requests_of_one_moment_share_a_look(tmp_path: Path) -> None:
    kept = Kept(tmp_path / "many.db", sources=100)
    kept.poll(TEXT)
    app = replica(kept.shelf, clock=kept.clock)
    looks = []
    standing = kept.shelf.columns_of
    kept.shelf.columns_of = lambda sources, width: looks.append(len(sources)) or standing(sources, width)  # type: ignore[method-assign, func-returns-value]

    async def play() -> list[Got]:
        return await asyncio.gather(*(ask(app, f"/copies/{source}") for source in kept.ids))

    assert {got.status for got in asyncio.run(play())} == {200}
    assert looks == [100]
    kept.close()


def test_what_was_polled_again_is_looked_at_some_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Kept(tmp_path / "many.db", 70)
    kept.poll(TEXT)
    app = replica(kept.shelf, clock=kept.clock)
    looks, editions = list[int](), kept.shelf.editions
    monkeypatch.setattr(kept.shelf, "editions", lambda wanted: [looks.append(len(wanted)), editions(wanted)][1])

    async def play() -> list[Got]:
        for source in kept.ids:
            await ask(app, f"/copies/{source}")
        looks.clear()
        kept.now += 60
        kept.poll()
        await ask(app, "/copies/1")
        for _ in range(3):
            await asyncio.sleep(0)
        return [await ask(app, f"/copies/{source}") for source in kept.ids]

    answers = asyncio.run(play())
    assert looks == [32, 32, 6], "nobody waits for all, and nothing is looked at twice"
    assert {(got.status, got.fields["age"], got.body) for got in answers} == {(200, "0", TEXT)}
    kept.close()


def test_new_versions_are_at_hand_before_anybody_asks_for_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Kept(tmp_path / "many.db", 40)
    kept.poll(TEXT)
    app = replica(kept.shelf, clock=kept.clock)
    copies = app.copies

    async def play() -> None:
        for source in kept.ids:
            await ask(app, f"/copies/{source}")
        assert copies.at_hand(1, "", None) is not None
        kept.now += 60
        kept.poll(TEXT + b"!")
        assert copies.at_hand(1, "", None) is None, "its bytes are still packed"
        await asyncio.sleep(0)
        for name in ("editions", "packed", "columns_of"):
            monkeypatch.setattr(kept.shelf, name, None)
        for source in kept.ids:
            reply = await copies.plain(source, "", None)
            assert reply is not None
            assert reply[2].body == TEXT + b"!"
            assert copies.at_hand(source, "", None) == reply

    asyncio.run(play())
    kept.close()


def test_the_same_bytes_may_be_called_something_else(kept: Kept, app: object) -> None:
    kept.poll(TEXT)
    assert asked(app, "/copies/1").fields["content-type"] == "text/plain"
    kept.now += 60
    kept.poll(TEXT, "application/json")
    got = asked(app, "/copies/1")
    assert (got.fields["content-type"], got.fields["age"], got.body) == ("application/json", "0", TEXT)
    assert "version=1," in got.fields["replica-status"]


def test_what_is_large_is_brought_up_when_it_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Kept(tmp_path / "large.db", 2)
    kept.poll(TEXT)
    monkeypatch.setattr("unstale.server.held.LARGE", len(TEXT))
    app = replica(kept.shelf, clock=kept.clock)
    for source in kept.ids:
        asked(app, f"/copies/{source}")
    kept.now += 60
    kept.poll(TEXT + b"!")
    read, packed = list[int](), kept.shelf.packed
    monkeypatch.setattr(kept.shelf, "packed", lambda source, version: [read.append(source), packed(source, version)][1])
    assert asked(app, "/copies/1").body == TEXT + b"!"
    assert read == [1]
    kept.close()
