"""What is in deploy/: it names files, commands, options and metrics that exist."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import click
import pytest

from support.asgi import asked
from support.booked import Booked
from support.documents import ROOT
from unstale.cli.main import unstale
from unstale.keeper.outcomes import Answer
from unstale.ports import Price

DEPLOY = ROOT / "deploy"
SERVICE = (DEPLOY / "unstale.service").read_text("utf-8")
CONTAINER = (DEPLOY / "Containerfile").read_text("utf-8")
GRAFANA = json.loads((DEPLOY / "grafana.json").read_text("utf-8"))


def parsed(words: list[str]) -> click.Context:
    """The words after `unstale`, as the command itself would read them."""
    command = unstale.get_command(click.Context(unstale), words[0])
    assert command is not None, words
    return command.make_context(words[0], words[1:])


def said(name: str) -> list[str]:
    """The values of a line of the unit."""
    return re.findall(rf"^{name}=(.*)$", SERVICE, re.MULTILINE)


@pytest.fixture
def metrics(tmp_path: Path) -> dict[str, set[str]]:
    """Each metric that the server tells, with the names of its labels."""
    kept = Booked(tmp_path / "a.db", 2)
    kept.poll(b"a")
    now = kept.clock()
    kept.store.record([], price=Price(now - 60.0, 2.0, 0.1, fresh=0.7, even=0.5))
    kept.store.record([], settings={"engine": json.dumps({"at": now, "started_at": now - 9, "spent": 3.0}).encode()})
    assert asked(kept.app, "/copies/1").status
    text = asked(kept.app, "/metrics").body.decode()
    kept.close()
    found: dict[str, set[str]] = {}
    for name, labels in re.findall(r"^(unstale_\w+)(?:\{(.*)\})? ", text, re.MULTILINE):
        found.setdefault(name, set()).update(re.findall(r'(\w+)="', labels))
    return found


def expressions() -> list[str]:
    return [target["expr"] for panel in GRAFANA["panels"] for target in panel["targets"]]


def test_every_metric_that_grafana_asks_for_is_told(metrics: dict[str, set[str]]) -> None:
    variables: list[dict[str, Any]] = GRAFANA["templating"]["list"]
    asked_for = expressions() + [json.dumps(variable) for variable in variables]
    names = {name for text in asked_for for name in re.findall(r"\bunstale_\w+", text)}
    # What even polling would do is told once enough was learned, and workers where there can be some.
    later = {"unstale_even_freshness_ratio", "unstale_workers"}
    assert names - later <= set(metrics)
    # And the other way: nothing that is told is left out of the picture.
    assert set(metrics) <= names


def test_labels_that_grafana_splits_by_are_told(metrics: dict[str, set[str]]) -> None:
    for text in expressions():
        name = re.search(r"unstale_\w+", text)
        assert name is not None
        used = set(re.findall(r"by \((\w+)\)", text)) | set(re.findall(r"[{,](\w+)=", text)) - {"job"}
        assert used <= metrics.get(name[0], set()), text
    answers = {answer.value for answer in Answer}
    assert "failed" in answers


def test_rates_are_taken_of_counters_only() -> None:
    for text in expressions():
        for name in re.findall(r"rate\((\w+)", text):
            assert name.endswith("_total")
        for name in re.findall(r"unstale_\w+_total", text):
            assert f"rate({name}" in text


def test_panels_do_not_overlap_and_have_numbers_of_their_own() -> None:
    cells: set[tuple[int, int]] = set()
    for panel in GRAFANA["panels"]:
        at = panel["gridPos"]
        own = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not own & cells, panel["title"]
        assert max(x for x, _ in own) < 24
        cells |= own
    assert len({panel["id"] for panel in GRAFANA["panels"]}) == len(GRAFANA["panels"])


def test_the_unit_starts_a_command_that_exists() -> None:
    (start,) = said("ExecStart")
    words = shlex.split(start)
    assert Path(words[0]).name == "unstale"
    assert parsed(words[1:]).params["events"] is True


def test_the_unit_keeps_the_store_where_it_may_write() -> None:
    names = dict(pair.split("=", 1) for line in said("Environment") for pair in line.split())
    (folder,) = said("StateDirectory")
    assert names["UNSTALE_STORE"].startswith(f"%S/{folder}/")
    # Relative paths are meant from the folder of the settings, which is read-only here.
    assert names["UNSTALE_CONFIG"].startswith("/etc/")
    assert said("ProtectSystem") == ["strict"]
    assert said("DynamicUser") == ["yes"]
    known = {option.envvar for option in parsed(["run"]).command.params if isinstance(option, click.Option)}
    assert {"UNSTALE_STORE", "UNSTALE_CONFIG"} <= known
    # What is in flight has ten seconds to end, before systemd loses patience.
    from unstale.cli.compose import config_of
    from unstale.cli.settings import Settings

    assert int(said("TimeoutStopSec")[0]) > 2 * config_of(Settings()).grace


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_understands_the_unit(tmp_path: Path) -> None:
    program = shutil.which("true")
    unit = tmp_path / "unstale.service"
    unit.write_text(SERVICE.replace("/opt/unstale/bin/unstale", str(program)))
    done = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.strip()) == (0, "")


def test_the_container_is_built_from_files_that_exist_and_starts_what_exists() -> None:
    for line in re.findall(r"^COPY (?!--from)(.*)$", CONTAINER, re.MULTILINE):
        *files, _ = line.split()
        assert all((ROOT / file).exists() for file in files), line
    for words in re.findall(r"^(?:CMD|HEALTHCHECK .*CMD) (\[.*\])$", CONTAINER, re.MULTILINE):
        listed = json.loads(words)
        parsed(listed[1:] if listed[0] == "unstale" else listed)
    assert re.search(r"^USER (\d+):\1$", CONTAINER, re.MULTILINE), "not root"
    assert CONTAINER.index("USER ") < CONTAINER.index("ENTRYPOINT")
    (port,) = re.findall(r"^EXPOSE (\d+)$", CONTAINER, re.MULTILINE)
    assert f"0.0.0.0:{port}" in CONTAINER


def test_what_the_container_needs_python_for_is_locked() -> None:
    (version,) = set(re.findall(r"python:([\d.]+)-slim", CONTAINER))
    needed = re.search(r'requires-python = ">=([\d.]+)"', (ROOT / "pyproject.toml").read_text("utf-8"))
    assert needed is not None
    assert tuple(map(int, version.split("."))) >= tuple(map(int, needed[1].split(".")))
    assert "--require-hashes" in CONTAINER
