"""Every kind of source there is, in one table: which addresses it takes, which options, how long a poll may last.

Rules of this file:
1. Whoever names kinds, schemes or options of sources reads them here: commands, lists, the API, the fetchers.
2. How sources of a kind are polled is the business of `unstale.cli.fetchers`; a test holds the two together.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from unstale.errors import InputError, require, sentence, suggestion
from unstale.frozen import dataclass

#: how listings of collections are read; the readers are in `unstale.listings`
READERS = (
    *("sitemap", "feed", "index", "folder", "objects", "simple", "changes", "changelog"),
    *("debian", "refs", "table", "catalogue", "digest", "links"),
)
_NUMBER = re.compile(r"[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]+)?", re.ASCII)
#: lengths of time with their units, as `unstale.units` reads them
_LENGTH = re.compile(r"([0-9]+(\.[0-9]+)? ?(s|m|min|h|d|days?|w|weeks?) ?)+", re.ASCII)


@dataclass(frozen=True, slots=True)
class Form:
    """What the value of an option may be: a test of it, and the rule and remedy where it fails."""

    holds: Callable[[object], bool]
    rule: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of source. `seconds` is what a poll of it may take where its source does not say (None: as [http] does).

    An address is of the first kind in the table that takes its scheme, unless its source says otherwise. `drivers`:
    a scheme may name a driver behind a plus sign.
    """

    name: str
    meaning: str
    schemes: tuple[str, ...]
    options: Mapping[str, Form]
    seconds: float | None = None
    drivers: bool = False
    #: what a poll of it costs where neither its source nor the settings say
    cost: float = 1.0

    def takes(self, scheme: str) -> bool:
        """Whether sources at addresses with this scheme can be of this kind."""
        return (scheme.partition("+")[0] if self.drivers else scheme) in self.schemes


def _number(value: object) -> bool:
    if isinstance(value, str):
        return bool(_NUMBER.fullmatch(value)) and 0.0 < float(value) < float("inf")
    return isinstance(value, int | float) and not isinstance(value, bool) and 0.0 < value < float("inf")


def _length(value: object) -> bool:
    return isinstance(value, str) and bool(_LENGTH.fullmatch(value)) and any(digit in value for digit in "123456789")


def _text(value: object) -> bool:
    # What looks like a number in a list has become one.
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def _texts(value: object) -> bool:
    return isinstance(value, str) or (isinstance(value, list | tuple) and all(isinstance(one, str) for one in value))


def _reader(value: object) -> bool:
    return value in READERS


TEXT = Form(_text, "must be text", "write it in quotes")
TEXTS = Form(_texts, "must be a text or a list of texts", 'write it like ["one", "two"]')
NUMBER = Form(_number, "must be a number above 0", "write it like 120")
AMOUNT = Form(lambda value: _number(value) or value in (0, "0"), "must be a number from 0 on", "write it like 120")
FLAG = Form(lambda value: isinstance(value, bool), "must be true or false", "write it without quotes")
LENGTH = Form(_length, "must be a length of time above 0", "write it like 1h")
SHARE = Form(
    lambda value: _number(value) and float(str(value)) <= 1.0, "must be above 0, 1 at most", "write it like 0.95"
)
TABLE = Form(lambda value: isinstance(value, Mapping), "must be a table", 'write it like {"name": "value"}')
WEIGHTS = Form(
    lambda value: isinstance(value, Mapping) and all(map(_number, value.values())),
    "must be a table of numbers above 0 by patterns of addresses",
    'write it like {"*/news/*": 3}',
)

#: the shape of a listing that is no form of ours
SHAPE = ("items", "member", "time", "tag", "next", "cursor", "since")
#: what a collection may say: how its listing is read, whom it may tell of, and the shape of what is no form of ours
COLLECTING: Mapping[str, Form] = {
    "collection": Form(_reader, f"must be one of {', '.join(READERS)}", "say how its listing is read"),
    "most_members": NUMBER,
    "forget_after": NUMBER,
    "only": TEXTS,
    "never": TEXTS,
    "weights": WEIGHTS,
    "depth": NUMBER,
    "discovery": AMOUNT,
    "elsewhere": FLAG,
    **dict.fromkeys(SHAPE, TEXT),
}
#: what every source may say: how it is called and filed, what is sent, what counts, what a poll may take
COMMON: Mapping[str, Form] = {
    "title": TEXT,
    "tags": TEXTS,
    "headers": TABLE,
    "normalise": TABLE,
    "triggers": TABLE,
    "timeout": NUMBER,
    "limit": NUMBER,
    "fresh_within": LENGTH,
    "target": SHARE,
    **COLLECTING,
}
#: what may be said of sources on the web: that caches in front of them are told of changes, and worth asking early
_WEB: Mapping[str, Form] = {**COMMON, "early": FLAG}
_WAY = {
    **dict.fromkeys(
        ("username", "password", "host_key", "key", "secret", "token", "endpoint", "region", "account"), TEXT
    ),
    "ambient": FLAG,
}
_ROWS: Mapping[str, Form] = {
    "table": TEXT,
    "query": TEXT,
    "key": TEXTS,
    "changed": TEXT,
    "probe": TEXT,
    "overlap": AMOUNT,
    "sweep": NUMBER,
    "batch": NUMBER,
    "max_bytes": NUMBER,
    "schema": TEXT,
    "group": TEXT,
    "types": TABLE,
    "partition": TEXTS,
}
_RECORDS: Mapping[str, Form] = {
    **dict.fromkeys(("records", "paging", "next", "cursor", "offset", "number", "size", "since", "changed"), TEXT),
    **dict.fromkeys(("batch", "pages", "sweep"), NUMBER),
    "overlap": AMOUNT,
    "key": TEXTS,
    "types": TABLE,
}
#: what is done before a page is kept: wait for an element, click on some, wait so many seconds; how large the window is
_DRAWN: Mapping[str, Form] = {
    "wait_for": TEXT,
    "click": TEXTS,
    "wait": AMOUNT,
    "width": NUMBER,
    "height": NUMBER,
    "whole_page": FLAG,
    "picture": FLAG,
}
#: dialects as SQLAlchemy names them
_DATABASES = (
    "postgresql postgres mysql mariadb sqlite oracle mssql duckdb cockroachdb redshift snowflake bigquery clickhouse "
    "trino databricks"
)

#: by name; the order decides what an address is taken for
KINDS: Mapping[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind("http", "anything on the web", ("http", "https"), _WEB),
        Kind("feed", "RSS, Atom or JSON Feed: what counts is its entries", ("http", "https"), _WEB),
        Kind(
            "file",
            "files, folders and objects",
            ("file", "ftp", "sftp", "s3", "gs", "gcs", "az", "abfs"),
            {**COMMON, **_WAY},
        ),
        Kind(
            "sql",
            "tables of databases",
            tuple(_DATABASES.split()),
            {**COMMON, **_ROWS},
            # the first copy of a table may be large
            seconds=600.0,
            drivers=True,
        ),
        Kind(
            "api",
            "resources of JSON APIs: their records as tables",
            ("http", "https"),
            {**COMMON, **_RECORDS},
            # many pages
            seconds=300.0,
        ),
        Kind(
            "browser",
            "pages that need a browser: drawn, clicked through, kept with their picture",
            ("http", "https"),
            {**COMMON, **_DRAWN},
            seconds=60.0,
            cost=10.0,
        ),
        Kind("replica", "copies that another replica has", ("http", "https"), {**COMMON, "upstream": TEXT}),
    )
}
NAMES = tuple(KINDS)


def known_kind(name: str) -> Kind:
    """The kind of this name, or InputError that says which there are.

    >>> known_kind("sql").takes("postgresql+psycopg"), known_kind("file").takes("smb")
    (True, False)
    """
    if (found := KINDS.get(name)) is None:
        there = f"choose one of {', '.join(NAMES)}"
        meant = next((kind.name for kind in KINDS.values() if kind.takes(name)), "")
        remedy = f"did you mean {meant!r}?" if meant else suggestion(name, NAMES, there)
        raise InputError(sentence("kind", repr(name[:40]), "is unknown", remedy))
    return found


def check_options(kind: Kind, options: Mapping[str, object], known: Mapping[str, object] | None = None) -> None:
    """Refuse options that sources of this kind have not, and values that are none of theirs.

    What stands in `known` already, with the same value, is let be: an older version may have taken it.

    >>> check_options(KINDS["sql"], {"chnaged": "at"})
    Traceback (most recent call last):
    unstale.errors.InputError: option 'chnaged' is not known for sql: did you mean 'changed'?
    """
    for name, value in options.items():
        if known and name in known and known[name] == value:
            continue
        if (form := kind.options.get(name)) is None:
            there = f"there are {', '.join(kind.options)}"
            remedy = suggestion(name, tuple(kind.options), there)
            raise InputError(sentence("option", repr(name[:40]), f"is not known for {kind.name}", remedy))
        require(form.holds(value), f"option {name}", "(given)", form.rule, form.remedy)
