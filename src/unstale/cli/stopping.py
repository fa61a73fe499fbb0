"""Ending what goes on for long: a signal stops it in order, and a deadline ends it whatever hangs.

Rules of this file:
1. A signal is heard by a thread of its own: whatever holds up the event loop, a disk or a driver, does not hold it up.
2. Who has not ended within the grace and two seconds more is ended. Nothing is lost by that: what was recorded is on
   the disk, what was not is claimed again after the next start.
3. A library may hold the interpreter's lock while a disk hangs, as SQLite's does when it closes a file: no thread of
   Python's goes on then. One that needs no lock is set when the end is asked for, and ends the process all the same.
"""

from __future__ import annotations

import asyncio
import contextlib
import faulthandler
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable

from unstale.logs import log

#: seconds beyond the grace, and how much of them is left when Python's own thread ends the process
MORE, BEFORE = 2.0, 0.2
SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Stopping:
    """Sets `stop` on a signal, and sees to it that the process ends `grace` and two seconds after that at the latest.

    To be made in the event loop of the main thread. `leave` ends the process, without a fault if everything was saved.
    """

    def __init__(self, stop: asyncio.Event, grace: float, leave: Callable[[int], None] = os._exit) -> None:
        self._done = False
        self._stop, self._patience, self._leave = stop, grace + MORE, leave
        self._loop = asyncio.get_running_loop()
        self._over = threading.Event()
        #: where its last words go; whoever ends otherwise is not to be ended so
        self._last = os.open(os.devnull, os.O_WRONLY) if leave is os._exit else -1
        self._before = set(threading.enumerate())
        self._armed = threading.Lock()
        self._hear()

    def now(self) -> None:
        """Stop, without a signal."""
        self._stop.set()
        self._arm()

    def ask(self) -> None:
        """The same, from any thread."""
        self._arm()
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._stop.set)

    def saved(self) -> None:
        """Everything is recorded: what still hangs is nobody's loss."""
        self._done = True

    def over(self) -> None:
        """The process ends by itself, unless a thread that was left behind keeps it."""
        with contextlib.suppress(ValueError, OSError):
            signal.set_wakeup_fd(-1)
        if all(thread.daemon or thread in self._before for thread in threading.enumerate()):
            self._over.set()
            if self._last >= 0:
                faulthandler.cancel_dump_traceback_later()
                os.close(self._last)
                self._last = -1

    def _hear(self) -> None:
        here, there = socket.socketpair()
        here.setblocking(False)
        try:
            for number in SIGNALS:
                # The loop's own handler, so that the loop puts back what was there when it is closed.
                self._loop.add_signal_handler(number, self.now)
            signal.set_wakeup_fd(here.fileno(), warn_on_full_buffer=False)
        except (NotImplementedError, RuntimeError, ValueError):
            # Where signals cannot be handled so, Ctrl-C is an exception as ever.
            here.close()
            there.close()
            return
        # Kept open: the handler writes to it.
        self._ear = here
        threading.Thread(target=self._listen, args=(there,), name="signals", daemon=True).start()

    def _listen(self, there: socket.socket) -> None:
        while heard := there.recv(1):
            if heard[0] in SIGNALS:
                self.ask()

    def _arm(self) -> None:
        if self._armed.acquire(blocking=False):
            if self._last >= 0:
                faulthandler.dump_traceback_later(self._patience, exit=True, file=self._last)
            threading.Thread(target=self._watch, name="deadline", daemon=True).start()

    def _watch(self) -> None:
        if not self._over.wait(self._patience - BEFORE):
            if not self._done:
                log("stop_overdue", {"seconds": self._patience})
            for stream in (sys.stdout, sys.stderr):
                with contextlib.suppress(OSError, ValueError):
                    stream.flush()
            self._leave(0 if self._done else 1)
