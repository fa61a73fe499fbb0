"""Secrets by name: what a listing writes as `$NAME` stands in the environment, and nowhere else."""

from __future__ import annotations

import os
import re
from urllib.parse import quote

from unstale.errors import InputError, sentence
from unstale.secrecy import NAMED_PART, shown_address

_REFERENCE = re.compile(r"\$(?:(\w+)|\{(\w+)\})", re.ASCII)


def filled(text: str) -> str:
    """`text` with the environment's values for `$NAME` and `${NAME}`; InputError if one is not set.

    >>> filled("no name in here")
    'no name in here'
    """
    return _REFERENCE.sub(lambda found: _value(found[1] or found[2]), text)


def filled_address(address: str) -> str:
    """A web address with the environment's values where a part of its path or a value of its query is `$NAME`.

    >>> filled_address("https://example.org/odata?$top=5&a=$b")
    'https://example.org/odata?$top=5&a=$b'
    """
    return NAMED_PART.sub(lambda found: _quoted(_value(found[1] or found[2])), address) if "$" in address else address


def hidden(text: str, address: str) -> str:
    """`text`, which may tell what was filled into `address`, with the names of secrets in their place."""
    for found in NAMED_PART.finditer(address) if "$" in address else ():
        value = os.environ.get(found[1] or found[2], "")
        for told in (_quoted(value), value):
            text = text.replace(told, found[0]) if told else text
    return shown_address(text)


def _quoted(value: str) -> str:
    # What was taken from an address is encoded already.
    return quote(value, safe="%~")


def _value(name: str) -> str:
    if name not in os.environ:
        raise InputError(sentence("environment", f"variable {name}", "is not set", "this source's options need it"))
    return os.environ[name]
