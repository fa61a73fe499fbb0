"""What unstale.toml can say of the ways in which sources are fetched: HTTP, files, databases, browsers, APIs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from unstale.cli import forms
from unstale.frozen import dataclass


def setting(written: Any, read: forms.Form, meaning: str) -> Any:
    """A setting: its default as TOML would say it, how it is read, what it means."""
    about = {"written": written, "read": read, "meaning": meaning}
    return field(default_factory=lambda: read("default", written), metadata=about)


@dataclass(frozen=True, slots=True)
class Http:
    """How the web is polled."""

    agent: str = setting("", forms.text, "How polls name themselves; empty: unstale and its version.")
    contact: str = setting("", forms.text, "Where the owner of a polled site can reach you; told with every poll.")
    connections: int = setting(512, forms.whole, "Open connections at a time, all hosts together.")
    pollers: int = setting(
        0, forms.count, "Processes beside the engine that poll, each its own hosts; 0: the engine polls itself."
    )
    concurrency: int = setting(2, forms.whole, "Polls at a time at one host.")
    spacing: float = setting(
        "1s",
        forms.seconds,
        "Time between the starts of two polls at one host; none on this machine and in private networks.",
    )
    timeout: float = setting("30s", forms.some_seconds, "What a whole poll may take, redirects included.")
    limit: int = setting("16MiB", forms.size, "What a body may have, decoded.")
    bodies: int = setting(
        "256MiB",
        forms.size,
        "What bodies may have together while they are polled, most on disk; the others wait.",
    )
    robots: bool = setting(True, forms.flag, "Whether robots.txt is asked first, and obeyed.")
    proxy: str = setting("", forms.place, "The proxy that polls go through; a password in it as $NAME.")
    ca_file: str = setting("", forms.text, "Certificates to trust instead of the system's, a PEM file.")
    allow_networks: tuple[str, ...] = setting(
        [], forms.networks, "Networks that are not public and may be polled nevertheless, like 10.0.0.0/8."
    )


@dataclass(frozen=True, slots=True)
class Files:
    """Which files and objects may be polled."""

    roots: tuple[str, ...] = setting([], forms.texts, "Folders whose files may be polled; none are unless named here.")
    schemes: tuple[str, ...] = setting(
        [], forms.texts, "Schemes of objects elsewhere that may be polled, like s3; none are unless named here."
    )


@dataclass(frozen=True, slots=True)
class Sql:
    """Where copies of tables go."""

    target: str = setting(
        "",
        forms.text,
        "Where copies of tables go: an SQLite file; a DuckDB file if its name ends in .duckdb; a folder of Parquet "
        "files if in .parquet; a schema of a PostgreSQL server by its address, like "
        "postgresql://user:$PASSWORD@host/database?schema=copies. Empty: unstale-tables.duckdb where DuckDB is "
        "installed, otherwise unstale-tables.db, and the latter wherever it is there already.",
    )
    lineage: str = setting(
        "",
        forms.text,
        "Where the runs of copies are told as OpenLineage events: a file, one JSON object a line, or the http(s) "
        "address of a server, to which each is POSTed.",
    )
    lineage_token: str = setting("", forms.reference, "Environment variable with the token for that server, `$NAME`.")


@dataclass(frozen=True, slots=True)
class BrowserSettings:
    """The browser that draws pages which need one."""

    program: str = setting("", forms.text, "The program, like /usr/bin/chromium; empty: the one that Playwright has.")
    endpoint: str = setting(
        "", forms.reference, "The environment variable with the address of a browser elsewhere (CDP), as $NAME."
    )
    pages: int = setting(2, forms.whole, "Pages that are drawn at a time.")
    sandbox: bool = setting(True, forms.flag, "Whether the browser's own sandbox is used, which the superuser has not.")


@dataclass(frozen=True, slots=True)
class ApiSettings:
    """One API: how its resources are read, and who asks."""

    base: str = setting("", forms.text, "Where its addresses begin, like https://api.example.org/v1/.")
    records: str = setting(
        "", forms.text, "The path to the records, like $.data.items; empty: the one list in the answer."
    )
    key: tuple[str, ...] = setting([], forms.texts, "The fields that tell records apart.")
    paging: str = setting("auto", forms.text, "How pages follow: auto, link, cursor, offset, number or none.")
    next: str = setting("", forms.text, "The path to the next page's cursor or address, like $.meta.next.")
    cursor: str = setting("cursor", forms.text, "The parameter that takes the cursor.")
    offset: str = setting("offset", forms.text, "The parameter that takes the number of records to pass over.")
    number: str = setting("page", forms.text, "The parameter that takes the number of a page.")
    size: str = setting("limit", forms.text, "The parameter that takes the number of records of a page.")
    batch: int = setting(0, forms.count, "Records of a page to ask for; 0: as many as it likes.")
    pages: int = setting(1000, forms.whole, "Pages of one resource at most.")
    since: str = setting("", forms.text, "The parameter that asks for what changed since a time, like updated_since.")
    changed: str = setting("", forms.text, "The field that tells when a record last changed.")
    overlap: float = setting("5m", forms.seconds, "Time before the newest change that is asked for again.")
    sweep: float = setting("1d", forms.seconds, "After this all records are read again, and those gone are found.")
    types: Mapping[str, str] = setting({}, forms.column_types, "Types of fields, like timestamptz or decimal(12,2).")
    token: str = setting("", forms.reference, "The environment variable with a bearer token, as $NAME.")
    username: str = setting("", forms.reference, "The environment variable with a user's name, as $NAME.")
    password: str = setting("", forms.reference, "The environment variable with the user's password, as $NAME.")
    token_address: str = setting(
        "",
        forms.place,
        "Where a token is asked for by client credentials (OAuth 2), like https://id.example.org/token.",
    )
    client: str = setting("", forms.reference, "The environment variable with the client's id, as $NAME.")
    client_secret: str = setting("", forms.reference, "The environment variable with the client's secret, as $NAME.")
    scope: str = setting("", forms.text, "What the token shall be good for, as the API calls it.")
