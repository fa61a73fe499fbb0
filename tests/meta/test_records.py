"""Records that are compared hold no NaN: two equal ones would differ, or not, by the version of Python."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import math
import pkgutil
import re
from collections.abc import Iterator

import unstale
from support.source import MODULES, text


def _records() -> Iterator[type]:
    for found in pkgutil.walk_packages(unstale.__path__, "unstale."):
        if found.name.startswith("unstale.contrib") or found.name.endswith("__main__"):
            continue
        module = importlib.import_module(found.name)
        for _, kind in inspect.getmembers(module, inspect.isclass):
            if kind.__module__ == module.__name__ and dataclasses.is_dataclass(kind):
                yield kind


def test_no_compared_field_is_nan_unless_told() -> None:
    kinds = list(_records())
    assert len(kinds) > 100
    odd = [
        f"{kind.__module__}.{kind.__name__}.{field.name}"
        for kind in kinds
        if kind.__eq__ is not object.__eq__
        for field in dataclasses.fields(kind)
        if field.compare and isinstance(field.default, float) and math.isnan(field.default)
    ]
    assert odd == []


def test_records_are_declared_quickly() -> None:
    slowly = [
        module
        for path, module in MODULES.items()
        if module != "frozen.py" and re.search(r"^from dataclasses import .*\bdataclass\b", text(path), re.M)
    ]
    assert slowly == [], "from unstale.frozen import dataclass: every start declares hundreds"
