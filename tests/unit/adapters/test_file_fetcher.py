"""Files here and elsewhere: nothing outside the roots, no more than was asked, and no thread that stays for ever."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.ftp_server import FtpServer
from support.object_store import ObjectStore
from support.patience import SOON
from support.sftp_server import SftpServer
from unstale.adapters import file_fetcher, local_files
from unstale.adapters.addresses import Gate
from unstale.adapters.environment import filled
from unstale.adapters.file_fetcher import SETTLED, FileFetcher
from unstale.adapters.file_places import Leash, Spot, spot
from unstale.errors import InputError
from unstale.keeper.outcomes import Answer
from unstale.ports import Fetched, Request

LOOPBACK = Gate(["127.0.0.0/8"])


def look(
    address: str,
    *roots: Path,
    now: float | None = None,
    schemes: tuple[str, ...] = (),
    gate: Gate = LOOPBACK,
    **asked: Any,
) -> Fetched:
    """One look by a fetcher of its own; files are as good as settled unless a time is given."""

    async def scene() -> Fetched:
        clock = time.time() + 2 * SETTLED if now is None else now
        fetcher = FileFetcher(gate, roots=roots, schemes=schemes, now=lambda: clock)
        try:
            return await fetcher.fetch(Request(address, **asked))
        finally:
            await fetcher.close()

    return asyncio.run(scene())


def test_a_file_and_its_tag(tmp_path: Path) -> None:
    file = tmp_path / "a b.csv"
    file.write_bytes(b"id\n1\n")
    os.utime(file, (1e9, 1.5e9))
    address = f"file://{tmp_path}/a%20b.csv"
    got = look(address, tmp_path)
    assert (got.answer, got.body, got.media_type) == (Answer.CHANGED, b"id\n1\n", "text/csv")
    assert (got.changed_at, got.received, got.address) == ((1.5e9,), 5, address)
    same = look(address, tmp_path, etag=got.etag)
    # one look at its inode, and nothing is read
    assert (same.answer, same.body, same.etag, same.received) == (Answer.UNCHANGED, None, got.etag, 0)
    file.write_bytes(b"id\n2\n")
    os.utime(file, (1e9, 1.5e9))
    other = look(address, tmp_path, etag=got.etag)
    assert (other.answer, other.body) == (Answer.CHANGED, b"id\n2\n")
    assert other.etag != got.etag


def test_a_file_that_was_just_written_is_told_by_its_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two bodies of one size within a tick of the file system's clock have the same times."""
    file = tmp_path / "a"
    file.write_bytes(b"one")
    written = file.stat()
    fixed = local_files.Found("same tag", False, 3, written.st_mtime, written.st_mtime)
    monkeypatch.setattr(local_files.LocalPlace, "look", lambda self: fixed)
    now = written.st_mtime + 1.0
    first = look(f"file://{file}", tmp_path, now=now)
    again = look(f"file://{file}", tmp_path, now=now, etag=first.etag)
    assert (again.answer, again.etag) == (Answer.UNCHANGED, first.etag)
    file.write_bytes(b"two")
    assert look(f"file://{file}", tmp_path, now=now, etag=first.etag).body == b"two"
    # once settled the body comes with a tag that needs no reading any more
    later = look(f"file://{file}", tmp_path, now=now + SETTLED, etag=first.etag)
    assert later.body == b"two"
    last = look(f"file://{file}", tmp_path, now=now + SETTLED, etag=later.etag)
    assert (last.answer, last.received) == (Answer.UNCHANGED, 0)


@pytest.mark.parametrize(
    ("name", "media_type"),
    [("a.json", "application/json"), ("a.csv.gz", "application/gzip"), ("a", "application/octet-stream")],
)
def test_media_types_by_name_and_empty_files(tmp_path: Path, name: str, media_type: str) -> None:
    (tmp_path / name).touch()
    got = look(f"file://{tmp_path}/{name}", tmp_path)
    assert (got.answer, got.body, got.media_type) == (Answer.CHANGED, b"", media_type)


def test_a_huge_file_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(2**40)
    begin = time.monotonic()
    got = look(f"file://{tmp_path}/huge", tmp_path, limit=2**20)
    assert got.reason == "file: the body has more than 1048576 bytes"
    assert time.monotonic() - begin < SOON


def test_a_file_that_grows_beyond_the_limit_while_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_bytes(b"a" * 2000)
    monkeypatch.setattr(local_files.LocalPlace, "look", lambda self: local_files.Found("tag", True, 10))
    assert "more than 1000 bytes" in look(f"file://{tmp_path}/a", tmp_path, limit=1000).reason


def test_a_file_that_is_replaced_while_it_is_read_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, draft = tmp_path / "a", tmp_path / "b"
    file.write_bytes(b"1" * 10)
    read = local_files.LocalPlace.read

    def meanwhile(self: Any, limit: int) -> Iterator[bytes]:
        draft.write_bytes(b"2" * 10)
        draft.replace(file)
        return read(self, limit)

    monkeypatch.setattr(local_files.LocalPlace, "read", meanwhile)
    first = look(f"file://{file}", tmp_path)
    assert first.body == b"1" * 10
    assert look(f"file://{file}", tmp_path, etag=first.etag).body == b"2" * 10


def test_a_file_that_is_written_while_it_is_read_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "a"
    file.write_bytes(b"1")
    read, times, often = local_files.LocalPlace.read, [0], [2]

    def meanwhile(self: Any, limit: int) -> Iterator[bytes]:
        held = b"".join(read(self, limit))
        times[0] += 1
        if times[0] < often[0]:
            file.write_bytes(b"1" * (times[0] + 1))
        return iter([held])

    monkeypatch.setattr(local_files.LocalPlace, "read", meanwhile)
    got = look(f"file://{file}", tmp_path)
    assert (got.body, times) == (b"11", [2])
    assert got.etag
    # one that never rests is taken as it is, and read again next time
    times[0], often[0] = 0, 99
    got = look(f"file://{file}", tmp_path)
    assert (got.answer, got.etag, got.changed_at, times[0]) == (Answer.CHANGED, None, (), file_fetcher.TRIES)


def test_nothing_outside_the_roots(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "root2"
    (root / "inner").mkdir(parents=True)
    outside.mkdir()
    (outside / "secret").write_text("secret")
    (root / "link").symlink_to(outside / "secret")
    (root / "folder").symlink_to(outside)
    (root / "inner" / "good").write_text("good")
    (root / "inside").symlink_to("inner/good")
    for path in (
        "link",
        "folder/secret",
        "folder",
        "../root2/secret",
        "inner/../../root2/secret",
        "folder/none",
        "%2e%2e/root2/secret",
        "../none",
        "folder/*",
    ):
        got = look(f"file://{root}/{path}", root)
        assert (got.answer, got.body) == (Answer.FAILED, None), path
        assert "not below a folder named in roots" in got.reason, path
        assert "root2" not in got.reason
    for path in ("inner/good", "inside", "inner/../inner/good", "./inner//good"):
        assert look(f"file://{root}/{path}", root).body == b"good"
    # roots may be links themselves
    (tmp_path / "alias").symlink_to(root)
    assert look(f"file://{tmp_path}/alias/inside", tmp_path / "alias").body == b"good"


def test_a_folder_that_becomes_a_link_on_the_way_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    (root / "a").mkdir(parents=True)
    outside.mkdir()
    (root / "a" / "x").write_text("good")
    (outside / "x").write_text("secret")
    real = os.path.realpath

    def race(path: str) -> str:
        found = real(path)
        (root / "a").rename(root / "b")
        (root / "a").symlink_to(outside)
        return found

    fetcher = FileFetcher(roots=[root])
    monkeypatch.setattr(local_files.os.path, "realpath", race)
    got = asyncio.run(fetcher.fetch(Request(f"file://{root}/a/x")))
    assert (root / "a" / "x").read_text() == "secret"
    assert (got.answer, got.body) == (Answer.FAILED, None)


def test_pipes_sockets_and_devices_are_refused_without_opening_them(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        here = Path.cwd()
        os.chdir(tmp_path)  # the name of a socket has to be short
        try:
            listener.bind("socket")
        finally:
            os.chdir(here)
        for path in (tmp_path / "pipe", tmp_path / "socket", Path("/dev/zero"), Path("/dev/null")):
            begin = time.monotonic()
            got = look(f"file://{path}", tmp_path, Path("/dev"))
            assert got.reason == "file: it is no file or folder: pipes, sockets and devices are not polled"
            assert time.monotonic() - begin < SOON


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is forbidden to root")
def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    (tmp_path / "a").chmod(0)
    assert look(f"file://{tmp_path}/a", tmp_path).reason == "file: it may not be read"


def test_refusals_of_the_system_are_reasons(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for fault, reason in (
        (PermissionError(13, "x", "/secret"), "file: it may not be read"),
        (OSError(5, "x", "/secret"), "file: it could not be read (Input/output error)"),
        (RuntimeError("/secret"), "file: it could not be read (RuntimeError)"),
    ):
        monkeypatch.setattr(file_fetcher, "LocalPlace", lambda *_, fault=fault: (_ for _ in ()).throw(fault))
        assert look(f"file://{tmp_path}/a", tmp_path).reason == reason
    monkeypatch.undo()
    assert look(f"file://{tmp_path}/none", tmp_path).reason == "file: it does not exist"
    (tmp_path / "loop").symlink_to("loop")
    assert look(f"file://{tmp_path}/loop", tmp_path).answer is Answer.FAILED


def test_a_folder_is_the_list_of_its_names(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    assert json.loads(look(f"file://{folder}", tmp_path).body or b"x") == []
    for name, size in (("b.csv", 2), ("a.csv", 1), ("c.txt", 0), ("\udcff.csv", 0)):
        (folder / name).write_bytes(b"x" * size)
        os.utime(folder / name, (1e9, 1.5e9 + size))
    (folder / "link.csv").symlink_to("/etc/passwd")
    (folder / "sub").mkdir()
    got = look(f"file://{folder}", tmp_path)
    rows = json.loads(got.body or b"")
    assert [(row["name"], row["kind"], row["size"]) for row in rows] == [
        ("a.csv", "file", 1),
        ("b.csv", "file", 2),
        ("c.txt", "file", 0),
        ("link.csv", "link", 0),
        ("sub", "folder", 0),
        ("\udcff.csv", "file", 0),
    ]
    assert rows[0]["modified"] == 1.5e9 + 1
    assert got.media_type == "application/json"
    assert got.changed_at == (
        max(folder.stat().st_mtime, (folder / "sub").stat().st_mtime, (folder / "link.csv").lstat().st_mtime),
    )
    assert look(f"file://{folder}/", tmp_path, etag=got.etag).answer is Answer.UNCHANGED
    chosen = look(f"file://{folder}/*.csv", tmp_path)
    assert [row["name"] for row in json.loads(chosen.body or b"")] == ["a.csv", "b.csv", "link.csv", "\udcff.csv"]
    (folder / "c.txt").unlink()
    assert look(f"file://{folder}", tmp_path, etag=got.etag).answer is Answer.CHANGED
    assert look(f"file://{folder}/*.csv", tmp_path, etag=chosen.etag).answer is Answer.UNCHANGED
    assert "more than 100 bytes" in look(f"file://{folder}", tmp_path, limit=100).reason


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("s3://bucket/key", "with scheme 's3' is not polled as a file: add it to schemes"),
        ("http://example.org/", "with scheme 'http' is not polled as a file: only file, ftp"),
        ("memory://a", "with scheme 'memory' is not polled as a file: only"),
        ("simplecache::file:///etc/passwd", "chains one place behind another"),
        ("file:///etc/passwd::zip://a", "chains one place behind another"),
        ("/etc/passwd", "is not one of a file"),
        ("file:/etc/passwd", "is not one of a file"),
        ("file://host/etc/passwd", "is not one of a file"),
        ("file://localhost/etc/passwd", "is not one of a file"),
        ("s3://", "is not one of a file"),
        ("ftp:///a", "is not one of a file"),
        ("ftp://[1:2/a", "is not one of a file"),
        ("ftp://user:word@host/a", "holds credentials"),
        ("file:///a%00b", "control character"),
        ("ftp://h/a%0d%0aDELE b", "control character"),
        ("file:///a\nb", "control character"),
        ("file:///" + "a" * 9000, "must have at most 8192"),
        ("file:///\ud800", "file: "),
    ],
)
def test_addresses_that_lead_nowhere(tmp_path: Path, address: str, why: str) -> None:
    got = look(address, tmp_path)
    assert got.answer is Answer.FAILED
    assert why in got.reason
    assert "word" not in got.reason
    assert "passwd" not in got.reason


@given(st.text(max_size=60), st.sampled_from(["file:///", "s3://", "ftp://", "sftp://h/", ""]))
def test_no_address_raises_anything_else(text: str, head: str) -> None:
    try:
        where = spot(head + text)
    except InputError:
        return
    assert "://" in head + text
    assert where.scheme


def test_parts_of_addresses() -> None:
    assert spot("FILE:///a%2Ab") == Spot("file", "", None, "/a*b")
    assert spot("ftp://[::1]:2121/a?b#c") == Spot("ftp", "::1", 2121, "/a?b#c")
    assert spot("s3://Bucket_1/a%20b/c:d") == Spot("s3", "Bucket_1", None, "a%20b/c:d")
    assert spot("s3://bucket/*.csv") == Spot("s3", "bucket", None, "", "*.csv")
    assert spot("s3://bucket") == Spot("s3", "bucket", None, "")


def test_when_no_thread_can_be_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").touch()

    async def scene() -> None:
        fetcher = FileFetcher(roots=[tmp_path], threads=1)
        with monkeypatch.context() as patched:
            patched.setattr(threading.Thread, "start", lambda self: (_ for _ in ()).throw(RuntimeError()))
            assert "no thread could be started" in (await fetcher.fetch(Request(f"file://{tmp_path}/a"))).reason
        assert (await fetcher.fetch(Request(f"file://{tmp_path}/a"))).body == b""
        await fetcher.close()

    asyncio.run(scene())


def test_a_scheme_nobody_knows_is_refused_at_once() -> None:
    with pytest.raises(InputError, match="schemes 'reference' is not polled: use some of file, ftp"):
        FileFetcher(schemes=["s3", "reference"])


def test_one_that_hangs_is_left_behind_and_a_few_at_most(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    release = threading.Event()
    monkeypatch.setattr(local_files.LocalPlace, "look", lambda self: release.wait() and None)
    (tmp_path / "a").touch()

    async def scene() -> None:
        fetcher = FileFetcher(roots=[tmp_path], threads=3)
        before = set(threading.enumerate())
        begin = time.monotonic()
        got = await asyncio.gather(*(fetcher.fetch(Request(f"file://{tmp_path}/a", seconds=0.2)) for _ in range(20)))
        assert time.monotonic() - begin < SOON
        assert {fetched.reason for fetched in got} == {"file: no whole answer within 0.2 s"}
        assert len(set(threading.enumerate()) - before) == 3
        # those that come to an end make room
        monkeypatch.undo()
        release.set()
        assert (await fetcher.fetch(Request(f"file://{tmp_path}/a"))).body == b""
        await fetcher.close()

    asyncio.run(scene())


def test_the_process_ends_though_a_look_hangs(tmp_path: Path) -> None:
    code = f"""
import asyncio, threading
from unstale.adapters import local_files
from unstale.adapters.file_fetcher import FileFetcher
from unstale.ports import Request
local_files.LocalPlace.look = lambda self: threading.Event().wait()
print(asyncio.run(FileFetcher(roots=[{str(tmp_path)!r}]).fetch(Request("file://{tmp_path}", seconds=0.1))).reason)
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=10 * SOON)
    assert (ended.stdout, ended.stderr) == ("file: no whole answer within 0.1 s\n", "")


def test_ftp(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"x" * 300_000)
    os.utime(tmp_path / "a.csv", (1e9, 1.5e9))
    (tmp_path / "sub").mkdir()
    with FtpServer(tmp_path) as server:
        got = look(f"{server.origin}/a.csv", schemes=("ftp",))
        assert got.body is not None
        assert hashlib.sha256(got.body).digest() == hashlib.sha256(b"x" * 300_000).digest()
        assert (got.changed_at, got.media_type) == ((1.5e9,), "text/csv")
        server.asked.clear()
        same = look(f"{server.origin}/a.csv", schemes=("ftp",), etag=got.etag)
        assert same.answer is Answer.UNCHANGED
        assert [line.split()[0] for line in server.asked] == ["USER", "PASS", "TYPE", "MLST"]
        rows = json.loads(look(f"{server.origin}/", schemes=("ftp",)).body or b"")
        assert [(row["name"], row["kind"], row["size"]) for row in rows] == [
            ("a.csv", "file", 300_000),
            ("sub", "folder", 0),
        ]
        assert look(f"{server.origin}/none", schemes=("ftp",)).reason == "127.0.0.1: it does not exist"
        assert "more than 99999 bytes" in look(f"{server.origin}/a.csv", schemes=("ftp",), limit=99_999).reason


def test_ftp_servers_that_know_no_facts(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"one")
    os.utime(tmp_path / "a", (1e9, 1.5e9))
    with FtpServer(tmp_path, without=("MLST", "MLSD")) as server:
        got = look(f"{server.origin}/a", schemes=("ftp",))
        assert (got.body, got.changed_at) == (b"one", (1.5e9,))
        assert look(f"{server.origin}/a", schemes=("ftp",), etag=got.etag).answer is Answer.UNCHANGED
        assert "cannot list it with facts" in look(f"{server.origin}/", schemes=("ftp",)).reason
        assert "does not exist" in look(f"{server.origin}/b", schemes=("ftp",)).reason


def test_credentials_come_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_bytes(b"one")
    options = {"username": "user", "password": "${FTP_WORD}"}
    with FtpServer(tmp_path) as server:
        got = look(f"{server.origin}/a", schemes=("ftp",), options=options)
        assert "environment variable FTP_WORD is not set" in got.reason
        monkeypatch.setenv("FTP_WORD", "password")
        assert look(f"{server.origin}/a", schemes=("ftp",), options=options).body == b"one"
        assert "PASS password" in server.asked
        monkeypatch.setenv("FTP_WORD", "wrong")
        got = look(f"{server.origin}/a", schemes=("ftp",), options=options)
        assert "it refused the credentials" in got.reason
        assert "wrong" not in got.reason
    monkeypatch.setenv("A", "1")
    assert filled("$A-${A}$") == "1-1$"


def test_private_hosts_are_not_dialled(tmp_path: Path) -> None:
    with FtpServer(tmp_path) as server:
        for host in ("127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "127.1", "0x7f.1"):
            for scheme in ("ftp", "sftp"):
                got = look(f"{scheme}://{host}:{server.port}/a", schemes=("ftp", "sftp"), gate=Gate())
                assert "is not public" in got.reason, host
        assert server.asked == []
    options = {"endpoint": "http://169.254.169.254/"}
    pytest.importorskip("s3fs")
    got = look("s3://bucket/key", schemes=("s3",), gate=Gate(), options=options)
    assert got.reason == (
        "bucket: its address 169.254.169.254 is not public, add it to allow_networks in the settings "
        "if it may be polled"
    )


@pytest.mark.parametrize(
    ("speech", "why"),
    [
        (b"", "the connection was cut"),
        (b"HTTP/1.1 200 OK\r\n\r\n", "it answered"),
        (b"220 " + b"a" * 9000, "answered"),
        (b"220-a\r\n" * 200_000, "it answered no FTP"),
        (b"\xff\xfe\r\n", "it answered no FTP"),
        (b"421 busy\r\n", "it answered 421"),
    ],
)
def test_servers_that_do_not_speak_ftp(speech: bytes, why: str) -> None:
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        connection, _ = listener.accept()
        with connection, contextlib.suppress(OSError):
            connection.sendall(speech)

    thread = threading.Thread(target=serve)
    thread.start()
    begin = time.monotonic()
    got = look(f"ftp://127.0.0.1:{listener.getsockname()[1]}/a", schemes=("ftp",), seconds=2.0)
    thread.join()
    listener.close()
    assert time.monotonic() - begin < SOON
    assert got.answer is Answer.FAILED
    assert why in got.reason


def test_a_server_that_drips_holds_neither_the_poll_nor_its_thread() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    over = threading.Event()

    def drip() -> None:
        connection, _ = listener.accept()
        with connection:
            while not over.wait(0.02):
                try:
                    connection.sendall(b"2")
                except OSError:
                    return

    thread = threading.Thread(target=drip)
    thread.start()
    before = set(threading.enumerate())
    begin = time.monotonic()
    got = look(f"ftp://127.0.0.1:{listener.getsockname()[1]}/a", schemes=("ftp",), seconds=0.3)
    assert 0.25 < time.monotonic() - begin < SOON
    assert got.reason == "127.0.0.1: no whole answer within 0.3 s"
    for _ in range(1000):
        if set(threading.enumerate()) <= before:
            break
        time.sleep(0.01)
    assert set(threading.enumerate()) <= before
    over.set()
    thread.join()
    listener.close()


def test_a_leash_that_was_cut_ends_what_comes_later_too() -> None:
    leash = Leash(60.0)
    assert 59.0 < leash.left <= 60.0
    leash.cut()
    with pytest.raises(TimeoutError):
        _ = leash.left
    one, two = socket.socketpair()
    with one, two:
        leash.hold(one)
        assert two.recv(1) == b""


@pytest.fixture(scope="module")
def sftp(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[SftpServer, Path]]:
    folder = tmp_path_factory.mktemp("sftp")
    with SftpServer(folder) as server:
        yield server, folder


def test_sftp(sftp: tuple[SftpServer, Path]) -> None:
    server, folder = sftp
    (folder / "a.txt").write_bytes(b"x" * 300_000)
    os.utime(folder / "a.txt", (1e9, 1.5e9))
    options = {"username": "user", "password": "password", "host_key": server.host_key}
    got = look(f"{server.origin}/a.txt", schemes=("sftp",), options=options)
    assert (got.reason, got.body, got.changed_at) == ("", b"x" * 300_000, (1.5e9,))
    same = look(f"{server.origin}/a.txt", schemes=("sftp",), options=options, etag=got.etag)
    assert (same.answer, same.received) == (Answer.UNCHANGED, 0)
    rows = json.loads(look(f"{server.origin}/", schemes=("sftp",), options=options).body or b"")
    assert rows == [{"name": "a.txt", "kind": "file", "size": 300_000, "modified": 1.5e9}]
    assert "does not exist" in look(f"{server.origin}/b", schemes=("sftp",), options=options).reason


def test_sftp_servers_are_known_or_not_talked_to(sftp: tuple[SftpServer, Path]) -> None:
    server, _ = sftp
    options = {"username": "user", "password": "password"}
    other = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl"
    for extra, why in (
        ({}, "its key is not known"),
        ({"host_key": other}, "its key is not"),
        ({"host_key": "ssh-ed25519 nonsense!"}, "host_key must be a public key"),
        ({"host_key": server.host_key, "password": "wrong"}, "it refused the credentials"),
    ):
        assert why in look(f"{server.origin}/a", schemes=("sftp",), options=options | extra).reason


@pytest.mark.parametrize(
    ("scheme", "package"), [("s3", "s3fs"), ("gs", "gcsfs"), ("az", "adlfs"), ("sftp", "paramiko")]
)
def test_a_driver_that_is_not_installed(monkeypatch: pytest.MonkeyPatch, scheme: str, package: str) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    # Drivers that another test has loaded are remembered here.
    monkeypatch.delitem(import_module("fsspec.registry")._registry, scheme, raising=False)
    got = look(f"{scheme}://bucket/key", schemes=(scheme,))
    assert got.reason == f"bucket: {scheme} needs a driver: pip install {package}"


def test_s3() -> None:
    pytest.importorskip("s3fs")
    with ObjectStore() as store:
        store.objects = {"data/a.csv": b"id\n1\n", "data/b.csv": b"", "data/deep/c": b"x", "other": b"x" * 2000}
        options = {"endpoint": store.endpoint, "region": "us-east-1"}

        async def scene() -> None:
            fetcher = FileFetcher(LOOPBACK, schemes=["s3"])

            async def look(path: str, **asked: Any) -> Fetched:
                return await fetcher.fetch(Request(f"s3://bucket/{path}", options=options, seconds=20.0, **asked))

            got = await look("data/a.csv")
            assert (got.reason, got.body, got.media_type) == ("", b"id\n1\n", "text/csv")
            assert got.changed_at == (1.5e9,)
            # without credentials in its options a source is asked as a stranger
            assert all("authorization" not in headers for _, headers in store.asked)
            store.asked.clear()
            same = await look("data/a.csv", etag=got.etag)
            assert (same.answer, same.received) == (Answer.UNCHANGED, 0)
            assert [line for line, _ in store.asked] == ["HEAD /bucket/data/a.csv"]
            store.objects["data/a.csv"] = b"id\n2\n"
            assert (await look("data/a.csv", etag=got.etag)).body == b"id\n2\n"
            assert (await look("data/b.csv")).body == b""
            assert (await look("none")).reason == "bucket: it does not exist"
            assert "more than 1999 bytes" in (await look("other", limit=1999)).reason
            # one that sends more than it said
            store.surplus = b"y" * 5_000_000
            assert "more than 2000 bytes" in (await look("other", limit=2000)).reason
            store.surplus = b""
            rows = json.loads((await look("data")).body or b"")
            assert [(row["name"], row["kind"], row["size"]) for row in rows] == [
                ("a.csv", "file", 5),
                ("b.csv", "file", 0),
                ("deep", "folder", 0),
            ]
            rows = json.loads((await look("data/*.csv")).body or b"")
            assert [row["name"] for row in rows] == ["a.csv", "b.csv"]
            store.silent.set()
            begin = time.monotonic()
            late = await fetcher.fetch(Request("s3://bucket/other", options=options, seconds=0.3))
            assert late.reason == "bucket: no whole answer within 0.3 s"
            assert time.monotonic() - begin < SOON
            store.silent.clear()
            await fetcher.close()

        asyncio.run(scene())


def test_s3_with_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("s3fs")
    monkeypatch.setenv("S3_WORD", "hidden")
    with ObjectStore() as store:
        store.objects = {"a": b"one"}
        options = {"endpoint": store.endpoint, "key": "name", "secret": "$S3_WORD", "region": "us-east-1"}
        assert look("s3://bucket/a", schemes=("s3",), options=options, seconds=20.0).body == b"one"
        assert all("Credential=name/" in headers["authorization"] for _, headers in store.asked)
        assert "hidden" not in str(store.asked)
