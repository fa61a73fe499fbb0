"""What numba has compiled serves again wherever the same sources stand: `make everywhere` has them in two folders."""

from __future__ import annotations

from hashlib import sha1
from pathlib import Path

from numba.core.caching import UserProvidedCacheLocator


class CompiledAnywhere(UserProvidedCacheLocator):  # type: ignore[misc]
    """A place by the name that a file has in the tree, not by where the tree is."""

    @classmethod
    def get_suitable_cache_subpath(cls, py_file: str) -> str:
        """Under this name; numba compares the file's content itself."""
        folders = Path(py_file).resolve().parent.parts
        roots = [at for at, name in enumerate(folders) if name in ("src", "tests", "site-packages")]
        within = "/".join(folders[roots[-1] :] if roots else folders)
        return f"{folders[-1]}_{sha1(within.encode(), usedforsecurity=False).hexdigest()}"
