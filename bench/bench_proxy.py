"""How many answers of a cache are fresh for what it asks its origin: by price, and by one lifetime in nginx and Squid.

One log of requests (Zipf over objects, at random times) is played to all caches at once. The objects change by Poisson
processes of very different rates and carry ETag and Last-Modified. nginx and Squid are told one lifetime for all
(max-age); ours is told none, and a budget: as many questions as that lifetime costs each of them on this log (Squid
counts in whole seconds, which makes it half a second shorter). An answer is fresh if it is the version that the origin
had when the request was sent, or a later one. The first third warms up and is not counted.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from harness import Table
from unstale.adapters.addresses import Gate
from unstale.adapters.http_upstream import HttpUpstream
from unstale.server.dates import as_date

NEAR = Gate(["127.0.0.0/8"])
NGINX = """daemon off; master_process off; pid {folder}/nginx.pid; error_log {folder}/nginx.log;
events {{ worker_connections 512; }}
http {{
  access_log off; client_body_temp_path {folder}/b; proxy_temp_path {folder}/p; fastcgi_temp_path {folder}/f;
  uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  proxy_cache_path {folder}/cache keys_zone=z:10m;
  server {{ listen 127.0.0.1:{port}; location / {{
    proxy_pass http://127.0.0.1:{origin}; proxy_http_version 1.1; proxy_set_header Connection "";
    proxy_cache z; proxy_cache_revalidate on; proxy_cache_lock on; }} }}
}}
"""
SQUID = """http_port 127.0.0.1:{port} accel defaultsite=127.0.0.1 no-vhost
cache_peer 127.0.0.1 parent {origin} 0 no-query no-digest no-netdb-exchange originserver
http_access allow all
cache_mem 64 MB
collapsed_forwarding on
access_log none
cache_log {folder}/squid.log
pid_filename {folder}/squid.pid
pinger_enable off
shutdown_lifetime 1 seconds
visible_hostname bench
"""


@dataclass
class World:
    """When objects change and when they are asked for, in seconds from the beginning."""

    changes: list[np.ndarray]
    times: np.ndarray
    wanted: np.ndarray
    before: np.ndarray
    begun: float = 0.0

    @classmethod
    def made(cls, objects: int, rate: float, seconds: float, seed: int) -> World:
        rng = np.random.default_rng(seed)
        popular = 1.0 / np.arange(1, objects + 1)
        change = rng.lognormal(0.0, 2.0, objects) / 30.0
        count = rng.poisson(rate * seconds)
        return cls(
            [np.sort(rng.uniform(0.0, seconds, rng.poisson(each * seconds))) for each in change],
            np.sort(rng.uniform(0.0, seconds, count)),
            rng.choice(objects, count, p=popular / popular.sum()),
            rng.exponential(1.0 / change),
        )

    def version(self, i: int, at: float) -> int:
        return int(np.searchsorted(self.changes[i], at, side="right"))

    def refreshes(self, lifetime: float, since: float) -> int:
        """Questions that one lifetime costs on this log after `since`, first ones aside."""
        taken: dict[int, float] = {}
        count = 0
        for at, i in zip(self.times.tolist(), self.wanted.tolist(), strict=True):
            if at - taken.get(i, -np.inf) >= lifetime:
                count += i in taken and at >= since
                taken[i] = at
        return count


class Origin(asyncio.Protocol):
    """Answers for the objects of a world; one for each cache, which counts what that asks."""

    def __init__(self, world: World, control: str, asked: list[float]) -> None:
        self._world, self._control, self._asked = world, control, asked
        self._waiting = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        *heads, self._waiting = (self._waiting + data).split(b"\r\n\r\n")
        for head in heads:
            self._answer(head.decode("latin-1"))

    def _answer(self, head: str) -> None:
        first, *lines = head.split("\r\n")
        fields = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        world, i = self._world, int(first.split()[1].strip("/"))
        now = time.monotonic() - world.begun
        self._asked.append(now)
        version = world.version(i, now)
        changed = world.changes[i][version - 1] if version else -world.before[i]
        etag, wall = f'"{i}-{version}"', time.time()
        same = fields.get("if-none-match") == etag
        body = b"" if same else b"%d".ljust(200) % version
        told = [
            "HTTP/1.1 304 Not Modified" if same else "HTTP/1.1 200 OK",
            f"date: {as_date(wall)}",
            f"etag: {etag}",
            f"last-modified: {as_date(wall - now + changed)}",
            *([f"cache-control: {self._control}"] if self._control else []),
            *([] if same else ["content-type: text/plain", f"content-length: {len(body)}"]),
        ]
        self._transport.write("\r\n".join([*told, "", ""]).encode() + body)


@dataclass
class Player:
    """One cache: which, what it is told, and what came of the log."""

    name: str
    lifetime: float
    port: int = 0
    asked: list[float] = field(default_factory=list)
    fresh: int = 0
    answers: int = 0
    wrong: Counter[str] = field(default_factory=Counter)
    waits: list[float] = field(default_factory=list)


def order(name: str, folder: Path, port: int, origin: int, budget: float) -> list[str]:
    """The command that starts a cache."""
    if name == "nginx":
        (folder / "nginx.conf").write_text(NGINX.format(folder=folder, port=port, origin=origin))
        return [str(shutil.which("nginx")), "-c", str(folder / "nginx.conf")]
    if name == "Squid":
        folder.chmod(0o777)
        (folder / "squid.conf").write_text(SQUID.format(folder=folder, port=port, origin=origin))
        return [str(shutil.which("squid")), "-N", "-f", str(folder / "squid.conf")]
    proxied = [f"http://127.0.0.1:{origin}", "--allow-network", "127.0.0.0/8"]
    listen = ["--listen", f"127.0.0.1:{port}", "--budget", f"{budget:.4f}/s"]
    return [sys.executable, "-m", "unstale", "serve", "--proxy", *proxied, *listen]


async def play(world: World, lifetime: int, names: list[str], seconds: float) -> list[Player]:
    """The log through all caches at once."""
    loop, upstream = asyncio.get_running_loop(), HttpUpstream(NEAR, seconds=10.0)
    players, processes, servers = [], [], []
    with tempfile.TemporaryDirectory() as named:
        try:
            for player in [one for name in names for one in pair(name, lifetime)]:
                folder = Path(tempfile.mkdtemp(dir=named))
                control = "" if player.name == "unstale" else f"max-age={lifetime}"
                budget = world.refreshes(player.lifetime, seconds / 3.0) / (seconds * 2.0 / 3.0)
                made = lambda control=control, player=player: Origin(world, control, player.asked)  # noqa: E731
                server = await loop.create_server(made, "127.0.0.1", 0)
                free = await loop.create_server(asyncio.Protocol, "127.0.0.1", 0)
                player.port = free.sockets[0].getsockname()[1]
                free.close()
                await free.wait_closed()
                origin = server.sockets[0].getsockname()[1]
                log = (folder / "out.log").open("wb")
                started = order(player.name, folder, player.port, origin, budget)
                processes.append(subprocess.Popen(started, stdout=log, stderr=log))
                servers.append(server)
                players.append(player)
            for player in players:
                await _open(player.port)
            world.begun = time.monotonic() + 0.5
            await asyncio.gather(*(_replay(world, upstream, player, seconds / 3.0) for player in players))
        finally:
            for process in processes:
                process.terminate()
            for process in processes:
                process.wait(10)
            await upstream.close()
            for server in servers:
                server.close()
    return players


def pair(name: str, lifetime: float) -> tuple[Player, Player]:
    """A cache with one lifetime for all, and ours with as many questions."""
    return Player(name, lifetime), Player("unstale", lifetime - 0.5 if name == "Squid" else lifetime)


async def _open(port: int) -> None:
    for _ in range(300):
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0.1)
        else:
            writer.close()
            return
    raise SystemExit(f"nothing listens at {port}")


async def _replay(world: World, upstream: HttpUpstream, player: Player, counted: float) -> None:
    async def one(i: int) -> None:
        sent = time.monotonic() - world.begun
        version = world.version(i, sent)
        try:
            answered = await upstream.ask("GET", f"http://127.0.0.1:{player.port}/{i}", [("accept", "*/*")])
            body = b"".join([piece async for piece in answered.body])
            if sent >= counted:
                player.answers += 1
                player.fresh += int(body) >= version
                player.waits.append(time.monotonic() - world.begun - sent)
        except (OSError, ValueError) as error:
            player.wrong[str(error)[:60]] += 1

    tasks = set()
    for at, i in zip(world.times.tolist(), world.wanted.tolist(), strict=True):
        await asyncio.sleep(max(0.0, world.begun + at - time.monotonic()))
        task = asyncio.create_task(one(i))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
    await asyncio.gather(*tasks)
    player.asked[:] = [at for at in player.asked if at >= counted]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lifetimes", type=int, nargs="+", default=[10, 30, 60])
    parser.add_argument("--objects", type=int, default=300)
    parser.add_argument("--rate", type=float, default=60.0, help="requests a second")
    parser.add_argument("--seconds", type=float, default=180.0)
    parser.add_argument("--seed", type=int, default=7)
    given = parser.parse_args()
    names = [name for name in ("nginx", "Squid") if shutil.which(name.lower())]
    table = Table("proxy", "fresh answers of caches that ask their origin equally often")
    print("| lifetime | cache | asked its origin | answers | fresh | median wait |\n|---|---|---|---|---|---|")
    for lifetime in given.lifetimes:
        world = World.made(given.objects, given.rate, given.seconds, given.seed)
        for player in asyncio.run(play(world, lifetime, names, given.seconds)):
            share, wait = player.fresh / max(player.answers, 1), 1e3 * float(np.median(player.waits))
            said = "by price" if player.name == "unstale" else f"{lifetime} s"
            asked = len(player.asked)
            print(
                f"| {said} | {player.name} | {asked:,} | {player.answers:,} | {share:.1%} | {wait:.1f} ms |", flush=True
            )
            facts = {"asked": asked, "answers": player.answers, "fresh": share, "wrong": dict(player.wrong)}
            table.facts[f"{player.lifetime:g} s, {player.name}"] = {"value": facts, "bar": ""}
    table.write()


if __name__ == "__main__":
    main()
