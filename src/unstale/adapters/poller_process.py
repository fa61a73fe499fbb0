"""A process that polls for us, as we see it: what it was asked and has not answered, and what is to be said to it.

Rules of this file:
1. Whoever asked hears exactly once, in a later turn of the loop, unless it was called off: what came back, or why
   nothing will.
2. All that is asked within one turn of the event loop goes out together; so do the answers.
3. A process that dies, or is silent when its polls are long over, is ended: what it was asked has failed.
"""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from unstale.adapters.addresses import web_address
from unstale.adapters.body_room import SharedBytes, held
from unstale.adapters.poller_wire import FOUND, LATE, REPLIED, FrameLine, asked, found_of, reply_of
from unstale.adapters.transfer import TransferReply
from unstale.errors import TooLateError
from unstale.keeper.outcomes import Answer
from unstale.logs import log
from unstale.ports import CallOff, Fetched, Request

#: seconds between two looks for polls whose time is over, that a poll may take beyond its time, and that a process may
#: be silent then: it may have just been started, on a machine that is busy
LOOK, LATER, SILENT = 1.0, 1.0, 30.0
#: seconds that a process has to end by itself
LAST = 0.5
#: what it takes along of our environment: nothing that may be secret
_TAKEN = ("PATH", "LANG", "TZ", "TMPDIR", "LOCALDOMAIN", "RES_OPTIONS", "LD_LIBRARY_PATH")
#: where the body is among what is said of a look that has ended
_BODY = 2

#: hears what was found, an answer as it came, or the fault of ours that there is none
Answered = Callable[[Any], None]


class _RoomThere(SharedBytes):
    """Room in memory that is counted by the process which had the body first; `told` hears what is given back."""

    def __init__(self, told: Callable[[int], None]) -> None:
        super().__init__(0)
        self._told = told

    def give(self, size: int) -> None:
        """Give back; from any thread."""
        self._told(size)


class PollerProcess:
    """One process that polls, started at once; it makes its fetcher from `terms`. `now` is the engine's clock."""

    def __init__(self, terms: Mapping[str, Any], now: Callable[[], float]) -> None:
        self._now, self._loop = now, asyncio.get_running_loop()
        #: what it was asked: the request, when, whether its answer is wanted as it comes, until when, and who hears it
        self._asked: dict[int, tuple[Request, float, bool, float, Answered]] = {}
        self._number = 0
        #: what is to be said with the next batch: looks to begin and to call off, room given back in memory
        self._begun: list[tuple[Any, ...]] = []
        self._called_off: list[int] = []
        self._given = [0, 0]
        self._rooms = [_RoomThere(partial(self._room_given, which)) for which in range(2)]
        self._flushes = False
        self._looking: asyncio.TimerHandle | None = None
        self._heard_at = self._loop.time()
        #: whether it was ever heard of; and whether it is no more
        self.known = self.over = False
        ours, theirs = socket.socketpair()
        with theirs:
            kept = {name: os.environ[name] for name in _TAKEN if name in os.environ}
            self.process = subprocess.Popen(
                [sys.executable, "-m", "unstale.adapters.poller_child", str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                env={**kept, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        self._line = FrameLine(ours, self._heard, self._died)
        self._line.say(dict(terms))

    def ask(self, request: Request, looks: bool, answered: Answered) -> CallOff:
        """Have it look; `looks` if the answer is wanted as it comes."""
        number = self._number = self._number + 1
        at = self._now()
        if not self._asked:
            # Who was asked nothing need not have said anything.
            self._heard_at = self._loop.time()
        self._asked[number] = request, at, looks, self._loop.time() + request.seconds, answered
        self._begun.append(asked(number, request, at, looks))
        self._flush_soon()
        if self._looking is None:
            self._looking = self._loop.call_later(LOOK, self._look)
        return partial(self._call_off, number)

    async def close(self) -> None:
        """End it; what it was asked has failed."""
        self._end("the fetcher was closed before the answer came")
        until = self._loop.time() + LAST
        while self.process.poll() is None and self._loop.time() < until:
            await asyncio.sleep(0.005)
        self._reap()

    def _call_off(self, number: int) -> None:
        if self._asked.pop(number, None) is not None:
            self._called_off.append(number)
            self._flush_soon()

    def _flush_soon(self) -> None:
        if not self._flushes and not self.over:
            self._flushes = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._flushes = False
        if self.over or not (self._begun or self._called_off or any(self._given)):
            return
        self._line.say((self._now() - time.monotonic(), self._begun, self._called_off, *self._given))
        self._begun, self._called_off, self._given = [], [], [0, 0]

    def _heard(self, said: Sequence[tuple[int, int, Any, int]]) -> None:
        self._heard_at, self.known = self._loop.time(), True
        for number, how, what, kept in said:
            body: bytes | None = what[_BODY] if how in (FOUND, REPLIED) else None
            if kept and body is not None:
                body = held(body, self._rooms[kept - 1])
            if (one := self._asked.pop(number, None)) is None:
                continue
            answered = one[-1]
            if how == FOUND:
                answered(found_of(what, body))
            elif how == REPLIED:
                answered(reply_of(what, body))
            else:
                answered(TooLateError(what) if how == LATE else RuntimeError(what))

    def _room_given(self, which: int, size: int) -> None:
        """A body is gone; told in any thread, and wherever the interpreter collects it."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._give, which, size)

    def _give(self, which: int, size: int) -> None:
        self._given[which] += size
        self._flush_soon()

    def _look(self) -> None:
        """End what has taken too long: a process that goes on otherwise would have said so itself."""
        self._looking = None
        now = self._loop.time()
        for number, one in list(self._asked.items()):
            if one[3] + LATER < now:
                self._call_off(number)
                _tell(one, f"no whole answer within {one[0].seconds:g} s")
                if self._heard_at + SILENT < min(now, one[3]):
                    self._died("has hung")
                    return
        if self._asked and not self.over:
            self._looking = self._loop.call_later(LOOK, self._look)

    def _died(self, how: str = "has ended") -> None:
        self._end(f"the process that polled it {how} before the answer came")
        self._reap()
        log("poller_ended", {"how": how, "code": self.process.returncode})

    def _end(self, reason: str) -> None:
        self.over = True
        if self._looking is not None:
            self._looking.cancel()
        self._line.close()
        left, self._asked = list(self._asked.values()), {}
        for one in left:
            _tell(one, reason)

    def _reap(self) -> None:
        self.process.kill()
        self.process.wait()


def _tell(one: tuple[Request, float, bool, float, Answered], reason: str) -> None:
    """Whoever asked hears why there is no answer."""
    request, at, looks, _, answered = one
    answered(failed(request, reason, at, looks))


def failed(request: Request, why: str, at: float, looks: bool) -> Fetched | TransferReply:
    """A look that found nothing, for a reason."""
    reason = f"{web_address(request.address).host}: {why}"
    return TransferReply(reason=reason, requests=0) if looks else Fetched(Answer.FAILED, at, reason=reason)
