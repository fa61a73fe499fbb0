"""What the dashboard asks beyond the API: table, differences, beliefs, log, hosts, replicas."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.asgi import START, Kept, asked
from unstale.cli.service import service_of
from unstale.cli.settings import Settings
from unstale.core.learning.learner import Learner
from unstale.core.learning.outlook import WIDTH, outlook
from unstale.core.learning.state import kept
from unstale.keeper.outcomes import Answer
from unstale.keeper.replay import PastPolls, blank, replay
from unstale.ports import LEARNER, Observation
from unstale.server.app import replica
from unstale.server.dashboard.views import views
from unstale.service.beliefs import believed
from unstale.service.difference import BYTES, LINES, difference, lines_of


class Seen(Kept):
    """A store with the views of a dashboard around it."""

    def __init__(self, path: Path, sources: int = 3) -> None:
        super().__init__(path, sources)
        self.service = service_of(Settings(store=str(path)))
        self.service.clock = self.clock
        more = views(self.service, replicas=lambda: {"name": "here"})
        self.app = replica(self.shelf, clock=self.clock, more=more)

    def get(self, path: str, status: int = 200) -> Any:
        got = asked(self.app, f"/dashboard/{path}")
        assert got.status == status, got.body
        return json.loads(got.body)

    def sorted(self, query: str) -> Any:
        """The table, once it has been sorted: the first look at it does not wait long."""
        while not (found := self.get(f"table?{query}"))["sorted"]:
            time.sleep(0.02)
        return found

    def close(self) -> None:
        self.service.close()
        super().close()


@pytest.fixture
def seen(tmp_path: Path) -> Iterator[Seen]:
    seen = Seen(tmp_path / "s.db")
    yield seen
    seen.close()


def test_the_table_shows_what_the_api_would(seen: Seen) -> None:
    seen.poll(b"a")
    found = seen.sorted("sort=id&down=true&limit=2")
    assert [one["id"] for one in found["sources"]] == [3, 2]
    assert (found["total"], found["sorted"]) == (3, True)
    assert found["sources"][0]["address"] == "https://a.example/2"
    assert seen.sorted("search=EXAMPLE/1")["total"] == 1
    for wrong in ("sort=size", "state=gone", "limit=0", "limit=100000", "offset=-1", "down=perhaps", "what=1"):
        assert seen.get(f"table?{wrong}", 400)["detail"]


def test_two_versions_differ_line_by_line(seen: Seen) -> None:
    seen.poll(b"one\ntwo\nthree")
    seen.now += 60
    seen.poll(b"one\n2\nthree")
    found = seen.get("sources/1/difference?old=1&new=2")
    assert found["lines"] == [[" ", "one"], ["-", "two"], ["+", "2"], [" ", "three"]]
    assert not found["cut"]
    assert seen.get("sources/1/difference?new=1")["lines"] == [[" ", "one"], [" ", "two"], [" ", "three"]]
    assert seen.get("sources/1/difference?old=1&new=1")["lines"] == []
    assert "not kept" in seen.get("sources/1/difference?new=9", 404)["detail"]
    assert "new is missing" in seen.get("sources/1/difference?old=1", 400)["detail"]


def test_what_is_not_text_is_not_shown(seen: Seen) -> None:
    seen.poll(bytes(range(256)), "image/png")
    assert "is not text" in seen.get("sources/1/difference?new=1", 415)["detail"]


@given(st.lists(st.sampled_from("abc"), max_size=30), st.lists(st.sampled_from("abcd"), max_size=30))
def test_a_difference_leads_from_the_old_to_the_new(old: list[str], new: list[str]) -> None:
    # Long runs that stayed are left out, so few lines are compared here with all of them shown.
    lines = difference("\n".join(old).encode(), "\n".join(new).encode())["lines"]
    taken, added = [line for kind, line in lines if kind == "-"], [line for kind, line in lines if kind == "+"]
    assert sorted(old + added) == sorted(new + taken)


def test_large_versions_are_compared_in_part_and_in_time() -> None:
    old = b"\n".join(b"%d" % (i % 7) for i in range(300_000))
    new = b"\n".join(b"%d" % (i % 5) for i in range(300_000))
    begun = time.process_time()
    found = difference(old, new)
    assert time.process_time() - begun < 5.0
    assert found["cut"]
    assert len(found["lines"]) <= 1500
    lines, cut = lines_of(b"<p>" * BYTES)
    assert (len(lines) <= LINES, cut, max(map(len, lines)) <= 400) == (True, True, True)


@pytest.mark.parametrize(
    "line", [b"word " * 400, b"x" * 3000, b"<p>one</p>" * 300, b"a,b;c" * 500, b"One. Two! " * 200]
)
@pytest.mark.parametrize("at", [10, 410, 1399])
def test_a_change_anywhere_in_a_long_line_is_found(line: bytes, at: int) -> None:
    """[a change beyond 400 characters of a line was once told as none]"""
    found = difference(b"before\n" + line + b"\nafter", b"before\n" + line[:at] + b"CHANGED" + line[at:] + b"\nafter")
    assert not found["same"]
    assert any("CHANGED" in text for kind, text in found["lines"] if kind == "+")
    assert all(len(text) <= 400 for _, text in found["lines"])


def test_what_was_not_compared_is_not_concluded_from() -> None:
    same = b"0123456789abcdef\n" * (BYTES // 16)
    assert difference(same + b"old", same + b"new") == {"lines": [], "cut": True, "same": False}
    assert difference(same, same) == {"lines": [], "cut": True, "same": True}
    # What is the same at the beginning and the end is no burden.
    many = b"".join(b"%d\n" % i for i in range(100_000))
    found = difference(many + b"old\n" + many, many + b"new\n" + many)
    assert (found["cut"], found["lines"][0]) == (False, ["@", "line 99998"])
    assert [one for one in found["lines"] if one[0] in "+-"] == [["-", "old"], ["+", "new"]]


def test_a_page_is_shown_where_it_can_do_nothing(seen: Seen) -> None:
    seen.poll(b"<script>alert(1)</script><h1>Timetable</h1>", "text/html; charset=utf-8")
    got = asked(seen.app, "/dashboard/sources/1/frame?version=1")
    assert (got.status, got.body) == (200, b"<script>alert(1)</script><h1>Timetable</h1>")
    assert got.fields["content-type"] == "text/html; charset=utf-8"
    policy = {rule.strip().split(" ", 1)[0]: rule for rule in got.fields["content-security-policy"].split(";")}
    assert policy["sandbox"].strip() == "sandbox", "with nothing allowed"
    assert policy["default-src"].strip() == "default-src 'none'"
    assert "frame-ancestors" in policy
    assert got.fields["x-content-type-options"] == "nosniff"
    seen.now += 60
    seen.poll(b"\x00", "text/html\r\nX-Evil: 1")
    assert "is not a page" in seen.get("sources/1/frame?version=2", 415)["detail"]
    assert "not kept" in seen.get("sources/1/frame?version=9", 404)["detail"]


def test_the_belief_is_what_replaying_gives(seen: Seen) -> None:
    rng = np.random.default_rng(2)
    at = START + np.cumsum(rng.uniform(60, 5000, 40))
    changed = rng.random(40) < 0.4
    answers = [Answer.CHANGED if one else Answer.UNCHANGED for one in changed]
    told = [Observation(i + 1, 1, float(at[i]), answers[i], math.nan, None, 0, "") for i in range(40)]
    told.insert(20, Observation(99, 1, float(at[19]) + 1.0, Answer.FAILED, math.nan, None, 0, "no"))
    state = kept(Learner(1, 3600.0))
    points = believed(told, {LEARNER: state})
    assert len(points) == 40, "a failure teaches nothing"
    assert all(0.0 < p.low < p.change_rate < p.high for p in points)
    polls = PastPolls(
        np.zeros(40, np.int64), at, np.ones(40, np.bool_), changed, np.full(40, np.nan), np.ones(40, np.int64)
    )
    whole = replay(polls, blank(1, WIDTH), {1: state})

    class Held:
        beliefs, last, found, settings = whole.rows, whole.last, whole.found, {LEARNER: state}

    assert points[-1].change_rate == pytest.approx(float(outlook(Held(), float(at[-1])).change_rate[0]), rel=1e-12)


def test_beliefs_over_the_wire(seen: Seen) -> None:
    assert seen.get("sources/1/belief") == {"points": []}
    seen.poll(b"a")
    assert len(seen.get("sources/1/belief")["points"]) == 1
    assert "there is no source 9" in seen.get("sources/9/belief", 404)["detail"]


def test_the_log_has_stable_names(seen: Seen) -> None:
    seen.poll(b"a")
    seen.now += 60
    seen.poll()
    seen.now += 60
    seen.poll(failed=True)
    found = seen.get("log?limit=7")["events"]
    assert [one["event"] for one in found] == ["poll.failed"] * 3 + ["poll.unchanged"] * 3 + ["poll.changed"]
    assert found[0]["address"].startswith("https://a.example/")
    assert found[-1]["at"] == "2025-11-15T20:00:00.000000Z"


def test_hosts_tell_what_they_are_granted(seen: Seen) -> None:
    (host,) = seen.get("hosts")["hosts"]
    assert (host["sources"], host["failing"], host["spacing"], host["surcharge"]) == (3, 0, 0.0, 1.0)


def test_without_other_replicas_there_are_none(seen: Seen) -> None:
    seen.poll(b"a")
    assert seen.get("replicas") == {"name": "here", "peers": [], "ways": []}
