"""The command `tamis plugin-path`: print the folder of the HDF5 plugin."""

from __future__ import annotations

import click

import tamis


@click.command("plugin-path", short_help="Print the folder of the HDF5 plugin.")
@click.option(
    "--with-others",
    is_flag=True,
    help="Add the folders of other plugins: those that HDF5_PLUGIN_PATH names now, netCDF4's, and HDF5's own.",
)
def command(with_others: bool) -> None:
    """Print the folder of the HDF5 plugin, for HDF5_PLUGIN_PATH.

    The folder alone is enough for one command on files whose only filter from a plugin is zfp. HDF5 then searches no
    other folder, and netCDF4, for example, finds neither zstd nor bzip2 nor blosc. With --with-others they stay: use
    it for a whole shell.

    \b
    HDF5_PLUGIN_PATH=$(tamis plugin-path) ncdump -v TS small.nc
    export HDF5_PLUGIN_PATH=$(tamis plugin-path --with-others)
    """
    if with_others:
        from tamis.filters import plugin_folders  # late: it starts a process

        click.echo(plugin_folders.with_others(tamis.plugin_path()))
    else:
        click.echo(tamis.plugin_path())
