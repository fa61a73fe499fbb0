"""The site that walks follow, who is told of it, and the settings under which they walk."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from support.patience import BUSY
from unstale.cli.settings import Http, OnChange, Settings
from unstale.cli.settings_tables import Defaults, Server

#: an icon that is a page, too: one pixel, and behind it what must not run
ICON = (
    bytes.fromhex("47494638396101000100800000ff00000000002c00000000010001000002024401003b")
    + b"<script>pwned=1</script>"
)


class Site:
    """A page that says how often it was asked, and news that somebody writes; and its feed."""

    def __init__(self) -> None:
        self.news, self.asked = "Nine trains a day", 0
        self.messages: list[dict[str, Any]] = []

    def page(self) -> str:
        self.asked += 1
        return (
            "<html><head><title>Trains</title><link rel=alternate type='application/rss+xml' href='/feed'></head>"
            f"<body><p id='clock'>seen {self.asked} times</p><p>{self.news}</p></body></html>"
        )

    def feed(self) -> str:
        return "<rss><channel><title>F</title><item><guid>1</guid><title>Delays</title></item></channel></rss>"


@contextmanager
def serving(site: Site) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            known = {"/trains": (site.page, "text/html"), "/feed": (site.feed, "application/rss+xml")}
            make, kind = known.get(self.path, (None, ""))
            body = b"" if make is None else make().encode()
            if self.path == "/favicon.ico":
                make, kind, body = site.feed, "text/html", ICON
            self.send_response(404 if make is None else 200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self) -> None:
            site.messages.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def told(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.exists() else []


def until(truth: Any, seconds: float = 15.0 * BUSY) -> None:
    end = time.monotonic() + seconds
    while not truth():
        assert time.monotonic() < end
        time.sleep(0.05)


def walked(folder: Path) -> tuple[Settings, Path]:
    """Settings for a walk in a folder, and the file in which changes are told."""
    log = folder / "told.jsonl"
    settings = replace(
        Settings(),
        store=str(folder / "s.db"),
        budget=2.0,
        # Polled once by itself, and then when somebody asks for it.
        defaults=replace(Defaults(), min_interval=86400.0),
        http=replace(Http(), allow_networks=("127.0.0.0/8",), robots=False),
        on_change=(replace(OnChange(), log=str(log)),),
        server=replace(Server(), address="http://dashboard.example", key="$WALK_KEY", icons=True),
    )
    return settings, log
