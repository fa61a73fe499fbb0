"""What 0.1 left behind goes on: stores and settings. Its own code made them: see `make_store` and `make_postgres`."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zstandard
from click.testing import CliRunner

from support.postgres import postgres
from unstale.adapters.postgres_store import PostgresStore
from unstale.adapters.sqlite_store import SqliteStore
from unstale.cli.main import unstale
from unstale.cli.settings import load
from unstale.core.learning.state import WIDTH, kept
from unstale.engine.config import EngineConfig
from unstale.engine.host_limits import HOME, HostLimits
from unstale.engine.loop import Engine
from unstale.engine.store_executor import StoreExecutor
from unstale.keeper.outcomes import Answer
from unstale.ports import Claim, Fetched, Store
from unstale.sim.virtual import START, VirtualClock, in_virtual_time

HERE = Path(__file__).parent
HOUR = 3600.0
#: what 0.1 itself said of the store when it had made it
TOLD: dict[str, Any] = json.loads((HERE / "store-0.1.json").read_text("utf-8"))
#: settings as the documentation of 0.1 shows them
SETTINGS = """
budget = "20000/day"
windows = ["22:00-06:00 Mon-Fri Europe/Berlin", "00:00-24:00 Sat,Sun Europe/Berlin"]

[http]
contact = "ops@example.org"
allow_networks = ["10.0.0.0/8"]

[hosts."slow.example.org"]
spacing = "30s"
budget = "100/day"

[defaults]
max_interval = "7d"
headers = { Accept-Language = "en" }
normalise = { selectors = ["div.clock"], pointers = ["/meta/time"], whitespace = true }

[[on_change]]
webhook = "https://hooks.example.org/changed"
secret = "$HOOK_SECRET"

[[on_change]]
log = "changes.jsonl"
"""
#: every name that 0.1 knew, with its default as it was written
NAMES = """
store = "unstale.db"
budget = "1000/day"
objective = "freshness"
burst = "auto"
windows = []
keep = 3
horizon = "90d"
[http]
agent = ""
contact = ""
connections = 512
concurrency = 2
spacing = "1s"
timeout = "30s"
limit = "16MiB"
robots = true
proxy = ""
ca_file = ""
allow_networks = []
[files]
roots = []
schemes = []
[sql]
target = "unstale-tables.db"
[hosts."a.example"]
spacing = "1s"
concurrency = 2
budget = ""
windows = []
[defaults]
weight = 1
cost = 1
min_interval = "0s"
max_interval = ""
headers = {}
normalise = {}
[server]
listen = "127.0.0.1:8600"
token = "$UNSTALE_TOKEN"
names = []
weigh = false
reader_password = ""
operator_password = ""
hub_secret = ""
[replicas]
name = ""
upstream = ""
select = "*"
token = ""
peers = []
rate = "1/min"
ask = 1
share = "256KiB"
tell = false
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "store.db"
    file.write_bytes(zstandard.ZstdDecompressor().decompress((HERE / "store-0.1.db.zst").read_bytes()))
    return file


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, path: Path) -> Iterator[Store]:
    if request.param == "sqlite":
        with closing(SqliteStore(path)) as opened:
            yield opened
        return
    with postgres() as server:
        server.run(zstandard.ZstdDecompressor().decompress((HERE / "store-0.1.sql.zst").read_bytes()).decode())
        with closing(PostgresStore(server.address(), own_time=False)) as moved:
            yield moved


def test_a_store_of_0_1_holds_what_it_held(store: Store) -> None:
    fleet = store.fleet(WIDTH)
    sources = fleet.source.tolist()
    assert [one.address for one in store.listings(sources)] == TOLD["addresses"]
    assert fleet.weight.tolist() == TOLD["weight"]
    assert (fleet.due.tolist(), fleet.last.tolist()) == (TOLD["due"], TOLD["last"])
    # What polls said beside beliefs was not kept then: zeros follow.
    width = len(TOLD["beliefs"][0])
    assert fleet.beliefs[:, :width].tolist() == TOLD["beliefs"]
    assert not fleet.beliefs[:, width:].any()
    assert fleet.settings["learner"].hex() == TOLD["learner"]
    assert fleet.price is not None
    assert fleet.price.price == TOLD["price"]
    assert [len(store.observations(source, 10_000)) for source in sources] == TOLD["polls"]
    copies = [store.copy(source) for source in sources]
    assert [copy.body.data.decode() for copy in copies if copy is not None] == TOLD["copies"]
    assert store.counters().items() >= TOLD["counters"].items()
    assert store.verify() == []


def test_the_commands_read_it(path: Path) -> None:
    said = CliRunner().invoke(unstale, ["status", "--json", "--store", str(path)])
    assert said.exit_code == 0, said.output
    assert json.loads(said.output)["sources"]["total"] == len(TOLD["addresses"])
    checked = CliRunner().invoke(unstale, ["doctor", "--store", str(path)])
    # All that it finds is that nobody polls: replaying what 0.1 observed gives what it had learned.
    assert "6 sources replayed, 348 polls" in checked.output
    assert "no engine is running" in checked.output
    assert "1 finding\n" in checked.output


def test_an_engine_goes_on_with_what_it_had_learned(path: Path) -> None:
    store = SqliteStore(path)
    begin = START + 6 * HOUR
    polled: list[int] = []

    async def body(clock: VirtualClock, stop: asyncio.Event) -> Engine:
        async def look(claim: Claim) -> Fetched:
            polled.append(claim.source)
            return Fetched(Answer.CHANGED, clock.now(), body=str(clock.now() // HOUR).encode(), status=200)

        limits = HostLimits(lambda host: HOME)
        engine = Engine(
            StoreExecutor(lambda: store, threads=False), EngineConfig(60.0 / HOUR), clock, look, host_limits=limits
        )
        began = asyncio.create_task(engine.run(stop))
        await clock.sleep(1.0)
        # Before any poll: what was learned is what 0.1 had kept.
        state = np.frombuffer(kept(engine.scheduler.learner))
        np.testing.assert_array_equal(state, np.frombuffer(bytes.fromhex(TOLD["learner"])))
        await began
        return engine

    engine = in_virtual_time(body, begin + HOUR, begin)
    # Sixty an hour are allowed to six sources, whose price is found anew; burst may bring some more.
    assert 45 <= len(polled) <= 75
    assert engine.counters.polls == len(polled)
    assert store.counters()["recorded"] == TOLD["counters"]["recorded"] + len(polled)
    assert store.verify() == []
    store.close()


def test_settings_as_0_1_documented_them_mean_what_they_meant(tmp_path: Path) -> None:
    (tmp_path / "unstale.toml").write_text(SETTINGS, "utf-8")
    settings = load(tmp_path / "unstale.toml")
    assert settings.budget == 20_000 / 86_400
    assert len(settings.windows) == 2
    assert settings.host("slow.example.org").spacing == 30.0
    assert settings.host("slow.example.org").budget == 100 / 86_400
    assert settings.defaults.max_interval == 7 * 86_400.0
    assert settings.on_change[1].log == str(tmp_path / "changes.jsonl")


def test_every_name_that_0_1_knew_is_known(tmp_path: Path) -> None:
    (tmp_path / "unstale.toml").write_text(NAMES, "utf-8")
    settings, usual = load(tmp_path / "unstale.toml"), load()
    assert settings.http == usual.http
    assert (settings.budget, settings.burst, settings.horizon) == (usual.budget, usual.burst, usual.horizon)
    assert (settings.server, settings.replicas, settings.defaults) == (usual.server, usual.replicas, usual.defaults)
    assert settings.host("a.example").budget == math.inf
