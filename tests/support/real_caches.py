"""Caches that others wrote, started in front of a server of ours: nginx, Varnish, Squid, and those of Python."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests

from support.ports import free_port


def tool(name: str) -> str:
    path = shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin")
    if path is None:
        pytest.skip(f"{name} is not installed")
    return path


def reachable(port: int, process: subprocess.Popen[bytes]) -> None:
    for _ in range(200):
        assert process.poll() is None, "it ended"
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise AssertionError("it does not listen")


@contextmanager
def running(command: list[str], port: int) -> Iterator[str]:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        reachable(port, process)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(20)


@contextmanager
def nginx(folder: Path, origin: str) -> Iterator[str]:
    port = free_port()
    conf = folder / "nginx.conf"
    who = "user root;" if os.geteuid() == 0 else ""
    temporary = "".join(f"{kind}_temp_path {folder}/{kind};" for kind in ("client_body", "proxy"))
    conf.write_text(f"""{who} daemon off; pid {folder}/nginx.pid; error_log {folder}/error.log;
events {{}}
http {{ access_log off; {temporary}
  proxy_cache_path {folder}/cache keys_zone=z:1m;
  server {{ listen 127.0.0.1:{port};
    location / {{ proxy_pass {origin}; proxy_cache z; proxy_cache_revalidate on;
                  add_header X-Cache $upstream_cache_status; }} }} }}""")
    with running([tool("nginx"), "-p", str(folder), "-c", str(conf), "-e", str(folder / "error.log")], port) as base:
        yield base


@contextmanager
def varnish(folder: Path, origin: str) -> Iterator[str]:
    folder.chmod(0o755)  # it gives up root's rights before it compiles here
    port = free_port()
    command = [
        tool("varnishd"),
        "-F",
        "-n",
        str(folder),
        "-a",
        f"127.0.0.1:{port}",
        "-b",
        origin.removeprefix("http://"),
        "-s",
        "malloc,16m",
    ]
    with running(command, port) as base:
        yield base


@contextmanager
def squid(folder: Path, origin: str) -> Iterator[str]:
    port, conf = free_port(), folder / "squid.conf"
    folder.chmod(0o777)  # it gives up root's rights, and writes its log here
    conf.write_text(f"""http_port 127.0.0.1:{port} accel defaultsite=127.0.0.1 no-vhost
cache_peer 127.0.0.1 parent {origin.rpartition(":")[2]} 0 no-query no-digest no-netdb-exchange originserver
http_access allow all
access_log none
cache_log {folder}/squid.log
pid_filename none
pinger_enable off
shutdown_lifetime 1 seconds
visible_hostname test
""")
    with running([tool("squid"), "-N", "-f", str(conf)], port) as base:
        yield base


def python_caches(folder: Path) -> dict[str, requests.Session]:
    found: dict[str, requests.Session] = {}
    try:
        import hishel.requests
        from hishel import SqliteStorage

        session = requests.Session()
        store = SqliteStorage(database_path=folder / "hishel.db")
        session.mount("http://", hishel.requests.CacheAdapter(storage=store, rfc=True))
        found["hishel"] = session
        import requests_cache

        found["requests-cache"] = requests_cache.CachedSession(backend="memory", cache_control=True)
        import cachecontrol

        found["CacheControl"] = cachecontrol.CacheControl(requests.Session())
    except ImportError as error:
        sys.stdout.write(f"left out: {error}\n")
    return found
