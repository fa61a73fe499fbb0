"""What every store refuses, so that all of them refuse the same."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from unstale.core.checks import number
from unstale.errors import InputError, require, sentence
from unstale.ports import Entry, Listing
from unstale.secrecy import REFERENCE, is_secret_field

LONGEST_ADDRESS = 8192
#: bytes of a reason that are kept: enough for a sentence
LONGEST_REASON = 500

_PASSWORD = re.compile(r"^[a-z][a-z0-9+.-]*://[^/?#@]*:(?P<password>[^/?#]*)@", re.IGNORECASE)
_CONTROL = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")


def check_listings(listings: Sequence[Listing], now: float, duplicates: str) -> list[str | None]:
    """Refuse the first listing that breaks a rule, by its place; the options of each as JSON, None if it has none."""
    number("now", now)
    require(
        duplicates in ("refuse", "replace"), "duplicates", repr(duplicates), "must be refuse or replace", "choose one"
    )
    texts: list[str | None] = []
    for i, listing in enumerate(listings):
        # One comparison chain decides for nearly all, the checks that word the error follow only when it fails.
        if not (
            0.0 <= listing.weight < math.inf
            and 0.0 < listing.cost < math.inf
            and 0.0 <= listing.shortest <= listing.longest
            and listing.longest > 0.0
            and listing.shortest < math.inf
        ):
            _refuse_numbers(i, listing)
        _check_address(i, listing.address)
        texts.append(_options(i, listing.options) if listing.options else None)
    return texts


def refuse_duplicates(listings: Sequence[Listing], known: Collection[str]) -> None:
    """Refuse a list with addresses that are known already, or are there twice."""
    seen = set(known)
    again = []
    for listing in listings:
        if listing.address in seen:
            again.append(listing.address)
        seen.add(listing.address)
    if again:
        others = f", and {len(again) - 1} others" if len(again) > 1 else ""
        raise InputError(
            sentence(
                "address", repr(again[0][:80]), f"is listed already{others}", "leave them out, or replace duplicates"
            )
        )


def check_entries(entries: Sequence[Entry]) -> None:
    """Refuse the first entry with a time that is none: NaN as a due time would lose a source."""
    tokens, least, most = [entry.claim.token for entry in entries], -math.inf, math.inf
    for i, entry in enumerate(entries):
        belief = entry.belief
        # As for listings: one chain for nearly all.
        if not (
            least < entry.polled_at < most
            and entry.due > least
            and entry.modified is None
            and (belief is None or not len(belief) % 8)
        ):
            _check_entry(i, entry)
    if len(set(tokens)) < len(tokens):
        i = next(i for i, token in enumerate(tokens) if token in tokens[:i])
        raise InputError(sentence(f"entries[{i}].claim", tokens[i], "is there twice", "record a claim once"))


def _check_entry(i: int, entry: Entry) -> None:
    number(f"entries[{i}].polled_at", entry.polled_at)
    if not entry.due > -math.inf:
        number(f"entries[{i}].due", entry.due, infinite=True)
        number(f"entries[{i}].due", entry.due, least=entry.polled_at)
    if entry.modified is not None:
        number(f"entries[{i}].modified", entry.modified, remedy="leave it out if the source does not tell")
    if entry.belief is not None and len(entry.belief) % 8:
        raise InputError(
            sentence(
                f"entries[{i}].belief",
                f"of {len(entry.belief)} bytes",
                "must be whole floats of 8 bytes",
                "give row.tobytes()",
            )
        )


def check_due(sources: Sequence[int], due: Sequence[float], was: Sequence[float] | None) -> None:
    """Refuse due times that are not one per source, or NaN."""
    for name, times in (("due", due), ("was", due if was is None else was)):
        require(
            len(sources) == len(times),
            name,
            f"of {len(times)}",
            f"must be one for each of {len(sources)} sources",
            "give as many",
        )
    for i, time in enumerate(() if was is None else was):
        if math.isnan(time):
            number(f"was[{i}]", time, infinite=True)
    for i, time in enumerate(due):
        if not time > -math.inf:
            number(f"due[{i}]", time, infinite=True)
            number(f"due[{i}]", time, least=0, infinite=True)


def check_claim(now: float, limit: int, lease: float) -> None:
    """Refuse a claim that would last for ever or not at all."""
    number("now", now)
    number("limit", limit, least=0)
    number("lease", lease, above=0, remedy="give the seconds after which an unfinished poll counts as lost")


def check_names(names: Sequence[str]) -> None:
    """Refuse names of listeners that are empty or there twice: one would be told what was meant for the other."""
    for i, name in enumerate(names):
        require(name, f"names[{i}]", repr(name), "is empty", "give it a name that stays the same")
        require(name not in names[:i], f"names[{i}]", repr(name), "is there twice", "name each once")


def _refuse_numbers(i: int, listing: Listing) -> None:
    number(f"listings[{i}].weight", listing.weight, least=0)
    number(f"listings[{i}].cost", listing.cost, above=0)
    number(f"listings[{i}].shortest", listing.shortest, least=0)
    number(f"listings[{i}].longest", listing.longest, above=0, infinite=True)
    raise InputError(
        sentence(f"listings[{i}].shortest", listing.shortest, f"must not exceed longest {listing.longest}", "swap them")
    )


def _check_address(i: int, address: str) -> None:
    if address.isprintable() and 0 < len(address.strip()) <= len(address) <= LONGEST_ADDRESS and "@" not in address:
        return  # as nearly all
    name = f"listings[{i}].address"
    shown = repr(address[:80])
    require(address.strip(), name, shown, "is empty", "say where the source is")
    require(
        len(address) <= LONGEST_ADDRESS,
        name,
        f"of {len(address)} characters",
        f"must have at most {LONGEST_ADDRESS}",
        "shorten it",
    )
    require(not _CONTROL.search(address), name, shown, "has control characters", "remove them")
    if "@" in address:
        found = _PASSWORD.match(address)
        if found and found["password"] and not REFERENCE.fullmatch(found["password"]):
            raise InputError(
                sentence(
                    name,
                    repr(address[: found.start("password")] + "…"),
                    "holds a password",
                    "put it in the environment and write its name there, as $NAME",
                )
            )


def _options(i: int, options: Mapping[str, Any]) -> str:
    _refuse_secrets(f"listings[{i}].options", options)
    try:
        return json.dumps(dict(options), allow_nan=False, sort_keys=True, separators=(",", ":"))
    except (TypeError, ValueError):
        rule, remedy = "must be plain JSON", "use text, finite numbers, lists and objects"
        names = ", ".join(map(str, options))
        raise InputError(sentence(f"listings[{i}].options", f"with {names}", rule, remedy)) from None


def _refuse_secrets(where: str, given: Any, secret: bool = False) -> None:
    """A secret is whatever stands under a name that says so; only a reference to the environment may stand there."""
    if isinstance(given, Mapping):
        for key, inner in given.items():
            _refuse_secrets(f"{where}.{key}", inner, secret or is_secret_field(str(key)))
    elif isinstance(given, list | tuple):
        for inner in given:
            _refuse_secrets(where, inner, secret)
    elif secret and isinstance(given, str) and given and not REFERENCE.search(given):
        raise InputError(
            sentence(
                where,
                "(not shown)",
                "must not hold a secret",
                "put it in the environment and write its name there, as $NAME",
            )
        )
