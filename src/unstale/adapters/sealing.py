"""Secrets that lie in a store: sealed with a key from the environment, and readable by nobody without it."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable

from unstale.errors import InputError, MissingExtraError, require, sentence

#: how what is sealed begins, and characters that a key has at least
SEALED, SHORTEST = "sealed:", 32


def seal(text: str, key: str) -> str:
    """A text as it may lie in a store (extra `notify`: AES and HMAC, as Fernet specifies them).

    >>> opened(seal("mailto://me:secret@example.org", "k" * 32), "k" * 32)
    'mailto://me:secret@example.org'
    """
    return SEALED + _box(key)[0](text.encode()).decode()


def opened(text: str, key: str) -> str:
    """What was sealed; InputError if it was with another key. What is not sealed stays as it is."""
    if not text.startswith(SEALED):
        return text
    try:
        return _box(key)[1](text.removeprefix(SEALED).encode()).decode()
    except ValueError:
        remedy = "set the key that it was sealed with, or say the secret anew"
        raise InputError(sentence("secret", "(sealed)", "cannot be opened with this key", remedy)) from None


def _box(key: str) -> tuple[Callable[[bytes], bytes], Callable[[bytes], bytes]]:
    rule = f"must have {SHORTEST} characters or more to seal secrets"
    remedy = "set one: python -c 'import secrets; print(secrets.token_hex())'"
    require(len(key) >= SHORTEST, "server.key", f"of {len(key)} characters", rule, remedy)
    try:
        from cryptography.fernet import Fernet, InvalidToken
    except ImportError:
        raise MissingExtraError("cryptography", "notify") from None
    made = Fernet(base64.urlsafe_b64encode(hashlib.sha256(b"unstale receivers\0" + key.encode()).digest()))

    def decrypt(data: bytes) -> bytes:
        try:
            return bytes(made.decrypt(data))
        except InvalidToken:
            raise ValueError from None

    return made.encrypt, decrypt
