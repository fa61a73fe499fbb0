"""The `unstale` command. Sub-commands load when they run, so that `--help` answers at once."""

from __future__ import annotations

import gc
import os
import sys
from importlib import import_module
from typing import Any

import click
from click.shell_completion import CompletionItem

from unstale import __version__
from unstale.errors import UnstaleError

#: what it is about -> command -> (module, one line); the line is here so that listing commands loads none of them
GROUPS = {
    "Keep copies fresh": {
        "demo": ("unstale.cli.demo", "See it work: changing sources, an engine, a live panel."),
        "init": ("unstale.cli.init", "Three questions, and a commented unstale.toml."),
        "add": ("unstale.cli.adding", "Add sources by their addresses, or from lists."),
        "run": ("unstale.cli.run", "Keep the copies of all sources fresh."),
        "status": ("unstale.cli.status", "How fresh are the copies? Exit codes for cron and monitoring."),
        "top": ("unstale.cli.top", "Watch a running engine from another terminal."),
        "budget": ("unstale.cli.budget", "What may all polls cost? Say it, or ask why it is what it is."),
        "settings": ("unstale.cli.live_settings", "What does the fleet go by? Change it while it runs."),
        "audit": ("unstale.cli.edit_log", "Who changed what?"),
        "get": ("unstale.cli.copies", "The copy of a source, and how fresh it is."),
        "serve": ("unstale.cli.serve", "Serve the copies over HTTP."),
        "worker": ("unstale.cli.worker", "Keep copies fresh together with other workers, on one PostgreSQL."),
        "move": ("unstale.cli.moving", "Bring a store from its file to a PostgreSQL database, or back."),
    },
    "Sources": {
        "list": ("unstale.cli.sources", "Which sources are there?"),
        "edit": ("unstale.cli.sources", "Change what is said of sources."),
        "pause": ("unstale.cli.sources", "Stop polling sources for a while."),
        "resume": ("unstale.cli.sources", "Poll paused sources again."),
        "remove": ("unstale.cli.sources", "Forget sources, their copies and what they taught."),
        "hint": ("unstale.cli.sources", "Say that sources may have changed."),
        "poll": ("unstale.cli.poll", "Poll sources now."),
        "explain": ("unstale.cli.explain", "Why is a source polled as often as it is?"),
        "tables": ("unstale.cli.tables", "Copies of tables: what is held, what changed in their schemas, dbt."),
        "diff": ("unstale.cli.differing", "What changed in a source between two of its versions?"),
        "signals": ("unstale.cli.signals", "What tells of many sources, and is it true?"),
        "entries": ("unstale.cli.feed_entries", "What has a feed told of, also what it has dropped since?"),
        "history": ("unstale.cli.copies", "What did the polls of a source find?"),
        "export": ("unstale.cli.sources", "Write all sources to a list."),
        "import": ("unstale.cli.adding", "Take over the sources of a list."),
        "backup": ("unstale.cli.maintenance", "Copy the store to a file, while it is in use."),
        "restore": ("unstale.cli.restoring", "Put a backup in the place of the store."),
        "doctor": ("unstale.cli.maintenance", "Is the store sound? What to do if not."),
    },
    "Plan and study": {
        "plan": ("unstale.cli.plan", "Divide a budget of polls over a fleet of sources."),
        "sample": ("unstale.cli.plan", "The optimal plan of a bundled sample fleet."),
        "freshness": ("unstale.cli.one_copy", "How fresh is a copy, polled this often?"),
        "sync-rate": ("unstale.cli.one_copy", "How often to poll for this freshness?"),
        "simulate": ("unstale.cli.simulate", "What would a plan have achieved? Simulate it."),
        "topology": ("unstale.cli.topology", "How should replicas pull from a source and from each other?"),
        "trace": ("unstale.cli.trace", "When did real sources change? Import their histories."),
        "fit": ("unstale.cli.fit", "What kind of changes does a history hold, and what of it?"),
        "backtest": ("unstale.cli.backtest", "How fresh would each way of polling have kept real sources?"),
        "origin": ("unstale.cli.origin", "Serve a web site of changing sources, to try things on."),
        "lab": ("unstale.cli.lab", "Real replicas on this machine, measured beside theory."),
        "papers": ("unstale.cli.papers", "Every table and figure of the papers, computed again."),
        "completion": ("unstale.cli.completion", "Let the tab key complete commands in your shell."),
    },
}
COMMANDS = {name: about for group in GROUPS.values() for name, about in group.items()}
#: new objects after which the collector looks for rings among them: what a command loads, which stays, has hundreds of
#: thousands, and to go through them again and again took a tenth of its start
GARBAGE = (50_000, 20, 20)


class Lazy(click.Group):
    """A group whose commands are imported when asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = import_module(COMMANDS[cmd_name][0])
        # A command whose name is a word of Python's has an underscore behind it.
        name = cmd_name.replace("-", "_")
        command: click.Command = getattr(module, name if hasattr(module, name) else f"{name}_")
        for parameter in command.params:
            _plain_digits(parameter.type)
        return command

    def invoke(self, ctx: click.Context) -> Any:
        try:
            done = super().invoke(ctx)
            sys.stdout.flush()
            return done
        except KeyboardInterrupt:
            stopped = "unstale: stopped by Ctrl-C: nothing half done was stored, start it again when you like"
            click.echo(stopped, err=True)
            ctx.exit(130)
        except BrokenPipeError:
            # Who reads has enough, as `head` has: what is left to print goes nowhere, and nothing is said of it.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(141)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        if incomplete.startswith("-"):
            return super().shell_complete(ctx, incomplete)
        return [CompletionItem(n, help=line) for n, (_, line) in COMMANDS.items() if n.startswith(incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for group, commands in GROUPS.items():
            with formatter.section(group):
                formatter.write_dl([(name, line) for name, (_, line) in commands.items()])


def _plain_digits(kind: click.ParamType[Any]) -> None:
    """Let a kind of number refuse 1_000 and digits of other scripts, which Python would read."""
    if not isinstance(kind, click.types.IntParamType | click.types.FloatParamType) or "convert" in vars(kind):
        return
    usual = kind.convert

    def convert(value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, str) and (not value.isascii() or "_" in value):
            kind.fail(f"{value!r} is not a valid {kind.name}: write it with plain digits.", param, ctx)
        return usual(value, param, ctx)

    kind.convert = convert  # type: ignore[method-assign]


@click.command(cls=Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="unstale")
def unstale() -> None:
    """Keep local copies of things that change elsewhere as fresh as a polling budget allows.

    Rates are written 1/day, 3/h or 15m (one every 15 minutes); a bare number is per day.
    """


def main() -> None:
    """Run a command; what is wrong with the input is one sentence and exit code 1."""
    gc.set_threshold(*GARBAGE)
    try:
        unstale()
    except UnstaleError as error:
        click.echo(f"unstale: {error}", err=True)
        sys.exit(1)
