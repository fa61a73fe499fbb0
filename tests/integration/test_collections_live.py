"""A sitemap on a real site: `unstale add --collection`, then the program itself finds members and hears signals."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from pathlib import Path

from click.testing import CliRunner

from support.loopback import Loopback, answer
from support.patience import BUSY
from unstale.adapters.memory_store import MemoryStore
from unstale.adapters.sqlite_replica import SqliteReplica
from unstale.cli.compose import Application, member_of
from unstale.cli.fetchers import Fetchers
from unstale.cli.main import unstale as cli
from unstale.cli.settings import load
from unstale.engine.joining import compared, taken_up
from unstale.engine.listed import parsed
from unstale.ports import Claim, Listing

PAGES = 4


def sitemap(origin: str, days: list[int]) -> bytes:
    """Pages with the days on which they changed; one of them lies elsewhere, and one is no address at all."""
    entries = [f"<url><loc>{origin}/{i}</loc><lastmod>2024-05-0{day}</lastmod></url>" for i, day in enumerate(days)]
    others = "<url><loc>http://other.example/x</loc></url><url><loc>javascript:alert(1)</loc></url>"
    return answer(f"<urlset>{''.join(entries)}{others}</urlset>".encode(), content_type="application/xml")


async def until(true: Callable[[], bool]) -> None:
    """Wait until something is true, as long as a busy machine may need that compiles before."""
    async with asyncio.timeout(60.0 * BUSY):
        while not true():
            await asyncio.sleep(0.05)


async def _live(folder: Path) -> None:
    config = folder / "unstale.toml"
    config.write_text('store = "s.db"\nbudget = "20/s"\n[http]\nallow_networks = ["127.0.0.0/8"]\nrobots = false\n')
    async with Loopback({f"/{i}": answer(b"page") for i in range(PAGES)}) as site:
        site.speeches["/sitemap.xml"] = sitemap(site.origin, [1] * PAGES)
        place = f"{site.origin}/sitemap.xml"
        run = CliRunner().invoke(cli, ["add", "--collection", place, "--config", str(config)])
        assert run.exit_code == 0, run.output
        heard: list[tuple[str, dict[str, object]]] = []
        application = Application(load(str(config)), lambda name, facts: heard.append((name, dict(facts))))
        stop = asyncio.Event()
        running = asyncio.create_task(application.run(stop))
        store = SqliteReplica(folder / "s.db")
        try:
            await until(lambda: len(store.members()) == PAGES and all(store.versions(i) for i in range(1, PAGES + 2)))
            site.speeches["/sitemap.xml"] = sitemap(site.origin, [1, 2, 1, 1])
            await until(lambda: any(member.told is not None for member in store.members()))
            await until(lambda: bool(store.setting("signals")))
        finally:
            stop.set()
            await running
        changed = {member.address for member in store.members() if member.told is not None}
        assert changed == {f"{site.origin}/1"}
        assert {address for _, address, _ in store.names()} == {place, *(f"{site.origin}/{i}" for i in range(PAGES))}
        assert ("members", 4, 2) in {(name, facts.get("added"), facts.get("refused")) for name, facts in heard}
        store.close()
        for words, said in (
            (["status", "--config", str(config)], "tells of 4 sources"),
            (["explain", place, "--config", str(config)], "tells of 4 sources"),
            (["signals", "--config", str(config)], "state members listed every"),
            (["doctor", "--config", str(config)], "5 beliefs equal bit for bit"),
        ):
            run = CliRunner().invoke(cli, words)
            assert said in " ".join(run.output.split()), run.output
        run = CliRunner().invoke(cli, ["status", "--json", "--config", str(config)])
        (told,) = json.loads(run.output)["collections"]
        alone = CliRunner().invoke(cli, ["signals", "--json", "--config", str(config)])
        assert [(one["address"], one["state"]) for one in json.loads(alone.output)] == [(place, told["state"])]
        assert (told["members"], told["listing"]) == (4, "sitemap")
        # The page it tells of stays the same: how soon that is noticed is a matter of time.
        assert told["state"] in ("new", "not believed")


def test_a_sitemap_brings_its_pages_and_tells_of_their_changes(tmp_path: Path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.chdir(tmp_path)
    asyncio.run(_live(tmp_path))


def test_what_robots_txt_does_not_allow_is_not_added(tmp_path: Path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    """A crawl takes no page that could never be polled; a site that cannot say so now forbids nothing for good."""
    monkeypatch.chdir(tmp_path)

    async def crawled(robots: bytes) -> set[str]:
        links = b'<a href="/a">a</a><a href="/private/x">x</a><a href="/b">b</a>'
        async with Loopback({"/robots.txt": robots, "/": answer(links, content_type="text/html")}) as site:
            (tmp_path / "unstale.toml").write_text('store = "s.db"\n[http]\nallow_networks = ["127.0.0.0/8"]\n')
            settings = load(str(tmp_path / "unstale.toml"))
            fetchers, store = Fetchers(settings, time.time), MemoryStore()
            page = Listing(f"{site.origin}/", options={"collection": "links"})
            store.add([page], 0.0)
            claim = Claim(1, 1, page.address, "http", 0.0, page.options)
            try:
                shown = await parsed(claim, await fetchers.look(claim), None)
                assert shown is not None
                heard = compared([], shown, 1.0)
                taken_up(store, claim, [], heard, shown, 1.0, member_of(settings, fetchers.forbids))
            finally:
                await fetchers.close()
            return {one.address.removeprefix(site.origin) for one in store.members()}

    assert asyncio.run(crawled(answer(b"User-agent: *\nDisallow: /private"))) == {"/a", "/b"}
    assert asyncio.run(crawled(answer(b"User-agent: *\nAllow: /"))) == {"/a", "/private/x", "/b"}
