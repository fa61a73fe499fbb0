"""How a resource of an API is read: what its source says, over what the settings say of the whole API."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import field, fields, replace
from typing import Any

from unstale.adapters.sql_types import known_type
from unstale.core.checks import number
from unstale.errors import InputError, require, sentence
from unstale.frozen import dataclass

#: how the next page is found; auto: by a link if there is one, by `next` if that is told, else there is none
PAGINGS = ("auto", "link", "cursor", "offset", "number", "none")
_STEP = re.compile(r"\.?([^.\[\]]+)|\[(\d+|\*)\]|\['([^']*)'\]")


@dataclass(frozen=True, slots=True)
class ApiTerms:
    """One API, or one resource of it. Secrets are names of the environment.

    `records` and `next` are paths like `$.data.items`; `since` names the parameter that asks for what changed since a
    time, which the field `changed` of a record tells; `size` names that for the records of a page, `batch` of them.
    """

    base: str = ""
    records: str = ""
    key: tuple[str, ...] = ()
    paging: str = "auto"
    next: str = ""
    cursor: str = "cursor"
    offset: str = "offset"
    number: str = "page"
    size: str = "limit"
    batch: int = 0
    pages: int = 1000
    since: str = ""
    changed: str = ""
    overlap: float = 300.0
    sweep: float = 86_400.0
    types: Mapping[str, str] = field(default_factory=dict)
    token: str = ""
    username: str = ""
    password: str = ""
    token_address: str = ""
    client: str = ""
    client_secret: str = ""
    scope: str = ""


#: what a source may say itself; who asks, and with which secret, is the settings' business
OF_SOURCE = tuple(
    name
    for name in (one.name for one in fields(ApiTerms))
    if name not in ("base", "token", "username", "password", "token_address", "client", "client_secret", "scope")
)


def terms_of(address: str, options: Mapping[str, Any], known: Sequence[ApiTerms]) -> ApiTerms:
    """The terms of a resource: of the API with the longest base that its address begins with, and its own.

    >>> shop = ApiTerms("https://shop.example/v1/", records="data")
    >>> terms_of("https://shop.example/v1/orders", {"key": "id"}, [shop]).records
    'data'
    """
    near = [one for one in known if one.base and address.startswith(one.base)]
    found = max(near, key=lambda one: len(one.base), default=ApiTerms())
    return checked(replace(found, **{name: _read(name, options[name]) for name in OF_SOURCE if name in options}))


def checked(terms: ApiTerms) -> ApiTerms:
    """The same, if it can be followed."""
    remedy = f"choose one of {', '.join(PAGINGS)}"
    require(terms.paging in PAGINGS, "paging", repr(terms.paging), "is not known", remedy)
    for name in ("records", "next"):
        steps(getattr(terms, name), name)
    need = {"cursor": terms.next, "offset": terms.batch, "number": terms.batch}.get(terms.paging, True)
    wanted = "next, the path to it" if terms.paging == "cursor" else "batch"
    require(need, "paging", repr(terms.paging), f"needs {wanted}", "say it as an option or under [apis]")
    for name, needed in (("since", "changed"), ("since", "key")):
        if getattr(terms, name) and not getattr(terms, needed):
            raise InputError(sentence("since", repr(terms.since), f"needs {needed}", f"name {needed} too"))
    return terms


def steps(path: str, name: str = "path") -> list[str | int]:
    """The steps of a path: names and numbers, "*" for all that is there.

    >>> steps("$.data.items[*]"), steps("['a.b'][0]"), steps("$")
    (['data', 'items', '*'], ['a.b', 0], [])
    """
    left, found = path.removeprefix("$"), list[str | int]()
    while left:
        match = _STEP.match(left)
        if match is None:
            raise InputError(sentence(name, repr(path[:60]), "is no path", "write it like $.data.items"))
        plain, place, quoted = match.groups()
        found.append(plain if plain is not None else quoted if place is None else place if place == "*" else int(place))
        left = left[match.end() :]
    return found


def _read(name: str, value: Any) -> Any:
    if name == "key":
        return (value,) if isinstance(value, str) else tuple(map(str, value))
    if name == "types":
        return {str(column): known_type(str(type_)) for column, type_ in dict(value).items()}
    if name in ("batch", "pages"):
        return int(number(name, value, least=1, most=1e6))
    if name in ("overlap", "sweep"):
        return number(name, value, least=0)
    return str(value)
