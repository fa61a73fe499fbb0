"""What was already read of a large table, kept on disk part by part until its copy is switched to.

Rules of this file:
1. A part is known by a text that says all it depends on: what it is of, and what the source's rows in it added up to.
   So one that is there under its name is right, and one whose source has changed is simply not there.
2. A file takes its name when it is whole and on the disk: a kill leaves nothing that could be taken for a part.
3. Parts go when the copy is there, when their source changed, and when nobody asked for them for KEPT seconds.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any

from unstale.errors import StoreError, sentence
from unstale.writing import whole_file

#: seconds that parts stay of which nobody asks
KEPT = 7 * 86400.0


class TableParts:
    """The parts of one table, in a folder of their own under `folder`."""

    def __init__(self, folder: Path, name: str) -> None:
        self._place, self._division = folder / name, folder / name / "division.json"
        try:
            # Rows are in there: as private as can be.
            self._place.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.utime(self._place)
            self._forget(folder)
        except OSError as error:
            raise _unusable(self._place, error) from error

    def division(self) -> dict[str, Any]:
        """How the table was divided when parts were made; nothing if none were."""
        try:
            found = json.loads(self._division.read_bytes())
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def set_division(self, told: Mapping[str, Any]) -> None:
        """Write down how it is divided now."""
        self.add(self._division, [json.dumps(told).encode()])

    def place(self, depends: str) -> Path:
        """Where the part is, or would be, that depends on this."""
        return self._place / f"{blake2b(depends.encode(), digest_size=16).hexdigest()}.csv"

    def add(self, place: Path, chunks: Iterable[bytes]) -> None:
        """Write a part, whole or not at all."""
        with whole_file(place, "part of a table") as out:
            out.writelines(chunks)

    def keep(self, places: Collection[Path]) -> None:
        """Remove all other parts, and what kills have left."""
        for one in self._place.iterdir():
            if one not in places and one != self._division:
                one.unlink(missing_ok=True)

    def clear(self) -> None:
        """Remove them all: the copy is there."""
        shutil.rmtree(self._place, ignore_errors=True)
        with suppress(OSError):
            # Only if no other table has any.
            self._place.parent.rmdir()

    def _forget(self, folder: Path) -> None:
        for other in folder.iterdir():
            # Another table's may go at any moment.
            with suppress(FileNotFoundError):
                if other.stat().st_mtime < time.time() - KEPT:
                    shutil.rmtree(other, ignore_errors=True)


def _unusable(place: Path, error: OSError) -> StoreError:
    why = error.strerror or type(error).__name__
    return StoreError(
        sentence("folder", repr(str(place.parent)), f"could not be used ({why})", "check the disk and its space")
    )
