"""What the command line can say of a source, as the columns that a list would have."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeVar

import click

from unstale.errors import require
from unstale.kinds import NAMES

F = TypeVar("F", bound=Callable[..., Any])
_PLAIN = ("weight", "cost", "kind", "host", "min_interval", "max_interval")


def describing(command: F) -> F:
    """The options that say something of a source."""
    for option in reversed(
        (
            click.option("--weight", metavar="NUMBER", help="How much its freshness counts; 1 if not told."),
            click.option("--cost", metavar="NUMBER", help="What one poll takes from the budget; 1 if not told."),
            click.option("--kind", metavar="KIND", help=f"{', '.join(NAMES)}; by the address if not told."),
            click.option("--host", metavar="NAME", help="The group that shares a cap; by the address if not told."),
            click.option("--min-interval", metavar="TIME", help="Never poll it sooner again than this, e.g. 15m."),
            click.option("--max-interval", metavar="TIME", help="Poll it at least this often, e.g. 1d."),
            click.option(
                "--header",
                "headers",
                multiple=True,
                metavar="NAME=VALUE",
                help="Send this with every poll; secrets as the name of an environment variable, $NAME.",
            ),
            click.option(
                "--option",
                "options",
                multiple=True,
                metavar="NAME=VALUE",
                help="Any other option of its kind, as JSON or text.",
            ),
            click.option("--drop", multiple=True, metavar="CSS", help="Parts of HTML that do not count as a change."),
            click.option(
                "--drop-json",
                multiple=True,
                metavar="POINTER",
                help="Members of JSON that do not count as a change, e.g. /meta/time.",
            ),
            click.option("--keep", multiple=True, metavar="CSS", help="The only parts of HTML that count."),
            click.option(
                "--keep-json",
                multiple=True,
                metavar="POINTER",
                help="The only members of JSON that count, e.g. /price.",
            ),
            click.option("--ignore-space", is_flag=True, help="Spaces do not count as a change."),
            click.option("--ignore-case", is_flag=True, help="Capital letters do not count as a change."),
            click.option("--ignore-digits", is_flag=True, help="Numbers do not count as a change."),
        )
    ):
        command = option(command)
    return command


def fields_of(said: dict[str, Any]) -> dict[str, Any]:
    """The columns that the options say; a header or option without a value is None, to be taken away."""
    given = {name: said[name] for name in _PLAIN if said[name] is not None}
    for name, value in given.items():
        require(value.strip(), name, repr(value), "is empty", "leave it out, or give a value")
    options: dict[str, Any] = {}
    for name, value in (_pair("--option", text) for text in said["options"]):
        options[name] = _value(value)
    if said["headers"]:
        options["headers"] = {name: value or None for name, value in (_pair("--header", t) for t in said["headers"])}
    normalise = {
        "selectors": list(said["drop"]),
        "pointers": list(said["drop_json"]),
        "keep": list(said["keep"]),
        "keep_pointers": list(said["keep_json"]),
        "whitespace": said["ignore_space"],
        "case": said["ignore_case"],
        "digits": said["ignore_digits"],
    }
    if any(normalise.values()):
        options["normalise"] = {name: value for name, value in normalise.items() if value}
    return {**given, **({"options": options} if options else {})}


def _pair(option: str, text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    require(equals and name.strip(), option, repr(name[:40]), "has no value", "write NAME=VALUE")
    return name.strip(), value.strip()


def _value(text: str) -> Any:
    """JSON where it is some, otherwise the text itself; None for nothing."""
    try:
        return json.loads(text) if text else None
    except (ValueError, RecursionError):
        return text
