"""What is asked of stores: small contracts, each kept by several technologies, and the wholes that they make up.

Rules of this file:
1. A contract has at most eight methods; what every keeper of it promises is in its docstring and in one contract test.
2. Synchronous and quick: one thread at a time calls a store. Unknown sources have nothing.
3. Records are frozen and typed: who misspells a call of a store, or a field, is told before anything runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol

from unstale.listings.records import CollectionMember
from unstale.ports.records import Claim, Copy, Entry, Event, Listing, Observation, Price, Setting
from unstale.ports.standing import Standings
from unstale.ports.summaries import (
    Announced,
    Checkpoint,
    CrewMember,
    Edit,
    Edition,
    Epoch,
    FleetColumns,
    Holding,
    HostCount,
    KeptEntry,
    Recent,
)


class Opened(Protocol):
    """A store that is open."""

    def moved(self) -> int | None:
        """A number that is another one once others have written to the store; None if nobody else can."""

    def close(self) -> None:
        """Give back files and connections; closing again does nothing. Everything was durable before."""


class Roster(Protocol):
    """Who is listed, and what of it is put right by hand: all or nothing, durable when the call returns."""

    def add(
        self, listings: Sequence[Listing], now: float, *, duplicates: Literal["refuse", "replace"] = "refuse"
    ) -> list[int]:
        """Add all or none; their ids, in the order given. New ones are due now.

        Where the address is known already, `refuse` adds nothing; `replace` takes the new listing and keeps the id,
        the beliefs, the copies and the due time. Where other things count then (`what_counts`), the newest copy has no
        fingerprint until the next poll, and a claim ends: what it finds was judged by what counted before.
        """

    def remove(self, sources: Sequence[int]) -> int:
        """Forget sources with all they taught; how many were there."""

    def enlist(self, members: Sequence[CollectionMember]) -> None:
        """Take up whom collections tell of, or what they say now; who has no source or no collection is left out.

        A word under a source's own number was pushed: its address is the channel that said so.
        """

    def distrust(self, copies: Sequence[tuple[int, int]]) -> None:
        """What is held of these sources and versions is damaged: the next polls ask for all of it, and what they bring
        is a new version. Until then whoever reads them is told that they are damaged."""

    def relearn(self, sources: Sequence[int]) -> None:
        """What polls of these have taught up to now counts no more: beliefs begin anew, from a checkpoint without one.

        Observations, copies and due times stay.
        """

    def note_edit(self, at: float, who: str, what: str) -> None:
        """Keep in the log of edits who changed what."""


class Claims(Protocol):
    """Where the engine keeps sources and what their polls taught.

    Promises: a call that returns is durable, one that raises (InputError, StoreError) did nothing. A source that is
    not paused is either waiting for its due time or claimed, never both and never neither. A claim is recorded at
    most once, and only while it is held: recording, giving back, expiry, pausing, removing and saying that other
    things count end it. Order is that of tokens, for clocks jump: after one has, time runs from the newest answer.
    Old observations are dropped only once a checkpoint of the belief holds what they taught. Secrets are refused.
    Times are seconds since the epoch, never NaN; a due time of inf waits for ever.
    """

    def claim(
        self, now: float, limit: int, *, lease: float, owner: str, among: Sequence[int] | None = None
    ) -> list[Claim]:
        """Up to `limit` sources that are due, longest overdue first; they come back after `lease` seconds.

        With `among`, only of these: who knows whose hosts are busy claims nobody that would have to be given back.

        A claim that would last longer than `lease` from now was made under another clock, and has expired too.
        """

    def record(
        self, entries: Sequence[Entry], *, settings: Mapping[str, bytes] | None = None, price: Price | None = None
    ) -> list[bool]:
        """In one transaction: observations, copies, beliefs, due times, named settings, and a price if it is new.

        False marks an entry whose claim is no longer held: it was recorded before, or came too late, and is dropped.
        A body that equals the newest copy, or comes with UNCHANGED, makes no version: it only renews what came with
        it. The setting `LEARNER` begins an epoch when it is new: the entries beside it belong to the epoch before,
        all later ones to it. With another `COST_IN` what polls were found to cost is forgotten.
        """

    def waiting(self, until: float) -> list[tuple[int, float]]:
        """Who waits and is due by then, with the times, longest overdue first; nobody who is claimed or paused."""

    def give_back(self, owner: str, claims: Sequence[Claim] | None = None) -> int:
        """End claims without an outcome: these, or all of the owner's (what a killed process left); how many."""

    def set_due(self, sources: Sequence[int], due: Sequence[float], *, was: Sequence[float] | None = None) -> None:
        """Move due times, for a new price or a hint. Of a claimed source it counts if the claim ends unrecorded.

        With `was`, only where the due time still is that: who plans must not undo what a hint has moved meanwhile.
        """


class Catalogue(Protocol):
    """The sources as they are listed and as they stand."""

    def find(self, address: str) -> int | None:
        """The id of the source at this address."""

    def listings(self, sources: Sequence[int]) -> list[Listing]:
        """Sources as they are listed, those that exist, in the order asked."""

    def search(
        self,
        text: str = "",
        *,
        host: str | None = None,
        kind: str | None = None,
        paused: bool | None = None,
        tag: str | None = None,
        options: Sequence[str] = (),
        failing: bool | None = None,
        after: int = 0,
        limit: int = 100,
    ) -> list[int]:
        """The sources after an id whose address contains a text, rising; a and A are the same letter, ä and Ä are not.

        `tag` is one that they have, `options` names of which they have one; `failing`, whether their last polls did. To
        go through all, ask again after the last one.
        """

    def names(self) -> list[tuple[int, str, str]]:
        """Every source's id, address and title, ids rising; empty where it has no title."""

    def hosts(self) -> list[HostCount]:
        """Each host that has sources, by name."""

    def fleet(self, width: int) -> FleetColumns:
        """Everything a start needs. A belief with fewer floats than `width` is `widened`."""

    def columns_of(self, sources: Sequence[int], width: int) -> FleetColumns:
        """These sources in columns, those that exist, ids rising; `fleet` of a few."""

    def members(self, collection: int | None = None, source: int | None = None) -> list[CollectionMember]:
        """Whom one collection tells of, or each of all, by ids; both exist. Of one `source`: what tells of it. Nothing
        that was pushed."""


class Replica(Protocol):
    """What is kept, for those who serve or explain it."""

    def copy(self, source: int, version: int | None = None) -> Copy | None:
        """A kept version, the newest if none is named; StoreError if its bytes are no longer what was stored."""

    def versions(self, source: int) -> list[int]:
        """The kept versions, newest first."""

    def observations(self, source: int, limit: int = 1000) -> list[Observation]:
        """What polls taught, newest first."""

    def prices(self, since: float) -> list[Price]:
        """The published prices from a time on, oldest first."""

    def setting(self, name: str) -> bytes:
        """A named setting, empty if there is none."""

    def pushes(self, sources: Sequence[int] | None = None) -> list[CollectionMember]:
        """What was last pushed of these sources, or of all, by ids; of whom nothing was are left out."""

    def edits(self, limit: int = 1000, before: int | None = None) -> list[Edit]:
        """Who changed what, the newest first, `MOST_EDITS` of them; with `before`, those with lower numbers."""

    def held(self, addresses: Sequence[str]) -> dict[str, Holding]:
        """What is held of those that are sources and not paused, by address."""


class Counted(Protocol):
    """How much there is and was, told without reading it."""

    def counters(self) -> dict[str, int]:
        """Totals since the store was made; claimed = recorded + given_back + expired + ended + those held now.

        `ended` counts claims that pausing or removing ended, `dropped` entries that came without a claim, `edited`
        the calls that added, replaced or removed sources: who holds the fleet in memory reads it anew then. `first`
        counts first copies among what `changed`, `spent` what polls cost, in millionths, `requests` what they sent.
        """

    def total_cost(self) -> float:
        """What one poll of each source costs, but of those that are paused: as it is listed, or was found to."""


class Entries(Protocol):
    """The entries of feeds, each once, however often a feed tells it.

    A new version of a feed adds its entries in the transaction that records it. Of one feed at most `MOST_ENTRIES` are
    kept, and what it has dropped goes with the horizon, as observations do; what it still has never does.
    """

    def kept_entries(self, source: int, limit: int = 1000, before: int | None = None) -> list[KeptEntry]:
        """The entries of a feed, those that were seen last first; with `before`, those with lower numbers."""

    def entry_count(self, source: int) -> int:
        """How many entries of a feed are kept."""


class Shelf(Standings, Protocol):
    """A store as servers read it: quick answers to one question each."""

    def editions(self, wanted: Sequence[tuple[int, int]]) -> list[Edition | None]:
        """Versions without their bytes, named by source and version, in the order asked; None for one not kept."""

    def packed(self, source: int, version: int) -> bytes | None:
        """Its bytes as one zstd frame, not yet checked against the digest."""

    def announced(self, since: float, after: int, limit: int) -> list[Announced]:
        """Sources with ids above `after` whose copies are as of `since` or later, ids rising.

        Those without a copy, and paused ones, are left out.
        """

    def recent(self, count: int) -> list[Recent]:
        """The newest observations by token, newest first."""

    def answered_at(self) -> float:
        """When any source last answered; -inf if none of the newest thousand polls was answered."""

    def alive(self) -> tuple[CrewMember, ...] | None:
        """The workers that have given a sign of life lately; None for a store that one process keeps."""


class Audit(Protocol):
    """What `unstale doctor` compares: whether what is derived follows from what was observed."""

    def checkpoint(self, source: int) -> Checkpoint | None:
        """The belief from where replaying a source's observations goes on; None: from the first one."""

    def epochs(self, since: int = 0) -> list[Epoch]:
        """The learner's shared states that observations name, from one number on, and the one in force."""

    def verify(self) -> list[str]:
        """What is wrong with what is stored, a sentence each."""

    def damaged(self) -> list[tuple[int, int]]:
        """Sources and versions whose bytes are not those that were stored, each once."""


class Outbox(Protocol):
    """What is still to be told. A new version becomes an event in the transaction that records it.

    Promises: every event is handed out until `told` covers it, whatever happens in between: at least once, in order.
    Events that every name has been told, and those older than the horizon, may be dropped. So may the oldest ones when
    there are too many: they are counted as "untold", and the numbers that follow leave a gap.
    """

    def subscribe(self, names: Sequence[str], *, others: bool = False, setting: Setting | None = None) -> bool:
        """Those who want to be told from now on, and nobody else; a new name begins with what is recorded next.

        With `others`, who is told already goes on being told. With `setting`, a name and a value, only while the store
        says that: where it says something else nothing is done, and the answer is False.
        """

    def events(self, name: str, limit: int) -> list[Event]:
        """The oldest events that `name` has not been told."""

    def told(self, name: str, number: int) -> None:
        """`name` has been told everything up to this number."""


class ReadStore(Opened, Catalogue, Replica, Counted, Entries, Shelf, Audit, Protocol):
    """All that can be read of a store."""


class Store(ReadStore, Roster, Claims, Outbox, Protocol):
    """All that one process does with its store."""
