"""Tables that are being copied: the same numbers on every face, and none of what ended or went silent."""

from __future__ import annotations

import pytest

from unstale.adapters.memory_store import MemoryStore
from unstale.engine.config import EngineConfig
from unstale.engine.host_limits import Rules
from unstale.ports import COPYING, Listing, Progress
from unstale.server.metrics import told
from unstale.service import FleetService, documents
from unstale.service.copying import PLACING, SILENT
from unstale.service.service_settings import ServiceSettings

NOW = 1.8e9
#: 300 of the 1,000 rows were here before; of 700 the poll brought 200 in 40 seconds
HALF = Progress(NOW - 5.0, NOW - 45.0, 500, 1000, 300, 2_500_000)


def service(said: dict[int, bytes], *, running: bool = True) -> FleetService:
    store = MemoryStore()
    store.add([Listing("postgresql://db.example.org/shop#orders", kind="sql", host="db.example.org")], NOW - 100.0)
    store.record([], settings={f"{COPYING}{source}": value for source, value in said.items()})
    terms = ServiceSettings(
        EngineConfig(1.0), lambda name: Rules(), file="", changed_at=lambda: 0.0, running=lambda: running
    )
    made = FleetService(store, terms)
    made.clock = lambda: NOW
    return made


def test_every_face_tells_the_same() -> None:
    made = service({1: HALF.written()})
    sentence = "being copied: 500 of 1,000 rows (300 of them kept from a poll before), 2.5 MB, about 1.67 min left"
    (told_of,) = documents.status(made.status())["copying"]
    assert told_of["sentence"] == sentence
    # The 500 that are left, at 200 in 40 seconds.
    assert (told_of["rows"], told_of["of"], told_of["kept"], told_of["left"]) == (500, 1000, 300, 100.0)
    assert documents.explanation(made.explain(1))["copying"] == sentence
    assert 'unstale_copying_rows{source="1",state="left"} 500' in told(made.status(), {})


@pytest.mark.parametrize(
    ("progress", "shown"),
    [
        (HALF, True),
        (Progress(NOW - SILENT - 1.0, NOW - 200.0, 500, 1000), False),
        (Progress(NOW - SILENT - 1.0, NOW - 200.0, 1000, 1000), True),
        (Progress(NOW - PLACING - 1.0, NOW - 9000.0, 1000, 1000), False),
    ],
)
def test_what_is_silent_has_ended_unless_all_is_here(progress: Progress, shown: bool) -> None:
    assert bool(service({1: progress.written()}).status().copying) is shown


def test_nothing_is_told_of_what_ended_what_is_gone_or_what_nobody_polls() -> None:
    assert service({1: b"", 2: HALF.written()}).status().copying == ()
    made = service({1: HALF.written()}, running=False)
    assert (made.status().copying, made.explain(1).copying) == ((), "")
