"""What replicas say of their copies is read as they write it, and doubted where it must be."""

from __future__ import annotations

import pytest

from support.asgi import START
from unstale.adapters.replica_status import MOST_HOPS, CopyStatus, doubt, read_status
from unstale.ports import Edition, Head
from unstale.server import headers


def said(checked: float, via: str = "", name: str = "me") -> dict[str, str]:
    edition = Edition(3, START, "text/plain", None, bytes(32), 5, 0.0, via)
    times = headers.times(Head(1, 9, 3, checked, checked + 600, 0), edition)
    fields = times.at(checked + 5, headers.Believed(0.5, 60.0, headers.structured_name(name).decode()))
    return {field.decode(): value.decode() for field, value in fields}


def test_what_our_server_writes_is_read_back_to_the_millisecond() -> None:
    found = read_status(said(START + 0.9876, via='root, "replica 7"'))
    assert found is not None
    assert found.as_of == pytest.approx(START + 0.987, abs=1e-6)
    assert found.as_of <= START + 0.9876, "cut, never rounded up: a copy must not look younger than it is"
    assert (found.version, found.expires) == (3, START + 600)
    assert found.via == ("root", '"replica 7"', "me")


def test_hops_count_the_replicas_on_the_way() -> None:
    assert "hops=3" in said(START, via="a, b")["replica-status"]
    assert said(START, via="a, b")["cache-status"].startswith("a; hit, b; hit, me; hit; ttl=")


@pytest.mark.parametrize(
    "text", ["", "version=3", "as-of=12", "as-of=@", "as-of=@12x", "x-as-of=@12", "as-of=@1234567890123", "as-of=@-5"]
)
def test_a_field_without_a_time_is_none(text: str) -> None:
    assert read_status({"replica-status": text}) is None


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('nginx; fwd=miss; detail="a, b; c", b; hit', ("nginx", "b")),
        ("a;hit;ttl=-5,b", ("a", "b")),
        ("a, ,b", ("a",)),
        ("\x01evil, b", ()),
        ('"a, b"', ()),
        ("x" * 101, ()),
    ],
)
def test_names_of_a_way(text: str, names: tuple[str, ...]) -> None:
    found = read_status({"replica-status": "as-of=@12", "cache-status": text})
    assert found is not None
    assert found.via == names


@pytest.mark.parametrize(
    ("status", "since", "why"),
    [
        (CopyStatus(1000.0, 1, 0.0, ("a",)), 1000.0004, ""),
        (CopyStatus(1004.9, 1, 0.0, ("a",)), 900.0, ""),
        (CopyStatus(1005.1, 1, 0.0, ("a",)), 900.0, "from the future"),
        (CopyStatus(989.0, 1, 0.0, ("a",)), 990.0, "1 s older than ours"),
        (CopyStatus(1000.0, 1, 0.0, ('"me"', "a")), 900.0, "in a circle"),
        (CopyStatus(1000.0, 1, 0.0, ("a",) * (MOST_HOPS + 1)), 900.0, f"more than {MOST_HOPS} replicas"),
    ],
)
def test_doubts(status: CopyStatus, since: float, why: str) -> None:
    found = doubt(status, since, 1000.0, "me")
    assert why in found
    assert bool(found) == bool(why)
