"""One engine among sixty healthy sources and every kind of hostile one: pace, memory, answers, gate and secrets."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from support.engine_victim import Life, engines, settings_file, until
from support.loopback import Loopback, answer, redirect
from support.patience import SOON
from unstale.adapters.sqlite_store import SqliteStore
from unstale.keeper.outcomes import Answer
from unstale.origin.hostile import DONE, SAID
from unstale.origin.server import Origin
from unstale.origin.site import Site
from unstale.ports import Listing

#: where sources may be, and where none may be although something listens there
ALLOWED, FORBIDDEN = ("127.0.0.2/32", "127.0.0.3/32"), "127.0.0.1"
HEALTHY, LONGEST = 60, 2.0
CANARY = "canary-5f1d0c6e9a"
#: what a failure is told as; kinds that are not here answer
REASONS = {
    "redirect-loop": "redirects more than",
    "bomb": "the body has more than",
    "truncated": "ended before its stated end",
    "garbage": "did not answer in HTTP",
    "huge-headers": "headers are too large",
    "too-many": "429",
    "unavailable": "503",
    "unasked-304": "304",
    "hang": "no whole answer within",
    "drip": "no whole answer within",
    "endless": "the body has more than",
    "reset": "connection",
}
#: answers after the first of those that look like answers
ANSWERS = {"wrong-length": Answer.UNCHANGED, "same-etag": Answer.CHANGED, "noise": Answer.CHANGED}


@contextmanager
def speaking(speeches: dict[str, bytes], host: str) -> Iterator[Loopback]:
    """A server that says what a test wants, in a thread of its own."""
    loop, ready, ending = asyncio.new_event_loop(), threading.Event(), asyncio.Event()
    server = Loopback(dict(speeches), host)

    async def serve() -> None:
        async with server:
            ready.set()
            await ending.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()), daemon=True)
    thread.start()
    ready.wait()
    try:
        yield server
    finally:
        loop.call_soon_threadsafe(ending.set)
        thread.join()
        loop.close()


@pytest.mark.parametrize("pollers", [0, 2])
def test_hostile_sources_harm_nobody_but_themselves(tmp_path: Path, pollers: int) -> None:
    kinds = [*SAID, *DONE]
    assert set(kinds) == REASONS.keys() | ANSWERS.keys()
    http = f'timeout = "1s"\nlimit = "1MiB"\npollers = {pollers}'
    config = settings_file(tmp_path, 'budget = "100/s"', ALLOWED, http)
    store = SqliteStore(tmp_path / "unstale.db")
    site = Site.of(HEALTHY, change_rate=0.3)
    with (
        Origin(site, host="127.0.0.2").in_thread() as origin,
        Origin(Site.of(1, 1.0), host="127.0.0.3").in_thread() as zoo,
        engines(tmp_path) as parent,
    ):
        store.add([Listing(origin.address + path, longest=LONGEST) for path in site.paths], time.time())
        # Each is a host of its own: one that asks for a pause must not speak for the others.
        hostile = [Listing(f"{zoo.address}/hostile/{kind}", host=kind, longest=LONGEST) for kind in kinds]
        quiet = {"normalise": {"selectors": ["#clock"]}}
        hostile.append(Listing(f"{zoo.address}/hostile/noise?quiet", host="quiet", longest=LONGEST, options=quiet))
        ids = dict(zip([*kinds, "quiet"], store.add(hostile, time.time()), strict=True))
        life = parent.begin(config)
        until(lambda: all(store.observations(source) for source in ids.values()), 30.0, "each hostile source polled")
        memory, begun = life.memory(), origin.now()
        until(lambda: all(len(store.observations(source)) > 2 for source in ids.values()), 40.0, "and again")
        time.sleep(max(begun + 6.0 - origin.now(), 0.0))
        ended, grown = origin.now(), life.memory() - memory
        stopping = time.monotonic()
        assert life.end() == 0
        assert time.monotonic() - stopping < SOON
        assert grown < 100.0
        _healthy_keep_their_pace(origin, begun, ended)
        _answers_are_right(store, ids)
        assert not life.events("fault")
        tally = store.counters()
        assert tally["claimed"] == sum(tally.get(name, 0) for name in ("recorded", "given_back", "expired", "ended"))
        assert store.verify() == []
    store.close()


def _healthy_keep_their_pace(origin: Origin, begun: float, ended: float) -> None:
    """None of the healthy waits much longer than its longest interval, and each copy is what the source was."""
    polls = origin.polls()
    for i in range(HEALTHY):
        mine = polls.times[polls.starts[i] : polls.starts[i + 1]]
        inside = mine[(mine > begun) & (mine < ended)]
        gaps = np.diff(np.concatenate([[begun], inside, [ended]]))
        assert gaps.max() < 1.2 * LONGEST + 0.5, polls.names[i]


def _answers_are_right(store: SqliteStore, ids: dict[str, int]) -> None:
    for kind, source in ids.items():
        seen = store.observations(source)[::-1]
        if kind in REASONS:
            assert {one.answer for one in seen} == {Answer.FAILED}, kind
            # A machine that is busy elsewhere may not come to the reason within the second that a poll has here.
            told = [
                one.reason for one in seen if "no whole answer within" not in one.reason or kind in ("hang", "drip")
            ]
            assert all(REASONS[kind] in reason for reason in told), (kind, told)
            assert store.copy(source) is None
        else:
            later = Answer.UNCHANGED if kind == "quiet" else ANSWERS[kind]
            answers = [one.answer for one in seen if "within 1 s" not in one.reason]
            assert answers == [Answer.CHANGED] + [later] * (len(answers) - 1), (kind, [one.reason for one in seen])


def test_no_redirect_leads_where_nothing_may_be_polled_and_no_secret_is_written_down(tmp_path: Path) -> None:
    config = settings_file(tmp_path, 'budget = "20/s"', ALLOWED, 'timeout = "2s"')
    store = SqliteStore(tmp_path / "unstale.db")
    speeches = {"/": answer(b"fine"), "/gone": answer(status="500 Internal Server Error")}
    with (
        Origin(Site.of(1, 1.0), host=FORBIDDEN).in_thread() as private,
        speaking({"/": answer(b"elsewhere")}, "127.0.0.3") as elsewhere,
        speaking(speeches, "127.0.0.2") as server,
        engines(tmp_path) as parent,
    ):
        port = private.address.rpartition(":")[2]
        there = [f"http://{spelt}:{port}/s/0" for spelt in (FORBIDDEN, "2130706433", "localhost", "[::ffff:127.0.0.1]")]
        server.speeches |= {f"/to/{i}": redirect(address) for i, address in enumerate(there)}
        server.speeches |= {"/away": redirect(elsewhere.origin + "/")}
        secret = {"headers": {"Authorization": "Bearer $UNSTALE_CANARY", "X-Key": "$UNSTALE_CANARY"}}
        paths = ["/", "/gone", "/away", *(f"/to/{i}" for i in range(len(there)))]
        ids = store.add([Listing(server.origin + path, options=secret, host=path) for path in paths], time.time())
        ids += store.add([Listing(private.address + "/s/0")], time.time())
        life = parent.begin(config, environment={"UNSTALE_CANARY": CANARY})
        until(lambda: all(len(store.observations(source)) > 1 for source in ids), 40.0, "each polled twice")
        assert life.end() == 0
        for source in ids[3:]:
            assert {one.answer for one in store.observations(source)} == {Answer.FAILED}
            assert "allow_networks" in store.observations(source)[0].reason
        # What was refused was not even dialled, on any hop.
        assert private.log.total == 0
        fine, gone, away = (store.observations(source)[-1] for source in ids[:3])
        assert (fine.answer, gone.answer, away.answer) == (Answer.CHANGED, Answer.FAILED, Answer.CHANGED)
        # The secret was sent to the source it is for, and to nobody else.
        assert {one["authorization"] for one in server.asked} == {f"Bearer {CANARY}"}
        assert elsewhere.asked
        assert [one for one in elsewhere.asked if CANARY in str(one)] == []
    store.close()
    _is_nowhere(CANARY, tmp_path, life)


def _is_nowhere(secret: str, folder: Path, life: Life) -> None:
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert {"unstale.db", life.out.name} <= {path.name for path in files}
    assert life.events("poll_failed")
    for path in files:
        assert secret.encode() not in path.read_bytes(), path
