"""Peers: what is newer is taken, what is not so is found out, and nobody sends more than their share."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from unstale.adapters.sqlite_store import SqliteStore
from unstale.engine.claim_now import claim_now
from unstale.engine.peer_terms import MOST, PeerTerms
from unstale.engine.peers import BAN, OVERLAP, PATIENCE, REST, Peers
from unstale.engine.store_executor import StoreExecutor
from unstale.errors import InputError
from unstale.keeper.outcomes import Answer
from unstale.ports import Body, Digest, Entry, Fetched, Listing

START = 1_763_236_800.0
A, B = "https://a.example/", "https://b.example/"


def digest_of(data: bytes) -> bytes:
    return sha256(data).digest()


class Told:
    """A peer that says what the test wants: copies by address, as of when, and what is announced for them."""

    def __init__(self) -> None:
        self.copies: dict[str, tuple[float, bytes]] = {}
        self.announced: dict[str, bytes] = {}
        self.later: dict[str, float] = {}
        self.answer: Digest | None = None
        self.clock_off = 0.0
        self.asked: list[tuple[str, float]] = []
        self.back: list[str] = []
        self.fetched: list[str] = []
        self.now = START
        self.size = 100

    async def digest(self, peer: str, since: float, after: int, back: str = "") -> Digest:
        self.asked.append((peer, since))
        self.back.append(back)
        rows = tuple(
            (address, as_of, self.announced.get(address, digest_of(data)))
            for address, (as_of, data) in self.copies.items()
        )
        return self.answer or Digest(rows, self.now + self.clock_off, None, self.size)

    async def copy(self, peer: str, source: str, since: float) -> Fetched:
        self.fetched.append(source)
        as_of, data = self.copies[source]
        return Fetched(Answer.CHANGED, self.later.get(source, as_of), body=data, received=self.size, via="peer")


class Clock:
    def __init__(self, peering: Told) -> None:
        self._peering = peering

    def now(self) -> float:
        return self._peering.now

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0)


class Scene:
    """A store with two copies, taken at the start, and one peer."""

    def __init__(self, path: Path, **config: Any) -> None:
        self.store = SqliteStore(path)
        self.ids = self.store.add([Listing(A), Listing(B)], START)
        self.record(b"old", START - 200)
        self.record(b"ours", START)
        self.peering, self.news, self.events = Told(), [], []  # type: ignore[var-annotated]
        executor = StoreExecutor(lambda: self.store, threads=False)
        names = config.pop("peers", ("http://p",))
        # A share fills from when they begin.
        self.peering.now = START - config.pop("before", 10.0)
        self.peers = Peers(
            PeerTerms(names, 1.0, **config),
            self.peering,
            executor,
            self.accept,
            Clock(self.peering),
            rng=np.random.default_rng(1),
            tell=lambda *event: self.events.append(event),
        )
        self.peering.now = START

    def record(self, data: bytes, at: float) -> None:
        claims = self.store.claim(START, 10, lease=60.0, owner="t")
        entries = [
            Entry(c, Answer.CHANGED, at, START - 1 if at < START else START + 500, body=Body(data)) for c in claims
        ]
        assert all(self.store.record(entries))

    async def accept(self, news: Sequence[tuple[int, Fetched]]) -> int:
        self.news += news
        return len(news)

    def contact(self) -> int:
        return asyncio.run(self.peers.contact())

    @property
    def peer(self) -> Any:
        return next(iter(self.peers.peers.values()))


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path / "store.db")


def test_only_what_is_newer_is_fetched(scene: Scene) -> None:
    scene.peering.copies = {A: (START + 5, b"news"), B: (START - 5, b"other"), "https://c.example/": (START, b"c")}
    assert scene.contact() == 1
    ((source, fetched),) = scene.news
    assert (source, fetched.body, fetched.polled_at) == (scene.ids[0], b"news", START + 5)
    assert scene.peering.fetched == [A]
    assert (scene.peer.taken, scene.peer.received, scene.peer.in_row) == (1, 200, 0)


def test_a_newer_look_at_the_same_bytes_needs_no_body(scene: Scene) -> None:
    scene.peering.copies = {A: (START + 5, b"ours")}
    assert scene.contact() == 1
    ((_, fetched),) = scene.news
    assert (fetched.answer, fetched.polled_at, fetched.body) == (Answer.UNCHANGED, START + 5, None)
    assert (scene.peering.fetched, scene.peer.confirmed) == ([], 1)


def test_the_next_digest_overlaps_the_last(scene: Scene) -> None:
    scene.contact()
    scene.peering.now += 100
    scene.contact()
    assert [since for _, since in scene.peering.asked] == [-OVERLAP, START - OVERLAP]


def test_another_hash_than_announced_is_a_lie(scene: Scene) -> None:
    scene.peering.copies = {A: (START + 1, b"news")}
    scene.peering.announced = {A: bytes(32)}
    assert (scene.contact(), scene.news) == (0, [])
    (event,) = scene.events
    assert event == (
        "peer_dropped",
        {"peer": "http://p", "for": BAN, "reason": f"its copy of {A} has another SHA-256 than it announced"},
    )
    scene.contact()
    assert len(scene.peering.asked) == 1, "a liar is not asked again"
    scene.peering.now += BAN + 1
    scene.contact()
    assert len(scene.peering.asked) == 2
    assert scene.peers.view()[0]["bans"] == 2


def test_a_copy_that_became_newer_meanwhile_is_no_lie_and_comes_next_time(scene: Scene) -> None:
    scene.peering.copies, scene.peering.announced = {A: (START + 1, b"news")}, {A: bytes(32)}
    scene.peering.later = {A: START + 2}
    assert (scene.contact(), scene.events) == (0, [])
    scene.peering.announced, scene.peering.later = {}, {}
    scene.contact()
    assert len(scene.news) == 1


def test_old_content_under_a_new_time_goes_to_the_source_and_three_are_a_lie(scene: Scene) -> None:
    scene.peering.copies = {A: (START + 1, b"old")}
    for i in range(PATIENCE):
        assert (scene.peer.bans, scene.contact()) == (0, 0), i
    assert scene.news == []
    assert scene.store.fleet(1).due.tolist()[0] == START, "the source itself is asked at once"
    assert scene.peer.bans == 1
    assert "old copies as new ones" in scene.peer.reason


@pytest.mark.parametrize(
    ("change", "event", "reason"),
    [
        ({"copies": {A: (START + 60, b"x")}}, "peer_dropped", "from the future"),
        ({"answer": Digest(reason="flood", false=True)}, "peer_dropped", "flood"),
        ({"answer": Digest(reason="no answer")}, "peer_failed", "no answer"),
        ({"clock_off": 30.0}, "peer_failed", "its clock is +30 s off ours"),
    ],
)
def test_what_else_may_be_wrong(scene: Scene, change: dict[str, Any], event: str, reason: str) -> None:
    for name, value in change.items():
        setattr(scene.peering, name, value)
    assert (scene.contact(), scene.news) == (0, [])
    ((name, facts),) = scene.events
    assert name == event
    assert reason in facts["reason"]
    assert facts["for"] == (BAN if event == "peer_dropped" else REST)


def test_failures_in_a_row_double_the_rest(scene: Scene) -> None:
    scene.peering.answer = Digest(reason="no")
    for i in range(4):
        scene.contact()
        assert scene.peer.resting - scene.peering.now == REST * 2**i
        scene.peering.now = scene.peer.resting


def test_who_has_had_its_share_waits(tmp_path: Path) -> None:
    scene = Scene(tmp_path / "store.db", share=10.0, before=0.0)
    scene.peering.size = 1000
    assert scene.contact() == 0
    assert scene.peering.asked == [], "nothing may be spent yet"
    scene.peering.now += 10
    scene.contact()
    for _ in range(50):
        scene.peering.now += 1
        scene.contact()
    assert len(scene.peering.asked) == 1, "a kilobyte is owed for a hundred seconds at ten bytes a second"
    scene.peering.now += 60
    scene.contact()
    assert len(scene.peering.asked) == 2


def test_as_many_are_asked_as_told_all_of_them_in_time(tmp_path: Path) -> None:
    scene = Scene(tmp_path / "store.db", peers=("http://p", "http://q", "http://r"), asked=2)
    scene.peering.size = 0
    scene.peering.now += 10
    for i in range(1, 31):
        scene.contact()
        assert len(scene.peering.asked) == 2 * i
        assert len({peer for peer, _ in scene.peering.asked[-2:]}) == 2
    assert {peer for peer, _ in scene.peering.asked} == {"http://p", "http://q", "http://r"}


def test_terms_are_checked() -> None:
    with pytest.raises(InputError, match="ask 2 must be from 1 to 1, the number of peers: ask fewer"):
        PeerTerms(("http://p",), 1.0, 2)


def test_seizing_takes_just_these_and_leaves_due_times(scene: Scene) -> None:
    store = scene.store
    (third,) = store.add([Listing("https://c.example/")], START)
    (busy,) = store.claim(START + 1, 1, lease=60.0, owner="t")
    assert busy.source == third
    a, _ = scene.ids
    claims = claim_now(store, [a, third], START + 1, lease=60.0, owner="t")
    assert [(claim.source, due) for claim, due in claims] == [(a, START + 500)]
    assert store.claim(START + 50, 9, lease=60.0, owner="t") == [], "the other one still waits"
    assert store.fleet(1).due.tolist()[2] == START


def test_whoever_is_asked_asks_back_once_and_only_peers(tmp_path: Path) -> None:
    scene = Scene(tmp_path / "a.db", here="http://me")
    scene.peering.copies = {A: (START + 1, b"new")}
    scene.contact()
    assert scene.peering.back == ["http://me"]
    assert asyncio.run(scene.peers.asked_by("http://p")) == 1
    # a question in turn asks for none
    assert scene.peering.back == ["http://me", ""]
    assert asyncio.run(scene.peers.asked_by("http://stranger")) == 0
    assert len(scene.peering.back) == 2


def test_peers_heard_of_come_and_go_with_the_lists(tmp_path: Path) -> None:
    scene = Scene(tmp_path / "a.db", peers=())
    assert (scene.contact(), scene.peering.asked) == (0, [])
    scene.peers.heard(A, ["http://p", "http://q"])
    scene.peers.heard(B, ["http://p"])
    for _ in range(30):
        scene.contact()
    assert {peer for peer, _ in scene.peering.asked} == {"http://p", "http://q"}
    scene.peers.heard(A, ["http://r"])
    assert set(scene.peers.peers) == {"http://p", "http://r"}, "one list still names p"
    scene.peers.heard(B, [])
    assert set(scene.peers.peers) == {"http://r"}


def test_who_is_named_in_the_settings_stays_and_so_does_a_liar(tmp_path: Path) -> None:
    scene = Scene(tmp_path / "a.db", peers=("http://p",))
    scene.peers.heard(A, ["http://p", "http://liar"])
    scene.peers.peers["http://liar"].bans = 1
    scene.peers.heard(A, [])
    assert set(scene.peers.peers) == {"http://p", "http://liar"}
    scene.peers.heard(A, [f"http://{i}" for i in range(MOST + 9)])
    assert len(scene.peers.peers) == MOST


def test_recent_peers_are_asked_only_for_what_they_polled_last(tmp_path: Path) -> None:
    scene = Scene(tmp_path / "a.db", peers=(), choose="recent")
    scene.peering.copies = {A: (START + 1, b"a"), B: (START + 1, b"b")}
    scene.peers.heard(A, ["http://p", "http://q"])
    scene.peers.heard(B, ["http://q", "http://p"])
    assert scene.contact() == 2
    assert sorted(scene.peering.asked) == [("http://p", -OVERLAP), ("http://q", -OVERLAP)]
    assert sorted(source for source, _ in scene.news) == scene.ids
    scene.peers.heard(B, ["http://p"])
    scene.news.clear()
    scene.contact()
    # what it holds of sources that it was not asked for is not known: everything is asked for again
    assert scene.peering.asked[2:] == [("http://p", -OVERLAP)]


def test_another_is_asked_for_one_who_is_gone(tmp_path: Path) -> None:
    scene = Scene(tmp_path / "a.db", peers=("http://p", "http://q", "http://r"))
    scene.peering.answer = Digest(reason="no answer")
    scene.contact()
    assert len(scene.peering.asked) == 2, "one and, as it fails, one more"
