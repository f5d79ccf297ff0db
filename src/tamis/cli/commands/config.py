"""The command `tamis config`: print what builds in C, C++ and Fortran need, or install it."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING

import click

import tamis
from tamis.cli.output import Output
from tamis.formatting import printable

if TYPE_CHECKING:
    from tamis.jobs.installation import Installation


@click.command("config", short_help="Print what builds in C, C++ and Fortran need.")
@click.option("--cflags", is_flag=True, help="Print the options for the compiler.")
@click.option("--libs", is_flag=True, help="Print the options for the linker; put them before those of HDF5.")
@click.option("--codec", is_flag=True, help="With --libs or --fortran: for the codec alone, which needs no HDF5.")
@click.option("--static", is_flag=True, help="With --libs: link the static library.")
@click.option(
    "--fortran",
    is_flag=True,
    help="Print the source file of the Fortran module: h5zzfp_props_f, or tamis_zfp with --codec.",
)
@click.option("--plugin-path", is_flag=True, help="Print the folder of the HDF5 plugin.")
@click.option(
    "--pkg-config-path", is_flag=True, help="Print the folder of h5zzfp.pc and tamis.pc, for PKG_CONFIG_PATH."
)
@click.option("--cmake-path", is_flag=True, help="Print the folder of the CMake packages, for CMAKE_PREFIX_PATH.")
@click.option(
    "--install",
    "prefix",
    metavar="PREFIX",
    help="Write a folder as H5Z-ZFP installs it: include, lib, plugin, and packages for CMake and pkg-config.",
)
@click.option(
    "--fc", metavar="COMMAND", help="With --install: also make include/*.mod with this Fortran compiler, such as h5fc."
)
@click.option(
    "--overwrite", is_flag=True, help="With --install: replace files that an earlier --install did not write."
)
@click.option("--dry-run", is_flag=True, help="With --install: print what would be written, and write nothing.")
def command(
    cflags: bool,
    libs: bool,
    codec: bool,
    static: bool,
    fortran: bool,
    plugin_path: bool,
    pkg_config_path: bool,
    cmake_path: bool,
    prefix: str | None,
    fc: str | None,
    overwrite: bool,
    dry_run: bool,
) -> None:
    """Print what a build in C, C++ or Fortran needs, on one line; without options, print everything.

    With --install, write it to a folder instead, for builds that look for H5Z-ZFP. The folder holds copies, needs no
    Python and can be moved. Of existing files, only those that an earlier
    --install wrote are replaced.

    \b
    h5cc write.c $(tamis config --cflags --libs) -o write
    h5fc $(tamis config --fortran) write.f90 $(tamis config --libs) -o write
    cc codec.c $(tamis config --cflags --libs --codec) -o codec
    cmake -DCMAKE_PREFIX_PATH=$(tamis config --cmake-path) …
    tamis config --install ~/h5z-zfp --fc h5fc

    Exit codes: 0 done, 1 failed, 2 wrong usage.
    """
    config = tamis.config()
    if (static and not libs) or (codec and not libs and not fortran):
        raise click.UsageError("--static needs --libs, and --codec needs --libs or --fortran")
    if prefix is None and (fc is not None or overwrite or dry_run):
        raise click.UsageError("--fc, --overwrite and --dry-run need --install")
    answers = {
        "cflags": (cflags, config.cflags),
        "libs": (libs, config.libs(codec=codec, static=static)),
        "fortran": (fortran, config.fortran_path / ("tamis_zfp.f90" if codec else "H5Zzfp_props_f.F90")),
        "plugin-path": (plugin_path, tamis.plugin_path()),
        "pkg-config-path": (pkg_config_path, config.library_path / "pkgconfig"),
        "cmake-path": (cmake_path, config.library_path.parent),
    }
    wanted = [str(answer) for is_wanted, answer in answers.values() if is_wanted]
    if prefix is not None:
        if wanted:
            raise click.UsageError("--install goes only with --fc, --overwrite and --dry-run")
        _install(prefix, fc, overwrite=overwrite, dry_run=dry_run)
    elif wanted:
        click.echo(" ".join(wanted))
    else:
        click.echo(config)
        for name, (_, answer) in answers.items():
            click.echo(f"--{name:<16} {answer}")


def _install(prefix: str, fc: str | None, *, overwrite: bool, dry_run: bool) -> None:
    """Install to a folder, and print what was written and how to use it."""
    from tamis.jobs.installation import install_interface

    with Output("config").failures():
        try:
            compiler = shlex.split(fc or "")
        except ValueError as error:
            raise tamis.ParameterError(f"--fc {fc!r}: not a command: {error}") from None
        result = install_interface(prefix, fortran_compiler=compiler, overwrite=overwrite, preview=dry_run)
    for line in _lines(result, dry_run=dry_run):
        click.echo(printable(line))


def _lines(result: Installation, *, dry_run: bool) -> list[str]:
    folder = shlex.quote(os.fspath(result.prefix))
    lines = [f"{result.prefix}: {len(result.files)} files{' would be' if dry_run else ''} written"]
    lines += [f"  {name}" for name in result.files]
    lines += [f"  {name} (from an earlier installation)  removed" for name in result.removed]
    if not result.has_module_file:
        lines.append("no Fortran module file: --fc h5fc makes one; CMake projects compile the module themselves")
    return [
        *lines,
        # Debian has HDF5 in folders of its own, which pkg-config and h5cc know.
        f"make    cc prog.c -I{folder}/include -L{folder}/lib -lh5zzfp $(pkg-config --cflags --libs hdf5) -lm",
        f"or      h5cc prog.c -I{folder}/include -L{folder}/lib -lh5zzfp -lm",
        f"CMake   export H5Z_ZFP_DIR={folder}",
        f"plugin  export HDF5_PLUGIN_PATH={folder}/plugin${{HDF5_PLUGIN_PATH:+:$HDF5_PLUGIN_PATH}}",
    ]
