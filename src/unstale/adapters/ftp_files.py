"""Files and folders on FTP servers. Data comes from the host that was judged, whatever the server says of itself."""

from __future__ import annotations

import contextlib
import ftplib
import socket
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from unstale.adapters.addresses import Gate
from unstale.adapters.file_places import CHUNK, FolderEntry, Found, Leash, Spot, dial
from unstale.errors import InputError

#: lines of all answers together that are listened to
MOST_LINES = 1_000
_KINDS = {"file": "file", "dir": "folder", "cdir": "folder"}


class FtpPlace:
    """A file or folder on a server; options `username` and `password`, else as a guest. Nothing is encrypted."""

    def __init__(self, where: Spot, options: Mapping[str, Any], gate: Gate, leash: Leash) -> None:
        self._path, self._leash = where.path, leash
        self._ftp = _Ftp(encoding="utf-8")
        connection = dial(where.host, where.port or 21, gate, leash)
        # What `connect` would do, with a connection that has passed the gate; data comes from the same host.
        self._ftp.sock, self._ftp.af = connection, connection.family
        self._ftp.file = connection.makefile("r", encoding="utf-8", errors="replace")
        try:
            with _worded():
                self._ftp.timeout = leash.left
                self._ftp.host, self._ftp.port = connection.getpeername()[:2]
                self._ftp.welcome = self._ftp.getresp()
                self._ftp.login(str(options.get("username", "")), str(options.get("password", "")))
                self._ftp.voidcmd("TYPE I")
        except BaseException:
            self.close()
            raise

    def look(self) -> Found:
        """What is there now: its facts (RFC 3659), or size and time where the server does not know facts."""
        with _worded():
            try:
                reply = self._ftp.sendcmd(f"MLST {self._path}").splitlines()
                facts, _ = _facts(reply[1].strip() if len(reply) > 1 else "")
            except ftplib.error_perm as error:
                if not str(error).startswith(("500", "502", "504")):
                    raise
                facts = self._without_facts()
        modified = _moment(facts.get("modify", ""))
        kind, size = _KINDS.get(facts.get("type", "").lower(), "other"), _size(facts)
        if kind == "other":
            raise InputError("it is no file or folder")
        tag = f"{facts.get('modify')} {size} {facts.get('unique')}"
        return Found(tag, False, size, modified, modified, kind == "folder")

    def read(self, limit: int) -> Iterator[bytes]:
        """The content in pieces."""
        with _worded(), self._data(f"RETR {self._path}") as data:
            while piece := data.recv(min(CHUNK, limit + 1)):
                yield piece
            data.close()
            self._ftp.voidresp()

    def members(self) -> Iterator[FolderEntry]:
        """The names in the folder, as the server tells them."""
        with _worded(), self._data(f"MLSD {self._path}") as data, data.makefile("rb") as lines:
            while line := lines.readline(ftplib.MAXLINE):
                facts, name = _facts(line.decode("utf-8", "replace").rstrip("\r\n"))
                kind = facts.get("type", "").lower()
                if name and kind not in ("cdir", "pdir"):
                    kind = {"file": "file", "dir": "folder"}.get(kind, "other")
                    yield FolderEntry(
                        name, kind, _size(facts) if kind == "file" else 0, _moment(facts.get("modify", ""))
                    )

    def close(self) -> None:
        """Hang up."""
        self._ftp.close()

    def _data(self, command: str) -> socket.socket:
        data = self._ftp.transfercmd(command)
        self._leash.hold(data)
        data.settimeout(self._leash.left)
        return data

    def _without_facts(self) -> dict[str, str]:
        try:
            size = self._ftp.size(self._path)
        except ftplib.error_perm:
            self._ftp.cwd(self._path)
            raise InputError(
                "it is a folder of a server that cannot list it with facts (MLSD): name its files"
            ) from None
        facts = {"type": "file", "size": str(size or 0)}
        with contextlib.suppress(ftplib.error_perm):
            facts["modify"] = self._ftp.sendcmd(f"MDTM {self._path}")[4:].strip()
        return facts


class _Ftp(ftplib.FTP):
    """A client that does not listen for ever."""

    _lines = 0

    def getline(self) -> str:
        """One line of an answer."""
        self._lines += 1
        if self._lines > MOST_LINES:
            raise ftplib.error_proto("more lines than any answer has")
        return super().getline()


@contextlib.contextmanager
def _worded() -> Iterator[None]:
    """Refusals of the server as errors of files; its own words may tell more than a reason should."""
    try:
        yield
    except InputError:
        raise
    except ftplib.Error as error:
        code = str(error)[:3]
        if code == "550":
            raise FileNotFoundError from None
        if code in ("530", "532"):
            raise InputError("it refused the credentials: check username and password in the options") from None
        raise InputError(f"it answered {code if code.isdigit() else 'no FTP'}") from None
    except (EOFError, ConnectionError):
        raise InputError("the connection was cut") from None
    except ValueError:
        raise InputError("it did not answer in FTP") from None


def _facts(line: str) -> tuple[dict[str, str], str]:
    """`size=3;type=file; name` as facts and a name."""
    told, _, name = line.partition(" ")
    pairs = (fact.partition("=") for fact in told.split(";") if "=" in fact)
    return {key.lower(): value for key, _, value in pairs}, name


def _size(facts: Mapping[str, str]) -> int:
    text = facts.get("size", "")
    return int(text[:18]) if text.isascii() and text.isdigit() else 0


def _moment(text: str) -> float | None:
    """A time as FTP writes it, `20240501100000`, always UTC; None if it is not one."""
    try:
        return datetime.strptime(text[:14], "%Y%m%d%H%M%S").replace(tzinfo=UTC).timestamp()
    except ValueError:
        return None
