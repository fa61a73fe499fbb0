"""The API as a table: one entry says where something is, what it takes and gives, and who does it.

From the table come the routes, the checks of everything that is sent, and the OpenAPI document.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from unstale.errors import InputError, StoreError
from unstale.server.problems import problem
from unstale.server.shapes import Shape, check, read_json, read_text

NOT_KEPT = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Server": "unstale"}
#: ids of sources are below this
_IDS = 2**63


class Refused(Exception):
    """A request that cannot be served, with its status and one sentence."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status, self.detail = status, detail


@dataclass(frozen=True, slots=True)
class Call:
    """One request, its parts read and checked: the source in its path (0: none), its query, its body."""

    source: int
    query: Mapping[str, Any]
    body: Any


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One method of one path. `gives` None: the handler answers with a response of its own."""

    method: str
    path: str
    does: Callable[[Call], Awaitable[Any]]
    meaning: str
    gives: Shape | None = None
    status: int = 200
    query: Mapping[str, Shape] = field(default_factory=dict)
    needs: frozenset[str] = frozenset()
    takes: Shape | None = None
    media_type: str = "application/json"

    async def __call__(self, request: Request) -> Response:
        """Read, check, do, answer."""
        try:
            call = await self._call(request)
            found = await self.does(call)
        except Refused as refused:
            return refusal(refused.status, refused.detail)
        except InputError as error:
            return refusal(409 if "is listed already" in str(error) else 400, str(error))
        except StoreError as error:
            return refusal(503, str(error))
        if isinstance(found, Response):
            return found
        return Response(status_code=204, headers=NOT_KEPT) if self.status == 204 else as_json(found, self.status)

    async def _call(self, request: Request) -> Call:
        source = int(request.path_params.get("source", 0))
        if source >= _IDS:
            raise Refused(404, "there is no such source")
        query: dict[str, Any] = {}
        for name, given in request.query_params.multi_items():
            if name not in self.query:
                raise Refused(400, f"there is no parameter {name[:40]!a} here: see /api/v1/openapi.json")
            if name in query:
                raise Refused(400, f"the parameter {name} is there twice")
            query[name] = read_text(name, given, self.query[name])
        for name in self.needs - query.keys():
            raise Refused(400, f"the parameter {name} is missing")
        body = None
        if self.takes is not None:
            kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
            if kind != "application/json":
                raise Refused(415, "the body must be JSON: send Content-Type: application/json")
            body = read_json(await request.body())
            check("body", body, self.takes)
        return Call(source, query, body)


def routes(endpoints: Sequence[Endpoint]) -> list[Route]:
    """Starlette's routes; methods of one path share one, so that others are refused with all that are allowed."""
    paths: dict[str, dict[str, Endpoint]] = {}
    for one in endpoints:
        paths.setdefault(one.path, {})[one.method] = one

    def route(path: str, ways: dict[str, Endpoint]) -> Route:
        async def serve(request: Request) -> Response:
            return await ways["GET" if request.method == "HEAD" else request.method](request)

        return Route(path.replace("{source}", "{source:int}"), serve, methods=list(ways))

    return [route(path, ways) for path, ways in paths.items()]


def openapi(endpoints: Sequence[Endpoint], version: str) -> dict[str, Any]:
    """The table as an OpenAPI 3.1 document."""
    paths: dict[str, dict[str, Any]] = {}
    for one in endpoints:
        paths.setdefault(one.path, {})[one.method.lower()] = _operation(one)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Unstale",
            "version": version,
            "description": "Sources, what is believed of them, and the budget. Times are UTC, lengths seconds.",
        },
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": {"Problem": _PROBLEM},
        },
    }


_PROBLEM: Shape = {
    "type": "object",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "What is wrong, in one sentence."},
    },
}


def _operation(one: Endpoint) -> dict[str, Any]:
    parameters = [
        {"name": name, "in": "query", "required": name in one.needs, "schema": shape}
        for name, shape in one.query.items()
    ]
    if "{source}" in one.path:
        shape = {"type": "integer", "minimum": 1}
        parameters.insert(0, {"name": "source", "in": "path", "required": True, "schema": shape})
    answer: dict[str, Any] = {"description": one.meaning}
    if one.gives is not None:
        answer["content"] = {one.media_type: {"schema": one.gives}}
    told = {
        "description": "What is wrong.",
        "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
    operation: dict[str, Any] = {
        "operationId": f"{one.method.lower()} {one.path}".replace("/api/v1/", "").replace("/", " ").replace(" ", "-"),
        "summary": one.meaning,
        "parameters": parameters,
        "responses": {str(one.status): answer, "default": told},
        # On this machine reading is open to all, but for where hubs call.
        "security": [{"token": []}] + ([{}] if one.method == "GET" and not one.path.endswith("/websub") else []),
    }
    if one.takes is not None:
        operation["requestBody"] = {"required": True, "content": {"application/json": {"schema": one.takes}}}
    return operation


def refusal(code: int, detail: str) -> Response:
    """A problem as Starlette sends it."""
    number, fields, body = problem(code, detail)
    response = Response(body, number)
    response.raw_headers = fields
    return response


def as_json(body: object, code: int = 200) -> Response:
    """JSON that nobody keeps."""
    return JSONResponse(body, code, headers=NOT_KEPT)
