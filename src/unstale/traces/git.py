"""The history of a git repository: each file, or the whole, is a source that changed with every commit."""

from __future__ import annotations

import os
import subprocess
import tempfile
from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Literal

import numpy as np
import pyarrow as pa

from unstale.core.trace import Trace
from unstale.errors import InputError, sentence
from unstale.traces.judge import judge
from unstale.traces.problems import Problems
from unstale.traces.times import FIRST, Times

#: before each commit's time: no path in a repository starts with a slash
_MARK = b"//"
#: what a repository's own configuration could make git run, or a user's could make it print
_CALM = ("core.fsmonitor=false", "core.hooksPath=/dev/null", "log.showRoot=true")
# The mailmap is off because a bare clone would look for it among contents that it may not have.
_LOG = (
    "log",
    "-z",
    "--first-parent",
    f"--format={_MARK.decode()}%ct",
    "--no-color",
    "--no-show-signature",
    "--no-mailmap",
)
_NAMES = ("-m", "--name-only", "--no-renames", "--no-relative", "--no-ext-diff", "--no-textconv")
_ALONE = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
    "LC_ALL": "C",
}


def read_git(
    repository: str, *, per: Literal["file", "repo"] = "file", since: float | None = None, now: float | None = None
) -> tuple[Trace, Problems]:
    """The changes of each file (by its path), or of the repository (by its folder's name), and what was wrong.

    The history is the one of the checked-out branch, first parents only: a merge changes what it brings in, at the
    time it was made; times are the committer's. A deletion is a change; a file that is renamed goes on as another.
    Nothing of the repository is executed, nothing is loaded from elsewhere, and bare clones, also those without file
    contents (`git clone --bare --filter=blob:none`), will do.
    """
    if not Path(repository).is_dir():
        remedy = "git clone --bare --filter=blob:none makes one" if "://" in repository else "check the path"
        raise InputError(sentence("repository", repr(repository), "is not a folder", remedy))
    if per == "file" and _said(repository, "rev-parse", "--is-shallow-repository") == "true":
        # its oldest commit would seem to make every file anew
        raise InputError(
            sentence(
                "repository",
                repr(repository),
                "is a shallow clone, which lacks the beginning",
                "git fetch --unshallow --filter=blob:none gets the rest",
            )
        )
    names: dict[bytes, int] = {}
    which, when = array("q"), array("q")
    time = 0
    for token, is_commit in _tokens(repository, per == "file", since):
        if is_commit:
            # A commit may carry any time; one that is no number becomes one that is no date.
            time = int(token) if token.lstrip(b"-").isdigit() and len(token) < 18 else int(FIRST) - 1
        if is_commit == (per == "repo"):
            which.append(names.setdefault(b"" if is_commit else token, len(names)))
            when.append(time)
    if not when:
        remedy = "give an earlier --since" if since is not None else "commit something first"
        raise InputError(sentence("repository", repr(repository), "has no change to import", remedy))
    texts = [name.decode("utf-8", "backslashreplace") for name in names] if per == "file" else [_name(repository)]
    # The log runs backward: turned round, only clocks that were wrong are out of order.
    codes = np.frombuffer(which, dtype=np.int64)[::-1]
    seconds = np.frombuffer(when, dtype=np.int64)[::-1].astype(np.float64)
    seconds = np.where(seconds >= FIRST, seconds, np.nan)
    none = np.zeros(len(seconds), dtype=bool)
    source = pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(texts, pa.string()))
    return judge(repository, source, Times(seconds, none, none), now=now)


def _tokens(repository: str, names: bool, since: float | None) -> Iterator[tuple[bytes, bool]]:
    """Each commit's time (True), newest first, followed by the paths it changed (False)."""
    # --since alone would stop at the first commit whose clock was wrong
    after = [] if since is None else [f"--since-as-filter=@{int(since)} +0000"]
    with tempfile.TemporaryFile() as said:
        git = _start(repository, [*_LOG, *(_NAMES if names else ()), *after, "HEAD", "--"], said)
        # Leaving early, by an error or a key, closes the pipe: git ends and is waited for.
        with git:
            assert git.stdout is not None
            yield from _split(git.stdout)
        if git.returncode:
            said.seek(0)
            raise _failed(repository, said.read(4096).decode("utf-8", "replace"))


def _said(repository: str, *words: str) -> str:
    """What git answers to a question; nothing if it cannot."""
    with _start(repository, words, subprocess.DEVNULL) as git:
        return git.communicate()[0].decode("utf-8", "replace").strip()


def _start(repository: str, words: Sequence[str], errors: int | IO[bytes]) -> subprocess.Popen[bytes]:
    calm = [part for setting in _CALM for part in ("-c", setting)]
    # Variables that point to another repository would win over -C.
    ours = {k: v for k, v in os.environ.items() if not k.startswith("GIT_") or k.startswith(("GIT_CONFIG", "GIT_EXEC"))}
    try:
        return subprocess.Popen(
            ["git", "--no-pager", "-C", repository, *calm, *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=ours | _ALONE,
        )
    except OSError as error:
        raise InputError(sentence("git", f"({error.strerror})", "cannot be started", "install git")) from None


def _split(stream: IO[bytes]) -> Iterator[tuple[bytes, bool]]:
    rest, after_commit = b"", False
    while part := stream.read(1 << 20):
        *whole, rest = (rest + part).split(b"\0")
        for token in whole:
            is_commit = token.startswith(_MARK)
            if is_commit:
                token = token[len(_MARK) :]
            elif after_commit:
                # git sets a commit apart from its paths with one line break
                token = token.removeprefix(b"\n")
            after_commit = is_commit
            if token or is_commit:
                yield token, is_commit


def _failed(repository: str, said: str) -> InputError:
    lines = [line for line in said.strip().splitlines() if not line.startswith("warning: ")]
    why = lines[0].removeprefix("fatal: ").removeprefix("error: ") if lines else "it says nothing"
    if "not a git repository" in why:
        return InputError(sentence("repository", repr(repository), "is not a git repository", "check the path"))
    if "dubious ownership" in why:
        remedy = "git config --global --add safe.directory with its path says that you trust it"
        return InputError(sentence("repository", repr(repository), "belongs to another user", remedy))
    if "revision 'HEAD'" in why or "ambiguous argument 'HEAD'" in why or "bad revision" in why:
        return InputError(sentence("repository", repr(repository), "has no commits", "commit something first"))
    if "lazy fetching disabled" in said or "promisor" in said:
        remedy = "clone it with --filter=blob:none or whole"
        return InputError(sentence("repository", repr(repository), "is a clone without lists of files", remedy))
    return InputError(sentence("repository", repr(repository), "cannot be read by git", why))


def _name(repository: str) -> str:
    folder = Path(repository).resolve()
    folder = folder.parent if folder.name == ".git" else folder
    return folder.name.removesuffix(".git") or repository
