"""The wheel holds everything that the product needs, and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

from support.documents import ROOT


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    for module in ("build", "hatchling", "twine"):
        if find_spec(module) is None:
            pytest.skip(f"{module} is not installed: it comes with the extra dev")
    folder = tmp_path_factory.mktemp("dist")
    words = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(words, check=True, capture_output=True)
    (made,) = folder.glob("*.whl")
    return made


def test_it_would_be_accepted_by_the_index(wheel: Path) -> None:
    subprocess.run([sys.executable, "-m", "twine", "check", "--strict", str(wheel)], check=True, capture_output=True)


def test_it_holds_every_file_of_the_product_and_only_those(wheel: Path) -> None:
    held = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    listed = subprocess.run(["git", "ls-files", "src"], cwd=ROOT, capture_output=True, text=True, check=False).stdout
    if not listed:
        pytest.skip("this is no clone of the repository: nobody says which files belong to it")
    assert held == {name.removeprefix("src/") for name in listed.split("\n") if name}


def test_it_runs_from_where_it_was_unpacked(wheel: Path, tmp_path: Path) -> None:
    zipfile.ZipFile(wheel).extractall(tmp_path / "lib")
    (tmp_path / "fleet.csv").write_text("id,change_rate,weight\nnews,24,3\nlaw,0.1,1\n")
    given = os.environ | {"PYTHONPATH": str(tmp_path / "lib")}
    words = [sys.executable, "-c", "import unstale; print(unstale.__file__)"]
    said = subprocess.run(words, cwd=tmp_path, env=given, capture_output=True, text=True, check=True).stdout
    assert said.startswith(str(tmp_path))
    words = [sys.executable, "-m", "unstale", "plan", "fleet.csv", "--budget", "100/day"]
    said = subprocess.run(words, cwd=tmp_path, env=given, capture_output=True, text=True, check=True).stdout
    assert "news" in said
