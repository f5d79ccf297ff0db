"""The command `tamis config`."""

from __future__ import annotations

import click

import tamis


@click.command("config")
@click.option("--cflags", is_flag=True, help="Options for the compiler.")
@click.option("--libs", is_flag=True, help="Options for the linker, to stand before those of HDF5.")
@click.option("--codec", is_flag=True, help="With --libs and --fortran: the codec, which needs no HDF5.")
@click.option("--static", is_flag=True, help="With --libs: the static library.")
@click.option("--fortran", is_flag=True, help="The source of the Fortran module, h5zzfp_props_f or tamis_zfp.")
@click.option("--plugin-path", is_flag=True, help="The folder of the HDF5 plugin.")
@click.option("--pkg-config-path", is_flag=True, help="The folder of h5zzfp.pc and tamis.pc, for PKG_CONFIG_PATH.")
@click.option("--cmake-path", is_flag=True, help="The folder of the CMake packages, for CMAKE_PREFIX_PATH.")
def command(
    cflags: bool,
    libs: bool,
    codec: bool,
    static: bool,
    fortran: bool,
    plugin_path: bool,
    pkg_config_path: bool,
    cmake_path: bool,
) -> None:
    """Print what a build in C, C++ or Fortran needs, on one line; all of it without options.

    \b
    h5cc write.c $(tamis config --cflags --libs) -o write
    h5fc $(tamis config --fortran) write.f90 $(tamis config --libs) -o write
    cc codec.c $(tamis config --cflags --libs --codec) -o codec
    cmake -DCMAKE_PREFIX_PATH=$(tamis config --cmake-path) …
    """
    config = tamis.config()
    if (static and not libs) or (codec and not libs and not fortran):
        raise click.UsageError("expected --libs with --static, and --libs or --fortran with --codec")
    answers = {
        "cflags": (cflags, config.cflags),
        "libs": (libs, config.libs(codec=codec, static=static)),
        "fortran": (fortran, config.fortran_path / ("tamis_zfp.f90" if codec else "H5Zzfp_props_f.F90")),
        "plugin-path": (plugin_path, tamis.plugin_path()),
        "pkg-config-path": (pkg_config_path, config.library_path / "pkgconfig"),
        "cmake-path": (cmake_path, config.library_path.parent),
    }
    wanted = [str(answer) for is_wanted, answer in answers.values() if is_wanted]
    if wanted:
        click.echo(" ".join(wanted))
        return
    click.echo(config)
    for name, (_, answer) in answers.items():
        click.echo(f"--{name:<16} {answer}")
