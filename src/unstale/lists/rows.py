"""One row of a list as a listing: the columns there are, what each may hold, and the sentence where it does not.

Rules of this file:
1. What a row leaves open is taken from `base`, and what that leaves open follows from the address.
2. Nothing is guessed: a row that breaks a rule is a problem with its line, and every other row goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from typing import Any

from unstale.addresses import host_of, kind_of
from unstale.errors import InputError, require, sentence, suggestion
from unstale.frozen import dataclass
from unstale.kinds import known_kind
from unstale.lists.fields import flag_of, number_of, options_of, seconds, text_of
from unstale.ports import Listing, tags_of

#: every spelling of a column, and the one we use
COLUMNS = {
    "address": "address",
    "url": "address",
    "kind": "kind",
    "weight": "weight",
    "cost": "cost",
    "host": "host",
    "min_interval": "min_interval",
    "min": "min_interval",
    "shortest": "min_interval",
    "max_interval": "max_interval",
    "max": "max_interval",
    "longest": "max_interval",
    "paused": "paused",
    "headers": "headers",
    "options": "options",
}

#: different rows, but for the address, that are remembered
_REMEMBERED = 100_000

#: (address, kind, options) -> the one spelling of the address, or InputError
Check = Callable[[str, str, Mapping[str, Any]], str]


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with one line of a list, in a sentence. Lines count from 1; in Parquet they are rows.

    >>> print(Problem(3, "weight 'x' is not a number: write it like 2 or 0.5"))
    line 3: weight 'x' is not a number: write it like 2 or 0.5
    """

    line: int
    reason: str
    #: the list it stands in, where there are several
    place: str = ""

    def __str__(self) -> str:
        return f"line {self.line}{' of ' + self.place if self.place else ''}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Parsed:
    """The sources of a list in its order, the lines that are none, and the columns that nobody reads."""

    listings: list[Listing]
    problems: list[Problem]
    unused: tuple[str, ...] = ()


def column(name: str) -> str | None:
    """The column that is meant by a name, None if there is none; parts of options keep theirs.

    >>> column(" URL"), column("Min_Interval"), column("headers.X-Api-Key"), column("note")
    ('address', 'min_interval', 'headers.X-Api-Key', None)
    """
    name = name.strip()
    first, dot, rest = name.partition(".")
    if dot and rest and first.lower() in ("headers", "options"):
        return f"{first.lower()}.{rest}"
    return COLUMNS.get(name.lower())


def known(name: str) -> str:
    """The column that is meant by a name, or InputError that says which may have been."""
    if (found := column(name)) is None:
        remedy = suggestion(name, COLUMNS, "use weight, cost, host, kind, min, max or options.NAME")
        raise InputError(sentence("column", repr(name[:40]), "is unknown", remedy))
    return found


@dataclass(slots=True)
class ListReader:
    """Takes rows one after the other and keeps the good ones as listings, the others as problems."""

    base: Listing
    check: Check
    place: str = ""
    listings: list[Listing] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    _lines: dict[str, int] = field(default_factory=dict)
    #: where in `listings` an address stands that may be merged with another row
    _places: dict[str, int] = field(default_factory=dict)
    _templates: dict[tuple[tuple[str, Any], ...], Listing] = field(default_factory=dict)

    def take(self, line: int, fields: Mapping[str, Any], *, merge: bool = False) -> None:
        """One row: its columns by their own names; what is None or empty counts as left open.

        An address that was there already is a problem, unless rows are to be merged: then its tags are added.
        """
        try:
            listing = placed(fields.get("address"), self._own(fields), self.check)
        except InputError as error:
            return self.refuse(line, str(error))
        if (first := self._lines.get(listing.address)) is not None:
            if merge:
                return self._merge(listing)
            shown = repr(listing.address[:80])
            return self.refuse(line, sentence("address", shown, f"is listed already in line {first}", "list it once"))
        self._lines[listing.address] = line
        if merge:
            self._places[listing.address] = len(self.listings)
        return self.listings.append(listing)

    def _merge(self, again: Listing) -> None:
        place = self._places[again.address]
        first = self.listings[place]
        tags = list(dict.fromkeys([*tags_of(first.options), *tags_of(again.options)]))
        if tags:
            self.listings[place] = replace(first, options={**first.options, "tags": tags})

    def _own(self, fields: Mapping[str, Any]) -> Listing:
        """All but the address. Few rows say what none before has said, so it is read once and shared."""
        if len(fields) == 1 and "address" in fields:
            return self.base
        said = tuple(pair for pair in fields.items() if pair[0] != "address")
        if not said:
            return self.base
        try:
            known = self._templates.get(said)
        except TypeError:
            return template(fields, self.base)
        if known is None:
            known = template(fields, self.base)
            if len(self._templates) < _REMEMBERED:
                self._templates[said] = known
        return known

    def refuse(self, line: int, reason: str) -> None:
        """One row that is none."""
        self.problems.append(Problem(line, reason, self.place))


def listing_of(fields: Mapping[str, Any], base: Listing, check: Check) -> Listing:
    """One row as a listing, or InputError."""
    return placed(fields.get("address"), template(fields, base), check)


def placed(at: Any, own: Listing, check: Check) -> Listing:
    """The source at an address, of which `own` says the rest; what that leaves open follows from the address."""
    address = text_of("address", at or "").strip()
    if not address:
        raise InputError(sentence("address", repr(address), "is empty", "say where the source is"))
    kind = own.kind or kind_of(address)
    address = check(address, kind, own.options)
    return Listing(
        address,
        kind,
        own.weight,
        own.cost,
        own.host or host_of(address),
        own.shortest,
        own.longest,
        own.options,
        own.paused,
    )


def _usual(kind: str) -> float:
    return known_kind(kind).cost if kind else 1.0


def template(fields: Mapping[str, Any], base: Listing) -> Listing:
    """What a row says over what `base` says, wherever the source is.

    >>> template({"weight": "3", "max_interval": "1h"}, Listing("", "")).longest
    3600.0
    """
    given = {name: value for name, value in fields.items() if value is not None and value != ""}
    kind = text_of("kind", given["kind"]).strip().lower() if "kind" in given else base.kind
    # What is dearer by its kind is so where a row names the kind, and nobody the cost.
    cost = base.cost * (known_kind(kind).cost / _usual(base.kind) if kind and kind != base.kind else 1.0)
    host = text_of("host", given["host"]).strip() if "host" in given else base.host
    require(host.isprintable(), "host", repr(host[:40]), "has control characters", "remove them")
    shortest = seconds("min_interval", given["min_interval"]) if "min_interval" in given else base.shortest
    longest = seconds("max_interval", given["max_interval"]) if "max_interval" in given else base.longest
    require(longest > 0, "max_interval", given.get("max_interval"), "must be above 0", "leave it out for no limit")
    require(
        shortest <= longest,
        "min_interval",
        f"{shortest:g} s",
        f"must not exceed max_interval {longest:g} s",
        "swap them",
    )
    return Listing(
        base.address,
        kind,
        number_of("weight", given, base.weight, least=0.0),
        number_of("cost", given, cost, above=0.0),
        host,
        shortest,
        longest,
        options_of(given, base.options),
        flag_of(given["paused"]) if "paused" in given else base.paused,
    )
