"""`unstale backup` and `unstale doctor`: a whole second store, and every ailment by its sentence."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from support.kept_store import HOUR, keep
from unstale.adapters.sqlite_schema import connect
from unstale.adapters.sqlite_store import SqliteStore
from unstale.cli.maintenance import backup, doctor
from unstale.core.learning.state import WIDTH
from unstale.errors import StoreError
from unstale.ports import Listing


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, float]:
    path = tmp_path_factory.mktemp("care") / "kept.db"
    end = keep(path, 8.0)
    return path, end


@pytest.fixture
def store(kept: tuple[Path, float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store of one's own, to be hurt; it is the moment at which its engine ended."""
    path, end = kept
    monkeypatch.setattr(time, "time", lambda: end)
    made = CliRunner().invoke(backup, [str(tmp_path / "mine.db"), "--store", str(path)], catch_exceptions=False)
    assert made.exit_code == 0
    return tmp_path / "mine.db"


def run(store: Path, *args: str) -> Result:
    return CliRunner().invoke(doctor, ["--store", str(store), *args], catch_exceptions=False)


def findings(store: Path, *args: str) -> list[str]:
    told = json.loads(run(store, "--json", *args).stdout)
    found: list[str] = told["findings"]
    # nobody keeps a store that a test has made
    assert found[-1].startswith("no engine is running, copies grow old: start it with `unstale run`")
    return found[:-1]


def hurt(store: Path, *statements: str) -> None:
    db = connect(store)
    for statement in statements:
        db.execute(statement)
    db.close()


def test_a_backup_is_a_store_of_its_own(store: Path, kept: tuple[Path, float], tmp_path: Path) -> None:
    done = CliRunner().invoke(backup, [str(tmp_path / "again.db"), "--store", str(store)], catch_exceptions=False)
    assert "again.db: " in done.stdout
    assert " kB in " in done.stdout
    ours, theirs = SqliteStore(tmp_path / "again.db"), SqliteStore(kept[0])
    assert ours.counters() == theirs.counters()
    assert (ours.fleet(WIDTH).beliefs == theirs.fleet(WIDTH).beliefs).all()
    assert ours.verify() == []
    ours.close()
    theirs.close()
    again = CliRunner().invoke(backup, [str(tmp_path / "again.db"), "--store", str(store)])
    assert isinstance(again.exception, StoreError)
    assert "exists already: choose another name" in str(again.exception)


def test_a_store_that_an_engine_left_is_well_to_the_last_bit(store: Path) -> None:
    told = json.loads(run(store, "--json").stdout)
    assert told["replayed"] == {"sources": 12, "equal": 12, "differ": 0, "unknown": 0, "largest_difference": 0.0}
    assert findings(store) == []
    done = run(store)
    assert done.exit_code == 1
    assert "12 beliefs equal bit for bit" in done.stdout
    assert done.stdout.endswith("1 finding\n")


def test_with_an_engine_running_all_is_well(store: Path) -> None:
    from unstale.cli.compose import alone
    from unstale.cli.settings import load

    with alone(load(store=str(store))):
        done = run(store)
    assert done.exit_code == 0, done.output
    assert done.stdout.endswith("all is well\n")


def test_a_belief_that_no_poll_taught_is_found_and_measured(store: Path) -> None:
    db = connect(store)
    row = np.frombuffer(db.execute("SELECT belief FROM beliefs WHERE source = 5").get).copy()
    row[0] += 0.25
    db.execute("UPDATE beliefs SET belief = ? WHERE source = 5", (row.tobytes(),))
    db.close()
    told = json.loads(run(store, "--json", "--quick").stdout)
    assert (told["replayed"]["equal"], told["replayed"]["differ"]) == (11, 1)
    assert told["replayed"]["largest_difference"] == pytest.approx(0.25 / max(row[0], 1.0))
    assert told["findings"][0].startswith("beliefs of 1 source are not what polls taught, off by up to")


def test_replaying_goes_on_from_a_checkpoint_when_old_polls_are_gone(tmp_path: Path) -> None:
    path = tmp_path / "short.db"
    keep(path, 8.0, horizon=2 * HOUR)
    replica = SqliteStore(path, horizon=2 * HOUR)
    assert replica.checkpoint(12) is not None
    assert len(replica.observations(12, 1000)) < replica.counters()["recorded"] / 12
    replica.close()
    assert json.loads(run(path, "--json").stdout)["replayed"]["equal"] == 12


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (
            "UPDATE contents SET body = CAST(x'00' || body AS BLOB) WHERE uses = 1 AND id = "
            "(SELECT max(id) FROM contents WHERE uses = 1)",
            "is damaged: poll it anew with `unstale doctor --repair`",
        ),
        (
            "UPDATE beliefs SET due = 9e999 WHERE source = 4",
            "due times of 1 source are never: poll them",
        ),
        (
            "UPDATE beliefs SET due = due + 1e9 WHERE source < 4",
            "due times of 3 sources lie beyond any wait",
        ),
        ("INSERT INTO counters VALUES ('untold', 1200)", "1,200 changes were dropped before everybody was told"),
        ("DELETE FROM states WHERE source = 5", "source 5 is neither waiting nor claimed"),
        (
            "UPDATE settings SET value = x'00' WHERE name = 'learner'",
            "was stored by another version: it is learned anew",
        ),
    ],
)
def test_every_ailment_has_its_sentence(store: Path, harm: str, words: str) -> None:
    hurt(store, harm)
    found = findings(store)
    assert [words in finding for finding in found] == [True]


def test_polls_that_are_dated_after_later_ones_are_told(store: Path) -> None:
    ten_years = "UPDATE observations SET polled_at = polled_at + 315576000 WHERE token = "
    hurt(store, f"{ten_years}(SELECT max(token) - 5 FROM observations)")
    found = findings(store)
    told = [finding for finding in found if "polls is dated after later ones, by up to 10 years" in finding]
    assert len(told) == 1, found


def test_what_cannot_be_rebuilt_is_counted(store: Path) -> None:
    hurt(store, "DELETE FROM epochs WHERE id > 1")
    assert json.loads(run(store, "--json").stdout)["replayed"]["unknown"] > 6
    assert "cannot be rebuilt" in run(store).stdout


def test_a_clock_that_was_ahead_is_told(store: Path, kept: tuple[Path, float], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: kept[1] - 6 * HOUR)
    told = next(one for one in findings(store) if one.startswith("last answers of "))
    assert re.search(r"lie in the future, up to (6|5\.\d+) h from now: set this machine's clock$", told)


def test_names_of_the_environment_are_looked_up_and_never_shown(
    store: Path, kept: tuple[Path, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    more = SqliteStore(store)
    options = {"headers": {"Authorization": "Bearer $DOCTOR_TOKEN", "X-Key": "${DOCTOR_KEY}"}}
    more.add(
        [
            Listing("https://secret.example/a", options=options),
            Listing("https://secret.example/b", options={"headers": {"Authorization": "$DOCTOR_TOKEN"}}),
        ],
        kept[1],
    )
    more.close()
    monkeypatch.setenv("DOCTOR_KEY", "hush")
    monkeypatch.delenv("DOCTOR_TOKEN", raising=False)
    (found,) = findings(store)
    needed = "needed by https://secret.example/a and 1 more: set it where the engine runs"
    assert found == f"environment variable DOCTOR_TOKEN is not set here, {needed}"
    assert "hush" not in run(store).output
