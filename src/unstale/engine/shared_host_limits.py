"""Manners of a worker among others: who may be polled was decided with the claim; what is heard is told to all."""

from __future__ import annotations

from unstale.engine.host_limits import HOME, HostLimits
from unstale.ports import HostNews, RateLimit

#: seconds after a refusal in which answers are told too, for they end it
SORE = 7200.0


class SharedHostLimits(HostLimits):
    """Gathers what hosts ask for until a worker passes it on. A poll's `name` is the number of its source.

    >>> host_limits = SharedHostLimits()
    >>> host_limits.heard("7", 10.0, refused=True, retry_after=None, spacing=0.0)
    >>> host_limits.heard("8", 11.0, refused=False, retry_after=None, spacing=0.0)
    >>> [(news.source, news.at, news.refused) for news in host_limits.taken()]
    [(7, 10.0, True), (8, 11.0, False)]
    """

    def __init__(self) -> None:
        super().__init__(lambda host: HOME)
        self._news: list[HostNews] = []
        self._refused = -SORE

    def end(self, name: str) -> None:
        """Claims say who is being polled."""

    def heard(
        self,
        name: str,
        now: float,
        *,
        refused: bool,
        retry_after: float | None,
        spacing: float,
        rate_limit: RateLimit | None = None,
        calls: int = 1,
    ) -> None:
        """Keep what the others have to know."""
        if refused:
            self._refused = now
        asks = refused or retry_after is not None or spacing > 0.0 or rate_limit is not None
        if asks or now < self._refused + SORE:
            self._news.append(HostNews(int(name), now, refused, retry_after, spacing, rate_limit, calls))

    def taken(self) -> list[HostNews]:
        """What was heard since the last time."""
        news, self._news = self._news, []
        return news

    def keep(self, news: list[HostNews]) -> None:
        """This could not be passed on yet."""
        self._news[:0] = news
