"""The command line: a group whose commands are imported when they are called."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from importlib import import_module

import click

import tamis
from tamis.cli.ending import Commands, keep_freed_memory

_COMMANDS = (
    *("completion", "config", "copy", "doctor", "export", "filters", "inspect", "manifest", "plan", "plugin-path"),
    *("repack", "repair", "report", "sample", "spec", "status", "verify"),
)


_JOBS = ("copy", "export", "inspect", "plan", "repack", "report", "verify")
"""Commands whose job, a function of tamis, takes long to import, because it needs h5py."""


def preload(arguments: Sequence[str]) -> None:
    """Import the modules that a command line needs, so that the command itself imports little."""
    if "_TAMIS_COMPLETE" in os.environ:  # a shell asks for words
        import_module("tamis.cli.shells")
    if arguments and arguments[0] in _JOBS and not {"-h", "--help"} & set(arguments):
        getattr(tamis, arguments[0])


class _LateCommands(Commands):
    """The commands of `tamis.cli.commands`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        return [*_COMMANDS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, imported; None if there is no command of that name."""
        if cmd_name in _COMMANDS:
            return _imported(cmd_name)
        self.commands = {name: _imported(name) for name in _COMMANDS}  # click suggests a similar one of these
        return None


def _imported(name: str) -> click.Command:
    command: click.Command = import_module(f"tamis.cli.commands.{name.replace('-', '_')}").command
    return command


def _print_version(ctx: click.Context, _: click.Parameter, is_requested: bool) -> None:
    if is_requested and not ctx.resilient_parsing:
        click.echo(tamis.config())
        ctx.exit()


@click.group(cls=_LateCommands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_print_version,
    help="Show the version and exit.",
)
def main() -> None:
    """See and change the filters of HDF5, netCDF-4 and Zarr files, and prove what was written.

    \b
    tamis inspect climate.nc
    tamis plan climate.nc --require 'TS:abs=0.1'
    tamis repack climate.nc small.nc -f 'TS:zfp(accuracy=0.1)'
    tamis verify climate.nc small.nc --bound TS:0.1
    HDF5_PLUGIN_PATH=$(tamis plugin-path) ncdump -v TS small.nc

    Exit codes: 0 done as asked, 1 failed, 2 wrong usage, 3 the bound was violated, whatever else failed, 128 + n
    after signal n.
    """
    keep_freed_memory()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # for names with characters that the terminal cannot show
