"""What may be listed: one check, by the table of kinds and the settings, with the remedy in the sentence."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from unstale.adapters.admission import Admission
from unstale.adapters.event_text import event_text
from unstale.adapters.ways import granted
from unstale.errors import InputError
from unstale.kinds import KINDS, check_options
from unstale.ports import Event, Listing
from unstale.secrecy import secret_parameter

WEB = "https://example.org/news"


def refused(address: str, kind: str = "http", options: dict[str, Any] | None = None, **grants: Any) -> str:
    with pytest.raises(InputError) as error:
        Admission(granted(**grants))(address, kind, options or {})
    return str(error.value)


def test_a_misspelt_option_is_told_what_was_meant() -> None:
    database = "postgresql://me:$P@db.example.org/shop#orders"
    assert refused(database, "sql", {"chnaged": "at"}) == (
        "option 'chnaged' is not known for sql: did you mean 'changed'?"
    )
    assert refused(WEB, "http", {"changed": "at"}) == (
        "option 'changed' is not known for http: there are title, tags, headers, normalise, triggers, timeout, limit, "
        "fresh_within, target, collection, most_members, forget_after, only, never, weights, depth, discovery, "
        "elsewhere, items, member, time, tag, next, cursor, since, early"
    )
    assert refused(WEB, "htp") == "kind 'htp' is unknown: did you mean 'http'?"
    assert refused(WEB, "memory").startswith("kind 'memory' is unknown: choose one of http, feed,")


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [
        ("http", "timeout", "soon"),
        ("http", "timeout", "1_000"),
        ("http", "timeout", "٣"),
        ("http", "limit", 0),
        ("feed", "tags", [1]),
        ("sql", "overlap", -1),
        ("sql", "batch", True),
        ("file", "ambient", "yes"),
        ("http", "headers", "Accept"),
        ("http", "weights", 3),
        ("http", "weights", {"*/news/*": "much"}),
        ("http", "weights", {"*/news/*": 0}),
    ],
)
def test_an_option_has_its_type(kind: str, name: str, value: object) -> None:
    with pytest.raises(InputError, match=f"option {name} .* must be "):
        check_options(KINDS[kind], {name: value})


def test_an_option_of_its_type_is_taken() -> None:
    check_options(KINDS["sql"], {"overlap": 0, "batch": "500", "key": ["a", "b"], "title": 2024, "tags": "one"})
    check_options(KINDS["http"], {"weights": {"*/news/*": 3, "*": "0.5"}})


def test_what_the_settings_do_not_grant_is_refused_when_listed(tmp_path: Path) -> None:
    assert "is not below a folder named in roots" in refused("file:///etc/passwd", "file", roots=[tmp_path])
    assert "lies in no allowed folder" in refused("sqlite:////srv/shop.db#t", "sql", roots=[tmp_path])
    assert "add it to schemes under [files]" in refused("s3://bucket/key", "file")
    assert "only file, ftp" in refused("smb://host/share", "file")
    for address in ("http://127.0.0.1/", "http://[::1]:8600/", "http://2130706433/", "http://a.localhost/"):
        assert "add it to allow_networks in the settings" in refused(address)
    assert "allow_networks" in refused("postgresql://me@10.0.0.7/shop#t", "sql")
    assert "must name a table" in refused("postgresql://me@db.example.org/shop", "sql")
    (tmp_path / "own.db").touch()
    own = refused(f"sqlite:///{tmp_path}/own.db#t", "sql", roots=[tmp_path], held=[tmp_path / "own.db"])
    assert "is Unstale's own" in own


def test_a_link_that_leads_out_of_the_roots_is_refused(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in/out").symlink_to("/etc/passwd")
    assert "roots" in refused(f"file://{tmp_path}/in/out", "file", roots=[tmp_path / "in"])


@pytest.mark.parametrize(
    "query",
    [
        "access_token=abc",
        "a=1&api_key=abc",
        "API-Key=abc",
        "sv=2024&sig=a%2Fb",
        "X-Amz-Signature=0a",
        "key=AIzaSyDaGmWKa4JsXZ-HjGw7ISLn_3namBGewQe",
        "key=d1f5a9c27b3e48069f1ac4",
        "code=Zk3xQ9vB7LmP2%2FsT5yHqW8nRc4JdF6gA1uXeKo0iVbMzNt%3D%3D",
        "appid=b6907d289e10d714a6e88b30761fae22",
        "map_key=3f2504e0-4f89-11d3-9a0c-0305e82c3301",
        "secret_key=x",
        "authkey=x",
        "client_secret=x",
        "password=x",
        "a=1;token=x",
        "filter[api_key]=abcd",
        "API%5fKEY=abcd",
        "a=1;jsessionid=abcd",
    ],
)
def test_secrets_in_a_query_are_refused_with_the_way_to_write_them(query: str) -> None:
    said = refused(f"https://example.org/x?{query}")
    name, _, value = query.rpartition("&")[2].rpartition(";")[2].partition("=")
    assert f"address with {name}=(not shown) must not hold a secret: put it in the environment" in said
    assert value not in said.replace(name, "")
    assert f"{name}=$" in said
    Admission()(f"https://example.org/x?{query.replace(value, '$TOKEN')}", "http", {})


@pytest.mark.parametrize(
    "query",
    [
        "q=token",
        "page_token=abc",
        "key=news",
        "design=1",
        "sig=",
        "tokens=3",
        "code=DE",
        "country_code=276&postcode=10115",
        "key=weekly-report-2026-11-18-berlin",
        "key=2024-01-05-berlin-2025-01-06-paris",
        "key=uploads/Report2024-final-version.pdf",
        "key=Documents/Reports/2024/Q3/summary",
        "code=9780131103627",
        "appid=1091500",
    ],
)
def test_what_is_no_secret_is_taken(query: str) -> None:
    assert Admission()(f"https://example.org/x?{query}", "http", {}).endswith(query)


def test_what_an_older_version_took_may_stay_and_nothing_new_like_it() -> None:
    old = Listing(f"{WEB}?token=abc", options={"deep": 3}, id=1)
    check = Admission().changing(old)
    assert check(old.address, "http", {"deep": 3, "title": "News"}) == old.address
    with pytest.raises(InputError, match="'deep' is not known"):
        check(old.address, "http", {"deep": 4})
    with pytest.raises(InputError, match="must not hold a secret"):
        check(f"{WEB}?token=abd", "http", {})


def test_keys_drawn_at_random_look_so_and_hexadecimal_ones_always() -> None:
    rng = random.Random(1)
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
    drawn = ["".join(rng.choices(letters, k=32)) for _ in range(1000)]
    drawn += ["".join(rng.choices("0123456789abcdef", k=32)) for _ in range(1000)]
    unseen = [one for one in drawn if not secret_parameter(f"https://example.org/x?key={one}")]
    assert len(unseen) <= 2


def test_who_is_told_of_changes_sees_names_instead_of_secrets() -> None:
    told = event_text(Event(1, 1, "https://a.org/x?api_key=abcdef&b=1", 1, 0.0, b""))
    assert b'"https://a.org/x?api_key=$API_KEY&b=1"' in told


def test_caches_may_be_asked_early_where_the_owner_says_so() -> None:
    check_options(KINDS["http"], {"early": True})
    check_options(KINDS["feed"], {"early": False})
    with pytest.raises(InputError, match="early"):
        check_options(KINDS["http"], {"early": "yes"})
    with pytest.raises(InputError, match="early"):
        check_options(KINDS["sql"], {"early": True})


@pytest.mark.parametrize(
    ("address", "kind", "options"),
    [
        ("https://a.example/?x=$SECRET", "http", {}),
        ("https://a.example/${SECRET}/x", "feed", {}),
        ("https://a.example/", "http", {"headers": {"X-Key": "Bearer ${SECRET}"}}),
        ("postgresql://me:$SECRET@a.example/shop#orders", "sql", {}),
        ("https://a.example/", "browser", {"headers": {"X-Key": "$SECRET"}}),
    ],
)
def test_over_the_network_only_granted_names_of_the_environment_count(
    address: str, kind: str, options: dict[str, Any]
) -> None:
    Admission()(address, kind, options)
    Admission(names=("OTHER", "SEC*"))(address, kind, options)
    for names in ((), ("OTHER", "ECRET", "SECRE", "secret")):
        with pytest.raises(InputError, match=r"name \$SECRET is not granted to those who write over the network: "):
            Admission(names=names)(address, kind, options)


def test_what_was_named_before_may_stay_where_it_was_and_goes_nowhere_else() -> None:
    options = {"headers": {"X-Key": "$KEY"}}
    check = Admission(names=()).changing(Listing("https://a.example/b", options=options))
    assert check("https://a.example/c", "http", options) == "https://a.example/c"
    for elsewhere in ("https://b.example/b", "http://a.example/b", "https://a.example:8443/b"):
        with pytest.raises(InputError, match=r"\$KEY is not granted"):
            check(elsewhere, "http", options)
    with pytest.raises(InputError, match=r"\$OTHER is not granted"):
        check("https://a.example/b", "http", {"headers": {"X-Key": "$OTHER"}})


def test_where_a_dollar_means_itself_nothing_is_asked_for() -> None:
    said = {"title": "$A", "normalise": {"patterns": ["costs $USD"]}, "tags": ["$B"]}
    assert Admission(names=())("https://a.example/odata?$top=5", "http", said) == "https://a.example/odata?$top=5"
