"""An SFTP server on loopback that serves a folder to one user."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from pathlib import Path
from typing import Any, Self

import paramiko


class _Door(paramiko.ServerInterface):
    def check_auth_password(self, username: str, password: str) -> int:
        good = (username, password) == ("user", "password")
        return paramiko.AUTH_SUCCESSFUL if good else paramiko.AUTH_FAILED

    def check_channel_request(self, kind: str, chanid: int) -> int:
        return paramiko.OPEN_SUCCEEDED


class _Folder(paramiko.SFTPServerInterface):
    def __init__(self, server: Any, folder: Path) -> None:
        super().__init__(server)
        self._folder = folder

    def list_folder(self, path: str) -> Any:
        found = []
        for entry in os.scandir(self._folder / path.lstrip("/")):
            found.append(paramiko.SFTPAttributes.from_stat(entry.stat(follow_symlinks=False)))
            found[-1].filename = entry.name
        return found

    def stat(self, path: str) -> Any:
        try:
            return paramiko.SFTPAttributes.from_stat((self._folder / path.lstrip("/")).stat())
        except OSError as error:
            return paramiko.SFTPServer.convert_errno(error.errno)

    def open(self, path: str, flags: int, attr: Any) -> Any:
        handle = paramiko.SFTPHandle(flags)
        handle.readfile = (self._folder / path.lstrip("/")).open("rb")
        return handle


class SftpServer:
    """Serves `folder` to `user` with `password`; `host_key` is what a client should know."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._transports = folder, list[Any]()
        self._key = paramiko.RSAKey.generate(2048)
        self.host_key = f"{self._key.get_name()} {self._key.get_base64()}"
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.origin = f"sftp://127.0.0.1:{self._listener.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                transport = paramiko.Transport(connection)
                transport.add_server_key(self._key)
                transport.set_subsystem_handler("sftp", paramiko.SFTPServer, _Folder, self._folder)
                self._transports.append(transport)
                with contextlib.suppress(paramiko.SSHException, EOFError):
                    transport.start_server(event=threading.Event(), server=_Door())

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()
        for transport in self._transports:
            transport.close()
