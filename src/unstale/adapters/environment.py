"""Secrets by name: what a listing writes as `$NAME` stands in the environment, and nowhere else."""

from __future__ import annotations

import os
import re

from unstale.errors import InputError, sentence

_REFERENCE = re.compile(r"\$(?:(\w+)|\{(\w+)\})", re.ASCII)


def filled(text: str) -> str:
    """`text` with the environment's values for `$NAME` and `${NAME}`; InputError if one is not set.

    >>> filled("no name in here")
    'no name in here'
    """

    def value(found: re.Match[str]) -> str:
        name = found[1] or found[2]
        if name not in os.environ:
            raise InputError(sentence("environment", f"variable {name}", "is not set", "this source's options need it"))
        return os.environ[name]

    return _REFERENCE.sub(value, text)
