"""Counters in PostgreSQL: added to by a statement of its own, or beside another one, which saves asking twice."""

from __future__ import annotations

from collections.abc import Mapping

from unstale.adapters.postgres_arrays import int8s

#: each connection counts in a row of its own, so that nobody waits for another's commit
COUNTING = (
    "INSERT INTO counters SELECT name, 1 + pg_backend_pid() %% 64, value FROM "
    "unnest(%s::text[], %s::bigint[]) n(name, value) ON CONFLICT (name, shard) DO UPDATE "
    "SET value = counters.value + excluded.value"
)


def counted(more: Mapping[str, int]) -> tuple[str, bytes]:
    """The parameters of `COUNTING`. Names are words of ours, which need no quotes.

    >>> counted({"polls": 3, "failed": 0})[0]
    '{polls}'
    """
    some = sorted((name, int(value)) for name, value in more.items() if value)
    return "{" + ",".join([name for name, _ in some]) + "}", int8s([value for _, value in some])
