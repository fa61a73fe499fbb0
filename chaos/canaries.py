"""Secrets in every place that takes one, sources that fail in every way: then nothing that is shown or kept has one."""

from __future__ import annotations

import asyncio
import contextlib
import http.server
import json
import logging
import os
import tempfile
import threading
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

from click.testing import CliRunner

from unstale.cli.compose import Application
from unstale.cli.main import unstale as command
from unstale.cli.serve import run as serve
from unstale.cli.settings import load

#: variables that hold secrets, one for each place that takes one
SLOTS = (
    "HEADER", "KEY_HEADER", "COOKIE", "QUERY", "PATH_PART", "FEED_HEADER", "FEED_QUERY", "REDIRECTED", "GARBAGE",
    "REFUSED", "API_TOKEN", "API_USER", "API_PASSWORD", "CLIENT", "CLIENT_SECRET", "PG_PASSWORD", "MYSQL_PASSWORD",
    "S3_KEY", "S3_SECRET", "FTP_PASSWORD", "SFTP_PASSWORD", "HOOK_PART", "HOOK_SECRET", "LINEAGE", "UNSTALE_TOKEN",
    "READER", "OPERATOR", "HUB_SECRET", "REPLICAS",
)  # fmt: skip
READ = ("sources", "sources/1", "sources/4", "status", "plan", "hosts", "prices", "budget", "openapi.json")
PAGES = ("/metrics", "/", "/dashboard/", "/digest?since=0", "/copies/1/_meta", "/healthz", "/readyz")
WORDS = (
    ("list",), ("list", "--json"), ("status",), ("status", "--json"), ("explain", "1"), ("explain", "4"),
    ("history", "4"), ("export", "-"), ("doctor",), ("signals",), ("budget",), ("poll", "2"), ("poll", "11"),
    ("get", "4"), ("tables",),
)  # fmt: skip


def _value(slot: str) -> str:
    return f"canary-{slot.lower()}-9d41c7a58e02f1b36d9c04"


def told_of_error(said: bytes) -> bool:
    """Whether a command has refused what it was told."""
    return b"InputError" in said or b"Error:" in said or b"SystemExit" in said


class Hostile(http.server.BaseHTTPRequestHandler):
    """Answers as its path says, and tells what it was asked wherever an answer has room, but for the body of a copy."""

    def do_GET(self) -> None:
        """One answer."""
        said = [self.headers.get(name, "") for name in ("Authorization", "Cookie", "X-Api-Key")]
        echo = " ".join([self.path, *said])
        if "redirect" in self.path:
            self.send_response(302)
            self.send_header("Location", self.path.replace("redirect", "broken") + "&again=1")
            self.end_headers()
        elif "garbage" in self.path:
            self.wfile.write(b"garbage " + echo.encode() + b"\r\n\r\n")
        elif "broken" in self.path:
            self.send_response(500, f"no {echo}")
            self.send_header("Retry-After", echo)
            self.end_headers()
            self.wfile.write(echo.encode())
        else:
            self.send_response(200)
            self.send_header("Content-Type", "text/plain")
            self.send_header("Warning", echo)
            self.end_headers()
            self.wfile.write(b"well" if self.path != "/robots.txt" else b"")

    do_POST = do_GET

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


@contextlib.contextmanager
def _hostile() -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hostile)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def _settings(origin: str) -> str:
    return f"""
store = "s.db"
budget = "20/s"
[http]
allow_networks = ["127.0.0.0/8"]
timeout = "3s"
[files]
schemes = ["s3", "ftp", "sftp"]
[sql]
lineage = "{origin}/broken/lineage"
lineage_token = "$LINEAGE"
[apis.first]
base = "{origin}/broken/api"
token = "$API_TOKEN"
[apis.second]
base = "{origin}/broken/named"
username = "$API_USER"
password = "$API_PASSWORD"
[apis.third]
base = "{origin}/broken/granted"
token_address = "{origin}/broken/token"
client = "$CLIENT"
client_secret = "$CLIENT_SECRET"
[server]
reader_password = "$READER"
operator_password = "$OPERATOR"
hub_secret = "$HUB_SECRET"
[replicas]
name = "here"
peers = ["{origin}/broken/peer"]
token = "$REPLICAS"
[[on_change]]
webhook = "{origin}/broken/$HOOK_PART"
secret = "$HOOK_SECRET"
"""


def _sources(origin: str) -> list[list[str]]:
    return [
        [f"{origin}/well/1", "--header", "Authorization=Bearer $HEADER"],
        [f"{origin}/broken/2", "--header", "X-Api-Key=$KEY_HEADER"],
        [f"{origin}/well/3", "--header", "Cookie=$COOKIE"],
        [f"{origin}/broken/4?api_key=$QUERY"],
        [f"{origin}/broken/$PATH_PART/x"],
        [f"{origin}/broken/feed", "--kind", "feed", "--header", "Authorization=Bearer $FEED_HEADER"],
        [f"{origin}/broken/feed2?token=$FEED_QUERY", "--kind", "feed"],
        [f"{origin}/redirect/5?api_key=$REDIRECTED"],
        [f"{origin}/garbage/6?api_key=$GARBAGE"],
        ["http://127.0.0.1:1/7?api_key=$REFUSED"],
        [f"{origin}/broken/api/a", "--kind", "api"],
        [f"{origin}/broken/named/a", "--kind", "api"],
        [f"{origin}/broken/granted/a", "--kind", "api"],
        ["postgresql://me:$PG_PASSWORD@127.0.0.1:1/shop#orders", "--kind", "sql"],
        ["mysql://me:$MYSQL_PASSWORD@127.0.0.1:1/shop#orders", "--kind", "sql"],
        ["s3://bucket/x", "--kind", "file", "--option", "key=$S3_KEY", "--option", "secret=$S3_SECRET"],
        ["ftp://127.0.0.1:1/x", "--kind", "file", "--option", "password=$FTP_PASSWORD"],
        ["sftp://127.0.0.1:1/x", "--kind", "file", "--option", "password=$SFTP_PASSWORD"],
    ]


async def _engine(config: Path, heard: list[str]) -> None:
    stop = asyncio.Event()
    application = Application(load(str(config)), lambda name, facts: heard.append(f"{name} {dict(facts)}"))
    running = asyncio.create_task(application.run(stop))
    await asyncio.wait({running}, timeout=6.0)
    heard.append(json.dumps(application.engine.view(0.0), default=str))
    stop.set()
    await running


async def _served(config: Path) -> list[tuple[str, bytes]]:
    stop, ready = asyncio.Event(), asyncio.get_running_loop().create_future()
    running = asyncio.create_task(serve(load(str(config)), "127.0.0.1", 0, ready=ready.set_result, stop=stop))
    await asyncio.wait({running, ready}, return_when=asyncio.FIRST_COMPLETED)
    found = []
    for path in (*(f"/api/v1/{one}" for one in READ), *PAGES):
        request = urllib.request.Request(
            f"http://127.0.0.1:{ready.result()}{path}", headers={"Authorization": f"Bearer {_value('UNSTALE_TOKEN')}"}
        )

        def ask(request: urllib.request.Request = request) -> bytes:
            try:
                with urllib.request.urlopen(request, timeout=20) as said:
                    return bytes(said.read()) + str(said.headers).encode()
            except urllib.error.HTTPError as error:
                return error.read() + str(error.headers).encode()

        found.append((path, await asyncio.to_thread(ask)))
    stop.set()
    await running
    return found


def canaries(first: int, count: int, folder: Path) -> Counter[str]:
    """All places at once: what was shown, told, logged, kept and saved, and in which of it a secret is."""
    shown: list[tuple[str, bytes]] = []
    with contextlib.ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=folder)))
        origin = stack.enter_context(_hostile())
        stack.enter_context(mock.patch.dict(os.environ, {slot: _value(slot) for slot in SLOTS}))
        config = place / "unstale.toml"
        config.write_text(_settings(origin))
        logged = logging.StreamHandler((place / "log.txt").open("w"))
        logging.getLogger().addHandler(logged)
        stack.callback(logging.getLogger().removeHandler, logged)

        def say(*words: str) -> None:
            told = CliRunner().invoke(command, [*words, "--config", str(config)])
            fault = repr(told.exception) + repr(told.exc_info) if told.exception else ""
            shown.append((" ".join(words[:2]), (told.output + fault).encode()))

        refused = 0
        for words in _sources(origin):
            say("add", *words)
            refused += told_of_error(shown[-1][1])
        heard: list[str] = []
        asyncio.run(_engine(config, heard))
        shown += [("events", one.encode()) for one in heard]
        for words in WORDS:
            say(*words)
        say("backup", str(place / "backup.db"))
        shown += asyncio.run(_served(config))
        logged.flush()
        shown += [(file.name, file.read_bytes()) for file in place.rglob("*") if file.is_file() and file != config]
    found = Counter({"rounds": len(SLOTS), "shown": len(shown), "sources refused": refused, "shows a secret": 0})
    for where, text in shown:
        for slot in SLOTS:
            if _value(slot).encode() in text:
                found["shows a secret"] += 1
                found[f"crash: {where} {slot}"] += 1
    return found
