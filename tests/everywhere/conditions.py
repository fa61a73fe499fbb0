"""What differs from machine to machine, and how each difference is made on this one.

Rules of this file:
1. A condition that this machine cannot have says what is missing, in a sentence, and is left out.
2. Every pair of conditions of two kinds meets in some row: that is where failures come from, and it takes few rows.
"""

from __future__ import annotations

import itertools
import math
import os
import random
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

#: programs of Debian packages that some tests talk to
PACKAGED = ("curl", "wrk", "nginx", "varnishd", "chromium", "promtool", "mariadbd", "my_print_defaults", "firefox-esr")
TURKISH = {"COLUMNS": "60", "LC_ALL": "tr_TR.UTF-8", "TZ": "Pacific/Chatham"}
#: a company's proxy, accounts of servers, colours, another store: what nobody answers, or must not be written to
TALKATIVE = {
    **{f"{scheme}_proxy": "http://127.0.0.1:9" for scheme in ("http", "https", "all")},
    **{f"{scheme}_PROXY": "http://127.0.0.1:9" for scheme in ("HTTP", "HTTPS", "ALL")},
    "PGHOST": "192.0.2.1",
    "PGUSER": "somebody",
    "PGPASSWORD": "theirs",
    "PGOPTIONS": "-c search_path=theirs",
    "AWS_PROFILE": "theirs",
    "AWS_ACCESS_KEY_ID": "theirs",
    "MYSQL_TCP_PORT": "9",
    "MYSQL_PWD": "theirs",
    "FORCE_COLOR": "1",
    "TERM": "dumb",
    "REQUESTS_CA_BUNDLE": "/nowhere",
    "SSL_CERT_FILE": "/nowhere",
    "UNSTALE_STORE": "/nowhere/theirs.db",
    "UNSTALE_CONFIG": "/nowhere/theirs.toml",
    "UNSTALE_TOKEN": "theirs",
}
#: files of one's own are nobody else's, and few may be open at once, as macOS has it
PRIVATE, DESCRIPTORS = 0o077, 256


@dataclass(frozen=True, slots=True)
class Condition:
    """One way in which a machine may differ; `usual` ones are how this one is."""

    kind: str
    name: str
    environment: dict[str, str] = field(default_factory=dict)
    plugins: tuple[str, ...] = ()
    #: why it cannot be had here, empty if it can
    missing: str = ""


def conditions() -> list[Condition]:
    """All that are known, with what is missing here."""
    return [
        *pythons(),
        Condition("processor", "as it is"),
        Condition("processor", "plain", older_processor()),
        Condition("processor", "another's last bits", plugins=("support.other_processor",)),
        Condition("place", "as it is"),
        Condition("place", "narrow, Turkish, Chatham", TURKISH, missing=turkish()),
        Condition("place", "C locale", {"LC_ALL": "C", "TZ": "America/St_Johns", "COLUMNS": "300"}),
        Condition("order", "as written", {"PYTHONHASHSEED": "0"}),
        Condition("order", "shuffled", {"PYTHONHASHSEED": "7", "TEST_ORDER": "7"}, ("support.shuffled",)),
        Condition("folder", "as it is"),
        # Root may write everywhere, so that the second is a matter of who runs them: nobody meets both.
        Condition("folder", "spä ce, read-only"),
        Condition("user", "as it is"),
        Condition("user", "nobody", missing=nobody()),
        Condition("shell", "as it is"),
        Condition("shell", "talkative, private", TALKATIVE),
        Condition("load", "quiet"),
        Condition("load", "busy"),
        Condition("packages", "as installed"),
        Condition("packages", "none"),
    ]


def pythons() -> list[Condition]:
    """This Python, and the others that the product supports, where they are installed."""
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    found = [Condition("python", here, {"PYTHON": sys.executable})]
    for version in ("3.11", "3.12", "3.13"):
        if version != here:
            path = interpreter(version)
            found.append(
                Condition(
                    "python",
                    version,
                    {"PYTHON": path},
                    missing="" if path else f"no python{version} in PATH or under ~/.pyenv/versions",
                )
            )
    return found


def interpreter(version: str) -> str:
    """A Python of this version, empty if there is none: one that pyenv only knows the name of does not count."""
    own = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python{version}"))
    for path in (*map(str, reversed(own)), shutil.which(f"python{version}")):
        if path and subprocess.run([path, "-c", ""], capture_output=True, check=False).returncode == 0:
            return path
    return ""


def older_processor() -> dict[str, str]:
    """Settings that make NumPy, BLAS, numba and the C library use the instructions that every processor has."""
    ask = "import numpy; print(*numpy._core._multiarray_umath.__cpu_dispatch__)"
    listed = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True).stdout.split()
    ask = "import numpy; print(*[k for k, v in numpy._core._multiarray_umath.__cpu_features__.items() if v])"
    has = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True).stdout.split()
    return {
        "NPY_DISABLE_CPU_FEATURES": " ".join(name for name in listed if name in has),
        "OPENBLAS_CORETYPE": "Nehalem",
        "NUMBA_CPU_NAME": "generic",
        "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-AVX512F",
    }


def turkish() -> str:
    """What keeps the Turkish locale away."""
    try:
        listed = subprocess.run(["locale", "-a"], capture_output=True, text=True, check=False).stdout
    except OSError:
        listed = ""
    if "tr_TR.utf8" in listed:
        return ""
    return "tr_TR.UTF-8 is not made: install the Debian package locales, then localedef -i tr_TR -f UTF-8 tr_TR.UTF-8"


def nobody() -> str:
    """What keeps tests from being run as another user."""
    if os.geteuid() != 0:
        return "only root can run them as nobody; they are run as a plain user anyway"
    try:
        subprocess.run(["cat", __file__], user="nobody", capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "nobody may not read these sources: they are in a folder that only root reads"
    return ""


def rows(known: Sequence[Condition]) -> list[dict[str, Condition]]:
    """Few rows, each with one condition of every kind, in which every pair of two kinds meets."""
    kinds: dict[str, list[Condition]] = {}
    for one in known:
        if not one.missing:
            kinds.setdefault(one.kind, []).append(one)
    names = {kind: [one.name for one in of_kind] for kind, of_kind in kinds.items()}
    every = {
        frozenset({(a, x), (b, y)})
        for a, b in itertools.combinations(names, 2)
        for x, y in itertools.product(names[a], names[b])
    }
    # The least is what the two longest kinds need between them; one row more wherever no throw of the dice does.
    # Of so many rows, few are busy ones, which take twice as long: at least one for each choice of the longest kind.
    sizes = sorted(map(len, names.values()))
    for count in itertools.count(math.prod(sizes[-2:])):
        for busy in range(sizes[-1], count // 2 + 1):
            for seed in range(64):
                found = _climbed(names, every, count, busy, random.Random(seed))
                if found:
                    return [
                        {kind: next(one for one in kinds[kind] if one.name == row[kind]) for kind in row}
                        for row in found
                    ]
    raise AssertionError


def _climbed(
    names: dict[str, list[str]], every: set[frozenset[tuple[str, str]]], count: int, busy: int, dice: random.Random
) -> list[dict[str, str]]:
    """So many rows by chance, changed place by place while no fewer pairs meet; none if some pairs still do not.

    The last ones are the busy ones, so that what is quiet is known soon.
    """
    rows = [{kind: dice.choice(choice) for kind, choice in names.items()} for _ in range(count)]
    for at, row in enumerate(rows):
        row["load"] = "quiet" if at < count - busy else "busy"
    met = Counter(pair for row in rows for pair in _pairs(row))
    missing = len(every) - len(met)
    for _ in range(4000):
        if not missing:
            return rows
        at, kind = dice.randrange(count), dice.choice(sorted(names.keys() - {"load"}))
        row = {**rows[at], kind: dice.choice(names[kind])}
        before, after = _pairs(rows[at]), _pairs(row)
        left = missing + sum(met[pair] == 1 for pair in before - after) - sum(not met[pair] for pair in after - before)
        if left <= missing:
            met.subtract(before - after)
            met.update(after - before)
            rows[at], missing = row, left
    return []


def _pairs(row: dict[str, str]) -> set[frozenset[tuple[str, str]]]:
    return {frozenset(pair) for pair in itertools.combinations(row.items(), 2)}
