"""The API's table as an OpenAPI 3.1 document: named models, one name for each operation, what is not JSON too.

Rules of this file:
1. A shape with a title is a model of its own: it is told once, under `components`, and referred to elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from unstale.server import shapes
from unstale.server.endpoints import Endpoint
from unstale.server.shapes import Shape, number, record, text, whole

PROBLEM = shapes.model(
    "Problem",
    record(
        type=text(200),
        title=text(200),
        status=whole(100, 599),
        detail={"type": "string", "description": "What is wrong, in one sentence."},
    ),
)
_SOURCE = {"name": "source", "in": "path", "required": True, "schema": {"type": "integer", "minimum": 1}}


def openapi(endpoints: Sequence[Endpoint], version: str, more: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The table as a document; `more` are paths that are not of the table."""
    paths: dict[str, dict[str, Any]] = {}
    for one in endpoints:
        paths.setdefault(one.path, {})[one.method.lower()] = _operation(one)
    models: dict[str, Shape] = {}
    told = {path: _referring(ways, models) for path, ways in {**paths, **(more or {})}.items()}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Unstale",
            "version": version,
            "description": "Sources, what is believed of them, and the budget; copies; numbers for Prometheus. "
            "Times are UTC, lengths seconds.",
        },
        "servers": [{"url": "/"}],
        "paths": told,
        "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}, "schemas": models},
    }


def _operation(one: Endpoint) -> dict[str, Any]:
    parameters = [_SOURCE] if "{source}" in one.path else []
    parameters += [
        {"name": name, "in": "query", "required": name in one.needs, "schema": shape}
        for name, shape in one.query.items()
    ]
    parameters += [
        {"name": name, "in": "header", "required": False, "schema": shape} for name, shape in one.fields.items()
    ]
    answer: dict[str, Any] = {"description": one.meaning}
    if one.gives is not None:
        answer["content"] = {one.media_type: {"schema": one.gives}}
    if one.tagged:
        meaning = "Of what is said here and can be changed; it stays while nobody says otherwise."
        answer["headers"] = {"ETag": {"description": meaning, "required": True, "schema": {"type": "string"}}}
    operation: dict[str, Any] = {
        "operationId": name_of(one.method, one.path),
        "summary": one.meaning,
        "parameters": parameters,
        "responses": {str(one.status): answer, "default": problems()},
        # On this machine reading is open to all, but for where hubs call.
        "security": [{"token": []}] + ([{}] if one.method == "GET" and not one.path.endswith("/websub") else []),
    }
    if one.takes is not None:
        operation["requestBody"] = {"required": True, "content": {"application/json": {"schema": one.takes}}}
    return operation


def name_of(method: str, path: str) -> str:
    """What a client may call an operation.

    >>> name_of("GET", "/api/v1/sources/{source}/explain"), name_of("POST", "/api/v1/sources")
    ('get_source_explain', 'post_sources')
    """
    words = path.removeprefix("/api/v1").replace("/sources/{source}", "/source").replace("/copies/{source}", "/copy_of")
    return "_".join([method.lower(), *re.findall(r"[a-z]+(?:_[a-z]+)*", words.replace(".json", ""))])


def problems() -> dict[str, Any]:
    """What is answered when something is wrong."""
    return {"description": "What is wrong.", "content": {"application/problem+json": {"schema": PROBLEM}}}


def _referring(told: Any, models: dict[str, Shape]) -> Any:
    """The same with models referred to, which are added to those given."""
    if isinstance(told, list):
        return [_referring(one, models) for one in told]
    if not isinstance(told, dict):
        return told
    inner = {name: _referring(one, models) for name, one in told.items()}
    # A record has a title of its own, and may have a member of that name.
    if not isinstance(title := told.get("title"), str):
        return inner
    models[title] = {name: one for name, one in inner.items() if name != "title"}
    return {"$ref": f"#/components/schemas/{title}"}


def _get(path: str, meaning: str, parameters: Sequence[Any], media_type: str, shape: Shape, **more: Any) -> Any:
    return {
        "get": {
            "operationId": name_of("GET", path),
            "summary": meaning,
            "parameters": list(parameters),
            "responses": {
                "200": {"description": meaning, "content": {media_type: {"schema": shape}}},
                **more,
                "default": problems(),
            },
            "security": [{"token": []}, {}],
        }
    }


def _asked(name: str, meaning: str, shape: Shape, *, required: bool = False) -> dict[str, Any]:
    return {"name": name, "in": "query", "required": required, "description": meaning, "schema": shape}


_SPAN = shapes.like(r"[0-9]{1,9}|[0-9]{1,9}(\.[0-9]{1,6})?(s|min|h|d)", 20, "1h")
_FLAG: Shape = {"type": "string", "enum": ["", "0", "1", "false", "true"]}
_COUNT = whole(1, 10**15)
#: bounds on the age of a copy, as they may be written in a query
BOUNDS = [
    _asked("max_age", "How long ago it was last known to equal its source, at most: 30s, 5min, 1h, 1d.", _SPAN),
    _asked("min_fresh", "How long it must still be promised to be good.", _SPAN),
    _asked("max_stale", "How long ago the promise may have ended.", _SPAN),
    _asked("stale_if_error", "The same, where the source fails.", _SPAN),
    _asked("no_cache", "Only a copy that was polled for this request.", _FLAG),
    _asked("only_if_cached", "Never wait for a poll.", _FLAG),
    _asked("min_as_of", "When it was last known to equal its source, at the earliest.", number(0.0, 1e11)),
    _asked("min_version", "The least version.", _COUNT),
]
_HEALTH = shapes.model("Health", record(status=text(among=["ok"])))
_READY = shapes.model("Readiness", record(status=text(among=["ok"]), heard=shapes.maybe(shapes.ANY_NUMBER)))
_COPY: dict[str, Any] = {"description": "The copy, as its source sent it.", "content": {"*/*": {}}}
_NOT_MODIFIED = {"304": {"description": "The copy that the client has is the newest."}}


def _copy(path: str, meaning: str, parameters: Sequence[Any]) -> Any:
    told = _get(path, meaning, parameters, "*/*", {}, **_NOT_MODIFIED)
    told["get"]["responses"]["200"] = _COPY
    return told


HEALTH = {
    "/healthz": _get("/healthz", "Whether the replica lives.", [], "application/json", _HEALTH),
    "/readyz": _get(
        "/readyz",
        "Whether the store can be read and, with max_age, whether any source has answered within it.",
        [BOUNDS[0]],
        "application/json",
        _READY,
    ),
}
_ADDRESS = _asked("source", "The address of the source.", text(8192, least=1), required=True)
_WHEN = shapes.maybe(shapes.MOMENT)
_META = shapes.model(
    "Meta",
    record(
        source=whole(1),
        version=whole(1),
        as_of=_WHEN,
        changed_at=_WHEN,
        modified_at=_WHEN,
        expires_at=_WHEN,
        next_check_at=_WHEN,
        failures=whole(0),
        fresh=number(0.0, 1.0),
        fresh_by=text(),
        told_at=_WHEN,
        via=shapes.several(text()),
        hops=whole(1),
        media_type=text(1000),
        bytes=whole(0),
        sha256=text(64, least=64),
    ),
)
COPIES = {
    "/copies/{source}": _copy(
        "/copies/{source}",
        "The newest copy of a source within these bounds, or a kept version.",
        [_SOURCE, *BOUNDS, _asked("version", "A kept version instead of the newest; no bound counts then.", _COUNT)],
    ),
    "/copy": _copy(
        "/copy",
        "The same by the address of the source.",
        [_ADDRESS, *BOUNDS],
    ),
    "/copies/{source}/_meta": _get(
        "/copies/{source}/_meta", "What is known of a copy.", [_SOURCE, *BOUNDS], "application/json", _META
    ),
    "/copy/_meta": _get(
        "/copy/_meta", "The same by the address of the source.", [_ADDRESS, *BOUNDS], "application/json", _META
    ),
}
METRICS = {"/metrics": _get("/metrics", "Numbers for Prometheus.", [], "text/plain", {"type": "string"})}
