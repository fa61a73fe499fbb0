"""A budget that many share: what each may spend per second, and a purse for what has come into nobody's bucket.

Rules of this file:
1. Of a worker's share the larger of what was granted and what it goes by counts: shares never add up to more than
   there is, also while they change hands.
2. What workers have neither spent nor in their buckets is in the purse, and credited to those who have something due
   and nothing left. So a bucket that runs over while another one is empty loses nothing.
3. Purse and buckets together hold no more than a few times what buckets may: who gets no processor for seconds on a
   busy machine can make up for it. Into a bucket no more is credited than it may hold, so no more is spent at once.
"""

from __future__ import annotations

from collections.abc import Sequence

from unstale.frozen import dataclass

#: times what buckets may hold that they and the purse hold at most
KEPT = 3.0


@dataclass(frozen=True, slots=True)
class Account:
    """What a worker has told with its last sign of life, so many seconds ago, and what was settled with it before.

    `total` is what it had spent and in its bucket in all, without credit; `credit` is what it has not heard of yet.
    """

    share: float
    since: float
    total: float
    settled: float
    level: float
    burst: float
    waiting: float
    credit: float = 0.0

    @property
    def under_way(self) -> float:
        """What has come in since, as far as others know."""
        return self.share * max(self.since, 0.0)

    @property
    def holds(self) -> float:
        """What was in its bucket, with what it has yet to hear of; what came in since is for what fell due since."""
        return self.level + self.credit


def settled(left: float, came: float, accounts: Sequence[Account]) -> tuple[float, list[float]]:
    """What is left in a purse once so much budget came in and all were settled with, and what each is credited with.

    What workers have not told of yet is still in it; `spare_in` says what is there besides.

    >>> full = Account(1.0, 0.0, total=12.0, settled=10.0, level=2.0, burst=2.0, waiting=0.0)
    >>> empty = Account(1.0, 0.0, total=11.0, settled=9.0, level=0.0, burst=2.0, waiting=5.0)
    >>> settled(0.0, 5.0, [full, empty])
    (0.0, [0.0, 1.0])
    >>> settled(0.0, 50.0, [full, empty])
    (8.0, [0.0, 2.0])
    """
    left += came - sum(one.total - one.settled for one in accounts)
    bursts, under_way = sum(one.burst for one in accounts), sum(one.under_way for one in accounts)
    room = max(KEPT * bursts - sum(one.holds for one in accounts), 0.0)
    spare = min(max(left - under_way, -bursts), room)
    needs = [max(min(one.waiting, one.burst) - one.holds, 0.0) for one in accounts]
    given = min(max(spare, 0.0) / sum(needs), 1.0) if any(needs) else 0.0
    credits = [given * need for need in needs]
    return spare + under_way - sum(credits), credits


def spare_in(left: float, accounts: Sequence[Account]) -> float:
    """What is in a purse besides what workers have not told of yet."""
    return left - sum(one.under_way for one in accounts)


def wanted_shares(rate: float, members: Sequence[tuple[float, float]]) -> list[float]:
    """The shares that workers with (granted, demand) should have: by demand, a tenth of them evenly.

    Those that are nearly right stay: what changes hands is nobody's for a moment.

    >>> wanted_shares(10.0, [(0.0, 3.0), (0.0, 1.0)]), wanted_shares(10.0, [(0.0, 0.0), (0.0, 0.0)])
    ([7.25, 2.75], [5.0, 5.0])
    >>> wanted_shares(10.0, [(7.0, 3.0), (3.0, 1.0)]), wanted_shares(10.0, [(7.0, 3.0), (2.6, 1.0)])
    ([7.0, 3.0], [7.29, 2.71])
    """
    if not members:
        return []
    whole, even = sum(demand for _, demand in members), rate / len(members)
    found = [0.1 * even + 0.9 * rate * demand / whole if whole > 0.0 else even for _, demand in members]
    before = [share for share, _ in members]
    if not rate > 0.0 or any(abs(share - new) > 0.2 * new for share, new in zip(before, found, strict=True)):
        return found
    # What nobody has yet is shared out, and nobody lets go of anything for it.
    return [share + (rate - sum(before)) * new / rate for share, new in zip(before, found, strict=True)]


def granted(rate: float, wanted: Sequence[float], members: Sequence[tuple[float, float]]) -> list[float]:
    """New shares for workers with (granted, held) ones: nothing is granted before another has let go of it.

    >>> granted(6.0, [3.0, 3.0], [(6.0, 6.0), (0.0, 0.0)])
    [3.0, 0.0]
    >>> granted(6.0, [3.0, 3.0], [(3.0, 6.0), (0.0, 0.0)]), granted(6.0, [3.0, 3.0], [(3.0, 3.0), (0.0, 0.0)])
    ([3.0, 0.0], [3.0, 3.0])
    """
    free = rate - sum(max(share, held) for share, held in members)
    shares = []
    for target, (share, _) in zip(wanted, members, strict=True):
        if share < target:
            more = min(target - share, max(free, 0.0))
            share, free = share + more, free - more
        else:
            share = target
        shares.append(share)
    return shares
