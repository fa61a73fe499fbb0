"""When a change is worth a word: words that appear or vanish, a number that crosses a bound, lines that were added.

Rules of this file:
1. Where only words and numbers are asked for, nothing else counts as a change: polls learn how often those do.
2. They are looked for in what counts of a body, a page as a reader sees it; a and A are the same letter.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from unstale.adapters.text_parts import first_number
from unstale.errors import require
from unstale.fingerprint import Content, Selective
from unstale.frozen import dataclass
from unstale.html_text import html_text

#: words that may be asked for, and characters of one
MOST, LONGEST = 50, 200
_NAMES = ("appear", "vanish", "above", "below", "added")


@dataclass(frozen=True, slots=True)
class Triggers:
    """Keeps the contract `unstale.fingerprint.Content`, and says which changes are news.

    >>> stock = Triggers.said({"appear": ["in stock"], "below": 20})
    >>> stock(b"Sold out, 25 EUR", "text/plain").decode()
    '"in stock" is not there\\nthe first number is not below 20'
    >>> stock.fires(b"Sold out, 25 EUR", "", b"In stock, 25 EUR", ""), stock.fires(b"In stock", "", b"Sold out", "")
    (True, False)
    """

    appear: tuple[str, ...] = ()
    vanish: tuple[str, ...] = ()
    above: float | None = None
    below: float | None = None
    added: bool = False
    #: what counts of a body before anything is looked for in it; none: all of it
    content: Content | None = None

    @staticmethod
    def said(given: Any, content: Content | None = None) -> Triggers:
        """What a source's options say; InputError if they cannot say that."""
        require(
            isinstance(given, Mapping) and all(name in _NAMES for name in given) and any(map(_meant, given.values())),
            "options.triggers",
            "given",
            f"may hold {', '.join(_NAMES)}",
            'write them like {"appear": ["in stock"], "below": 20}',
        )
        words = {name: given.get(name, []) for name in ("appear", "vanish")}
        for name, value in words.items():
            fine = isinstance(value, list) and all(isinstance(one, str) and 0 < len(one) <= LONGEST for one in value)
            require(fine and len(value) <= MOST, f"options.triggers.{name}", "given", "must be words", "write a list")
        for name in ("above", "below"):
            value = given.get(name)
            fine = value is None or (isinstance(value, int | float) and not isinstance(value, bool))
            require(
                fine and abs(value or 0) < 1e300, f"options.triggers.{name}", "given", "must be a number", "write one"
            )
        added = given.get("added", False)
        require(
            isinstance(added, bool), "options.triggers.added", "given", "must be true or false", "write one of these"
        )
        return Triggers(
            tuple(words["appear"]), tuple(words["vanish"]), given.get("above"), given.get("below"), added, content
        )

    @property
    def unbounded(self) -> bool:
        """Whether looking at a small body may take long."""
        return isinstance(self.content, Selective) and self.content.unbounded

    def __call__(self, body: bytes, media_type: str) -> bytes:
        """What counts: how everything stands that is asked for; with `added`, all that counted before."""
        if self.added:
            return body if self.content is None else self.content(body, media_type)
        return self._stand(self._text(body, media_type)).encode("utf-8", "surrogatepass")

    def fires(self, old: bytes, old_type: str, new: bytes, new_type: str) -> bool:
        """Whether one of them has happened between two bodies."""
        before, after = self._text(old, old_type), self._text(new, new_type)
        plain = before.casefold(), after.casefold()
        there = [[word.casefold() in text for text in plain] for word in self.appear]
        gone = [[word.casefold() in text for text in plain] for word in self.vanish]
        was, now = first_number(before), first_number(after)
        return (
            any(is_ and not was_ for was_, is_ in there)
            or any(was_ and not is_ for was_, is_ in gone)
            or (self.above is not None and _over(now, self.above) and not _over(was, self.above))
            or (self.below is not None and _under(now, self.below) and not _under(was, self.below))
            or (self.added and bool(_lines(after) - _lines(before)))
        )

    def _text(self, body: bytes, media_type: str) -> str:
        counted = body if self.content is None else self.content(body, media_type)
        if "html" in media_type.partition(";")[0].lower() and b"<" in counted:
            return "\n".join(html_text(counted))
        return counted.decode("utf-8", "replace")

    def _stand(self, text: str) -> str:
        plain, number = text.casefold(), first_number(text)
        lines = [
            f'"{word}" is {"there" if word.casefold() in plain else "not there"}'
            for word in dict.fromkeys((*self.appear, *self.vanish))
        ]
        if self.above is not None:
            lines.append(f"the first number is {'' if _over(number, self.above) else 'not '}above {self.above:g}")
        if self.below is not None:
            lines.append(f"the first number is {'' if _under(number, self.below) else 'not '}below {self.below:g}")
        return "\n".join(lines)


def _meant(value: object) -> bool:
    return value not in (None, False, [], ())


def _over(number: float | None, bound: float) -> bool:
    return number is not None and number > bound


def _under(number: float | None, bound: float) -> bool:
    return number is not None and number < bound


def _lines(text: str) -> set[str]:
    """The lines of a text that say something, each in one spelling."""
    return {" ".join(line.split()) for line in text.splitlines() if line.strip()}
