"""Plain text: one address a line, whatever else is known of the source after it as name=value.

# news
https://example.org/news  weight=3 min=15m
https://example.org/feed.xml  kind=feed options.title="All of it"
"""

from __future__ import annotations

import io
import shlex

from unstale.errors import InputError, sentence
from unstale.lists.rows import ListReader, known


def read_text(text: str, rows: ListReader) -> None:
    """Every line with something on it; # begins a comment where a word could begin."""
    for line, raw in enumerate(io.StringIO(text, newline=None), 1):
        address, *more = raw.split(None, 1) or ["#"]
        if address.startswith("#"):
            continue
        try:
            if address.startswith(("'", '"')):
                address, *rest = _words(raw)
            else:
                # Further quotes are the address's own.
                rest = _words(more[0]) if more else []
            rows.take(line, {"address": address, **pairs(rest)} if rest else {"address": address})
        except InputError as error:
            rows.refuse(line, str(error))


def pairs(words: list[str]) -> dict[str, str]:
    """The columns in name=value words, up to a comment.

    >>> pairs(["weight=3", "options.title=All of it", "#", "since", "May"])
    {'weight': '3', 'options.title': 'All of it'}
    """
    found = {}
    for word in words:
        if word.startswith("#"):
            break
        name, equals, value = word.partition("=")
        if not equals:
            raise InputError(sentence("word", repr(word[:40]), "says nothing", "write name=value, like weight=3"))
        found[known(name)] = value
    return found


def _words(text: str) -> list[str]:
    """Words as a shell reads them: quotes hold several together."""
    try:
        return shlex.split(text) if '"' in text or "'" in text else text.split()
    except ValueError:
        raise InputError(sentence("line", repr(text.strip()[:40]), "has a quote that does not end", "end it")) from None
