"""Made `store-0.1.sql.zst`, once, with the code of 0.1, which moved `store-0.1.db.zst` into a PostgreSQL database:
`git archive f96f989 | tar -x -C FOLDER`, then `PYTHONPATH=FOLDER/src:tests python tests/earlier/make_postgres.py`."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

import zstandard

from support.postgres import _installed, postgres
from unstale.adapters.postgres_move import moved

HERE = Path(__file__).parent


def main() -> None:
    """Everything in the database, as statements."""
    with postgres() as server, tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store.db"
        path.write_bytes(zstandard.ZstdDecompressor().decompress((HERE / "store-0.1.db.zst").read_bytes()))
        moved(path, server.address())
        words = ["--inserts", "--rows-per-insert=500", "--no-owner", "--no-privileges", server.address()]
        dumped = subprocess.run([_installed() / "bin/pg_dump", *words], check=True, capture_output=True, text=True)
    lines = [line for line in dumped.stdout.splitlines() if line and not line.startswith(("--", "\\", "SET "))]
    packed = zstandard.ZstdCompressor(level=19).compress("\n".join(lines).encode())
    (HERE / "store-0.1.sql.zst").write_bytes(packed)


if __name__ == "__main__":
    main()
