"""The token that opens a replica for writing: the operator's own, or one that is made at the first start and lasts.

Rules of this file:
1. What the environment holds counts. Without it, a token is made once and kept beside the store in a file that only
   its owner can read; where nothing can be kept, it is one for this run.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from unstale.adapters.environment import filled
from unstale.cli.settings import Settings, is_shared, near
from unstale.errors import InputError, StoreError, sentence
from unstale.frozen import dataclass


@dataclass(frozen=True, slots=True)
class Token:
    """A token, where it is kept (empty: nowhere), and whether it is the operator's own."""

    text: str
    kept: str
    own: bool


def token_of(settings: Settings) -> str | None:
    """The token that the environment holds, if it does."""
    try:
        return filled(settings.server.token) or None
    except InputError:
        return None


def lasting_token(settings: Settings) -> Token:
    """The token of a replica: that of the environment, that of the file beside the store, or a new one, kept there."""
    own = token_of(settings)
    if own is not None:
        return Token(own, f"the environment variable {settings.server.token.removeprefix('$')}", True)
    made = secrets.token_hex()
    if is_shared(settings.store):
        return Token(made, "", False)
    file = Path(f"{settings.store}.token")
    try:
        # Nobody else may read it, not even for a moment, and two that start together have the same.
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as out:
            out.write(made + "\n")
    except FileExistsError:
        made = _read(file)
    except OSError:
        return Token(made, "", False)
    return Token(made, f"the file {near(str(file))}", False)


def _read(file: Path) -> str:
    try:
        found = file.read_text("ascii").strip()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "it is no text"
        raise StoreError(
            sentence("token", near(str(file)), f"cannot be read ({why})", "delete it, and a new one is made")
        ) from None
    return found
