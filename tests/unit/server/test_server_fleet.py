"""The fleet over the API: status, budget, previews, history, metrics, events, hubs."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import math
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.asgi import START, asked
from support.booked import TOKEN, WHO, Booked
from support.patience import BUSY, SOON
from unstale.core.learning.learner import Learner
from unstale.core.learning.state import WIDTH, kept
from unstale.engine.said import BudgetSaid
from unstale.keeper.outcomes import Answer
from unstale.ports import Body, Claim, Entry, Listing, Price
from unstale.server.endpoints import Call
from unstale.server.live import LISTENERS, Live
from unstale.service.course import gathered

#: one who listens, and says nothing of what came before
ANYBODY = Call(0, {}, None)


@pytest.fixture
def booked(tmp_path: Path) -> Iterator[Booked]:
    booked = Booked(tmp_path / "b.db", 4)
    yield booked
    booked.close()


def test_status_is_that_of_the_command_without_the_path(booked: Booked) -> None:
    booked.poll(b"a")
    found = booked.get("status")
    assert found["sources"] == {"total": 4, "paused": 0, "failing": 0, "never_answered": 0, "never_polled": 0}
    assert [one["id"] for one in found["worst"]] == [1, 2, 3, 4]
    assert found["engine"]["running"] is False
    assert str(booked.store.path.parent) not in json.dumps(found)


def test_the_budget_can_be_overruled_and_given_back(booked: Booked) -> None:
    usual = booked.get("budget")
    assert (usual["budget_per_day"], usual["set_here"], usual["by"]) == (pytest.approx(1000.0), False, "default")
    booked.now += 60
    put = json.loads(booked.send("PUT", "budget", {"budget_per_day": 5000}).body)
    assert (put["budget_per_day"], put["set_here"], put["by"]) == (pytest.approx(5000.0), True, "api")
    assert put["since"] == "2025-11-15T20:01:00.000000Z"
    word = BudgetSaid.read(booked.store.fleet(WIDTH).settings["budget"])
    assert word is not None
    assert word.budget == pytest.approx(5000 / 86400)
    assert booked.get("status")["budget_per_day"] == pytest.approx(5000.0)
    back = json.loads(booked.send("PUT", "budget", {"budget_per_day": None}).body)
    assert back == usual
    for bad in (0, -1, 1e12, "many"):
        assert booked.send("PUT", "budget", {"budget_per_day": bad}).status == 400
    assert asked(booked.app, "/api/v1/budget", "PUT").status == 401


def test_settings_change_while_things_run_and_go_back_to_the_file(booked: Booked) -> None:
    usual = {one["name"]: one for one in booked.get("settings")["settings"]}
    assert {name: (one["value"], one["live"]) for name, one in usual.items()} == {
        "objective": ("freshness", True),
        "burst": ("auto", True),
        "first_round": ("1/s", True),
        "windows": ("", True),
        "contracts": ("", True),
        "hosts": ("", True),
        "cost_in": ("polls", False),
        "keep": ("3", False),
        "horizon": ("90 days", False),
    }
    booked.now += 60
    hours = "22:00-06:00 Mon-Fri Europe/Berlin; 00:00-24:00 Sat,Sun Europe/Berlin"
    for name, value in (("objective", "age"), ("windows", hours), ("first_round", ""), ("burst", "20")):
        put = json.loads(booked.send("PUT", "settings", {"name": name, "value": value}).body)
        said = next(one for one in put["settings"] if one["name"] == name)
        assert (said["value"], said["by"], said["set_here"]) == (value, "api", True)
        assert said["since"] == "2025-11-15T20:01:00.000000Z"
    config = booked.service.moment().config
    assert (config.objective, config.burst, config.first_rate, len(config.hours)) == ("age", 20.0, 0.0, 2)
    assert booked.get("status")["objective"] == "age"
    assert booked.get("status")["contracts"] == []
    source = booked.service.store.search()[0]
    booked.service.tag([source], ["orders"])
    booked.send("PUT", "settings", {"name": "contracts", "value": "orders: 90m; none: 95%"})
    (promised,) = booked.get("status")["contracts"]
    assert (promised["name"], promised["sources"]) == ("orders", 1)
    assert booked.service.moment([source]).standing.longest.tolist() == [0.9 * 5400.0]
    assert booked.service.moment().standing.longest[0] == 0.9 * 5400.0
    booked.send("PUT", "settings", {"name": "contracts", "value": None})
    assert booked.get("status")["contracts"] == []
    assert booked.send("GET", "plan").status == 200
    booked.store.add([Listing("https://a.example/", host="a.example")], booked.now)
    before = {one["host"]: one for one in booked.get("hosts")["hosts"]}
    booked.send("PUT", "settings", {"name": "hosts", "value": "a.example: 7s; b.example: 2s 9"})
    after = {one["host"]: one for one in booked.get("hosts")["hosts"]}
    assert after == before | {"a.example": before["a.example"] | {"spacing": 7.0}}
    assert 1 / 7 in booked.service.moment().scheduler.cap
    booked.send("PUT", "settings", {"name": "hosts", "value": None})
    assert booked.get("hosts")["hosts"] == list(before.values())
    back = json.loads(booked.send("PUT", "settings", {"name": "objective", "value": None}).body)["settings"]
    assert next(one for one in back if one["name"] == "objective") == usual["objective"]
    assert booked.service.moment().config.objective == "freshness"
    for name, value in (
        ("objective", "fun"),
        ("burst", "-1"),
        ("windows", "25:00-26:00"),
        ("contracts", "orders"),
        ("hosts", "example.org: 5"),
        ("no", "x"),
        ("keep", "9"),
    ):
        refused = booked.send("PUT", "settings", {"name": name, "value": value})
        assert refused.status == 422, name
    assert b"cannot be changed while things run" in refused.body
    assert asked(booked.app, "/api/v1/settings", "PUT").status == 401
    body, kind = [b'{"name": "burst", "value": "9"}'], "application/json"
    stale = asked(booked.app, "/api/v1/settings", "PUT", body, content_type=kind, if_match='"old"', **WHO)
    assert stale.status == 412


def test_a_preview_spends_the_budget_it_is_asked_about(tmp_path: Path) -> None:
    # All sources alike, and a prior so sure that they are Poisson: every one has the interval n/budget, and the
    # freshness of such a copy is (1 − e^−x)/x, x the changes in an interval [000 section 4].
    count, hour = 50, 3600.0
    booked = Booked(tmp_path / "p.db", count)
    try:
        learner = Learner(0, hour)
        learner.shared.prior[:] = 1e6, 1e6 * hour
        booked.poll(b"a")
        booked.store.record([], settings={"learner": kept(learner)})
        for polls in (0.5, 1.0, 4.0):
            found = booked.get(f"plan?budget_per_day={24 * polls * count}")
            assert found["intervals"]["p50"] == pytest.approx(hour / polls, rel=0.01)
            assert found["freshness"] == pytest.approx(polls * -math.expm1(-1.0 / polls), abs=0.01)
            assert (found["sources"], found["abandoned"]) == (count, 0)
        assert booked.get("plan")["budget_per_day"] == pytest.approx(1000.0)
        assert asked(booked.app, "/api/v1/plan?budget_per_day=0").status == 400
    finally:
        booked.close()


def test_a_preview_of_nothing(tmp_path: Path) -> None:
    booked = Booked(tmp_path / "n.db", 0)
    try:
        found = booked.get("plan")
        assert (found["sources"], found["freshness"], found["intervals"]["p50"]) == (0, None, None)
        assert booked.get("status")["sources"]["total"] == 0
    finally:
        booked.close()


def test_a_history_is_gathered_into_points(booked: Booked) -> None:
    prices = [Price(START + 60 * i, 1.0 + i, 0.1, 0.5 + 0.1 * (i % 2), 0.4, 10, 2, 1, 10.0) for i in range(10)]
    for price in prices:
        booked.store.record([], price=price)
    booked.now += 600
    found = booked.get("prices?points=5")["prices"]
    assert [one["polls"] for one in found] == [20] * 5
    assert [one["price"] for one in found] == [2.0, 4.0, 6.0, 8.0, 10.0]
    assert found[0]["fresh"] == pytest.approx(0.55)
    assert len(booked.get("prices?since=150s")["prices"]) == 2
    assert len(booked.get("prices?since=2025-11-15T20:05:00Z")["prices"]) == 5
    assert asked(booked.app, "/api/v1/prices?since=yesterday").status == 400
    assert sum(one.polls for one in gathered(prices, 3)) == 100


def test_hosts(booked: Booked) -> None:
    booked.store.add([Listing("https://b.example/", host="b.example", paused=True)], START)
    booked.poll(failed=True)
    home, public = booked.get("hosts")["hosts"]
    free = {"budget_per_day": None, "windows": "", "surcharge": 1.0}
    assert home == {"host": "", "sources": 4, "paused": 0, "failing": 4, "spacing": 0.0, "concurrency": 512} | free
    manners = {"spacing": 1.0, "concurrency": 2}
    assert public == {"host": "b.example", "sources": 1, "paused": 1, "failing": 0} | manners | free


def samples(text: str) -> dict[str, float]:
    return {
        name: float(value)
        for name, _, value in (line.rpartition(" ") for line in text.splitlines())
        if not name.startswith("#")
    }


def test_metrics_count_and_are_well_formed(booked: Booked) -> None:
    booked.poll(b"a")
    booked.now += 60
    booked.poll(failed=True)
    booked.store.record([], price=Price(booked.now, 2.5, 0.1, 0.75, 0.5))
    for path in ("/copies/1", "/copies/1", "/copies/99"):
        asked(booked.app, path)
    got = asked(booked.app, "/metrics")
    assert got.fields["content-type"].startswith("text/plain; version=0.0.4")
    found = samples(got.body.decode())
    assert found['unstale_polls_total{answer="changed"}'] == found['unstale_polls_total{answer="failed"}'] == 4
    assert found["unstale_last_poll_timestamp_seconds"] == START
    assert found['unstale_sources{state="failing"}'] == 4
    assert found["unstale_price"] == 2.5
    assert found["unstale_expected_freshness_ratio"] == booked.get("status")["freshness"]
    assert "unstale_even_freshness_ratio" not in found, "no source was looked at twice"
    assert (found["unstale_spent_total"], found["unstale_first_copies_total"]) == (8.0, 4.0)
    assert found['unstale_copy_requests_total{status="200"}'] == 2
    assert found['unstale_copy_requests_total{status="404"}'] == 1


def test_promtool_finds_nothing_wrong_with_the_metrics(booked: Booked) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed")
    booked.poll(b"a")
    booked.store.record([], price=Price(booked.now, 2.5, 0.1, 0.75, 0.5))
    asked(booked.app, "/copies/1")
    got = asked(booked.app, "/metrics")
    told = subprocess.run([promtool, "check", "metrics"], input=got.body, capture_output=True, check=False)
    assert (told.returncode, told.stdout + told.stderr) == (0, b"")


def test_a_budget_is_said_only_to_who_knows_the_last_word(booked: Booked) -> None:
    seen = asked(booked.app, "/api/v1/budget")
    booked.now += 60
    data = [json.dumps({"budget_per_day": 5000}).encode()]
    how = {"content_type": "application/json", **WHO}
    first = asked(booked.app, "/api/v1/budget", "PUT", data, if_match=seen.fields["etag"], **how)
    assert first.status == 200
    assert first.fields["etag"] == asked(booked.app, "/api/v1/budget").fields["etag"] != seen.fields["etag"]
    late = asked(booked.app, "/api/v1/budget", "PUT", data, if_match=seen.fields["etag"], **how)
    assert (late.status, "changed since" in json.loads(late.body)["detail"]) == (412, True)
    assert asked(booked.app, "/api/v1/budget", "PUT", data, if_match="*", **how).status == 200


def test_those_who_listen_hear_of_changes(booked: Booked) -> None:
    booked.poll(b"a")

    async def play() -> list[bytes]:
        live = Live(booked.service)
        stream: Any = (await live.listen(ANYBODY)).body_iterator  # type: ignore[attr-defined]
        heard = [await anext(stream), await anext(stream)]
        booked.now += 60
        booked.poll(b"b")
        heard.append(await asyncio.wait_for(anext(stream), SOON))
        live.close()
        heard += [piece async for piece in stream]
        return heard

    first, before, after = asyncio.run(play())
    assert first.startswith(b":")
    assert before.count(b"event: changed") == 0
    assert before.startswith(b"event: status\nid: 4\ndata: {")
    assert after.count(b"event: changed") == 4
    assert b"https://a.example/3" in after
    last = events(after)[-1]
    assert (last["event"], last["id"]) == ("status", "8"), "the id goes out after all that it stands for"
    assert json.loads(last["data"])["polls"] == {"unchanged": 0, "changed": 8, "failed": 0}


def events(told: bytes) -> list[dict[str, str]]:
    """Server-sent events as a browser takes them apart."""
    return [
        dict(line.split(": ", 1) for line in one.splitlines())
        for one in told.decode().split("\n\n")
        if one.startswith("event")
    ]


@pytest.mark.parametrize("how", ["since", "last-event-id"])
def test_who_was_cut_off_loses_nothing(booked: Booked, how: str) -> None:
    """A poll that began before others and ended after a listener was cut off is told when it comes back."""
    booked.poll(b"a")
    booked.now += 60
    claims = booked.store.claim(booked.now + 1e6, 10, lease=1e7, owner="t")
    slow, quick = claims[0], claims[1:]

    def ends(some: Sequence[Claim]) -> None:
        entries = [
            Entry(one, Answer.CHANGED, booked.now, math.inf, body=Body(b"new %d" % one.source, "text/plain"))
            for one in some
        ]
        assert all(booked.store.record(entries))

    async def listened(call: Call) -> list[dict[str, str]]:
        live = Live(booked.service)
        stream: Any = (await live.listen(call)).body_iterator  # type: ignore[attr-defined]
        heard = [await anext(stream)]
        while not any(one["event"] == "status" for one in events(heard[-1])):
            heard.append(await asyncio.wait_for(anext(stream), 10.0 * BUSY))
        live.close()
        return events(b"".join(heard))

    ends(quick)
    last = asyncio.run(listened(ANYBODY))[-1]["id"]
    assert int(last) < slow.token, "not up to the newest: an older one is still under way"
    ends([slow])
    again = Call(0, {"since": int(last)}, None) if how == "since" else Call(0, {}, None, {"last-event-id": last})
    tokens = {json.loads(one["data"])["token"] for one in asyncio.run(listened(again)) if one["event"] == "changed"}
    assert tokens == {one.token for one in claims}


def test_who_was_away_too_long_is_told_so(booked: Booked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unstale.server.live.WINDOW", 2)
    monkeypatch.setattr("unstale.server.live.AWAY", 3)
    booked.poll(b"a")

    async def play() -> bytes:
        live = Live(booked.service)
        stream: Any = (await live.listen(Call(0, {"since": 0}, None))).body_iterator  # type: ignore[attr-defined]
        heard = [await anext(stream), await anext(stream)]
        live.close()
        return heard[1]

    first, *rest = events(asyncio.run(play()))
    assert (first["event"], json.loads(first["data"])) == ("missed", {"told_from": 2})
    assert [json.loads(one["data"])["token"] for one in rest] == [2, 3, 4]


def test_not_all_may_listen(booked: Booked) -> None:
    async def play() -> int:
        from unstale.server.endpoints import Refused

        live = Live(booked.service)
        streams = []
        for _ in range(LISTENERS):
            response: Any = await live.listen(ANYBODY)
            streams.append(response.body_iterator)
            await anext(streams[-1])
        with pytest.raises(Refused, match="listen already") as refused:
            await live.listen(ANYBODY)
        live.close()
        return refused.value.status

    assert asyncio.run(play()) == 503


class TestHubs:
    """A hub verifies its subscription, then tells of news."""

    def callback(self, booked: Booked) -> str:
        got = asked(booked.app, "/api/v1/sources/1/websub", **WHO)
        return str(json.loads(got.body)["callback"])

    def due(self, booked: Booked) -> float:
        return float(booked.store.columns_of([1], WIDTH).due[0])

    def test_verification(self, booked: Booked) -> None:
        path = self.callback(booked)
        asks = "hub.mode=subscribe&hub.challenge=abc&hub.topic="
        got = asked(booked.app, f"{path}?{asks}https://a.example/0")
        assert (got.status, got.body) == (200, b"abc")
        assert got.fields["content-type"].startswith("text/plain")
        assert asked(booked.app, f"{path}?{asks}https://a.example/1").status == 404
        assert asked(booked.app, f"{path[:-1]}x?{asks}https://a.example/0").status == 404
        assert asked(booked.app, path.replace("/1/", "/2/") + f"?{asks}https://a.example/1").status == 404

    def test_news_are_a_hint(self, booked: Booked) -> None:
        booked.poll(b"a", wait=1e9)
        assert asked(booked.app, self.callback(booked), "POST", [b"<feed/>"]).status == 202
        assert self.due(booked) == booked.now
        assert [(one.source, one.address) for one in booked.store.pushes()] == [(1, "websub")]

    def test_a_webhook_says_so_too(self, booked: Booked) -> None:
        booked.poll(b"a", wait=1e9)
        path = str(json.loads(asked(booked.app, "/api/v1/sources/1/websub", **WHO).body)["webhook"])
        assert asked(booked.app, path[:-1], "POST", [b""]).status == 404
        assert asked(booked.app, path.replace("/webhook/", "/websub/"), "POST", [b""]).status == 404
        assert asked(booked.app, path, "POST", [b"anything"]).status == 202
        assert self.due(booked) == booked.now
        assert booked.store.pushes([1])[0].address == "webhook"

    def test_where_it_is_needs_the_token(self, booked: Booked) -> None:
        assert asked(booked.app, "/api/v1/sources/1/websub").status == 401
        assert asked(booked.app, "/api/v1/sources/9/websub", **WHO).status == 404

    @pytest.mark.parametrize("method", ["sha1", "sha256", "sha512"])
    def test_a_wrong_signature_is_thanked_and_does_nothing(self, tmp_path: Path, method: str) -> None:
        booked = Booked(tmp_path / "s.db", secret="between us")
        try:
            booked.poll(b"a", wait=1e9)
            path, due = self.callback(booked), self.due(booked)
            right = hmac.new(b"between us", b"<feed/>", method).hexdigest()
            for signature in ("", f"{method}={'0' * len(right)}", f"md5={hashlib.md5(b'').hexdigest()}", right):
                assert asked(booked.app, path, "POST", [b"<feed/>"], x_hub_signature=signature).status == 202
                assert self.due(booked) == due
            assert asked(booked.app, path, "POST", [b"<feed/>"], x_hub_signature=f"{method}={right}").status == 202
            assert self.due(booked) < due
        finally:
            booked.close()


def test_the_document_tells_every_path(booked: Booked) -> None:
    document = booked.get("openapi.json")
    assert document["openapi"] == "3.1.0"
    assert set(document["paths"]["/api/v1/sources/{source}"]) == {"get", "patch", "delete"}
    identifiers = [way["operationId"] for path in document["paths"].values() for way in path.values()]
    assert len(set(identifiers)) == len(identifiers) >= 20


def test_whatever_the_document_lets_write_needs_the_token(booked: Booked) -> None:
    document = booked.get("openapi.json")
    writing = [(way.upper(), path) for path, ways in document["paths"].items() for way in ways if way != "get"]
    assert len(writing) >= 7
    for method, path in writing:
        assert document["paths"][path][method.lower()]["security"] == [{"token": []}]
        assert asked(booked.app, path.replace("{source}", "1"), method).status == 401


def test_explanations(booked: Booked) -> None:
    booked.poll(b"a")
    booked.now += 60
    beliefs = np.zeros(WIDTH)
    for claim in booked.store.claim(booked.now, 9, lease=60.0, owner="test"):
        booked.store.record([Entry(claim, Answer.UNCHANGED, booked.now, booked.now + 60.0, beliefs.tobytes())])
    found = booked.get("sources/2/explain")
    assert found["id"] == 2
    assert "it changes about every" in found["sentence"]


def test_a_token_is_in_no_answer(booked: Booked) -> None:
    booked.poll(b"a")
    for path in ("status", "sources", "sources/1", "openapi.json", "hosts", "budget", "sources/1/explain"):
        assert TOKEN not in json.dumps(booked.get(path))
