"""What counts as the content of a copy: the body without the parts that always differ, and its hash.

A clock in the margin would make every poll a change and eat the budget. The copy keeps the whole body; only the
comparison looks away.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from typing import Any

from unstale.errors import InputError, require, sentence

#: an HTML body with more tags is compared whole: nested deeply enough, parsing takes the square of their number
MOST_TAGS = 30_000
_SPACES = re.compile(rb"\s+")


def content_hash(body: bytes) -> str:
    """The SHA-256 of a body, in hexadecimal: two bodies are the same content if and only if it is the same.

    >>> content_hash(b"abc")[:16]
    'ba7816bf8f01cfea'
    """
    return hashlib.sha256(body).hexdigest()


class Normaliser:
    """Drops what a source's owner does not mean: chosen parts of HTML, chosen members of JSON, runs of spaces.

    `selectors` are CSS; `pointers` are JSON pointers (RFC 6901), where `*` stands for every member. HTML and JSON are
    told apart by media type; a body that is not what it says it is stays as it is. JSON is compared by meaning:
    spaces and the order of members do not count.

    >>> Normaliser(pointers=["/now", "/items/*/views"])(b'{"now": 3, "items": [{"id": 1, "views": 9}]}', "text/json")
    b'{"items":[{"id":1}]}'
    """

    def __init__(
        self, *, selectors: Sequence[str] = (), pointers: Sequence[str] = (), whitespace: bool = False
    ) -> None:
        for pointer in pointers:
            require(pointer.startswith("/"), "pointer", repr(pointer), "must begin with /", "write it like /meta/time")
        self._selectors = tuple(selectors)
        self._pointers = [_steps(pointer) for pointer in pointers]
        self._whitespace = whitespace
        if selectors:
            _without(b"<p>", selectors)

    def __call__(self, body: bytes, media_type: str) -> bytes:
        """The part of the body that counts."""
        kind = media_type.partition(";")[0].strip().lower()
        if self._pointers and kind.endswith("json"):
            return self._json(body)
        if self._selectors and "html" in kind and body.count(b"<") <= MOST_TAGS:
            body = _without(body, self._selectors)
        return _SPACES.sub(b" ", body).strip() if self._whitespace else body

    def _json(self, body: bytes) -> bytes:
        try:
            value = json.loads(body)
            for steps in self._pointers:
                _remove(value, steps)
            return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
        except (ValueError, RecursionError):
            return body


def _without(html: bytes, selectors: Sequence[str]) -> bytes:
    from selectolax.lexbor import LexborHTMLParser

    tree = LexborHTMLParser(html)
    for selector in selectors:
        try:
            found = tree.css(selector)
        except Exception:
            raise InputError(sentence("selector", repr(selector), "is not CSS", "write it like div.clock")) from None
        # A node is found once per alternative it matches. Backwards, so that none is taken out after the one around it.
        for node in reversed({node.mem_id: node for node in found}.values()):
            if node.tag == "html":
                return b""
            node.remove()
    return (tree.html or "").encode()


def _steps(pointer: str) -> list[str]:
    return [step.replace("~1", "/").replace("~0", "~") for step in pointer[1:].split("/")]


def _remove(value: Any, steps: list[str]) -> None:
    """Take the members that `steps` lead to out of `value`, where they are there."""
    step, rest = steps[0], steps[1:]
    keys: list[Any]
    if isinstance(value, dict):
        keys = list(value) if step == "*" else [step] if step in value else []
    elif isinstance(value, list):
        at = int(step) if step.isascii() and step.isdigit() and len(step) < 10 else len(value)
        # Backwards: taking one out moves those behind it.
        keys = list(range(len(value)))[::-1] if step == "*" else [at] if at < len(value) else []
    else:
        keys = []
    for key in keys:
        if rest:
            _remove(value[key], rest)
        else:
            del value[key]
