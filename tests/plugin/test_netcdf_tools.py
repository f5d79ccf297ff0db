"""nccopy, ncdump and ncgen write and read ZFP with our plugin."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import h5py
import netCDF4
import numpy as np
import pytest

import tamis

Run = Callable[..., str]

SHAPE = (6, 20, 31)
TIMES, FIELD = np.arange(6.0), np.cos(np.arange(6 * 20 * 31) / 70).reshape(SHAPE)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A netCDF-4 file without filters."""
    path = tmp_path_factory.mktemp("netcdf") / "source.nc"
    with netCDF4.Dataset(path, "w") as file:
        for name, extent in zip("tyx", SHAPE, strict=True):
            file.createDimension(name, extent)
        file.createVariable("t", "f8", ("t",))[:] = TIMES
        for name, kind in (("narrow", "f4"), ("wide", "f8")):
            file.createVariable(name, kind, ("t", "y", "x"), chunksizes=SHAPE, fill_value=False)[:] = FIELD
    return path


def filtered(tool: Run, plugins: Path, source: Path, target: Path, zfp: tamis.Zfp) -> Path:
    words = ",".join(map(str, zfp.requested))
    tool("nccopy", "-F", f"narrow&wide,32013,{words}", source, target, plugins=plugins)
    return target


def chunk_bytes(path: Path, name: str) -> bytes:
    with h5py.File(path) as file:
        assert file[name].chunks == SHAPE
        assert b"tamis" in file[name].id.get_create_plist().get_filter(0)[3]
        mask, data = file[name].id.read_direct_chunk((0, 0, 0))
    assert mask == 0
    return data


@pytest.mark.peer
@pytest.mark.parametrize(
    "zfp",
    [tamis.Zfp(accuracy=1e-3), tamis.Zfp(rate=9), tamis.Zfp(precision=20), tamis.Zfp(reversible=True)],
    ids=str,
)
def test_nccopy_filter_request_gives_codec_bytes(
    source: Path, tmp_path: Path, tool: Run, plugins: Path, zfp: tamis.Zfp
) -> None:
    copied = filtered(tool, plugins, source, tmp_path / "copied.nc", zfp)
    for name, dtype in (("narrow", "f4"), ("wide", "f8")):
        assert chunk_bytes(copied, name) == tamis.zfp.encode(FIELD.astype(dtype), zfp.mode)


@pytest.mark.peer
def test_ncdump_of_filtered_file_prints_decoded_values(source: Path, tmp_path: Path, tool: Run, plugins: Path) -> None:
    copied = filtered(tool, plugins, source, tmp_path / "copied.nc", tamis.Zfp(precision=12))
    text = tool("ncdump", "-p", "9,17", "-v", "wide", copied, plugins=plugins)
    printed = re.search(r"wide =\s*([^;]*);", text.partition("data:")[2])
    assert printed is not None
    with h5py.File(copied) as file:
        values = file["wide"][...]
    assert 0 < np.abs(values - FIELD).max() < 1e-2
    assert np.array_equal(np.array(printed[1].split(","), "f8").reshape(SHAPE), values)


@pytest.mark.peer
def test_ncgen_from_ncdump_text_writes_same_values(source: Path, tmp_path: Path, tool: Run, plugins: Path) -> None:
    copied = filtered(tool, plugins, source, tmp_path / "copied.nc", tamis.Zfp(reversible=True))
    cdl = tmp_path / "copied.cdl"
    cdl.write_text(tool("ncdump", "-s", "-p", "9,17", copied, plugins=plugins))
    assert "_Filter" in cdl.read_text()
    tool("ncgen", "-4", "-o", tmp_path / "made.nc", cdl, plugins=plugins)
    for name in ("narrow", "wide"):
        assert chunk_bytes(tmp_path / "made.nc", name) == chunk_bytes(copied, name)


@pytest.mark.peer
def test_ncdump_without_plugin_fails(source: Path, tmp_path: Path, tool: Run, plugins: Path) -> None:
    copied = filtered(tool, plugins, source, tmp_path / "copied.nc", tamis.Zfp(precision=12))
    assert "NetCDF: " in tool("ncdump", "-v", "wide", copied, code=1)


@pytest.mark.peer
def test_nccopy_chunk_with_five_axes_fails_with_message(tmp_path: Path, tool: Run, plugins: Path) -> None:
    source = tmp_path / "five.nc"
    with netCDF4.Dataset(source, "w") as file:
        names = [f"d{i}" for i in range(5)]
        for name in names:
            file.createDimension(name, 4)
        file.createVariable("v", "f4", names, chunksizes=(4,) * 5, fill_value=False)[:] = 1
    said = tool("nccopy", "-F", "v,32013,5", source, tmp_path / "copied.nc", plugins=plugins, code=1)
    assert "HDF error" in said
