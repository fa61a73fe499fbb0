"""Compiling beside the polls: once per installation, in a process of its own, and never in the way of anybody.

Rules of this file:
1. What decides by signals has no other form than machine code that is worth running; steps of learning have, and go on
   in NumPy. Whoever asks hears whether it is there, and does not wait.
2. A process compiles and keeps what it has compiled; a thread of ours then reads it, in a second or two. Where nothing
   can be kept, the thread compiles.
"""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
from importlib.util import find_spec
from typing import Any

from unstale.logs import log


class Compiling:
    """Sees to machine code when it is first asked for; `objective` is that of the fleet."""

    def __init__(self, objective: str) -> None:
        self._objective = objective
        self._over = find_spec("numba") is None
        self._thread: threading.Thread | None = None
        self._child: subprocess.Popen[bytes] | None = None
        self._closed, self._lock = False, threading.Lock()

    def ready(self) -> bool:
        """Whether it is there; from any thread."""
        with self._lock:
            if not self._over and self._thread is None and not self._closed:
                # Nobody waits for it at the end.
                self._thread = threading.Thread(target=self._see_to_it, name="compiling", daemon=True)
                self._thread.start()
        return self._over

    def close(self) -> None:
        """It is of no use any more."""
        with self._lock:
            self._closed = True
            if self._child is not None:
                self._child.kill()

    def _see_to_it(self) -> None:
        from unstale.adapters.spare_memory import give_back
        from unstale.cli.rehearsal import rehearse
        from unstale.core.compiling import was_kept
        from unstale.core.learning.compiled import compiling_here, load
        from unstale.core.signals.aged_look import look_aged
        from unstale.core.signals.choices import look

        kernel: Any = look_aged if self._objective == "age" else look
        try:
            if not was_kept(kernel.machine_code):
                self._compile()
            if self._closed:
                return
            with compiling_here():
                rehearse(self._objective)
            # Whose rehearsal it was is nobody now, and would be looked for late: collections are rare in this process.
            gc.collect()
            give_back()
        except Exception as error:  # Who needs it compiles it, and hears of the fault if there is one.
            log("compiling_failed", {"error": repr(error)})
        if not self._closed:
            load()
            self._over = True

    def _compile(self) -> None:
        with self._lock:
            if self._closed:
                return
            self._child = subprocess.Popen(
                [sys.executable, "-m", "unstale.cli.rehearsal", self._objective],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        self._child.wait()
