"""Runs of copies in the words of OpenLineage: what its published schemas require is there, and nothing secret is."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import pytest

from unstale.adapters.lineage import LineageFile, dataset_of
from unstale.adapters.target_places import SchemaPlace
from unstale.cli.fetchers import Fetchers
from unstale.cli.settings import Files, Settings, Sql
from unstale.keeper.outcomes import Answer
from unstale.ports import Claim, Fetched

NOW = 1.8e9


def check(event: dict[str, Any]) -> None:
    """What the schemas of OpenLineage 2-0-2 and its facets require: names, and the formats of their values."""
    for name in ("eventTime", "producer", "schemaURL", "run", "job"):
        assert name in event, name
    assert event["eventType"] in ("START", "RUNNING", "COMPLETE", "ABORT", "FAIL", "OTHER")
    assert datetime.fromisoformat(event["eventTime"]).tzinfo is not None
    # Both are URIs by its schema, and that of the schema can be opened.
    assert urlsplit(event["producer"]).scheme
    assert urlsplit(event["schemaURL"]).scheme == "https"
    assert str(UUID(event["run"]["runId"])) == event["run"]["runId"]
    facets = [*event["run"]["facets"].values()]
    for named in (event["job"], *event["inputs"], *event["outputs"]):
        assert isinstance(named["namespace"], str)
        assert isinstance(named["name"], str)
        facets += [*named.get("facets", {}).values(), *named.get("outputFacets", {}).values()]
    for facet in facets:
        assert (urlsplit(facet["_producer"]).scheme, urlsplit(facet["_schemaURL"]).scheme) == ("urn", "https")
    for dataset in (*event["inputs"], *event["outputs"]):
        for field in dataset.get("facets", {}).get("schema", {}).get("fields", ()):
            assert set(field) - {"type", "description"} == {"name"}
        if "outputFacets" in dataset:
            assert isinstance(dataset["outputFacets"]["outputStatistics"]["rowCount"], int)
    if "errorMessage" in event["run"]["facets"]:
        assert set(event["run"]["facets"]["errorMessage"]) >= {"message", "programmingLanguage"}


def read(file: Path) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in file.read_text().splitlines()]
    for event in found:
        check(event)
    return found


def test_every_run_has_a_beginning_and_an_end(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "shop.db") as db:
        db.execute("CREATE TABLE orders(id INTEGER PRIMARY KEY, amount DECIMAL(9,2))")
        db.execute("INSERT INTO orders VALUES(1, 2.5), (2, 3.5)")
    db.close()
    sql = Sql(target=str(tmp_path / "copies.db"), lineage=str(tmp_path / "lineage.jsonl"))
    settings = replace(Settings(), files=replace(Files(), roots=(str(tmp_path),)), sql=sql)
    address = f"sqlite:///{tmp_path / 'shop.db'}#"

    async def scene() -> list[Answer]:
        fetchers, etag, answers = Fetchers(settings, lambda: NOW), None, []
        try:
            for table in ("orders", "orders", "nothing"):
                got = await fetchers.look(Claim(1, 1, f"{address}{table}", "sql", 0.0, etag=etag))
                etag = got.etag
                answers.append(got.answer)
        finally:
            await fetchers.close()
        return answers

    assert asyncio.run(scene()) == [Answer.CHANGED, Answer.UNCHANGED, Answer.FAILED]
    begun, done, again, failed = read(tmp_path / "lineage.jsonl")
    assert [one["eventType"] for one in (begun, done, again, failed)] == ["START", "COMPLETE", "START", "FAIL"]
    assert begun["run"]["runId"] == done["run"]["runId"] != again["run"]["runId"] == failed["run"]["runId"]
    assert begun["job"] == done["job"] != failed["job"]
    assert begun["eventTime"] == "2027-01-15T08:00:00.000+00:00"
    (source,), (copy,) = done["inputs"], done["outputs"]
    assert (source["namespace"], source["name"]) == ("file", f"{tmp_path / 'shop.db'}/orders")
    assert (copy["namespace"], copy["name"]) == ("file", f"{(tmp_path / 'copies.db').resolve()}/orders")
    assert [one["name"] for one in copy["facets"]["schema"]["fields"]] == ["id", "amount"]
    assert all("type" in one for one in copy["facets"]["schema"]["fields"])
    assert copy["outputFacets"]["outputStatistics"]["rowCount"] == 2
    assert "is not there" in failed["run"]["facets"]["errorMessage"]["message"]


def test_a_long_copy_is_told_when_it_has_begun_and_only_once(tmp_path: Path) -> None:
    lineage = LineageFile(
        tmp_path / "lineage.jsonl", SchemaPlace("postgresql://writer:$S@lake/dw", "shop"), lambda: NOW
    )
    run = lineage.run("mysql+pymysql://reader:$SECRET@db:3307/shop", {"table": "orders"})
    run.begun()
    run.begun()
    assert [one["eventType"] for one in read(tmp_path / "lineage.jsonl")] == ["START"]
    # It read everything, and found nothing new: it has an end all the same.
    run.ended(Fetched(Answer.UNCHANGED, NOW))
    begun, done = read(tmp_path / "lineage.jsonl")
    assert done["eventType"] == "COMPLETE"
    assert done["inputs"] == [{"namespace": "mysql://db:3307", "name": "shop.orders"}]
    assert done["outputs"] == [{"namespace": "postgres://lake:5432", "name": "dw.shop.orders"}]
    assert not any(word in json.dumps([begun, done]) for word in ("reader", "writer", "SECRET"))


def test_what_a_query_reads_is_not_told_and_a_file_that_cannot_be_written_ends_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run = LineageFile(tmp_path / "x.jsonl", tmp_path / "copies.db", lambda: NOW).run(
        "postgresql://db/shop", {"query": "SELECT 1"}
    )
    run.begun()
    (event,) = read(tmp_path / "x.jsonl")
    assert event["inputs"] == []
    LineageFile(tmp_path / "none/x.jsonl", tmp_path / "copies.db", lambda: NOW).run(
        "postgresql://db/shop#t", {}
    ).begun()
    assert "lineage_failed" in caplog.text
    assert dataset_of("postgresql://db/shop", "sales.t")["name"] == "shop.sales.t"
