"""The ways to those who are told: from the settings file, or set up in a browser; and a test of each.

Rules of this file:
1. Who may change things in a browser runs no command and writes no file: what is set up there is a message or a post.
2. A secret is opened where it is used, and shows nowhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from unstale.adapters.addresses import Gate
from unstale.adapters.environment import filled
from unstale.adapters.news_template import NewsTemplate
from unstale.adapters.sandbox import Sandbox
from unstale.adapters.sealing import SEALED, opened, seal
from unstale.cli import forms
from unstale.cli.fetchers import agent
from unstale.cli.settings import OnChange, Settings
from unstale.engine.sink import Sink
from unstale.errors import InputError, UnstaleError, require, sentence
from unstale.ports import Aside, Event
from unstale.service.receivers import NewsReceiver

#: how those who are set up in a browser may be told
WAYS = ("notify", "webhook")


class Unready:
    """A sink that cannot be made as things are: it takes nothing, and says why."""

    batch, width = 1, 1

    def __init__(self, name: str, reason: str) -> None:
        self.name, self.reason = name, reason

    async def tell(self, events: Sequence[Event]) -> tuple[int, str]:
        """Nothing is taken."""
        return 0, f"{self.name}: {self.reason}"

    async def close(self) -> None:
        """Nothing to give back."""


def sink_of(one: OnChange, settings: Settings, aside: Aside | None = None, address: str | None = None) -> Sink:
    """The way to one of them, at the address that its settings name unless it is given."""
    if one.log:
        from unstale.adapters.log_sink import LogSink

        return LogSink(one.log)
    if one.command:
        from unstale.adapters.command_sink import CommandSink

        return CommandSink(one.command)
    place = filled(one.notify or one.webhook) if address is None else address
    if one.notify:
        from unstale.adapters.apprise_sink import AppriseSink, Words

        template = NewsTemplate(one.title, one.text)
        template.check()
        words: Words | None = None
        if template and aside is not None:
            beside = aside
            words = lambda events: template.words(events, beside)  # noqa: E731
        return AppriseSink(place, together=bool(one.hours), words=words)
    from unstale.adapters.webhook import Webhook

    gate, trusted = Gate(settings.http.allow_networks), settings.http.ca_file
    return Webhook(place, gate, secret=filled(one.secret), agent=agent(settings), ca_file=trusted)


def set_up(said: NewsReceiver, settings: Settings, aside: Aside) -> tuple[OnChange, Sink]:
    """A receiver that was set up in a browser, and the way to it; one that takes nothing if it cannot be made."""
    one = replace(OnChange(), first=said.first, tags=said.tags, sources=said.sources, title=said.title, text=said.text)
    try:
        require(said.via in WAYS, "receiver", repr(said.via[:20]), "is no way to tell", f"choose {' or '.join(WAYS)}")
        hours, place = forms.windows("hours", list(said.hours)), said.address
        one = (
            replace(one, hours=hours, notify=place)
            if said.via == "notify"
            else replace(one, hours=hours, webhook=place)
        )
        return one, sink_of(one, settings, aside, _address(said.address, settings))
    except UnstaleError as error:
        return one, Unready(said.listener, str(error))


def _address(said: str, settings: Settings) -> str:
    return opened(said, filled(settings.server.key)) if said.startswith(SEALED) else filled(said)


class ReceiverTrials:
    """Everybody who is told, by name, to be tried out and set up from a browser. `more` are those of the store.

    Keeps the contract `unstale.server.dashboard.receivers.KnownReceivers`.
    """

    def __init__(self, settings: Settings, more: Callable[[], Sequence[NewsReceiver]] = lambda: ()) -> None:
        self._settings, self._more = settings, more

    def names(self) -> list[str]:
        """Who they are; what keeps one from being told is said in place of its name."""
        return [
            sink.reason if isinstance(sink, Unready) else sink.name
            for sink in map(self._made, self._settings.on_change)
        ]

    async def tell(self, place: int, at: float) -> str:
        """Tell one of them that this is a test; why it was not taken, or nothing."""
        home, own, aside = self._settings.server.address.rstrip("/"), self._settings.on_change, Sandbox(processes=1)
        lines = (("-", "before"), ("+", "after"))
        event = Event(0, 0, "https://example.org/", 2, at, b"\0" * 32, "A test of Unstale", (), lines, False, home)
        if place < len(own):
            sink = self._made(own[place], aside)
        else:
            _, sink = set_up(self._more()[place - len(own)], self._settings, aside)
        try:
            return (await sink.tell([event]))[1]
        finally:
            await sink.close()
            await aside.close()

    def checked(self, said: NewsReceiver) -> NewsReceiver:
        """A receiver as it may be kept: its secret by name, or sealed; InputError if it could never be told."""
        plain = not said.address.startswith("$") and not said.address.startswith(SEALED)
        if plain:
            key = self._settings.server.key
            if not key:
                remedy = "set server.key in the settings, or write the name of an environment variable, $NAME"
                raise InputError(sentence("address", "(not shown)", "is a secret that cannot be sealed", remedy))
            said = replace(said, address=seal(said.address, filled(key)))
        aside = Sandbox(processes=1)
        _, sink = set_up(said, self._settings, aside)
        if isinstance(sink, Unready):
            raise InputError(sink.reason)
        return said

    def _made(self, one: OnChange, aside: Aside | None = None) -> Sink:
        try:
            return sink_of(one, self._settings, aside)
        except UnstaleError as error:
            return Unready("receiver", str(error))
