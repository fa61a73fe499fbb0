"""Whoever follows a page types what it shows: the lines of README, tutorial and how-tos in order, in a shell.

What `$` shows with its output is compared elsewhere (tests/meta/test_docs.py); here lines follow on from each other,
engines run meanwhile, and every line must end well. Addresses of the internet are those of a site on this machine, and
ports are free ones. A line that is not executed here says why, and who executes it instead.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from support.documents import PAGES, ROOT, files, name, typed
from support.patience import BUSY
from support.ports import free_port
from unstale.origin.server import Origin
from unstale.origin.site import Site

#: lines that are not executed here: how they begin, and the reason or who executes them
ELSEWHERE = {
    "make demo": "tests/unit/cli/test_running.py",
    "make check": "Makefile",
    "make test": "Makefile",
    "python3 -m venv": "tests/wheel",
    "pip install '.[all]'": "tests/wheel",
    "eval ": "tests/unit/cli/test_init.py",
    "unstale lab": "tests/integration/test_lab.py",
    "unstale papers": "tests/e2e/test_papers_report.py",
    "unstale run --config first.toml": "tests/integration/test_cascade.py",
    "unstale run --config second.toml": "tests/integration/test_cascade.py",
    "unstale get https://example.org/prices.csv --replicas": "tests/integration/test_cascade.py",
    "scrapy runspider": "tests/integration/test_scrapy.py",
    "unstale get orders": "tests/integration/test_sql_postgres.py",
    "sqlite3 tables.db": "tests/integration/test_sql_postgres.py",
    "unstale status --format dbt": "tests/unit/cli/test_status.py",
    "unstale status --limit 0 || mail": "tests/unit/cli/test_status.py",
    "unstale tables accept orders": "tests/integration/test_tables_command.py",
    "unstale add --collection s3://": "tests/contracts/test_collections.py",
    "unstale add --collection 'postgresql://": "tests/integration/test_collections_of_servers.py",
    # What a machine of one's own, another computer or the internet is needed for.
    "install ": "deploy",
    "cp deploy/": "deploy",
    "systemctl ": "deploy",
    "journalctl ": "deploy",
    "podman ": "deploy",
    "git clone --bare": "tests/unit/traces",
    "unstale trace git content.git": "tests/unit/traces",
    "unstale trace git Extras.git": "tests/unit/traces",
    "unstale backtest histories/": "tests/unit/traces",
    "python bench/": "bench",
    "unstale trace mediawiki": "tests/unit/traces",
    "pip install -i": "tests/integration/test_proxy_conformance.py",
}
#: lines that end with another code than 0, as their page says
ENDS = {'unstale doctor --store "unstale-': 1}
#: what runs until it is told to end, and of these what goes on while the rest of its page is typed
LASTING = ("unstale run", "unstale serve", "unstale origin")
STAYS = {
    "docs/tutorial.md": ("unstale origin --sources 20 --changes 6/min", "unstale run"),
    "README.md": ("unstale run --budget 500/day",),
    "docs/howto/keep-a-list-fresh.md": ("unstale run --budget 500/day",),
    "docs/howto/serve.md": ("unstale run --budget 20000/day",),
    "docs/howto/package-indexes.md": ("unstale run --listen 0.0.0.0:8600",),
}
#: pages whose settings are taken as they stand; elsewhere those of this machine do
OWN_SETTINGS = ("docs/howto/warehouse-copy.md", "docs/howto/contracts.md")
#: pages that are followed elsewhere, because they need a server
WITH_A_SERVER = {"docs/howto/warehouse-in-ten-minutes.md": "tests/integration/test_ten_minutes.py"}
#: pages with something to type that is not compared already
FOLLOWED = [
    page
    for page in PAGES
    if name(page) not in WITH_A_SERVER
    and any(kind == "sh" and not line.startswith(tuple(ELSEWHERE)) for kind, line in typed(page))
]
FEEDS = """<opml version="2.0"><body><outline text="a" xmlUrl="SITE/feed/1"/><outline text="b" xmlUrl="SITE/feed/2"/>
</body></opml>"""


class Reader:
    """Somebody in an empty folder, who types what a page shows."""

    def __init__(self, page: Path, folder: Path, site: str) -> None:
        self.page, self.folder, self.site = name(page), folder, site
        self.ports = {"8000": free_port(), "8600": free_port(), "8601": free_port(), "8080": free_port()}
        self.running: list[tuple[str, subprocess.Popen[str], Path]] = []
        bare = {key: value for key, value in os.environ.items() if not key.startswith("UNSTALE_")}
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self.env = {**bare, "PATH": path, "COLUMNS": "100", "HOME": str(folder), "NUMBA_DISABLE_JIT": "1"}
        for file, text in files(page).items():
            if not file.endswith(".toml") or self.page in OWN_SETTINGS:
                (folder / file).write_text(self.here(text), "utf-8")
        self.settle()

    def here(self, text: str) -> str:
        """What a page says of the world, said of this machine."""
        host = self.site.removeprefix("http://")
        for told, ours in {
            quote("https://example.org/", safe=""): quote(f"{self.site}/s/0", safe=""),
            "https://index.example.org/simple/numpy/": f"{self.site}/s/0",
            "https://index.example.org/simple/scipy/": f"{self.site}/s/1",
            "https://index.example.org/simple/click/": f"{self.site}/s/2",
            "https://index.example.org/simple/rarely-used/": f"{self.site}/s/3",
            "https://index.example.org": self.site,
            "https://example.org/sitemap.xml": f"{self.site}/sitemap.xml",
            "https://example.org/news": f"{self.site}/s/0",
            "example.org/news": f"{host}/s/0 ",
            "https://example.org ": f"{self.site} ",
            "0.0.0.0:": "127.0.0.1:",
        }.items():
            text = text.replace(told, ours)
        for port, free in self.ports.items():
            text = text.replace(f"127.0.0.1:{port}", f"127.0.0.1:{free}")
        return re.sub(r"^(unstale origin\b)", rf"\1 --port {self.ports['8000']}", text)

    def settle(self) -> None:
        """Settings that allow this machine to be polled, where the page has none of its own or makes some."""
        file = self.folder / "unstale.toml"
        told = file.read_text() if file.exists() else ""
        for section, line in {
            "http": 'allow_networks = ["127.0.0.0/8"]',
            "server": f'listen = "127.0.0.1:{self.ports["8600"]}"',
        }.items():
            if not re.search(rf"(?m)^{line.split()[0]}\b", told):
                told += "" if re.search(rf"(?m)^\[{section}\]", told) else f"\n[{section}]\n"
                told = re.sub(rf"(?m)^\[{section}\]$", f"[{section}]\n{line}", told, count=1)
        file.write_text(told)

    def follow(self, page: Path) -> int:
        """Type everything; how many lines were typed."""
        typed_lines = 0
        exported = ""
        for _, line in self.in_order(page):
            if line.startswith(tuple(ELSEWHERE)):
                continue
            typed_lines += 1
            ours = self.here(line)
            if ours.startswith("export "):
                exported += ours + "; "
            elif ours.startswith(LASTING):
                self.start(line, exported + "exec " + ours)
            else:
                if line.startswith("unstale init"):
                    (self.folder / "unstale.toml").unlink(missing_ok=True)
                self.do(exported + ours)
                if line.startswith("unstale init"):
                    self.settle()
        return typed_lines

    def in_order(self, page: Path) -> list[tuple[str, str]]:
        """Lines as they come; of lasting ones beside each other, those that stay come last."""
        stays = STAYS.get(self.page, ())
        lines = typed(page)
        for i, (_, line) in enumerate(lines[:-1]):
            if line in stays and lines[i + 1][1].startswith(LASTING) and self.page != "docs/tutorial.md":
                ahead = next((k for k in range(i + 1, len(lines)) if not lines[k][1].startswith(LASTING)), len(lines))
                lines[i:ahead] = [*lines[i + 1 : ahead], lines[i]]
                break
        return lines

    def do(self, line: str) -> str:
        done = subprocess.run(
            ["bash", "-c", line],
            cwd=self.folder,
            env=self.env,
            capture_output=True,
            text=True,
            timeout=60.0 * BUSY,
            check=False,
        )
        code = next((code for beginning, code in ENDS.items() if line.startswith(beginning)), 0)
        assert done.returncode == code, f"{self.page}: {line}\nends with {done.returncode}:\n{done.stdout}{done.stderr}"
        return done.stdout

    def start(self, line: str, ours: str) -> None:
        """What lasts is awaited until it says something; unless it stays, it is ended as a person would, by Ctrl-C."""
        if line.startswith("unstale run"):
            # One engine for one store: who tries another way ends the one before.
            for one in [one for one in self.running if one[0].startswith("unstale run")]:
                self.running.remove(one)
                self.end(one)
        out = self.folder / f"out{len(self.running)}.txt"
        with out.open("w") as file:
            process = subprocess.Popen(
                ["bash", "-c", ours], cwd=self.folder, env=self.env, stdout=file, stderr=subprocess.STDOUT, text=True
            )
        self.running.append((line, process, out))
        end = time.monotonic() + 30.0 * BUSY
        while not re.search("polling|serving|http://", out.read_text()):
            assert process.poll() is None, f"{self.page}: {line}\nended:\n{out.read_text()}"
            assert time.monotonic() < end, f"{self.page}: {line}\nsays nothing:\n{out.read_text()}"
            time.sleep(0.1)
        if line not in STAYS.get(self.page, ()):
            self.end(self.running.pop())
        elif line.startswith("unstale run"):
            self.first_copies()

    def first_copies(self) -> None:
        """A person waits until there is something to see: the first round is over, and the copies are served."""
        end = time.monotonic() + 30.0 * BUSY
        while True:
            ask = f"curl -sf http://127.0.0.1:{self.ports['8600']}/api/v1/status || echo {{}}"
            stands = json.loads(self.do(ask))
            if stands.get("first_round", stands) is None:
                return
            assert time.monotonic() < end, stands
            time.sleep(0.2)

    def end(self, one: tuple[str, subprocess.Popen[str], Path]) -> None:
        line, process, out = one
        process.send_signal(signal.SIGINT)
        assert process.wait(30.0 * BUSY) == 0, f"{self.page}: {line}\n{out.read_text()}"

    def close(self) -> None:
        for _, process, _ in self.running:
            if process.poll() is None:
                process.kill()
                process.wait()


@pytest.fixture
def site() -> Iterator[str]:
    origin = Origin(Site.of(8, 1 / 60, seed=3))
    with origin.in_thread():
        yield origin.address


@pytest.mark.skipif(not (shutil.which("bash") and shutil.which("curl")), reason="bash and curl are not installed")
@pytest.mark.parametrize("page", FOLLOWED, ids=name)
def test_a_page_can_be_followed_as_it_is_written(page: Path, tmp_path: Path, site: str) -> None:
    reader = Reader(page, tmp_path, site)
    prepare(reader)
    try:
        assert reader.follow(page) > 0
        while reader.running:
            reader.end(reader.running.pop())
    finally:
        reader.close()


def prepare(reader: Reader) -> None:
    """What a page takes for granted: lists that people have, a store with a source, a repository, models of dbt."""
    folder = reader.folder
    (folder / "feeds.opml").write_text(FEEDS.replace("SITE", reader.site))
    (folder / "fleet.csv").write_text(f"address,weight\n{reader.site}/s/4,2\n")
    if reader.page == "docs/howto/warehouse-copy.md":
        (folder / "models").mkdir()
    if reader.page in ("docs/howto/serve.md", "docs/howto/deploy.md"):
        reader.do(f"unstale add {reader.site}/s/0")
    if reader.page == "docs/howto/serve.md":
        reader.env["UNSTALE_TOKEN"] = "0123456789abcdef" * 2
    if reader.page == "docs/howto/import-a-trace.md":
        who = "-c user.name=a -c user.email=a@example.org"
        make = f"git init -q . && echo a > a.txt && git add a.txt && git {who} commit -qm one && echo b > a.txt"
        reader.do(f"mkdir -p path/to/repository && cd path/to/repository && {make} && git {who} commit -qam two")


def test_what_is_not_executed_here_is_executed_somewhere() -> None:
    lines = [line for page in PAGES for kind, line in typed(page) if kind == "sh"]
    for beginning, where in ELSEWHERE.items():
        assert any(line.startswith(beginning) for line in lines), f"no page says {beginning!r} any more"
        assert (ROOT / where).exists(), where
    assert {name(page) for page in PAGES} >= WITH_A_SERVER.keys()
    assert all(page in (ROOT / where).read_text("utf-8") for page, where in WITH_A_SERVER.items())
