"""Manners across machines: who may poll a host, and when, is decided where the claims are made.

Rules of this file:
1. A source is claimed only while its host is free: the host's row is locked until the claim is committed.
2. What cannot be polled now gets a time of its own at which the host will be free. Whoever was sent away to come back
   goes before those who come for the first time: at a host with more sources than turns none starves.
3. What a host asks for (crawl-delay, Retry-After) holds for all workers from the next claim on. What it says is left of
   its quota is spread over the time until there is a new one, whoever heard it.
4. A turn at a host that was not used goes back to the host.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from unstale.adapters.postgres_schema import Connection
from unstale.ports import Claim, HostNews, RateLimit

#: seconds for which a host that refuses without a date is left alone, doubled each time up to the last
FIRST_PAUSE, LAST_PAUSE = 30.0, 3600.0
#: seconds between those who come back to a host that had no room
BREATH = 0.1
#: more polls at a time than this are not counted
MANY = 1_000_000
#: the longest time that a quota is taken at its word for
WEEK = 7 * 86400.0
#: seconds between polls that a host wants at a time, in SQL
_ASKED = "greatest(h.asked, CASE WHEN h.renewed > {now} THEN h.paced ELSE 0 END)"
#: seconds that readings of the clock may be apart when two workers claim one after the other
APART = 60.0


@dataclass(frozen=True, slots=True)
class Grant:
    """What the settings grant a host now: seconds between polls, polls at a time, seconds until its hours begin.

    `leave` is the share of the host's own quota that is left to others.
    """

    spacing: float = 0.0
    concurrency: int = MANY
    opens_in: float = 0.0
    leave: float = 0.0

    @property
    def late(self) -> float:
        """How long after its claim a poll may begin: the next claim comes so much later than the spacing."""
        return 0.05 + 0.1 * self.spacing


Grants = Callable[[str, float], Grant]


@dataclass(slots=True)
class _Host:
    grant: Grant
    gap: float
    at: float
    pile: float
    busy: int
    #: whether the next in line has its time
    next: bool = False


@dataclass(frozen=True, slots=True)
class Sorted:
    """What may be polled at once, with the time by which each has to begin; and what is due at other times."""

    free: dict[int, float]
    later: dict[int, float]


def sort_out(db: Connection, waiting: Sequence[tuple[int, int, bool]], now: float, grants: Grants) -> Sorted:
    """Which of these may be polled now, longest overdue first; inside a transaction that holds them.

    Each is a source, its site, and whether it was sent away before, to come back now.
    """
    sites = sorted({site for _, site, _ in waiting})
    rows: Any = db.execute(
        f"SELECT id, name, {_ASKED.format(now='%s')}, blocked FROM hosts h WHERE id = ANY(%s)", (now, sites)
    ).fetchall()
    bound: dict[int, Grant] = {}
    for site, name, asked, blocked in rows:
        grant = grants(name, now)
        grant = Grant(max(grant.spacing, asked), grant.concurrency, grant.opens_in)
        if grant.spacing > 0.0 or grant.concurrency < MANY or grant.opens_in > 0.0 or blocked > now:
            bound[site] = grant
    hosts = _locked(db, bound, now)
    free: dict[int, float] = {}
    later: dict[int, float] = {}
    for source, site, sent in sorted(waiting, key=lambda one: not one[2]):
        if site not in bound:
            free[source] = math.inf
        elif (host := hosts.get(site)) is not None:
            if host.at <= now and host.busy < host.grant.concurrency:
                free[source] = now + host.grant.late
                host.busy += 1
                host.at = now + host.gap
            elif sent and not host.next and host.at <= now + max(host.gap, BREATH):
                # Slots drift a little when claims come late: the next in line follows them, and stays the next.
                host.next = True
                later[source] = host.at if host.at > now else now + BREATH
            else:
                later[source] = max(host.pile, host.at)
                host.pile = later[source] + max(host.gap, BREATH)
    if hosts:
        db.execute(
            "UPDATE hosts h SET free_at = n.free_at, pile = n.pile FROM "
            "unnest(%s::int[], %s::float8[], %s::float8[]) n(id, free_at, pile) WHERE h.id = n.id",
            (list(hosts), [h.at if h.gap else -math.inf for h in hosts.values()], [h.pile for h in hosts.values()]),
        )
    return Sorted(free, later)


def returned(db: Connection, claims: Sequence[Claim], grants: Grants) -> None:
    """Claims that were not begun give their hosts' turns back, unless others have had theirs since."""
    by_source = {claim.source: claim.begin_by for claim in claims if claim.begin_by < math.inf}
    if not by_source:
        return
    rows: Any = db.execute(
        f"SELECT s.source, h.id, h.name, {_ASKED.format(now='%s')} FROM schedule s JOIN hosts h ON h.id = s.site "
        "WHERE s.source = ANY(%s)",
        (min(by_source.values()), list(by_source)),
    ).fetchall()
    turns = [
        (site, by_source[source] + max(grants(name, by_source[source]).spacing, asked))
        for source, site, name, asked in rows
    ]
    db.execute(
        "UPDATE hosts h SET free_at = '-infinity' FROM unnest(%s::int[], %s::float8[]) n(id, free_at) "
        "WHERE h.id = n.id AND abs(h.free_at - n.free_at) < 1e-3",
        ([site for site, _ in turns], [until for _, until in turns]),
    )


def heard(db: Connection, news: HostNews, grants: Grants) -> None:
    """What an answer says about how its host wants to be treated."""
    if news.rate_limit is not None:
        _pace(db, news, news.rate_limit, grants)
    db.execute(
        "UPDATE hosts SET asked = greatest(asked, %(spacing)s), "
        "refusals = CASE WHEN %(refused)s THEN refusals + 1 ELSE 0 END, "
        "blocked = greatest(blocked, coalesce(%(now)s + coalesce(%(wait)s::float8, "
        " CASE WHEN %(refused)s THEN least(%(first)s * 2.0 ^ least(refusals, 20), %(last)s) END), blocked)) "
        "WHERE id = (SELECT site FROM schedule WHERE source = %(source)s) "
        "AND (%(refused)s OR refusals > 0 OR asked < %(spacing)s OR %(wait)s::float8 IS NOT NULL)",
        {
            "spacing": news.spacing,
            "refused": news.refused,
            "now": news.at,
            "wait": news.retry_after,
            "source": news.source,
            "first": FIRST_PAUSE,
            "last": LAST_PAUSE,
        },
    )


def _pace(db: Connection, news: HostNews, told: RateLimit, grants: Grants) -> None:
    """Spread what is left of a quota, without what is others', over the time until there is a new one."""
    asked = "SELECT h.id, h.name FROM schedule s JOIN hosts h ON h.id = s.site WHERE s.source = %s"
    if (found := db.execute(asked, (news.source,)).fetchone()) is None:
        return
    site, name = found
    ours, seconds = told.left - grants(name, news.at).leave * told.of, min(told.seconds, WEEK)
    renewed, paced = news.at + seconds, seconds / max(ours, 1.0)
    db.execute(
        "UPDATE hosts SET paced = %(paced)s, renewed = %(renewed)s, free_at = free_at + %(more)s, "
        "blocked = greatest(blocked, %(until)s::float8) WHERE id = %(site)s AND (abs(paced - %(paced)s) > 0.02 * paced "
        "OR abs(renewed - %(renewed)s) > 1.0 OR %(more)s > 0.0 OR blocked < %(until)s::float8)",
        {
            "paced": paced,
            "renewed": renewed,
            # A poll that took several calls has taken the turns of as many.
            "more": (news.calls - 1) * paced,
            "until": renewed if ours < 1.0 else -math.inf,
            "site": site,
        },
    )


def _locked(db: Connection, bound: dict[int, Grant], now: float) -> dict[int, _Host]:
    """The state of hosts, held until the transaction ends; those that another worker holds are left out."""
    if not bound:
        return {}
    rows: Any = db.execute(
        "SELECT id, free_at, pile, blocked FROM hosts WHERE id = ANY(%s) ORDER BY id FOR UPDATE SKIP LOCKED",
        (list(bound),),
    ).fetchall()
    busy = dict(
        db.execute(
            "SELECT site, count(*) FROM claims WHERE site = ANY(%s) GROUP BY site",
            ([row[0] for row in rows],),
        ).fetchall()
    )
    hosts = {}
    for site, free_at, pile, blocked in rows:
        grant = bound[site]
        gap = grant.spacing + grant.late if grant.spacing > 0.0 else 0.0
        # A clock that was set back must not keep a host waiting for the time between; one that is only read earlier
        # than another's, or was read before a wait, must not free it.
        at = max(now, blocked, free_at if free_at <= now + gap + APART else now) + grant.opens_in
        hosts[site] = _Host(grant, gap, at, max(pile, now), busy.get(site, 0))
    return hosts
