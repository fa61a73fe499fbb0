"""unstale.toml: every setting is documented, optional, and refused in one sentence where it is wrong."""

from __future__ import annotations

import math
import re
import tomllib
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from support.documents import ROOT, blocks
from unstale.calendar import parse_hours
from unstale.cli import settings as module
from unstale.cli.settings import Defaults, HostSettings, Http, OnChange, Settings, load
from unstale.errors import InputError

PAGE = ROOT / "docs/howto/settings.md"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("UNSTALE_CONFIG", raising=False)


def given(text: str) -> Settings:
    Path("unstale.toml").write_text(text)
    return load()


def refused(text: str) -> str:
    with pytest.raises(InputError) as caught:
        given(text)
    return str(caught.value)


def test_without_a_file_everything_has_its_default(tmp_path: Path) -> None:
    found = load()
    assert found.path is None
    assert found.store == str(tmp_path / "unstale.db")
    assert found.budget == pytest.approx(1000 / 86400, rel=1e-15)
    assert (found.objective, found.keep, found.horizon, found.burst) == ("freshness", 3, 90 * 86400.0, 0.0)
    assert found.http == Http(
        agent="",
        contact="",
        connections=512,
        concurrency=2,
        spacing=1.0,
        timeout=30.0,
        limit=16 * 2**20,
        robots=True,
        proxy="",
        ca_file="",
        allow_networks=(),
    )
    assert (found.on_change, found.hosts) == ((), {})
    assert found.defaults == Defaults(1.0, 1.0, 0.0, math.inf, {}, {})
    # a file that says nothing is the same
    assert (given("").budget, load().http, load().sql) == (found.budget, found.http, found.sql)


def test_the_example_of_the_page() -> None:
    example = next(block.text for block in blocks(PAGE, "toml") if block.title)
    found = given(example)
    assert found.budget == pytest.approx(20000 / 86400, rel=1e-15)
    assert found.windows == parse_hours("22:00-06:00 Mon-Fri Europe/Berlin; 00:00-24:00 Sat,Sun Europe/Berlin")
    assert found.http.allow_networks == ("10.0.0.0/8",)
    assert found.host("slow.example.org") == HostSettings(spacing=30.0, concurrency=2, budget=100 / 86400, windows=())
    assert found.defaults.max_interval == 7 * 86400.0
    assert found.defaults.headers == {"Accept-Language": "en"}
    assert found.defaults.normalise == {"selectors": ["div.clock"], "pointers": ["/meta/time"], "whitespace": True}
    hook, log = found.on_change
    assert hook == OnChange(webhook="https://hooks.example.org/changed", secret="$HOOK_SECRET")
    assert log.log == str(Path("changes.jsonl").absolute())


def test_every_example_of_the_page_can_be_read() -> None:
    examples = blocks(PAGE, "toml")
    assert len(examples) == 2
    for block in examples:
        given(block.text)


def _tables() -> dict[str, type]:
    return {"": Settings, **module.TABLES, **module.SEVERAL}


def test_tables_go_to_duckdb_where_it_is_installed_unless_they_are_in_sqlite(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "unstale.toml"
    file.write_text("")
    assert load(file).sql.target == str(tmp_path / "unstale-tables.duckdb")
    (tmp_path / "unstale-tables.db").touch()
    assert load(file).sql.target == str(tmp_path / "unstale-tables.db")
    (tmp_path / "unstale-tables.db").unlink()
    monkeypatch.setattr("unstale.cli.settings.find_spec", lambda name: None)
    assert load(file).sql.target == str(tmp_path / "unstale-tables.db")


@pytest.mark.parametrize("table", _tables())
def test_the_page_has_every_setting_with_its_default_and_meaning(table: str) -> None:
    heading = {
        "": "At the top",
        "on_change": "[[on_change]]",
        "hosts": '[hosts."NAME"]',
        "contracts": "[contracts.TAG]",
        "apis": "[apis.NAME]",
    }.get(table, f"[{table}]")
    section = PAGE.read_text("utf-8").partition(f"## {heading}")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \| `(.*?)` \| (.*?) \|$", section, re.MULTILINE)
    about = {f.name: f.metadata for f in fields(_tables()[table]) if f.metadata}
    assert [name for name, _, _ in rows] == list(about)
    for name, default, meaning in rows:
        assert meaning == about[name]["meaning"]
        assert tomllib.loads(f"x = {default}")["x"] == about[name]["written"], name


@pytest.mark.parametrize("table", _tables())
def test_every_default_can_be_written(table: str) -> None:
    """What stands on the page as the default is what leaving it out means."""
    kind = _tables()[table]
    for f in fields(kind):
        if f.metadata:
            read: Any = f.metadata["read"]
            assert read(f.name, f.metadata["written"]) == getattr(kind(), f.name)


def test_the_nearest_file_upwards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    (tmp_path / "unstale.toml").write_text('store = "x/own.db"\nkeep = 5\n')
    monkeypatch.chdir(deep)
    found = load()
    assert (found.path, found.keep) == (tmp_path / "unstale.toml", 5)
    assert found.store == str(tmp_path / "x/own.db")
    assert load(store="here.db").store == str(deep / "here.db")
    (deep / "other.toml").write_text("keep = 7\n")
    monkeypatch.setenv("UNSTALE_CONFIG", str(deep / "other.toml"))
    assert load().keep == 7
    assert load(tmp_path / "unstale.toml").keep == 5
    with pytest.raises(InputError, match=r"settings 'none.toml' are no file: check the path"):
        load("none.toml")


def test_paths_are_meant_from_the_file(tmp_path: Path) -> None:
    found = given('[files]\nroots = ["data", "/srv"]\n[sql]\ntarget = "t.db"\n[http]\nca_file = "ca.pem"\n')
    assert found.files.roots == (str(tmp_path / "data"), "/srv")
    assert (found.sql.target, found.http.ca_file) == (str(tmp_path / "t.db"), str(tmp_path / "ca.pem"))


def test_hosts() -> None:
    found = given(
        '[http]\nspacing = "5s"\nconcurrency = 4\n[hosts."A.org"]\nconcurrency = 1\n[hosts."127.0.0.1"]\n'
        'spacing = "2s"\n'
    )
    assert (found.host("b.org").spacing, found.host("b.org").concurrency) == (5.0, 4)
    assert (found.host("a.org").spacing, found.host("a.org").concurrency) == (5.0, 1)
    assert (found.host("127.0.0.1").spacing, found.host("127.0.0.1").concurrency) == (2.0, 512)
    for near in ("localhost", "x.localhost", "10.1.2.3", "[::1]", "192.168.0.7", ""):
        assert (found.host(near).spacing, found.host(near).budget) == (0.0, math.inf)
    assert found.host("8.8.8.8").spacing == 5.0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[http]\nspaceing = '1s'", "setting 'http.spaceing' is unknown: did you mean 'http.spacing'?"),
        ("budgett = '1/day'", "setting 'budgett' is unknown: did you mean 'budget'?"),
        ("[htpp]\nagent = 'x'", "setting 'htpp' is unknown: did you mean 'http'?"),
        ("[sql]\nzzz = 1", "setting 'sql.zzz' is unknown: there are target, lineage, lineage_token"),
        ("[hosts.'a.org']\nbudgt = 1", "setting 'hosts.a.org.budgt' is unknown: did you mean 'hosts.a.org.budget'?"),
        ("budget = 1000", 'budget 1000 must be a rate: write it like "1000/day" or "3/s"'),
        ("budget = '0/day'", 'budget 0.0 must be a finite number above 0: write it like "1000/day"'),
        (
            "budget = '5/fortnight'",
            "budget '5/fortnight' has the unknown unit 'fortnight': use one of s, min, h, day, week, month, year",
        ),
        ("budget = 'nan/day'", "budget 'nan/day' is not a rate: write it like 1/day, 3/h or 15m"),
        (
            "objective = 'speed'",
            "objective 'speed' is not known: use one of freshness, age, missed, lag, deadline:TIME, saturating:TIME, "
            "power:NUMBER, points:TIME=HARM,…",
        ),
        ("keep = 0", "keep 0 must be a whole number from 1 on: write it like 3"),
        ("keep = true", "keep True must be a whole number from 1 on: write it like 3"),
        ("burst = -1", "burst -1.0 must be a finite number at least 0: give burst as such a number"),
        (
            "windows = ['Mon-Fri 22:00-06:00']",
            "windows 'Mon-Fri 22:00-06:00' must begin with hours, then have at most "
            "days and a zone: write it as '22:00-06:00 Mon-Fri Europe/Berlin'",
        ),
        ("[http]\ntimeout = 30", 'http.timeout 30 must be a length of time: write it like "15m" or "2h"'),
        ("[http]\ntimeout = '0s'", 'http.timeout 0.0 must be a finite number above 0: write it like "30s"'),
        ("[http]\nlimit = '16 parsecs'", "http.limit '16 parsecs' is not a size: write it like \"16MiB\""),
        ("[http]\nrobots = 'no'", "http.robots 'no' must be true or false: write it without quotes"),
        (
            "[http]\nallow_networks = ['10.0.0.1/8']",
            "http.allow_networks '10.0.0.1/8' is not a network: write it like 10.0.0.0/8 or fd00::/8, host bits zero",
        ),
        ("http = 3", "http 3 must be a table: write it as [http]"),
        ("[on_change]\nlog = 'x'", "on_change 'given' must be a list of tables: write each as [[on_change]]"),
        (
            "[[on_change]]\nsecret = '$S'",
            "on_change[0] with nothing must be one of webhook, command, log and notify: write a table for each",
        ),
        (
            "[[on_change]]\nlog = 'x'\ncommand = ['y']",
            "on_change[0] with command and log must be one of webhook, command, log and notify: write a table for each",
        ),
        (
            "[defaults]\nweight = nan",
            "defaults.weight nan must be a finite number at least 0: give defaults.weight as such a number",
        ),
        (
            "[defaults]\nmin_interval = '2h'\nmax_interval = '1h'",
            "defaults.min_interval 7200 s must not exceed max_interval 3600 s: swap them",
        ),
        (
            "[defaults.normalise]\nselector = ['p']",
            "defaults.normalise given may hold lists (selectors, pointers, keep, keep_pointers, xpath, between, "
            "patterns, drop_patterns) and whitespace, case, digits, dates, text = true or false: use these",
        ),
        ("[defaults.headers]\nAccept = 1", "defaults.headers given must be a table of texts: write numbers in quotes"),
    ],
)
def test_what_is_wrong_is_one_sentence(text: str, said: str) -> None:
    assert refused(text) == said


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("[defaults.headers]\nAuthorization = 'Bearer hunter2'", "defaults.headers.Authorization"),
        ("[defaults.headers]\nCookie = 'hunter2'", "defaults.headers.Cookie"),
        ("[defaults.headers]\nX-Api-Key = 'hunter2'", "defaults.headers.X-Api-Key"),
        ("[server]\ntoken = 'hunter2'", "server.token"),
        ("[[on_change]]\nwebhook = 'https://a.org'\nsecret = 'hunter2'", "on_change[0].secret"),
        ("[http]\nproxy = 'http://me:hunter2@proxy'", "http.proxy"),
        ("[[on_change]]\nwebhook = 'https://me:hunter2@a.org'", "on_change[0].webhook"),
    ],
)
def test_secrets_in_clear_are_refused_and_not_repeated(text: str, name: str) -> None:
    said = refused(text)
    assert said.startswith(f"{name} ")
    assert said.endswith("put it in the environment and write its name there, as $NAME")
    assert "hunter2" not in said


def test_secrets_by_name_are_taken() -> None:
    found = given("[defaults.headers]\nAuthorization = 'Bearer $T'\n[http]\nproxy = 'http://me:$P@proxy'\n")
    assert found.defaults.headers == {"Authorization": "Bearer $T"}
    assert found.http.proxy == "http://me:$P@proxy"


def test_files_that_are_no_toml() -> None:
    assert "unstale.toml' cannot be read: " in refused("budget = ")
    Path("unstale.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="cannot be read"):
        load()
    Path("unstale.toml").write_bytes(b"\xef\xbb\xbfkeep = 4\r\n")
    assert load().keep == 4


def test_settings_stay_as_they_are() -> None:
    found = load()
    with pytest.raises(AttributeError):
        found.keep = 4  # type: ignore[misc]
