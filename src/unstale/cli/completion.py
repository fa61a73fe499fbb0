"""`unstale completion`: what a shell needs to complete commands and options."""

from __future__ import annotations

import click


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print a script by which SHELL completes `unstale` with the tab key.

    \b
      eval "$(unstale completion bash)"        in ~/.bashrc
      eval "$(unstale completion zsh)"         in ~/.zshrc
      unstale completion fish | source         in ~/.config/fish/config.fish
    """
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None, "click knows the three"
    click.echo(kind(ctx.find_root().command, {}, "unstale", "_UNSTALE_COMPLETE").source())
