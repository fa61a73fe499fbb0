"""Where copies of tables go, by an owner's word: a file or folder of this machine, or a schema of a PostgreSQL."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import parse_qsl, urlencode, urlsplit

from unstale.errors import require
from unstale.frozen import dataclass

#: the schema of copies, unless an address says otherwise
SCHEMA = "copies"
_SCHEMES = ("postgresql", "postgres")


@dataclass(frozen=True, slots=True)
class SchemaPlace:
    """A schema of a database; secrets in its address are names of the environment."""

    dsn: str
    schema: str = SCHEMA

    def __str__(self) -> str:
        """What may be shown of it: where it is, and not who asks."""
        parts = urlsplit(self.dsn)
        port = f":{parts.port}" if parts.port else ""
        return f"{parts.scheme}://{parts.hostname or ''}{port}{parts.path}?schema={self.schema}"


#: where copies go
TargetPlace = Path | SchemaPlace


def target_place(text: str) -> TargetPlace:
    """The place that a setting names, or InputError.

    >>> target_place("postgresql://writer:$SECRET@db.example.org/lake?schema=shop")
    SchemaPlace(dsn='postgresql://writer:$SECRET@db.example.org/lake', schema='shop')
    """
    if not is_address(text):
        return Path(text)
    parts = urlsplit(text)
    remedy = "write postgresql://user:$PASSWORD@host/database?schema=copies, or the path of a file"
    require(parts.scheme in _SCHEMES, "target", repr(parts.scheme), "is no place for copies of tables", remedy)
    open_secret = parts.password and not re.fullmatch(r"\$\w+|\$\{\w+\}", parts.password)
    require(not open_secret, "target", "(not shown)", "holds a password", "write $NAME, and set it in the environment")
    said = parse_qsl(parts.query)
    schema = dict(said).get("schema", SCHEMA)
    known = re.fullmatch(r"[a-z_][a-z0-9_]{0,62}", schema) and not schema.startswith("pg_")
    require(known, "schema", repr(schema[:70]), "must be letters, digits and underscores", "like schema=copies")
    rest = urlencode([(name, value) for name, value in said if name != "schema"])
    return SchemaPlace(parts._replace(query=rest).geturl(), schema)


def is_address(text: str) -> bool:
    """Whether a target is not on this machine's disk."""
    return "://" in text
