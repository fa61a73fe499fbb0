"""Tokens that may do a few things for a while: kept in the store as digests, shown once when they are made."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, replace

from unstale.errors import require
from unstale.frozen import dataclass

#: the setting that holds them, how many there may be, and how each begins
TOKENS, MOST, PREFIX = "tokens", 100, "unstale_"
#: what a token may be for, and what that means
SCOPES = {"read": "look at everything", "poll": "hint at sources and have them polled", "edit": "add, edit and remove"}
#: characters of a mark by which a token is named without being told
MARK = 12


@dataclass(frozen=True, slots=True)
class ScopedToken:
    """What a token is called, what it may do, and until when (seconds since the epoch)."""

    name: str
    digest: str
    scopes: tuple[str, ...]
    since: float
    until: float

    @property
    def mark(self) -> str:
        """By which it is ended; of no use to whoever reads it."""
        return self.digest[:MARK]


def made_token(name: str, scopes: Sequence[str], now: float, until: float) -> tuple[str, ScopedToken]:
    """A new token as it is told once, and as it is kept.

    >>> text, kept = made_token("grafana", ["read"], 0.0, 10.0)
    >>> digest_of(text) == kept.digest, kept.scopes
    (True, ('read',))
    """
    require(name.strip() and name.isprintable(), "token", repr(name[:40]), "has no name", "give it one")
    known = tuple(one for one in SCOPES if one in scopes)
    require(known and len(known) == len(set(scopes)), "scopes", "given", "must be some of these", ", ".join(SCOPES))
    require(until > now, "token", "of no time", "must last", "give it a day or more")
    import secrets  # few commands make one

    text = PREFIX + secrets.token_urlsafe(32)
    return text, ScopedToken(name, digest_of(text), known, now, until)


def digest_of(text: str) -> str:
    """A token as it is kept: it is random and long, so that a plain digest is enough."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def kept_tokens(tokens: Sequence[ScopedToken]) -> bytes:
    """As they are stored."""
    rule = f"are more than {MOST}"
    require(len(tokens) <= MOST, "tokens", f"of which there are {len(tokens)}", rule, "end some first")
    return json.dumps([asdict(one) for one in tokens]).encode()


def read_tokens(kept: bytes) -> list[ScopedToken]:
    """As they were stored; none where nothing can be read."""
    try:
        found = [ScopedToken(**one) for one in json.loads(kept or b"[]")]
        return [replace(one, scopes=tuple(one.scopes)) for one in found]
    except (ValueError, TypeError):
        return []
