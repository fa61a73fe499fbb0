"""How the values of settings are written, and read: each form gives the value, or one sentence that names the setting.

A form takes the setting's name and what TOML made of its value. Times become seconds, rates become per second.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from unstale.calendar import Hours, parse_hours
from unstale.core.checks import number
from unstale.errors import InputError, sentence
from unstale.units import DAY, parse_duration, parse_rate

Form = Callable[[str, Any], Any]
_BYTES = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 2**10, "mib": 2**20, "gib": 2**30}
_SIZE = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*")
_REFERENCE = re.compile(r"\$\{?[A-Za-z_]\w*\}?")


def text(name: str, value: Any) -> str:
    """Any text."""
    if not isinstance(value, str):
        raise refused(name, value, "must be text", "write it in quotes")
    return value


def flag(name: str, value: Any) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise refused(name, value, "must be true or false", "write it without quotes")
    return value


def whole(name: str, value: Any) -> int:
    """A whole number from 1 on."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise refused(name, value, "must be a whole number from 1 on", "write it like 3")
    return value


def amount(name: str, value: Any) -> float:
    """A number from 0 on."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise refused(name, value, "must be a number", "write it like 2 or 0.5")
    return number(name, value, least=0)


def share(name: str, value: Any) -> float:
    """A number above 0, 1 at most."""
    return number(name, amount(name, value), above=0, most=1, remedy="write it like 0.95")


def part(name: str, value: Any) -> float:
    """A number from 0 on, below 1."""
    return number(name, amount(name, value), least=0, most=0.99, remedy="write it like 0.2")


def count(name: str, value: Any) -> int:
    """A whole number from 0 on."""
    return 0 if value == 0 and not isinstance(value, bool) else whole(name, value)


def column_types(name: str, value: Any) -> dict[str, str]:
    """A table of types of columns."""
    from unstale.adapters.sql_types import known_type

    if not isinstance(value, Mapping):
        raise refused(name, value, "is no table", 'write { amount = "decimal(12,2)" }')
    return {str(column): known_type(str(type_)) for column, type_ in value.items()}


def above_zero(name: str, value: Any) -> float:
    """A number above 0."""
    return number(name, amount(name, value), above=0)


def seconds(name: str, value: Any) -> float:
    """A length of time with its unit, to the microsecond.

    >>> seconds("http.timeout", "1m30s")
    90.0
    """
    if not isinstance(value, str):
        raise refused(name, value, "must be a length of time", 'write it like "15m" or "2h"')
    return round(parse_duration(value, name) * DAY, 6)


def some_seconds(name: str, value: Any) -> float:
    """A length of time above 0."""
    return number(name, seconds(name, value), above=0, remedy='write it like "30s"')


def longest(name: str, value: Any) -> float:
    """A length of time above 0, or "" for no limit."""
    return math.inf if value == "" else some_seconds(name, value)


def rate(name: str, value: Any) -> float:
    """A rate above 0.

    >>> rate("budget", "3600/h")
    1.0
    """
    if not isinstance(value, str):
        raise refused(name, value, "must be a rate", 'write it like "1000/day" or "3/s"')
    return number(name, parse_rate(value, name) / DAY, above=0, remedy='write it like "1000/day"')


def allowance(name: str, value: Any) -> float:
    """A rate, or "" for none.

    >>> allowance("first_round", ""), allowance("first_round", "60/min")
    (0.0, 1.0)
    """
    return 0.0 if value == "" else rate(name, value)


def cap(name: str, value: Any) -> float:
    """A rate, or "" for no limit."""
    return math.inf if value == "" else rate(name, value)


def burst(name: str, value: Any) -> float:
    """A number above 0, or "auto", which is 0."""
    return 0.0 if value == "auto" else above_zero(name, value)


def size(name: str, value: Any) -> int:
    """Bytes with their unit.

    >>> size("http.limit", "16MiB"), size("http.limit", "5 MB")
    (16777216, 5000000)
    """
    found = _SIZE.fullmatch(value) if isinstance(value, str) else None
    unit = _BYTES.get(found[2].lower()) if found else None
    if found is None or unit is None or not (count := int(float(found[1]) * unit)):
        raise refused(name, value, "is not a size", 'write it like "16MiB"')
    return count


def texts(name: str, value: Any) -> tuple[str, ...]:
    """A list of texts."""
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise refused(name, value, "must be a list of texts", 'write it like ["one", "two"]')
    return tuple(value)


def networks(name: str, value: Any) -> tuple[str, ...]:
    """A list of networks, like 10.0.0.0/8."""
    from unstale.adapters.addresses import Gate

    found = texts(name, value)
    said_of(name, "allow_networks", lambda: Gate(found))
    return found


def windows(name: str, value: Any) -> tuple[Hours, ...]:
    """A list of hours with days and zone, like `22:00-06:00 Mon-Fri Europe/Berlin`."""
    found: list[Hours] = []
    for one in texts(name, value):
        said_of(name, "window", lambda one=one: found.extend(parse_hours(one)))  # type: ignore[misc]
    return tuple(found)


def objective(name: str, value: Any) -> str:
    """What the budget is spent for."""
    from unstale.core.objectives import objective_of

    if not isinstance(value, str):
        raise refused(name, value, "is no text", 'write "freshness", "age" or "deadline:1h"')
    said_of(name, "objective", lambda: objective_of(value))
    return value


def cost_in(name: str, value: Any) -> str:
    """What the budget counts."""
    from unstale.keeper.costs import UNITS

    if value not in UNITS:
        raise refused(name, value, "is nothing that polls can be counted in", f"choose from {', '.join(UNITS)}")
    return str(value)


def reference(name: str, value: Any) -> str:
    """The name of an environment variable, `$NAME`, or "" for none."""
    if not isinstance(value, str) or (value and not _REFERENCE.fullmatch(value)):
        # Not shown: it may well be the secret itself.
        raise InputError(
            sentence(
                name,
                "(not shown)",
                "must not hold a secret",
                "put it in the environment and write its name there, as $NAME",
            )
        )
    return value


def place(name: str, value: Any) -> str:
    """The address of something on the network, a password in it only as `$NAME`; "" for none."""
    found = text(name, value)
    if found:
        from unstale.adapters.admission import checked_address

        said_of(name, "address", lambda: checked_address(found))
    return found


def headers(name: str, value: Any) -> dict[str, str]:
    """A table of texts in which secrets are `$NAME`."""
    return _option(name, "headers", value, '{ Accept = "text/html" }')


def people(name: str, value: Any) -> dict[str, str]:
    """A table of names, each with the environment variable of a password, as `$NAME`."""
    if not isinstance(value, Mapping):
        raise refused(name, value, "is no table", 'write { anna = "$ANNA_PASSWORD" }')
    return {str(who): reference(f"{name}.{who}", kept) for who, kept in value.items()}


def normalise(name: str, value: Any) -> dict[str, Any]:
    """A table with what is dropped, what is kept, and what is ignored."""
    return _option(name, "normalise", value, '{ selectors = ["div.clock"] }')


def refused(name: str, value: Any, rule: str, remedy: str) -> InputError:
    """The sentence for a value that has not the form."""
    return InputError(sentence(name, repr(value)[:60], rule, remedy))


def said_of(name: str, inner: str, check: Callable[[], object]) -> None:
    """Check something; what is said of `inner` is said of this setting."""
    try:
        check()
    except InputError as error:
        raise InputError(f"{name}{str(error).removeprefix(inner)}") from None


def _option(name: str, option: str, value: Any, example: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise refused(name, value, "must be a table", f"write it like {example}")
    if value:
        from unstale.adapters.admission import checked_options

        said_of(name, f"options.{option}", lambda: checked_options({option: value}))
    return value
