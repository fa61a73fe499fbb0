"""`unstale trace` as a newcomer types it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from unstale.cli.trace import trace
from unstale.errors import InputError

CSV = "host,seen,size\na,2024-05-01T10:00:00Z,1\na,2024-05-01T09:00:00Z,2\n[b],soon,3\n[b],2024-05-02T00:00:00Z,4\n"


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")


def run(*args: str) -> Result:
    done = CliRunner().invoke(trace, list(args))
    assert done.exit_code == 0, done.output
    return done


def refused(*args: str) -> str:
    done = CliRunner().invoke(trace, list(args))
    assert isinstance(done.exception, InputError), done.output
    return str(done.exception)


def test_a_table_with_chosen_columns(tmp_path: Path) -> None:
    file, out = tmp_path / "log.csv", tmp_path / "trace.parquet"
    file.write_text(CSV)
    text = run("csv", str(file), "--source-column", "host", "--time-column", "seen", "-o", str(out)).stdout
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert lines[:-1] == [
        "2 sources, 3 changes",
        "first 2024-05-01T09:00:00Z",
        "last 2024-05-02T00:00:00Z",
        "per source 1.5 in the median, 2 at most",
        "columns source from 'host', t from 'seen'",
        "problems 1 row cannot be read and was left out (first: 'soon' in row 3)",
        "1 time is earlier than the one before it of the same source: sorted",
    ]
    assert "The trace is in" in lines[-1]
    table = pq.read_table(out)
    assert table.to_pydict() == {"source": ["[b]", "a", "a"], "t": [1714608000, 1714554000, 1714557600]}
    # what was written is a clean trace
    again = json.loads(run("csv", str(out), "--json").stdout)
    assert (again["sources"], again["changes"], again["problems"]) == (2, 3, {})


def test_json(tmp_path: Path) -> None:
    file = tmp_path / "log.csv"
    file.write_text(CSV)
    got = json.loads(run("csv", str(file), "--source-column", "host", "--time-column", "seen", "--json").stdout)
    assert got == {
        "sources": 2,
        "changes": 3,
        "first": "2024-05-01T09:00:00Z",
        "last": "2024-05-02T00:00:00Z",
        "median": 1.5,
        "most": 2,
        "rows": 4,
        "problems": {"malformed": 1, "unsorted": 1},
        "columns": {"source": "host", "t": "seen"},
        "output": None,
    }


def test_a_summary_alone_says_how_to_keep_it(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text("source,t\na,1\n")
    text = run("csv", str(file)).stdout
    assert "problems    none" in text
    assert text.endswith("Write the trace to a file with -o trace.parquet.\n")


def test_git(tmp_path: Path) -> None:
    repo, out = tmp_path / "r", tmp_path / "t.parquet"
    git = ["git", "-C", str(repo), "-c", "user.name=A", "-c", "user.email=a@example.org"]
    subprocess.run(["git", "init", "-q", "-b", "main", str(repo)], check=True)
    for k in (1, 2):
        (repo / "x").write_text(str(k))
        subprocess.run([*git, "add", "x"], check=True)
        env = {"GIT_COMMITTER_DATE": f"{k}000000000 +0000"}
        subprocess.run([*git, "commit", "-qm", "m"], check=True, env=os.environ | env)
    # the second commit is of the year 2033
    text = run("git", str(repo), "-o", str(out)).stdout
    assert text.startswith("1 source, 1 change\n")
    assert "1 time is in the future and was left out (first: 2033-05-18 03:33:20+00:00 in row 2)" in text
    assert pq.read_table(out).to_pydict() == {"source": ["x"], "t": [1_000_000_000]}
    got = json.loads(run("git", str(repo), "--per", "repo", "--since", "2001-09-09", "--json").stdout)
    assert (got["sources"], got["changes"], got["columns"]) == (1, 1, None)
    assert "no change" in refused("git", str(repo), "--since", "2040-01-01")
    assert "no change that can be used: 1 time is in the future" in refused("git", str(repo), "--since", "10y")
    for text in ("2024", "yesterday", "-3d"):
        want = f"since '{text}' is not a date: write it like 2024-01-31 or 90d"
        assert refused("git", str(repo), f"--since={text}") == want


def test_wiki_and_feeds(tmp_path: Path) -> None:
    wiki, feed = tmp_path / "w.json", tmp_path / "f.xml"
    wiki.write_text('{"title": "Tea", "revisions": [{"timestamp": "2024-05-01T10:00:00Z"}]}')
    feed.write_text("<rss><item><pubDate>Wed, 01 May 2024 10:00:00 GMT</pubDate></item></rss>")
    for words in (["mediawiki", str(wiki)], ["feed", str(feed), str(feed)]):
        assert json.loads(run(*words, "--json").stdout)["first"] == "2024-05-01T10:00:00Z"


def test_mistakes_are_one_sentence(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text("source,t\na,1\n")
    assert refused("git", str(tmp_path / "no")).endswith("is not a folder: check the path")
    assert refused("csv", "no.csv") == "file 'no.csv' does not exist: check the path"
    assert "unknown ending" in refused("csv", str(file), "-o", str(tmp_path / "x.txt"))
    assert CliRunner().invoke(trace, ["feed"]).exit_code == 2
