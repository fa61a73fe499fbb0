"""`unstale restore`: a backup in the place of the store.

Rules of this file:
1. The backup itself is not touched: a copy of it is brought up to this version, read back and verified, and then put
   in place by renaming.
2. What stood there is kept beside it, whole, with what its engine had not yet written into it.
3. A log of SQLite never stands beside a store that it is not of: it leaves before its store does.
"""

from __future__ import annotations

import os
import shutil
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from unstale.cli.choose import near
from unstale.cli.settings import load, one_file, settings_options
from unstale.errors import StoreError, sentence

if TYPE_CHECKING:
    from collections.abc import Sequence

#: what SQLite keeps beside a file, in the order in which it leaves
_BESIDE = ("-wal", "-shm", "-journal", "")


@click.command()
@click.argument("file")
@click.option("--anyway", is_flag=True, help="Also if something in FILE is damaged.")
@settings_options
def restore(file: str, anyway: bool, config: str | None, store: str | None) -> None:
    """Put FILE, which `unstale backup` wrote, in the place of the store.

    The engine must not run. FILE is verified first and stays as it is; the store of before is kept beside the new one.
    """
    from unstale.cli.locking import locked

    settings = one_file(load(config, store=store), "restore it with pg_restore")
    backup, target = Path(file), Path(settings.store).resolve()
    draft = target.with_name(f".{target.name}.restored")
    with ExitStack() as stack:
        stack.callback(_remove, draft)
        problems = _copied(backup, draft)
        if problems and not anyway:
            raise StoreError(
                sentence("backup", repr(file), f"is damaged, {problems[0]}", "choose another, or say --anyway")
            )
        before = None
        if target.exists():
            stack.enter_context(locked(target))
            before = _set_aside(target)
        draft.replace(target)
        _sync(target.parent)
    for problem in problems:
        click.echo(f"! {problem}: mend it with `unstale doctor --repair`")
    kept = f"; what was there is {near(str(before))}" if before is not None else ""
    click.echo(f"restored {near(str(target))}{kept}")


def _copied(backup: Path, draft: Path) -> Sequence[str]:
    """A copy of a backup as a store of this version, on the disk; what is wrong with it."""
    from unstale.adapters.sqlite_store import SqliteStore

    if not backup.is_file():
        raise StoreError(sentence("backup", repr(str(backup)), "is not there", "name a file that `backup` wrote"))
    log = Path(f"{backup}-wal")
    if log.exists() and log.stat().st_size:
        raise StoreError(
            sentence("backup", repr(str(backup)), "is a store in use", "make a backup of it, and restore that one")
        )
    _remove(draft)
    shutil.copyfile(backup, draft)
    try:
        copied = SqliteStore(draft, create=False)
        problems = copied.verify()
        copied.close()
    except StoreError as error:
        # Whoever restores knows the backup by its own name.
        raise StoreError(str(error).replace(f"store {str(draft)!r}", f"backup {str(backup)!r}")) from None
    with draft.open("rb+") as written:
        os.fsync(written.fileno())
    return problems


def _set_aside(store: Path) -> Path:
    """Move a store out of the way, with what belongs to it; where it is now."""
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    aside = store.with_name(f"{store.name}.before-{stamp}")
    number = 1
    while aside.exists():
        number += 1
        aside = store.with_name(f"{store.name}.before-{stamp}-{number}")
    for suffix in _BESIDE:
        part = Path(f"{store}{suffix}")
        if part.exists():
            part.replace(f"{aside}{suffix}")
    return aside


def _remove(draft: Path) -> None:
    for suffix in _BESIDE:
        Path(f"{draft}{suffix}").unlink(missing_ok=True)


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
