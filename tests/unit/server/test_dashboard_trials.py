"""Trying things before they are saved: a look at an address, what would count of copies, a test of who is told."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from support.asgi import Kept, asked
from unstale.adapters.normalise import Normaliser
from unstale.cli.service import service_of
from unstale.cli.settings import Settings
from unstale.errors import InputError
from unstale.keeper.outcomes import Answer
from unstale.ports import Fetched, Listing
from unstale.server.app import replica
from unstale.server.dashboard.views import views
from unstale.service.receivers import NewsReceiver

TOKEN = "0123456789abcdef" * 2
PAGE = b"<title>Trains &amp;</title><link rel=alternate type=application/rss+xml href=/feed><p>Nine<script>x</script>"
FEED = (
    b"<rss><channel><title>F</title><item><title>New &lt;i&gt;</title><link>javascript:x</link></item></channel></rss>"
)


class Fake:
    """Looks at what a test put there, and counts as a normaliser does."""

    def __init__(self) -> None:
        self.looked: list[Listing] = []
        self.found = Fetched(Answer.FAILED, 0.0, reason="nobody is there")

    async def look(self, listing: Listing) -> Fetched:
        self.looked.append(listing)
        return self.found

    async def counted(self, kind: str, options: Mapping[str, Any], data: bytes, media_type: str) -> str:
        return Normaliser(**options.get("normalise", {}))(data, media_type).decode()

    def names(self) -> list[str]:
        return ["log here"]

    async def tell(self, place: int, at: float) -> str:
        return "it is full"

    def checked(self, said: NewsReceiver) -> NewsReceiver:
        if "refuse" in said.address:
            raise InputError("address is none")
        return replace(said, address=f"sealed:{len(said.address)}")


class Tried(Kept):
    """A store, and a dashboard in which things can be tried."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.fake = Fake()
        self.service = service_of(Settings(store=str(path)))
        self.service.clock = self.clock
        more = views(self.service, tries=self.fake, told=self.fake)
        self.app = replica(self.shelf, clock=self.clock, token=TOKEN, service=self.service, more=more)

    def send(self, path: str, body: Any, status: int = 200, *, method: str = "POST") -> Any:
        headers = {"content_type": "application/json", "authorization": f"Bearer {TOKEN}"}
        got = asked(self.app, f"/dashboard/{path}", method, [json.dumps(body).encode()], **headers)
        assert got.status == status, got.body
        return json.loads(got.body)

    def close(self) -> None:
        self.service.close()
        super().close()


@pytest.fixture
def tried(tmp_path: Path) -> Iterator[Tried]:
    tried = Tried(tmp_path / "s.db")
    yield tried
    tried.close()


def came(body: bytes, media_type: str) -> Fetched:
    return Fetched(Answer.CHANGED, 0.0, body, media_type, address="https://a.example/x")


def test_a_look_tells_what_a_poll_would_bring(tried: Tried) -> None:
    tried.fake.found = came(PAGE, "text/html; charset=utf-8")
    told = tried.send("look", {"address": "HTTPS://A.example/x"})
    assert tried.fake.looked[0].address == "https://a.example/x"
    assert (told["kind"], told["title"], told["lines"]) == ("http", "Trains &", ["Nine"])
    assert told["feeds"] == ["https://a.example/feed"]
    tried.fake.found = came(FEED, "text/xml")
    told = tried.send("look", {"address": "https://a.example/x"})
    assert (told["kind"], told["title"]) == ("feed", "F")
    assert told["entries"] == [{"title": "New", "link": "", "time": ""}]
    tried.fake.found = came(b'{"a":1}', "application/json")
    assert tried.send("look", {"address": "https://a.example/x"})["lines"] == ["{", ' "a": 1', "}"]
    tried.fake.found = came(bytes(9), "image/png")
    assert tried.send("look", {"address": "https://a.example/x"})["lines"] == []


def test_what_cannot_be_looked_at_is_told_and_nothing_is_kept(tried: Tried) -> None:
    assert tried.send("look", {"address": "https://a.example/x"})["reason"] == "nobody is there"
    tried.send("look", {"address": "http://127.0.0.1/"}, 422)
    tried.send("look", {"address": "not an address"}, 422)
    assert len(tried.shelf.names()) == 1
    assert asked(tried.app, "/dashboard/look", "POST").status == 401, "who may not write may not have us look"


def test_what_counts_is_tried_on_the_last_copies(tried: Tried) -> None:
    assert tried.send("sources/1/trial", {"options": {}})["copies"] == 0
    for i in range(3):
        tried.poll(f"<p class=clock>{i}</p><p>same</p>".encode(), "text/html")
        tried.now += 100.0
    plain = tried.send("sources/1/trial", {"options": {"normalise": {}}})
    assert (plain["copies"], plain["same"]) == (2, False)
    assert ["+", "<p class=clock>2</p><p>same</p>"] in plain["lines"]
    without = tried.send("sources/1/trial", {"options": {"normalise": {"selectors": [".clock"]}}})
    assert (without["same"], without["lines"]) == (True, [])
    assert "same" in without["counts"][0]
    wrong = {"options": {"normalise": {"selectors": ["<<"]}}}
    assert "is not CSS" in tried.send("sources/1/trial", wrong, 422)["detail"]
    tried.send("sources/9/trial", {"options": {}}, 404)
    assert tried.shelf.listings([1])[0].options == {}, "trying saves nothing"


def test_receivers_are_listed_and_sent_a_test(tried: Tried) -> None:
    assert json.loads(asked(tried.app, "/dashboard/receivers").body) == {"receivers": ["log here"], "own": []}
    assert tried.send("receivers", {"receiver": 0}) == {"reason": "it is full"}
    tried.send("receivers", {"receiver": 1}, 404)
    assert asked(tried.app, "/dashboard/receivers", "POST").status == 401


def test_receivers_are_set_up_edited_and_removed_without_ever_telling_their_addresses(tried: Tried) -> None:
    chat = {"name": "chat", "via": "notify", "address": "mailto://me:secret@example.org"}
    told = tried.send("receivers", chat, method="PUT")
    assert told["own"][0] == {
        "name": "chat",
        "via": "notify",
        "address": "sealed",
        "first": False,
        "title": "",
        "text": "",
        "tags": [],
        "sources": [],
        "hours": [],
    }
    assert tried.service.receivers()[0].address == f"sealed:{len(chat['address'])}"
    again = tried.send("receivers", {"name": "chat", "via": "notify", "tags": ["news"]}, method="PUT")
    assert (len(again["own"]), again["own"][0]["tags"]) == (1, ["news"]), "an address that is not said again stays"
    assert tried.send("receivers", {"receiver": 1}) == {"reason": "it is full"}
    tried.send("receivers", {"name": "x", "via": "notify"}, 422, method="PUT")
    tried.send("receivers", {**chat, "address": "refuse"}, 422, method="PUT")
    tried.send("receivers", {**chat, "via": "command"}, 400, method="PUT")
    assert asked(tried.app, "/dashboard/receivers", "PUT").status == 401
    tried.send("receivers/removals", {"name": "nobody"}, 404)
    assert tried.send("receivers/removals", {"name": "chat"})["own"] == []


def test_entries_are_all_that_the_feed_ever_had(tried: Tried) -> None:
    for i in range(3):
        items = "".join(f"<item><guid>{n}</guid><title>E{n}</title></item>" for n in (i + 1, i))
        tried.poll(f"<rss><channel>{items}</channel></rss>".encode(), "application/rss+xml")
        tried.now += 100.0
    found = json.loads(asked(tried.app, "/api/v1/sources/1/entries").body)["entries"]
    kept = tried.shelf.versions(1)
    assert [one["title"] for one in found][:2] == ["E3", "E2"]
    assert found[0]["version"] == kept[0] == 3
    assert len(found) == len(kept) + 1
    assert asked(tried.app, "/api/v1/sources/9/entries").status == 404
