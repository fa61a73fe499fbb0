"""The container image as an operator gets it: built from `deploy/Containerfile`, and used as the number it runs under.

`python tests/image` needs root, buildah, and Debian's mirror or `--base`: without a registry of images the base is made
of Debian's own packages, with Debian's Python. It says what is missing, and ends with 1 where the image does not do.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import ProxyHandler, Request, build_opener

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
from support.ports import free_port  # noqa: E402  it is beside, and no package
from support.site import site  # noqa: E402

#: how pip finds packages where it is not PyPI itself; a file of certificates is lent to the build
PIP = ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_CERT")
TOKEN = "0123456789abcdef" * 4
#: seconds until it answers; most of it is what numba compiles on a busy machine
PATIENCE = 120


class Builder:
    """buildah with a store of its own, which goes with its folder."""

    def __init__(self, folder: Path) -> None:
        self._words = ["buildah", "--root", str(folder / "store"), "--runroot", str(folder / "run")]
        self._given = os.environ | {"BUILDAH_ISOLATION": "chroot"}

    def words(self, *words: str) -> list[str]:
        """A command of it."""
        return [*self._words, *words]

    def call(self, *words: str, read: bool = False, within: int = 900) -> str:
        """Run one, which must succeed; what it printed if that is read, else it is shown where it fails."""
        done = subprocess.run(
            self.words(*words), cwd=ROOT, env=self._given, capture_output=True, text=True, timeout=within
        )
        assert done.returncode == 0, f"buildah {words[0]}: exit {done.returncode}\n{done.stdout}{done.stderr}"[-4000:]
        return done.stdout if read else ""

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Begin one, with what it prints to be read."""
        pipe = subprocess.PIPE
        return subprocess.Popen(
            self.words(*words), cwd=ROOT, env=self._given, stdout=pipe, stderr=subprocess.STDOUT, text=True
        )


def debian(builder: Builder, folder: Path) -> str:
    """An image of Debian's smallest system with its Python, made of packages."""
    packed = folder / "base.tar"
    words = ["mmdebstrap", "--quiet", "--variant=minbase", "--include=python3-venv", "stable", str(packed)]
    codename = Path("/etc/os-release").read_text("utf-8").partition("VERSION_CODENAME=")[2].split()
    words[4] = codename[0] if codename else words[4]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"mmdebstrap: {done.stderr[-2000:]}"
    (folder / "Base").write_text("FROM scratch\nADD base.tar /\n", "utf-8")
    builder.call("build", "--file", str(folder / "Base"), "--tag", "localhost/python", str(folder))
    packed.unlink()
    return "localhost/python"


def build(builder: Builder, base: str) -> dict[str, Any]:
    """The image, from a tree with nothing in it but what is under version control; its settings."""
    words = ["build", "--format", "docker", "--network", "host", "--build-arg", f"PYTHON={base}"]
    for name in PIP:
        if value := os.environ.get(name):
            words += ["--build-arg", f"{name}={value}"]
    if certificates := os.environ.get("PIP_CERT"):
        words += ["--volume", f"{certificates}:{certificates}:ro"]
    if base.startswith("localhost/"):
        words.append("--pull-never")
    builder.call(*words, "--file", "deploy/Containerfile", "--tag", "localhost/unstale", str(ROOT))
    told = json.loads(builder.call("inspect", "localhost/unstale", read=True))
    settings: dict[str, Any] = told["Docker"]["config"]
    assert settings.get("Healthcheck"), "nothing asks whether it is well"
    return settings


def asked(address: str) -> dict[str, Any]:
    """What the API says there, to who has the token; nothing while it does not answer."""
    try:
        # No proxy: it is this machine that is asked.
        opener = build_opener(ProxyHandler({}))
        with opener.open(Request(address, headers={"Authorization": f"Bearer {TOKEN}"}), timeout=10) as reply:
            answered: dict[str, Any] = json.load(reply)
            return answered
    except (URLError, ConnectionError, TimeoutError):
        return {}


def use(builder: Builder, settings: dict[str, Any], page: str, port: int) -> str:
    """Add a source and start it as the image says, ask it, and end it; how long it took to end."""
    container = builder.call("from", "--pull-never", "localhost/unstale", read=True).strip()
    inside = ["run", "--isolation", "chroot", "--env", f"UNSTALE_TOKEN={TOKEN}", container, "--"]
    assert builder.call(*inside, "id", "-u", read=True).strip() == "10001", "it runs under another number"
    text = 'budget = "5/s"\n[http]\nallow_networks = ["127.0.0.0/8"]\n'
    builder.call(*inside, "sh", "-c", 'printf "%s" "$0" > unstale.toml', text)
    builder.call(*inside, "unstale", "add", page)
    started = [*settings["Entrypoint"], *settings["Cmd"]]
    # Two engines of one machine would meet at one port.
    started = [word.replace(":8600", f":{port}") for word in started]
    running = builder.start(*inside, "sh", "-c", 'echo $$ > pid; exec "$@"', "sh", *started)
    try:
        end = time.monotonic() + PATIENCE
        while not (status := asked(f"http://127.0.0.1:{port}/api/v1/status")) or status["sources"]["never_answered"]:
            assert running.poll() is None, f"it ended: {running.communicate()[0][-2000:]}"
            assert time.monotonic() < end, f"it does not poll: {status}"
            time.sleep(0.5)
        assert "news" in builder.call(*inside, "unstale", "get", page, read=True)
        builder.call(*inside, *settings["Healthcheck"]["Test"][1:])
        begun = time.monotonic()
        builder.call(*inside, "sh", "-c", "kill -TERM $(cat pid)")
        printed = running.communicate(timeout=30)[0]
        assert running.returncode == 0, f"exit {running.returncode} after SIGTERM\n{printed[-2000:]}"
        return f"polled, read, asked whether it is well, ended {time.monotonic() - begun:.1f} s after SIGTERM"
    finally:
        running.kill()
        running.wait()
        builder.call("rm", container)


def main() -> int:
    """Build it, use it, and print a line of each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", default="", help="the image to build on, such as docker.io/library/python:3.12-slim")
    base = parser.parse_args().base
    needed = ["buildah"] if base else ["buildah", "mmdebstrap"]
    missing = [program for program in needed if not shutil.which(program)] + ["root"] * (os.geteuid() != 0)
    if missing:
        print(f"not built: {', '.join(missing)} missing")
        return 0
    with tempfile.TemporaryDirectory(prefix="image") as name:
        folder, begun = Path(name), time.monotonic()
        builder = Builder(folder)
        try:
            settings = build(builder, base or debian(builder, folder))
            size = json.loads(builder.call("images", "--json", "localhost/unstale", read=True))[0]["size"]
            print(f"built in {time.monotonic() - begun:.0f} s, {size}", flush=True)
            (folder / "pages").mkdir()
            with site(folder / "pages") as page:
                print(use(builder, settings, page, free_port()), flush=True)
        except (AssertionError, subprocess.TimeoutExpired) as error:
            print(f"FAILED: {error}")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
