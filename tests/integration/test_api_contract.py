"""The API against its own OpenAPI document: schemathesis sends what the document allows, and what it does not."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import requests

from support.booked import TOKEN, WHO
from support.kept_store import keep
from unstale.cli.serve import run
from unstale.cli.settings import Settings

schemathesis = pytest.importorskip("schemathesis")
hypothesis = pytest.importorskip("hypothesis")

#: cases of each operation, all of which take about a minute; and sources in the store
CASES, SOURCES = 15, 12


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A real server on a store that an engine kept for a day."""
    path = tmp_path_factory.mktemp("api") / "s.db"
    keep(path, 24.0, sources=SOURCES)
    loop, stop, ports = asyncio.new_event_loop(), asyncio.Event(), []
    ready = threading.Event()

    def told(port: int) -> None:
        ports.append(port)
        ready.set()

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UNSTALE_TOKEN", TOKEN)
        serving = threading.Thread(
            target=lambda: loop.run_until_complete(
                run(Settings(store=str(path)), "127.0.0.1", 0, ready=told, stop=stop)
            )
        )
        serving.start()
        assert ready.wait(60.0)
        yield f"http://127.0.0.1:{ports[0]}"
        loop.call_soon_threadsafe(stop.set)
        serving.join(20.0)
        assert not serving.is_alive()
        loop.close()


def play(operation: Any, origin: str, mode: Any, checks: list[Any]) -> int:
    """Send made-up requests of one operation, and check the answers; how many were sent."""
    from schemathesis import GenerationMode

    sent = 0

    @hypothesis.settings(
        max_examples=CASES,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(case=operation.as_strategy(generation_mode=mode))
    def once(case: Any) -> None:
        nonlocal sent
        sent += 1
        if "source" in case.path_parameters and isinstance(given := case.path_parameters["source"], int):
            # Made-up ids would nearly always name nobody; only the last source may be removed.
            if case.method == "DELETE":
                case.path_parameters["source"] = max(given, SOURCES)
            elif mode is GenerationMode.POSITIVE:
                case.path_parameters["source"] = 1 + given % SOURCES
        case.validate_response(case.call(base_url=origin, headers=WHO), checks=checks)

    once()
    return sent


def test_nothing_fails_and_everything_is_as_the_document_says(origin: str) -> None:
    from schemathesis import GenerationMode
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi import checks

    as_told = [
        not_a_server_error,
        checks.status_code_conformance,
        checks.content_type_conformance,
        checks.response_headers_conformance,
        checks.response_schema_conformance,
    ]
    refused = [not_a_server_error, checks.negative_data_rejection]
    schema = schemathesis.openapi.from_url(f"{origin}/api/v1/openapi.json")
    # Who may do what is tested elsewhere: here everything is sent with the token.
    schema.config.generation.with_security_parameters = False
    sent = {}
    for found in schema.get_all_operations():
        operation = found.ok()
        # A stream has no end, and a poll waits for an engine that is not there.
        if operation.path in ("/api/v1/events", "/api/v1/sources/{source}/poll"):
            continue
        sent[operation.label] = play(operation, origin, GenerationMode.POSITIVE, as_told)
        if operation.body or operation.query or operation.path_parameters:
            sent[operation.label] += play(operation, origin, GenerationMode.NEGATIVE, refused)
    assert len(sent) >= 17
    assert sum(sent.values()) >= 200


@pytest.mark.parametrize("path", ["sources", "sources/1", "status", "plan", "hosts", "prices", "budget"])
def test_reading_is_open_on_this_machine(origin: str, path: str) -> None:
    assert requests.get(f"{origin}/api/v1/{path}", timeout=10).status_code == 200


def test_a_listener_hears_and_does_not_keep_the_server_from_ending(origin: str) -> None:
    with requests.get(f"{origin}/api/v1/events", stream=True, timeout=10) as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        lines = stream.iter_lines()
        said = [next(lines) for _ in range(4)]
    assert said[0] == b": listening"
    assert said[2] == b"event: status"


def test_large_lists_are_added_at_once(origin: str) -> None:
    body = [{"address": f"https://many.example/{i}"} for i in range(50_000)]
    added = requests.post(f"{origin}/api/v1/sources", json=body, headers=WHO, timeout=60)
    assert added.status_code == 201
    assert len(added.json()["ids"]) == 50_000
    there = requests.get(f"{origin}/api/v1/sources?text=many.example/49999", timeout=10).json()
    assert len(there["sources"]) == 1
