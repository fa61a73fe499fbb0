"""Plans in parts are the plans of one table, whoever computed which part."""

from __future__ import annotations

import contextlib
import io
import json
import math
import multiprocessing
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from support.object_store import ObjectStore
from unstale.cli.plan import plan as plan_command
from unstale.errors import InfeasibleError, InputError, MissingExtraError, UnstaleError
from unstale.planning import by_host, parts, twice
from unstale.planning.distributed import plan_parts
from unstale.planning.engines import engine_of
from unstale.planning.engines.processes import Processes
from unstale.planning.fleet_plan import FleetPlan
from unstale.planning.parts_plan import PartsPlan
from unstale.planning.planner import plan

N = 3_000


class Here:
    """An engine without workers, so that a test sees everything."""

    def map(self, work: Callable[..., Any], things: Sequence[Any], *same: Any) -> list[Any]:
        return [work(thing, *same) for thing in things]

    def close(self) -> None:
        pass


def fleet(**more: Any) -> pa.Table:
    rng = np.random.default_rng(3)
    columns = {"id": [f"s{i}" for i in range(N)], "change_rate": rng.lognormal(0, 2, N), "kept": np.arange(N)}
    return pa.table(columns | more)


def weighed(**more: Any) -> pa.Table:
    rng = np.random.default_rng(4)
    return fleet(weight=rng.pareto(2, N), cost=rng.uniform(0.5, 3, N), **more)


def bounded() -> pa.Table:
    rng = np.random.default_rng(5)
    return weighed(
        max_interval=[f"{20 + i % 7}d" if i % 5 == 0 else None for i in range(N)],
        min_interval=np.where(rng.random(N) < 0.2, 0.5, 0.0),
    )


def split(table: pa.Table, folder: Path, count: int = 3, group: int = 400) -> str:
    """A table as files of unequal length, in row groups."""
    folder.mkdir(parents=True, exist_ok=True)
    edges = np.linspace(0, 1, count + 1) ** 1.5 * table.num_rows
    for i, (a, b) in enumerate(zip(edges.astype(int), edges.astype(int)[1:], strict=False)):
        pq.write_table(table.slice(a, b - a), folder / f"part-{i}.parquet", row_group_size=group)
    return f"{folder}/*.parquet"


def joined(folder: Path) -> pa.Table:
    return pa.concat_tables([pq.read_table(f) for f in sorted(folder.glob("*.parquet"))])


def same(got: PartsPlan, want: FleetPlan, table: pa.Table) -> None:
    """Equal to 1e-9 in price, rates, and everything that is said or written."""
    assert got.price == pytest.approx(want.price, rel=1e-9)
    rates = table.column("sync_rate").to_numpy()
    assert np.abs(rates - want.sync_rate).max() <= 1e-9 * want.sync_rate.max()
    assert table.column_names == want.table().column_names
    for name in ("id", "kept"):
        assert table.column(name).to_pylist() == want.sources.table.column(name).to_pylist()
    for name, value in want.summary().items():
        if isinstance(value, float):
            assert got.summary()[name] == pytest.approx(value, rel=1e-9), name
    assert got.summary()["abandoned"] == want.summary()["abandoned"]
    assert got.summary()["certificate"]["budget"] < 1e-9
    assert got.summary()["certificate"]["stationary"] < 1e-9
    assert got.summary()["certificate"]["at_bounds"] < 1e-9


@pytest.mark.parametrize("make", [fleet, weighed, bounded], ids=["plain", "weights and costs", "bounds"])
@pytest.mark.parametrize(
    "terms",
    [{"budget": "900/day"}, {"budget": 900, "objective": "age"}, {"target": 0.4}, {"budget": 900, "order": "random"}],
    ids=["freshness", "age", "target", "random"],
)
def test_plans_in_parts_are_plans(
    tmp_path: Path, make: Callable[[], pa.Table], terms: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "BATCH", 250)
    monkeypatch.setattr(parts, "PART", 500)
    table = make()
    pattern = split(table, tmp_path / "in")
    got = plan_parts(pattern, Here(), output=str(tmp_path / "out"), **terms)
    same(got, plan(table, **terms), joined(tmp_path / "out"))
    assert got.files == 3
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == [f"part-{i}.parquet" for i in range(3)]


def test_sources_that_leave_together_share_what_is_left(tmp_path: Path) -> None:
    # no price spends 1600: below 1/4 those of rate 4 come all at once, with a poll in nine days at least
    table = fleet(weight=np.ones(N)).set_column(1, "change_rate", [np.where(np.arange(N) % 2, 1.0, 4.0)])
    got = plan_parts(split(table, tmp_path / "in"), Here(), budget=1_600, output=str(tmp_path / "out"))
    assert 0 < got.decision.share < 1
    assert got.price == pytest.approx(0.25, rel=1e-12)
    same(got, plan(table, budget=1_600), joined(tmp_path / "out"))


@pytest.mark.parametrize(
    ("budget", "price"),
    [(1e9, 0.0), (N / 20, None)],
    ids=["more than the shortest intervals take", "what the longest intervals take"],
)
def test_bounds_that_leave_no_choice(tmp_path: Path, budget: float, price: float | None) -> None:
    table = weighed(min_interval=np.full(N, 0.5), max_interval=np.full(N, 20.0))
    table = table.set_column(table.column_names.index("cost"), "cost", [np.ones(N)])
    got = plan_parts(split(table, tmp_path / "in"), Here(), budget=budget, output=str(tmp_path / "out"))
    want = plan(table, budget=budget)
    assert want.price == price or price is None
    same(got, want, joined(tmp_path / "out"))


def test_what_never_changes_is_not_polled(tmp_path: Path) -> None:
    table = fleet().set_column(1, "change_rate", [np.zeros(N)])
    got = plan_parts(split(table, tmp_path / "in"), Here(), budget=10)
    assert (got.price, got.spent, got.summary()["freshness"]) == (0.0, 0.0, 1.0)


def test_no_budget_at_all_polls_nothing(tmp_path: Path) -> None:
    got = plan_parts(split(weighed(), tmp_path / "in"), Here(), budget=0)
    assert got.spent == 0.0
    assert got.price == pytest.approx(plan(weighed(), budget=0).price, rel=1e-12)


def test_rates_with_units_in_one_file_and_numbers_in_another(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": ["a"], "change_rate": ["2/day"]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"id": [7], "change_rate": [3.0], "max_interval": ["2d"]}), tmp_path / "b.parquet")
    got = plan_parts(str(tmp_path), Here(), budget=2)
    want = plan(rates=[2, 3], max_interval=[np.inf, 2], budget=2)
    assert got.price == pytest.approx(want.price, rel=1e-9)


@pytest.mark.slow
def test_the_answer_does_not_depend_on_the_engine(tmp_path: Path) -> None:
    pattern = split(weighed(), tmp_path / "in")
    here = plan_parts(pattern, Here(), budget=900)
    engine = engine_of("processes:2")
    try:
        there = plan_parts(pattern, engine, budget=900)
        # How far from its condition the plan is, is rounding alone: nothing to be compared.
        assert max(there.measured.stationary, here.measured.stationary) < 1e-12
        measured = replace(there.measured, stationary=here.measured.stationary)
        assert replace(there, measured=measured) == here
    finally:
        engine.close()


def test_a_killed_process_is_replaced() -> None:
    before = set(multiprocessing.active_children())
    engine = Processes(2)
    try:
        assert engine.map(math.sqrt, [1, 4, 9, 16]) == [1, 2, 3, 4]
        victim = (set(multiprocessing.active_children()) - before).pop()
        victim.kill()
        victim.join()
        assert engine.map(math.sqrt, [1, 4, 9, 16]) == [1, 2, 3, 4]
        with pytest.raises(ValueError, match="math domain error"):
            engine.map(math.sqrt, [1, -1])
        with pytest.raises(UnstaleError, match="engine processes:2 lost a process 4 times"):
            engine.map(signal.raise_signal, [signal.SIGKILL])
        assert engine.map(math.sqrt, [4]) == [2]
    finally:
        engine.close()


def test_what_is_wrong_is_said_with_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "BATCH", 250)
    rates = np.ones(N)
    rates[-1] = -2.0
    pattern = split(fleet().set_column(1, "change_rate", [rates]), tmp_path / "in")
    with pytest.raises(InputError, match=r"part-2.parquet', after row 1,250: row 118 \(id 's2999'\): change_rate -2"):
        plan_parts(pattern, Here(), budget=1)
    with pytest.raises(InfeasibleError, match="cannot meet the longest intervals, which need 3000"):
        plan_parts(split(fleet(max_interval=np.ones(N)), tmp_path / "b"), Here(), budget=1)
    with pytest.raises(InputError, match="cannot be reached, the bounds leave"):
        plan_parts(split(fleet(min_interval=np.ones(N)), tmp_path / "c"), Here(), target=0.99)
    (tmp_path / "in/part-1.parquet").write_bytes(b"PAR1 or so")
    with pytest.raises(InputError, match=r"part-1.parquet' cannot be read as parquet"):
        plan_parts(pattern, Here(), budget=1)
    pq.write_table(fleet().slice(0, 0), tmp_path / "none.parquet")
    with pytest.raises(InputError, match="have no sources"):
        plan_parts(str(tmp_path / "none.parquet"), Here(), budget=1)
    pq.write_table(pa.table({"change_rate": [1.0]}), tmp_path / "nameless.parquet")
    with pytest.raises(InputError, match="column 'id' is missing"):
        plan_parts(str(tmp_path / "nameless.parquet"), Here(), budget=1)


def test_files_are_found_and_kept(tmp_path: Path) -> None:
    pattern = split(fleet(), tmp_path / "in")
    want = [str(tmp_path / f"in/part-{i}.parquet") for i in range(3)]
    assert parts.files_of(pattern) == want
    assert parts.files_of(str(tmp_path / "in")) == want
    assert parts.files_of(f"{tmp_path}/*/part-[12].parquet") == want[1:]
    addresses = [Path(file).as_uri() for file in want]
    assert parts.files_of(f"file://{tmp_path}/in/*.parquet") == addresses == parts.files_of(f"{tmp_path.as_uri()}/in")
    assert sum(part.rows for address in addresses for part in parts.parts_of(address)) == N
    with pytest.raises(InputError, match="is the folder that is read"):
        plan_parts(pattern, Here(), budget=1, output=str(tmp_path / "out/../in"))
    split(fleet(), tmp_path / "in2", count=1)
    with pytest.raises(InputError, match=r"'part-0.parquet' is there twice"):
        plan_parts(f"{tmp_path}/in*/*.parquet", Here(), budget=1, output=str(tmp_path / "out"))
    (tmp_path / "full").touch()
    with pytest.raises(InputError, match="cannot be written"):
        plan_parts(pattern, Here(), budget=1, output=str(tmp_path / "full"))
    (tmp_path / "in/notes.txt").touch()
    with pytest.raises(InputError, match="is not Parquet"):
        parts.files_of(f"{tmp_path}/in/*")
    with pytest.raises(InputError, match="cannot be opened"):
        parts.files_of("gopher://x/*.parquet")


def test_a_file_in_a_store_by_address(tmp_path: Path) -> None:
    table = weighed()
    split(table, tmp_path / "in")
    got = plan_parts(f"file://{tmp_path}/in", Here(), budget=900, output=f"file://{tmp_path}/out")
    same(got, plan(table, budget=900), joined(tmp_path / "out"))


def test_files_in_an_object_store(monkeypatch: pytest.MonkeyPatch) -> None:
    names = {"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "y", "AWS_DEFAULT_REGION": "eu-west-1"}
    for name, value in names.items():
        monkeypatch.setenv(name, value)
    with ObjectStore() as store:
        monkeypatch.setenv("AWS_ENDPOINT_URL", store.endpoint)
        for i in range(2):
            data = io.BytesIO()
            pq.write_table(pa.table({"id": [i], "change_rate": [1.0 + i]}), data)
            store.objects[f"fleet/{i}.parquet"] = data.getvalue()
        got = plan_parts("s3://bucket/fleet/*.parquet", Here(), budget=2)
    assert got.files == 2
    assert got.price == pytest.approx(plan(rates=[1, 2], budget=2).price, rel=1e-9)


def test_drafts_of_the_dead_are_removed(tmp_path: Path) -> None:
    pattern = split(fleet(), tmp_path / "in")
    (tmp_path / "out").mkdir()
    (tmp_path / "out/.part-1.parquet.0a1b2c3d").write_bytes(b"half a plan")
    plan_parts(pattern, Here(), budget=100, output=str(tmp_path / "out"))
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == [f"part-{i}.parquet" for i in range(3)]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("spark", "is not known"),
        ("processes:", "no number of workers"),
        ("processes:0", "no number of workers"),
        ("dask:many", "no number of workers"),
    ],
)
def test_engines_that_are_none(text: str, why: str) -> None:
    with pytest.raises(InputError, match=why):
        engine_of(text)


def test_without_dask_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingExtraError, match=r"dask is not installed, this needs it: pip install 'unstale\[dask\]'"):
        engine_of("dask")


@pytest.mark.slow
def test_the_command(tmp_path: Path) -> None:
    pattern = split(weighed(), tmp_path / "in")
    words = [pattern, "--budget", "900/day", "--engine", "processes:1", "-o", str(tmp_path / "out")]
    done = CliRunner().invoke(plan_command, words)
    assert done.exit_code == 0, done.output
    assert "3,000 sources, 900 of 900 spent per day" in done.output
    assert f"The full plan is in {tmp_path / 'out'}: 3 files." in done.output.replace("\n", "")
    refused = CliRunner().invoke(plan_command, [pattern, "--budget", "9/day", "--explain", "s1"])
    assert isinstance(refused.exception, InputError)
    assert "in parts knows no --explain" in str(refused.exception)


def hosted() -> pa.Table:
    """Hosts of very different sizes, in no order; every hundredth source has none, and is alone."""
    rng = np.random.default_rng(6)
    names = np.array([f"h{int(k)}.example" if i % 100 else "" for i, k in enumerate(rng.pareto(0.7, N) * 3)])
    return bounded().append_column("host", pa.array(names))


@pytest.mark.parametrize(
    "terms",
    [
        {"budget": 900, "host_cap": 12.0},
        {"budget": 900, "host_cap": {"h0.example": "3/h", "h1.example": 90, "*": 25}, "objective": "age"},
        {"budget": 900, "host_cap": {"h0.example": 60}},
        {"target": 0.35, "host_cap": 20},
        {"budget": 1e7, "host_cap": 15},
    ],
    ids=["one for all", "by name", "only one host", "target", "more than hosts allow"],
)
def test_caps_of_hosts_hold_in_parts(tmp_path: Path, terms: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "BATCH", 250)
    monkeypatch.setattr(parts, "PART", 500)
    monkeypatch.setattr(by_host, "SHARD", 700)
    table = hosted()
    got = plan_parts(split(table, tmp_path / "in"), Here(), output=str(tmp_path / "out"), **terms)
    want = plan(table, **terms)
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == [f"hosts-{i:05}.parquet" for i in range(4)]
    made = joined(tmp_path / "out").sort_by("kept")
    same(got, want, made)
    assert got.summary()["certificate"]["hosts"] < 1e-9
    assert want.plan.host_price is not None
    assert (want.plan.host_price > 0).any(), "no cap binds: the test would show nothing"


def test_caps_that_name_nobody_and_hosts_that_are_missing(tmp_path: Path) -> None:
    pattern = split(hosted(), tmp_path / "in")
    with pytest.raises(InputError, match=r"host_cap 'h0\.exmaple' names no host of the files"):
        plan_parts(pattern, Here(), budget=1e4, host_cap={"h0.exmaple": 1.0})
    with pytest.raises(InputError, match="needs a host for each source"):
        plan_parts(split(fleet(), tmp_path / "none"), Here(), budget=10, host_cap=1.0)
    with pytest.raises(InfeasibleError, match=r"cap of host h0.example .* cannot meet the longest intervals"):
        plan_parts(pattern, Here(), budget=1e4, host_cap={"h0.example": 1e-3})


def test_an_id_twice_is_noticed_wherever_it_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "BATCH", 250)
    monkeypatch.setattr(twice, "ROUND", 1000)
    # Whatever its hash is, and so whichever round it is compared in.
    for other in range(41, 45):
        ids = [f"s{i}" for i in range(N)]
        ids[2777] = f"s{other}"
        pattern = split(fleet().set_column(0, "id", [ids]), tmp_path / f"in {other}")
        told = rf"part-2.parquet': row 1146: id 's{other}' stands in row {other + 1} of '.*part-0.parquet'"
        with pytest.raises(InputError, match=told):
            plan_parts(pattern, Here(), budget=1)


def test_ids_with_one_hash_are_still_two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(twice, "hashed", lambda ids: np.arange(len(ids), dtype=np.uint64) % np.uint64(7))
    plan_parts(split(fleet(), tmp_path / "in"), Here(), budget=10)


def test_workers_that_stand_elsewhere_write_where_the_plan_was_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Elsewhere(Here):
        def map(self, work: Callable[..., Any], things: Sequence[Any], *same: Any) -> list[Any]:
            with contextlib.chdir("/"):
                return super().map(work, things, *same)

    table = hosted()
    split(table, tmp_path / "in")
    monkeypatch.chdir(tmp_path)
    plan_parts("in/*.parquet", Elsewhere(), budget=900, output="out")
    plan_parts("in", Elsewhere(), budget=900, host_cap=12.0, output="capped")
    assert joined(tmp_path / "out").num_rows == joined(tmp_path / "capped").num_rows == N


@pytest.mark.parametrize("budget", [50.0, 73.0, 1000.0])
def test_an_age_that_does_no_harm_leaves_the_rest_unspent_in_parts_too(budget: float, tmp_path: Path) -> None:
    table = pa.table({"id": ["a", "b", "c"], "change_rate": [24.0, 0.14, 0.03], "weight": [5.0, 1.0, 1.0]})
    pq.write_table(table.slice(0, 2), tmp_path / "1.parquet")
    pq.write_table(table.slice(2), tmp_path / "2.parquet")
    made = plan_parts(str(tmp_path), Here(), budget=budget, objective="deadline:1h", output=str(tmp_path / "out"))
    whole = plan(table, budget=budget, objective="deadline:1h")
    assert made.spent == pytest.approx(min(budget, 72.0), rel=1e-10)
    assert made.price == pytest.approx(whole.price, rel=1e-9)
    assert max(made.summary()["certificate"].values()) < 1e-9
    written = pa.concat_tables(pq.read_table(tmp_path / "out" / f"{k}.parquet") for k in (1, 2))
    assert written.column("sync_rate").to_numpy() == pytest.approx(whole.sync_rate, rel=1e-9)
    asked = CliRunner().invoke(
        plan_command, [str(tmp_path / "1.parquet"), "--budget", "1000", "--objective", "deadline:1h", "--json"]
    )
    assert asked.exit_code == 0, asked.output
    assert json.loads(asked.stdout)["spent"] == pytest.approx(48.0, rel=1e-12)
