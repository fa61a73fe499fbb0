"""Who is told what: first copies only if asked, by tag, described, at hours, and never what does not count."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import pytest

from support.asgi import Kept
from unstale.adapters.event_words import harmless, in_words
from unstale.calendar import parse_hours
from unstale.cli.compose import content_of
from unstale.cli.settings import OnChange, Settings
from unstale.cli.sinks import ReceiverTrials
from unstale.cli.telling import Receiver, receivers
from unstale.ports import Event

T = TypeVar("T")
P = ParamSpec("P")


@dataclass
class Ear:
    """A sink that remembers, and takes as many as it wants to."""

    heard: list[Event] = field(default_factory=list)
    takes: int = 1000
    name: str = "ear"
    batch: int = 10
    width: int = 5

    async def tell(self, events: Sequence[Event]) -> tuple[int, str]:
        taken = events[: self.takes]
        self.heard += taken
        return len(taken), "" if len(taken) == len(events) else "enough"

    async def close(self) -> None:
        pass


class Near:
    """Runs what others run aside."""

    async def run(self, work: Callable[P, T], *args: P.args, **more: P.kwargs) -> T:
        return work(*args, **more)

    async def close(self) -> None:
        pass


@dataclass
class Turn:
    """The store, in turn."""

    store: Any

    async def do(self, work: Callable[[Any], T]) -> T:
        return work(self.store)


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Kept]:
    kept = Kept(tmp_path / "s.db", 2)
    kept.store.subscribe(["ear"])
    kept.poll(b"<p>Nine trains</p><p class=clock>1</p>", "text/html")
    kept.now += 100.0
    kept.poll(b"<p>Eight trains</p><p class=clock>2</p>", "text/html")
    yield kept
    kept.close()


def tell(kept: Kept, ear: Ear, **said: Any) -> tuple[int, str]:
    one = replace(OnChange(), **said)
    made = Receiver(ear, one, Turn(kept.shelf), content_of, Near(), "http://base")
    return asyncio.run(made.tell(kept.store.events("ear", 100)))


def said_of(kept: Kept, source: int, **said: Any) -> None:
    (one,) = kept.shelf.listings([source])
    kept.store.add([replace(one, **said)], kept.now, duplicates="replace")


def test_changes_are_described_and_first_copies_are_none(kept: Kept) -> None:
    said_of(kept, 1, options={"title": "Trains", "tags": ["a", "b"]})
    ear = Ear()
    assert tell(kept, ear) == (4, "")
    assert [(one.source, one.version) for one in ear.heard] == [(1, 2), (2, 2)]
    first = ear.heard[0]
    assert (first.title, first.tags, first.link) == ("Trains", ("a", "b"), "http://base/#/sources/1?new=2")
    assert first.lines == (("-", "Nine trains"), ("-", "1"), ("+", "Eight trains"), ("+", "2"))
    assert not first.more


def test_first_copies_are_told_to_who_asks(kept: Kept) -> None:
    ear = Ear()
    assert tell(kept, ear, first=True) == (4, "")
    assert [one.first for one in ear.heard] == [True, True, False, False]


def test_only_of_a_tag(kept: Kept) -> None:
    said_of(kept, 2, options={"tags": ["news"]})
    ear = Ear()
    tell(kept, ear, tags=("news", "other"))
    assert [one.source for one in ear.heard] == [2]


def test_what_does_not_count_now_is_not_told(kept: Kept) -> None:
    kept.now += 100.0
    kept.poll(b"<p>Eight trains</p><p class=clock>3</p>", "text/html")
    said_of(kept, 1, options={"normalise": {"selectors": [".clock"]}})
    ear = Ear()
    assert tell(kept, ear) == (6, "")
    assert [(one.source, one.version) for one in ear.heard] == [(1, 2), (2, 2), (2, 3)]


def test_a_trigger_is_told_in_its_direction_alone(kept: Kept) -> None:
    for source, word in ((1, "eight"), (2, "nine")):
        said_of(kept, source, options={"triggers": {"appear": [word]}})
    ear = Ear()
    assert tell(kept, ear) == (4, "")
    assert [one.source for one in ear.heard] == [1], "nine trains became eight: eight appeared, nine vanished"


def test_how_many_were_taken_counts_those_that_were_not_wanted(kept: Kept) -> None:
    assert tell(kept, Ear(takes=0)) == (2, "enough"), "two first copies stand before the first that failed"
    assert tell(kept, Ear(takes=1)) == (3, "enough")
    assert tell(kept, Ear(takes=1), tags=("nobody's",)) == (4, "")


def test_a_source_that_is_gone_is_told_of_plainly(kept: Kept) -> None:
    events = kept.store.events("ear", 100)
    kept.store.remove([1])
    ear = Ear()
    made = Receiver(ear, OnChange(), Turn(kept.shelf), content_of, Near(), "")
    assert asyncio.run(made.tell(events)) == (4, "")
    assert [(one.source, one.title, one.link) for one in ear.heard] == [(1, "", ""), (2, "", "")]


def test_hours_are_waited_for(kept: Kept) -> None:
    one = replace(OnChange(), hours=parse_hours("08:00-08:10 Mon"))
    made = Receiver(Ear(), one, Turn(kept.shelf), content_of, Near(), "")
    monday = 1_763_366_400.0  # Monday, 17 November 2025, 08:00 UTC
    assert made.until(monday) == monday
    assert made.until(monday + 599.0) == monday + 599.0
    assert made.until(monday + 600.0) == monday + 7 * 86400.0
    assert made.until(monday - 1.0) == monday
    assert (made.width, made.batch) == (1, 10)
    plain = Receiver(Ear(), OnChange(), Turn(kept.shelf), content_of, Near(), "")
    assert (plain.until(5.0), plain.width) == (5.0, 5)


@pytest.mark.parametrize(
    ("wrote", "said"),
    [
        ("a\r\nBcc: all@example.org", "a Bcc: all@\u200bexample.org"),
        ("<!channel> <@U123> @everyone", "<\u200b!channel> <\u200b@\u200bU123> @\u200beveryone"),
        ("\x1b[31mred\x00\u202e\u2066", "[31mred"),
        ("x" * 500, "x" * 99 + "…"),
        ("{{ 7 * 7 }} $HOME `id`", "{{ 7 * 7 }} $HOME `id`"),
    ],
)
def test_nothing_a_stranger_wrote_means_anything_to_a_chat(wrote: str, said: str) -> None:
    assert harmless(wrote, 100) == said
    event = Event(1, 1, "https://a/", 2, 0.0, b"", title=wrote, lines=(("+", wrote),))
    title, body = in_words([event])
    assert "\n" not in title
    assert "@e" not in title + body
    assert body.count("\n") == 1


def test_every_receiver_is_made_and_can_be_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("apprise")
    monkeypatch.setenv("CHAT", "json://127.0.0.1:9/secret")
    log, hook = {"log": str(tmp_path / "l")}, {"webhook": "http://127.0.0.1:9/"}
    ways: tuple[dict[str, Any], ...] = (log, {"command": ("true",)}, hook, {"notify": "$CHAT"})
    settings = replace(Settings(), on_change=tuple(replace(OnChange(), **way) for way in ways))
    names = [one.name for one in receivers(settings, Turn(None), content_of, Near())]
    tested = ReceiverTrials(settings)
    assert tested.names() == names
    assert [name.split()[0] for name in names] == ["log", "command", "webhook", "notify"]
    assert "secret" not in "".join(names)
    assert asyncio.run(tested.tell(0, 1e9)) == ""
    assert b"A test of Unstale" in (tmp_path / "l").read_bytes()
    assert "did not take it" in asyncio.run(tested.tell(3, 1e9))
    broken = replace(settings, on_change=(replace(OnChange(), notify="$NOBODY_SET_THIS"),))
    assert "NOBODY_SET_THIS" in ReceiverTrials(broken).names()[0]
