"""Header fields as they are on the wire, and what the ones that govern caching say. Names are lower case throughout."""

from __future__ import annotations

import re
from collections.abc import Iterable

from unstale.frozen import dataclass

#: a larger number of seconds means no more than this one [RFC 9111 section 1.2.2]
MOST_SECONDS = 2**31
#: directives of Cache-Control by name; None where there is no value
Directives = dict[str, str | None]

#: fields that concern one connection only, and those that a cache must not keep [RFC 9110 7.6.1, RFC 9111 3.1]
HOP_BY_HOP = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authentication-info",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
#: fields that carry the directives for caches like this one, ahead of Cache-Control [RFC 9213]
TARGETED = ("cdn-cache-control",)

_MEMBER = re.compile(r'(?:[^,"]|"(?:[^"\\]|\\.)*"?)+')
_KEY = r"[a-z*][a-z0-9_.*-]*"
_ITEM = (
    r"(?:-?[0-9]{1,15}(?:\.[0-9]{1,3})?"
    r'|"(?:[ !#-\[\]-~]|\\["\\])*"'
    r"|[A-Za-z*][!#$%&'*+.^_`|~0-9A-Za-z:/-]*|:[A-Za-z0-9+/=]*:|\?[01])"
)
_PARAMETERS = rf"(?:; *{_KEY}(?:={_ITEM})?)*"
_STRUCTURED = re.compile(rf"({_KEY})(?:=({_ITEM}|\( *(?:{_ITEM}{_PARAMETERS} *)*\)))?{_PARAMETERS}")


@dataclass(frozen=True, slots=True)
class Fields:
    """Header lines in their order, repeated ones too.

    >>> fields = Fields.of([("Vary", "a"), ("vary", "b"), ("Date", "x")])
    >>> fields.first("vary"), fields.joined("vary"), fields.first("age")
    ('a', 'a, b', None)
    """

    lines: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, lines: Iterable[tuple[str, str]]) -> Fields:
        """Lines as they came: names in lower case, values without surrounding space."""
        return cls(tuple([(name.lower(), value.strip(" \t")) for name, value in lines]))

    def __contains__(self, name: str) -> bool:
        return self.first(name) is not None

    def first(self, name: str) -> str | None:
        """The value of the first line of this name."""
        for known, value in self.lines:
            if known == name:
                return value
        return None

    def joined(self, name: str) -> str | None:
        """All lines of this name as one list."""
        values = [value for known, value in self.lines if known == name]
        return ", ".join(values) if values else None

    def without(self, names: Iterable[str]) -> Fields:
        """The other lines."""
        gone = frozenset(names)
        return Fields(tuple([line for line in self.lines if line[0] not in gone]))

    def having(self, *lines: tuple[str, str]) -> Fields:
        """These lines in place of any of the same names."""
        return Fields((*self.without(name for name, _ in lines).lines, *lines))

    def end_to_end(self) -> Fields:
        """What is not meant for this connection alone, by its name or because Connection names it.

        >>> Fields.of([("Connection", "A"), ("a", "1"), ("b", "2"), ("TE", "gzip")]).end_to_end().lines
        (('b', '2'),)
        """
        return self.without(HOP_BY_HOP | {name.lower() for name in members(self.joined("connection"))})


def members(text: str | None) -> list[str]:
    """The elements of a comma-separated list; commas inside quotes do not separate, empty elements do not count.

    >>> members('a="x, y",, b ')
    ['a="x, y"', 'b']
    """
    return [found for found in (match.strip(" \t") for match in _MEMBER.findall(text or "")) if found]


def directives(text: str | None) -> Directives:
    """Cache-Control as a mapping. Of several values the first counts, but a bare directive is stronger than any list.

    A value with stray spaces is kept as the empty string, which no rule takes for a number [RFC 9111 4.2.1].

    >>> directives('MAX-age=60, ext="max-age=5", max-age=1, no-cache="a", no-cache, s-maxage =9')
    {'max-age': '60', 'ext': 'max-age=5', 'no-cache': None, 's-maxage': ''}
    """
    found: Directives = {}
    for member in members(text):
        name, equals, value = member.partition("=")
        given: str | None = value if equals else None
        if equals and (name != name.rstrip() or value != value.lstrip()):
            given = ""
        elif equals and len(value) > 1 and value[0] == value[-1] == '"':
            given = re.sub(r"\\(.)", r"\1", value[1:-1])
        name = name.rstrip().lower()
        if name not in found or given is None:
            found[name] = given
    return found


def targeted(fields: Fields) -> Directives | None:
    """The directives of the first targeted field that is there, well-formed and not empty [RFC 9213 section 2.2].

    The field is a structured dictionary: what is not one is ignored whole, and a number written as a string is none.

    >>> targeted(Fields.of([("CDN-Cache-Control", "max-age=60, no-cache")]))
    {'max-age': '60', 'no-cache': None}
    >>> targeted(Fields.of([("CDN-Cache-Control", "max-age=60, &&")])) is None
    True
    """
    for name in TARGETED:
        text = fields.joined(name)
        found: Directives = {}
        for member in members(text):
            match = _STRUCTURED.fullmatch(member)
            if match is None:
                found = {}
                break
            key, value = match.groups()
            if value != "?0":
                found[key] = None if value in (None, "?1") else "" if value[0] == '"' else value
        if found:
            return found
    return None


def seconds(text: str | None) -> float | None:
    """A number of seconds as HTTP writes it, None if this is not one.

    >>> seconds("0060"), seconds("99999999999"), seconds("1.5"), seconds("-1")
    (60.0, 2147483648.0, None, None)
    """
    if text is None or not (text.isascii() and text.isdigit()):
        return None
    return float(min(int(text), MOST_SECONDS)) if len(text) < 20 else float(MOST_SECONDS)


def http_age(fields: Fields) -> float:
    """What the Age field says, 0 if nothing valid. Of a list the first member counts [RFC 9111 section 5.1].

    Parameters do not belong there; a number before them is believed all the same, for what is old must not look new.

    >>> [http_age(Fields.of([("Age", text)])) for text in ("7, 0", "7;a=b", "x")]
    [7.0, 7.0, 0.0]
    """
    return seconds((fields.first("age") or "").partition(",")[0].partition(";")[0].strip()) or 0.0


def appended(before: str | None, last: str) -> str:
    """A list in a field with one more member at its end.

    >>> appended("1.1 a", "1.1 b"), appended(None, "1.1 b")
    ('1.1 a, 1.1 b', '1.1 b')
    """
    return f"{before}, {last}" if before else last
