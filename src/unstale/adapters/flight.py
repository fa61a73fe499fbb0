"""One look at a web address, from its first request to its last: it may take several, for sites redirect.

Rules of this file:
1. Whoever began a look hears of its end exactly once, unless it was called off: then never.
2. What all of its requests took is counted, whatever the last one brought.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from unstale.adapters.addresses import WebAddress
from unstale.adapters.transfer import TransferReply
from unstale.ports import Ended, Request

#: hears the last answer, or the fault of ours that ended a look
Replied = Callable[[TransferReply | Exception], None]
#: before its address was read
_NOWHERE, _NOTHING = WebAddress("", "", ""), list[str]()


class Flight:
    """A look that is under way: where it is, what it sends, and until when; `among` holds all that are."""

    __slots__ = (
        "_among",
        "_received",
        "_replied",
        "_sent",
        "asked",
        "deadline",
        "ended",
        "exchange",
        "here",
        "hops",
        "lines",
        "plainly",
        "polled_at",
        "request",
    )

    def __init__(self, request: Request, replied: Replied, deadline: float, among: set[Flight]) -> None:
        self.request, self.deadline = request, deadline
        self.here, self.lines, self.hops = _NOWHERE, _NOTHING, 0
        #: whether the last request was over HTTP/1.1
        self.plainly = False
        #: whether a request was begun
        self.asked = False
        #: hears what was found since `polled_at` if that is no more than a first answer "not modified"; None: the same
        #: hears it as of any other answer
        self.ended: Ended | None = None
        self.polled_at = 0.0
        #: calls off the request that is under way
        self.exchange: Callable[[], None] | None = None
        self._replied: Replied | None = replied
        self._received = self._sent = 0
        self._among = among
        among.add(self)

    def count(self, reply: TransferReply) -> None:
        """One more request was answered, or failed."""
        self._received += reply.received
        self._sent += reply.requests

    def end(self, reply: TransferReply | Exception) -> None:
        """It has ended; with all that was received on the way to it."""
        replied, self._replied = self._replied, None
        self._among.discard(self)
        if replied is None:
            return
        if isinstance(reply, TransferReply) and self._sent:
            received, sent = self._received, self._sent
            if reply.received != received or reply.requests != sent:
                reply = replace(reply, received=received, requests=sent)
        replied(reply)

    @property
    def first(self) -> bool:
        """Whether no request of it was answered before."""
        return not self._sent

    def over(self) -> None:
        """It has ended, and nobody is to be told by it."""
        self._replied = None
        self._among.discard(self)

    def give_up(self, reason: str) -> None:
        """It has ended, for a reason."""
        self.end(TransferReply(reason=reason, address=self.here.text, received=self._received, requests=self._sent))

    def call_off(self) -> None:
        """End it without a word; nothing, if it has ended."""
        self.over()
        if (exchange := self.exchange) is not None:
            self.exchange = None
            exchange()
