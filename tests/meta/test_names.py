"""The public names, and that asking for them is cheap."""

from __future__ import annotations

import subprocess
import sys

import pytest

import unstale

HEAVY = {"click", "matplotlib", "numba", "numpy", "pyarrow", "rich", "scipy"}


def test_public_names_are_sorted_and_all_there() -> None:
    assert unstale.__all__ == sorted(unstale.__all__)
    assert set(dir(unstale)) == {*unstale.__all__, "__version__"}
    for name in unstale.__all__:
        assert getattr(unstale, name) is not None


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'crawl'"):
        unstale.crawl  # noqa: B018


def test_versions_agree() -> None:
    from importlib.metadata import version

    assert version("unstale") == unstale.__version__


@pytest.mark.parametrize(
    ("code", "forbidden"),
    [
        ("import unstale", HEAVY),
        (
            "import sys; sys.argv = ['unstale', '--help']\nfrom unstale.cli.main import main\n"
            "try: main()\nexcept SystemExit: pass",
            HEAVY - {"click"},
        ),
    ],
    ids=["import unstale", "unstale --help"],
)
def test_nothing_heavy_is_loaded_before_it_is_needed(code: str, forbidden: set[str]) -> None:
    ask = f"{code}\nimport sys; print('\\n' + ' '.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.splitlines()[-1].split())
    assert "unstale" in loaded
    assert not loaded & forbidden
