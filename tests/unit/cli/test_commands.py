"""The commands as a newcomer types them: what they print, what they refuse, what they leave behind."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from unstale.cli.main import unstale
from unstale.errors import UnstaleError

CSV = "id,change_rate,weight,host\na,1,1,x\nb,3/h,5,x\nc,0.5,2,y\n"


def run(*args: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(unstale, list(args), input=stdin)


def data(*args: str, stdin: str | None = None) -> dict[str, Any]:
    result = run(*args, "--json", stdin=stdin)
    assert result.exit_code == 0, result.output
    parsed: dict[str, Any] = json.loads(result.stdout)
    return parsed


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    file = tmp_path / "fleet.csv"
    file.write_text(CSV)
    return file


def test_freshness() -> None:
    got = data("freshness", "--change-rate", "1/day", "--sync-rate", "1/day")
    assert got["freshness"] == pytest.approx(0.632120558829)
    assert got["age"] == pytest.approx(0.132120558829)
    text = run("freshness", "--change-rate", "1/day", "--sync-rate", "24h").stdout
    assert "63.2 %" in text
    assert "3.17 h" in text


def test_freshness_of_bursty_changes_and_random_polls() -> None:
    got = data("freshness", "--change-rate", "2", "--sync-rate", "2", "--changes", "pareto:3")
    assert got["freshness"] == pytest.approx(2 / 3)
    assert got["freshness_if_poisson"] == pytest.approx(0.632120558829)
    random = data("freshness", "--change-rate", "1", "--sync-rate", "1", "--polls", "random")
    assert random["freshness"] == pytest.approx(0.600423599106)
    endless = data("freshness", "--change-rate", "1", "--sync-rate", "1", "--polls", "pareto:1.5")
    assert endless["age"] is None


def test_sync_rate() -> None:
    got = data("sync-rate", "--target-freshness", "0.8", "--change-rate", "1/day")
    assert got["sync_rate"] == pytest.approx(2.15418467194)
    assert data("sync-rate", "--target-staleness", "0.2", "--change-rate", "1/day")["sync_rate"] == pytest.approx(
        got["sync_rate"]
    )
    aged = data("sync-rate", "--target-age", "10m", "--change-rate", "3/h")
    assert aged["age"] == pytest.approx(10 / 1440)
    close = data(
        "sync-rate",
        "--target-consistency",
        "0.9818181818",
        "--within",
        "0.4",
        "--change-rate",
        "2",
        "--changes",
        "pareto:3",
    )
    assert close["sync_rate"] == pytest.approx(2.0)  # 003, Figure 6(a)


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (
            ["freshness", "--change-rate", "-1/day", "--sync-rate", "1"],
            "change-rate -1/day must be a finite number at least 0",
        ),
        (["freshness", "--change-rate", "nan", "--sync-rate", "1"], "change-rate nan must be"),
        (["freshness", "--change-rate", "1", "--sync-rate", "1/eon"], "sync-rate '1/eon' has the unknown unit 'eon'"),
        (["freshness", "--change-rate", "1", "--sync-rate", "1", "--changes", "pareto:1"], "alpha 1.0 must be"),
        (["sync-rate", "--change-rate", "1"], "targets 0 must be exactly one"),
        (["sync-rate", "--change-rate", "1", "--target-freshness", "1"], "cannot be reached"),
        (["plan", "missing.csv", "--budget", "1"], "file 'missing.csv' does not exist"),
        (["plan", "fleet.xls", "--budget", "1"], "file 'fleet.xls' does not exist"),
    ],
)
def test_bad_input_is_one_sentence(args: list[str], sentence: str) -> None:
    result = run(*args)
    assert isinstance(result.exception, UnstaleError)
    assert sentence in str(result.exception)


@pytest.mark.slow
def test_exit_codes_and_streams_of_the_real_command(fleet: Path) -> None:
    def call(*args: str) -> subprocess.CompletedProcess[str]:
        code = "import sys; from unstale.cli.main import main; sys.argv[0] = 'unstale'; main()"
        return subprocess.run([sys.executable, "-c", code, *args], capture_output=True, text=True, check=False)

    wrong = call("freshness", "--change-rate", "x", "--sync-rate", "1")
    assert (wrong.returncode, wrong.stdout) == (1, "")
    assert wrong.stderr == "unstale: change-rate 'x' is not a rate: write it like 1/day, 3/h or 15m\n"
    assert call("freshness").returncode == 2
    assert call("plan", str(fleet), "--budget", "10").returncode == 0


def test_plan_prints_a_summary_and_writes_every_row(fleet: Path, tmp_path: Path) -> None:
    for name in ("plan.csv", "plan.parquet", "plan.jsonl"):
        out = tmp_path / name
        result = run("plan", str(fleet), "--budget", "20/day", "-o", str(out))
        assert result.exit_code == 0, result.output
        assert "freshness" in result.stdout
        assert out.exists()
    table = pq.read_table(tmp_path / "plan.parquet")
    assert table.column("id").to_pylist() == ["a", "b", "c"]
    assert sum(table.column("sync_rate").to_pylist()) == pytest.approx(20)
    again = run("plan", str(tmp_path / "plan.csv"), "--budget", "20/day", "-o", str(tmp_path / "again.parquet"))
    assert again.exit_code == 0
    assert pq.read_table(tmp_path / "again.parquet").column("sync_rate").to_pylist() == pytest.approx(
        table.column("sync_rate").to_pylist()
    )
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".")] == []


def test_plan_reads_standard_input_and_json_lines(tmp_path: Path) -> None:
    want = data("plan", "-", "--budget", "20", stdin=CSV)
    lines = (
        '{"id": "a", "change_rate": 1, "weight": 1}\n{"id": "b", "change_rate": "3/h", "weight": 5}\n'
        '{"id": "c", "change_rate": 0.5, "weight": 2}\n'
    )
    assert data("plan", "-", "--budget", "20", stdin=lines)["price"] == pytest.approx(want["price"])
    file = tmp_path / "fleet.parquet"
    pq.write_table(pa.table({"id": list("abc"), "change_rate": [1.0, 72.0, 0.5], "weight": [1, 5, 2]}), file)
    assert data("plan", str(file), "--budget", "20")["price"] == pytest.approx(want["price"])
    keys = (
        "price",
        "spent",
        "budget",
        "freshness",
        "freshness_uniform",
        "freshness_proportional",
        "abandoned",
        "certificate",
    )
    assert set(keys) <= set(want)
    assert max(want["certificate"].values()) < 1e-9


def test_where_a_plan_is_can_be_copied_however_long_and_odd_its_name(fleet: Path, tmp_path: Path) -> None:
    """Neither torn apart at the end of a line nor taken for markup."""
    place = tmp_path / f"of [bold] {'x' * 90}.csv"
    assert f"The full plan is in {place}.\n" in run("plan", str(fleet), "--budget", "20", "-o", str(place)).stdout


def test_plan_with_target_caps_explanation_and_curve(fleet: Path, tmp_path: Path) -> None:
    got = data("plan", str(fleet), "--target", "freshness=0.9")
    assert got["freshness"] == pytest.approx(0.9)
    capped = data("plan", str(fleet), "--budget", "20", "--host-cap", "3/day", "--host-cap", "y=1")
    assert capped["spent"] == pytest.approx(4)
    assert run("plan", str(fleet), "--budget", "20", "--explain", "b").stdout.startswith("b is polled every")
    assert "● now: 20/day" in run("plan", str(fleet), "--budget", "20", "--curve").stdout
    picture = tmp_path / "curve.png"
    assert run("plan", str(fleet), "--budget", "20", "--curve", str(picture)).exit_code == 0
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("", "is empty"),
        ("id,change_rate\n", "has no sources"),
        ("id\na\n", "column 'change_rate' is missing"),
        ("id,change_rate\na,1\nb,\n", "row 2 (id 'b') change_rate is missing"),
        ("id,change_rate\na,1\nb,NaN\n", "row 2 (id 'b') change_rate is missing (empty or NaN)"),
        ("id,change_rate\na,1\nb,inf\n", "row 2 (id 'b'): change_rate inf must be"),
        ("id,change_rate\na,1\na,1\n", "row 2: id 'a' stands in row 1 too"),
        ("id,change_rate\na,1\nb,1,7\n", "cannot be read as csv"),
    ],
)
def test_bad_files_leave_no_output(tmp_path: Path, content: str, sentence: str) -> None:
    file, out = tmp_path / "bad.csv", tmp_path / "plan.csv"
    file.write_text(content)
    result = run("plan", str(file), "--budget", "1", "-o", str(out))
    assert sentence in str(result.exception)
    assert [p.name for p in tmp_path.iterdir()] == ["bad.csv"]


def test_a_failed_write_leaves_the_old_plan_alone(fleet: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "plan.csv"
    out.write_text("old")

    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("pyarrow.csv.write_csv", fail)
    failed = run("plan", str(fleet), "--budget", "1", "-o", str(out)).exception
    assert "cannot be written (disk full): choose another" in str(failed)
    assert out.read_text() == "old"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["fleet.csv", "plan.csv"]


def test_numbers_first_and_units_late_in_a_long_file(tmp_path: Path) -> None:
    """The reader guesses types from the first block; a unit a megabyte later must not stop it."""
    file = tmp_path / "long.csv"
    rows = [f"source-{i},{i % 7 + 1}" for i in range(120_000)] + ["last,3/h"]
    file.write_text("id,change_rate\n" + "\n".join(rows) + "\n")
    assert data("plan", str(file), "--budget", "1000")["sources"] == 120_001


def test_demo_explains_itself() -> None:
    result = run("sample")
    assert result.exit_code == 0
    assert "news/front is polled every" in result.stdout
    assert "api/prices/eu is abandoned" in result.stdout


@pytest.mark.parametrize("text", ["1_000", "٣"])
@pytest.mark.parametrize("args", [["list", "--limit"], ["sync-rate", "--target-freshness"], ["topology", "--machines"]])
def test_only_plain_digits_are_numbers(args: list[str], text: str) -> None:
    done = run(*args, text)
    assert done.exit_code == 2
    assert "write it with plain digits" in done.stderr
