"""Every exception Unstale raises on purpose, and the one helper that words them.

    UnstaleError
    ├── InputError (also ValueError)        a parameter breaks a rule; nothing was done
    │   └── InfeasibleError                 each parameter is fine, together they cannot be met
    ├── ConvergenceError                    a numerical method stopped early; carries what it had
    ├── StoreError                          the store could not do it, and did nothing
    │   ├── StoreLostError                  its file is no longer the one that was opened
    │   └── StoreUnreachableError           its server is not there, or not yet: trying again can help
    ├── TooLateError                        the time to begin a poll was over; nothing was asked
    ├── ReplicaError                        other replicas could not do it
    └── MissingExtraError (also ImportError) an optional dependency is not installed

A message says what (parameter and value), the rule, and the remedy, in one sentence.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


class UnstaleError(Exception):
    """Base of everything Unstale raises on purpose."""


class InputError(UnstaleError, ValueError):
    """A parameter breaks a rule."""


class InfeasibleError(InputError):
    """The constraints contradict each other; `least_budget` is the smallest budget that would do."""

    def __init__(self, message: str, least_budget: float | None = None) -> None:
        super().__init__(message)
        self.least_budget = least_budget


class ConvergenceError(UnstaleError):
    """A numerical method stopped before its tolerance; `estimate` is what it had, `error` its bound."""

    def __init__(self, message: str, estimate: Any = None, error: Any = None) -> None:
        super().__init__(message)
        self.estimate = estimate
        self.error = error


class StoreError(UnstaleError):
    """The store could not do it, and did nothing: the disk is full, the file is damaged, locked or of another kind."""


class StoreLostError(StoreError):
    """The store's file was deleted, replaced, cut or damaged under us: trying again would write into nothing."""


class StoreUnreachableError(StoreError):
    """The store's server does not answer, starts, or takes no more connections: trying again can help."""


class OlderStoreError(StoreError):
    """The store was made by an earlier version and is only read: opening it for writing brings it up."""


class TooLateError(UnstaleError):
    """The time by which a poll had to begin was over before its request went out: nothing was asked of its host."""


class ReplicaError(UnstaleError):
    """Other replicas could not do it: none has a copy, or one broke off."""


class MissingExtraError(UnstaleError, ImportError):
    """An optional dependency is needed and not installed."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"{package} is not installed, this needs it: pip install 'unstale[{extra}]'")


def sentence(name: str, value: object, rule: str, remedy: str) -> str:
    """The one form of an error message: what, the rule, the remedy.

    >>> sentence("change_rate", -1.0, "must be 0 or more", "give changes per unit of time")
    'change_rate -1.0 must be 0 or more: give changes per unit of time'
    """
    return f"{name} {value} {rule}: {remedy}"


def require(condition: object, name: str, value: object, rule: str, remedy: str) -> None:
    """Raise InputError with the one sentence unless `condition` holds."""
    if not condition:
        raise InputError(sentence(name, value, rule, remedy))


def suggestion(name: str, known: Iterable[str], otherwise: str, where: str = "") -> str:
    """The remedy for a name that is unknown: the one that may have been meant, or else `otherwise`.

    >>> suggestion("chnaged", ("table", "changed"), "see the list"), suggestion("x", ("table",), "see the list")
    ("did you mean 'changed'?", 'see the list')
    """
    from difflib import get_close_matches

    close = get_close_matches(name.lower(), list(known), 1, cutoff=0.5)
    return f"did you mean {where + close[0]!r}?" if close else otherwise
