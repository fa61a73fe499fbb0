"""`unstale status`: numbers that can be computed by hand, exit codes, other people's formats."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from scipy.integrate import quad

from support.hand_store import HOUR, NOW, belief, make, poll, survival
from unstale.adapters.sqlite_store import SqliteStore
from unstale.cli.status import status
from unstale.keeper.outcomes import Answer
from unstale.ports import Listing

DAY = 24 * HOUR
#: source -> shape, exposure, hours since the last answer, weight
KNOWN = {1: (3.0, 6 * HOUR, 2.0, 1.0), 2: (1.5, 2 * HOUR, 1.0, 4.0), 3: (2.0, 100 * HOUR, 5.0, 1.0)}


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(time, "time", lambda: NOW)
    monkeypatch.setenv("COLUMNS", "150")
    path = tmp_path / "a.db"
    listings = [Listing(f"https://site{i}.example/", host=f"h{i}", weight=KNOWN[i][3]) for i in KNOWN]
    listings += [
        Listing("https://down.example/", weight=0.5),
        Listing("https://off.example/", weight=99.0, paused=True),
    ]
    made = make(path, listings)
    for source, (shape, exposure, hours, _) in KNOWN.items():
        poll(made, source, NOW - hours * HOUR, Answer.CHANGED, row=belief(shape, exposure), body=b"x", due=NOW + HOUR)
    poll(made, 4, NOW - HOUR, Answer.FAILED, reason="its host is unknown", due=NOW + 3 * HOUR)
    poll(made, 4, NOW - HOUR / 2, Answer.FAILED, reason="it hangs up", due=NOW + 3 * HOUR)
    made.close()
    (tmp_path / "unstale.toml").write_text('store = "a.db"\nbudget = "10/h"\n')
    return tmp_path / "unstale.toml"


def run(store: Path, *args: str) -> Result:
    done = CliRunner().invoke(status, ["--config", str(store), *args])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done


def freshness() -> float:
    fresh = {i: survival(hours * HOUR, shape, exposure) for i, (shape, exposure, hours, _) in KNOWN.items()}
    return sum(KNOWN[i][3] * fresh[i] for i in KNOWN) / (6.0 + 0.5)


def test_json_holds_what_the_beliefs_say(store: Path) -> None:
    told = json.loads(run(store, "--json").stdout)
    assert told["freshness"] == pytest.approx(freshness(), rel=1e-12)
    assert told["sources"] == {"total": 5, "paused": 1, "failing": 1, "never_answered": 1, "never_polled": 0}
    # three sources at 10 polls an hour: each every 0.3 h, fresh for the mean of its survival over that time; the fourth
    # fails and never answered: it is stale however it is polled
    every = 0.3 * HOUR
    even = sum(w * quad(survival, 0, every, (a, b), epsabs=0)[0] / every for a, b, _, w in KNOWN.values())
    assert told["freshness_even"] == pytest.approx(even / 6.5, rel=1e-9)
    ages = {i: quad(lambda t, a=a, b=b: 1 - survival(t, a, b), 0, h * HOUR)[0] for i, (a, b, h, _) in KNOWN.items()}
    assert told["age"] == pytest.approx(sum(KNOWN[i][3] * ages[i] for i in KNOWN) / 6.0, rel=1e-8)
    assert told["budget_per_day"] == pytest.approx(240.0)
    assert (told["spent_hour"], told["spent_day"]) == (7.0, 7.0)
    assert told["totals"]["polls"] == 5
    assert told["engine"]["running"] is False
    assert told["at"] == "2023-11-14T22:13:20.000000Z"


def test_the_worst_take_most_from_the_freshness_of_all(store: Path) -> None:
    worst = json.loads(run(store, "--json").stdout)["worst"]
    harm = {i: w * (1 - survival(h * HOUR, a, b)) for i, (a, b, h, w) in KNOWN.items()} | {4: 0.5}
    assert [one["id"] for one in worst] == sorted(harm, key=lambda i: -harm[i])
    one = next(line for line in worst if line["id"] == 2)
    assert one["fresh"] == pytest.approx(survival(HOUR, 1.5, 2 * HOUR), rel=1e-12)
    assert one["change_interval"] == pytest.approx(2 * HOUR / 1.5, rel=1e-12)
    # what it is worth after its interval is the price: 4·∫ (survival(s) − survival(t)) ds
    t = one["interval"]
    worth = quad(lambda s: survival(s, 1.5, 2 * HOUR) - survival(t, 1.5, 2 * HOUR), 0.0, t)[0]
    assert 4.0 * worth == pytest.approx(600.0, rel=5e-3)
    assert one["waits_for"] == "price"
    assert one["due_at"] == "2023-11-14T23:13:20.000000Z"
    down = next(line for line in worst if line["id"] == 4)
    assert (down["failures"], down["reason"], down["age"], down["checked_at"]) == (2, "it hangs up", None, None)
    assert [one["id"] for one in json.loads(run(store, "--json", "--limit", "2").stdout)["worst"]] == [2, 1]


def test_the_table_says_the_same_to_people(store: Path) -> None:
    out = run(store, "--limit", "3").stdout
    assert out.startswith("5 sources: 1 paused, 1 failing, 1 never answered\n")
    assert f"freshness  {100 * freshness():.1f} %" in out
    assert "not running" in out
    assert "`unstale run`" in out
    assert "7 spent in the last hour" in out
    row = next(line for line in out.splitlines() if "site2" in line)
    assert row.split()[:2] == [f"{100 * survival(HOUR, 1.5, 2 * HOUR):.0f}", "%"]
    assert "1.33 h" in row
    assert "1 h ago" in row
    assert "in 1 h" in row
    assert "and 1 source more" in out
    assert "https://down.example/ failed 2 times in a row: it hangs up" in out
    assert "off.example" not in run(store).stdout


def test_a_narrow_terminal_loses_columns_and_addresses_but_no_numbers(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "72")
    # A pipe is never that narrow; a terminal is, and there is none here.
    monkeypatch.setattr("unstale.cli.show.PIPE", 40)
    out = run(store).stdout
    assert all(len(line) <= 72 for line in out.splitlines() if "failed" not in line)
    assert "1.33 h" in out
    assert "checked" not in out


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        ((), 0, ""),
        (("--warn-fresh", "0.3"), 0, ""),
        (("--warn-fresh", "0.9"), 1, "warn: freshness is"),
        (("--warn-fresh", "0.99", "--fail-fresh", "0.9"), 2, "fail: freshness is"),
        (("--warn-age", "3h"), 1, "warn: 1 source of 4 expected to lack a change for more than 3 h"),
        (("--warn-age", "10min", "--fail-age", "30min", "site1", "site2"), 2, "fail: 1 source of 2"),
        (("--fail-age", "1d", "site1"), 0, ""),
        (("nowhere",), 2, "source 'nowhere' is not listed"),
        (("--warn-age", "soon"), 2, "warn_age 'soon' is not a length of time"),
    ],
)
def test_exit_codes_are_those_of_monitoring(store: Path, args: tuple[str, ...], code: int, words: str) -> None:
    done = run(store, *args)
    assert done.exit_code == code, done.output
    assert words in done.output


def test_a_broken_contract_fails_and_no_other(store: Path) -> None:
    # site1 answered two hours ago, site2 one hour, site3 five; down.example never did.
    made = SqliteStore(store.parent / "a.db")
    own = {2: {"fresh_within": "90min"}, 3: {"tags": ["law"]}, 4: {"fresh_within": "1d"}}
    changed = [replace(one, options=own[one.id]) for one in made.listings(sorted(own))]
    made.add(changed, NOW, duplicates="replace")
    made.close()
    store.write_text('store = "a.db"\nbudget = "10/h"\n[contracts.law]\nfresh_within = "6h"\n')
    done = run(store)
    assert done.exit_code == 2
    broken = "https://down.example/ has never answered, 1 day are allowed (it hangs up)"
    assert f"fail: contract own: {broken}" in done.stdout
    assert "law: fresh within 6 h: kept of 1 source, needs 4.44/day" in done.stdout
    assert run(store, "--contract", "law").exit_code == run(store, "site2", "site3").exit_code == 0
    assert "contract 'lore' is of no source here: there are law, own" in run(store, "--contract", "lore").output
    told = json.loads(run(store, "--json").stdout)
    assert [(one["name"], one["broken"]) for one in told["contracts"]] == [("law", 0), ("own", 1)]
    dbt = json.loads(run(store, "--format", "dbt", "site2").stdout)
    assert dbt["results"][0]["criteria"]["error_after"] == {"count": 90, "period": "minute"}
    store.write_text('store = "a.db"\nbudget = "1/day"\n[contracts.law]\nfresh_within = "6h"\n')
    done = run(store, "site3")
    assert done.exit_code == 1
    assert "warn: contracts need 4.44/day, the budget is 1/day: raise it, or promise less" in done.stdout


def test_no_store_is_a_failure_and_makes_none(tmp_path: Path) -> None:
    done = CliRunner().invoke(status, ["--store", str(tmp_path / "none.db")])
    assert done.exit_code == 2
    assert "does not exist: add sources with `unstale add`" in done.output
    assert not (tmp_path / "none.db").exists()


def test_an_empty_store_is_well(tmp_path: Path) -> None:
    make(tmp_path / "empty.db", []).close()
    done = CliRunner().invoke(status, ["--store", str(tmp_path / "empty.db"), "--warn-fresh", "0.9"])
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("0 sources\n")


def test_dbt_reads_it_as_its_own(store: Path) -> None:
    done = run(store, "--format", "dbt", "--warn-age", "90min", "--fail-age", "4h")
    told = json.loads(done.stdout)
    assert done.exit_code == 2
    assert told["metadata"]["dbt_schema_version"] == "https://schemas.getdbt.com/dbt/sources/v3.json"
    by_name = {one["unique_id"]: one for one in told["results"]}
    assert {name.rpartition("//")[2]: one["status"] for name, one in by_name.items()} == {
        "site1.example/": "warn",
        "site2.example/": "pass",
        "site3.example/": "error",
        "down.example/": "runtime error",
    }
    one = by_name["source.unstale.h1.https://site1.example/"]
    assert one["max_loaded_at_time_ago_in_s"] == pytest.approx(2 * HOUR)
    assert one["criteria"] == {
        "warn_after": {"count": 90, "period": "minute"},
        "error_after": {"count": 4, "period": "hour"},
        "filter": None,
    }
    needed = {
        "unique_id",
        "max_loaded_at",
        "snapshotted_at",
        "max_loaded_at_time_ago_in_s",
        "status",
        "criteria",
        "adapter_response",
        "timing",
        "thread_id",
        "execution_time",
    }
    assert set(one) == needed
    assert by_name["source.unstale.http.https://down.example/"]["error"] == "it hangs up"
    assert run(store, "--format", "dbt", "site1").exit_code == 0


def test_a_running_engine_is_seen_by_the_file_it_holds(store: Path) -> None:
    from unstale.cli.compose import alone
    from unstale.cli.settings import load

    with alone(load(store)):
        assert json.loads(run(store, "--json").stdout)["engine"]["running"] is True
    assert json.loads(run(store, "--json").stdout)["engine"]["running"] is False


def test_a_plot_has_a_dot_for_every_source_that_waits(store: Path, tmp_path: Path) -> None:
    done = run(store, "--plot", str(tmp_path / "fleet.png"))
    assert "drew 3 sources" in done.stderr
    assert (tmp_path / "fleet.png").read_bytes().startswith(b"\x89PNG")
    assert "has an unknown ending: use .png" in run(store, "--plot", "fleet.gif").output
