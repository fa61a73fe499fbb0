"""The part of the API that is about how things go while they run: settings, and the log of who changed what."""

from __future__ import annotations

import asyncio
from typing import Any

from unstale.server import shapes
from unstale.server.endpoints import GUARDED, Call, Endpoint, Tagged, tag
from unstale.server.shapes import maybe, model, record, several, text, whole
from unstale.server.slowly import Slowly
from unstale.service import FleetService
from unstale.service.documents import iso
from unstale.service.live_settings import LONGEST, SettingView, document

#: edits that one answer tells
EDITS = 1000

_SETTING = model(
    "Setting",
    record(
        name=text(40),
        value=text(LONGEST),
        meaning=text(500),
        live={**shapes.FLAG, "description": "Whether it can be changed while things run."},
        set_here=shapes.FLAG,
        by=text(among=["default", "settings", "option", "command", "api"]),
        since=maybe(shapes.MOMENT),
    ),
)
_SETTINGS = model("Settings", record(settings=several(_SETTING)))
_NEW = model("NewSetting", record(name=text(40, least=1), value=maybe(text(LONGEST))))
_EDIT = model("LoggedEdit", record(number=whole(1), at=maybe(shapes.MOMENT), who=text(100), what=text(500)))
_LOG = model("EditLog", record(edits=several(_EDIT), more=maybe(whole(1))))


class TermsRoutes:
    """Does what the table says."""

    def __init__(self, service: FleetService, slowly: Slowly) -> None:
        self._service, self._slowly = service, slowly
        # One at a time, so that what a client expects is still so when it is said.
        self._saying = asyncio.Lock()

    def endpoints(self) -> list[Endpoint]:
        """The table."""
        return [
            Endpoint(
                "GET",
                "/api/v1/settings",
                self.settings,
                "The settings of the fleet as a whole, who said them, and which can be changed while things run.",
                _SETTINGS,
                tagged=True,
            ),
            Endpoint(
                "PUT",
                "/api/v1/settings",
                self.say,
                "Change a setting while things run; null: that of the settings file again.",
                _SETTINGS,
                takes=_NEW,
                fields=GUARDED,
                tagged=True,
            ),
            Endpoint(
                "GET",
                "/api/v1/audit",
                self.audit,
                "Who changed what, newest first; `more` is the number before which there are others.",
                _LOG,
                query={"limit": whole(1, EDITS), "before": whole(1)},
            ),
        ]

    async def settings(self, _: Call) -> Any:
        """What is in force."""
        return _tagged(await asyncio.to_thread(self._service.settings))

    async def say(self, call: Call) -> Any:
        """Another value, or the settings file's again."""
        async with self._saying:
            call.expects(_tagged(await asyncio.to_thread(self._service.settings)).etag)
            found = await asyncio.to_thread(self._service.say, call.body["name"], call.body["value"], "api")
        self._slowly.forget()
        return _tagged(found)

    async def audit(self, call: Call) -> Any:
        """The newest edits, or those before one."""
        limit = call.query.get("limit", 100)
        found = await asyncio.to_thread(self._service.edits, limit + 1, call.query.get("before"))
        shown = found[:limit]
        return {
            "edits": [{"number": one.number, "at": iso(one.at), "who": one.who, "what": one.what} for one in shown],
            "more": shown[-1].number if len(found) > limit else None,
        }


def _tagged(found: list[SettingView]) -> Tagged:
    told = document(found)
    return Tagged(told, tag({one.name: [one.value, one.by] for one in found}))
