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
    assert "NetCDF: " in tool("ncdump", "-v", "wide", copied, plugins=None, code=1)


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


def write_chain(path: Path, *stages: tuple[int, int, tuple[int, ...]]) -> None:
    """Write a dataset by h5py with any filters: id, flag and parameters."""
    with h5py.File(path, "w", track_order=True) as file:
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_chunk(SHAPE)
        for number, flag, words in stages:
            plist.set_filter(number, flag, words)
        space, kind = h5py.h5s.create_simple(SHAPE), h5py.h5t.IEEE_F64LE
        h5py.Dataset(h5py.h5d.create(file.id, b"v", kind, space, plist))[...] = FIELD


def names_of(path: Path) -> list[str]:
    with h5py.File(path) as file:
        assert np.abs(file["v"][...] - FIELD).max() < 1e-3
        assert file["v"].id.get_chunk_info(0).filter_mask == 0
        return [member.name for member in tamis.hdf5.pipeline_of(file["v"]).filters]


ZFP = (32013, 1, tamis.Zfp(accuracy=1e-3).requested)
FLETCHER32, SHUFFLE, DEFLATE = (3, 0, ()), (2, 1, (8,)), (1, 1, (4,))


@pytest.mark.peer
@pytest.mark.parametrize("stages", [(ZFP, FLETCHER32), (ZFP, SHUFFLE, FLETCHER32)], ids=len)
def test_nccopy_of_zfp_and_checksum_keeps_zfp_first(
    stages: tuple[tuple[int, int, tuple[int, ...]], ...], tmp_path: Path, tool: Run, plugins: Path
) -> None:
    write_chain(tmp_path / "a.nc", *stages)
    tool("nccopy", "-M", "0", tmp_path / "a.nc", tmp_path / "b.nc", plugins=plugins)
    assert names_of(tmp_path / "b.nc") == names_of(tmp_path / "a.nc")


@pytest.mark.peer
def test_ncgen_of_the_usual_lossy_pipeline_keeps_its_order(tmp_path: Path, tool: Run, plugins: Path) -> None:
    write_chain(tmp_path / "a.nc", ZFP, SHUFFLE, DEFLATE, FLETCHER32)
    (tmp_path / "a.cdl").write_text(tool("ncdump", "-s", "-p", "9,17", tmp_path / "a.nc", plugins=plugins))
    tool("ncgen", "-4", "-o", tmp_path / "b.nc", tmp_path / "a.cdl", plugins=plugins)
    assert names_of(tmp_path / "b.nc") == ["zfp", "shuffle", "deflate", "fletcher32"]


def test_h5py_order_restored_for_stored_parameters_only(tmp_path: Path) -> None:
    stored = ZFP[2]
    write_chain(tmp_path / "a.nc", ZFP)
    with h5py.File(tmp_path / "a.nc") as file:
        stored = tuple(word & 0xFFFFFFFF for word in file["v"].id.get_create_plist().get_filter(0)[2])
    write_chain(tmp_path / "b.nc", FLETCHER32, SHUFFLE, (32013, 1, stored), DEFLATE)
    assert names_of(tmp_path / "b.nc") == ["zfp", "shuffle", "deflate", "fletcher32"]
    for before in (FLETCHER32, SHUFFLE, DEFLATE):
        with pytest.raises(ValueError, match="zfp: expected to be the first filter of the pipeline"):
            write_chain(tmp_path / "c.nc", before, ZFP)
    # A filter with parameters of its own to complete is not moved: HDF5 would not ask it any more.
    with pytest.raises(ValueError, match="zfp: expected to be the first filter of the pipeline"):
        write_chain(tmp_path / "c.nc", FLETCHER32, (32013, 1, stored), (6, 1, (2, 0)))
