"""Goals beyond the 32: those who are told, and what we are made of."""

from __future__ import annotations

from goals import Goal

BEYOND = (
    Goal(
        33, "a backlog for a receiver that can take it", 10_000, "told at 1,000 a second, all, in order", ("draining",)
    ),
    Goal(
        34,
        "kill -9 of who tells",
        1_000,
        "nothing missing or out of order",
        ("telling kills",),
        ("tests/integration/test_delivery_kill.py",),
    ),
    Goal(
        35,
        "a receiver that is down for a virtual month",
        300_000,
        "bounded, dropped openly, the rest told",
        ("month down",),
    ),
    Goal(
        36,
        "known weaknesses of dependencies, `make audit`",
        1,
        "none",
        gap="no figure: pip-audit asks a service for the list of weaknesses, and where these figures were taken only "
        "packages could be had; versions are kept above those with a known weakness by hand, in pyproject.toml",
    ),
)
