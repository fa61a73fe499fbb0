"""Where a poll may go: web addresses that mean one thing to every reader, and IP addresses that may be dialled.

The gate judges the address that is really dialled, on every hop, so names that change their mind cannot pass it.
Its ranges are written out because what `ipaddress` calls global differs from one Python to the next.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from urllib.parse import quote, urlsplit

from unstale.errors import InputError, sentence
from unstale.frozen import dataclass

#: longest web address, in characters
LONGEST = 8192
#: hosts that a gate remembers to have judged
_REMEMBERED = 65_536
_PORTS = {"http": 80, "https": 443}
_UNSAFE = re.compile(r"[\x00-\x20\x7f\\]")
_NOT_ASCII = re.compile(r"[^\x21-\x7e]+")
# What nearly every address looks like, and needs no more parsing: lower case, usual or high port, a path, no fragment.
_PLAIN = re.compile(
    r"(https?)://([a-z0-9][a-z0-9.-]{0,251}[a-z0-9](?::(?:[1-5][0-9]|[1-9])[0-9]{3})?)"
    r"(/[!\"$->@-\[\]-~]*(?:\?[!\"$-\[\]-~]+)?)"
)
_HOST = re.compile(r"[a-z0-9_](?:[a-z0-9._-]*[a-z0-9_.-])?|\[[0-9a-f:.]+\]")

# IANA's special-purpose registries: nothing a stranger's address should lead to.
_REFUSED_V4 = [
    IPv4Network(text)
    for text in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
    )
]
# Of IPv6 only 2000::/3 is given out; inside it: Teredo and protocols, documentation twice, 6to4.
_PUBLIC_V6 = IPv6Network("2000::/3")
_REFUSED_V6 = [IPv6Network(text) for text in ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")]


class Gate:
    """Which IP addresses may be dialled: public ones, and those in the networks the settings allow.

    >>> Gate().permits("93.184.215.14"), Gate().permits("::ffff:127.0.0.1"), Gate(["127.0.0.0/8"]).permits("127.0.0.1")
    (True, False, True)
    """

    def __init__(self, allow_networks: Iterable[str] = ()) -> None:
        self._allowed: list[IPv4Network | IPv6Network] = []
        #: hosts that were not refused: a list has many addresses at each
        self._passed: set[str] = set()
        for text in allow_networks:
            try:
                self._allowed.append(ip_network(text))
            except ValueError:
                rule, remedy = "is not a network", "write it like 10.0.0.0/8 or fd00::/8, host bits zero"
                raise InputError(sentence("allow_networks", repr(text), rule, remedy)) from None

    @property
    def networks(self) -> list[str]:
        """The networks that are allowed besides, from which the same gate can be made elsewhere."""
        return [str(network) for network in self._allowed]

    def permits(self, dialled: str) -> bool:
        """Whether this IP address, as the system is about to dial it, may be dialled."""
        ip = ip_address(dialled)
        # The system dials a mapped address as the IPv4 address inside it, so that one is judged.
        if ip.version == 6 and ip.ipv4_mapped is not None:
            ip = ip.ipv4_mapped
        if any(ip in network for network in self._allowed):
            return True
        if ip.version == 4:
            return not any(ip in network for network in _REFUSED_V4)
        return ip in _PUBLIC_V6 and not any(ip in network for network in _REFUSED_V6)

    def check_host(self, host: str) -> None:
        """Refuse a host that is written as a number, or as this machine's own name, unless it may be dialled.

        Other names say nothing before they are resolved, which is the business of a poll.
        """
        if host in self._passed:
            return
        numbers = _numbers(host)
        if numbers and not any(map(self.permits, numbers)):
            rule, remedy = "is not public", "add it to allow_networks in the settings if it may be polled"
            raise InputError(sentence("address", f"at {host[:80]}", rule, remedy))
        if len(self._passed) < _REMEMBERED:
            self._passed.add(host)


@dataclass(frozen=True, slots=True)
class WebAddress:
    """An http or https address in the one spelling that is sent, and the origin credentials belong to."""

    text: str
    host: str
    origin: str


@lru_cache(maxsize=8192)
def web_address(text: str) -> WebAddress:
    """`text` as a web address, or InputError; the message never repeats the path or query, which may be secret.

    Refused: other schemes, credentials inside (they belong in headers), and characters that parsers disagree about.

    >>> web_address("HTTP://Bücher.example/ä?q=1#top").text
    'http://xn--bcher-kva.example/%C3%A4?q=1'
    """
    if len(text) > LONGEST:
        raise InputError(
            sentence("address", f"of {len(text)} characters", f"must have at most {LONGEST}", "shorten it")
        )
    plain = _PLAIN.fullmatch(text)
    scheme, host, rest = plain.groups() if plain else _parsed(text)
    name, _, port = host.rpartition(":") if host[-1] != "]" and ":" in host else (host, "", str(_PORTS[scheme]))
    return WebAddress(text if plain else f"{scheme}://{host}{rest}", name, f"{scheme}://{name}:{port}")


def plain_host(text: str) -> str | None:
    """The host of a web address that is written as it is sent, as nearly all are; None if it takes a closer look.

    >>> plain_host("https://a.example:8443/b?c"), plain_host("https://A.example/")
    ('a.example', None)
    """
    plain = _PLAIN.fullmatch(text)
    return None if plain is None or len(text) > LONGEST else plain[2].partition(":")[0]


def _numbers(host: str) -> list[str]:
    """The IP addresses that a host means without being resolved; the system reads 127.1 and 0x7f.1 as such, too."""
    bare = host.strip("[]").lower().rstrip(".")
    if bare == "localhost" or bare.endswith(".localhost"):
        return ["127.0.0.1", "::1"]
    try:
        return [str(ip_address(bare if ":" in bare else socket.inet_ntoa(socket.inet_aton(bare))))]
    except (OSError, ValueError):
        return []


def _parsed(text: str) -> tuple[str, str, str]:
    """Scheme, host with its port unless it is the usual one, and the rest."""
    if _UNSAFE.search(text):
        raise InputError("address holds a space, backslash or control character: write these percent-encoded")
    try:
        parts = urlsplit(text)
        host, port = parts.hostname or "", parts.port
        host = host if host.isascii() else host.encode("idna").decode("ascii").lower()
        path, query = _encoded(parts.path), _encoded(parts.query)
    except ValueError:
        raise InputError("address is not a web address: write it like https://example.org/news") from None
    usual = _PORTS.get(parts.scheme)
    if usual is None:
        shown, remedy = f"with scheme {parts.scheme[:20]!r}", "give its https address"
        raise InputError(sentence("address", shown, "must be http or https", remedy))
    if "@" in parts.netloc:
        raise InputError("address holds credentials: give them as a header instead")
    host = f"[{host}]" if ":" in host else host
    if not _HOST.fullmatch(host) or len(host) > 255 or port == 0:
        shown, remedy = f"with host {host[:80]!r}", "write it like https://example.org/news"
        raise InputError(sentence("address", shown, "must name a host", remedy))
    place = host if port in (None, usual) else f"{host}:{port}"
    return parts.scheme, place, f"{path or '/'}{'?' + query if query else ''}"


def _encoded(text: str) -> str:
    return text if text.isascii() else _NOT_ASCII.sub(lambda found: quote(found[0]), text)
