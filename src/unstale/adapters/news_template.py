"""News in an operator's own words: a template for title and text (extra `notify`), filled in where it can be ended.

Rules of this file:
1. What strangers wrote is put in as text, made harmless before: it is never part of a template.
2. A template sees plain values, calls nothing, and has no more than a parser has: time, memory, length.
3. News that a template cannot tell are told in the usual words: none is lost for a slip of the pen.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from unstale.adapters.event_text import event_time
from unstale.adapters.event_words import LINE, LINES, TITLE, harmless, in_words
from unstale.errors import InputError, MissingExtraError, sentence
from unstale.frozen import dataclass
from unstale.logs import log
from unstale.ports import Aside, Event
from unstale.secrecy import shown_address

#: characters of a template, and of what it makes: a title and a text
LONGEST, LONG_TITLE, LONG_TEXT = 4000, 200, 10_000
_EXAMPLE = Event(1, 1, "https://example.org/", 2, 1e9, b"", "Trains", ("news",), (("-", "9"), ("+", "8")), False, "x")


@dataclass(frozen=True, slots=True)
class NewsTemplate:
    """Templates for a title and a text, either of them empty: then it is as ever."""

    title: str = ""
    text: str = ""

    def check(self) -> None:
        """InputError if it is none, or cannot tell of an example."""
        for name, one in (("title", self.title), ("text", self.text)):
            if len(one) > LONGEST:
                what = sentence(
                    f"template of the {name}", f"of {len(one)} characters", f"may have {LONGEST}", "shorten it"
                )
                raise InputError(what)
        if self:
            filled_in(self.title, self.text, facts_of([_EXAMPLE]))

    def __bool__(self) -> bool:
        return bool(self.title or self.text)

    async def words(self, events: Sequence[Event], aside: Aside) -> tuple[str, str]:
        """A title and a text for these events."""
        title, text = in_words(events)
        try:
            made = await aside.run(filled_in, self.title, self.text, facts_of(events))
        except InputError as error:
            log("template_failed", {"reason": str(error)})
            return title, text
        return made[0] or title, made[1] or text


def facts_of(events: Sequence[Event]) -> dict[str, Any]:
    """What a template can say: all changes, and the first of them by its own names.

    >>> facts_of([_EXAMPLE])["lines"]
    [{'sign': '-', 'line': '9'}, {'sign': '+', 'line': '8'}]
    """
    changes = [
        {
            "title": harmless(one.title or shown_address(one.address), TITLE),
            "address": harmless(shown_address(one.address), 2000),
            "link": one.link,
            "tags": [harmless(tag, TITLE) for tag in one.tags],
            "lines": [{"sign": sign, "line": harmless(line, LINE)} for sign, line in one.lines[:LINES]],
            "more": one.more or len(one.lines) > LINES,
            "first": one.first,
            "version": one.version,
            "time": event_time(one.at) or "",
        }
        for one in events
    ]
    return {**changes[0], "changes": changes, "count": len(changes)}


def filled_in(title: str, text: str, facts: dict[str, Any]) -> list[str]:
    """Both templates with these facts, within bounds.

    >>> facts = facts_of([_EXAMPLE])
    >>> filled_in("{{ title|upper }}", "{% for c in lines %}{{ c.sign }}{{ c.line }} {% endfor %}", facts)
    ['TRAINS', '-9 +8 ']
    >>> filled_in("{{ title.__class__.__mro__ }}", "", facts)
    Traceback (most recent call last):
    unstale.errors.InputError: template (SecurityError) cannot be filled in: see how Jinja is written
    """
    try:
        from jinja2 import StrictUndefined, TemplateError
        from jinja2.sandbox import ImmutableSandboxedEnvironment
    except ImportError:
        raise MissingExtraError("Jinja2", "notify") from None
    # Plain text for a message, where there is no markup to be escaped.
    made = ImmutableSandboxedEnvironment(undefined=StrictUndefined, autoescape=False)
    made.globals.clear()
    try:
        head, body = (made.from_string(one).render(facts) for one in (title, text))
    except (
        TemplateError,
        ArithmeticError,
        TypeError,
        ValueError,
        LookupError,
        AttributeError,
        RecursionError,
    ) as error:
        what, remedy = f"({type(error).__name__})", "see how Jinja is written"
        raise InputError(sentence("template", what, "cannot be filled in", remedy)) from None
    return [_plain(" ".join(head.split()))[:LONG_TITLE], _plain(body)[:LONG_TEXT]]


def _plain(text: str) -> str:
    return "".join(c for c in text if c in "\n\u200b" or c.isprintable())
