"""The API as a table: one entry says where something is, what it takes and gives, and who does it.

From the table come the routes, the checks of everything that is sent, and the OpenAPI document (`openapi.py`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from unstale.errors import InputError, StoreError
from unstale.frozen import dataclass
from unstale.server.headers import matches
from unstale.server.problems import problem
from unstale.server.shapes import Shape, check, read_json, read_text, text

NOT_KEPT = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Server": "unstale"}
#: ids of sources are below this
_IDS = 2**63
#: a field by which a client says what it thinks it changes
IF_MATCH = "if-match"
GUARDED: Mapping[str, Shape] = {IF_MATCH: {**text(500), "description": "The ETag of what is to be changed, or *."}}


class Refused(Exception):
    """A request that cannot be served, with its status and one sentence."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status, self.detail = status, detail


@dataclass(frozen=True, slots=True)
class Call:
    """One request, its parts read and checked: the source in its path (0: none), its query, body and header fields."""

    source: int
    query: Mapping[str, Any]
    body: Any
    fields: Mapping[str, Any] = field(default_factory=dict)

    def expects(self, present: str) -> None:
        """Refuse to change what is not any more as the client saw it, if it says what it saw [RFC 9110 13.1.1]."""
        wanted = self.fields.get(IF_MATCH)
        if wanted is not None and not matches(wanted, present, strongly=True):
            raise Refused(412, "it was changed since: read it again, and say what you want changed then")


@dataclass(frozen=True, slots=True)
class Tagged:
    """An answer and the ETag of what can be changed of it."""

    body: Any
    etag: str


def tag(said: Mapping[str, Any]) -> str:
    """The ETag of what is said of something: the same for the same words, whoever tells it.

    >>> tag({"weight": 1.0, "paused": False}) == tag({"paused": False, "weight": 1.0})
    True
    """
    plain = json.dumps(said, sort_keys=True, default=str).encode()
    return f'"{hashlib.sha256(plain).hexdigest()[:32]}"'


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
    #: header fields that are read, by name; and whether the answer has an ETag
    fields: Mapping[str, Shape] = field(default_factory=dict)
    tagged: bool = False

    async def __call__(self, request: Request) -> Response:
        """Read, check, do, answer."""
        try:
            call = await self._call(request)
        except Refused as refused:
            return refusal(refused.status, refused.detail)
        except InputError as error:
            return refusal(400, str(error))
        try:
            found = await self.does(call)
        except Refused as refused:
            return refusal(refused.status, refused.detail)
        except InputError as error:
            # It is as the document says, and cannot be done all the same: settings and other sources decide.
            return refusal(409 if "is listed already" in str(error) else 422, str(error))
        except StoreError as error:
            return refusal(503, str(error))
        if isinstance(found, Response):
            return found
        if isinstance(found, Tagged):
            response = as_json(found.body, self.status)
            response.headers["etag"] = found.etag
            return response
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
        fields = {
            name: read_text(name, request.headers[name], shape)
            for name, shape in self.fields.items()
            if name in request.headers
        }
        return Call(source, query, body, fields)


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


def refusal(code: int, detail: str) -> Response:
    """A problem as Starlette sends it."""
    number, fields, body = problem(code, detail)
    response = Response(body, number)
    response.raw_headers = fields
    return response


def as_json(body: object, code: int = 200) -> Response:
    """JSON that nobody keeps."""
    return JSONResponse(body, code, headers=NOT_KEPT)
