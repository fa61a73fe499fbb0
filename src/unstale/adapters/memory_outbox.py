"""Who is told of new versions, in memory: what is not told yet is kept, as far as there is room."""

from __future__ import annotations

from collections.abc import Sequence

from unstale.adapters.memory_shelf import MemoryShelf
from unstale.adapters.store_checks import check_names
from unstale.adapters.store_shared import EVENT_BYTES, MOST_EVENT_BYTES, MOST_EVENTS, WEIGHED
from unstale.ports import Entry, Event, Setting


class MemoryOutbox(MemoryShelf):
    """The contract `Outbox`, on a shelf in memory."""

    def __init__(self) -> None:
        super().__init__()
        self._events: list[Event] = []
        #: the last event that each listener has been told
        self._told: dict[str, int] = {}

    def subscribe(self, names: Sequence[str], *, others: bool = False, setting: Setting | None = None) -> bool:
        """Those who want to be told from now on, and nobody else unless `others` go on."""
        check_names(names)
        if setting is not None and self.setting(setting[0]) != setting[1]:
            return False
        all_ = [*names, *(self._told if others else ())]
        self._told = {name: self._told.get(name, self._counters["events"]) for name in all_}
        self._drop_told()
        return True

    def events(self, name: str, limit: int) -> list[Event]:
        """The oldest events that `name` has not been told."""
        told = self._told.get(name, self._counters["events"])
        return [event for event in self._events if event.number > told][:limit]

    def told(self, name: str, number: int) -> None:
        """`name` has been told everything up to this number."""
        if name in self._told:
            self._told[name] = max(self._told[name], min(number, self._counters["events"]))
            self._drop_told()

    def _tell(self, entry: Entry, version: int, digest: bytes) -> None:
        """Keep the event of a new version, if anybody wants to be told."""
        if not self._told:
            return
        self._counters["events"] += 1
        number, claim = self._counters["events"], entry.claim
        self._events.append(Event(number, claim.source, claim.address, version, entry.polled_at, digest))
        if number % WEIGHED == 0 or len(self._events) > MOST_EVENTS:
            self._drop_surplus()

    def _drop_told(self) -> None:
        done = min(self._told.values(), default=self._counters["events"])
        self._events = [event for event in self._events if event.number > done]

    def _drop_surplus(self) -> None:
        """The oldest go, and are counted, where there are more events or bytes than are kept."""
        room = MOST_EVENT_BYTES
        for n, event in enumerate(reversed(self._events)):
            room -= len(event.address) + EVENT_BYTES
            if room < 0 or n == MOST_EVENTS:
                self._counters["untold"] += len(self._events) - n
                del self._events[: len(self._events) - n]
                return
