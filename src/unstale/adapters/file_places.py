"""Where files are: what a file fetcher asks of a place, and addresses that lead to one and no other."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote, urlsplit

from unstale.adapters.addresses import LONGEST, Gate
from unstale.errors import InputError, sentence
from unstale.frozen import dataclass
from unstale.kinds import KINDS

CHUNK = 2**18
_UNSAFE = re.compile(r"[\x00-\x1f\x7f\\]")
#: an IPv6 address, which has a right to its colons
_HOST = re.compile(r"^\w+://\[[0-9A-Fa-f:.]*\]")
_SHAPE = "write it like file:///folder/name or s3://bucket/name"


@dataclass(frozen=True, slots=True)
class Spot:
    """An address of a file or folder in its parts. `pattern` chooses among the names in a folder, if there is one."""

    scheme: str
    host: str
    port: int | None
    path: str
    pattern: str = ""

    @property
    def label(self) -> str:
        """What a reason may call it: paths may be secret, hosts and buckets are not."""
        return self.host or self.scheme


@dataclass(frozen=True, slots=True)
class Found:
    """What a place has at an address. `tag` stays the same as long as the content does.

    It is `exact` if it names the content itself or a version of it, and not only when it was `written`.
    """

    tag: str
    exact: bool
    size: int = 0
    modified: float | None = None
    #: by the clock of the place; None if it does not tell
    written: float | None = None
    folder: bool = False
    media_type: str = ""


@dataclass(frozen=True, slots=True)
class FolderEntry:
    """One name in a folder."""

    name: str
    kind: str
    size: int
    modified: float | None
    #: the store's own tag of its content, where it has one
    tag: str = ""


class Place(Protocol):
    """One file or folder, opened to be read. Synchronous; raises OSError or InputError, worded without secrets."""

    def look(self) -> Found:
        """What is there now."""

    def read(self, limit: int) -> Iterator[bytes]:
        """The content in pieces; whoever reads stops after `limit` bytes."""

    def members(self) -> Iterator[FolderEntry]:
        """The names in a folder, in any order."""

    def close(self) -> None:
        """Give everything back."""


class Leash:
    """How long work in a thread may go on: until its deadline, or until it is cut, which ends its connections too."""

    def __init__(self, seconds: float) -> None:
        self._deadline = time.monotonic() + seconds
        self._sockets: list[socket.socket] = []
        self._cut = False

    @property
    def left(self) -> float:
        """Seconds left, never none; TimeoutError once they are over."""
        left = self._deadline - time.monotonic()
        if self._cut or left <= 0.0:
            raise TimeoutError
        return left

    def hold(self, connection: socket.socket) -> None:
        """End this connection, too, when it is over."""
        self._sockets.append(connection)
        if self._cut:
            self.cut()

    def cut(self) -> None:
        """It is over, from whatever thread: whoever waits for a connection wakes up."""
        self._cut = True
        for connection in self._sockets:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


def spot(address: str) -> Spot:
    """The parts of an address, or InputError; the message never repeats the path, which may be secret.

    >>> spot("file:///data/a%20b/*.csv")
    Spot(scheme='file', host='', port=None, path='/data/a b', pattern='*.csv')
    """
    if len(address) > LONGEST:
        shown = f"of {len(address)} characters"
        raise InputError(sentence("address", shown, f"must have at most {LONGEST}", "shorten it"))
    if "::" in _HOST.sub("", address):
        raise InputError("address chains one place behind another (::): give the file's own address")
    if _UNSAFE.search(address):
        raise InputError("address holds a backslash or control character: write these percent-encoded")
    scheme, colon, rest = address.partition("://")
    scheme, plain = scheme.lower(), rest.partition("/")[0]
    # Names of objects are what they are; in the other addresses a percent sign begins a code.
    coded = scheme in ("file", "ftp", "sftp")
    try:
        parts = urlsplit(f"{scheme}://{rest if coded else plain}")
        host, port = (parts.hostname or "", parts.port) if coded else (plain, None)
    except ValueError:
        raise InputError(f"address is not one of a file: {_SHAPE}") from None
    if not colon or not scheme.isalnum() or (scheme == "file") == bool(parts.netloc):
        raise InputError(f"address is not one of a file: {_SHAPE}")
    if "@" in parts.netloc:
        raise InputError("address holds credentials: name them in the source's options instead")
    path = rest.partition("/")[2]
    folder, _, last = path.rpartition("/")
    pattern = last if "*" in last else ""
    path = folder if pattern else path
    if coded:
        path, pattern = f"/{unquote(path)}", unquote(pattern)
        if _UNSAFE.search(path.replace("\\", "")):
            raise InputError("address holds a control character: such files are not polled")
    return Spot(scheme, host, port, path, pattern)


def allowed_spot(address: str, roots: Sequence[Path], schemes: Iterable[str]) -> Spot:
    """The parts of an address that may be polled: a scheme that is granted, and here a place below a granted folder.

    What is a link today may lead elsewhere tomorrow, so the way is walked again by whoever opens it.
    """
    where = spot(address)
    granted_scheme(where, schemes)
    if where.scheme == "file":
        below_a_root(where.path, roots)
    return where


def granted_scheme(where: Spot, schemes: Iterable[str]) -> None:
    """Refuse a scheme that is not granted; files of this machine are a matter of roots."""
    if where.scheme not in {"file", *schemes}:
        polled = KINDS["file"].schemes
        known = "add it to schemes under [files] in the settings"
        remedy = known if where.scheme in polled else f"only {', '.join(polled)} are"
        shown = f"with scheme {where.scheme[:20]!r}"
        raise InputError(sentence("address", shown, "is not polled as a file", remedy))


def below_a_root(path: str, roots: Sequence[Path]) -> tuple[Path, Path]:
    """The root that `path` lies below, and where it really is, all links followed; InputError if there is none."""
    real = Path(os.path.realpath(path))
    root = next((root for root in roots if real.is_relative_to(root)), None)
    if root is None:
        raise InputError(
            sentence(
                "address",
                "of a file",
                "is not below a folder named in roots, under [files] in the settings",
                "add its folder if it may be polled",
            )
        )
    return root, real


def permitted(host: str, port: int, gate: Gate) -> list[str]:
    """The IP addresses of `host`, if all of them may be dialled."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise InputError("its name could not be resolved") from None
    dialled = [str(entry[4][0]) for entry in found]
    for ip in dialled:
        if not gate.permits(ip):
            shown = f"its address {ip} is not public"
            raise InputError(f"{shown}, add it to allow_networks in the settings if it may be polled")
    return dialled


def dial(host: str, port: int, gate: Gate, leash: Leash) -> socket.socket:
    """A connection to `host`; what was judged is what is dialled."""
    for ip in permitted(host, port, gate):
        try:
            connection = socket.create_connection((ip, port), leash.left)
        except TimeoutError:
            raise
        except OSError:
            continue
        leash.hold(connection)
        return connection
    raise InputError("it could not be connected to")
