"""The command `tamis plugin-path`."""

from __future__ import annotations

import click

import tamis


@click.command("plugin-path")
def command() -> None:
    """Print the folder of the HDF5 plugin, for HDF5_PLUGIN_PATH.

    \b
    export HDF5_PLUGIN_PATH=$(tamis plugin-path)
    """
    click.echo(tamis.plugin_path())
