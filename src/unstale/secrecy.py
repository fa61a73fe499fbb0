"""Secrets by name: which names say that what stands under them is secret, and how it is kept out of sight.

Rules of this file:
1. A secret stands in the environment. What people list, and what we store, show and tell, names it: `$NAME`.
2. Nothing here knows a secret's value; whoever fills one in hides it again.
3. Some names in queries always mean a secret (`api_key`, `token`, `sig`). Others may mean anything: `key` and `code`
   are a country, a postcode or a page at one place, a key of Google's or Azure's at another. Under these
   only a value that looks drawn at random is one: twenty characters or more in which letters and digits, small letters
   and capitals take turns, as no words and dates do.
"""

from __future__ import annotations

import re
from urllib.parse import unquote, urlsplit

#: in an address of the web a dollar sign may mean itself: only a whole value or segment in capitals is a name
NAMED_PART = re.compile(r"(?<=[=/])\$(?:([A-Z_][A-Z0-9_]*)|\{([A-Z_][A-Z0-9_]*)\})(?=[/?&;#]|$)")
#: `$NAME` or `${NAME}`, and nothing else
REFERENCE = re.compile(r"\$(?:[A-Za-z_]\w*|\{[A-Za-z_]\w*\})", re.ASCII)
#: names of options and headers that hold secrets
_FIELD = re.compile(r"authorization|cookie|passw|secret|token|api[-_]?key|credential", re.IGNORECASE)
#: names in queries, letters and digits alone, however they are spelled: as they are, and how they end
_WORDS = frozenset(
    {
        "auth",
        "authorization",
        "bearer",
        "jwt",
        "pwd",
        "sig",
        "hmac",
        "sid",
        "sessionid",
        "jsessionid",
        "phpsessid",
        "apikey",
        "appkey",
    }
)
_ENDS = re.compile(
    r"(token|secret|passwd|password|(api|access|auth|private|secret|subscription)key|accesskeyid|signature|credentials?)$"
)
#: tokens that only say where to go on
_PLACES = re.compile(r"(page|next|continuation|cursor|sync|start|csrf)token$")
#: how names end that may mean a secret and may mean none
_PERHAPS = re.compile(r"(key|code|appid|pass)$")
#: as long as a secret at least, of the letters in which one is written; paths, dates and names of files are parted
_LONG = re.compile(r"[A-Za-z0-9_+-]{20,}")
#: where letters and digits take turns, or a capital stands inside a word
_TURN = re.compile(r"(?<=[0-9])[-_+]*(?=[A-Za-z])|(?<=[A-Za-z])[-_+]*(?=[0-9])|(?<=[a-z])(?=[A-Z])")
#: turns from which a value is taken for a random one: two days and two places have three
TURNS = 4
_PARAMETER = re.compile(r"(?<=[?&;])([^=&;#?]{1,80})=([^&;#]*)")


def is_secret_field(name: str) -> bool:
    """Whether an option or header of this name holds a secret.

    >>> is_secret_field("X-Api-Key"), is_secret_field("Accept")
    (True, False)
    """
    return bool(_FIELD.search(name))


def secret_parameter(address: str) -> str:
    """The name of the first parameter in an address's query that holds a secret in clear, or nothing.

    >>> secret_parameter("https://a.org/x?page=2&api_key=abc"), secret_parameter("https://a.org/x?api_key=$KEY")
    ('api_key', '')
    """
    if "=" not in address:
        return ""
    return next((found[1] for found in _PARAMETER.finditer(address) if _holds_secret(found)), "")


def shown_address(address: str) -> str:
    """An address as it may be shown and told: instead of a secret in its query, the name that it would have.

    >>> shown_address("https://a.org/x?access_token=abc&b=1")
    'https://a.org/x?access_token=$ACCESS_TOKEN&b=1'
    """
    if "=" not in address:
        return address
    return _PARAMETER.sub(
        lambda found: f"{found[1]}={variable(found[1])}" if _holds_secret(found) else found[0], address
    )


def as_written(address: str, ours: str = "") -> str:
    """An address that somebody else wrote, so that nothing is filled into it: a dollar sign means itself there.

    What our own address `ours` names is left where it leads to the same place: others may be told relative to it.

    >>> as_written("https://a.org/x?a=$HOME"), as_written("https://a.org/$KEY/x", "https://a.org/$KEY/list")
    ('https://a.org/x?a=%24HOME', 'https://a.org/$KEY/x')
    """
    if "$" not in address:
        return address
    near = bool(ours) and urlsplit(address)[:2] == urlsplit(ours)[:2]
    known = {found[0] for found in NAMED_PART.finditer(ours)} if near else set()
    return NAMED_PART.sub(lambda found: found[0] if found[0] in known else "%24" + found[0][1:], address)


def variable(name: str) -> str:
    """How a secret of this name may be called in the environment.

    >>> variable("x-api-key")
    '$X_API_KEY'
    """
    return "$" + (re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_").upper() or "SECRET")


def _holds_secret(found: re.Match[str]) -> bool:
    name, value = re.sub(r"[^a-z0-9]", "", unquote(found[1]).lower()), found[2]
    if not value or REFERENCE.fullmatch(value):
        return False
    if name in _WORDS or (_ENDS.search(name) and not _PLACES.search(name)):
        return True
    return bool(_PERHAPS.search(name)) and _looks_random(unquote(value))


def _looks_random(value: str) -> bool:
    """Whether some part of a value looks drawn at random.

    >>> _looks_random("d1f5a9c27b3e48069f1ac4"), _looks_random("weekly-report-2026-11-18-berlin")
    (True, False)
    """
    return any(len(_TURN.findall(part)) >= TURNS for part in _LONG.findall(value))
