"""`unstale topology`: what it prints, reads and refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from unstale.cli.topology import topology
from unstale.errors import InputError
from unstale.planning import topology as planning

ASKED = ("--changes", "2/h", "--machines", "20", "--capacity", "100/h", "--freshness", "0.8", "--source-limit", "30/h")
FILE = 'changes = "2/h"\nmachines = 20\ncapacity = "100/h"\nfreshness = 0.8\nsource_limit = "30/h"\n'


@pytest.fixture(autouse=True)
def _wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")


def run(*args: str) -> Result:
    return CliRunner().invoke(topology, list(args))


def data(*args: str) -> dict[str, Any]:
    done = run(*args, "--json")
    assert done.exit_code == 0, done.output
    parsed: dict[str, Any] = json.loads(done.stdout)
    return parsed


def refused(*args: str) -> str:
    error = run(*args).exception
    assert isinstance(error, InputError), error
    assert "\n" not in str(error)
    return str(error)


def test_the_table_names_the_best_first() -> None:
    done = run(*ASKED)
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert lines[0].startswith("20 machines of 100/h, a source that changes 2/h and answers at most 30/h;")
    assert [line.split()[0] for line in lines[3:10]] == [
        "combined",
        "tree",
        "cooperation",
        "turns",
        "independent",
        "redundancy",
        "single",
    ]
    assert "29.1" in lines[3]
    assert "2 at the source, each polling it every 4 min; below them 18, each polling one of them every 9." in lines[3]
    assert "27.91/min" in lines[4]
    assert "3 at the source, below them 17; each polls the one above every 6.82 min" in lines[4]
    assert "Best: combined: the source can feed only 6 of 20 machines by itself" in done.stdout
    # 20·(100 − 2·4.308369) + 30 an hour: see the tests of the planner
    assert "No design can serve more than 30.96/min: this one serves 94.1 % of that." in done.stdout


def test_json_holds_the_numbers_of_the_python_answer() -> None:
    got = data(*ASKED)
    want = planning.topology(planning.Question("2/h", 20, "100/h", 0.8, "30/h"))
    assert (got["winner"], got["reason"]) == ("combined", want.reason)
    for row, design in zip(got["designs"], want.designs, strict=True):
        for name in ("shape", "clients", "machines", "asked", "sync_rate", "peer_rate", "source_polls", "freshness"):
            assert row[name] == getattr(design, name)
    assert got["designs"][0]["levels"] == [2, 18]
    assert (got["designs"][0]["depth"], got["designs"][0]["branching"]) == (2, 9)
    assert got["designs"][0]["rates"] == list(want.winner.rates)
    assert got["bound"] == want.bound
    assert got["capacity"] == 2400


def test_what_cannot_be_is_explained() -> None:
    done = run(*ASKED[:-4], "--freshness", "0.9", "--source-limit", "12/h")
    assert "Not tree: freshness 0.9 is out of reach: a machine that polls another one" in done.stdout
    assert "comes to 0.8484: lower it, or raise the source limit." in done.stdout
    row = data(*ASKED[:-4], "--freshness", "0.9", "--source-limit", "12/h")["designs"][-1]
    assert row["feasible"] is False
    assert 0.8 < row["best_freshness"] < 0.9


def test_a_file_asks_the_same_and_options_have_the_last_word(tmp_path: Path) -> None:
    file = tmp_path / "site.toml"
    file.write_text(FILE)
    assert data(str(file)) == data(*ASKED)
    got = data(str(file), "--machines", "3", "--shapes", "single, independent")
    assert [row["shape"] for row in got["designs"]] == ["independent", "single"]
    assert got["machines"] == 3
    file.write_text(FILE + 'shapes = ["tree", "single"]\n')
    assert len(data(str(file))["designs"]) == 2


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (FILE + "speed = 3\n", "key 'speed' of "),
        ("changes = \n", "is not TOML (invalid value"),
        (FILE.replace("20", "0"), "machines 0.0 must be"),
        (FILE.replace("20", "[20]"), "machines [20] must be"),
        (FILE.replace("0.8", "nan"), "freshness nan must be"),
        (FILE.replace("0.8", "0.99"), "freshness 0.99 is out of reach: single comes closest, to 0.9673: lower it"),
        (FILE + "shapes = 3\n", "shapes 3 must be a list"),
        (FILE.replace('"2/h"', "2024-05-01"), "changes datetime.date(2024, 5, 1) is not a rate"),
        (FILE.replace('capacity = "100/h"\n', ""), "capacity must be given: use --capacity"),
    ],
)
def test_bad_files_get_one_sentence(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "site.toml"
    file.write_text(text)
    assert words in refused(str(file))


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    assert "cannot be read (no such file or directory): check its name" in refused(str(tmp_path / "none.toml"))
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    assert "is not text in UTF-8" in refused(str(tmp_path / "binary.toml"))
    assert refused().startswith("changes must be given: use --changes")


def test_the_figure_and_its_name(tmp_path: Path) -> None:
    file = tmp_path / "shapes.svg"
    done = run(*ASKED, "--shapes", "single,independent,turns", "--plot", str(file))
    assert f"The figure is in {file}." in done.stdout
    assert "<svg" in file.read_text()
    assert "unknown ending" in refused(*ASKED, "--plot", "shapes.doc")
    assert "is in no directory" in refused(*ASKED, "--plot", str(tmp_path / "none" / "a.png"))


def test_the_winner_is_simulated_with_an_error() -> None:
    got = data(*ASKED, "--simulate", "--shapes", "tree")["simulated"]
    assert 0 < got["error"] < 0.005
    assert abs(got["freshness"] - 0.8) < 5 * got["error"]
    again = data(*ASKED, "--simulate", "--shapes", "tree", "--seed", "2")["simulated"]
    assert again["freshness"] != got["freshness"]
    assert "standard errors from what is promised." in run(*ASKED, "--simulate", "--shapes", "single").stdout
