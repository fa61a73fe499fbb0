"""After a failover: the server that took over may not know what was acknowledged last.

Rules of this file:
1. Every promotion, and every restore to a point in time, begins another timeline of the server. The store remembers the
   one in which it was last opened for writing.
2. In another timeline the numbers of polls go on far beyond those that may have been given and forgotten: what comes
   late of a poll of before is not taken for another poll.
3. Nothing else has to be done: the replica knows its sources as they were, so whatever was lost is due again.
"""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg import sql

from unstale.adapters.postgres_schema import EDITING, Connection, lock, lost
from unstale.logs import log

#: numbers that are left out: more than polls begin while a replica that is of any use is behind
SKIPPED = 1_000_000


def notice_failover(db: Connection) -> bool:
    """Whether the store was last opened for writing in another timeline; then a million numbers are left out."""
    try:
        row: Any = db.execute("SELECT substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)").fetchone()
        here = f"timeline {row[0]}"
        if _last(db) == here:
            return False
        with db.transaction():
            lock(db, EDITING)
            before = _last(db)
            # Remembered where the numbers are, and before they move on: who may not write there leaves them alone.
            db.execute(sql.SQL("COMMENT ON SEQUENCE tokens IS {}").format(here))
            if before not in ("", here):
                db.execute("SELECT setval('tokens', nextval('tokens') + %s)", (SKIPPED,))
    except psycopg.Error as error:
        if lost(error, db):
            raise
        # Some hosted servers do not say, and some owners do not let us write.
        return False
    if before in ("", here):
        return False
    log("failover", {"before": before, "now": here})
    return True


def _last(db: Connection) -> str:
    row: Any = db.execute("SELECT coalesce(obj_description('tokens'::regclass, 'pg_class'), '')").fetchone()
    said: str = row[0]
    return said
