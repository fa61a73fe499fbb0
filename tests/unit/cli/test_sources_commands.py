"""The commands that keep the list of sources, as a newcomer types them."""

from __future__ import annotations

import asyncio
import gzip
import json
import math
import os
import time
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from support.loopback import Loopback, Speech, answer, redirect
from unstale.adapters.sqlite_store import SqliteStore
from unstale.cli.adding import add, import_
from unstale.cli.budget import budget
from unstale.cli.edit_log import audit
from unstale.cli.live_settings import settings
from unstale.cli.service import settled
from unstale.cli.settings import load
from unstale.cli.sources import edit, export, hint, list_, pause, remove, resume
from unstale.errors import InputError, StoreError
from unstale.ports import Listing


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    for name in ("UNSTALE_CONFIG", "UNSTALE_STORE"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def run(command: click.Command, *args: str, text: str | None = None) -> Result:
    done = CliRunner().invoke(command, list(args), input=text)
    assert done.exit_code == 0, done.output
    return done


def said(command: click.Command, *args: str) -> str:
    return run(command, *args).stdout.strip()


def refused(command: click.Command, *args: str) -> str:
    done = CliRunner().invoke(command, list(args))
    assert isinstance(done.exception, InputError | StoreError), done.output
    return str(done.exception)


def fleet(store: str = "unstale.db") -> list[Listing]:
    kept = SqliteStore(store)
    try:
        return kept.listings(kept.search(limit=10**6))
    finally:
        kept.close()


def plain(listings: list[Listing]) -> list[tuple[object, ...]]:
    """Without id and time of adding, which are the store's."""
    return [
        (one.address, one.kind, one.weight, one.cost, one.host, one.shortest, one.longest, one.options, one.paused)
        for one in listings
    ]


def test_adding_addresses() -> None:
    got = said(
        add,
        "https://example.org/news",
        "https://example.org/a.rss",
        "--weight",
        "3",
        "--min-interval",
        "15m",
        "--header",
        "Authorization=Bearer $TOKEN",
        "--option",
        "timeout=2",
        "--option",
        "title=My news",
        "--drop",
        "div.clock",
        "--drop-json",
        "/now",
        "--ignore-space",
    )
    assert got == "added 2 sources to unstale.db; `unstale run` polls them"
    options = {
        "timeout": 2,
        "title": "My news",
        "headers": {"Authorization": "Bearer $TOKEN"},
        "normalise": {"selectors": ["div.clock"], "pointers": ["/now"], "whitespace": True},
    }
    assert plain(fleet()) == [
        ("https://example.org/news", "http", 3.0, 1.0, "example.org", 900.0, math.inf, options, False),
        ("https://example.org/a.rss", "feed", 3.0, 1.0, "example.org", 900.0, math.inf, options, False),
    ]


def test_the_file_holds_all_by_itself_once_a_command_has_ended(folder: Path) -> None:
    """Who copies it alone has all of it: what is written ahead is in it by then, though a reader may close last."""
    said(add, "https://a.org/", "https://b.org/")
    said(edit, "https://a.org/", "--weight", "5")
    (folder / "copy.db").write_bytes((folder / "unstale.db").read_bytes())
    assert [(one.address, one.weight) for one in fleet("copy.db")] == [("https://a.org/", 5.0), ("https://b.org/", 1.0)]


def test_known_sources_stay_unless_replaced() -> None:
    said(add, "https://a.org/", "--weight", "2")
    assert said(add, "https://a.org", "https://b.org/", "https://b.org/#x") == (
        "added 1 source (1 known already) to unstale.db; `unstale run` polls it"
    )
    assert [one.weight for one in fleet()] == [2.0, 1.0]
    assert said(add, "https://a.org/", "--weight", "5") == "added 0 sources (1 known already) to unstale.db"
    assert said(add, "https://a.org/", "--weight", "5", "--replace") == "added 0 sources and replaced 1 in unstale.db"
    assert [(one.id, one.weight) for one in fleet()] == [(1, 5.0), (2, 1.0)]


def test_a_list_with_a_bad_line_adds_nothing_unless_the_good_ones_are_wanted() -> None:
    Path("list.csv").write_text("address,weight,note\nhttps://a.org/,1,x\nhttps://b.org/,nan,y\nhttps://c.org/,2,z\n")
    done = CliRunner().invoke(add, ["--from", "list.csv"])
    assert str(done.exception) == (
        "list 'list.csv' has 1 bad line, nothing was added: correct them, or add the others with --keep-good"
    )
    assert done.stderr.splitlines() == [
        "of list.csv this was not taken over: note",
        "line 3: weight 'nan' is not a number: write it like 2 or 0.5",
    ]
    assert not Path("unstale.db").exists()
    assert run(add, "--from", "list.csv", "--keep-good").stdout == (
        "added 2 sources to unstale.db, 1 bad line left out; `unstale run` polls them\n"
    )
    assert [one.address for one in fleet()] == ["https://a.org/", "https://c.org/"]


def test_twenty_problems_are_shown() -> None:
    Path("list.txt").write_text("nowhere\n" * 1234)
    done = CliRunner().invoke(add, ["--from", "list.txt"])
    lines = done.stderr.splitlines()
    assert len(lines) == 21
    assert lines[19].startswith("line 20: address 'nowhere' has no scheme")
    assert lines[20] == "… and 1,214 more"
    assert "has 1,234 bad lines" in str(done.exception)


def test_standard_input_and_several_lists() -> None:
    Path("list.txt").write_text("https://a.org/ weight=4\n")
    done = run(
        add,
        "https://b.org",
        "--from",
        "-",
        "--from",
        "list.txt",
        "--max-interval",
        "1d",
        text="https://a.org/\nhttps://c.org/ max=2h\n",
    )
    assert done.stdout.startswith("added 3 sources ")
    assert [(one.address, one.weight, one.longest) for one in fleet()] == [
        ("https://b.org/", 1.0, 86400.0),
        ("https://a.org/", 1.0, 86400.0),
        ("https://c.org/", 1.0, 7200.0),
    ]


def test_a_dry_run_does_nothing() -> None:
    assert said(add, "https://a.org/", "--dry-run") == "would add 1 source to unstale.db"
    assert not Path("unstale.db").exists()
    said(add, "https://a.org/")
    assert said(add, "https://a.org/", "https://b.org/", "--dry-run", "--replace") == (
        "would add 1 source and replace 1 in unstale.db"
    )
    assert len(fleet()) == 1


def test_settings_give_store_and_defaults(tmp_path: Path) -> None:
    Path("unstale.toml").write_text(
        'store = "mine.db"\n[defaults]\nweight = 2\nmax_interval = "7d"\nheaders = { A = "1", B = "$B" }\n'
    )
    assert said(add, "https://a.org/", "--header", "A=2", "--weight", "4").startswith("added 1 source to mine.db")
    said(add, "https://b.org/")
    assert [(one.weight, one.longest, one.options) for one in fleet("mine.db")] == [
        (4.0, 604800.0, {"headers": {"A": "2", "B": "$B"}}),
        (2.0, 604800.0, {"headers": {"A": "1", "B": "$B"}}),
    ]
    said(add, "https://c.org/", "--store", "other.db")
    assert len(fleet("other.db")) == 1


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ((), "addresses of sources are missing: give some, or a list with --from FILE"),
        (("example.org",), "address 'example.org' has no scheme: write it like https://example.org/news"),
        (("https://a.org", "--weight", "nan"), "weight 'nan' is not a number: write it like 2 or 0.5"),
        (("https://a.org", "--weight", ""), "weight '' is empty: leave it out, or give a value"),
        (
            ("https://a.org", "--min-interval", "soon"),
            "min_interval 'soon' is not a length of time: write it like 15m or 2h",
        ),
        (("https://a.org", "--header", "Cookie"), "--header 'Cookie' has no value: write NAME=VALUE"),
        (
            ("https://a.org", "--header", "Cookie=abc"),
            "options.headers.Cookie (not shown) must not hold a secret: "
            "put it in the environment and write its name there, as $NAME",
        ),
        (
            ("https://a.org", "--header", "X Y=abc"),
            "options.headers.'X Y' given must be printable ASCII: check its name and value",
        ),
        (("https://a.org", "--drop", "p[["), "selector 'p[[' is not CSS: write it like div.clock"),
        (("https://a.org", "--drop-json", "now"), "pointer 'now' must begin with /: write it like /meta/time"),
        (
            ("https://a.org", "--kind", "ftp"),
            "kind 'ftp' is unknown: did you mean 'file'?",
        ),
        (("s3://b/k", "--kind", "http"), "address with scheme 's3' must be http or https: give its https address"),
        (("https://a.org", "https://" + "a" * 9000), "address of 9008 characters must have at most 8192: shorten it"),
        (("--from", "none.csv"), "list 'none.csv' cannot be read (no such file or directory): check the path"),
        (
            ("--from", "http://127.0.0.1:9/list.txt"),
            "list on the web cannot be read (127.0.0.1: its address 127.0.0.1 is "
            "not public, add it to allow_networks in the settings if it may be polled): check its address",
        ),
    ],
)
def test_what_cannot_be_added(args: tuple[str, ...], said: str) -> None:
    assert refused(add, *args) == said
    assert not Path("unstale.db").exists()


def test_a_list_on_the_web_comes_through_the_gate() -> None:
    async def scenario() -> tuple[Result, Loopback]:
        async with Loopback({}) as server:
            index = f"<sitemapindex><sitemap><loc>{server.origin}/1.xml.gz</loc></sitemap></sitemapindex>"
            inner = gzip.compress(b"<urlset><url><loc>https://a.org/x</loc></url></urlset>")
            server.speeches |= {
                "/list": redirect("/index.xml"),
                "/index.xml": answer(index.encode()),
                "/1.xml.gz": answer(inner),
            }
            return await asyncio.to_thread(run, add, "--from", f"{server.origin}/list"), server

    Path("unstale.toml").write_text('[http]\nallow_networks = ["127.0.0.0/8"]\ncontact = "me@example.org"\n')
    done, server = asyncio.run(scenario())
    assert done.stdout.startswith("added 1 source ")
    assert [one.address for one in fleet()] == ["https://a.org/x"]
    assert [head[""].split()[1] for head in server.asked] == ["/list", "/index.xml", "/1.xml.gz"]
    assert "me@example.org" in server.asked[0]["user-agent"]


def test_a_list_on_the_web_names_nothing_of_our_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VERY_SECRET", "told to nobody")
    rows = [
        {"address": "https://a.org/x?a=$VERY_SECRET", "title": "$VERY_SECRET"},
        {"address": "https://a.org/y", "options": {"headers": {"X-A": "${VERY_SECRET}"}}},
        {"address": "postgresql://me:$VERY_SECRET@evil.example/db", "kind": "sql", "options": {"table": "t"}},
    ]

    async def scenario() -> Result:
        async with Loopback({"/list.jsonl": answer("\n".join(map(json.dumps, rows)).encode())}) as server:
            return await asyncio.to_thread(
                CliRunner().invoke, add, ["--keep-good", "--from", f"{server.origin}/list.jsonl"]
            )

    Path("unstale.toml").write_text('[http]\nallow_networks = ["127.0.0.0/8"]\n')
    done = asyncio.run(scenario())
    assert [one.address for one in fleet()] == ["https://a.org/x?a=%24VERY_SECRET"]
    assert done.output.count("of our environment is in a list on the web") == 2


def test_feeds_are_discovered_on_pages() -> None:
    page = b'<html><link rel="alternate" type="application/rss+xml" href="/a.xml"><link rel=alternate href=/x>'
    speeches: dict[str, Speech] = {
        "/": redirect("/blog/"),
        "/blog/": answer(page + b'<link type="application/atom+xml" rel="alternate" href="b.xml?n=1&amp;m=2">'),
        "/c": answer(b"<?xml version='1.0'?><feed/>"),
        "/none": answer(b"<html>"),
    }

    async def scenario(*paths: str) -> tuple[Result, str]:
        async with Loopback(speeches) as server:
            args = ["--discover", *(server.origin + path for path in paths)]
            return await asyncio.to_thread(CliRunner().invoke, add, args), server.origin

    Path("unstale.toml").write_text('[http]\nallow_networks = ["127.0.0.0/8"]\n')
    done, origin = asyncio.run(scenario("/", "/c"))
    feeds = [f"{origin}/a.xml", f"{origin}/blog/b.xml?n=1&m=2", f"{origin}/c"]
    assert done.stdout.splitlines()[:3] == [f"found {feed}" for feed in feeds]
    assert [(one.address, one.kind) for one in fleet()] == [(feed, "feed") for feed in feeds]
    done, origin = asyncio.run(scenario("/none"))
    assert str(done.exception).startswith(f"page '{origin}/none' advertises no feed: ")


def test_a_file_for_an_address() -> None:
    Path("list.csv").write_text("address\n")
    got = refused(add, "list.csv")
    assert got.startswith(
        "address 'list.csv' is a file here: write --from list.csv if it is a list of sources, or file:"
    )


def test_choosing_sources() -> None:
    Path("unstale.toml").write_text('[files]\nschemes = ["s3"]\n')
    said(add, "https://a.org/one", "https://a.org/two", "https://b.org/one", "s3://bucket/key")
    assert said(pause, "a.org/one") == "paused 1 source"
    assert said(pause, "HTTPS://A.org/two", "3", "b.org") == "paused 2 sources"
    assert [one.paused for one in fleet()] == [True, True, True, False]
    assert said(resume, "--host", "a.org") == "resumed 2 sources"
    assert said(resume, "--where", "kind=http", "--where", "*/one") == "resumed 1 source"
    assert said(pause, "--where", "host=*.org") == "paused 3 sources"
    assert said(pause, "--all") == "paused 1 source"
    assert said(resume, "--where", "paused=yes", "--where", "https://a.org/?ne") == "resumed 1 source"
    assert refused(pause, "one") == (
        "source 'one' is a part of several addresses: say which: https://a.org/one, https://b.org/one"
    )
    assert refused(pause, "nothing") == "source 'nothing' is not listed: see `unstale list`"
    assert refused(pause, "99") == "source '99' is not listed: see `unstale list`"
    assert refused(pause, "--host", "c.org") == "sources with host=c.org are none: see `unstale list`"
    assert refused(pause) == (
        "sources to work on must be named, or chosen with --where, --search or --all: do one of these"
    )
    assert refused(pause, "1", "--all").startswith("sources to work on must be named")
    assert refused(pause, "--where", "paused=maybe").endswith("write paused=yes or paused=no")


def test_at_most_five_are_named() -> None:
    said(add, *(f"https://a.org/{i}" for i in range(9)))
    got = refused(hint, "a.org")
    assert got.endswith("https://a.org/3, https://a.org/4, …")


def test_editing() -> None:
    said(add, "https://a.org/", "https://b.org/", "--header", "A=1", "--header", "B=2", "--option", "title=x")
    assert said(edit, "--all", "--weight", "7", "--header", "A=", "--option", "title=", "--cost", "2") == (
        "changed 2 sources"
    )
    assert said(edit, "b.org", "--max-interval", "1h", "--host", "group", "--drop", "p") == "changed 1 source"
    first, second = fleet()
    assert (first.weight, first.cost, first.options, first.longest) == (7.0, 2.0, {"headers": {"B": "2"}}, math.inf)
    assert second.options == {"headers": {"B": "2"}, "normalise": {"selectors": ["p"]}}
    assert (second.weight, second.longest, second.host, second.id) == (7.0, 3600.0, "group", 2)
    assert refused(edit, "1") == "changes to make are missing: give for example --weight 3"
    assert refused(edit, "--all", "--min-interval", "2h").startswith("min_interval 7200 s must not exceed")
    # nothing was changed: one of the two could have been
    assert [one.shortest for one in fleet()] == [0.0, 0.0]


def test_removing_asks() -> None:
    said(add, "https://a.org/", "https://b.org/", "https://c.org/")
    done = CliRunner().invoke(remove, ["a.org"], input="n\n")
    assert (done.exit_code, len(fleet())) == (1, 3)
    assert "Remove https://a.org/ with all copies and observations? [y/N]" in done.stderr
    assert run(remove, "a.org", text="y\n").stdout == "removed 1 source\n"
    assert said(remove, "--all", "--yes") == "removed 2 sources"
    assert fleet() == []


def test_hints_make_sources_due() -> None:
    said(add, "https://a.org/", "https://b.org/")
    store = SqliteStore("unstale.db")
    store.set_due([1, 2], [4e9, 4e9])
    assert said(hint, "a.org", "1") == "1 source due now"
    assert store.fleet(1).due[0] < 4e9
    assert store.fleet(1).due[1] == 4e9
    store.close()
    said(pause, "b.org")
    assert said(hint, "b.org") == "1 source due now, but 1 paused: see `unstale resume`"
    assert said(hint, "--where", "host=*.org") == "2 sources due now, but 1 paused: see `unstale resume`"
    assert said(hint, "--host", "a.org") == said(hint, "--where", "paused=no") == "1 source due now"


@pytest.mark.parametrize(
    ("condition", "sentence"),
    [
        ("hots=a.org", "condition 'hots=a.org' is unknown: did you mean 'host'?"),
        ("kind=htp", "kind 'htp' is unknown: did you mean 'http'?"),
        ("colour=red", "condition 'colour=red' is unknown: there are host, kind, paused, tag and addresses like"),
        ("a.org", "condition 'a.org' is no whole address: write it like '*a.org*'"),
    ],
)
def test_a_condition_that_nothing_could_fulfil_is_refused(condition: str, sentence: str) -> None:
    said(add, "https://a.org/?x=1")
    for command in (list_, hint, pause):
        assert refused(command, "--where", condition).startswith(sentence)
    assert said(hint, "--where", "https://a.org/?x=1") == "1 source due now"


def test_sources_are_chosen_by_their_tags() -> None:
    feed = '<outline xmlUrl="https://a.org/feed"/>'
    Path("my.opml").write_text(f'<opml><body><outline text="News">{feed}</outline></body></opml>')
    said(add, "--from", "my.opml", "https://b.org/")
    assert said(pause, "--where", "tag=N*") == "paused 1 source"
    assert [one.paused for one in fleet()] == [False, True]
    assert refused(pause, "--where", "tag=Sport") == "sources with tag=Sport are none: see `unstale list`"


def test_sources_are_chosen_by_a_search() -> None:
    store = SqliteStore("unstale.db")
    store.add([Listing(f"https://a.example/{i}", weight=i, options={"tags": [f"t{i % 2}"]}) for i in range(4)], 0.0)
    store.close()
    assert json.loads(said(list_, "--search", "tag:t1 weight>2", "--json"))["total"] == 1
    assert json.loads(said(list_, "--search", "tag:t1", "--where", "*/1", "--json"))["total"] == 1
    assert said(pause, "--search", "never weight>=2") == "paused 2 sources"
    assert said(edit, "--search", "paused tag:t0", "--weight", "9") == "changed 1 source"
    assert said(hint, "--search", "-paused") == "2 sources due now"
    assert said(remove, "--search", "weight=9", "--yes") == "removed 1 source"
    assert "did you mean 'weight'" in refused(list_, "--search", "wieght>2")
    assert refused(pause, "--search", "tag:nobody").startswith("sources like 'tag:nobody' are none")
    assert "chosen with --where, --search or --all" in refused(pause, "--search", "paused", "--all")


def test_the_list() -> None:
    Path("unstale.toml").write_text('[files]\nschemes = ["s3"]\n')
    said(add, "https://example.org/[red]news", "--weight", "2.5", "--min-interval", "15m", "--max-interval", "1d")
    said(add, "s3://bucket/key")
    said(pause, "s3")
    lines = [" ".join(line.split()) for line in said(list_).splitlines()]
    assert lines == [
        "source id kind weight cost min interval max interval",
        "https://example.org/[red]news 1 http 2.5 1 15 min 1 day",
        "s3://bucket/key 2 file 1 1 paused",
        "2 sources",
    ]
    # A column in which nothing stands takes no room from the addresses.
    assert said(list_, "--where", "kind=file").split("\n")[0].split() == ["source", "id", "kind", "weight", "cost"]
    assert said(list_, "--limit", "1").splitlines()[-1] == "2 sources, 1 not shown: see --limit"
    assert said(list_, "--host", "none") == "0 sources"
    got = json.loads(said(list_, "--json", "--where", "kind=http"))
    assert got["total"] == 1
    added = got["sources"][0].pop("added_at")
    assert added > 1.7e9
    assert got["sources"] == [
        {
            "id": 1,
            "address": "https://example.org/[red]news",
            "kind": "http",
            "weight": 2.5,
            "cost": 1.0,
            "host": "example.org",
            "min_interval": 900.0,
            "max_interval": 86400.0,
            "paused": False,
            "options": {},
        }
    ]


@pytest.mark.parametrize("ending", ["csv", "jsonl", "opml", "txt"])
def test_export_and_import_give_the_same_fleet(ending: str) -> None:
    said(add, "https://a.org/x?a=1&b='2'", "--weight", "0.1", "--header", "Authorization=$T", "--drop", "p.x > b")
    said(add, "https://a.org/feed", "--kind", "feed", "--host", "group", "--max-interval", "100s", "--cost", "3")
    Path("unstale.toml").write_text('[files]\nroots = ["/a folder", "."]\n')
    said(add, "file:///a folder/b", "sqlite:///c.db#t", "--option", 'title="2024"')
    said(pause, "folder")
    file = f"fleet.{ending}"
    assert said(export, file) == f"wrote 4 sources to {file}"
    assert said(import_, file, "--store", "new.db") == "added 4 sources to new.db; `unstale run` polls them"
    assert plain(fleet("new.db")) == plain(fleet())
    # importing again changes nothing, and takes back what was changed
    said(edit, "--all", "--weight", "9", "--store", "new.db")
    assert said(import_, file, "--store", "new.db") == "added 0 sources and replaced 4 in new.db"
    assert plain(fleet("new.db")) == plain(fleet())


def test_commands_that_need_a_store_say_so() -> None:
    for command, args in ((list_, ()), (pause, ("--all",)), (hint, ("x",)), (export, ("x.csv",)), (remove, ("x",))):
        assert refused(command, *args) == (
            "store 'unstale.db' does not exist: add sources with `unstale add`, or name it with --store"
        )
    assert not Path("unstale.db").exists()
    Path("unstale.db").write_text("no database, but long enough to be taken for one" * 100)
    assert "is damaged or no database" in refused(list_)


def test_edited_is_counted_for_an_engine_that_runs() -> None:
    said(add, "https://a.org/")
    counts = []
    for command, args in ((edit, ("1", "--weight", "2")), (pause, ("1",)), (resume, ("1",)), (remove, ("1", "--yes"))):
        said(command, *args)
        store = SqliteStore("unstale.db")
        counts.append(store.counters()["edited"])
        store.close()
    assert counts == [2, 3, 4, 5]


def test_settings_are_said_by_command_and_who_changed_what_is_told(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("getpass.getuser", lambda: "anna")
    run(add, "https://a.example/")
    assert "freshness" in said(settings, "objective")
    assert "by command" in said(settings, "objective", "age")
    (told,) = json.loads(said(settings, "objective", "--json"))["settings"]
    assert (told["value"], told["by"], told["live"]) == ("age", "command", True)
    assert "by nobody" in said(settings, "objective", "--from-settings")
    assert refused(settings, "keep", "7").startswith("setting 'keep' cannot be changed while things run")
    assert refused(settings, "nothing").startswith("setting 'nothing' is not one of the fleet's")
    run(edit, "a.example", "--weight", "3", "--header", "Accept=text/plain")
    run(pause, "a.example")
    run(budget, "2000/day")
    run(remove, "a.example", "--yes")
    lines = [json.loads(line) for line in said(audit, "--json").splitlines()]
    assert {one["who"] for one in lines} == {"anna, by command"}
    assert [one["what"] for one in reversed(lines)] == [
        "added https://a.example/ by a list of 1",
        "objective age",
        "objective as the settings say",
        "changed headers, weight of https://a.example/",
        "paused https://a.example/",
        "budget 2,000/day",
        "removed https://a.example/",
    ]
    assert "paused" in said(audit, "--limit", "3")
    assert "paused" not in said(audit, "--before", "4")


def test_a_file_that_says_something_new_has_the_word_from_the_next_start_on(folder: Path) -> None:
    file = folder / "unstale.toml"
    file.write_text('objective = "freshness"\n')
    run(add, "https://a.example/")
    run(settings, "objective", "age")
    run(settings, "burst", "7")
    os.utime(file, (time.time() + 60,) * 2)
    assert settled(load(file), None).rate > 0.0
    assert "age" in said(settings, "objective"), "it says nothing new"
    file.write_text('objective = "missed"\n')
    os.utime(file, (time.time() + 60,) * 2)
    settled(load(file), None)
    assert [one["value"] for one in json.loads(said(settings, "--json"))["settings"]][:2] == ["missed", "7"]


def test_how_a_listing_is_read_is_said_of_collections() -> None:
    assert refused(add, "--listing", "sitemap", "https://example.org/map") == (
        "listing 'sitemap' is how a collection is read: name that with --collection"
    )
    run(add, "--listing", "links", "--collection", "https://example.org/map", "https://example.org/page")
    assert [one.options.get("collection") for one in fleet()] == ["links", None]


def test_a_source_becomes_a_collection_with_all_that_was_said_of_it() -> None:
    place = "https://example.org/feed.rss"
    run(add, place, "--weight", "3", "--option", "title=News")
    done = said(add, "--collection", place, "--option", "only=*/news/*")
    assert done.endswith(f"{place} tells of others from now on, read as feed")
    assert "it is read as feed, as far as its address tells; --listing says otherwise" in done
    assert "as far as" not in said(add, "--collection", place, "--listing", "feed")
    (one,) = fleet()
    assert (one.weight, one.options) == (3.0, {"title": "News", "collection": "feed", "only": "*/news/*"})
    assert "tells of others" not in said(add, "--collection", place)
    assert "tells of others" not in said(add, "--collection", "https://example.org/sitemap.xml")
