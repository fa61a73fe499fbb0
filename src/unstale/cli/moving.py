"""`unstale move`: a store from its file to PostgreSQL, and back."""

from __future__ import annotations

import time
from dataclasses import replace

import click

from unstale.cli.settings import Settings
from unstale.cli.worker import postgres_of
from unstale.errors import require


@click.command()
@click.option("--from", "source", required=True, metavar="STORE", help="The store, which stays as it is.")
@click.option("--to", "target", required=True, metavar="STORE", help="A database that is empty, or a new file.")
def move(source: str, target: str) -> None:
    """Bring a store from its file to a PostgreSQL database, or back: all of it, also what was learned.

    A file is written as sqlite:FILE. Everything is compared before it counts: beliefs and due times bit for bit,
    copies by their SHA-256. Neither engine nor workers may run meanwhile. If it is interrupted, the same command goes
    on where it was, unless the store has changed.

    \b
      unstale move --from sqlite:unstale.db --to postgresql://me@db/fleet
      unstale move --from postgresql://me@db/fleet --to sqlite:unstale.db
    """
    begun = time.perf_counter()
    (kind, _, path), (wanted, _, file) = source.partition(":"), target.partition(":")
    if kind == "sqlite" and path:
        counts, name = _to_postgres(path, postgres_of(target, "to")), path
    else:
        require(wanted == "sqlite" and file, "to", repr(target), "is no place to move to", "write sqlite:FILE")
        from unstale.adapters.sqlite_move import moved_back

        counts, name = moved_back(postgres_of(source, "from"), file), "the database"
    told = ", ".join(f"{count:,} {what}" for what, count in counts.items())
    click.echo(f"moved and compared {told} in {time.perf_counter() - begun:.1f} s; {name} is as it was.")


def _to_postgres(path: str, dsn: str) -> dict[str, int]:
    from unstale.adapters.postgres_move import moved
    from unstale.adapters.sqlite_replica import SqliteReplica
    from unstale.cli.compose import alone

    # Whether the file is a store is said before anything is locked beside it.
    SqliteReplica(path).close()
    with alone(replace(Settings(), store=path)):
        return moved(path, dsn)
