"""An origin that notes when requests arrived by the kernel's clock: a busy machine may let it read them later."""

from __future__ import annotations

import re
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from support.ports import free_port

#: Linux's option for times of arrival in nanoseconds, and the message that carries them
STAMPS = 35
_HEAD = re.compile(rb"GET (\S+) HTTP.*?\r\n\r\n", re.DOTALL)
_ANSWER = b'HTTP/1.1 200 OK\r\nContent-Length: 4\r\nETag: "a"\r\n\r\nsame'


class StampedOrigin:
    """Answers everything with the same, at any address of loopback; `log` has (arrived, host, path) of each request."""

    def __init__(self, hosts: list[str]) -> None:
        self.log: list[tuple[float, str, str]] = []
        self._listeners: list[socket.socket] = []
        self.port = free_port()
        for host in hosts:
            listener = socket.create_server((host, self.port), backlog=64)
            self._listeners.append(listener)
            threading.Thread(target=self._accept, args=(listener, host), daemon=True).start()

    def close(self) -> None:
        for listener in self._listeners:
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()

    def _accept(self, listener: socket.socket, host: str) -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                threading.Thread(target=self._serve, args=(connection, host), daemon=True).start()

    def _serve(self, connection: socket.socket, host: str) -> None:
        with connection, suppress(OSError):
            connection.setsockopt(socket.SOL_SOCKET, STAMPS, 1)
            text = b""
            while True:
                data, about, _, _ = connection.recvmsg(65_536, 512)
                if not data:
                    return
                stamps = [struct.unpack("qq", value) for level, kind, value in about if kind == STAMPS]
                arrived = stamps[0][0] + 1e-9 * stamps[0][1] if stamps else time.time()
                text += data
                while found := _HEAD.match(text):
                    text = text[found.end() :]
                    self.log.append((arrived, host, found[1].decode("ascii")))
                    connection.sendall(_ANSWER)


@contextmanager
def stamped_origin(hosts: list[str]) -> Iterator[StampedOrigin]:
    """One that answers as long as the context lasts."""
    origin = StampedOrigin(hosts)
    try:
        yield origin
    finally:
        origin.close()
