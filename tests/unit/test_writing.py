"""Files are written whole; what is no regular file is written to and stays what it is."""

import ast
import os
import socket
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from support.patience import SOON
from support.source import MODULES, nodes
from unstale import writing
from unstale.errors import InputError
from unstale.writing import whole_file

ROOT = os.geteuid() == 0


def put(path, data=b"new"):
    with whole_file(path) as out:
        out.write(data)


def files_in(folder):
    return sorted(p.name for p in folder.iterdir())


def test_a_file_has_its_new_bytes_only_once_all_are_written(tmp_path):
    target = tmp_path / "a"
    target.write_bytes(b"old")
    with whole_file(target) as out:
        out.write(b"new")
        out.flush()
        assert target.read_bytes() == b"old"
    assert target.read_bytes() == b"new"
    assert files_in(tmp_path) == ["a"]


@pytest.mark.parametrize("links", [1, 2])
def test_a_failure_on_the_way_leaves_the_old_bytes_and_no_draft(tmp_path, links):
    target = tmp_path / "a"
    target.write_bytes(b"old")
    if links == 2:
        os.link(target, tmp_path / "b")
    with pytest.raises(KeyboardInterrupt), whole_file(target) as out:  # noqa: PT012
        out.write(b"half")
        raise KeyboardInterrupt
    assert target.read_bytes() == b"old"
    assert files_in(tmp_path) == ["a", "b"][:links]


def test_a_new_file_has_the_permissions_that_the_caller_gives_new_files(tmp_path):
    command = "import os; os.umask(0o027)\nfrom unstale.writing import whole_file\nwith whole_file('a'): pass"
    subprocess.run([sys.executable, "-c", command], check=True, cwd=tmp_path)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o640


def test_permissions_stay(tmp_path):
    target = tmp_path / "a"
    target.write_bytes(b"old")
    target.chmod(0o604)
    put(target)
    assert stat.S_IMODE(target.stat().st_mode) == 0o604


@pytest.mark.skipif(not ROOT, reason="only root gives files away")
def test_owners_stay(tmp_path):
    target = tmp_path / "a"
    target.write_bytes(b"old")
    os.chown(target, 1234, 2345)
    put(target)
    found = target.stat()
    assert (found.st_uid, found.st_gid, target.read_bytes()) == (1234, 2345, b"new")


def test_where_the_owner_cannot_be_kept_the_file_itself_is_written(tmp_path, monkeypatch):
    target = tmp_path / "a"
    target.write_bytes(b"a longer old one")
    before = target.stat().st_ino

    def refused(*_):
        raise PermissionError(1, "not yours")

    monkeypatch.setattr(writing.os, "fchmod", refused)
    put(target)
    assert (target.read_bytes(), target.stat().st_ino) == (b"new", before)
    assert files_in(tmp_path) == ["a"]


def test_extended_attributes_stay(tmp_path):
    target = tmp_path / "a"
    target.write_bytes(b"old")
    try:
        os.setxattr(target, "user.kept", b"yes")
    except OSError:
        pytest.skip("the file system has no extended attributes")
    put(target)
    assert os.getxattr(target, "user.kept") == b"yes"


def test_symbolic_links_are_followed_to_what_they_name(tmp_path):
    real = tmp_path / "real"
    real.mkdir()
    (real / "a").write_bytes(b"old")
    (tmp_path / "two").symlink_to("one")
    (tmp_path / "one").symlink_to("real/a")
    put(tmp_path / "two")
    assert (real / "a").read_bytes() == b"new"
    assert (tmp_path / "two").is_symlink()
    assert (tmp_path / "one").is_symlink()


def test_a_link_to_nothing_yet_makes_what_it_names(tmp_path):
    (tmp_path / "link").symlink_to("target")
    put(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_bytes() == b"new"


def test_links_in_a_circle_are_refused(tmp_path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(InputError, match="cannot be written"):
        put(tmp_path / "a")


def test_hard_links_stay_one_file(tmp_path):
    (tmp_path / "a").write_bytes(b"a longer old one")
    os.link(tmp_path / "a", tmp_path / "b")
    put(tmp_path / "a")
    assert (tmp_path / "b").read_bytes() == b"new"
    assert (tmp_path / "a").samefile(tmp_path / "b")


def test_a_pipe_is_written_to(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    heard = []
    reader = threading.Thread(target=lambda: heard.append(pipe.read_bytes()), daemon=True)
    reader.start()
    put(pipe)
    reader.join(SOON)
    assert heard == [b"new"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_socket_is_written_to(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # names of sockets are short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("door")
        server.listen()
        put("door")
        end, _ = server.accept()
        with end:
            assert end.makefile("rb").read() == b"new"
    assert stat.S_ISSOCK(Path("door").stat().st_mode)


@pytest.mark.skipif(not ROOT, reason="only root makes devices")
@pytest.mark.parametrize("linked", [False, True])
def test_a_device_is_written_to_and_stays_one(tmp_path, linked):
    device = tmp_path / "null"
    try:
        os.mknod(device, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        device.read_bytes()
    except OSError:
        pytest.skip("no devices can be made or used here")
    name = device
    if linked:
        name = tmp_path / "link"
        name.symlink_to("null")
    put(name)
    found = device.lstat()
    assert stat.S_ISCHR(found.st_mode)
    assert found.st_rdev == os.makedev(1, 3)
    assert stat.S_IMODE(found.st_mode) == 0o666 & ~_umask()


def test_names_of_open_files_are_written_to(tmp_path):
    """/dev/stdout is a link to what may be a regular file, which others hold open: it must not be replaced."""
    target = tmp_path / "out"
    command = "from unstale.writing import whole_file\nwith whole_file('/dev/stdout') as out: out.write(b'new')"
    with target.open("wb") as out:
        before = target.stat().st_ino
        subprocess.run([sys.executable, "-c", command], stdout=out, check=True)
    assert (target.read_bytes(), target.stat().st_ino) == (b"new", before)
    piped = subprocess.run([sys.executable, "-c", command], capture_output=True, check=True)
    assert piped.stdout == b"new"


def test_what_is_in_the_folders_of_devices_is_never_replaced(tmp_path, monkeypatch):
    monkeypatch.setattr(writing, "_SPECIAL", (str(tmp_path),))
    (tmp_path / "looks_regular").write_bytes(b"new")
    before = (tmp_path / "looks_regular").stat().st_ino
    put(tmp_path / "looks_regular")
    assert (tmp_path / "looks_regular").stat().st_ino == before
    with pytest.raises(InputError, match="cannot be written"):
        put(tmp_path / "not_there")


def test_a_read_only_file_is_not_replaced(tmp_path, monkeypatch):
    target = tmp_path / "a"
    target.write_bytes(b"old")
    target.chmod(0o444)
    if ROOT:  # to whom nothing is read-only
        monkeypatch.setattr(writing.os, "access", lambda path, mode: False)
    with pytest.raises(InputError, match=r"cannot be written \(it is read-only\)"):
        put(target)
    assert target.read_bytes() == b"old"


@pytest.mark.parametrize("name", ["", "no/such/folder/a", "."])
def test_what_cannot_be_written_is_said_in_one_sentence(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=r"^output '.*' cannot be written \(.*\): choose another$"):
        put(name)


#: who else opens files for writing, and why: streams that grow, folders of their own, a file that must be new
OTHERS = {
    "adapters/log_sink.py",  # appends
    "origin/log.py",  # appends
    "cli/lab_node.py",  # appends, in a folder of its own
    "cli/lab_processes.py",  # in a folder of its own
    "server/spooling.py",  # in a folder of its own
    "cli/init.py",  # refuses what is there
    "cli/locking.py",  # a lock
    "cli/restoring.py",  # opens what it has copied, to bring it to the disk
    "adapters/sqlite_schema.py",  # the draft of a new store, which gets its name when it is whole
    "adapters/duckdb_spool.py",  # rows put aside under a name of its own
    "adapters/duckdb_draft.py",  # DuckDB writes the draft, which takes the place of the file that links lead to
    "adapters/parquet_tables.py",  # folders of partitions get their names before the manifest names them
    "adapters/sqlite_move.py",  # SQLite writes the draft of a store that is moved, which gets its name when it is whole
    "adapters/sqlite_replica.py",  # SQLite writes the draft of a backup, which refuses what is there
}


def test_nobody_else_writes_files():
    found = {module for path, module in MODULES.items() if _writes(nodes(path))}
    assert found - {"writing.py"} <= OTHERS


def _writes(found):
    """Whether a module opens files for writing, makes drafts or renames."""
    for node in found:
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        modes = [a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
        if name in ("mkstemp", "NamedTemporaryFile", "write_text", "write_bytes", "rename", "mkfifo"):
            return True
        if name == "replace" and len(node.args) == 1 and not node.keywords:
            return True
        if name == "open" and any(set(mode) <= set("wxab+t") and set(mode) & set("wxa") for mode in modes):
            return True
    return False


def _umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask
