"""Every request to the origin: the newest in memory, all of them in a file of JSON lines if one is named."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, TextIO

import numpy as np

from unstale.core.checks import number
from unstale.core.trace import Trace
from unstale.errors import InputError, require, sentence
from unstale.units import many

#: requests kept in memory
KEPT = 200_000


class LoggedRequest(NamedTuple):
    """One request. `number` is also in its answer (X-Origin-Request); `version` is -1 where nothing has versions."""

    number: int
    t: float
    method: bytes
    path: bytes
    version: int
    status: int


class RequestLog:
    """Requests as they come, numbered from 1.

    `found` counts those that met another version than the request of the same path before them.
    """

    def __init__(self, *, keep: int = KEPT, path: str | None = None) -> None:
        self.total = self.found = self.unchanged = 0
        self.asked: deque[LoggedRequest] = deque(maxlen=int(number("keep", keep, least=1, most=1e9)))
        self._served: dict[bytes, int] = {}
        self._unwritten: list[LoggedRequest] = []
        self._path = path
        self._file: TextIO | None = None
        self._fault: InputError | None = None
        if path is not None:
            try:
                self._file = Path(path).open("w", encoding="utf-8")  # noqa: SIM115
            except OSError as error:
                raise self._unwritable(error) from None

    def note(self, t: float, method: bytes, path: bytes, version: int, status: int) -> int:
        """Note a request; its number."""
        self.total += 1
        asked = LoggedRequest(self.total, t, method, path, version, status)
        self.asked.append(asked)
        if self._file is not None:
            self._unwritten.append(asked)
        if status == 304:
            self.unchanged += 1
        if version >= 0:
            if self._served.get(path, version) != version:
                self.found += 1
            self._served[path] = version
        return self.total

    def polls(self, names: Mapping[str, str]) -> Trace:
        """When the paths in `names` were asked for and answered, named by its values."""
        asked = list(self.asked)
        forgotten = asked[0].number - 1 if asked else 0
        require(
            not forgotten,
            "log",
            f"without its first {many(forgotten, 'request')}",
            "must be whole to tell all polls",
            "keep more of them in memory, or read the file of the log",
        )
        return polls(asked, names)

    def flush(self) -> None:
        """Hand what was noted since the last time to the file; if that fails, closing tells."""
        noted, self._unwritten = self._unwritten, []
        if self._file is None or not noted:
            return
        try:
            self._file.write("".join(_line(asked) for asked in noted))
            self._file.flush()
        except OSError as error:
            self._fault = self._unwritable(error)
            with suppress(OSError):
                self._file.close()
            self._file = None

    def close(self) -> None:
        """Write the rest and close the file, or say that the file is not whole; noting more stays in memory."""
        self.flush()
        if self._fault is not None:
            raise self._fault
        if self._file is not None:
            self._file.close()
            self._file = None

    def _unwritable(self, error: OSError) -> InputError:
        rule = f"cannot be written ({error.strerror})"
        return InputError(sentence("log", repr(self._path), rule, "choose another file"))


def polls(asked: Iterable[LoggedRequest], names: Mapping[str, str]) -> Trace:
    """The requests that brought, or confirmed, what was there: GET, answered 200 or 304, of the paths in `names`."""
    place = {path.encode("latin-1"): i for i, path in enumerate(names)}
    rows = [(place[a.path], a.t) for a in asked if a.path in place and a.status in (200, 304) and a.method == b"GET"]
    which, times = zip(*rows, strict=True) if rows else ((), ())
    return Trace.coded(list(names.values()), np.array(which, dtype=np.int64), np.array(times, dtype=np.float64))


def read(path: str) -> list[LoggedRequest]:
    """The requests in a file that a log wrote; a last line that is not whole yet is left out."""
    out = []
    for line in Path(path).read_text("utf-8").splitlines(keepends=True):
        if line.endswith("\n"):
            row = json.loads(line)
            method, target = row["method"].encode("latin-1"), row["path"].encode("latin-1")
            out.append(LoggedRequest(row["n"], row["t"], method, target, row["version"], row["status"]))
    return out


def _line(asked: LoggedRequest) -> str:
    row = {
        "n": asked.number,
        "t": asked.t,
        "method": asked.method.decode("latin-1"),
        "path": asked.path.decode("latin-1"),
        "version": asked.version,
        "status": asked.status,
    }
    return json.dumps(row) + "\n"
