"""The gate against Python's own registry and a list of tricks; web addresses that mean one thing."""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv6Address

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from unstale.adapters import addresses
from unstale.adapters.addresses import Gate, plain_host, web_address
from unstale.addresses import host_of
from unstale.errors import InputError

PUBLIC = [
    "1.1.1.1",
    "93.184.215.14",
    "100.63.255.255",
    "100.128.0.0",
    "172.15.0.1",
    "172.32.0.1",
    "192.0.1.1",
    "198.17.255.255",
    "198.20.0.0",
    "223.255.255.255",
    "2606:4700::1111",
    "2a00:1450::1",
    "2001:4860:4860::8888",
    "::ffff:1.1.1.1",
]
PRIVATE = [
    "0.0.0.0",
    "0.1.2.3",
    "10.0.0.1",
    "100.64.0.1",
    "100.127.255.255",
    "127.0.0.1",
    "127.255.255.255",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.1",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.1.1",
    "198.18.0.1",
    "198.19.255.255",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.1.1.1",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::7f00:1",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "::ffff:100.64.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::1",
    "100::1",
    "2001::1",
    "2001:10::1",
    "2001:20::1",
    "2001:db8::1",
    "2002:7f00:1::",
    "2002:a00:1::",
    "3fff::1",
    "5f00::1",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fe80::1%lo",
    "fec0::1",
    "ff02::1",
    "4000::1",
]


@pytest.mark.parametrize("ip", PUBLIC)
def test_public_addresses_may_be_dialled(ip: str) -> None:
    assert Gate().permits(ip)


@pytest.mark.parametrize("ip", PRIVATE)
def test_others_may_not(ip: str) -> None:
    assert not Gate().permits(ip)


def _sane(ip: IPv4Address | IPv6Address) -> bool:
    inner = ip.ipv4_mapped if isinstance(ip, IPv6Address) else None
    ip = inner or ip
    return ip.is_global and not (ip.is_multicast or ip.is_reserved or ip.is_private or ip.is_link_local)


@given(
    st.one_of(
        st.ip_addresses(v=4),
        st.ip_addresses(v=6),
        st.integers(0, 2**32 - 1).map(lambda low: IPv6Address(0xFFFF << 32 | low)),
    )
)
def test_nothing_passes_that_python_knows_to_be_special(ip: IPv4Address | IPv6Address) -> None:
    if Gate().permits(str(ip)):
        assert _sane(ip)


def test_what_the_settings_allow_passes_and_nothing_beside_it() -> None:
    gate = Gate(["10.1.0.0/16", "fd00::/8", "64:ff9b::/96"])
    assert gate.permits("10.1.2.3")
    assert gate.permits("::ffff:10.1.2.3")
    assert gate.permits("fd12::1")
    assert gate.permits("64:ff9b::101:101")
    assert not gate.permits("10.2.0.1")
    assert not gate.permits("fc00::1")
    assert gate.permits("1.1.1.1")
    # all of IPv6 does not let an IPv4 address in by the back door
    assert not Gate(["::/0"]).permits("::ffff:127.0.0.1")


@pytest.mark.parametrize("text", ["10.0.0.1/8", "private", "", "10.0.0.0/33"])
def test_a_network_that_is_none(text: str) -> None:
    with pytest.raises(InputError, match=r"allow_networks .* is not a network: write it like 10.0.0.0/8"):
        Gate([text])


@pytest.mark.parametrize(
    ("text", "sent", "origin"),
    [
        ("http://Example.ORG", "http://example.org/", "http://example.org:80"),
        ("HTTPS://example.org:443/a?b#c", "https://example.org/a?b", "https://example.org:443"),
        ("https://example.org:8443?q", "https://example.org:8443/?q", "https://example.org:8443"),
        ("http://[2606:4700::1111]:81/", "http://[2606:4700::1111]:81/", "http://[2606:4700::1111]:81"),
        (
            "http://bücher.example/ü?ü=1",
            "http://xn--bcher-kva.example/%C3%BC?%C3%BC=1",
            "http://xn--bcher-kva.example:80",
        ),
        ("http://①②⑦.⓪.⓪.①/", "http://127.0.0.1/", "http://127.0.0.1:80"),
        ("http://a_b.example./%7Ex", "http://a_b.example./%7Ex", "http://a_b.example.:80"),
    ],
)
def test_one_spelling_is_sent(text: str, sent: str, origin: str) -> None:
    found = web_address(text)
    assert (found.text, found.origin) == (sent, origin)
    assert web_address(sent) == found


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ftp://example.org/", "must be http or https"),
        ("file:///etc/passwd", "must be http or https"),
        ("javascript:alert(1)", "must be http or https"),
        ("example.org/secret", "must be http or https"),
        ("", "must be http or https"),
        ("http://user:secret@example.org/", "holds credentials"),
        ("http://169.254.169.254\\@example.org/", "backslash"),
        ("http://example.org/\n secret", "control character"),
        ("http://example.org/a b", "space"),
        ("http:///secret", "must name a host"),
        ("http://exa%6dple.org/secret", "must name a host"),
        ("http://[fe80::1%25eth0]/secret", "web address|must name a host"),
        ("http://[::1/secret", "not a web address"),
        ("http://example.org:99999/secret", "not a web address"),
        ("http://example.org:0/secret", "must name a host"),
        ("http://" + "a" * 300 + ".org/secret", "must name a host"),
        ("http://example.org/" + "a" * 9000, "at most 8192"),
        ("http://\ud800.example/secret", "not a web address"),
    ],
)
def test_what_parsers_could_disagree_about_is_refused_without_repeating_secrets(text: str, words: str) -> None:
    with pytest.raises(InputError, match=words) as caught:
        web_address(text)
    assert "secret" not in str(caught.value)


@given(st.text(max_size=40))
def test_any_text_is_an_address_or_one_sentence(text: str) -> None:
    for candidate in (text, "http://" + text, "https://example.org/" + text):
        try:
            found = web_address(candidate)
        except InputError:
            continue
        assert found.text.isascii()
        assert found.text.startswith(("http://", "https://"))
        assert web_address(found.text) == found


@given(st.text("abz09.-:/?#@[]%\\ é", max_size=30))
def test_the_quick_reading_is_the_careful_reading(text: str) -> None:
    for candidate in (f"http://{text}", f"https://a.example/{text}"):
        if plain := addresses._PLAIN.fullmatch(candidate):
            assert plain.groups() == addresses._parsed(candidate)


_PIECES = st.sampled_from(
    [
        "http://",
        "HTTPS://",
        "postgresql+psycopg://",
        "://",
        "/",
        "a.example",
        "A.b",
        "[::1]",
        ":80",
        ":8443",
        "?q=1",
        "#x",
        "me@",
        "ä",
        ".",
        " ",
    ]
)


@example("postgresql+psycopg://a.example/b")
@example("http://me@A.example:80/b")
@given(st.lists(_PIECES, max_size=7).map("".join))
def test_what_is_judged_quickly_is_judged_alike(text: str) -> None:
    host = plain_host(text)
    if host is not None:
        assert (web_address(text).text, web_address(text).host) == (text, host)
    # Asked of the pattern itself, what follows the host changes nothing.
    found = re.match(r"[^/?#]*?://(?:[^/?#]*@)?(\[[^\]/?#]*\]|[^/?#:]*)", text)
    assert host_of(text) == (found[1].strip("[]").lower() if found else "")


def test_most_addresses_take_no_closer_look() -> None:
    assert plain_host("https://www.example.org/news/2026?page=2&a=b@c") == "www.example.org"
    assert plain_host("http://127.0.1.7:8123/page/1f") == "127.0.1.7"
    assert plain_host("https://www.example.org") is None, "the path is missing"
    assert plain_host("https://www.example.org/" + "a" * addresses.LONGEST) is None


def test_who_is_beyond_those_that_are_remembered_is_judged_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(addresses, "_REMEMBERED", 1)
    gate = Gate()
    for host in ("a.example", "b.example", "b.example"):
        gate.check_host(host)
    assert gate._passed == {"a.example"}
    with pytest.raises(InputError, match="is not public"):
        gate.check_host("127.0.0.1")
