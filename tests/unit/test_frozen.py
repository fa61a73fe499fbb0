"""Records that are declared and made quickly are what frozen dataclasses are."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Mapping
from dataclasses import FrozenInstanceError, field, fields, replace
from typing import Any

import pytest

from unstale.frozen import dataclass
from unstale.keeper.outcomes import Answer
from unstale.ports import Claim, Fetched


@dataclasses.dataclass(frozen=True, slots=True)
class Plain:
    name: str
    weight: float = 1.0
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Quick:
    name: str
    weight: float = 1.0
    options: Mapping[str, Any] = field(default_factory=dict)


def test_it_takes_the_same_arguments_and_refuses_the_same() -> None:
    for make in (Plain, Quick):
        made = make("a", options={"b": 1})
        assert (made.name, made.weight, made.options) == ("a", 1.0, {"b": 1})
        with pytest.raises(TypeError):
            make()  # type: ignore[call-arg]
        with pytest.raises(TypeError):
            make("a", 1.0, {}, 2)  # type: ignore[call-arg]
        with pytest.raises(TypeError):
            make("a", height=1.0)  # type: ignore[call-arg]
    assert repr(Quick("a")) == repr(Plain("a")).replace("Plain", "Quick")
    assert type(Quick("a")) is Quick


def test_each_has_defaults_of_its_own() -> None:
    assert Quick("a").options is not Quick("a").options


def test_it_is_frozen_compared_and_hashed_as_before() -> None:
    fetched = Fetched(Answer.UNCHANGED, 1.0, etag='"x"')
    with pytest.raises(FrozenInstanceError):
        fetched.etag = None  # type: ignore[misc]
    with pytest.raises((FrozenInstanceError, AttributeError, TypeError)):
        fetched.other = None  # type: ignore[attr-defined]
    again = Fetched(Answer.UNCHANGED, 1.0, etag='"x"')
    assert fetched == again
    assert hash(fetched) == hash(again)
    assert replace(fetched, etag=None) != fetched


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_it_can_be_copied_and_sent_to_another_process(again: Any) -> None:
    claim = Claim(1, 2, "https://example.org/", "http", 3.0, {"tags": ["a"]})
    copied = again(claim)
    assert copied == claim
    assert [getattr(copied, one.name) for one in fields(claim)] == [getattr(claim, one.name) for one in fields(claim)]


def test_what_is_asked_of_the_class_is_answered_as_before() -> None:
    plain, quick = inspect.signature(Plain), inspect.signature(Quick)
    assert list(plain.parameters) == list(quick.parameters)
    assert [one.name for one in fields(Plain)] == [one.name for one in fields(Quick)]
    assert Quick.__match_args__ == Plain.__match_args__
    assert dataclasses.asdict(Quick("a")) == dataclasses.asdict(Plain("a"))
    assert not hasattr(Quick("a"), "__dict__")


def test_fields_left_out_of_comparison_and_of_sight_are() -> None:
    @dataclass(frozen=True, slots=True)
    class Named:
        name: str
        seen: float = field(default=0.0, compare=False, repr=False)

        def __post_init__(self) -> None:
            object.__setattr__(self, "name", self.name.lower())

    assert Named("A", 1.0) == Named("a", 2.0)
    assert hash(Named("A", 1.0)) == hash(Named("a", 2.0))
    assert repr(Named("A", 1.0)).endswith("Named(name='a')")
    assert Named("A") != ("a",)


def test_fields_may_be_called_anything() -> None:
    @dataclass(frozen=True, slots=True)
    class Named:
        new: bool
        draft: int = 1
        MISSING: list[int] = field(default_factory=list)
        usual_draft: int = 2

    made = Named(True)
    assert (made.new, made.draft, made.MISSING, made.usual_draft) == (True, 1, [], 2)


def test_the_same_not_a_number_is_equal_on_every_python() -> None:
    unknown = float("nan")
    assert Quick("a", unknown) == Quick("a", unknown)


def test_without_comparison_records_are_equal_to_themselves_alone() -> None:
    @dataclass(frozen=True, slots=True, eq=False)
    class Alone:
        name: str

    one = Alone("a")
    assert one == one
    assert one != Alone("a")
    assert len({one, one}) == 1


def test_what_defines_its_own_methods_or_has_bases_is_left_to_the_library() -> None:
    @dataclass(frozen=True, slots=True)
    class Own:
        name: str

        def __repr__(self) -> str:
            return "own"

    @dataclass(frozen=True, slots=True)
    class Based(Own):
        weight: float = 1.0

    assert repr(Own("a")) == "own"
    assert Based("a", 2.0) == Based("a", 2.0) != Based("a")
    with pytest.raises(FrozenInstanceError):
        Based("a").name = "b"  # type: ignore[misc]
