"""The `unstale` command. Sub-commands load when they run, so that `--help` answers at once."""

from __future__ import annotations

import sys
from importlib import import_module

import click

from unstale import __version__
from unstale.errors import UnstaleError

#: command -> (module, one line); the line is here so that listing commands loads none of them
COMMANDS = {
    "freshness": ("unstale.cli.one_copy", "How fresh is a copy, polled this often?"),
    "sync-rate": ("unstale.cli.one_copy", "How often to poll for this freshness?"),
    "plan": ("unstale.cli.plan", "Divide a budget of polls over a fleet of sources."),
    "demo": ("unstale.cli.plan", "The optimal plan of a bundled sample fleet."),
    "simulate": ("unstale.cli.simulate", "What would a plan have achieved? Simulate it."),
    "topology": ("unstale.cli.topology", "How should replicas pull from a source and from each other?"),
    "trace": ("unstale.cli.trace", "When did real sources change? Import their histories."),
    "fit": ("unstale.cli.fit", "What kind of changes does a history hold, and what of it?"),
    "backtest": ("unstale.cli.backtest", "How fresh would each way of polling have kept real sources?"),
    "papers": ("unstale.cli.papers", "Every table and figure of the papers, computed again."),
}


class Lazy(click.Group):
    """A group whose commands are imported when asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = import_module(COMMANDS[cmd_name][0])
        command: click.Command = getattr(module, cmd_name.replace("-", "_"))
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])


@click.command(cls=Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="unstale")
def unstale() -> None:
    """Keep local copies of things that change elsewhere as fresh as a polling budget allows.

    Rates are written 1/day, 3/h or 15m (one every 15 minutes); a bare number is per day.
    """


def main() -> None:
    """Run a command; what is wrong with the input is one sentence and exit code 1."""
    try:
        unstale()
    except UnstaleError as error:
        click.echo(f"unstale: {error}", err=True)
        sys.exit(1)
    except BrokenPipeError:
        sys.exit(141)
