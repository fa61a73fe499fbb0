"""What numba has compiled serves again wherever the same sources stand: `make everywhere` has them in two folders."""

from __future__ import annotations

from hashlib import sha1
from pathlib import Path
from typing import Any

from numba.core.caching import InTreeCacheLocator, UserProvidedCacheLocator


class CompiledAnywhere(UserProvidedCacheLocator):  # type: ignore[misc]
    """A place by the name that a file has in its tree, not by where that is; what a test wrote is kept beside it."""

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> Any:
        """Where this function is kept."""
        if not _within(py_file):
            return InTreeCacheLocator.from_function(py_func, py_file)
        return super().from_function(py_func, py_file)

    @classmethod
    def get_suitable_cache_subpath(cls, py_file: str) -> str:
        """Under this name; numba compares the file's content itself."""
        within = _within(py_file)
        return f"{within[-1]}_{sha1('/'.join(within).encode(), usedforsecurity=False).hexdigest()}"


def _within(py_file: str) -> tuple[str, ...]:
    """The folders of a file from that of its tree on; none if it is in no tree."""
    folders = Path(py_file).resolve().parent.parts
    roots = [at for at, name in enumerate(folders) if name in ("src", "tests", "site-packages")]
    return folders[roots[-1] :] if roots else ()
