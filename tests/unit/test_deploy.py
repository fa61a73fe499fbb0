"""What is in deploy/: it names files, commands, options and metrics that exist."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from support.asgi import asked
from support.booked import Booked
from support.documents import ROOT
from unstale.cli.main import unstale
from unstale.cli.settings import load
from unstale.keeper.outcomes import Answer
from unstale.ports import CrewMember, Price
from unstale.server.metrics import workers
from unstale.service.records import EngineState

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
    (promised,) = kept.store.listings([1])
    kept.store.add([replace(promised, options={"fresh_within": "1h"})], now, duplicates="replace")
    kept.store.record([], price=Price(now - 60.0, 2.0, 0.1, fresh=0.7, even=0.5))
    kept.store.record([], settings={"engine": json.dumps({"at": now, "started_at": now - 9, "spent": 3.0}).encode()})
    assert asked(kept.app, "/copies/1").status
    text = asked(kept.app, "/metrics").body.decode()
    kept.close()
    found: dict[str, set[str]] = {}
    for name, labels in re.findall(r"^(unstale_\w+)(?:\{(.*)\})? ", text, re.MULTILINE):
        found.setdefault(name, set()).update(re.findall(r'(\w+)="', labels))
    return found


def of_workers() -> dict[str, set[str]]:
    """Each metric that is told of workers, with the names of its labels."""
    facts = ("polls", "changed", "unchanged", "failed", "spent", "in_flight", "late", "lag", "price", "started_at")
    one = CrewMember("w", 1.0, 0.5, 2.0, dict.fromkeys(facts, 1.0))
    engine = EngineState(True, 1.0, None, 1.0, 1.0, 1, 0, 0, 0, 0, 0, 0.0, crew=(one,), planner="w", planned_in=0.1)
    return {f"unstale_{name}": set(samples[0][0]) for name, _, _, samples in workers(engine)}


def expressions() -> list[str]:
    return [target["expr"] for panel in GRAFANA["panels"] for target in panel["targets"]]


def test_every_metric_that_grafana_asks_for_is_told(metrics: dict[str, set[str]]) -> None:
    variables: list[dict[str, Any]] = GRAFANA["templating"]["list"]
    asked_for = expressions() + [json.dumps(variable) for variable in variables]
    names = {name for text in asked_for for name in re.findall(r"\bunstale_\w+", text)}
    # What even polling would do is told once enough was learned, and workers where there can be some.
    later = {"unstale_even_freshness_ratio", "unstale_workers"}
    assert names - later - set(of_workers()) <= set(metrics)
    # And the other way: nothing that is told is left out of the picture.
    assert set(metrics) | set(of_workers()) <= names


def test_labels_that_grafana_splits_by_are_told(metrics: dict[str, set[str]]) -> None:
    for text in expressions():
        name = re.search(r"unstale_\w+", text)
        assert name is not None
        used = set(re.findall(r"by \((\w+)\)", text)) | set(re.findall(r"[{,](\w+)=", text)) - {"job"}
        assert used <= (metrics | of_workers()).get(name[0], set()), text
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


@pytest.mark.parametrize("name", ["unstale-worker@.service", "unstale-server.service"])
def test_units_of_a_fleet_start_what_exists_as_shut_in_as_the_one_engine(name: str, tmp_path: Path) -> None:
    text = (DEPLOY / name).read_text("utf-8")
    (start,) = re.findall(r"^ExecStart=(.*)$", text, re.MULTILINE)
    parsed(shlex.split(start)[1:])
    shut_in = re.findall(
        r"^(?:Protect|Private|Restrict|No|Capability|System|Dynamic|Lock|Remove|UMask).*$", SERVICE, re.M
    )
    assert len(shut_in) > 15
    assert set(shut_in) <= set(text.splitlines())
    if shutil.which("systemd-analyze") is not None:
        unit = tmp_path / name
        unit.write_text(text.replace("/opt/unstale/bin/unstale", str(shutil.which("true"))))
        done = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr.strip()) == (0, "")


def test_alerts_ask_for_metrics_and_labels_that_are_told(metrics: dict[str, set[str]]) -> None:
    known = metrics | of_workers()
    (group,) = yaml.safe_load((DEPLOY / "alerts.yaml").read_text("utf-8"))["groups"]
    for rule in group["rules"]:
        names = re.findall(r"unstale_\w+", rule["expr"])
        assert names
        assert set(names) <= set(known), rule["alert"]
        told = set.union(*(known[name] for name in names)) | {"instance", "job"}
        assert set(re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"])) <= told


@pytest.mark.skipif(shutil.which("promtool") is None, reason="Prometheus is not installed")
def test_prometheus_understands_the_alerts_and_raises_them(tmp_path: Path) -> None:
    """A fleet whose worker w2 is late and behind, of which a fifth fails: Prometheus' own tests of rules."""
    series = {
        'unstale_sources{job="u",instance="i",state="failing"}': "20+0x400",
        'unstale_sources{job="u",instance="i",state="polled"}': "80+0x400",
        'unstale_engine_running{job="u",instance="i"}': "0+0x400",
        'unstale_contract_sources{job="u",instance="i",contract="finance",state="broken"}': "3+0x400",
        'unstale_contract_sources{job="u",instance="i",contract="own",state="broken"}': "0+0x400",
        'unstale_worker_lag_seconds{job="u",instance="i",worker="w1"}': "1+0x400",
        'unstale_worker_lag_seconds{job="u",instance="i",worker="w2"}': "90+0x400",
        'unstale_worker_polls_total{job="u",instance="i",worker="w1",answer="changed"}': "0+60x400",
        'unstale_worker_late_total{job="u",instance="i",worker="w1"}': "0+1x400",
        'unstale_worker_polls_total{job="u",instance="i",worker="w2",answer="changed"}': "0+60x400",
        'unstale_worker_late_total{job="u",instance="i",worker="w2"}': "0+30x400",
    }
    expected = {
        "UnstaleFailing": [{}],
        "UnstaleNobodyPolls": [{}],
        "UnstaleWorkerBehind": [{"worker": "w2"}],
        "UnstaleWorkerLate": [{"worker": "w2"}],
        "UnstaleContractBroken": [{"contract": "finance", "state": "broken"}],
        "UnstaleNoPlan": [],
        "UnstaleWorkersRestart": [],
    }
    rules = {rule["alert"]: rule for rule in yaml.safe_load((DEPLOY / "alerts.yaml").read_text())["groups"][0]["rules"]}
    cases = [
        {
            "eval_time": "5h",
            "alertname": name,
            "exp_alerts": [
                {
                    "exp_labels": {"job": "u", "instance": "i", **rules[name]["labels"], **labels},
                    "exp_annotations": {
                        "summary": rules[name]["annotations"]["summary"]
                        .replace("{{ $labels.worker }}", labels.get("worker", ""))
                        .replace("{{ $labels.contract }}", labels.get("contract", ""))
                        .replace("{{ $value }}", "3")
                    },
                }
                for labels in raised
            ],
        }
        for name, raised in expected.items()
    ]
    given = [{"series": name, "values": values} for name, values in series.items()]
    test = {
        "rule_files": [str(DEPLOY / "alerts.yaml")],
        "tests": [{"interval": "1m", "input_series": given, "alert_rule_test": cases}],
    }
    (tmp_path / "test.yaml").write_text(yaml.safe_dump(test))
    done = subprocess.run(
        ["promtool", "test", "rules", str(tmp_path / "test.yaml")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_compose_and_kubernetes_start_what_exists_with_settings_that_are_read(tmp_path: Path) -> None:
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))["services"]
    ours = [service for service in compose.values() if service["image"] == "unstale"]
    wanted = [words for service in ours if (words := service.get("command"))]
    assert len(wanted) == 2
    documents = list(yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text("utf-8")))
    for one in documents:
        if one["kind"] == "Deployment":
            pod = one["spec"]["template"]
            assert one["spec"]["selector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()
            (container,) = pod["spec"]["containers"]
            wanted.append(container["args"])
            mounted = {mount["name"] for mount in container["volumeMounts"]}
            assert mounted <= {volume["name"] for volume in pod["spec"]["volumes"]}
            for probe in ("readinessProbe", "livenessProbe"):
                if probe in container:
                    assert container[probe]["httpGet"]["path"] in ("/readyz", "/healthz")
    assert {words[0] for words in wanted} == {"worker", "serve"}
    assert len(wanted) == 4
    for words in wanted:
        parsed(words)
    (own,) = [one["data"]["unstale.toml"] for one in documents if one["kind"] == "ConfigMap"]
    for number, text in enumerate((own, (DEPLOY / "fleet.toml").read_text("utf-8"))):
        (tmp_path / f"{number}.toml").write_text(text)
        assert load(str(tmp_path / f"{number}.toml")).store.startswith("postgresql://unstale:$UNSTALE_DB_PASSWORD@")


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


def test_what_is_asked_of_postgresql_is_what_the_measurements_go_by() -> None:
    page = (ROOT / "docs/howto/deploy.md").read_text("utf-8")
    asked_for = dict(
        re.findall(r"^(\w+) = (\w+)", page.partition('title="postgresql.conf"')[2].partition("```")[0], re.M)
    )
    bench = (ROOT / "bench/bench_large_plan.py").read_text("utf-8")
    assert asked_for == dict(re.findall(r'"(\w+)": "(\w+)"', bench.partition("SETTINGS = {")[2].partition("}")[0]))
    words = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))["services"]["db"]["command"]
    given = dict(word.split("=") for word in words if "=" in word)
    assert given == {name: value for name, value in asked_for.items() if name != "shared_buffers"}
    assert len(given) == 3
