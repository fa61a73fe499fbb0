"""A disk for SQLite that forgets, tears and refuses: an apsw VFS between the store and its files.

Rules of this file:
1. Every write goes to the real file too, so that the store goes on as if nothing were; what a power cut would have left
   is made from the journal of operations afterwards.
2. A write is on the disk for certain once its file was synced. Before that it is there whole, in part, or not at all,
   each independent of the others and in any order.
3. SQLite reads its log without shared memory here: one connection at a time, in exclusive locking mode.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import apsw
import numpy as np

#: our name, and the VFS that does the work: not the one that is the default, which is ours meanwhile
NAME, BASE = "chaos", apsw.vfs_names()[0]
#: bytes that a disk writes whole or not at all
SECTOR = 512


@dataclass(slots=True)
class Operation:
    """What was done to a file: write, truncate, sync, delete; or `said`, an acknowledgement with its number."""

    kind: str
    file: str
    offset: int = 0
    data: bytes = b""


@dataclass(slots=True)
class Disk:
    """What happens on the disk: a journal of it, and which operation is to fail.

    The operation number `fail_at` fails with `error`, and all after it if `for_ever`; 0: none does.
    """

    journal: list[Operation] = field(default_factory=list)
    operations: int = 0
    fail_at: int = 0
    for_ever: bool = False
    error: type[Exception] = apsw.IOError
    failed: int = 0

    def happens(self, kind: str) -> None:
        """Count an operation, and let it fail if it is the one."""
        self.operations += 1
        if self.fail_at and (self.operations == self.fail_at or (self.for_ever and self.operations > self.fail_at)):
            self.failed += 1
            raise self.error(f"{kind} refused")

    def note(self, operation: Operation) -> None:
        """Write an operation into the journal."""
        self.journal.append(operation)

    def said(self, number: int) -> None:
        """The store has acknowledged something."""
        self.journal.append(Operation("said", "", number))


class _File(apsw.VFSFile):
    def __init__(self, filename: Any, flags: Any, disk: Disk) -> None:
        self._disk = disk
        self._name = Path(filename.filename() if isinstance(filename, apsw.URIFilename) else filename or "").name
        disk.happens("open")
        super().__init__(BASE, filename, flags)

    def xRead(self, amount: int, offset: int) -> bytes:
        self._disk.happens("read")
        return bytes(super().xRead(amount, offset))

    def xWrite(self, data: bytes, offset: int) -> None:
        self._disk.happens("write")
        self._disk.note(Operation("write", self._name, offset, bytes(data)))
        super().xWrite(data, offset)

    def xTruncate(self, newsize: int) -> None:
        self._disk.happens("truncate")
        self._disk.note(Operation("truncate", self._name, newsize))
        super().xTruncate(newsize)

    def xSync(self, flags: int) -> None:
        self._disk.happens("sync")
        super().xSync(flags)
        self._disk.note(Operation("sync", self._name))


class _Vfs(apsw.VFS):
    def __init__(self, disk: Disk) -> None:
        self.disk = disk
        super().__init__(NAME, BASE, makedefault=True)

    def xOpen(self, name: Any, flags: Any) -> _File:
        return _File(name, flags, self.disk)

    def xDelete(self, filename: str, syncdir: bool) -> None:
        self.disk.happens("delete")
        super().xDelete(filename, syncdir)
        self.disk.note(Operation("delete", Path(filename).name))


@contextmanager
def installed(disk: Disk) -> Iterator[None]:
    """Whatever SQLite opens meanwhile is on this disk."""

    def exclusively(db: apsw.Connection) -> None:
        db.execute("PRAGMA locking_mode = exclusive")

    vfs = _Vfs(disk)
    apsw.connection_hooks.append(exclusively)
    try:
        yield
    finally:
        apsw.connection_hooks.remove(exclusively)
        vfs.unregister()


@dataclass(slots=True)
class _Held:
    """A file as the disk has it for certain, and what was done since its last sync; None: it is not there."""

    durable: bytearray | None = None
    pending: list[Operation] = field(default_factory=list)


class PowerCut:
    """Plays a journal up to a moment, and says what a disk may hold when the power goes then."""

    def __init__(self) -> None:
        self._files: dict[str, _Held] = {}
        self.said: set[int] = set()

    def has(self, name: str, content: bytes) -> None:
        """A file that was on the disk before, for certain."""
        self._files[name] = _Held(bytearray(content))

    def play(self, operation: Operation) -> None:
        """One operation more."""
        if operation.kind == "said":
            self.said.add(operation.offset)
            return
        held = self._files.setdefault(operation.file, _Held())
        if operation.kind == "sync":
            content = bytearray() if held.durable is None else held.durable
            present = True
            for one in held.pending:
                present = _apply(content, one)
            held.durable, held.pending = (content if present else None), []
        else:
            held.pending.append(operation)

    def image(self, folder: Path, rng: np.random.Generator) -> int:
        """What may be on the disk now, one possibility of many; how many operations were lost or torn."""
        harmed = 0
        for name, held in self._files.items():
            content = None if held.durable is None else bytearray(held.durable)
            for i in rng.permutation(len(held.pending)):
                one, fate = held.pending[int(i)], rng.random()
                if fate < 1 / 3:
                    harmed += 1
                    continue
                if fate < 2 / 3 and one.kind == "write" and len(one.data) > SECTOR:
                    cut = SECTOR * int(rng.integers(1, -(-len(one.data) // SECTOR)))
                    one = Operation("write", name, one.offset, one.data[:cut])
                    harmed += 1
                content = bytearray() if content is None else content
                content = content if _apply(content, one) else None
            if content is not None:
                (folder / name).write_bytes(content)
        return harmed


def _apply(content: bytearray, one: Operation) -> bool:
    """Do it to the content; whether the file is there then."""
    if one.kind == "delete":
        content.clear()
        return False
    if one.kind == "truncate":
        del content[one.offset :]
        return True
    if len(content) < one.offset:
        content.extend(bytes(one.offset - len(content)))
    content[one.offset : one.offset + len(one.data)] = one.data
    return True
