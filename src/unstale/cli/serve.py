"""`unstale serve`: the copies of a store over HTTP, with the API, beside whatever polls into it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from unstale.cli.children import ended_within
from unstale.cli.listening import GRACE, address, shown_host, until_ended
from unstale.cli.logging_option import log_as, log_option
from unstale.cli.reaching import reached
from unstale.cli.settings import Settings, load, near, settings_options
from unstale.cli.token import Token, lasting_token, token_of
from unstale.units import DAY, parse_rate

if TYPE_CHECKING:
    from unstale.server.sessions import Role

Say = Callable[[str], None]


@click.command()
@settings_options
@click.option(
    "--listen",
    metavar="HOST:PORT",
    help="Where to listen; as in the settings, or 127.0.0.1:8600. "
    "Port 0 takes a free one. Beyond this machine a token is needed.",
)
@click.option("--name", default="unstale", show_default=True, help="This replica's name in Cache-Status.")
@click.option(
    "--ask",
    is_flag=True,
    help="Let a request that no copy can satisfy make its source due now, so that a "
    "running engine polls it. Otherwise only who has the token can.",
)
@click.option("--weigh", is_flag=True, help="Let sources weigh more the more their copies are read.")
@click.option(
    "--proxy",
    "proxied",
    multiple=True,
    metavar="[HOST=]ORIGIN",
    help="Instead of a store, serve what this origin answers: a cache by RFC 9111.",
)
@click.option(
    "--allow-network",
    "networks",
    multiple=True,
    metavar="NETWORK",
    help="A network that is not public and may be asked by --proxy, like 127.0.0.0/8.",
)
@click.option(
    "--budget",
    metavar="RATE",
    help="With --proxy: how often what is kept may be asked for again where its origin does not say how long it lasts, "
    "like 600/h; what pays most is. Otherwise a tenth of the time since its last change is waited.",
)
@click.option("--stock", metavar="FILE", help="With --proxy: a file in which what is kept outlives the process.")
@log_option
@click.option("--tied", is_flag=True, hidden=True, help="End when standard input does.")
def serve(
    config: str | None,
    store: str | None,
    listen: str | None,
    name: str,
    ask: bool,
    weigh: bool,
    proxied: Sequence[str],
    networks: Sequence[str],
    budget: str | None,
    stock: str | None,
    log_json: bool,
    tied: bool,
) -> None:
    """Serve the copies of a store over HTTP.

    A copy is at /copies/ID and at /copy?source=ADDRESS, and says when it was checked, when it changed and how likely
    it is still fresh. Clients bound its age with ?max_age=30s or Cache-Control. The API is under /api/v1, described by
    /api/v1/openapi.json; numbers for Prometheus are at /metrics.

    A dashboard is at /. On this machine everybody may look; changing something needs a token of 32 characters or more.
    It is taken from the environment, UNSTALE_TOKEN, or made at the first start and kept beside the store in
    unstale.db.token, which only you can read; a link that logs your browser in once is printed. From other machines
    reading needs a token of your own, too.

    \b
      unstale serve --store unstale.db
      curl 'http://127.0.0.1:8600/copies/1?max_age=1h'
      unstale serve --proxy https://example.org --listen 127.0.0.1:8080
      unstale serve --proxy https://example.org --budget 600/h --stock stock.db
    """
    if (budget or stock) and not proxied:
        raise click.UsageError("--budget and --stock are for a proxy: name its origin with --proxy")
    asking = None if budget is None else parse_rate(budget, "budget") / DAY
    log_as(log_json)
    settings = load(config, store=store)
    host, port = address(listen or settings.server.listen)

    token = None if proxied else lasting_token(settings)
    # Only who sees this line can use it, once: nothing need be typed to change things.
    key = "" if token is None or token.own else secrets.token_urlsafe(24)

    def ready(number: int) -> None:
        at = f"http://{shown_host(host)}:{number}"
        what = f"{', '.join(proxied)} at {at}/" if proxied else f"{near(settings.store)} at {at}/"
        kept = f", or log in with the token in {token.kept.removeprefix('the file ')}" if token and token.kept else ""
        how = f" (to change things there open {at}/#key={key} once{kept})" if key else ""
        click.echo(f"serving {what}{how}, stop with Ctrl-C")

    with contextlib.suppress(KeyboardInterrupt):
        if proxied:
            from unstale.cli.proxy import run as run_proxy

            allowed = (*settings.http.allow_networks, *networks)
            name = "" if name == "unstale" else name
            asyncio.run(
                run_proxy(
                    proxied,
                    host,
                    port,
                    name=name,
                    allow_networks=allowed,
                    token=token_of(settings),
                    stop=None,
                    names=settings.server.names,
                    budget=asking,
                    stock=stock,
                    ready=ready,
                )
            )
        else:
            weighing = replace(settings, server=replace(settings.server, weigh=weigh or settings.server.weigh))
            from unstale.server.serving import new_loop, settled

            def begun(number: int) -> None:
                settled()
                ready(number)

            with asyncio.Runner(loop_factory=new_loop) as runner:
                runner.run(run(weighing, host, port, name=name, ask=ask, ready=begun, tied=tied, token=token, key=key))


async def run(
    settings: Settings,
    host: str,
    port: int,
    *,
    name: str = "unstale",
    ask: bool = False,
    ready: Callable[[int], None] | None = None,
    stop: asyncio.Event | None = None,
    tied: bool = False,
    token: Token | None = None,
    key: str = "",
) -> None:
    """Serve the store of the settings until `stop` is set, or the process is asked to end.

    `token` is the lasting one unless it is given; `key` logs one browser in.
    """
    from unstale.adapters.environment import filled
    from unstale.cli.service import clock_of, read_store, service_of
    from unstale.cli.sinks import ReceiverTrials
    from unstale.cli.trying import Trying
    from unstale.server.app import replica
    from unstale.server.asking import StoreAsker
    from unstale.server.auth import OWN_NAMES, check_binding, is_near
    from unstale.server.dashboard import Door, views
    from unstale.server.digests import digest_route
    from unstale.server.front import Front
    from unstale.server.requests import Weigher
    from unstale.server.scopes import ScopedTokens
    from unstale.server.serving import place
    from unstale.server.serving import serve as listen_and_serve
    from unstale.server.sessions import Sessions
    from unstale.server.warming import warm

    own, token, name = settings.server, token or lasting_token(settings), settings.replicas.name or name
    with ExitStack() as opened:
        stop = opened.enter_context(until_ended(stop, tied=tied))
        if (shelf := await reached(lambda: read_store(settings), stop, click.echo)) is None:
            return
        opened.callback(shelf.close)
        service = service_of(settings, afar=True)
        opened.callback(service.close)
        now = clock_of(settings, shelf)
        asker = StoreAsker(service, shelf, now)
        numeric, port = place(host, port)
        home = is_near(numeric)
        check_binding(numeric, token.text if token.own or home else None)
        names = (*OWN_NAMES, shown_host(host), shown_host(numeric), *own.names) if home else ()
        tries = Trying(settings)
        more = views(
            service,
            replicas=lambda: _others(settings),
            tries=tries,
            told=ReceiverTrials(settings, service.receivers),
            icons=own.icons,
        )
        if settings.replicas.tell:
            more.append(digest_route(shelf, now, name))
        scoped = ScopedTokens(service, now)
        app = replica(
            shelf,
            name=name,
            asker=asker if ask else None,
            token=token.text,
            clock=now,
            service=service,
            poller=asker,
            secret=filled(own.hub_secret),
            closed=not home,
            names=names,
            more=more,
            scoped=scoped,
        )
        passwords: dict[Role, str] = {"reader": filled(own.reader_password), "operator": filled(own.operator_password)}
        people: dict[str, tuple[Role, str]] = {name: ("reader", filled(one)) for name, one in own.readers.items()}
        people |= {name: ("operator", filled(one)) for name, one in own.operators.items()}
        sessions = Sessions(token.text, passwords, clock=time.time, key=key, people=people)
        role: Role | None = "reader" if home else None
        door = Door(
            app, sessions, token.text, home=role, kept=token.kept, scoped=scoped, icons=own.icons, note=service.note
        )
        weigher = Weigher(service, app.copies.take, now)
        weighing = asyncio.create_task(weigher.run()) if own.weigh else None
        warming: list[asyncio.Task[None]] = []

        def begun(number: int) -> None:
            warming.append(asyncio.create_task(warm(app, token.text, stop, service.ready)))
            if ready is not None:
                ready(number)

        try:
            front = Front(door, app.copies, app.guard)
            await listen_and_serve(front, numeric, port, token=token.text, stop=stop, ready=begun, ending=app.close)
        finally:
            if weighing is not None:
                weighing.cancel()
                await asyncio.gather(weighing, return_exceptions=True)
            # What it reads is closed after it has ended.
            await asyncio.gather(*warming, return_exceptions=True)
            await tries.close()


async def beside(settings: Settings, listen: str, stop: asyncio.Event, say: Say) -> None:
    """Serve from a process of its own until `stop` is set, so that neither waits for the other's work.

    What keeps it from serving is said in one line, and the engine goes on.
    """
    command = ["serve", "--tied", "--ask", "--listen", listen]
    command += ["--config", str(settings.path)] if settings.path else []
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        "from unstale.cli.main import main; main()",
        *command,
        stdin=pipe,
        stdout=pipe,
        stderr=pipe,
        # Not as an argument: what others may see of a process must hold no password.
        env={**os.environ, "UNSTALE_STORE": settings.store},
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    first = asyncio.ensure_future(process.stdout.readline())
    stopped = asyncio.ensure_future(stop.wait())
    ended = asyncio.ensure_future(process.stderr.read())
    try:
        await asyncio.wait({first, stopped}, return_when=asyncio.FIRST_COMPLETED)
        if first.done() and (line := first.result()):
            say(line.decode().partition(", stop")[0].strip())
            await asyncio.wait({ended, stopped}, return_when=asyncio.FIRST_COMPLETED)
        if not stopped.done():
            why = (await ended).decode("utf-8", "replace").strip().splitlines()
            say(f"{(why or ['the server ended'])[-1].removeprefix('unstale: ')}; going on without serving")
    finally:
        process.stdin.close()
        await ended_within(process, GRACE)
        for task in (first, stopped, ended):
            task.cancel()
        await asyncio.gather(first, stopped, ended, return_exceptions=True)


def _others(settings: Settings) -> dict[str, Any]:
    """Whom this replica follows and asks."""
    own = settings.replicas
    return {"name": own.name, "upstream": own.upstream, "peers": list(own.peers)}
