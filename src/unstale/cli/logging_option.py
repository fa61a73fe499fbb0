"""`--log-json`: events with their facts and tracebacks as JSON lines on standard error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


def log_option(command: F) -> F:
    """The option of commands that go on for long."""
    return click.option("--log-json", is_flag=True, help="Log to standard error, a JSON object a line.")(command)


def log_as(json: bool) -> None:
    """Log as JSON lines if that was asked for."""
    if json:
        from unstale.logs import to_json

        to_json()
