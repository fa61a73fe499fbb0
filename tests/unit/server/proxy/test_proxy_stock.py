"""The stock keeps to its bound, whatever is put in, and forgets what was asked longest ago."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from unstale.server.proxy.fields import Fields
from unstale.server.proxy.stored import Stock, Stored


def stored(address: str, size: int = 100, variant: str = "") -> Stored:
    selecting = (("foo", variant),) if variant else ()
    return Stored(address, 200, Fields(), bytes(size), 0.0, 0.0, 60.0, {}, selecting)


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(0, 6000), st.sampled_from(["", "1", "2"]))))
def test_the_bound_holds_and_the_sum_is_right(puts: list[tuple[str, int, str]]) -> None:
    stock = Stock(10_000)
    for address, size, variant in puts:
        stock.put(stored(address, size, variant))
        assert stock.size <= 10_000
        assert stock.size == sum(one.size() for name in "abcdef" for one in stock.variants(name))
    for name in "abcdef":
        stock.forget(name)
    assert (stock.size, len(stock)) == (0, 0)


def test_what_was_asked_longest_ago_goes_first() -> None:
    stock = Stock(3500)
    for address in "abc":
        stock.put(stored(address))
    assert stock.find("a", Fields()) is not None
    stock.put(stored("d"))
    assert [address in stock for address in "abcd"] == [True, False, True, True]


def test_one_that_is_too_large_pushes_nothing_out() -> None:
    stock = Stock(3500)
    stock.put(stored("a"))
    stock.put(stored("b", 5000))
    assert ("a" in stock, "b" in stock) == (True, False)


def test_variants_are_bounded_too() -> None:
    stock = Stock(10**6, variants=3)
    for number in range(5):
        stock.put(stored("a", variant=str(number)))
    assert [one.selecting[0][1] for one in stock.variants("a")] == ["4", "3", "2"]
