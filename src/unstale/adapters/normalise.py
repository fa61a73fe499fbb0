"""What counts as the content of a copy: the parts that are chosen, without those that always differ, and its hash.

A clock in the margin would make every poll a change and eat the budget. The copy keeps the whole body; only the
comparison looks away.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from unstale.adapters.large_json import in_one_spelling, understood
from unstale.adapters.text_parts import between, expression, found_by, without_dates
from unstale.adapters.xpath_parts import by_xpath
from unstale.errors import InputError, require, sentence
from unstale.html_text import html_text

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode

#: an HTML body with more tags is compared whole: nested deeply enough, parsing takes the square of their number
MOST_TAGS = 30_000
#: bytes of JSON beyond which it is read piece by piece
LARGE = 2**18
_SPACES, _DIGITS = re.compile(rb"\s+"), re.compile(rb"[0-9]+")


def content_hash(body: bytes) -> str:
    """The SHA-256 of a body, in hexadecimal: two bodies are the same content if and only if it is the same.

    >>> content_hash(b"abc")[:16]
    'ba7816bf8f01cfea'
    """
    return hashlib.sha256(body).hexdigest()


class Normaliser:
    """Drops what a source's owner does not mean: chosen parts of HTML, chosen members of JSON, runs of spaces.

    `selectors` are CSS; `pointers` are JSON pointers (RFC 6901), where `*` stands for every member. `keep` and
    `keep_pointers` are the same, of the only parts that count; what is dropped is dropped of them too. HTML and JSON
    are told apart by media type; a body that is not what it says it is stays as it is. JSON is compared by meaning:
    spaces and the order of members do not count. `xpath` keeps parts of HTML or XML too. Of what is left, or of its
    `text` as a reader sees it, only what is `between` two marks counts, then what `patterns` find, without what
    `drop_patterns` do. With `case` A is a, with `digits` all numbers are one, with `dates` all times.

    >>> Normaliser(pointers=["/now", "/items/*/views"])(b'{"now": 3, "items": [{"id": 1, "views": 9}]}', "text/json")
    b'{"items":[{"id":1}]}'
    >>> Normaliser(keep_pointers=["/items/*/id"])(b'{"now": 3, "items": [{"id": 1, "views": 9}]}', "text/json")
    b'[[1]]'
    """

    def __init__(
        self,
        *,
        selectors: Sequence[str] = (),
        pointers: Sequence[str] = (),
        whitespace: bool = False,
        keep: Sequence[str] = (),
        keep_pointers: Sequence[str] = (),
        case: bool = False,
        digits: bool = False,
        dates: bool = False,
        text: bool = False,
        xpath: Sequence[str] = (),
        between: Sequence[Sequence[str]] = (),
        patterns: Sequence[str] = (),
        drop_patterns: Sequence[str] = (),
    ) -> None:
        for pointer in (*pointers, *keep_pointers):
            require(pointer.startswith("/"), "pointer", repr(pointer), "must begin with /", "write it like /meta/time")
        self._selectors, self._keep = tuple(selectors), tuple(keep)
        self._pointers = [_steps(pointer) for pointer in pointers]
        self._kept = [_steps(pointer) for pointer in keep_pointers]
        self._whitespace, self._case, self._digits, self._dates = whitespace, case, digits, dates
        self._text, self._xpath, self._marks = text, tuple(xpath), [_marks(one) for one in between]
        self._patterns, self._drops = ([expression(one) for one in some] for some in (patterns, drop_patterns))
        #: whether an expression of somebody's is looked for: then no body is small enough to be sure of
        self.unbounded = bool(patterns or drop_patterns or xpath)
        if selectors or keep:
            _chosen(b"<p>", selectors, keep)
        if xpath:
            by_xpath(b"<p></p>", self._xpath, xml=False)

    def __call__(self, body: bytes, media_type: str) -> bytes:
        """The part of the body that counts."""
        kind = media_type.partition(";")[0].strip().lower()
        if (self._pointers or self._kept) and kind.endswith("json"):
            body = self._json(body)
        elif (self._selectors or self._keep) and "html" in kind and body.count(b"<") <= MOST_TAGS:
            body = _chosen(body, self._selectors, self._keep)
        if self._xpath and ("html" in kind or "xml" in kind) and body.count(b"<") <= MOST_TAGS:
            body = by_xpath(body, self._xpath, xml="html" not in kind).encode("utf-8", "surrogatepass")
        if self._text and "html" in kind:
            body = "\n".join(html_text(body)).encode("utf-8", "surrogatepass")
        if self._marks or self._patterns or self._drops or self._dates:
            body = self._parts(body.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
        if self._whitespace:
            body = _SPACES.sub(b" ", body).strip()
        if self._digits:
            body = _DIGITS.sub(b"0", body)
        if self._case:
            body = body.decode("utf-8", "surrogateescape").casefold().encode("utf-8", "surrogateescape")
        return body

    def fires(self, old: bytes, old_type: str, new: bytes, new_type: str) -> bool:
        """Every change of what counts is news."""
        return True

    def _parts(self, text: str) -> str:
        if self._marks:
            text = between(text, self._marks)
        if self._patterns:
            text = found_by(text, self._patterns)
        for one in self._drops:
            text = one.sub("", text)
        return without_dates(text) if self._dates else text

    def _json(self, body: bytes) -> bytes:
        try:
            if len(body) > LARGE and not self._kept and understood(self._pointers):
                return in_one_spelling(body, self._pointers)
            value = json.loads(body)
            for steps in self._pointers:
                _remove(value, steps)
            if self._kept:
                value = [_found(value, steps) for steps in self._kept]
            return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
        except (ValueError, RecursionError):
            return body


def _chosen(html: bytes, selectors: Sequence[str], keep: Sequence[str]) -> bytes:
    from selectolax.lexbor import LexborHTMLParser

    tree = LexborHTMLParser(html)
    for selector in selectors:
        # Backwards, so that none is taken out after the one around it.
        for node in reversed(_matching(tree, selector)):
            if node.tag == "html":
                return b""
            node.remove()
    if not keep:
        return (tree.html or "").encode()
    return "\n".join(node.html or "" for selector in keep for node in _matching(tree, selector)).encode()


def _matching(tree: LexborHTMLParser, selector: str) -> list[LexborNode]:
    """The nodes that a selector finds; a node is found once per alternative it matches, and told once."""
    try:
        found = tree.css(selector)
    except Exception:
        raise InputError(sentence("selector", repr(selector), "is not CSS", "write it like div.clock")) from None
    return list({node.mem_id: node for node in found}.values())


def _marks(pair: Sequence[str]) -> tuple[str, str]:
    fine = len(pair) == 2 and not isinstance(pair, str) and all(isinstance(one, str) for one in pair) and pair[0]
    require(fine, "between", repr(pair)[:60], "must be two marks", 'write them like ["begin", "end"]')
    return pair[0], pair[1]


def _steps(pointer: str) -> list[str]:
    return [step.replace("~1", "/").replace("~0", "~") for step in pointer[1:].split("/")]


def _keys(value: Any, step: str) -> list[Any]:
    """The members of a value that a step leads to."""
    if isinstance(value, dict):
        return list(value) if step == "*" else [step] if step in value else []
    if isinstance(value, list):
        at = int(step) if step.isascii() and step.isdigit() and len(step) < 10 else len(value)
        return list(range(len(value))) if step == "*" else [at] if at < len(value) else []
    return []


def _found(value: Any, steps: list[str]) -> list[Any]:
    """All that `steps` lead to."""
    if not steps:
        return [value]
    return [one for key in _keys(value, steps[0]) for one in _found(value[key], steps[1:])]


def _remove(value: Any, steps: list[str]) -> None:
    """Take the members that `steps` lead to out of `value`, where they are there."""
    step, rest = steps[0], steps[1:]
    # Backwards: taking one out moves those behind it.
    for key in reversed(_keys(value, step)):
        if rest:
            _remove(value[key], rest)
        else:
            del value[key]
