"""One look at a web address, from its first request to its last: it may take several, for sites redirect.

Rules of this file:
1. Whoever began a look hears of its end exactly once, unless it was called off: then never.
2. What all of its requests took is counted, whatever the last one brought.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from unstale.adapters.addresses import WebAddress
from unstale.adapters.http_meaning import found
from unstale.adapters.transfer import TransferReply
from unstale.ports import Ended, Fetched, Request

#: hears the last answer, or the fault of ours that ended a look
Replied = Callable[[TransferReply | Exception], None]
#: before its address was read
_NOWHERE, _NOTHING = WebAddress("", "", ""), list[str]()


class Flight:
    """A look that is under way: where it is, what it sends, and until when; `among` holds all that are.

    `replied` hears the last answer; without it `ended` hears what that says of the source.
    """

    __slots__ = (
        "_among",
        "_received",
        "_replied",
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
        "sent",
    )

    def __init__(
        self,
        request: Request,
        replied: Replied | None,
        deadline: float,
        among: set[Flight],
        ended: Ended | None = None,
        polled_at: float = 0.0,
    ) -> None:
        self.request, self.deadline = request, deadline
        self.here, self.lines, self.hops = _NOWHERE, _NOTHING, 0
        #: whether the last request was over HTTP/1.1
        self.plainly = False
        #: whether a request was begun
        self.asked = False
        #: hears what was found by a look that began at `polled_at`
        self.ended, self.polled_at = ended, polled_at
        #: calls off the request that is under way
        self.exchange: Callable[[], None] | None = None
        self._replied = replied
        #: requests that were answered, or failed
        self.sent = self._received = 0
        self._among = among
        among.add(self)

    def count(self, reply: TransferReply) -> None:
        """One more request was answered, or failed."""
        self._received += reply.received
        self.sent += reply.requests

    def end(self, reply: TransferReply | Exception) -> None:
        """It has ended; with all that was received on the way to it."""
        replied, ended = self._replied, self.ended
        self.over()
        if isinstance(reply, TransferReply) and self.sent:
            received, sent = self._received, self.sent
            if reply.received != received or reply.requests != sent:
                reply = replace(reply, received=received, requests=sent)
        if replied is not None:
            replied(reply)
        elif ended is not None:
            ended(self.meant(reply))

    def over(self) -> None:
        """It has ended, and nobody is to be told by it."""
        self._replied = self.ended = None
        self._among.discard(self)

    def give_up(self, reason: str) -> None:
        """It has ended, for a reason."""
        self.end(TransferReply(reason=reason, address=self.here.text, received=self._received, requests=self.sent))

    def call_off(self) -> None:
        """End it without a word; nothing, if it has ended."""
        self.over()
        if (exchange := self.exchange) is not None:
            self.exchange = None
            exchange()

    def meant(self, reply: TransferReply | Exception) -> Fetched | Exception:
        """What an answer says of the source."""
        try:
            return reply if isinstance(reply, Exception) else found(self.request, reply, self.polled_at)
        except Exception as error:  # A fault of ours, which whoever waits for this must hear of.
            return error
