"""Copies of tables as runs in the words of OpenLineage 2-0-2: a START and a COMPLETE or FAIL each, in lines of JSON.

    input     postgres://host:port  database.schema.table;  mysql://host:port  database.table;  file  path/table
    output    the table in the target, with its columns, types and comments, and how many rows it has

Rules of this file:
1. A poll that finds nothing to copy is no run. One that takes long is told when it has begun, any other at its end,
   with the time at which it began.
2. Nothing of an address is told but where it is: no name of who asks, no password, no other parameter.
3. What cannot be written is said in the log, and no poll fails because of it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import Any
from urllib.parse import unquote, urlsplit
from uuid import uuid4

from unstale.adapters.sql_records import view_name
from unstale.adapters.target_places import SchemaPlace, TargetPlace
from unstale.keeper.outcomes import Answer
from unstale.logs import log
from unstale.ports import Fetched

_SPEC = "https://openlineage.io/spec"
#: who says it
PRODUCER = "urn:unstale:copies"
#: what a database is called there, its port, and the schema that a table is in unless it says so
_DATABASES = {
    "postgresql": ("postgres", 5432, "public"),
    "postgres": ("postgres", 5432, "public"),
    "mysql": ("mysql", 3306, ""),
    "mariadb": ("mysql", 3306, ""),
}

Dataset = dict[str, Any]


def dataset_of(address: str, table: str) -> Dataset:
    """What a table of a database is called.

    >>> dataset_of("postgresql+psycopg://reader:$SECRET@db.example.org/shop?sslmode=require", "orders")
    {'namespace': 'postgres://db.example.org:5432', 'name': 'shop.public.orders'}
    >>> dataset_of("sqlite:////data/shop.db", "orders")
    {'namespace': 'file', 'name': '/data/shop.db/orders'}
    """
    parts = urlsplit(address)
    dialect = parts.scheme.partition("+")[0]
    database = unquote(parts.path.removeprefix("/"))
    if dialect not in _DATABASES:
        place = f"{dialect}://{parts.hostname}" if parts.hostname else "file"
        return {"namespace": place, "name": f"{database}/{table}"}
    name, port, schema = _DATABASES[dialect]
    full = table if not schema or "." in table else f"{schema}.{table}"
    return {"namespace": f"{name}://{parts.hostname or 'localhost'}:{parts.port or port}", "name": f"{database}.{full}"}


class Lineage:
    """Tells of runs: `write` takes an event as a line of JSON, from whatever thread."""

    def __init__(self, write: Callable[[bytes], None], target: TargetPlace, now: Callable[[], float]) -> None:
        self._write, self._target, self._now = write, target, now

    def run(self, address: str, options: Mapping[str, object]) -> LineageRun:
        """A copy that may begin."""
        return LineageRun(self, address, options, self._now())

    def output(self, table: str) -> Dataset:
        """What a table in the target is called."""
        if isinstance(self._target, SchemaPlace):
            return dataset_of(self._target.dsn, f"{self._target.schema}.{table}")
        return {"namespace": "file", "name": f"{self._target.resolve()}/{table}"}

    def add(self, at: float | None, event: dict[str, Any]) -> None:
        """Tell an event of a time, or of now."""
        then = datetime.fromtimestamp(self._now() if at is None else at, UTC).isoformat(timespec="milliseconds")
        whole = {
            "eventTime": then,
            "producer": PRODUCER,
            "schemaURL": f"{_SPEC}/2-0-2/OpenLineage.json#/$defs/RunEvent",
        }
        self._write(json.dumps(event | whole).encode() + b"\n")


class LineageFile:
    """A file of events, one JSON object a line; several threads and processes may write it."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __call__(self, line: bytes) -> None:
        """Append an event."""
        try:
            # One write at the end of the file, which others may share.
            file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
            try:
                os.write(file, line)
            finally:
                os.close(file)
        except OSError as error:
            log("lineage_failed", {"file": str(self._path), "reason": error.strerror or ""})

    def close(self) -> None:
        """Everything is written."""


class LineageRun:
    """One copy, begun or not."""

    def __init__(self, lineage: Lineage, address: str, options: Mapping[str, object], began: float) -> None:
        place, _, fragment = address.partition("#")
        table = str(options.get("table") or unquote(fragment))
        self._lineage, self._began, self._id = lineage, began, str(uuid4())
        # What a query reads is not known here.
        self._inputs = [dataset_of(place, table)] if table else []
        self._table = view_name(table or "query")
        self._told, self._turn = False, Lock()

    def begun(self) -> None:
        """It takes a while: tell that it has begun, once."""
        with self._turn:
            if not self._told:
                self._told = True
                self._add("START", self._began, {}, self._inputs, self._lineage.output(self._table))

    def ended(self, fetched: Fetched) -> None:
        """What came of it; nothing is told of a poll that had nothing to copy."""
        if fetched.answer is Answer.UNCHANGED and not self._told:
            return
        self.begun()
        if fetched.answer is Answer.FAILED:
            facet = _facet("ErrorMessageRunFacet", {"message": fetched.reason, "programmingLanguage": "Python"})
            self._add("FAIL", None, {"errorMessage": facet}, self._inputs, self._lineage.output(self._table))
            return
        told = json.loads(fetched.body) if fetched.body else {}
        output = self._lineage.output(told.get("table", self._table))
        inputs = self._inputs
        if told:
            names, comments = told["columns"], told.get("comments", {})
            types = told.get("types") or [""] * len(names)
            fields = [
                {"name": name} | ({"type": type_} if type_ else {}) | _described(comments.get(name))
                for name, type_ in zip(names, types, strict=True)
            ]
            output["facets"] = {"schema": _facet("SchemaDatasetFacet", {"fields": fields})}
            rows = _facet("OutputStatisticsOutputDatasetFacet", {"rowCount": told["rows"]})
            output["outputFacets"] = {"outputStatistics": rows}
            came = _facet("SchemaDatasetFacet", {"fields": [{"name": name} for name in names]})
            inputs = [one | {"facets": {"schema": came}} for one in inputs]
        self._add("COMPLETE", None, {}, inputs, output)

    def _add(self, kind: str, at: float | None, facets: dict[str, Any], inputs: list[Dataset], output: Dataset) -> None:
        source = self._inputs[0] if self._inputs else {"namespace": "query", "name": self._table}
        self._lineage.add(
            at,
            {
                "eventType": kind,
                "run": {"runId": self._id, "facets": facets},
                "job": {"namespace": "unstale", "name": f"copy {source['namespace']}/{source['name']}"},
                "inputs": inputs,
                "outputs": [output],
            },
        )


def _described(comment: str | None) -> dict[str, str]:
    return {"description": comment} if comment else {}


def _facet(name: str, what: dict[str, Any]) -> dict[str, Any]:
    return {"_producer": PRODUCER, "_schemaURL": f"{_SPEC}/facets/1-0-0/{name}.json#/$defs/{name}"} | what
