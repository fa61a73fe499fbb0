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
            click.option(
                "--keep-xpath", multiple=True, metavar="XPATH", help="The only parts of HTML or XML that count."
            ),
            click.option(
                "--keep-between",
                multiple=True,
                nargs=2,
                metavar="BEGIN END",
                help="Only what stands between these two marks counts.",
            ),
            click.option(
                "--keep-pattern",
                multiple=True,
                metavar="REGEX",
                help="Only what this regular expression finds counts, its groups if it has some.",
            ),
            click.option(
                "--drop-pattern", multiple=True, metavar="REGEX", help="What this finds does not count as a change."
            ),
            click.option("--only-text", is_flag=True, help="Of a page, only the text that is seen counts."),
            click.option("--ignore-dates", is_flag=True, help="Dates and times of day do not count as a change."),
            click.option("--when-appears", multiple=True, metavar="WORDS", help="Tell when these words appear."),
            click.option("--when-vanishes", multiple=True, metavar="WORDS", help="Tell when these words vanish."),
            click.option("--when-above", type=float, metavar="N", help="Tell when the first number rises above this."),
            click.option("--when-below", type=float, metavar="N", help="Tell when the first number falls below this."),
            click.option("--when-added", is_flag=True, help="Tell only of changes that add lines."),
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
        "dates": said["ignore_dates"],
        "text": said["only_text"],
        "xpath": list(said["keep_xpath"]),
        "between": [list(pair) for pair in said["keep_between"]],
        "patterns": list(said["keep_pattern"]),
        "drop_patterns": list(said["drop_pattern"]),
    }
    if any(normalise.values()):
        options["normalise"] = {name: value for name, value in normalise.items() if value}
    triggers = {
        "appear": list(said["when_appears"]),
        "vanish": list(said["when_vanishes"]),
        "above": said["when_above"],
        "below": said["when_below"],
        "added": said["when_added"],
    }
    if kept := {name: value for name, value in triggers.items() if value not in ([], None, False)}:
        options["triggers"] = kept
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
