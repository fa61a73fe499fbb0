"""What is agreed about peers: who they are, how often they are asked, and how much they may send."""

from __future__ import annotations

from typing import Literal, get_args

from unstale.core.checks import number
from unstale.errors import require
from unstale.frozen import dataclass

Choice = Literal["random", "recent"]

#: peers at most, named and heard of
MOST = 64


@dataclass(frozen=True, slots=True)
class PeerTerms:
    """Who the peers are, contacts per second, peers of one contact, and bytes per second that they may send us."""

    peers: tuple[str, ...]
    rate: float
    asked: int = 1
    share: float = 2.0**18
    #: where we are, if whoever we ask shall ask us in turn
    here: str = ""
    #: whom to ask: any, or of each source those who had polled it last when we did
    choose: Choice = "random"

    def __post_init__(self) -> None:
        number("rate", self.rate, above=0, remedy="give contacts per second")
        number("share", self.share, above=0, remedy="give bytes per second")
        require(self.choose in get_args(Choice), "choose", repr(self.choose), "must be random or recent", "name one")
        require(
            1 <= self.asked <= (len(self.peers) or MOST),
            "ask",
            self.asked,
            f"must be from 1 to {len(self.peers)}, the number of peers",
            "ask fewer",
        )
