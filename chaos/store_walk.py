"""Calls of stores in any order, drawn from a seed: the store in memory is the model, and the others answer as it does.

As `tests/contracts/test_stores.py` does it with Hypothesis, which looks for small cases; this looks for many.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from unstale.adapters.memory_store import MemoryStore
from unstale.adapters.postgres_store import PostgresStore
from unstale.adapters.sqlite_store import SqliteStore
from unstale.keeper.outcomes import Answer
from unstale.ports import Body, Claim, Entry, Listing

#: names of sources, and the numbers that they can have had
NAMES, NUMBERS = 10, range(1, 25)
#: steps after which everything is compared; what changes with every step is compared at every step
EVERY = 10


class Walk:
    """One life of the stores, with PostgreSQL if there is an address of one."""

    def __init__(self, seed: int, folder: Path, server: str) -> None:
        self._rng = random.Random(seed)
        self._file = SqliteStore(folder / f"{seed}.db", versions=2)
        self.stores: list[Any] = [MemoryStore(versions=2), self._file]
        if server:
            self.stores.append(PostgresStore(server, schema=f"walk{seed}", versions=2, own_time=False))
        self._now, self._steps, self._held = 0.0, 0, list[Claim]()
        often = {self._claim: 6, self._record: 6, self._pass: 4, self._tell: 3, self._add: 2, self._set_due: 2}
        rest = (self._give_back, self._plan, self._remove, self._subscribe, self._edit, self._read)
        self._calls = [call for call, times in (often | dict.fromkeys(rest, 1)).items() for _ in range(times)]

    def step(self) -> None:
        """One call of all stores, and whether they are still alike."""
        self._rng.choice(self._calls)()
        self._steps += 1
        self._all(lambda store: store.counters())
        if self._steps % EVERY == 0:
            self._compare()

    def end(self) -> None:
        """Whether everything they hold is the same."""
        self._compare()
        for source in NUMBERS:
            self._all(lambda store, source=source: repr(store.observations(source)))
            self._all(lambda store, source=source: [store.copy(source, v) for v in store.versions(source)])
        for store in self.stores:
            assert store is self.stores[0] or store.verify() == []
            store.close()
        for file in self._file.path.parent.glob(self._file.path.name + "*"):
            file.unlink()

    def _all(self, call: Callable[[Any], Any]) -> Any:
        model, *others = (call(store) for store in self.stores)
        for other in others:
            assert other == model, f"step {self._steps}: {other!r} instead of {model!r}"
        return model

    def _some(self, most: int) -> list[int]:
        return self._rng.sample(NUMBERS, self._rng.randint(0, most))

    def _add(self) -> None:
        paused, first = self._rng.random() < 0.3, self._rng.randrange(NAMES)
        some = [Listing(f"s{n % NAMES}", paused=paused) for n in range(first, first + self._rng.randint(1, 3))]
        self._all(lambda store: store.add(some, self._now, duplicates="replace"))

    def _pass(self) -> None:
        self._now += self._rng.choice([-1000.0, 0.0, 1.0, 20.0, 20.0, 1000.0, 1000.0])

    def _claim(self) -> None:
        limit, owner = self._rng.randint(1, 4), self._rng.choice("ab")
        among = self._some(4) if self._rng.random() < 0.5 else None
        self._held += self._all(lambda store: store.claim(self._now, limit, lease=30.0, owner=owner, among=among))

    def _record(self) -> None:
        answer = self._rng.choice(list(Answer))
        some = self._rng.sample(self._held, min(len(self._held), self._rng.randint(0, 3)))
        # In which order events of one batch are numbered, of different sources, is each store's own affair.
        some.sort(key=lambda claim: (claim.source, claim.token))
        wait = self._rng.choice([0.0, 0.0, 5.0, 5.0, 5.0, math.inf])
        body = Body(self._rng.choice([b"x", b"y"])) if answer is Answer.CHANGED else None
        entries = [Entry(claim, answer, self._now, self._now + wait, body=body) for claim in some]
        state = self._rng.choice([None, {"learner": b"x"}, {"learner": b"y"}])
        self._all(lambda store: store.record(entries, settings=state))
        # Some are recorded once more later, or never: both happen to claims.
        self._held = [claim for claim in self._held if claim not in some or self._rng.random() < 0.2][-40:]

    def _subscribe(self) -> None:
        names = self._rng.choice([[], ["p"], ["p", "q"], ["q", "p"]])
        self._all(lambda store: store.subscribe(names))

    def _tell(self) -> None:
        name, count = self._rng.choice("pq"), self._rng.randint(0, 3)
        events = self._all(lambda store: store.events(name, count))
        if events:
            self._all(lambda store: store.told(name, events[-1].number))

    def _give_back(self) -> None:
        owner = self._rng.choice("ab")
        self._all(lambda store: store.give_back(owner))

    def _set_due(self) -> None:
        sources, at = self._some(2), self._now + self._rng.uniform(0.0, 9.0)
        self._all(lambda store: store.set_due(sources, [at] * len(sources)))

    def _plan(self) -> None:
        sources, was = self._some(2), self._rng.choice([0.0, 5.0, math.inf])
        self._all(lambda store: store.set_due(sources, [self._now + 1.0] * len(sources), was=[was] * len(sources)))

    def _remove(self) -> None:
        sources = self._some(1)
        self._all(lambda store: store.remove(sources))

    def _edit(self) -> None:
        who, what = self._rng.choice(["anna", "bén\u202e"]), f"did {self._rng.randrange(9)}"
        self._all(lambda store: store.note_edit(self._now, who, what))

    def _read(self) -> None:
        sources, ahead = self._some(4), self._rng.choice([0.0, 30.0])
        self._all(lambda store: store.waiting(self._now + ahead))
        self._all(lambda store: store.heads(sources))
        self._all(lambda store: store.listings(sources))
        self._all(lambda store: store.editions([(source, 1 + self._steps % 3) for source in sources]))
        self._all(lambda store: store.held([f"s{source}" for source in sources]))
        self._all(lambda store: [store.search(paused=True), store.search(failing=True), store.names()])
        # PostgreSQL keeps states that nobody names for a while: another worker may be about to name one.
        self._all(lambda store: [store.recent(3), store.edits(3), store.epochs()[-1:], store.answered_at()])

    def _compare(self) -> None:
        for name in "pq":
            self._all(lambda store, name=name: store.events(name, 99))
        fleets = [store.fleet(1) for store in self.stores]
        for name in ("source", "due", "last", "found", "failures", "paused"):
            model, *others = (getattr(fleet, name).tolist() for fleet in fleets)
            assert all(other == model for other in others), f"step {self._steps}: {name}: {others} instead of {model}"
        tally = self._file.counters()
        assert self._file._db is not None
        leases = self._file._db.execute("SELECT count(*) FROM leases").get
        ended = sum(tally.get(name, 0) for name in ("recorded", "given_back", "expired", "ended"))
        assert tally.get("claimed", 0) == ended + leases, f"step {self._steps}: claims are miscounted"
