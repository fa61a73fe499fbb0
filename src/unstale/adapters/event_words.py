"""Events in words, for people: what changed and how, in a title and a few lines.

Rules of this file:
1. What strangers wrote is text alone: it calls nobody, begins no line of a header, steers nothing and hides nothing.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from unstale.ports import Event
from unstale.secrecy import shown_address

#: characters of a title and of a line, and lines of one event
TITLE, LINE, LINES = 120, 300, 12
#: a mark without width: what it follows means nothing to a chat any more
_BREAK = "\u200b"


def in_words(events: Sequence[Event]) -> tuple[str, str]:
    """A title and a text for these events.

    >>> in_words([Event(7, 3, "https://a/", 2, 1e9, b"", title="Trains", lines=(("-", "9"), ("+", "8 @all")))])
    ('Trains changed', '− 9\\n+ 8 @\\u200ball\\nhttps://a/')
    >>> in_words([Event(7, 3, "https://a/", 1, 1e9, b""), Event(8, 4, "https://b/", 2, 1e9, b"")])[0]
    '2 changes'
    """
    if len(events) == 1:
        return _headed(events[0]), "\n".join(_told(events[0]))
    parts = ["\n".join([_headed(event), *_told(event)]) for event in events]
    return f"{len(events)} changes", "\n\n".join(parts)


def _headed(event: Event) -> str:
    name = harmless(event.title or shown_address(event.address), TITLE)
    return f"First copy of {name}" if event.first else f"{name} changed"


def _told(event: Event) -> list[str]:
    signs = {"+": "+", "-": "−"}
    lines = [f"{signs.get(sign, ' ')} {harmless(line, LINE)}" for sign, line in event.lines[:LINES]]
    more = ["…"] if event.more or len(event.lines) > LINES else []
    return [*lines, *more, event.link or harmless(shown_address(event.address), 2000)]


def harmless(text: str, most: int) -> str:
    """A line without what is no letter, and in which nothing is a mention or a mark of a chat.

    >>> harmless("a\\r\\nBcc: x\\u202e <!channel> `y`", 60)
    'a Bcc: x <\\u200b!channel> `y`'
    """
    kept = "".join(c if unicodedata.category(c)[0] != "C" else " " for c in text[: 4 * most])
    short = " ".join(kept.split())
    cut = short if len(short) <= most else f"{short[: most - 1]}…"
    return cut.replace("@", "@" + _BREAK).replace("<", "<" + _BREAK)
