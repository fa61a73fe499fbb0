"""An FTP server on loopback, and how to make it stop answering."""

from __future__ import annotations

import threading
import warnings
from pathlib import Path
from typing import Any, Self

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from pyftpdlib.authorizers import DummyAuthorizer
    from pyftpdlib.handlers import FTPHandler
    from pyftpdlib.ioloop import IOLoop
    from pyftpdlib.servers import FTPServer


class FtpServer:
    """Serves a folder to guests, and to `user` with `password`; `silent` servers accept and say nothing."""

    def __init__(self, folder: Path, *, without: tuple[str, ...] = ()) -> None:
        server = self
        self.silent = False
        #: every command, in order
        self.asked: list[str] = []

        class Handler(FTPHandler):  # type: ignore[misc]
            authorizer = DummyAuthorizer()
            auth_failed_timeout = 0
            use_sendfile = False
            # commands the server does not know
            proto_cmds = {k: v for k, v in FTPHandler.proto_cmds.items() if k not in without}  # noqa: RUF012

            def handle(self) -> None:
                if not server.silent:
                    super().handle()

            def pre_process_command(self, line: str, cmd: str, arg: str) -> Any:
                server.asked.append(line)
                return super().pre_process_command(line, cmd, arg)

            def log(self, *_: object, **__: object) -> None:
                """Say nothing."""

            logline = logerror = log

        Handler.authorizer.add_anonymous(str(folder))
        Handler.authorizer.add_user("user", "password", str(folder))
        self._loop = IOLoop()
        self._server = FTPServer(("127.0.0.1", 0), Handler, ioloop=self._loop)
        self.port: int = self._server.address[1]
        self.origin = f"ftp://127.0.0.1:{self.port}"
        self._over = False
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def _serve(self) -> None:
        while not self._over:
            self._loop.loop(0.01, blocking=False)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over = True
        self._thread.join()
        self._server.close_all()
