"""What stands in one field of a list: text, numbers, lengths of time, flags, options; read, or refused by name."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

from unstale.core.checks import LARGEST, number
from unstale.errors import InputError, require, sentence
from unstale.units import DAY, parse_duration

#: options that are tables themselves: what a row says is added to what `base` says
TABLES = ("headers", "normalise", "triggers")


_NUMBER = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")


_SURROGATE = re.compile(r"[\ud800-\udfff]")


_FLAGS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def merged(base: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Options over options; tables inside them are merged too, and None takes a name away.

    >>> merged({"headers": {"A": "1", "B": "2"}}, {"headers": {"B": "3"}, "title": "news"})
    {'headers': {'A': '1', 'B': '3'}, 'title': 'news'}
    """
    whole = {**base, **own}
    for name in TABLES:
        if own.get(name) is not None:
            table = {**base.get(name, {}), **table_of(f"options.{name}", own[name])}
            whole[name] = {key: value for key, value in table.items() if value is not None}
    return {name: value for name, value in whole.items() if value is not None and value != {}}


def seconds(name: str, value: Any) -> float:
    """A length of time as people write it, in seconds, to the microsecond.

    >>> seconds("min_interval", "15m"), seconds("min_interval", "0.1s")
    (900.0, 0.1)
    """
    require(
        isinstance(value, str | int | float) and not isinstance(value, bool),
        name,
        repr(value)[:40],
        "is not a length of time",
        "write it like 15m or 2h",
    )
    return round(parse_duration(value, name) * DAY, 6)


def options_of(given: Mapping[str, Any], base: Mapping[str, Any]) -> Mapping[str, Any]:
    """The options that a row gives, in one table or in fields of their own, on top of those it starts from."""
    own: dict[str, Any] = dict(table_of("options", given["options"])) if "options" in given else {}
    headers: dict[str, Any] = dict(table_of("headers", given["headers"])) if "headers" in given else {}
    for name, value in given.items():
        table, dot, rest = name.partition(".")
        if dot and table == "headers":
            headers[rest] = text_of(name, value)
        elif dot:
            own[rest] = loose(text_of(name, value)) if isinstance(value, str) else value
    if headers:
        own["headers"] = {**table_of("options.headers", own.get("headers", {})), **headers}
    return merged(base, own) if own else base


def table_of(name: str, value: Any) -> Mapping[str, Any]:
    """A table that a field holds, in JSON where the list has only text."""
    if isinstance(value, str):
        try:
            value = json.loads(text_of(name, value), parse_constant=no_number)
        except (ValueError, RecursionError):
            value = None
    if not isinstance(value, Mapping):
        raise InputError(sentence(name, "given", "must be a JSON object", 'write it like {"title": "News"}'))
    return value


def loose(text: str) -> Any:
    """JSON where it is some, otherwise the text itself."""
    try:
        return json.loads(text, parse_constant=no_number)
    except (ValueError, RecursionError):
        return text


def no_number(name: str) -> float:
    """What JSON would take for a number and is none."""
    raise ValueError(name)


def text_of(name: str, value: Any) -> str:
    """The text that a field holds."""
    if not isinstance(value, str):
        if isinstance(value, bool | int | float):
            return str(value)
        raise InputError(sentence(name, repr(value)[:40], "must be text", "write it in quotes"))
    if not value.isascii() and _SURROGATE.search(value):
        # What could not be decoded was kept as half a character.
        shown = ascii(_SURROGATE.sub("?", value)[:40])
        raise InputError(sentence(name, shown, "is not UTF-8", "save the list as UTF-8"))
    return value


def number_of(
    name: str, given: Mapping[str, Any], default: float, *, least: float | None = None, above: float | None = None
) -> float:
    """The number that a field holds, within its bounds, or what holds without one."""
    if name not in given:
        return default
    value = given[name]
    plain = isinstance(value, int | float) and not isinstance(value, bool)
    if not plain and not (isinstance(value, str) and _NUMBER.fullmatch(value.strip())):
        raise InputError(sentence(name, repr(value)[:40], "is not a number", "write it like 2 or 0.5"))
    try:
        found = float(value)
    except OverflowError:
        found = math.inf
    return number(name, found, least=least, above=above, most=LARGEST, remedy="correct it")


def flag_of(value: Any) -> bool:
    """Yes or no, in the words that people write."""
    found = value if isinstance(value, bool) else _FLAGS.get(str(value).strip().lower())
    if found is None:
        raise InputError(sentence("paused", repr(value)[:40], "is neither yes nor no", "write yes, no or nothing"))
    return found
