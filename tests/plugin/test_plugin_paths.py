"""U66, U67: every filter works whatever HDF5_PLUGIN_PATH names, and tamis gives a value that keeps other plugins."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import h5py
import needs
import numpy as np
import pytest

import tamis
from tamis.filters import by_id

COMMAND = Path(sys.executable).parent / "tamis"
SCRIPT = Path(__file__).with_name("every_filter.py")
Run = Callable[..., str]
TEXTS = {"zfp": "zfp(accuracy=0.01)", "sz3": "sz3(bound=0.01)", "sperr": "sperr(mode=absolute,quality=0.01)"}
VALUES = ["hdf5plugin netCDF4", "netCDF4 hdf5plugin", "hdf5plugin", "netCDF4", "tamis", "/nonexistent", "", None]


def folder_of(name: str) -> str:
    """Give the folder of the plugins of a package, without importing it; a folder is its own."""
    if name.startswith("/"):
        return name
    if name == "tamis":
        return str(tamis.plugin_path())
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        pytest.skip(f"could not import '{name}'")
    return str(Path(spec.origin).parent / "plugins")


def environment(value: str | None, **others: str) -> dict[str, str]:
    """Give the environment with the plugins of some packages, or without the variable."""
    clean = {name: text for name, text in os.environ.items() if not name.startswith("HDF5_PLUGIN")}
    if value is not None:
        clean["HDF5_PLUGIN_PATH"] = os.pathsep.join(map(folder_of, value.split()))
    return clean | others


def said_by(command: list[str | Path], env: dict[str, str]) -> str:
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr
    assert done.returncode == 0, said[-3000:]
    assert "HDF5-DIAG" not in said, said[-3000:]
    return said


def check_every_filter(folder: Path, env: dict[str, str], *modules: str) -> None:
    for name in ("hdf5plugin", "netCDF4", "xarray", "h5netcdf", "imagecodecs", "zstandard"):
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"could not import '{name}'")
    said = said_by([sys.executable, SCRIPT, folder, *modules], env)
    assert said.split(" ")[1:] == ["written\n"], said
    assert int(said.split(" ")[0]) >= 8 * len(by_id())


@pytest.mark.check
@pytest.mark.parametrize("value", VALUES)
def test_u66_python_writes_and_reads_every_filter_whatever_the_variable_names(
    value: str | None, tmp_path: Path
) -> None:
    check_every_filter(tmp_path, environment(value))


@pytest.mark.check
@pytest.mark.parametrize(
    ("value", "modules"),
    [(None, "netCDF4"), (None, "h5py netCDF4"), ("hdf5plugin", "hdf5plugin"), ("netCDF4", "tamis netCDF4 hdf5plugin")],
)
def test_u66_python_writes_and_reads_every_filter_after_other_packages(
    value: str | None, modules: str, tmp_path: Path
) -> None:
    check_every_filter(tmp_path, environment(value), *modules.split())


@pytest.mark.check
@pytest.mark.parametrize("value", [None, "netCDF4"])
def test_u66_python_writes_and_reads_every_filter_if_the_variable_changes_later(
    value: str | None, tmp_path: Path
) -> None:
    check_every_filter(tmp_path, environment(value, LATER=folder_of("hdf5plugin")))


@pytest.fixture(scope="session")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a file with a dataset for each filter, by its name."""
    path = tmp_path_factory.mktemp("source") / "a.h5"
    values = np.random.default_rng(66).normal(size=(16, 32, 8)).cumsum(0).round()
    with h5py.File(path, "w") as file:
        for kind in by_id().values():
            kept = "i4" if kind.name == "scaleoffset" else "f4"
            file.create_dataset(kind.name, data=values.astype(kept), chunks=(8, 16, 8))
    return path


@pytest.mark.matrix
@pytest.mark.parametrize("value", VALUES)
def test_u66_command_writes_and_reads_every_filter_whatever_the_variable_names(
    value: str | None, source: Path, tmp_path: Path
) -> None:
    for name in ("hdf5plugin", "imagecodecs", "zstandard"):
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"could not import '{name}'")
    env, target, back = environment(value), tmp_path / "b.h5", tmp_path / "c.h5"
    filters = [part for name in NAMES for part in ("-f", f"{name}:{TEXTS.get(name, name)}")]
    bounds = [part for name in TEXTS for part in ("--bound", f"{name}:0.0101")]
    said_by([COMMAND, "repack", source, target, "--min-size", "0", "--larger", *filters], env)
    for words in (["inspect", target], ["verify", source, target, *bounds]):
        said_by([COMMAND, *words], env)
    said_by([COMMAND, "repack", target, back, "--larger", "-f", "*:shuffle|deflate(1)"], env)
    said_by([COMMAND, "verify", source, back, *bounds], env)
    with h5py.File(target) as file:
        written = {name: [entry.name for entry in tamis.hdf5.pipeline_of(file[name]).filters] for name in NAMES}
    assert [name for name in NAMES if name not in written[name]] == []


NAMES = [kind.name for kind in by_id().values()]


@pytest.fixture(scope="session")
def kept() -> str:
    """Give the value that `tamis plugin-path --with-others` prints where the variable is not set."""
    return said_by([COMMAND, "plugin-path", "--with-others"], environment(None)).strip()


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, ["tamis", "netCDF4"]),
        ("", ["tamis", "netCDF4"]),
        ("/b /a", ["tamis", "/b", "/a", "netCDF4"]),
        ("hdf5plugin /a", ["tamis", "/a", "netCDF4", "hdf5plugin"]),
        ("netCDF4 /a tamis /a", ["tamis", "/a", "netCDF4"]),
    ],
)
def test_u67_plugin_path_with_others_keeps_them_in_an_order_that_works(
    value: str | None, expected: list[str], kept: str
) -> None:
    first = [folder_of(name) for name in expected]
    own_of_hdf5 = kept.split(os.pathsep)[2:]
    for _ in range(2):  # a value that it printed stays the same
        said = said_by([COMMAND, "plugin-path", "--with-others"], environment(value)).strip()
        assert said.split(os.pathsep) == [*first, *own_of_hdf5]
        value = said.replace(os.pathsep, " ")
    assert all(Path(folder).is_dir() for folder in own_of_hdf5)


WRITE_BY_NETCDF4 = """
import sys, netCDF4
with netCDF4.Dataset(sys.argv[1], "w") as file:
    file.createDimension("x", 64)
    for name in ("zlib", "szip", "zstd", "bzip2", "blosc_lz", "blosc_zstd"):
        file.createVariable(name, "f4", ("x",), compression=name)[:] = 1
"""
READ_BY_NETCDF4 = """
import sys, netCDF4
for path in sys.argv[1:]:
    with netCDF4.Dataset(path) as file:
        assert all(variable[:].sum() == 64 for variable in file.variables.values())
        print(*file.variables)
"""
READ_BY_H5PY = """
import sys, h5py
for path in sys.argv[1:]:
    with h5py.File(path) as file:
        print(*(name for name in file if file[name].chunks and file[name][:].sum() == 64))
"""


def test_u67_libraries_and_programs_read_and_write_with_the_value_that_keeps_others(tmp_path: Path, kept: str) -> None:
    if not any(Path(folder_of("netCDF4")).glob("*nczhdf5filters*")):
        pytest.skip("this netCDF4 carries no plugins")
    env = environment(None) | {"HDF5_PLUGIN_PATH": kept}
    path, zfp = tmp_path / "a.nc", tmp_path / "zfp.nc"
    with h5py.File(zfp, "w") as file:
        tamis.hdf5.write(file, "zfp", np.ones(64), filters="zfp(accuracy=0.1)", chunks=(64,))
    said_by([sys.executable, "-c", WRITE_BY_NETCDF4, path], env)
    names = "zlib szip zstd bzip2 blosc_lz blosc_zstd\n"
    assert said_by([sys.executable, "-c", READ_BY_NETCDF4, path, zfp], env) == f"{names}zfp\n"
    assert sorted(said_by([sys.executable, "-c", READ_BY_H5PY, path, zfp], env).split()) == sorted(
        f"{names} zfp".split()
    )
    needs.need("ncdump", "h5dump", "h5repack", "nccopy")
    for given in (path, zfp):
        for command in (["ncdump"], ["h5dump"]):
            assert "1, 1, 1" in said_by([*command, given], env)
        for copy in (["h5repack", "-f", "GZIP=1"], ["nccopy", "-d", "1"]):
            said_by([*copy, given, tmp_path / "copy.nc"], env)
            assert said_by([sys.executable, "-c", READ_BY_NETCDF4, tmp_path / "copy.nc"], env)
    said_by(["h5repack", "-f", "zlib:UD=32001,0,7,0,0,0,0,5,1,5", path, tmp_path / "blosc.nc"], env)
    with h5py.File(tmp_path / "blosc.nc") as file:
        assert str(tamis.hdf5.pipeline_of(file["zlib"])).startswith("blosc(compressor=zstd")


def test_u67_import_tamis_gives_netcdf4_its_own_plugins_back(tmp_path: Path) -> None:
    if not any(Path(folder_of("netCDF4")).glob("*nczhdf5filters*")):
        pytest.skip("this netCDF4 carries no plugins")
    path = tmp_path / "a.nc"
    said_by([sys.executable, "-c", WRITE_BY_NETCDF4, path], environment(None))
    for order in ("import tamis", "import netCDF4, tamis"):
        code = f"{order}\n{READ_BY_NETCDF4}"
        assert "blosc_lz" in said_by([sys.executable, "-c", code, path], environment("tamis"))
