"""Who is behind a browser: logging in with the token or a password, and what is remembered of it until it ends.

Rules of this file:
1. Secrets are compared in constant time and kept as digests only; a password's digest is slow on purpose (argon2id).
2. A session's key is new with every login and known to the browser alone; here it is a digest too.
3. Whoever guesses waits: ten attempts a minute from one place, one at a time in all.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import ipaddress
import secrets
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Literal

from unstale.errors import InputError, require, sentence
from unstale.frozen import dataclass

if TYPE_CHECKING:
    from argon2 import PasswordHasher

Role = Literal["reader", "operator"]

#: seconds that a login lasts, and logins that are remembered at a time
LASTING, SESSIONS = 12 * 3600.0, 1000
#: attempts from one place within so many seconds, and places that are remembered
ATTEMPTS, WITHIN, PLACES = 10, 60.0, 10_000
#: seconds that a key which was printed at the start opens, once
INVITED = 600.0
#: characters of a session's mark: enough to tell it from others, and of no use to whoever reads it
MARK = 16
#: characters of a password
SHORTEST, LONGEST = 12, 1000

# What digests of 0.1 were made with.
_COST = {"n": 2**14, "r": 8, "p": 1}
_MEMORY = 64 * 2**20


@dataclass(frozen=True, slots=True)
class Session:
    """One login: what it may do, until when, the word that its writes must repeat; who it is, since when and whence."""

    role: Role
    until: float
    csrf: str
    name: str = ""
    since: float = 0.0
    place: str = ""


class TooMany(Exception):
    """Too many attempts; `wait` is how many seconds are left."""

    def __init__(self, wait: float) -> None:
        super().__init__(wait)
        self.wait = wait


class Sessions:
    """Logins of one process: they end with it. The token makes an operator, a password whom it is for.

    `passwords` are those that many share, `people` have one each. `key` makes an operator once, soon after the start:
    it is printed there.
    """

    def __init__(
        self,
        token: str | None,
        passwords: Mapping[Role, str] | None = None,
        *,
        clock: Callable[[], float],
        key: str = "",
        people: Mapping[str, tuple[Role, str]] | None = None,
    ) -> None:
        self._key = (_digest(key), clock() + INVITED) if key else None
        self._token = None if token is None else hashlib.sha256(token.encode()).digest()
        shared: dict[str, tuple[Role, str]] = {role: (role, given) for role, given in (passwords or {}).items()}
        own = {**shared, **(people or {})}
        #: by the name of whom it is for
        self._passwords = {name: (role, hashed(given)) for name, (role, given) in own.items() if given}
        self._clock = clock
        self._sessions: OrderedDict[bytes, Session] = OrderedDict()
        self._attempts: OrderedDict[str, list[float]] = OrderedDict()
        self._turn = asyncio.Lock()

    @property
    def possible(self) -> bool:
        """Whether anybody can log in."""
        return self._token is not None or bool(self._passwords)

    async def login(self, secret: str, place: str, before: str = "") -> tuple[str, Session] | None:
        """A new session and its key, None if the secret is wrong; the session `before` it ends either way."""
        self.logout(before)
        self._count(place)
        async with self._turn:
            who = await asyncio.to_thread(self._who, secret[:LONGEST])
        if who is None:
            return None
        role, name = who
        self._attempts.pop(_place(place), None)
        key = secrets.token_urlsafe(32)
        now = self._clock()
        session = Session(role, now + LASTING, secrets.token_urlsafe(32), name, now, _place(place))
        self._sessions[_digest(key)] = session
        while len(self._sessions) > SESSIONS:
            self._sessions.popitem(last=False)
        return key, session

    def of(self, key: str) -> Session | None:
        """The session with this key, if it has not ended."""
        session = self._sessions.get(_digest(key)) if key else None
        if session is not None and self._clock() >= session.until:
            self.logout(key)
            return None
        return session

    def logout(self, key: str) -> None:
        """End a session, if there is one with this key."""
        self._sessions.pop(_digest(key), None)

    def listed(self) -> list[tuple[str, Session]]:
        """The sessions that have not ended, newest last, each with a mark by which it can be ended."""
        now = self._clock()
        return [(key.hex()[:MARK], one) for key, one in self._sessions.items() if now < one.until]

    def end(self, mark: str) -> bool:
        """End the session with this mark; whether there was one."""
        found = [key for key in self._sessions if len(mark) == MARK and key.hex().startswith(mark)]
        for key in found:
            del self._sessions[key]
        return bool(found)

    def _who(self, secret: str) -> tuple[Role, str] | None:
        """Whom a secret makes, and how they are called; everything is compared, so that the time tells nothing."""
        found: tuple[Role, str] | None = None
        for name, (role, password) in self._passwords.items():
            if matches(secret, password):
                found = role, name
        given = _digest(secret)
        if self._token is not None and hmac.compare_digest(given, self._token):
            found = "operator", "token"
        if self._key is not None and hmac.compare_digest(given, self._key[0]):
            found, self._key = (("operator", "link") if self._clock() < self._key[1] else found), None
        return found

    def _count(self, place: str) -> None:
        now, place = self._clock(), _place(place)
        recent = [at for at in self._attempts.pop(place, []) if at > now - WITHIN]
        self._attempts[place] = recent
        while len(self._attempts) > PLACES:
            self._attempts.popitem(last=False)
        if len(recent) >= ATTEMPTS:
            raise TooMany(recent[0] + WITHIN - now)
        recent.append(now)


def hashed(password: str) -> str:
    """A password as it may lie in a file: argon2id with its salt. What is a digest already stays as it is.

    >>> matches("correct horse battery", hashed("correct horse battery")), matches("no", hashed("x" * 12))
    (True, False)
    """
    if password.startswith(("scrypt$", "$argon2")):
        return _known(password)
    require(
        SHORTEST <= len(password) <= LONGEST,
        "password",
        f"of {len(password)} characters",
        f"must have from {SHORTEST} to {LONGEST}",
        "choose a longer one",
    )
    return _hasher().hash(password.encode("utf-8", "surrogatepass"))


def matches(given: str, kept: str) -> bool:
    """Whether this is the password of which `hashed` made that, now or in an earlier version."""
    secret = given.encode("utf-8", "surrogatepass")
    if kept.startswith("scrypt$"):
        _, salt, digest = kept.split("$")
        made = hashlib.scrypt(secret, salt=bytes.fromhex(salt), maxmem=_MEMORY, dklen=32, **_COST)
        return hmac.compare_digest(made, bytes.fromhex(digest))
    from argon2.exceptions import VerificationError

    try:
        return _hasher().verify(kept, secret)
    except VerificationError:
        return False


def _hasher() -> PasswordHasher:
    """Argon2id, about 40 ms and 19 MiB a guess, as OWASP asks for at least."""
    from argon2 import PasswordHasher

    return PasswordHasher(time_cost=2, memory_cost=19_456, parallelism=1)


def _known(kept: str) -> str:
    """A digest that can be compared with, or InputError."""
    try:
        if kept.startswith("scrypt$"):
            _, salt, digest = kept.split("$")
            good = len(bytes.fromhex(salt)) >= 16 and len(bytes.fromhex(digest)) == 32
        else:
            from argon2 import extract_parameters

            # What costs more than this to compare would stop whoever logs in.
            good = extract_parameters(kept).memory_cost <= 2**20
    except ValueError:
        good = False
    if not good:
        shown = f"{kept.partition('$')[0] or '$argon2'}$…"
        raise InputError(sentence("password", shown, "is not a digest that was made here", "make it anew"))
    return kept


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()


def _place(client: str) -> str:
    """Where attempts are counted together: one address, or a network of IPv6, of which anybody has plenty."""
    try:
        address = ipaddress.ip_address(client.partition("%")[0])
    except ValueError:
        return ""
    return str(address) if address.version == 4 else str(ipaddress.ip_network((address, 64), strict=False))
