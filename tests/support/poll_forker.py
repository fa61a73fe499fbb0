"""Polls of tables in processes of their own, which can be killed: one process forks another for every poll.

Each line of its input asks for a poll, in JSON; it answers with the number of the process, then with what came of it.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

from unstale.adapters import sql_changed_ranges, sql_copying, sql_division
from unstale.adapters.addresses import Gate
from unstale.adapters.sql_fetcher import SqlFetcher
from unstale.adapters.sql_parts import TableParts
from unstale.adapters.target_places import target_place
from unstale.ports import Request

#: rows from which on ranges of keys are compared, and parts are kept: few, so that a small table has them
ROWS = 100
#: rows of a part
PART = 40


class Forker:
    """The process that forks, seen from a test."""

    def __init__(self) -> None:
        path = os.pathsep.join([str(Path(__file__).parent.parent), *sys.path])
        self._process = subprocess.Popen(
            [sys.executable, "-m", "support.poll_forker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": path},
        )

    def begin(self, **asked: Any) -> int:
        """Begin a poll: the number of its process."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(asked).encode() + b"\n")
        self._process.stdin.flush()
        return int(self._line())

    def ended(self) -> str:
        """Wait for the end of the poll: how it ended, and why."""
        return self._line()

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()
        for end in (self._process.stdin, self._process.stdout):
            assert end is not None
            end.close()

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().decode().strip()


def dies_after(parts: int) -> None:
    """Let this process be killed at the moment when so many parts are kept."""
    add, left = TableParts.add, parts

    def adding(self: TableParts, place: Path, chunks: Iterable[bytes]) -> None:
        nonlocal left
        add(self, place, chunks)
        left -= place.suffix == ".csv"
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)

    TableParts.add = adding  # type: ignore[method-assign]


def poll(asked: dict[str, Any]) -> str:
    """One poll: what it answered, and its reason, or how many bytes came."""

    async def scene() -> str:
        fetcher = SqlFetcher(
            target_place(asked["target"]),
            Gate(["127.0.0.0/8"]),
            roots=[Path(one) for one in asked["roots"]],
            parts=Path(asked["parts"]) if "parts" in asked else None,
        )
        try:
            seconds = asked.get("seconds", 120.0)
            got = await fetcher.fetch(Request(asked["address"], options=asked["options"], seconds=seconds))
        finally:
            await fetcher.close()
        return f"{got.answer.value} {got.reason or got.received}"

    if "blocks_since" in asked:
        sql_division.BLOCKS_SINCE = asked["blocks_since"]
    if "dies" in asked:
        dies_after(asked["dies"])
    return asyncio.run(scene())


def main() -> None:
    """Fork for every line, until there is none."""
    # Loaded once, and not by every poll.
    for name in ("duckdb", "psycopg", "pymysql", "sqlalchemy.dialects.mysql", "sqlalchemy.dialects.postgresql"):
        import_module(name)
    sql_copying.ROWS = sql_changed_ranges.ROWS = ROWS  # type: ignore[attr-defined]
    sql_changed_ranges.LEAST = 4
    sql_division.LARGE, sql_division.PART = ROWS, PART
    for line in sys.stdin:
        reader, writer = os.pipe()
        child = os.fork()
        if not child:
            try:
                os.write(writer, poll(json.loads(line)).encode())
            finally:
                os._exit(0)
        os.close(writer)
        os.write(1, f"{child}\n".encode())
        told = os.read(reader, 65536)
        os.close(reader)
        os.waitpid(child, 0)
        os.write(1, (told or b"killed") + b"\n")


if __name__ == "__main__":
    main()
