"""Where the processor's time goes: flame graphs of an engine that polls, of a server of copies, and of a plan.

Every millisecond of processor time the stack is noted where it stands; what stands in compiled code is charged to the
line that called it. Written to `profiles/`: a picture for a browser, and a line per stack for other tools.

    python bench/flames.py engine server plan
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import chdir
from html import escape
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

PROFILES = Path(__file__).parent / "profiles"
#: seconds of processor time between two notes, and seconds by the clock that each is watched
EVERY, LASTING = 0.001, 15.0
#: of the picture: its width, and the height of a frame, in pixels; frames that are narrower are left out
WIDTH, HEIGHT, LEAST = 1600, 17, 1.0


class Notes:
    """Counts stacks while it is entered, of the main thread."""

    def __init__(self) -> None:
        self.stacks: Counter[tuple[str, ...]] = Counter()

    def __enter__(self) -> Notes:
        signal.signal(signal.SIGPROF, self._note)
        signal.setitimer(signal.ITIMER_PROF, EVERY, EVERY)
        return self

    def __exit__(self, *error: object) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0.0)

    def _note(self, number: int, frame: FrameType | None) -> None:
        stack: list[str] = []
        while frame is not None:
            code = frame.f_code
            stack.append(f"{Path(code.co_filename).stem}.{code.co_qualname}")
            frame = frame.f_back
        self.stacks[tuple(reversed(stack))] += 1

    def write(self, name: str) -> None:
        """The picture, and a line per stack."""
        PROFILES.mkdir(exist_ok=True)
        lines = [f"{';'.join(stack)} {count}" for stack, count in sorted(self.stacks.items())]
        (PROFILES / f"{name}.txt").write_text("\n".join(lines) + "\n", "utf-8")
        (PROFILES / f"{name}.svg").write_text(picture(self.stacks, name), "utf-8")
        print(f"{PROFILES / name}.svg: {sum(self.stacks.values())} notes")


def picture(stacks: Counter[tuple[str, ...]], title: str) -> str:
    """A flame graph: a frame is as wide as its share of the time, callers below those whom they call."""
    total = sum(stacks.values()) or 1
    deepest = max(map(len, stacks), default=1)
    shapes: list[str] = []

    def draw(depth: int, part: list[tuple[tuple[str, ...], int]], left: float) -> None:
        groups: dict[str, list[tuple[tuple[str, ...], int]]] = {}
        for stack, count in part:
            if len(stack) > depth:
                groups.setdefault(stack[depth], []).append((stack, count))
        for name, inner in sorted(groups.items()):
            share = sum(count for _, count in inner) / total
            width = WIDTH * share
            if width >= LEAST:
                y, tint = HEIGHT * (deepest - depth), 40 + 13 * sum(map(ord, name)) % 120
                words = escape(name)
                fits = escape(name[: int(width / 7)]) if width > 28 else ""
                shapes.append(
                    f'<g><title>{words}: {share:.1%}</title><rect x="{left:.1f}" y="{y}" width="{width:.1f}" '
                    f'height="{HEIGHT - 1}" fill="rgb(230,{tint},50)"/>'
                    f'<text x="{left + 2:.1f}" y="{y + 12}">{fits}</text></g>'
                )
                draw(depth + 1, inner, left)
            left += width

    draw(0, list(stacks.items()), 0.0)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT * (deepest + 2)}" '
        f'font-family="monospace" font-size="11"><text x="4" y="13">{escape(title)}</text>{"".join(shapes)}</svg>'
    )


def engine() -> None:
    """`unstale run` on 6,000 sources over loopback, in a process of its own."""
    from bench_run import SETTINGS, addresses, serving
    from unstale.adapters.sqlite_store import SqliteStore
    from unstale.ports import Listing

    with serving() as port, tempfile.TemporaryDirectory() as folder:
        Path(folder, "unstale.toml").write_text(SETTINGS)
        store = SqliteStore(Path(folder, "fleet.db"))
        where = addresses(port, 200)
        store.add([Listing(one, host=one.split("/")[2].split(":")[0]) for one in where], time.time() - 1.0)
        store.close()
        subprocess.run([sys.executable, __file__, "--inside", folder], check=True)


def inside(folder: str) -> None:
    """The engine itself, watched."""
    from unstale.cli.main import main

    with chdir(folder), Notes() as notes:
        try:
            sys.argv = ["unstale", "run", "--no-serve", "--for", f"{LASTING:g}s"]
            main()
        except SystemExit as ended:
            if ended.code:
                raise
    notes.write("engine")


def server() -> None:
    """Copies of 2 kB, asked of the server's application without a network."""
    from bench_serve import SOURCES, fill
    from unstale.adapters.sqlite_replica import SqliteReplica
    from unstale.server.app import replica

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "fleet.db")
        fill(path)
        application = replica(SqliteReplica(path))
        with Notes() as notes:
            asyncio.run(_ask(application, SOURCES))
    notes.write("server")


async def _ask(application: Callable[..., Any], sources: int) -> None:
    statuses: Counter[int] = Counter()

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            statuses[message["status"]] += 1

    scope = {"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "GET", "scheme": "http"}
    ends, number = time.monotonic() + LASTING, 0
    while time.monotonic() < ends:
        number = number % sources + 1
        path = f"/copies/{number}"
        where = {"path": path, "raw_path": path.encode(), "query_string": b"", "root_path": ""}
        who = {"headers": [(b"host", b"localhost")], "client": ("127.0.0.1", 9), "server": ("127.0.0.1", 80)}
        await application(scope | where | who, receive, send)
    print(f"server: {dict(statuses)}")


def plan() -> None:
    """Prices of 20,000 sources of which a tenth is polled between two of them."""
    from unstale.core.learning.learner import Learner

    rng, count, scale = np.random.default_rng(1), 20_000, 3600.0
    learner = Learner(count, scale, weight=rng.lognormal(0.0, 1.0, count))
    learner.observe(np.arange(count), scale * rng.uniform(0.6, 1.4, count), rng.random(count) < 0.5)
    now, price = 1.4 * scale, learner.typical_price()
    price, found = learner.price_for(0.5 * count, now, now + scale, price), 0
    with Notes() as notes:
        ends = time.monotonic() + LASTING
        while time.monotonic() < ends:
            some = np.flatnonzero(rng.random(count) < 0.1)
            now += 0.1 * scale
            learner.observe(some, np.full(len(some), now), rng.random(len(some)) < 0.5)
            price = learner.price_for(0.5 * count, now, now + scale, price)
            found += 1
    print(f"plan: {found} prices")
    notes.write("plan")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="*", metavar="engine|server|plan")
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    options = parser.parse_args()
    os.environ.setdefault("PYTHONPATH", str(Path(__file__).parent))
    if options.inside:
        inside(options.inside)
        return
    parts = {"engine": engine, "server": server, "plan": plan}
    for name in options.what or parts:
        parts[name]()


if __name__ == "__main__":
    main()
