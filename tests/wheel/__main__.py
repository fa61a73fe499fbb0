"""The wheel as a user gets it: built, checked, installed in empty environments on every Python that is here, and used.

`python tests/wheel` needs the package index, for the environments begin empty. It prints a line per environment and
exits with 1 if something failed. Pythons that are not installed are named and left out.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/everywhere"), str(ROOT / "tests")]
from conditions import pythons  # noqa: E402  it is beside, and no package

from support.site import site  # noqa: E402

SETTINGS = 'budget = "5/s"\n[http]\nallow_networks = ["127.0.0.0/8"]\n'
FLEET = "id,change_rate,weight\nnews,24,3\nlaw,0.1,1\n"


def call(*words: str | Path, cwd: Path) -> str:
    """Run a command, which must succeed; what it printed."""
    done = subprocess.run(list(map(str, words)), cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, f"{words}: exit {done.returncode}\n{done.stdout[-1500:]}{done.stderr[-3000:]}"
    return done.stdout


def build(folder: Path) -> Path:
    """The wheel, built by way of the source distribution, both checked."""
    call(sys.executable, "-m", "build", "--outdir", folder, ROOT, cwd=folder)
    call(sys.executable, "-m", "twine", "check", "--strict", *folder.iterdir(), cwd=folder)
    (wheel,) = folder.glob("*.whl")
    return wheel


def use(python: str, wheel: Path, extra: str, folder: Path) -> None:
    """Install the wheel in an empty environment, and do what a new user does."""
    call(python, "-m", "venv", folder / "venv", cwd=folder)
    own, unstale = folder / "venv/bin/python", folder / "venv/bin/unstale"
    call(own, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", f"{wheel}{extra}", cwd=folder)
    call(own, "-m", "pip", "check", cwd=folder)
    assert "the copies were fresh" in call(unstale, "demo", "--for", "10s", cwd=folder)
    (folder / "fleet.csv").write_text(FLEET)
    assert "news" in call(unstale, "plan", "fleet.csv", "--budget", "100/day", cwd=folder)
    (folder / "unstale.toml").write_text(SETTINGS)
    pages = folder / "pages"
    pages.mkdir()
    with site(pages) as address:
        call(unstale, "add", address, cwd=folder)
        # The first start compiles, on a busy machine for seconds.
        call(unstale, "run", "--for", "15s", "--no-serve", cwd=folder)
        assert "news" in call(unstale, "get", address, cwd=folder)


def main() -> int:
    """Build once, use everywhere."""
    failed = 0
    with tempfile.TemporaryDirectory(prefix="wheel") as name:
        (Path(name) / "dist").mkdir()
        wheel = build(Path(name) / "dist")
        print(f"built and checked {wheel.name}, {wheel.stat().st_size // 1024} KiB", flush=True)
        for python in pythons():
            if python.missing:
                print(f"left out: Python {python.name}: {python.missing}")
                continue
            for extra in ("", "[all]"):
                folder = Path(name) / f"{python.name}{extra}"
                folder.mkdir()
                begun = time.monotonic()
                try:
                    use(python.environment["PYTHON"], wheel, extra, folder)
                    verdict = "installed, checked, demo, plan, run"
                except AssertionError as error:
                    failed, verdict = failed + 1, f"FAILED: {error}"
                took = time.monotonic() - begun
                print(f"{python.name:5} {extra or 'no extras':10} {took:4.0f} s  {verdict}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
