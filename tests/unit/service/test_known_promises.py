"""What was promised is remembered over edits that promise nobody anything else, and over no others."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from unstale.adapters.sqlite_store import SqliteStore
from unstale.cli.service import service_of
from unstale.cli.settings import Settings
from unstale.cli.settings_tables import ContractSettings
from unstale.engine.contracts import promised
from unstale.ports import Listing
from unstale.service import FleetService

OTHER = Listing("https://a.example/", options={"fresh_within": "2h"})
#: edits, and whether all that is said must be looked at again
EDITS: dict[str, tuple[Callable[[FleetService, SqliteStore], object], bool]] = {
    "weight": (lambda service, other: service.edit([1, 2], {"weight": 3.0}), False),
    "title": (lambda service, other: service.edit([1], {"options": {"title": "A"}}), False),
    "paused": (lambda service, other: service.pause([1], True), False),
    "nothing": (lambda service, other: None, False),
    "terms": (lambda service, other: service.edit([2], {"options": {"target": 0.5}}), True),
    "no terms": (lambda service, other: service.edit([1], {"options": {"fresh_within": None}}), True),
    "a tag": (lambda service, other: service.tag([2], ["fast"]), True),
    "removed": (lambda service, other: service.remove([1]), True),
    "added": (lambda service, other: service.add([{"address": "https://c.example/"}]), True),
    "by others": (lambda service, other: other.add([OTHER], 0.0, duplicates="replace"), True),
    "by others before": (
        lambda service, other: (other.add([OTHER], 0.0, duplicates="replace"), service.edit([2], {"weight": 3.0})),
        True,
    ),
}


@pytest.mark.parametrize("edit", EDITS)
def test_promises_are_looked_for_anew_when_they_may_be_others(tmp_path: Path, edit: str) -> None:
    place = tmp_path / "s.db"
    with closing(SqliteStore(place)) as other:
        other.add([Listing("https://a.example/", options={"fresh_within": "1h"}), Listing("https://b.example/")], 0.0)
        service = service_of(Settings(store=str(place), contracts={"fast": ContractSettings(target=0.9)}))
        change, anew = EDITS[edit]
        before = service._promises(service.terms.config)
        change(service, other)
        # Who asks for a few is told of these, and nothing else is looked at for it.
        few: Any = service._promises(service.terms.config, [2])
        assert (few is before) is not anew
        assert (
            not anew
            or few.source.tolist() == promised(service.store, service.terms.config.contracts, [2]).source.tolist()
        )
        after: Any = service._promises(service.terms.config)
        assert (after is before) is not anew
        want = promised(service.store, service.terms.config.contracts)
        assert [after.names, *(getattr(after, name).tolist() for name in after.__slots__[1:])] == [
            want.names,
            *(getattr(want, name).tolist() for name in want.__slots__[1:]),
        ]
        service.close()


def test_an_edit_of_others_in_between_is_not_overlooked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "s.db"
    with closing(SqliteStore(place)) as other:
        other.add([Listing("https://a.example/"), Listing("https://b.example/")], 0.0)
        service = service_of(Settings(store=str(place)))
        assert not len(service._promises(service.terms.config).source)
        writer, add = service.writer, service.writer.add

        def beside(*given: Any, **more: Any) -> list[int]:
            other.add([OTHER], 0.0, duplicates="replace")
            return add(*given, **more)

        monkeypatch.setattr(writer, "add", beside)
        service.edit([2], {"weight": 3.0})
        assert service._promises(service.terms.config).source.tolist() == [1]
        service.close()
