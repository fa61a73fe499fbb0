"""Receivers that are set up in a browser: secrets sealed, templates bounded, taken up by an engine that runs."""

from __future__ import annotations

import asyncio
import email
import email.policy
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from support.asgi import Kept
from unstale.adapters.apprise_sink import AppriseSink
from unstale.adapters.event_words import in_words
from unstale.adapters.news_template import NewsTemplate, facts_of, filled_in
from unstale.adapters.sandbox import Sandbox
from unstale.adapters.sealing import SEALED, opened, seal
from unstale.cli import live_telling
from unstale.cli.live_telling import LiveTelling
from unstale.cli.settings import Server, Settings
from unstale.cli.sinks import ReceiverTrials, Unready, set_up
from unstale.cli.telling import Receiver
from unstale.engine.clock import SystemClock
from unstale.engine.config import EngineConfig
from unstale.engine.host_limits import Rules
from unstale.engine.sink import Sink
from unstale.engine.store_executor import StoreExecutor
from unstale.errors import InputError
from unstale.ports import Event
from unstale.service import FleetService
from unstale.service.receivers import RECEIVERS, NewsReceiver, kept_receivers, read_receivers
from unstale.service.service_settings import ServiceSettings

KEY = "0123456789abcdef" * 2
CHAT = NewsReceiver("chat", "notify", "json://127.0.0.1:9/my-secret")
EVENT = Event(7, 3, "https://a/", 2, 1e9, b"", "Trains", ("t",), (("+", "{{ 7*7 }} @all"),), False, "http://there/")


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("THE_KEY", KEY)
    return replace(Settings(), server=replace(Server(), key="$THE_KEY"))


def test_an_address_is_sealed_and_opened_with_its_key_alone(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = ReceiverTrials(settings).checked(CHAT)
    assert kept.address.startswith(SEALED)
    assert b"my-secret" not in kept_receivers([kept])
    assert opened(kept.address, KEY) == CHAT.address
    assert seal("x", KEY) != seal("x", KEY)
    monkeypatch.setenv("THE_KEY", "another key of more than 32 letters")
    _, sink = set_up(kept, settings, Sandbox(processes=1))
    assert isinstance(sink, Unready)
    assert "my-secret" not in sink.reason
    assert asyncio.run(sink.tell([EVENT]))[0] == 0, "what is for it waits"


@pytest.mark.parametrize(
    "said",
    [
        replace(CHAT, via="command", address="$PATH"),
        replace(CHAT, via="log", address="$PATH"),
        replace(CHAT, address="no address of a service"),
        replace(CHAT, address="$NOBODY_SET_THIS"),
        replace(CHAT, hours=("whenever",)),
        replace(CHAT, text="{% for"),
        replace(CHAT, text="{{ nothing_of_ours }}"),
        replace(CHAT, text="{{ ''.__class__ }}{{ title.__init__.__globals__ }}"),
        replace(CHAT, title="x" * 5000),
        replace(CHAT, via="webhook", address="ftp://example.org/"),
    ],
)
def test_what_could_never_be_told_is_refused(settings: Settings, said: NewsReceiver) -> None:
    with pytest.raises(InputError) as refused:
        ReceiverTrials(settings).checked(said)
    assert "my-secret" not in str(refused.value)


def test_without_a_key_a_secret_is_refused_and_a_name_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match=r"set server\.key"):
        ReceiverTrials(Settings()).checked(CHAT)
    monkeypatch.setenv("CHAT", CHAT.address)
    named = replace(CHAT, address="$CHAT")
    assert ReceiverTrials(Settings()).checked(named) == named


def test_what_strangers_wrote_is_no_template() -> None:
    made = filled_in("{{ title }}", "{% for c in lines %}{{ c.line }}{% endfor %} {{ link }}", facts_of([EVENT]))
    assert made == ["Trains", "{{ 7*7 }} @\u200ball http://there/"]


@pytest.mark.parametrize(
    "text",
    [
        "{% set a = 'x' * 4000 %}" + "{% set a = a ~ a %}" * 60 + "{{ a|length }}",
        "{% macro m() %}{{ m() }}{{ m() }}{% endmacro %}{{ m() }}",
        "{{ '%1000000000s' % 1 }}{{ 9 ** 9 ** 9 }}",
        "{{ [1, 2][9] }}{{ 1 / 0 }}",
    ],
)
def test_a_template_without_end_is_ended_and_the_news_are_told_all_the_same(text: str) -> None:
    async def worded() -> tuple[str, str]:
        aside = Sandbox(quick=0.5, slow=1.0, processes=1)
        try:
            return await NewsTemplate(text=text).words([EVENT], aside)
        finally:
            await aside.close()

    title, body = asyncio.run(worded())
    assert (title, body) == in_words([EVENT])


class Ear:
    """Hears under a name, and takes all."""

    batch, width = 10, 1

    def __init__(self, name: str, heard: list[tuple[str, int]]) -> None:
        self.name, self._heard = name, heard

    async def tell(self, events: Sequence[Event]) -> tuple[int, str]:
        self._heard += [(self.name, event.number) for event in events]
        return len(events), ""

    async def close(self) -> None:
        pass


def test_a_running_engine_takes_up_who_is_to_be_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_telling, "LOOK", 0.02)
    kept, heard = Kept(tmp_path / "s.db", 1), list[tuple[str, int]]()

    def say(*names: str) -> None:
        kept.store.record([], settings={RECEIVERS: kept_receivers([replace(CHAT, name=name) for name in names])})

    def made(said: Sequence[NewsReceiver]) -> list[Sink]:
        return [Ear(one.name, heard) for one in said]

    async def walk() -> None:
        telling = LiveTelling(StoreExecutor(lambda: kept.store, quick=True), made, SystemClock())
        stop = asyncio.Event()
        task = asyncio.create_task(telling.run(stop))
        for names, body in ((("a",), b"1"), (("a", "b"), b"2"), (("b",), b"3")):
            say(*names)
            while set(names) != {one.name for one in telling._deliveries._sinks}:
                await asyncio.sleep(0.01)
            kept.now += 100.0
            kept.poll(body)
            telling.nudge()
            await asyncio.sleep(0.1)
        stop.set()
        await task

    say("a")
    asyncio.run(walk())
    # The store numbers events from 1; who comes later hears of what is recorded from then on.
    assert heard == [("a", 1), ("a", 2), ("b", 2), ("b", 3)]
    kept.close()


def test_nothing_that_changes_after_a_receiver_was_saved_is_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever polls hears of the receiver when the change is long recorded, and is told of others at the same time."""
    monkeypatch.setattr(live_telling, "LOOK", 0.02)
    kept, heard = Kept(tmp_path / "s.db", 1), list[tuple[str, int]]()
    terms = ServiceSettings(EngineConfig(1.0), lambda name: Rules(), file="", changed_at=lambda: 0.0)
    service = FleetService(kept.store, terms, writing=lambda: kept.store)

    class Between(StoreExecutor[Any]):
        """Somebody saves a receiver after it was read who is told, and before that is written down."""

        async def insist(self, work: Any, stop: asyncio.Event) -> Any:
            read = kept.store.setting

            def late(name: str) -> bytes:
                said = read(name)
                if name == RECEIVERS and len(read_receivers(said)) == 2:
                    patched.setattr(kept.store, "setting", read)
                    service.save_receivers([*read_receivers(said), replace(CHAT, name="c")])
                    changed()
                return said

            with monkeypatch.context() as patched:
                patched.setattr(kept.store, "setting", late)
                return await super().insist(work, stop)

    def changed() -> None:
        kept.now += 100.0
        kept.poll(b"%f" % kept.now)

    def made(said: Sequence[NewsReceiver]) -> list[Sink]:
        return [Ear(one.listener, heard) for one in said]

    async def walk() -> None:
        telling = LiveTelling(Between(lambda: kept.store, quick=True), made, SystemClock())
        stop = asyncio.Event()
        task = asyncio.create_task(telling.run(stop))
        await asyncio.sleep(0)
        service.save_receivers([replace(CHAT, name="a"), replace(CHAT, name="b")])
        changed()
        while len(telling._deliveries._sinks) < 3 or len(heard) < 5:
            await asyncio.sleep(0.01)
        stop.set()
        await task

    asyncio.run(asyncio.wait_for(walk(), 20.0))
    assert sorted(heard) == [("news a", 1), ("news a", 2), ("news b", 1), ("news b", 2), ("news c", 2)]
    kept.close()


def test_one_is_told_of_the_sources_and_the_tags_that_it_names(settings: Settings) -> None:
    one, _ = set_up(replace(CHAT, tags=("t",), sources=("https://a/",)), settings, Sandbox(processes=1))
    receiver = Receiver(Ear("x", []), one, None, lambda claim: None, Sandbox(processes=1), "")  # type: ignore[arg-type]
    other = replace(EVENT, address="https://b/")
    assert [receiver._concerned(event, tags) for event, tags in ((EVENT, ()), (other, ("t",)), (other, ("u",)))] == [
        True,
        True,
        False,
    ]
    assert read_receivers(kept_receivers([replace(CHAT, sources=("https://a/",))]))[0].sources == ("https://a/",)
    before = json.loads(kept_receivers([CHAT]))
    del before[0]["sources"]
    assert read_receivers(json.dumps(before).encode()) == [CHAT], "one that was saved before there were sources"


async def _mail(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, got: list[bytes]) -> None:
    """As much of SMTP as a mail needs; what was said in envelope and data."""
    writer.write(b"220 here\r\n")
    body: bytes | None = None
    while line := await reader.readline():
        if body is None:
            got.append(line)
            body = b"" if line.upper().startswith(b"DATA") else None
            writer.write(b"354 go on\r\n" if body is not None else b"250 fine\r\n")
            if line.upper().startswith(b"QUIT"):
                break
        elif line == b".\r\n":
            got.append(body)
            body = None
            writer.write(b"250 fine\r\n")
        else:
            body += line
    writer.close()


@pytest.mark.parametrize(("title", "text"), [("", ""), ("{{ title }}", "{% for c in lines %}{{ c.line }}{% endfor %}")])
def test_what_strangers_wrote_is_no_header_no_command_and_no_markup_in_a_mail(title: str, text: str) -> None:
    pytest.importorskip("apprise")
    evil = "Trains\r\nBcc: all@example.org\r\n\r\n<script>alert(1)</script>\u202e" + "x" * 8000
    line = "\r\n.\r\nMAIL FROM:<e@example.org>\r\n<img src=x onerror=alert(1)> javascript:alert(1) @all {{ 7*7 }}"
    event = replace(EVENT, title=evil, lines=(("+", line),))
    got: list[bytes] = []

    async def sent() -> tuple[int, str]:
        server = await asyncio.start_server(lambda r, w: _mail(r, w, got), "127.0.0.1", 0)
        place, aside = f"127.0.0.1:{server.sockets[0].getsockname()[1]}", Sandbox(processes=1)
        words = (lambda events: NewsTemplate(title, text).words(events, aside)) if title else None
        ways = "from=a@x.example&to=b@x.example&smtp=127.0.0.1&mode=insecure"
        try:
            return await AppriseSink(f"mailto://{place}?{ways}", words=words).tell([event])
        finally:
            server.close()
            await aside.close()

    assert asyncio.run(sent()) == (1, "")
    commands = [one.split(b" ")[0].strip().lower() for one in got if len(one) < 200]
    assert commands == [b"ehlo", b"mail", b"rcpt", b"data", b"quit"]
    mail = email.message_from_bytes(next(one for one in got if len(one) >= 200), policy=email.policy.default)
    assert {"Bcc", "Cc"}.isdisjoint(mail.keys())
    assert mail.get_content_type() == "text/plain", "nothing is markup"
    assert len(str(mail["Subject"])) < 200
    assert "\u202e" not in str(mail["Subject"])
    said = mail.get_content()
    assert "{{ 7*7 }}" in said, "what it wrote is no template"
    assert "@all" not in said
    assert "<img" not in said


def test_what_cannot_be_read_is_nobody() -> None:
    for kept in (b"", b"{", b"7", b'[{"name": "x"}]', json.dumps([{"odd": 1}]).encode()):
        assert read_receivers(kept) == []
