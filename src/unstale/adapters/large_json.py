"""Large JSON in one spelling, piece by piece: what is parsed at once is small, so that memory is too.

Rules of this file:
1. It gives what `json.dumps` gives of the whole, members sorted and without spaces, or raises ValueError.
2. Members that are dropped are named by steps; only those that lead through objects, or through all of an array, are
   understood here: of others the text is to be parsed whole.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

#: characters that are looked at together: what ends within them is parsed at once, what does not member by member
WINDOW = 2**18
#: members of an array that are spelt together
MANY = 500
_SPACE = re.compile(r"[ \t\n\r]*")
_DECODER = json.JSONDecoder()
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"))

Steps = list[str]


def understood(pointers: Sequence[Steps]) -> bool:
    """Whether these can be dropped piece by piece: none names a member of an array by its number."""
    return not any(step.isdigit() for steps in pointers for step in steps)


def in_one_spelling(body: bytes, pointers: Sequence[Steps]) -> bytes:
    """A JSON text without what the pointers lead to.

    >>> in_one_spelling(b'{"b": [1, 2 , {"now": 3, "a": "x"}], "a": 1.50}', [["b", "*", "now"]])
    b'{"a":1.5,"b":[1,2,{"a":"x"}]}'
    """
    return _Speller(body.decode(json.detect_encoding(body), "surrogatepass")).spelt(pointers).encode()


class _Speller:
    """Goes through a text once; `at` is where it is."""

    def __init__(self, text: str) -> None:
        self._text, self.at = text, 0
        self._base, self._window = 0, text[:WINDOW]

    def spelt(self, pointers: Sequence[Steps]) -> str:
        """All of it in one spelling."""
        self._skip()
        found = self._value(pointers)
        self._skip()
        if self.at != len(self._text):
            raise ValueError("something follows it")
        return found

    def _value(self, pointers: Sequence[Steps]) -> str:
        """The value that begins here, in one spelling."""
        known, value = self._at_once()
        if known:
            return _ENCODER.encode(_without(value, pointers))
        mark = self._mark()
        if mark not in "[{" or not mark:
            value, self.at = _DECODER.raw_decode(self._text, self.at)
            return _ENCODER.encode(value)
        self.at += 1
        return self._array(pointers) if mark == "[" else self._object(pointers)

    def _at_once(self) -> tuple[bool, object]:
        """The value that begins here, if it is a small one."""
        for again in (False, True):
            if again:
                if self._base == self.at:
                    break
                self._base, self._window = self.at, self._text[self.at : self.at + WINDOW]
            try:
                value, end = _DECODER.raw_decode(self._window, self.at - self._base)
            except ValueError:
                continue
            # A number that ends near the end of the window may go on behind it, like 1 does in 1e+05.
            if end + 3 < len(self._window) or self._base + len(self._window) == len(self._text):
                self.at = self._base + end
                return True, value
        return False, None

    def _array(self, pointers: Sequence[Steps]) -> str:
        inner = [steps[1:] for steps in pointers if steps[0] == "*" and steps[1:]]
        found: list[str] = []
        many: list[object] = []
        self._skip()
        more = self._mark() != "]"
        self.at += not more
        while more:
            known, value = self._at_once()
            if known:
                many.append(_without(value, inner))
            if many and (not known or len(many) == MANY):
                found.append(_ENCODER.encode(many)[1:-1])
                many = []
            if not known:
                found.append(self._value(inner))
            more = self._next("]")
        if many:
            found.append(_ENCODER.encode(many)[1:-1])
        return "[]" if ["*"] in pointers else f"[{','.join(found)}]"

    def _object(self, pointers: Sequence[Steps]) -> str:
        found: dict[str, str] = {}
        self._skip()
        more = self._mark() != "}"
        self.at += not more
        while more:
            if self._mark() != '"':
                raise ValueError("a member has no name")
            name, self.at = _DECODER.raw_decode(self._text, self.at)
            self._skip()
            if self._mark() != ":":
                raise ValueError("a member has no value")
            self.at += 1
            self._skip()
            inner = [steps[1:] for steps in pointers if steps[0] in ("*", name)]
            found[name] = self._value([steps for steps in inner if steps])
            if any(not steps for steps in inner):
                del found[name]
            more = self._next("}")
        return f"{{{','.join(f'{_ENCODER.encode(name)}:{found[name]}' for name in sorted(found))}}}"

    def _next(self, end: str) -> bool:
        """Behind a member: go to the next one, or behind all of them."""
        self._skip()
        mark = self._mark()
        self.at += 1
        if mark == end:
            return False
        if mark != ",":
            raise ValueError("a comma is missing")
        self._skip()
        return True

    def _mark(self) -> str:
        return self._text[self.at : self.at + 1]

    def _skip(self) -> None:
        found = _SPACE.match(self._text, self.at)
        self.at = found.end() if found else self.at


def _without(value: object, pointers: Sequence[Steps]) -> object:
    for steps in pointers:
        _remove(value, steps)
    return value


def _remove(value: object, steps: Steps) -> None:
    """Take the members of objects that `steps` lead to out of `value`."""
    step, rest = steps[0], steps[1:]
    if isinstance(value, dict):
        for name in list(value) if step == "*" else [step] if step in value else []:
            if rest:
                _remove(value[name], rest)
            else:
                del value[name]
    elif isinstance(value, list) and step == "*":
        if not rest:
            value.clear()
        for one in value:
            _remove(one, rest)
