"""Files and folders on SFTP servers, through paramiko. A server whose key is not known is not talked to."""

from __future__ import annotations

import contextlib
import socket
import stat
from collections.abc import Iterator, Mapping
from typing import Any

from unstale.adapters.addresses import Gate
from unstale.adapters.file_places import CHUNK, FolderEntry, Found, Leash, Spot, dial
from unstale.errors import InputError


class SftpPlace:
    """A file or folder on a server.

    Options: `username`; `password`, or `ambient: true` for the keys of the account that polls; `host_key` as in
    known_hosts (`ssh-ed25519 AAAA…`), unless that file has it.
    """

    def __init__(self, where: Spot, options: Mapping[str, Any], gate: Gate, leash: Leash) -> None:
        try:
            import paramiko
        except ImportError:
            raise InputError("sftp needs a driver: pip install paramiko") from None
        self._path, self._leash = where.path, leash
        self._connection: socket.socket | None = None
        self._client = paramiko.SSHClient()
        self._client.set_missing_host_key_policy(paramiko.RejectPolicy())
        try:
            with self._worded():
                self._connect(where, options, gate)
        except BaseException:
            self.close()
            raise

    def look(self) -> Found:
        """What is there now; times are in whole seconds."""
        with self._worded():
            s = self._sftp.stat(self._path)
        mode, modified = s.st_mode or 0, None if s.st_mtime is None else float(s.st_mtime)
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            raise InputError("it is no file or folder: pipes, sockets and devices are not polled")
        return Found(f"{s.st_mtime} {s.st_size}", False, s.st_size or 0, modified, modified, stat.S_ISDIR(mode))

    def read(self, limit: int) -> Iterator[bytes]:
        """The content in pieces."""
        with self._worded(), self._sftp.open(self._path, "rb") as file:
            while piece := file.read(min(CHUNK, limit + 1)):
                yield piece

    def members(self) -> Iterator[FolderEntry]:
        """The names in the folder; links are named, not followed."""
        kinds = {stat.S_IFREG: "file", stat.S_IFDIR: "folder", stat.S_IFLNK: "link"}
        with self._worded():
            for s in self._sftp.listdir_iter(self._path):
                kind = kinds.get(stat.S_IFMT(s.st_mode or 0), "other")
                modified = None if s.st_mtime is None else float(s.st_mtime)
                yield FolderEntry(s.filename, kind, (s.st_size or 0) if kind == "file" else 0, modified)

    def close(self) -> None:
        """Hang up."""
        self._client.close()
        if self._connection is not None:
            self._connection.close()

    def _connect(self, where: Spot, options: Mapping[str, Any], gate: Gate) -> None:
        port, own = where.port or 22, bool(options.get("ambient"))
        self._client.load_system_host_keys()
        if known := str(options.get("host_key", "")):
            self._trust(where.host if port == 22 else f"[{where.host}]:{port}", known)
        left = self._leash.left
        self._connection = dial(where.host, port, gate, self._leash)
        self._client.connect(
            where.host,
            port,
            str(options.get("username", "")) or None,
            str(options.get("password", "")) or None,
            sock=self._connection,
            look_for_keys=own,
            allow_agent=own,
            timeout=left,
            banner_timeout=left,
            auth_timeout=left,
        )
        self._sftp = self._client.open_sftp()
        self._sftp.get_channel().settimeout(self._leash.left)

    def _trust(self, name: str, known: str) -> None:
        import paramiko

        try:
            entry = paramiko.hostkeys.HostKeyEntry.from_line(f"{name} {known}")
        except paramiko.SSHException:
            entry = None
        if entry is None or entry.key is None:
            raise InputError("host_key must be a public key: write it as ssh-ed25519 and its text")
        self._client.get_host_keys().add(name, entry.key.get_name(), entry.key)

    @contextlib.contextmanager
    def _worded(self) -> Iterator[None]:
        """The driver's errors as those of files."""
        import paramiko

        try:
            yield
        except paramiko.BadHostKeyException:
            raise InputError("its key is not the one that is known: check host_key and who answers") from None
        except paramiko.AuthenticationException:
            raise InputError("it refused the credentials: check username and password in the options") from None
        except paramiko.SSHException as error:
            _ = self._leash.left
            if "not found in known_hosts" in str(error):
                raise InputError("its key is not known: add it to known_hosts, or as host_key to the options") from None
            raise InputError("the connection was cut") from None
        except EOFError:
            raise InputError("the connection was cut") from None
