"""A repository with a known history, and what is read from it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from unstale.errors import InputError
from unstale.traces.git import read_git

DAY = 86_400
START = 1_600_000_000
AT = [START + i * DAY for i in range(9)]
ODD = "ä b\n\t\"q\" 'x' \\.txt"


def run(folder: Path, *words: str, at: int = START) -> str:
    names = {"NAME": "A", "EMAIL": "a@example.org"}
    env = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")} | {
        f"GIT_{who}_{k}": v for who in ("AUTHOR", "COMMITTER") for k, v in names.items()
    }
    # authors write earlier than committers commit: only the latter is when the branch changed
    env |= {"GIT_AUTHOR_DATE": f"{at - 5000} +0300", "GIT_COMMITTER_DATE": f"{at} -0700"}
    env |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    done = subprocess.run(["git", "-C", str(folder), *words], env=env, capture_output=True, text=True, check=True)
    return done.stdout


def commit(folder: Path, at: int, /, **texts: str | None) -> None:
    for name, text in texts.items():
        file = folder / name
        file.unlink() if text is None else file.write_text(text)
    run(folder, "add", "-A")
    run(folder, "commit", "-q", "--allow-empty", "-m", "a", at=at)


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Nine days: made, changed, side branch, change on main, merge, rename, odd name, empty, deleted."""
    folder = tmp_path_factory.mktemp("git") / "my project"
    folder.mkdir()
    run(folder, "init", "-q", "-b", "main")
    commit(folder, AT[0], a="1", b="1")
    commit(folder, AT[1], a="2")
    run(folder, "checkout", "-q", "-b", "side")
    commit(folder, AT[2], c="1")
    run(folder, "checkout", "-q", "main")
    commit(folder, AT[3], b="2")
    run(folder, "merge", "-q", "--no-ff", "-m", "m", "side", at=AT[4])
    run(folder, "mv", "a", "d")
    commit(folder, AT[5])
    commit(folder, AT[6], **{ODD: "1"})
    commit(folder, AT[7])
    commit(folder, AT[8], b=None)
    return folder


WANT = {
    "a": [0, 1, 5],
    "b": [0, 3, 8],
    "c": [4],  # the side branch's commit reaches main with the merge
    "d": [5],  # a rename is an end and a beginning
    ODD: [6],
}


def sets(repository: Path, **options: object) -> dict[str, list[int]]:
    trace, problems = read_git(str(repository), **options)  # type: ignore[arg-type]
    assert not problems.counts()
    return {name: [round((t - START) / DAY) for t in trace.changes(i)] for i, name in enumerate(trace.names)}


def test_files(repository: Path) -> None:
    assert sets(repository) == WANT
    trace, _ = read_git(str(repository))
    assert set(trace.times.tolist()) == set(map(float, AT)) - {AT[2], AT[7]}


def test_the_whole(repository: Path) -> None:
    assert sets(repository, per="repo") == {"my project": [0, 1, 3, 4, 5, 6, 7, 8]}


def test_since(repository: Path) -> None:
    want = {name: [day for day in days if day >= 5] for name, days in WANT.items()}
    assert sets(repository, since=AT[5]) == {name: days for name, days in want.items() if days}
    assert sets(repository, per="repo", since=AT[5] + 1) == {"my project": [6, 7, 8]}
    with pytest.raises(InputError, match=r"has no change to import: give an earlier --since"):
        read_git(str(repository), since=AT[8] + 1)


def test_bare_and_content_free_clones(repository: Path, tmp_path: Path) -> None:
    run(repository, "config", "uploadpack.allowFilter", "true")
    address = repository.resolve().as_uri()
    for words in (["--bare"], ["--bare", "--filter=blob:none"]):
        bare = tmp_path / f"clone{len(words)}.git"
        run(tmp_path, "clone", "-q", *words, address, str(bare))
        assert sets(bare) == WANT
        assert sets(bare, per="repo").keys() == {f"clone{len(words)}"}


def test_what_a_clone_left_out_is_not_loaded_behind_the_user_s_back(repository: Path, tmp_path: Path) -> None:
    run(repository, "config", "uploadpack.allowFilter", "true")
    bare = tmp_path / "treeless.git"
    run(tmp_path, "clone", "-q", "--bare", "--filter=tree:0", repository.resolve().as_uri(), str(bare))
    before = {p.name for p in (bare / "objects" / "pack").iterdir()}
    with pytest.raises(InputError, match="is a clone without lists of files: clone it with --filter=blob:none"):
        read_git(str(bare))
    assert {p.name for p in (bare / "objects" / "pack").iterdir()} == before
    assert len(sets(bare, per="repo")["treeless"]) == 8


def test_a_shallow_clone_would_pretend_that_every_file_is_new(repository: Path, tmp_path: Path) -> None:
    bare = tmp_path / "shallow.git"
    run(tmp_path, "clone", "-q", "--bare", "--depth=3", repository.resolve().as_uri(), str(bare))
    with pytest.raises(InputError, match="is a shallow clone, which lacks the beginning: git fetch --unshallow"):
        read_git(str(bare))
    assert sets(bare, per="repo") == {"shallow": [6, 7, 8]}


def test_a_repository_s_configuration_runs_nothing(repository: Path, tmp_path: Path) -> None:
    folder = tmp_path / "trap"
    run(tmp_path, "clone", "-q", str(repository), str(folder))
    trap = tmp_path / "trap.sh"
    trap.write_text(f"#!/bin/sh\ntouch '{tmp_path}/sprung'\n")
    trap.chmod(0o755)
    for name in ("core.pager", "pager.log", "core.fsmonitor", "diff.external", "gpg.program", "diff.x.textconv"):
        run(folder, "config", name, str(trap))
    for name, value in {
        "log.showSignature": "true",
        "color.ui": "always",
        "diff.renames": "copies",
        "log.showRoot": "false",
    }.items():
        run(folder, "config", name, value)
    (folder / ".git/info/attributes").write_text("* diff=x\n")
    assert sets(folder) == WANT
    assert not (tmp_path / "sprung").exists()


def test_the_environment_does_not_lead_elsewhere(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", str(tmp_path))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", "false")
    assert sets(repository) == WANT


def test_wrong_clocks_are_reported(tmp_path: Path) -> None:
    run(tmp_path, "init", "-q", "-b", "main")
    for k, at in enumerate([AT[1], AT[0], AT[0], AT[2], 4_000_000_000]):
        commit(tmp_path, at, a=str(k))
    trace, problems = read_git(str(tmp_path), now=AT[8])
    assert trace.times.tolist() == [AT[0], AT[1], AT[2]]
    assert problems.counts() == {"future": 1, "duplicate": 1, "unsorted": 1}
    # a commit with an early time hides nothing before it
    assert read_git(str(tmp_path), since=AT[1], now=AT[8])[0].times.tolist() == [AT[1], AT[2]]


def test_names_that_are_no_text(tmp_path: Path) -> None:
    run(tmp_path, "init", "-q", "-b", "main")
    (Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff"))).write_text("1")
    (tmp_path / "\nb").write_text("1")
    commit(tmp_path, AT[0])
    assert read_git(str(tmp_path))[0].names == ("\nb", "\\xff")


def test_refusals(tmp_path: Path, repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    with pytest.raises(InputError, match="is not a folder: check the path"):
        read_git(str(tmp_path / "nothing"))
    with pytest.raises(InputError, match="is not a folder: git clone --bare"):
        read_git("https://example.org/x.git")
    with pytest.raises(InputError, match="is not a git repository: check the path"):
        read_git(str(tmp_path))
    run(tmp_path, "init", "-q")
    with pytest.raises(InputError, match="has no commits: commit something first"):
        read_git(str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match="cannot be started: install git"):
        read_git(str(repository))
