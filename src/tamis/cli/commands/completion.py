"""The command `tamis completion`: print what lets a shell complete the words of tamis."""

from __future__ import annotations

from importlib import import_module

import click

_SHELLS = ("bash", "zsh", "fish")


@click.command("completion", short_help="Print what lets a shell complete commands and options.")
@click.argument("shell", type=click.Choice(_SHELLS))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print a script for a shell: it then completes commands, options, their values, filters and names of files.

    Put the line of your shell into the file that it reads at its start; bash must be 4.4 or newer.

    \b
    eval "$(tamis completion bash)"     # in ~/.bashrc
    eval "$(tamis completion zsh)"      # in ~/.zshrc, after compinit
    tamis completion fish | source      # in ~/.config/fish/config.fish
    """
    from click.shell_completion import get_completion_class  # late: only this command needs it

    import_module("tamis.cli.shells")  # replaces some of click's
    kind = get_completion_class(shell)
    assert kind is not None  # click has one for each of the shells
    click.echo(kind(ctx.find_root().command, {}, "tamis", "_TAMIS_COMPLETE").source(), nl=False)
