"""Records that are made quickly are what frozen dataclasses are."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Mapping
from dataclasses import FrozenInstanceError, dataclass, field, fields, replace
from typing import Any

import pytest

from unstale.frozen import quickly_made
from unstale.keeper.outcomes import Answer
from unstale.ports import Claim, Fetched


@dataclass(frozen=True, slots=True)
class Plain:
    name: str
    weight: float = 1.0
    options: Mapping[str, Any] = field(default_factory=dict)


@quickly_made
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
