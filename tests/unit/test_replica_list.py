"""Who polled a source last: newest first, bounded, and nothing that a stranger could smuggle in."""

from __future__ import annotations

import pytest

from unstale.replica_list import KEPT, MOST, SOURCES, ReplicaList, read, written


def test_newest_first_without_who_asks() -> None:
    told = ReplicaList()
    for at, replica in enumerate("abcab"):
        told.polled("news", replica, float(at))
    assert told.polled("news", "c", 9.0) == ["b", "a"]
    assert told.polled("news", "a", 9.5) == ["c", "b"]


def test_who_left_or_fell_silent_is_not_named() -> None:
    told = ReplicaList()
    for source in ("news", "law"):
        told.polled(source, "a", 0.0)
        told.polled(source, "b", 10.0)
    told.left("b")
    assert told.polled("news", "c", 20.0) == ["a"]
    assert told.polled("law", "c", KEPT + 5.0) == []


def test_both_bounds_hold() -> None:
    told = ReplicaList()
    for i in range(3 * MOST):
        told.polled("news", str(i), float(i))
    assert told.polled("news", "x", 1e3) == [str(i) for i in range(3 * MOST - 1, 2 * MOST, -1)]
    for i in range(SOURCES):
        told.polled(i, "a", 0.0)
    assert told.polled("news", "x", 1e3) == [], "the oldest source is forgotten"


@pytest.mark.parametrize(
    "said",
    ["http://a:1", '"http://a:1', '"file:///etc/passwd"', '"http://a/path"', '"http://a\r\nSet-Cookie: x"', '""', ""],
)
def test_what_is_no_address_of_a_replica_is_not_listed(said: str) -> None:
    told = ReplicaList()
    assert told.answer("news", said, 0.0) == ""
    assert told.answer("news", '"http://b:2"', 1.0) == ""


def test_what_is_written_can_be_read() -> None:
    names = ["http://127.0.0.1:8600", "https://replica.example", "http://[::1]:1"]
    assert read(written(names)) == names
    assert len(read(written(["http://a"] * 500))) == MOST
