"""Made `store-feeds.db.zst` and `store-feeds.sql.zst`, once, with the last code before entries were kept by themselves:
`git archive f211c0f | tar -x -C FOLDER`, then `PYTHONPATH=FOLDER/src:tests python tests/earlier/make_feeds.py`."""

from __future__ import annotations

import subprocess
import tempfile
from contextlib import closing
from pathlib import Path

import zstandard

from support.postgres import _installed, postgres
from unstale.adapters.postgres_move import moved
from unstale.adapters.sqlite_store import SqliteStore
from unstale.keeper.outcomes import Answer
from unstale.ports import Body, Entry, Listing

HERE = Path(__file__).parent


def feed(newest: int, word: str = "Entry") -> bytes:
    """A feed that shows its two newest entries."""
    items = "".join(f"<item><guid>{n}</guid><title>{word} {n}</title></item>" for n in (newest, newest - 1))
    return f"<rss><channel>{items}</channel></rss>".encode()


def main() -> None:
    """Five versions of a feed, the last of which renames what it shows; and a page."""
    pack = zstandard.ZstdCompressor(level=19).compress
    with tempfile.TemporaryDirectory() as folder, postgres() as server:
        path = Path(folder) / "store.db"
        with closing(SqliteStore(path)) as store:
            store.add([Listing("http://a.example/feed", "feed"), Listing("http://a.example/")], 0.0)
            for n in range(1, 6):
                body = Body(feed(n, "Entry" if n < 5 else "Renamed"), "application/rss+xml")
                claims = store.claim(10.0 * n, 9, lease=5.0, owner="a")
                store.record([Entry(one, Answer.CHANGED, 10.0 * n, 10.0 * n + 1.0, body=body) for one in claims])
            store.moved()
        with closing(SqliteStore(path)):
            (HERE / "store-feeds.db.zst").write_bytes(pack(path.read_bytes()))
        moved(path, server.address())
        words = ["--inserts", "--rows-per-insert=500", "--no-owner", "--no-privileges", server.address()]
        dumped = subprocess.run([_installed() / "bin/pg_dump", *words], check=True, capture_output=True, text=True)
    lines = [line for line in dumped.stdout.splitlines() if line and not line.startswith(("--", "\\", "SET "))]
    (HERE / "store-feeds.sql.zst").write_bytes(pack("\n".join(lines).encode()))


if __name__ == "__main__":
    main()
