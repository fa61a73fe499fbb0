"""What is compiled is compiled anew when anything in it has changed, and also where it cannot be kept."""

from __future__ import annotations

import ast
import importlib.util
import math
import pickle
from pathlib import Path
from typing import Any

import numba
import pytest

import unstale.core
from unstale.core import compiling

CORE = Path(unstale.core.__file__).parent
#: known to these files, and no part of what is compiled
APART = {"checks", "compiling", "learning.compiled", "learning.exactly"} | {
    "learning." + twin for twin in ("column_steps", "column_due")
}


def imported(path: Path) -> set[str]:
    """The modules of the room that a file takes names from, as they are called within it."""
    tree = ast.parse(path.read_text("utf-8"))
    found = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    return {name.removeprefix("unstale.core.") for name in found if name.startswith("unstale.core.")}


def test_the_stamp_covers_everything_that_is_compiled() -> None:
    parts = {}
    for path in sorted(CORE.rglob("*.py")):
        name = ".".join(path.relative_to(CORE).with_suffix("").parts)
        uses = imported(path)
        if uses & {"compiling", "learning.compiled"} and name not in APART:
            parts[name] = uses - APART
    assert len(parts) > 5
    needed = set(parts) | {name for uses in parts.values() for name in uses}
    assert needed <= set(compiling.TOGETHER)


def test_the_stamp_follows_the_text_of_each_file(monkeypatch: pytest.MonkeyPatch) -> None:
    before = compiling.stamp.__wrapped__()
    assert before == compiling.stamp()
    for left_out in compiling.TOGETHER:
        monkeypatch.setattr(compiling, "TOGETHER", tuple(name for name in compiling.TOGETHER if name != left_out))
        assert compiling.stamp.__wrapped__() != before
        monkeypatch.undo()


def test_what_is_kept_carries_the_stamp() -> None:
    from unstale.core.kernels import numba_pass
    from unstale.core.learning import mixture

    kernels = [getattr(one, "machine_code", one) for room in (numba_pass, mixture) for one in vars(room).values()]
    dispatchers = [one for one in kernels if hasattr(one, "_cache")]
    kept = [one._cache._cache_file for one in dispatchers if hasattr(one._cache, "_cache_file")]
    assert len(kept) > 5
    assert {file._version for file in kept} == {f"{numba.__version__} {compiling.stamp()}"}


def test_what_is_pasted_makes_no_array() -> None:
    """Nobody counts who refers to what it returns. What it makes inside, numba itself refuses."""
    numbers, found = {"None", "float", "int", "bool", "tuple[float, float]", "tuple[float, int, float]"}, 0
    for path in CORE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef) and "pasted" in map(ast.unparse, node.decorator_list):
                assert node.returns is not None
                assert ast.unparse(node.returns) in numbers, f"{path.name}: {node.name}"
                found += 1
    assert found > 20


def test_where_nothing_can_be_kept_it_is_compiled_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    # No place at all, as in a read-only installation for a user without a home.
    monkeypatch.setattr("numba.core.caching.CacheImpl._locator_classes", [])
    monkeypatch.setattr("numba.config.CACHE_LOCATOR_CLASSES", "")

    def half(x: float) -> float:
        return 0.5 * math.sqrt(x)

    with pytest.raises(RuntimeError, match="no locator"):
        numba.njit(cache=True)(half)
    assert compiling.kept(half, nogil=True)(16.0) == 2.0


def test_what_an_earlier_version_kept_is_not_even_read(tmp_path: Path) -> None:
    if numba.config.DISABLE_JIT:
        pytest.skip("nothing is compiled here")
    file = tmp_path / "twice.py"
    file.write_text("def twice(x):\n    return 2.0 * x\n", "utf-8")
    spec = importlib.util.spec_from_file_location("twice", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    first: Any = compiling.kept(module.twice)
    assert first(2.0) == 4.0
    index = Path(first._cache._cache_file._index_path)
    # It names a class that this version does not have.
    index.write_bytes(pickle.dumps(numba.__version__) + b"cunstale.core.gone\nGone\n.")
    assert compiling.kept(module.twice)(2.0) == 4.0
