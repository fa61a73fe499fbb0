"""What the catalogues of databases say of columns: their types and their comments."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from unstale.adapters.sql_types import from_sqlalchemy

if TYPE_CHECKING:
    from sqlalchemy.engine.reflection import Inspector

#: what is asked of PostgreSQL, whose driver tells the types by itself
COMMENTS = (
    "SELECT attname, col_description(attrelid, attnum) FROM pg_attribute WHERE attrelid = to_regclass(:full) "
    "AND attnum > 0 AND col_description(attrelid, attnum) IS NOT NULL UNION ALL "
    "SELECT '', description FROM pg_description WHERE objoid = to_regclass(:full) AND objsubid = 0 "
    "AND classoid = 'pg_class'::regclass"
)
#: and what kind of relation it calls by a name
RELATION = "SELECT relkind::text FROM pg_class WHERE oid = to_regclass(:full)"


def catalogued(
    inspector: Inspector, schema: str | None, table: str, names: Sequence[str], dialect: str
) -> tuple[list[str], list[str], dict[str, str]]:
    """Types, those of them that are the source's own in its words, and comments, as SQLAlchemy finds them.

    What is said of the table itself is under no name.
    """
    with warnings.catch_warnings():
        # Types that SQLAlchemy does not know are taken as they come.
        warnings.simplefilter("ignore")
        found = {one["name"]: one for one in inspector.get_columns(table, schema=schema)}
    types = [from_sqlalchemy(found[name]["type"], dialect) if name in found else "any" for name in names]
    kinds = [type(found[name]["type"]).__name__ if name in found else "" for name in names]
    own = [kind if kind in ("ENUM", "SET") else "" for kind in kinds]
    said = {name: str(one.get("comment") or "") for name, one in found.items()}
    with suppress(NotImplementedError):
        said[""] = str(inspector.get_table_comment(table, schema=schema)["text"] or "")
    return types, own, said
