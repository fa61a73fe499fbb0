"""Runs of copies in the words of OpenLineage: what its published schemas require is there, and nothing secret is."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import pytest

from unstale.adapters.lineage import Lineage, LineageFile, dataset_of
from unstale.adapters.target_places import SchemaPlace
from unstale.cli.fetchers import Fetchers
from unstale.cli.settings import Files, Settings, Sql
from unstale.keeper.outcomes import Answer
from unstale.ports import Claim, Fetched

NOW = 1.8e9


class Server(ThreadingHTTPServer):
    """A server of OpenLineage on this machine that keeps what it is told, or answers otherwise."""

    def __init__(self, status: int = 201) -> None:
        self.told: list[tuple[str, str, str, bytes]] = []
        told = self.told

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                told.append((self.path, self.headers["Content-Type"], self.headers.get("Authorization", ""), body))
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        Thread(target=self.serve_forever, daemon=True).start()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/api/v1/lineage"


@contextmanager
def listening(status: int = 201) -> Iterator[Server]:
    server = Server(status)
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


def said(caplog: pytest.LogCaptureFixture) -> set[str]:
    """Why runs could not be told of; there were two tries."""
    found = [record.__dict__["facts"] for record in caplog.records if record.getMessage() == "lineage_failed"]
    caplog.clear()
    assert len(found) == 2
    assert {one["file"] for one in found} == {"127.0.0.1"}
    return {one["reason"] for one in found}


def copied(tmp_path: Path, lineage: str, networks: tuple[str, ...] = ("127.0.0.0/8",), token: str = "") -> Fetched:
    """A table copied by the fetchers of the command, which tell of it."""
    with closing(sqlite3.connect(tmp_path / "shop.db")) as db, db:
        db.execute("CREATE TABLE IF NOT EXISTS orders(id INTEGER PRIMARY KEY, amount NUMERIC)")
        db.execute("INSERT INTO orders(amount) VALUES (9.5)")
    sql = Sql(target=str(tmp_path / "copies.db"), lineage=lineage, lineage_token=token)
    own = replace(
        Settings(),
        store=str(tmp_path / "u.db"),
        files=Files(roots=(str(tmp_path),)),
        sql=sql,
        http=replace(Settings().http, allow_networks=networks),
    )

    async def scene() -> Fetched:
        fetchers = Fetchers(own, lambda: NOW)
        try:
            return await fetchers.look(Claim(1, 1, f"sqlite:///{tmp_path}/shop.db#orders", "sql", NOW))
        finally:
            await fetchers.close()

    return asyncio.run(scene())


def test_a_server_is_told_of_runs_in_order_with_a_token_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LINEAGE", "s3cret")
    with listening() as server:
        assert copied(tmp_path, server.address, token="$LINEAGE").answer is Answer.CHANGED
        events = [json.loads(body) for *_, body in server.told]
        for event in events:
            check(event)
        assert [event["eventType"] for event in events] == ["START", "COMPLETE"]
        assert {told[:3] for told in server.told} == {("/api/v1/lineage", "application/json", "Bearer s3cret")}


def test_a_server_that_refuses_is_not_there_or_is_not_allowed_harms_no_copy(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with listening(500) as server:
        assert copied(tmp_path, server.address).answer is Answer.CHANGED
        assert len(server.told) == 2
        assert said(caplog) == {"it answered 500"}
        assert copied(tmp_path, server.address, networks=()).answer is Answer.CHANGED
        assert len(server.told) == 2
        assert all("127.0.0.1 is not public" in reason for reason in said(caplog))
        gone = server.address
    assert copied(tmp_path, gone).answer is Answer.CHANGED
    # With the milliseconds that each try took.
    for reason in said(caplog):
        assert "connect" in reason
        assert "api/v1" not in reason


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
    with closing(sqlite3.connect(tmp_path / "shop.db")) as db, db:
        db.execute("CREATE TABLE orders(id INTEGER PRIMARY KEY, amount DECIMAL(9,2))")
        db.execute("INSERT INTO orders VALUES(1, 2.5), (2, 3.5)")
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
    place = SchemaPlace("postgresql://writer:$S@lake/dw", "shop")
    lineage = Lineage(LineageFile(tmp_path / "lineage.jsonl"), place, lambda: NOW)
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
    run = Lineage(LineageFile(tmp_path / "x.jsonl"), tmp_path / "copies.db", lambda: NOW).run(
        "postgresql://db/shop", {"query": "SELECT 1"}
    )
    run.begun()
    (event,) = read(tmp_path / "x.jsonl")
    assert event["inputs"] == []
    Lineage(LineageFile(tmp_path / "none/x.jsonl"), tmp_path / "copies.db", lambda: NOW).run(
        "postgresql://db/shop#t", {}
    ).begun()
    assert "lineage_failed" in caplog.text
    assert dataset_of("postgresql://db/shop", "sales.t")["name"] == "shop.sales.t"
