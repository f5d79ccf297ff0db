"""pcodec, which only Zarr has: written for stock zarr-python, read from it, and refused for HDF5."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any, Literal

import h5py
import netCDF4
import numcodecs
import numpy as np
import pytest
import xarray
import zarr
from hypothesis import given
from hypothesis import strategies as st
from zarr.codecs.numcodecs import PCodec

import tamis
from tamis.filters import ChunkType

SAMPLE = Path(__file__).resolve().parents[3] / "examples" / "data" / "cam_ts.nc"
FILTERS = "pack(bound=0.1)|pcodec(8)"
STOCK = """
import sys, warnings
warnings.simplefilter("ignore")
import numpy as np, xarray, zarr
path, out = sys.argv[1:]
values = xarray.open_zarr(path)["TS"].values
np.savez(out, codes=zarr.open_group(path, mode="r")["TS"][...], values=values)
assert not any(name.partition(".")[0] == "tamis" for name in sys.modules)
"""
pytestmark = pytest.mark.filterwarnings("ignore:Numcodecs codecs")


def ramp(dtype: str = "i2") -> np.ndarray[Any, Any]:
    return np.cumsum(np.random.default_rng(0).integers(0, 3, (6, 20, 30)), axis=2).astype(dtype)


def stock_store(path: Path, zarr_format: Literal[2, 3], **settings: Any) -> np.ndarray[Any, Any]:
    """Write an array as others do."""
    values = ramp()
    codecs: dict[str, Any] = {"compressors": numcodecs.PCodec(**settings)}
    if zarr_format == 3:
        codecs = {"serializer": PCodec(**settings), "compressors": None}
    group = zarr.create_group(str(path), zarr_format=zarr_format)
    group.create_array("v", shape=values.shape, chunks=(4, 20, 30), dtype="i2", **codecs)[...] = values
    return values


@pytest.mark.check
@pytest.mark.parametrize(("zarr_format", "shards"), [(2, None), (3, None), (3, 4)])
def test_packed_store_is_read_by_stock_zarr_python(
    tmp_path: Path, zarr_format: Literal[2, 3], shards: int | None
) -> None:
    out = tmp_path / "a.zarr"
    result = tamis.repack(SAMPLE, out, {"TS": FILTERS}, zarr_format=zarr_format, shards=shards)
    assert result["TS"].ratio > 8
    subprocess.run([sys.executable, "-c", STOCK, out, tmp_path / "read.npz"], check=True)
    with np.load(tmp_path / "read.npz") as read, xarray.open_dataset(SAMPLE) as source:
        assert read["codes"].dtype == np.int16
        assert 0.09 < np.abs(read["values"] - source["TS"].values.astype("f8")).max() <= 0.1
    assert tamis.verify(SAMPLE, out, bounds="recorded").ok
    assert "filters  pcodec level 8" in str(tamis.inspect(out)).split("\n/TS\n")[1]
    # Back to a format that has no such filter, and to the other version, whose chunks are the same.
    tamis.repack(out, tmp_path / "b.nc", {})
    assert tamis.verify(out, tmp_path / "b.nc").ok
    other = tmp_path / "b.zarr"
    tamis.repack(out, other, {}, zarr_format=5 - zarr_format)
    assert (str(tamis.inspect(other)["TS"].pipeline), tamis.verify(out, other).ok) == ("pcodec(8)", True)


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("settings", [{"level": 4}, {"delta_spec": "try_consecutive", "delta_encoding_order": 2}])
def test_store_of_stock_zarr_python_is_read_and_repacked(
    tmp_path: Path, zarr_format: Literal[2, 3], settings: dict[str, Any]
) -> None:
    source = tmp_path / "a.zarr"
    values = stock_store(source, zarr_format, **settings)
    with tamis.open(source) as file:
        np.testing.assert_array_equal(file["v"][2:5, 3], values[2:5, 3])
    assert "pcodec(4)" in str(tamis.inspect(source)) or "delta_spec" in str(tamis.inspect(source))
    for name, filters in (("b.nc", {}), ("c.zarr", {}), ("d.zarr", {"v": "pcodec(12)"}), ("e.h5", {"v": "shuffle"})):
        tamis.repack(source, tmp_path / name, filters)
        assert tamis.verify(source, tmp_path / name).ok
    np.testing.assert_array_equal(zarr.open_group(str(tmp_path / "d.zarr"))["v"][...], values)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i2", "i4", "i8", "u2", "u4", "u8"])
def test_chunks_are_those_of_numcodecs(dtype: str) -> None:
    values = ramp(dtype)
    encoded, mask = tamis.Pipeline.parse("pcodec(8)").encode(values)
    assert (encoded, mask) == (numcodecs.PCodec(level=8).encode(values.reshape(-1)), 0)
    chunk = ChunkType(values.dtype, values.shape)
    np.testing.assert_array_equal(tamis.Pipeline.parse("pcodec").decode(encoded, 0, chunk), values)


@pytest.mark.parametrize("dtype", ["i1", "u1", ">i2", "bool", "S2", "c8"])
def test_other_types_are_refused(dtype: str) -> None:
    with pytest.raises(tamis.ParameterError, match="expected numbers of 2, 4 or 8 bytes in native byte order"):
        tamis.Pipeline.parse("pcodec").check(ChunkType(np.dtype(dtype), (4, 4)))


@given(st.integers(0, 10_000), st.binary(max_size=3), st.integers(0, 3000))
def test_damaged_chunks_are_errors_or_values(at: int, data: bytes, cut: int) -> None:
    values = ramp()
    encoded, _ = tamis.Pipeline.parse("pcodec").encode(values)
    at %= len(encoded)
    damaged = (encoded[:at] + data + encoded[at + len(data) :])[: cut if cut % 3 else None]
    try:
        decoded = tamis.Pipeline.parse("pcodec").decode(damaged, 0, ChunkType(values.dtype, values.shape))
    except tamis.StreamError:
        return
    assert decoded.shape == values.shape


def test_hdf5_refuses_it_and_says_what_to_do(tmp_path: Path) -> None:
    ds = xarray.Dataset({"v": (("a", "b", "c"), ramp())})
    stock_store(tmp_path / "a.zarr", 3)

    def netcdf(path: Path) -> None:
        with netCDF4.Dataset(path, "w") as file:
            file.createDimension("x", 9)
            tamis.netcdf.create_variable(file, "v", "i2", ("x",), "pcodec")

    calls = (
        lambda: tamis.repack(SAMPLE, tmp_path / "a.nc", {"TS": FILTERS}),
        lambda: tamis.repack(tmp_path / "a.zarr", tmp_path / "a.nc", {"*": "pcodec"}),
        lambda: tamis.hdf5.create_dataset(h5py.File(tmp_path / "b.h5", "w"), "v", (9,), "i2", filters="pcodec"),
        lambda: netcdf(tmp_path / "d.nc"),
        lambda: tamis.encoding(ds, {"v": "pcodec"}),
        lambda: ds.tamis.to_netcdf(tmp_path / "e.nc", {"v": "pcodec"}),
        lambda: tamis.spec("pcodec")["h5repack"],
    )
    for call in calls:
        with pytest.raises(tamis.ParameterError, match=r"pcodec\(8\) exists only in Zarr: write to Zarr"):
            call()
    assert not (tmp_path / "a.nc").exists()


def test_missing_package_is_named_with_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stock_store(tmp_path / "a.zarr", 3, level=8)
    found = importlib.util.find_spec
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "pcodec" else found(name))
    with pytest.raises(
        tamis.MissingFilterError, match=r"needs pcodec, not installed here: pip install 'tamis\[pcodec\]'"
    ):
        tamis.repack(tmp_path / "a.zarr", tmp_path / "b.zarr", {"v": "pcodec(9)"})


@pytest.mark.check
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_plan_for_zarr_chooses_what_stock_zarr_python_reads(tmp_path: Path, zarr_format: Literal[2, 3]) -> None:
    plan = tamis.plan(SAMPLE, {"TS": "abs=0.1"}, readers="zarr")
    best = plan["TS"].chosen
    assert best is not None
    assert (best.filters, best.read_by) == (FILTERS, "zarr-python and pcodec")
    filters = {each.filters: each.read_by for each in plan.candidates["/TS"] if not each.needs}
    assert {"zarr-python", "zarr-python and pcodec"} == set(filters.values())
    assert "pcodec" not in str(tamis.plan(SAMPLE, {"TS": "abs=0.1"}).candidates)
    for at, text in enumerate(filters):  # none is stored by a codec of ours
        out = tmp_path / f"{at}.zarr"
        tamis.repack(SAMPLE, out, {"TS": text}, zarr_format=zarr_format)
        metadata = (out / "TS" / (".zarray" if zarr_format == 2 else "zarr.json")).read_text()
        assert not any(ours in metadata for ours in ("tamis", "zfp", "reshape"))


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize(
    ("filters", "package"),
    [("shuffle|deflate(4)", ""), ("pcodec(8)", "pcodec"), ("zfp(accuracy=1e-9)|shuffle|deflate(4)", "tamis")],
)
def test_package_that_readers_need_is_named(
    tmp_path: Path, zarr_format: Literal[2, 3], filters: str, package: str
) -> None:
    values = ramp("f4")
    values[0, :3] = np.nan  # these chunks are stored without zfp, which only tamis' own codec can say
    xarray.Dataset({"v": (("a", "b", "c"), values)}).to_netcdf(tmp_path / "a.nc")
    chunks = {"v": (2, 20, 30)}
    out = tmp_path / "a.zarr"
    result = tamis.repack(tmp_path / "a.nc", out, {"v": filters}, chunks=chunks, zarr_format=zarr_format)
    notes = [note for note in result["v"].notes if note.startswith("zarr-python reads it")]
    elsewhere = "; elsewhere it opens no group of the store, unless it is made with --no-consolidated"
    assert notes == ([f"zarr-python reads it where {package} is installed{elsewhere}"] if package else [])
    assert str(tamis.inspect(out)["v"].readers) == (f"Zarr with {package}" if package else "Zarr")
