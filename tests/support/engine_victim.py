"""Engines in processes of their own that can be killed, stopped and starved: `unstale run`, begun in milliseconds.

Run as a program this is the engines' parent, which has imported everything and forks one for each order. What an
engine prints goes to a file, and so do the words of its store: which claims it made, and which it has recorded.
"""

from __future__ import annotations

import json
import os
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

#: as `support.patience`, which a program in this folder does not find
_BUSY = 6.0

#: a word of the store: c(laimed token) or r(ecorded token)
WORD = struct.Struct("<cq")


@dataclass
class Life:
    """One engine from its start to its end."""

    pid: int
    out: Path
    words: Path
    began: float
    _parent: Parent = field(repr=False)
    _ended: int | None = None

    def events(self, name: str = "") -> list[dict[str, Any]]:
        """What it has printed, or all of one name."""
        lines = [line for line in self.out.read_text().splitlines(keepends=True) if line.endswith("\n")]
        found = [json.loads(line) for line in lines if line.startswith("{")]
        return [event for event in found if name in ("", event["event"])]

    def told(self, kind: bytes) -> list[int]:
        """The tokens that its store has claimed (c) or recorded (r), as it told."""
        data = self.words.read_bytes()
        return [token for k, token in WORD.iter_unpack(data[: len(data) // WORD.size * WORD.size]) if k == kind]

    def memory(self) -> float:
        """Megabytes that it holds."""
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        return next(float(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024.0

    def send(self, number: int) -> None:
        os.kill(self.pid, number)

    def end(self, number: int = signal.SIGTERM, seconds: float = 20.0) -> int:
        """Send a signal and wait; the exit code, negative if a signal ended it."""
        if self._ended is None:
            self.send(number)
            self._ended = self._parent.wait(self.pid, seconds)
        return self._ended


class Parent:
    """The process that has everything imported."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._count = folder, 0
        self.lives: list[Life] = []
        program = [sys.executable, str(Path(__file__))]
        self._process = subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def begin(self, config: Path, *more: str, environment: dict[str, str] | None = None, **engine: float) -> Life:
        """An engine with these settings, these arguments of `unstale run`, and values of its config."""
        self._count += 1
        out, words = self._folder / f"{self._count}.out", self._folder / f"{self._count}.words"
        words.touch()
        began = time.time()
        order = {
            "argv": ["unstale", "run", "--events", "--no-serve", "--config", str(config), *more],
            "out": str(out),
            "words": str(words),
            "environment": environment or {},
            "engine": engine,
        }
        life = Life(int(self._ask(order)), out, words, began, self)
        self.lives.append(life)
        return life

    def wait(self, pid: int, seconds: float) -> int:
        """How a process ended; one that does not in time is killed."""
        return int(self._ask({"wait": pid, "seconds": seconds}))

    def close(self) -> None:
        for life in self.lives:
            life.end(signal.SIGKILL)
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def _ask(self, order: dict[str, Any]) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return self._process.stdout.readline()


@contextmanager
def engines(folder: Path) -> Iterator[Parent]:
    """A parent of engines; those that still live at the end are killed."""
    parent = Parent(folder)
    try:
        yield parent
    finally:
        parent.close()


def until(condition: Callable[[], Any], seconds: float, what: str, pause: float = 0.02) -> float:
    """Wait for something to come true, on a busy machine much longer than it should take; the seconds it took."""
    begun = time.monotonic()
    while not condition():
        assert time.monotonic() - begun < _BUSY * seconds, f"not within {_BUSY * seconds:g} s: {what}"
        time.sleep(pause)
    return time.monotonic() - begun


def settings_file(folder: Path, text: str, networks: Sequence[str] = ("127.0.0.0/8",), http: str = "") -> Path:
    """Settings for loopback, the store beside them."""
    path = folder / "unstale.toml"
    path.write_text(f"{text}\n[http]\nrobots = false\nallow_networks = {json.dumps(list(networks))}\n{http}\n")
    return path


def warm_up() -> None:
    """Compile what learning needs, or read it compiled, which can take longer than a test has."""
    from unstale.core.learning.learner import Learner
    from unstale.core.learning.timing import best_waits

    learner = Learner(2, 60.0)
    learner.observe([0, 1], [60.0, 60.0], [True, False])
    learner.price_for(1.0, 60.0, 120.0, 1.0)
    learner.waits(1.0)
    learner.waits_of([0], 1.0)
    learner.review()
    best_waits(learner.timing.clock.intensity)


def main() -> None:
    """Obey orders: begin an engine, tell its process id; wait for one, tell how it ended."""
    _import_everything()
    for line in sys.stdin:
        order = json.loads(line)
        if "wait" in order:
            _answer(_wait(order["wait"], order["seconds"]))
            continue
        child = os.fork()
        if child == 0:
            _live(order)
        _answer(child)


def _answer(number: int) -> None:
    sys.stdout.write(f"{number}\n")
    sys.stdout.flush()


def _wait(pid: int, seconds: float) -> int:
    deadline = time.monotonic() + seconds
    while True:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > deadline:
            os.kill(pid, signal.SIGKILL)
        time.sleep(0.002)


def _import_everything() -> None:
    import unstale.adapters.feed_fetcher
    import unstale.adapters.http_fetcher
    import unstale.cli.compose
    import unstale.cli.main
    import unstale.cli.run  # noqa: F401

    warm_up()


def _live(order: dict[str, Any]) -> None:
    from dataclasses import replace

    from unstale.cli import compose
    from unstale.cli.main import main

    out = os.open(order["out"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    words = os.open(order["words"], os.O_WRONLY | os.O_APPEND)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for number, handle in enumerate((nothing, out, out)):
        os.dup2(handle, number)

    class Telling(compose.SqliteStore):
        """Tells what it has claimed and recorded, once that is on the disk."""

        def claim(self, *args: Any, **more: Any) -> Any:
            claims = super().claim(*args, **more)
            os.write(words, b"".join(WORD.pack(b"c", claim.token) for claim in claims))
            return claims

        def record(self, entries: Any, **more: Any) -> Any:
            held = super().record(entries, **more)
            kept = (entry.claim.token for entry, mine in zip(entries, held, strict=True) if mine)
            os.write(words, b"".join(WORD.pack(b"r", token) for token in kept))
            return held

    compose.SqliteStore = Telling  # type: ignore[misc]
    usual = compose.config_of
    compose.config_of = lambda settings: replace(usual(settings), **order["engine"])
    os.environ.update(order["environment"])
    sys.argv = order["argv"]
    code = 99
    try:
        main()
        code = 0
    except SystemExit as ending:
        code = ending.code if isinstance(ending.code, int) else 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    main()
