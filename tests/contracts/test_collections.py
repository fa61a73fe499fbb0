"""What every form of a collection promises, at a real server; forms are discovered, so a new one needs an example.

A look brings the members, each of which can be polled; a second one says nothing; once a member has changed, a look
says so of it, and of nobody else.
"""

from __future__ import annotations

import asyncio
import functools
import http.server
import json
import os
import sqlite3
import subprocess
import threading
import time
import xmlrpc.server
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from support.ftp_server import FtpServer
from support.looking import Looking
from support.object_store import ObjectStore
from support.sftp_server import SftpServer
from unstale.adapters.addresses import Gate
from unstale.adapters.http_fetcher import HttpFetcher
from unstale.adapters.listing_fetcher import ListingFetcher
from unstale.keeper.outcomes import Answer
from unstale.listings.readers import READERS
from unstale.ports import Fetched, Request

#: when files were written first, and then again: clocks of servers count seconds
ONCE, LATER = time.time() - 2000.0, time.time() - 1000.0


@dataclass
class World:
    """A collection at a real server. `change` changes one member; what its address ends with is `changed`."""

    address: str
    members: int
    change: Callable[[], None]
    changed: str
    options: dict[str, Any] = field(default_factory=dict)
    #: where nothing tells of single members, all that are told of
    others: int = 0


class Web:
    """A web server of tests: what it says of a path, with its query, is computed when it is asked."""

    def __init__(self, say: Callable[[str], bytes | None]) -> None:
        self.asked: list[tuple[str, str]] = []
        web = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                web.asked.append((self.path, self.headers.get("accept", "")))
                body = say(self.path)
                self.send_response(404 if body is None else 200)
                self.send_header("content-length", str(len(body or b"")))
                self.end_headers()
                self.wfile.write(body or b"")

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.origin = f"http://127.0.0.1:{self._server.server_port}"

    @contextmanager
    def serving(self) -> Iterator[None]:
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        try:
            yield
        finally:
            self._server.shutdown()
            self._server.server_close()


@contextmanager
def pages(
    form: str, place: str, listing: Callable[[str, dict[str, int], str], bytes], members: int = 3, **options: Any
) -> Iterator[World]:
    """Members 0, 1, 2 at one site, whose versions a listing tells; a change of member 1 is its next version."""
    versions = {f"m{i}": 1 for i in range(members)}

    def say(path: str) -> bytes | None:
        if path.partition("?")[0] == place.partition("?")[0]:
            return listing(web.origin, versions, path)
        name = path.strip("/").rpartition("/")[2]
        return f"{name} {versions[name]}".encode() if name in versions else None

    def change() -> None:
        versions["m1"] += 1

    web = Web(say)
    with web.serving():
        yield World(web.origin + place, members, change, "m1", {"collection": form, **options})


def _day(version: int) -> str:
    return f"2024-05-{version:02d}T10:00:00Z"


def sitemap(origin: str, versions: dict[str, int], path: str) -> bytes:
    urls = (f"<url><loc>{origin}/{k}</loc><lastmod>{_day(v)}</lastmod></url>" for k, v in versions.items())
    return f"<urlset>{''.join(urls)}</urlset>".encode()


def atom(origin: str, versions: dict[str, int], path: str) -> bytes:
    head = '<feed xmlns="http://www.w3.org/2005/Atom">'
    each = (
        f'<entry><id>{k}</id><link href="{origin}/{k}"/><updated>{_day(v)}</updated></entry>'
        for k, v in versions.items()
    )
    return f"{head}{''.join(each)}</feed>".encode()


def objects(origin: str, versions: dict[str, int], path: str) -> bytes:
    """ListObjectsV2 in pages of two, the token being where to go on."""
    at = int(path.partition("continuation-token=")[2] or 0)
    each = [f"<Contents><Key>{k}</Key><ETag>&quot;{v}&quot;</ETag></Contents>" for k, v in versions.items()]
    more = f"<NextContinuationToken>{at + 2}</NextContinuationToken>" if at + 2 < len(each) else ""
    cut = f"<IsTruncated>{str(bool(more)).lower()}</IsTruncated>{more}"
    return f"<ListBucketResult>{cut}{''.join(each[at : at + 2])}</ListBucketResult>".encode()


def simple(origin: str, versions: dict[str, int], path: str) -> bytes:
    told = [{"name": k, "_last-serial": v} for k, v in versions.items()]
    meta = {"api-version": "1.1", "_last-serial": max(versions.values())}
    return json.dumps({"meta": meta, "projects": told}).encode()


def debian(origin: str, versions: dict[str, int], path: str) -> bytes:
    return "\n".join(f"Package: {k}\nFilename: pool/{k}\nSHA256: {v:064x}\n" for k, v in versions.items()).encode()


def table(origin: str, versions: dict[str, int], path: str) -> bytes:
    return "\n".join(["address,tag", *(f"/{k},{v}" for k, v in versions.items())]).encode()


def api(origin: str, versions: dict[str, int], path: str) -> bytes:
    """An answer in pages of two, whose cursor is given back in a parameter."""
    at = int(path.partition("page=")[2] or 0)
    rows = [{"id": k, "edited": _day(v)} for k, v in versions.items()]
    then = at + 2 if at + 2 < len(rows) else None
    return json.dumps({"result": {"rows": rows[at : at + 2]}, "then": then}).encode()


@contextmanager
def changes(folder: Path) -> Iterator[World]:
    """CouchDB's feed of changes: it tells nothing of what was before the first look."""
    feed = [("m0", 1), ("m1", 1)]

    def say(path: str) -> bytes | None:
        if not path.startswith("/db/_changes"):
            return b"document" if path.startswith("/db/m") else None
        since = path.partition("since=")[2].partition("&")[0]
        first = len(feed) if since == "now" else int(since)
        rows = [
            {"seq": n + 1, "id": feed[n][0], "changes": [{"rev": str(feed[n][1])}]} for n in range(first, len(feed))
        ]
        return json.dumps({"results": rows, "last_seq": len(feed)}).encode()

    def change() -> None:
        feed.append(("m1", 2 + len(feed)))

    web = Web(say)
    with web.serving():
        yield World(f"{web.origin}/db/_changes", 0, change, "m1", {"collection": "changes"})


@contextmanager
def changelog(folder: Path) -> Iterator[World]:
    """XML-RPC as Python's own server speaks it, with what a package index answers; beside it the simple index."""
    rows = [["m0", "1.0", int(ONCE), "new release", 1], ["m1", None, int(ONCE), "create", 2]]

    class Handler(xmlrpc.server.SimpleXMLRPCRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path.startswith("/simple/") else 404)
            self.send_header("content-length", "4")
            self.end_headers()
            self.wfile.write(b"page")

    def since(serial: int) -> list[list[object]]:
        return [row for row in rows if int(str(row[4])) > serial]

    def change() -> None:
        rows.append(["m1", "1.1", int(LATER), "new release", 7])

    server = xmlrpc.server.SimpleXMLRPCServer(("127.0.0.1", 0), Handler, logRequests=False, allow_none=True)
    server.register_function(lambda: max(int(str(row[4])) for row in rows), "changelog_last_serial")
    server.register_function(since, "changelog_since_serial")
    with server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield World(f"http://127.0.0.1:{server.server_address[1]}/RPC2", 0, change, "m1")
        server.shutdown()


@contextmanager
def python_index(folder: Path) -> Iterator[World]:
    """The page that Python's own server makes of a folder has neither times nor sizes: it only tells who is there."""
    for k in range(3):
        (folder / f"m{k}").write_text("one")
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(folder))
    handler.func.log_message = lambda *_: None  # type: ignore[attr-defined]
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield World(f"http://127.0.0.1:{server.server_port}/", 3, lambda: None, "", {"collection": "index"})
        server.shutdown()


def files(folder: Path) -> Callable[[], None]:
    for k in range(3):
        _written(folder / f"m{k}", "one", ONCE)
    return lambda: _written(folder / "m1", "two", LATER)


def _written(file: Path, text: str, at: float) -> None:
    file.write_text(text)
    os.utime(file, (at, at))


@contextmanager
def local(folder: Path) -> Iterator[World]:
    yield World(folder.as_uri(), 3, files(folder), "m1")


@contextmanager
def ftp(folder: Path) -> Iterator[World]:
    change = files(folder)
    with FtpServer(folder) as server:
        yield World(server.origin + "/", 3, change, "m1", {"username": "user", "password": "$SECRET"})


@contextmanager
def sftp(folder: Path) -> Iterator[World]:
    change = files(folder)
    with SftpServer(folder) as server:
        own = {"username": "user", "password": "$SECRET", "host_key": server.host_key}
        yield World(server.origin + "/", 3, change, "m1", own)


@contextmanager
def bucket(folder: Path) -> Iterator[World]:
    with ObjectStore() as store:
        store.objects |= {"logs/m0": b"one", "logs/m1": b"one", "other/x": b"one"}

        def change() -> None:
            store.objects["logs/m1"] = b"two"

        own = {"endpoint": store.endpoint, "key": "k", "secret": "$SECRET"}
        yield World("s3://bucket/logs/", 2, change, "m1", own)


@contextmanager
def git(folder: Path) -> Iterator[World]:
    """References as Git's own server program sends them over HTTP, and archives as forges serve them."""
    repository = folder / "a.git"

    def run(*args: str) -> bytes:
        who = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
        done = subprocess.run(["git", *who, *args], cwd=repository, capture_output=True, check=True)
        return done.stdout

    repository.mkdir()
    run("init", "-q", "-b", "main")
    run("commit", "-q", "--allow-empty", "-m", "one")
    run("tag", "-a", "v1", "-m", "first")

    def say(path: str) -> bytes | None:
        if path == "/a.git/info/refs?service=git-upload-pack":
            line = b"# service=git-upload-pack\n"
            told = run("upload-pack", "--http-backend-info-refs", ".")
            return f"{len(line) + 4:04x}".encode() + line + b"0000" + told
        ref = path.removeprefix("/a/archive/").removesuffix(".tar.gz")
        return run("archive", "--format=tar", ref) if path.startswith("/a/archive/") else None

    web = Web(say)
    with web.serving():
        change = functools.partial(run, "commit", "-q", "--allow-empty", "-m", "two")
        yield World(f"{web.origin}/a.git", 2, lambda: bool(change()) and None, "main.tar.gz")


@contextmanager
def sqlite_file(folder: Path) -> Iterator[World]:
    file = folder / "shop.db"
    with closing(sqlite3.connect(file)) as db, db:
        db.executescript("CREATE TABLE a (id INTEGER PRIMARY KEY); CREATE TABLE b (id INTEGER PRIMARY KEY);")

    def change() -> None:
        with closing(sqlite3.connect(file)) as db, db:
            db.execute("INSERT INTO b VALUES (7)")

    yield World(f"sqlite:///{file}", 2, change, "#b", others=1)


@contextmanager
def crawl(folder: Path) -> Iterator[World]:
    there = {"/": b'<a href="/a">a</a><a href="/b">b</a><a href="https://other.example/">o</a>', "/a": b"a", "/b": b"b"}
    web = Web(lambda path: there.get(path))
    with web.serving():
        yield World(f"{web.origin}/", 2, lambda: None, "", {"collection": "links"})


WORLDS: dict[str, tuple[str, Callable[[Path], Any]]] = {
    "sitemap": ("sitemap", lambda folder: pages("sitemap", "/sitemap.xml", sitemap)),
    "feed": ("feed", lambda folder: pages("feed", "/atom.xml", atom)),
    "index of Python": ("index", python_index),
    "local folder": ("folder", local),
    "FTP": ("folder", ftp),
    "SFTP": ("folder", sftp),
    "bucket": ("folder", bucket),
    "pages of a bucket": ("objects", lambda folder: pages("objects", "/", objects)),
    "packages of Python": ("simple", lambda folder: pages("simple", "/simple/", simple)),
    "CouchDB": ("changes", changes),
    "changelog of packages": ("changelog", changelog),
    "packages of Debian": (
        "debian",
        lambda folder: pages("debian", "/debian/dists/stable/main/binary-all/Packages", debian),
    ),
    "git": ("refs", git),
    "table": ("table", lambda folder: pages("table", "/all.csv", table)),
    "API in pages": (
        "table",
        lambda folder: pages(
            "table", "/v1/things", api, items="result.rows", member="/{id}", time="edited", next="then", cursor="page"
        ),
    ),
    "SQLite": ("catalogue", sqlite_file),
    "crawl": ("links", crawl),
}
#: forms with tests of their own, for what they need
ELSEWHERE = {"digest"}


@pytest.mark.parametrize("name", WORLDS)
def test_a_look_tells_who_changed_and_members_can_be_polled(name: str, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("SECRET", "password")
    folder = tmp_path / "there"
    folder.mkdir()

    async def scene(world: World) -> None:
        looking = Looking(world.address, world.options, tmp_path)
        try:
            _, told = await looking.look()
            assert (len(looking.known), told) == (world.members, set())
            for member in looking.known:
                found = await looking.poll(member.address)
                assert found.answer is Answer.CHANGED, (member.address, found.reason)
            _, told = await looking.look()
            assert told == set()
            world.change()
            _, told = await looking.look()
            if world.members and world.changed:
                assert any(address.rstrip("/").endswith(world.changed) for address in told)
                assert len(told) == 1 + world.others
            elif world.changed:
                # It tells only of what comes after the first look.
                assert [member.address.rstrip("/").rpartition("/")[2] for member in looking.known] == [world.changed]
        finally:
            await looking.fetchers.close()

    with WORLDS[name][1](folder) as world:
        asyncio.run(scene(world))


def test_a_changelog_is_followed_to_its_end_and_what_nobody_wants_is_not_asked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Full pages are followed by others, by one rebuff the whole look fails, and the point moves with every answer."""
    monkeypatch.setattr("unstale.listings.changelog.FULL", 3)
    rows = [[f"p{k}", "1.0", int(ONCE), "new release", k] for k in range(1, 9)]
    asked = list[int]()

    def since(serial: int) -> list[list[object]]:
        if serial == 99:
            raise ValueError("too many requests")
        asked.append(serial)
        return [row for row in rows if int(str(row[4])) > serial][:3]

    async def scene(address: str) -> None:
        # Read in this process, where a full page is a small one.
        fetcher = ListingFetcher(HttpFetcher(Gate(["127.0.0.1/32"])), pause=0.0)

        async def look(point: int, **options: str) -> Fetched:
            return await fetcher.fetch(
                Request(address, etag=f'"since-{point}"', options={"collection": "changelog", **options})
            )

        def told(found: Fetched) -> list[str]:
            assert found.body is not None, found.reason
            shown = json.loads(found.body)
            assert shown["complete"] is True
            return [entry[0].rpartition("/")[2] for entry in shown["entries"]]

        try:
            found = await look(1, member="/{name}")
            assert (told(found), asked, found.etag) == ([f"p{k}" for k in range(2, 9)], [1, 4, 7], '"since-8"')
            again = await look(8)
            assert (again.answer, again.etag) == (Answer.UNCHANGED, '"since-8"')
            unwanted = await look(7, never="*")
            assert (told(unwanted), unwanted.etag) == ([], '"since-8"')
            refused = await look(99)
            assert refused.answer is Answer.FAILED
            assert "too many requests" in refused.reason
        finally:
            await fetcher.close()

    server = xmlrpc.server.SimpleXMLRPCServer(("127.0.0.1", 0), logRequests=False)
    server.register_function(since, "changelog_since_serial")
    with server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        asyncio.run(scene(f"http://127.0.0.1:{server.server_address[1]}/RPC2"))
        server.shutdown()


def test_an_index_that_a_lagging_cache_serves_says_nothing_new(tmp_path: Path) -> None:
    """Serials rise: of two caches the one that is behind says of nobody that it changed, nor does the other then."""
    lag = [0]

    def cached(origin: str, versions: dict[str, int], path: str) -> bytes:
        return simple(origin, {name: max(version - lag[0], 1) for name, version in versions.items()}, path)

    async def scene(world: World) -> None:
        looking = Looking(world.address, world.options, tmp_path)
        try:
            await looking.look()
            # What an earlier version has kept is the same serial.
            looking.known = [replace(member, tag="1") for member in looking.known]
            assert (await looking.look())[1] == set()
            world.change()
            told = []
            for behind in (0, 1, 0, 1):
                lag[0] = behind
                looking.claim = replace(looking.claim, etag=None)
                told.append((await looking.look())[1])
            assert [len(one) for one in told] == [1, 0, 0, 0]
            world.change()
            lag[0] = 0
            assert (await looking.look())[1] == told[0]
        finally:
            await looking.fetchers.close()

    with pages("simple", "/simple/", cached) as world:
        asyncio.run(scene(world))


def test_every_form_has_an_example() -> None:
    assert {form for form, _ in WORLDS.values()} | ELSEWHERE == set(READERS)
