"""Whole files made smaller: the bound kept, missing values exact, everything else as it was, and readable by all."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from numpy.typing import NDArray

import tamis

Run = Callable[..., str]
Real = Callable[[str], Path]

FIELDS = [
    ("cam_ts_100days.nc", "TS", 0.1),
    ("cam_t_3months.nc", "T", 0.05),
    ("pop_sst_60days.nc", "SST", 0.1),
    ("era5_levels_members.nc", "t", 0.01),
    ("era5_levels_members.nc", "z", 1.0),
]
FLETCHER32 = 3


def values(path: Path, name: str) -> NDArray[Any]:
    with h5py.File(path) as file:
        found: NDArray[Any] = file[name][()]
    return found


def stored(path: Path, name: str) -> list[tuple[int, int]]:
    """Give id and flags of the filters of a dataset."""
    with h5py.File(path) as file:
        plist = file[name].id.get_create_plist()
        return [plist.get_filter(index)[:2] for index in range(plist.get_nfilters())]


def masks(path: Path, name: str) -> list[int]:
    with h5py.File(path) as file:
        dataset = file[name].id
        return [dataset.get_chunk_info(index).filter_mask for index in range(dataset.get_num_chunks())]


def make(path: Path, **data: Any) -> Path:
    with h5py.File(path, "w") as file:
        for name, value in data.items():
            options = value if isinstance(value, dict) else {"data": value}
            file.create_dataset(name, **options)
    return path


def field(shape: tuple[int, ...], dtype: str = "f4") -> NDArray[Any]:
    return (100 * np.sin(np.arange(np.prod(shape)) / 17)).reshape(shape).astype(dtype)


def test_repack_sample_keeps_bound_and_says_what_it_did(
    sample: Path, tmp_path: Path, sha256: Callable[[Path], str]
) -> None:
    before = sha256(sample)
    target = tmp_path / "small.nc"
    result = tamis.repack(sample, target, {"TS": "zfp(accuracy=0.1)"})
    error = np.abs(values(sample, "TS").astype("f8") - values(target, "TS").astype("f8")).max()
    (found,) = result.datasets
    assert 0 < error <= 0.1
    assert found.largest_error == error
    assert (found.path, found.pipeline, found.bound) == ("/TS", "zfp(accuracy=0.1)|fletcher32", 0.1)
    assert (found.chunks, found.lossless_chunks, found.notes) == (30, 0, ())
    with h5py.File(sample) as old, h5py.File(target) as new:
        assert found.nbytes == old["TS"].size * 4
        assert found.source_nbytes == old["TS"].id.get_storage_size()
        assert found.target_nbytes == new["TS"].id.get_storage_size()
    assert found.ratio == found.nbytes / found.target_nbytes > 3.5
    assert (result.source, result.target, result.kept) == (str(sample), str(target), ())
    assert (result.source_nbytes, result.target_nbytes) == (sample.stat().st_size, target.stat().st_size)
    assert sha256(sample) == before


def test_repack_twice_gives_the_same_bytes(sample: Path, tmp_path: Path, sha256: Callable[[Path], str]) -> None:
    recipes = {"TS": "zfp(accuracy=0.1)|shuffle|deflate(1)", "l*": "shuffle|deflate(9)"}
    for name in ("a.nc", "b.nc"):
        tamis.repack(sample, tmp_path / name, recipes)
    assert sha256(tmp_path / "a.nc") == sha256(tmp_path / "b.nc")


def scale_of(path: Path, variable: str) -> float:
    """Return the units of an unpacked value in one of a stored value."""
    with h5py.File(path) as file:
        return float(np.ravel(file[variable].attrs.get("scale_factor", 1))[0])


@pytest.mark.parametrize(("name", "variable", "bound"), FIELDS)
@pytest.mark.matrix
def test_repack_real_field_keeps_bound_and_missing_values(
    name: str, variable: str, bound: float, real: Real, tmp_path: Path, sha256: Callable[[Path], str]
) -> None:
    source, target = real(name), tmp_path / "small.nc"
    before = sha256(source)
    (found,) = tamis.repack(source, target, {variable: f"zfp(accuracy={bound})|shuffle|deflate(1)"}).datasets
    old, new = values(source, variable), values(target, variable)
    missing = ~np.isfinite(old) | (old > 1e30)
    bits = f"u{old.itemsize}"
    assert np.array_equal(old.view(bits)[missing], new.view(bits)[missing])
    errors = np.abs(old.astype("f8") - new.astype("f8"))[~missing] * scale_of(source, variable)
    assert errors.max() == pytest.approx(found.largest_error, rel=1e-14, abs=0)
    assert found.largest_error <= bound
    assert found.lossless_chunks == sum(mask == 1 for mask in masks(target, variable))
    assert found.chunks == len(masks(target, variable))
    assert (found.lossless_chunks > 0) == missing.any()
    assert target.stat().st_size < source.stat().st_size * 1.01
    assert sha256(source) == before


@pytest.mark.parametrize(("name", "variable", "bound"), FIELDS[:4])
@pytest.mark.matrix
def test_repack_real_file_leaves_all_other_objects_as_they_were(
    name: str, variable: str, bound: float, real: Real, tool: Run, tmp_path: Path
) -> None:
    source, target = real(name), tmp_path / name
    tamis.repack(source, target, {variable: f"zfp(accuracy={bound})"}, history=False)
    assert tool("ncdump", "-h", source) == tool("ncdump", "-h", target)
    # References lead h5diff from other objects to the variable: with its bound, all values are compared once more.
    tool("h5diff", "-d", str(bound / scale_of(source, variable)), source, target)
    with h5py.File(source) as old, h5py.File(target) as new:
        assert list(old) == list(new)
        for path in old.keys() - {variable}:
            assert old[path][()].tobytes() == new[path][()].tobytes()
            assert (old[path].chunks, old[path].maxshape) == (new[path].chunks, new[path].maxshape)
            assert old[path].id.get_storage_size() == new[path].id.get_storage_size()
            assert stored(source, path) == stored(target, path)


@pytest.mark.parametrize("recipe", ["zfp(reversible=true)", "shuffle|deflate(1)|fletcher32"])
def test_repack_without_loss_is_no_difference_for_h5diff(recipe: str, sample: Path, tool: Run, tmp_path: Path) -> None:
    tamis.repack(sample, tmp_path / "same.nc", {"*": recipe}, history=False)
    tool("h5diff", sample, tmp_path / "same.nc")


READ = """
import json, sys, xarray
with xarray.open_dataset(sys.argv[1], engine=sys.argv[2]) as data:
    print(json.dumps([sorted(data.variables), data.TS.dims, data.TS.attrs["units"], data.TS.values.astype("f8").sum(),
                      str(data.time.values[-1])]))
"""


@pytest.mark.matrix
@pytest.mark.parametrize("engine", ["netcdf4", "h5netcdf"])
def test_repack_result_opened_by_xarray_is_the_same_data(
    engine: str, sample: Path, tmp_path: Path, python: Run
) -> None:
    target = tmp_path / "small.nc"
    tamis.repack(sample, target, {"TS": "zfp(accuracy=0.1)|shuffle|deflate(1)"})
    new = json.loads(python(READ, target, engine, plugins=tamis.plugin_path()))
    old = json.loads(python(READ, sample, engine))
    assert new[:3] + new[4:] == old[:3] + old[4:]
    assert new[3] == values(target, "TS").astype("f8").sum()


def test_repack_result_read_by_h5dump_is_what_h5py_reads(sample: Path, tmp_path: Path, tool: Run) -> None:
    target, raw = tmp_path / "small.nc", tmp_path / "TS.bin"
    tamis.repack(sample, target, {"TS": "zfp(accuracy=0.1)"})
    tool("h5dump", "-d", "/TS", "-b", "LE", "-o", raw, target)
    assert np.array_equal(np.fromfile(raw, "<f4"), values(target, "TS").ravel())
    # Without a plugin there is nothing to read: otherwise this would not show that the plugin read it.
    tool("h5dump", "-d", "/TS", "-b", "LE", "-o", raw, target, plugins=None, code=1)


def test_repack_result_read_by_ncdump_is_what_h5py_reads(sample: Path, tmp_path: Path, tool: Run) -> None:
    target = tmp_path / "small.nc"
    tamis.repack(sample, target, {"TS": "zfp(accuracy=0.1)"})
    text = tool("ncdump", "-v", "TS", "-p", "9,17", target).split(" TS =")[1].strip(" ;}\n")
    read = np.array([float(number) for number in text.replace(",", " ").split()], "f4")
    assert np.array_equal(read, values(target, "TS").ravel())


PEER = "import sys, h5py, hdf5plugin, numpy; numpy.save(sys.argv[2], h5py.File(sys.argv[1])['v'][()])"


@pytest.mark.parametrize(
    ("recipe", "taken"),
    [("zfp(accuracy=0.1)", 0), ("zfp(accuracy=0.1)|shuffle|deflate(4)", 6), ("zfp(accuracy=0.1)|deflate(4)", 0)],
)
def test_repack_chunk_with_missing_values_is_lossless_by_its_mask(
    recipe: str, taken: int, tmp_path: Path, python: Run
) -> None:
    """What zfp took goes without the shuffle and what comes after it: there are no elements to shuffle."""
    data = field((16, 24))
    data[1, 1], data[9, 20], data[15, 0] = np.nan, np.inf, 9.96921e36
    source = make(tmp_path / "a.h5", v={"data": data, "chunks": (8, 8)})
    (found,) = tamis.repack(source, tmp_path / "b.h5", {"v": recipe}).datasets
    assert (found.chunks, found.lossless_chunks) == (6, 3)
    assert masks(tmp_path / "b.h5", "v") == [1, taken, taken, 1, taken, 1]
    python(PEER, tmp_path / "b.h5", tmp_path / "read.npy")
    read = np.load(tmp_path / "read.npy")
    assert np.array_equal(read, values(tmp_path / "b.h5", "v"), equal_nan=True)
    for corner in ((0, 0), (8, 0), (8, 16)):
        part = np.s_[corner[0] : corner[0] + 8, corner[1] : corner[1] + 8]
        assert np.array_equal(read[part].view("u4"), data[part].view("u4"))
    finite = np.isfinite(data)
    assert 0 < np.abs(read[finite].astype("f8") - data[finite]).max() <= 0.1


@pytest.mark.parametrize("recipe", ["zfp(rate=8)", "zfp(precision=12)"])
def test_repack_mode_without_bound_still_keeps_missing_values_exact(recipe: str, tmp_path: Path) -> None:
    data = field((16, 16))
    data[0, 3], data[2, 2] = np.nan, -np.inf
    source = make(tmp_path / "a.h5", v={"data": data, "chunks": (8, 8)})
    (found,) = tamis.repack(source, tmp_path / "b.h5", {"v": recipe}).datasets
    assert (found.bound, found.lossless_chunks) == (None, 1)
    assert np.array_equal(values(tmp_path / "b.h5", "v")[:8, :8].view("u4"), data[:8, :8].view("u4"))
    assert 0 < found.largest_error < 10


def test_repack_integers_out_of_range_are_lossless_by_the_mask(tmp_path: Path) -> None:
    data = np.arange(128, dtype="i4").reshape(2, 64)
    data[1, :2] = 2**31 - 1, -(2**31)
    source = make(tmp_path / "a.h5", v={"data": data, "chunks": (1, 64)})
    (found,) = tamis.repack(source, tmp_path / "b.h5", {"v": "zfp(accuracy=4)"}).datasets
    assert masks(tmp_path / "b.h5", "v") == [0, 1]
    assert np.array_equal(values(tmp_path / "b.h5", "v")[1], data[1])
    assert found.largest_error <= 4


def test_repack_edge_chunks_keep_the_bound_beside_a_huge_fill_value(tmp_path: Path) -> None:
    """HDF5 pads with the fill value, which would ruin the last values (D10)."""
    data = field((10, 13))
    source = make(tmp_path / "a.h5", v={"data": data, "chunks": (8, 8), "fillvalue": 9.96921e36})
    (found,) = tamis.repack(source, tmp_path / "b.h5", {"v": "zfp(accuracy=0.1)"}).datasets
    assert found.lossless_chunks == 0
    assert 0 < np.abs(values(tmp_path / "b.h5", "v").astype("f8") - data).max() <= 0.1


def test_repack_edge_chunks_cost_no_more_than_whole_ones(tmp_path: Path) -> None:
    """A step from the last values down to the padding would take bits."""
    source = make(tmp_path / "a.h5", v={"data": np.full((10, 13), 300, "f4"), "chunks": (8, 8)})
    tamis.repack(source, tmp_path / "b.h5", {"v": "zfp(accuracy=0.1)"}, checksum=False)
    with h5py.File(tmp_path / "b.h5") as file:
        sizes = [file["v"].id.get_chunk_info(index).size for index in range(4)]
    assert max(sizes) == sizes[0]


@pytest.mark.parametrize(
    ("recipe", "checksum", "ids"),
    [
        ("zfp(accuracy=0.1)", True, [32013, FLETCHER32]),
        ("zfp(accuracy=0.1)", False, [32013]),
        ("zfp(accuracy=0.1)|fletcher32|deflate(1)", True, [32013, FLETCHER32, 1]),
        ("zfp(reversible=true)|shuffle|deflate(4)", True, [32013, FLETCHER32]),
        ("shuffle|deflate(4)", True, [2, 1]),
    ],
)
def test_repack_checksum_is_added_after_zfp_only(recipe: str, checksum: bool, ids: list[int], tmp_path: Path) -> None:
    source = make(tmp_path / "a.h5", v={"data": field((8, 8)), "chunks": (4, 8)})
    tamis.repack(source, tmp_path / "b.h5", {"v": recipe}, checksum=checksum)
    assert [each[0] for each in stored(tmp_path / "b.h5", "v")] == ids
    # A chunk may go without any filter but the checksum.
    assert all((flags & 1) == (number != FLETCHER32) for number, flags in stored(tmp_path / "b.h5", "v"))


def test_repack_damage_under_a_checksum_is_an_error_for_readers(tmp_path: Path) -> None:
    source = make(tmp_path / "a.h5", v={"data": field((64, 64)), "chunks": (64, 64)})
    target = tmp_path / "b.h5"
    tamis.repack(source, target, {"v": "zfp(rate=16)"})
    with h5py.File(target) as file:
        offset = file["v"].id.get_chunk_info(0).byte_offset
    data = bytearray(target.read_bytes())
    data[offset + 100] ^= 4
    target.write_bytes(data)
    with pytest.raises(OSError, match="filter returned failure"):
        values(target, "v")


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "g"])
@pytest.mark.parametrize("recipe", ["shuffle|deflate(4)", "deflate(9)|fletcher32", "shuffle", "fletcher32"])
def test_repack_lossless_pipeline_is_exact_for_every_number_type(recipe: str, dtype: str, tmp_path: Path) -> None:
    data = (field((9, 10), "f8") % 100).astype(dtype)
    source = make(tmp_path / "a.h5", v={"data": data, "chunks": (4, 4)})
    (found,) = tamis.repack(source, tmp_path / "b.h5", {"v": recipe}).datasets
    read = values(tmp_path / "b.h5", "v")
    assert read.dtype == data.dtype
    assert np.array_equal(read, data)
    assert (found.bound, found.largest_error) == (0.0, 0.0)


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "i8", "u4", "u8"])
def test_repack_reversible_zfp_is_bit_exact(dtype: str, tmp_path: Path) -> None:
    data = field((13, 9)).astype(dtype)
    if data.dtype.kind == "f":
        data[0, :4] = np.nan, np.inf, -np.inf, -0.0
    source = make(tmp_path / "a.h5", v={"data": data, "chunks": (8, 8)})
    (found,) = tamis.repack(source, tmp_path / "b.h5", {"v": tamis.Zfp(reversible=True)}).datasets
    bits = f"u{data.itemsize}"
    assert np.array_equal(values(tmp_path / "b.h5", "v").view(bits), data.view(bits))
    assert (found.bound, found.lossless_chunks) == (0.0, 0)


@pytest.mark.parametrize("dtype", [">f4", ">f8", ">i4"])
def test_repack_big_endian_is_converted_with_a_note(dtype: str, tmp_path: Path) -> None:
    data = field((16, 16)).astype(dtype)
    source = make(tmp_path / "a.h5", v={"data": data, "chunks": (8, 8)})
    with h5py.File(source, "a") as file:
        file["v"].attrs["limit"] = np.array(3, dtype)
    (found,) = tamis.repack(source, tmp_path / "b.h5", {"v": "zfp(accuracy=8)"}).datasets
    assert found.notes == (f"converted from {dtype} to native {dtype.replace('>', '<')}, which zfp needs",)
    with h5py.File(tmp_path / "b.h5") as file:
        assert file["v"].dtype.str == dtype.replace(">", "<")
        assert file["v"].attrs["limit"] == 3
    assert 0 < np.abs(values(tmp_path / "b.h5", "v").astype("f8") - data.astype("f8")).max() <= 8
    assert 0 < found.largest_error <= 8


def test_repack_dataset_that_is_already_zfp_keeps_the_new_bound_to_what_was_read(tmp_path: Path) -> None:
    data = field((16, 16))
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("v", data=data, chunks=(8, 8), **tamis.Zfp(accuracy=0.5))
    old = values(tmp_path / "a.h5", "v")
    (found,) = tamis.repack(tmp_path / "a.h5", tmp_path / "b.h5", {"v": "shuffle|deflate(4)"}).datasets
    assert np.array_equal(values(tmp_path / "b.h5", "v"), old)
    assert found.largest_error == 0


def test_repack_progress_counts_every_chunk_written_and_verified(sample: Path, tmp_path: Path) -> None:
    said: list[tuple[str, int, int]] = []
    tamis.repack(sample, tmp_path / "a.nc", {"TS": "zfp(rate=8)"}, progress=lambda *each: said.append(each))
    assert [each for each in said if not each[0].startswith("decoding ")] == [
        (f"{what} /TS", done, 30) for what in ("writing", "verifying") for done in range(31)
    ]
    copied = {name for name, *_ in said if name.startswith("decoding ")}  # stored with filters, so that damage is said
    assert "decoding /lat" in copied
    assert "decoding /TS" not in copied


@pytest.mark.parametrize(("digits", "first"), [(1, 1), (3, 1), (12, 0)])
def test_repack_scaleoffset_of_floats_bound_is_the_last_digit(digits: int, first: int, tmp_path: Path) -> None:
    values = np.random.default_rng(1).normal(280, 10, (40, 50)).astype("f4")
    values[5, 5] = np.nan  # which it cannot keep: that chunk goes without
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", data=values, chunks=(20, 25))
    result = tamis.repack(tmp_path / "a.h5", tmp_path / "b.h5", {"x": f"scaleoffset(decimal,{digits})|deflate(1)"})
    (done,) = result.datasets
    assert done.bound == 10.0**-digits
    assert done.largest_error <= done.bound
    with h5py.File(tmp_path / "b.h5") as file:
        np.testing.assert_allclose(file["x"], values, rtol=0, atol=10.0**-digits)
        masks = [file["x"].id.get_chunk_info(i).filter_mask & 1 for i in range(4)]
    # float32 has no twelve decimal digits: the filter keeps all bits then, those of NaN too.
    assert masks == [first, 0, 0, 0]


def test_repack_filter_that_no_chunk_takes_said(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"] = np.frombuffer(np.random.default_rng(1).bytes(4000), "i4")
    result = tamis.repack(tmp_path / "a.h5", tmp_path / "b.h5", {"x": "lzf"}, chunks={"x": (500,)})
    assert result.datasets[0].notes == ("2 of 2 chunks stored without lzf, which could not be applied there",)
