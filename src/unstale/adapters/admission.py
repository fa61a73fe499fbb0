"""Which sources may be listed: one check of address, kind and options, against the table of kinds and the settings.

Rules of this file:
1. Whatever would be refused at every poll is refused when it is listed, by the same rules and in the same words.
2. Nothing is dialled and no name is resolved: what only the network knows is left to the poll.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field
from fnmatch import fnmatchcase
from typing import Any
from urllib.parse import urlsplit

from unstale.adapters.normalise import Normaliser
from unstale.adapters.store_checks import LONGEST_ADDRESS, check_listings
from unstale.adapters.triggers import Triggers
from unstale.adapters.ways import WAYS, Means
from unstale.errors import InputError, require, sentence
from unstale.frozen import dataclass
from unstale.kinds import check_options, known_kind
from unstale.ports import Listing
from unstale.secrecy import NAMED_PART, REFERENCE, secret_parameter, variable

#: visible ASCII without the colon that ends a name
_HEADER = re.compile(r"[!-9;-~]+")
_NORMALISE = {
    **dict.fromkeys(
        ("selectors", "pointers", "keep", "keep_pointers", "xpath", "between", "patterns", "drop_patterns"), list
    ),
    **dict.fromkeys(("whitespace", "case", "digits", "dates", "text"), bool),
}
#: of those, the lists that hold no texts
_PAIRS = ("between",)
#: options in which a dollar sign means itself
_AS_WRITTEN = ("title", "tags", "normalise", "triggers", "query")


@dataclass(frozen=True, slots=True)
class Admission:
    """The check of one source that every face calls: (address, kind, options) to the address as it is stored.

    >>> Admission()("HTTPS://Bücher.example", "http", {})
    'https://xn--bcher-kva.example/'
    >>> Admission()("file:///etc/passwd", "file", {})
    Traceback (most recent call last):
    unstale.errors.InputError: address of a file is not below a folder named in roots, under [files] in the settings: \
add its folder if it may be polled
    """

    means: Means = field(default_factory=Means)
    #: what the store says of the source already, if it does: what an older version has taken may stay
    old: Listing | None = None
    #: which names of the environment may be written, as patterns; None: all, for who may read it anyway
    names: tuple[str, ...] | None = None

    def __call__(self, address: str, kind: str, options: Mapping[str, Any]) -> str:
        """The address in its one spelling, or InputError."""
        about = known_kind(kind)
        web = "http" in about.schemes
        if not web:
            checked_address(address)
        found = WAYS[kind].admit(address, options, self.means)
        # Written out in ASCII it may be longer than before.
        checked_address(found)
        if "=" in found and (self.old is None or found != self.old.address):
            _no_secret(found)
        if self.names is not None:
            self._granted_names(found, options, web)
        if options:
            check_options(about, options, self.old.options if self.old else None)
            checked_options(options)
        return found

    def changing(self, old: Listing) -> Admission:
        """The check of what is to be said of a source that is listed."""
        return Admission(self.means, old, self.names)

    def _granted_names(self, address: str, options: Mapping[str, Any], web: bool) -> None:
        """Refuse names of the environment that are not granted: whoever writes an address says who gets what is filled
        in. What was there before may stay, at the place where it was."""
        old = self.old
        same = old is not None and urlsplit(address)[:2] == urlsplit(old.address)[:2]
        before = _names(old.address, old.options, web) if old is not None and same else ()
        for name in _names(address, options, web):
            require(
                name in before or any(fnmatchcase(name, one) for one in self.names or ()),
                "name",
                f"${name[:80]}",
                "is not granted to those who write over the network",
                "list it in environment, under [server] in the settings, or use `unstale add` there",
            )


def _names(address: str, options: Mapping[str, Any], web: bool) -> set[str]:
    """The names of the environment in what is filled in when a source is polled, however it nests."""
    said = [value for name, value in options.items() if name not in _AS_WRITTEN]
    said += [found[0] for found in NAMED_PART.finditer(address)] if web else [address]
    return names_in(said)


def names_in(said: object) -> set[str]:
    """The names of the environment in texts, however they nest.

    >>> sorted(names_in({"headers": {"X-Key": "$KEY", "Authorization": "Bearer ${TOKEN}"}}))
    ['KEY', 'TOKEN']
    """
    return {found.strip("${}") for found in REFERENCE.findall(str(said))}


def checked_address(address: str) -> None:
    """Refuse control characters, passwords in clear, and addresses without end."""
    if len(address) > LONGEST_ADDRESS or "@" in address or not address.isascii() or not address.isprintable():
        _store_takes(Listing(address))


def checked_options(options: Mapping[str, Any]) -> None:
    """Refuse secrets in clear, headers that are not text, and rules of comparison that cannot be followed."""
    headers = options.get("headers", {})
    require(
        isinstance(headers, Mapping) and all(isinstance(value, str) for value in headers.values()),
        "options.headers",
        "given",
        "must be a table of texts",
        "write numbers in quotes",
    )
    for name, value in headers.items():
        require(
            _HEADER.fullmatch(name) and value.isascii() and value.isprintable(),
            f"options.headers.{name[:40]!a}",
            "given",
            "must be printable ASCII",
            "check its name and value",
        )
    _store_takes(Listing("options:", options=options))
    normalise = options.get("normalise", {})
    require(
        isinstance(normalise, Mapping)
        and all(name in _NORMALISE and isinstance(value, _NORMALISE[name]) for name, value in normalise.items())
        and all(
            isinstance(one, list) if name in _PAIRS else isinstance(one, str)
            for name, value in normalise.items()
            if isinstance(value, list)
            for one in value
        ),
        "options.normalise",
        "given",
        f"may hold lists ({', '.join(n for n, form in _NORMALISE.items() if form is list)}) and "
        f"{', '.join(n for n, form in _NORMALISE.items() if form is bool)} = true or false",
        "use these",
    )
    Normaliser(**normalise)
    if (triggers := options.get("triggers")) is not None:
        Triggers.said(triggers)


def _no_secret(address: str) -> None:
    if name := secret_parameter(address):
        remedy = (
            f"put it in the environment and write its name there, {name}={variable(name)}, or send it with --header"
        )
        raise InputError(sentence("address", f"with {name[:40]}=(not shown)", "must not hold a secret", remedy))


def _store_takes(listing: Listing) -> None:
    try:
        check_listings([listing], 0.0, "refuse")
    except InputError as error:
        raise InputError(str(error).removeprefix("listings[0].")) from None
