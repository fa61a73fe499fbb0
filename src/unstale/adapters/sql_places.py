"""Which table of which database is a source, and whether it may be looked at.

What is dialled is what the gate has judged; files and sockets must lie in the allowed roots.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from unstale.adapters.addresses import Gate
from unstale.adapters.environment import filled
from unstale.adapters.sql_types import known_type
from unstale.core.checks import number
from unstale.errors import InputError, require
from unstale.frozen import dataclass
from unstale.kinds import KINDS

if TYPE_CHECKING:
    from sqlalchemy.engine import URL

#: seconds before the newest change that are read again, unless said otherwise
OVERLAP = 300.0
#: seconds after which everything is read again, unless said otherwise
SWEEP = 86400.0
#: bytes of values that one poll may read, unless said otherwise
MAX_BYTES = 2**30
#: spans of time that files of Parquet may be divided by
SPANS = ("year", "month", "day")
#: databases that are files
FILES = ("sqlite", "duckdb")
PROBES = ("auto", "changed", "xmin", "checksum", "count")
# What else an address may say: nothing that leads to another place or loads a file.
_PARAMETERS = {
    "sslmode",
    "ssl",
    "channel_binding",
    "gssencmode",
    "charset",
    "application_name",
    "driver",
    "Encrypt",
    "TrustServerCertificate",
    "service_name",
}
_DRIVERS = {"postgresql": "postgresql+psycopg", "postgres": "postgresql+psycopg"}
_HARMLESS = re.compile(r"[\w .+{}-]*")


@dataclass(frozen=True, slots=True)
class Ask:
    """What of a database is the source, and how it is looked at; see `unstale.adapters.sql_fetcher`."""

    address: str
    table: str
    query: str
    key: tuple[str, ...]
    changed: str
    overlap: float
    probe: str
    batch: int
    sweep: float
    max_bytes: int
    #: types that columns shall have, by name
    types: Mapping[str, str] = field(default_factory=dict)
    #: what is done where the schema changed and not only grew: hold the copy, or follow
    schema: str = "hold"
    #: the tables that are copied together with this one, at one moment
    group: str = ""
    #: by what the files of the copy are divided, in Parquet
    partition: tuple[str, ...] = ()
    #: whether the query is ours and not its owner's
    own: bool = False

    @property
    def named(self) -> tuple[str, ...]:
        """The columns that the owner names."""
        return tuple(filter(None, (*self.key, self.changed, *map(column_of, self.partition))))


def column_of(by: str) -> str:
    """The column that a partition goes by.

    >>> column_of("ordered_at:month"), column_of("country")
    ('ordered_at', 'country')
    """
    name, _, span = by.rpartition(":")
    return name if name and span in SPANS else by


def ask(address: str, options: Mapping[str, Any]) -> Ask:
    """An address and options in order, or InputError.

    >>> ask("sqlite:///shop.db#orders", {"key": "id", "changed": "updated_at"}).key
    ('id',)
    """
    place, _, fragment = address.partition("#")
    table, query = str(options.get("table") or unquote(fragment)), str(options.get("query") or "").strip()
    query = query.removesuffix(";").rstrip()
    require(
        bool(table) != bool(query),
        "address",
        "with options",
        "must name a table or a query, not both",
        "end it with #table, or give the option table or query",
    )
    require(";" not in query, "query", "with a semicolon", "must be one statement", "leave the semicolon out")
    require(
        re.match(r"(select|with|values)\b", query, re.IGNORECASE) or not query,
        "query",
        repr(query[:20]),
        "must begin with SELECT or WITH",
        "only reading is polled",
    )
    probe, changed = options.get("probe", "auto"), str(options.get("changed") or "")
    require(probe in PROBES, "probe", repr(probe), f"must be one of {', '.join(PROBES)}", "choose one")
    require(
        changed or probe != "changed",
        "probe",
        "'changed'",
        "needs the column that it looks at",
        "name it in the option changed",
    )
    require(probe != "xmin" or not query, "probe", "'xmin'", "needs a table", "choose checksum for a query")
    remedy = "make a view of it, or leave group out"
    require(not (query and options.get("group")), "group", "of a query", "cannot be read at one moment", remedy)
    return Ask(
        place,
        table,
        query,
        _named("key", options),
        changed,
        number("overlap", options.get("overlap", OVERLAP), least=0),
        probe,
        int(number("batch", options.get("batch", 1000), least=1, most=1e6)),
        number("sweep", options.get("sweep", SWEEP), above=0, infinite=True),
        int(number("max_bytes", options.get("max_bytes", MAX_BYTES), least=1)),
        _types(options.get("types") or {}),
        schema=_schema(options.get("schema", "hold")),
        group=str(options.get("group") or ""),
        partition=_named("partition", options),
    )


def _named(option: str, options: Mapping[str, Any]) -> tuple[str, ...]:
    told = options.get(option) or ()
    remedy = "give a name or a list of them"
    require(isinstance(told, str | list | tuple), option, repr(told), "must name columns", remedy)
    return (told,) if isinstance(told, str) else tuple(map(str, told))


def _schema(told: object) -> str:
    require(told in ("hold", "follow"), "schema", repr(told)[:40], "must be hold or follow", "choose one")
    return str(told)


def _types(told: object) -> dict[str, str]:
    require(isinstance(told, Mapping), "types", repr(told)[:40], "must be a table", 'write {"amount": "decimal(12,2)"}')
    return {str(name): known_type(str(type_)) for name, type_ in dict(told).items()}  # type: ignore[call-overload]


def split(table: str) -> tuple[str | None, str]:
    """The schema, if there is one, and the name of a table."""
    schema, _, name = table.rpartition(".")
    return schema or None, name


def allowed_database(address: str, options: Mapping[str, Any], roots: Sequence[Path], held: Sequence[Path]) -> bool:
    """Whether a source is in a file of this machine, which may be read; InputError if it could never be polled.

    >>> allowed_database("postgresql://reader:$PASSWORD@db.example.org/shop#orders", {}, (), ())
    False
    """
    place = address.partition("#")[0] if options.get("collection") else ask(address, options).address
    scheme, colon, rest = place.partition("://")
    dialect = scheme.lower().partition("+")[0]
    if not colon or dialect not in KINDS["sql"].schemes:
        raise InputError("address is not a database's: write it like postgresql://user:$PASSWORD@host/name#table")
    if dialect not in FILES:
        return False
    database, _, query = rest.removeprefix("/").partition("?")
    if "$" not in database:
        _place(database, bool(query), roots, held)
    return True


def parsed(sqlalchemy: Any, text: str) -> tuple[str, URL]:
    """The host of an address as it is written, and the address with the driver we use and the secrets that it names."""
    try:
        address = sqlalchemy.engine.make_url(text)
    except (sqlalchemy.exc.ArgumentError, ValueError):
        raise InputError(
            "address is not a database's: write it like postgresql://user:$PASSWORD@host/name#table"
        ) from None
    host = address.host or address.get_backend_name()
    address = address.set(drivername=_DRIVERS.get(address.drivername, address.drivername))
    secret = {part: filled(getattr(address, part) or "") for part in ("username", "password", "host", "database")}
    return host, address.set(**{part: value for part, value in secret.items() if value})


def file_of(address: URL, roots: Sequence[Path], held: Sequence[Path]) -> Path:
    """The file of a database that is one, if it may be read: inside the roots, and none that this process has open."""
    file = _place(address.database or "", bool(address.query), roots, held)
    require(file.is_file(), "file", repr(file.name), "does not exist", "check the address")
    return file


def _place(database: str, more: bool, roots: Sequence[Path], held: Sequence[Path]) -> Path:
    if not database or database.startswith((":", "file:")) or more:
        raise InputError(
            "address of an SQLite or DuckDB database must be its file: write it like sqlite:////data/shop.db#table"
        )
    file = Path(database).resolve()
    _inside(file, roots)
    # Two libraries on one file in one process undo each other's locks: closing it here would free ours.
    own = file.exists() and any(other.exists() and file.samefile(other) for other in held)
    require(not own, "file", repr(file.name), "is Unstale's own", "choose another one")
    return file


def _inside(place: Path, roots: Sequence[Path]) -> None:
    allowed = any(place.is_relative_to(root) for root in roots)
    require(allowed, "file", repr(place.name), "lies in no allowed folder", "add its folder to the settings")


def dialled(
    address: URL, gate: Gate, roots: Sequence[Path], left: float, standby: bool = False
) -> tuple[URL, dict[str, Any]]:
    """The address with its host replaced by what the gate has judged, and what the driver is told besides.

    Another one than libpq is given the number in place of the name, so a certificate that is asked for the name fails.
    Of several servers of PostgreSQL, behind one name or as `one,other`, a `standby` is preferred where one will do.
    """
    query = dict(address.query)
    folder = query.pop("host", None)
    odd = [
        name
        for name, value in query.items()
        if name not in _PARAMETERS or not isinstance(value, str) or not _HARMLESS.fullmatch(value)
    ]
    require(not odd, "address", f"with {', '.join(odd)}", "says more than is allowed", "leave it out")
    postgres = address.get_backend_name() == "postgresql"
    libpq = {"connect_timeout": max(2, int(left) + 1)} if "+psycopg" in address.drivername else {}
    if folder is not None and not address.host:
        require(
            isinstance(folder, str) and postgres,
            "address",
            "with host",
            "may only name PostgreSQL's socket",
            "write the host before the slash",
        )
        _inside(Path(str(folder)).resolve(), roots)
        return address, libpq
    require(address.host and folder is None, "address", "of a database", "must name one host", "write //host/name")
    names = str(address.host).split(",") if libpq else [str(address.host)]
    found = [(name, number) for name in names for number in _resolved(name, address.port, gate)]
    if not libpq:
        return address.set(host=found[0][1]), {}
    # libpq keeps the name for certificates and dials these numbers.
    told = libpq | {"host": ",".join(name for name, _ in found), "hostaddr": ",".join(number for _, number in found)}
    if standby and len(found) > 1:
        # Of one alone it would be asked in vain, by connecting twice.
        told["target_session_attrs"] = "prefer-standby"
    return address.set(port=None) if len(names) > 1 else address, told | _ports(address.port, found)


def _ports(port: int | None, found: Sequence[tuple[str, str]]) -> dict[str, str]:
    """One port holds for all; libpq would take it from the address if there were one host."""
    return {"port": ",".join([str(port)] * len(found))} if port and len(found) > 1 else {}


def _resolved(host: str, port: int | None, gate: Gate) -> list[str]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise InputError("its name could not be resolved") from None
    numbers = list(dict.fromkeys(str(place[4][0]) for place in found))
    for dialled in numbers:
        if not gate.permits(dialled):
            raise InputError(
                f"its address {dialled} is not public, add it to allow_networks in the settings if it may be polled"
            )
    return numbers
