"""D11, D15, D17, D20, D21, D26: order, flags and masks of filters, kept and honoured chunk by chunk."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from h5py import h5d, h5p, h5s, h5t, h5z
from numpy.typing import NDArray

import tamis
from tamis import Deflate, FileError, MissingFilterError, ParameterError, Pipeline
from tamis.arrays import Grid
from tamis.formats.hdf5.chunk_access import chunk_type, pipeline_of
from tamis.formats.hdf5.lib.chunks import check_recorded, noted
from tamis.formats.hdf5.stored_array import Hdf5Array
from tamis.rewrite.outcome import Written
from tamis.rewrite.plan import Recode

Run = Callable[..., str]
Write = Callable[..., tuple[h5py.Dataset, Written]]
VALUES = np.arange(8, dtype="<i4") * 70001
SHUFFLED, _ = Pipeline.parse("shuffle").encode(VALUES)
PLAIN = VALUES.tobytes()
INDEXES = ["one chunk", "fixed array", "extensible array", "v2 B-tree", "v1 B-tree"]


def create(path: Path, filters: list[tuple[int, int, tuple[int, ...]]], index: str = "v1 B-tree") -> None:
    """Make a file with the dataset ``x``, whose chunks are found through such an index."""
    chunks = (8,) if index != "v2 B-tree" else (8, 1)
    shape = (8,) if index == "one chunk" else (16,)
    limit = (h5s.UNLIMITED,) if index == "extensible array" else shape
    if index == "v2 B-tree":
        shape, limit = (16, 1), (h5s.UNLIMITED, h5s.UNLIMITED)
    plist = h5p.create(h5p.DATASET_CREATE)
    plist.set_chunk(chunks)
    for each in filters:
        plist.set_filter(*each)
    with h5py.File(path, "w", libver="earliest" if index == "v1 B-tree" else "latest") as file:
        h5d.create(file.id, b"x", h5t.py_create(VALUES.dtype), h5s.create_simple(shape, limit), plist)


def write_chunk(path: Path, data: bytes, mask: int) -> None:
    with h5py.File(path, "r+") as file:
        found = file["x"].id
        found.write_direct_chunk((0,) * found.rank, data, mask)


def first_chunk(path: Path) -> tuple[int, NDArray[Any]]:
    """The mask of the first chunk, and the values that HDF5 reads there."""
    with h5py.File(path) as file:
        found = file["x"]
        return found.id.get_chunk_info(0).filter_mask, found[:8].reshape(-1)


@pytest.mark.parametrize("index", INDEXES)
def test_d20_hdf5_keeps_the_old_mask_where_the_size_stays(tmp_path: Path, index: str) -> None:
    """What tamis guards against; once this fails, HDF5 has been mended."""
    path = tmp_path / "x.h5"
    create(path, [(h5z.FILTER_SHUFFLE, 0, ())], index)
    write_chunk(path, PLAIN, 1)
    assert first_chunk(path)[0] == 1
    write_chunk(path, SHUFFLED, 0)
    mask, read = first_chunk(path)
    assert mask == 1
    assert read.tobytes() == SHUFFLED != PLAIN


@pytest.mark.parametrize("index", INDEXES)
def test_d20_hdf5_takes_the_new_mask_where_the_size_changes(tmp_path: Path, index: str) -> None:
    path = tmp_path / "x.h5"
    create(path, [(h5z.FILTER_DEFLATE, 0, (9,))], index)
    write_chunk(path, PLAIN, 1)
    write_chunk(path, Pipeline([Deflate(9)]).encode(VALUES)[0], 0)
    mask, read = first_chunk(path)
    assert mask == 0
    np.testing.assert_array_equal(read, VALUES)


def test_d20_hdf5_own_write_over_a_chunk_of_the_same_size_reads_as_other_values(tmp_path: Path) -> None:
    path = tmp_path / "x.h5"
    create(path, [(h5z.FILTER_SHUFFLE, 0, ())])
    write_chunk(path, PLAIN, 1)
    with h5py.File(path, "r+") as file:
        file["x"][:8] = VALUES
    mask, read = first_chunk(path)
    assert mask == 1
    assert read.tobytes() == SHUFFLED


def check(dataset: h5py.Dataset, chunks: dict[tuple[int, ...], tuple[int, int]]) -> None:
    grid = Grid(dataset.shape, dataset.chunks)
    check_recorded(dataset, grid, noted(grid, chunks))


@pytest.mark.parametrize("index", INDEXES)
def test_d20_a_mask_that_hdf5_did_not_record_is_found(tmp_path: Path, index: str) -> None:
    """After writing, repack compares what HDF5 recorded of each chunk with what it wrote."""
    path = tmp_path / "x.h5"
    create(path, [(h5z.FILTER_SHUFFLE, 0, ())], index)
    with h5py.File(path, "r+") as file:
        found = file["x"]
        origin = (0,) * found.ndim
        found.id.write_direct_chunk(origin, PLAIN, 1)
        check(found, {origin: (32, 1)})
        found.id.write_direct_chunk(origin, SHUFFLED, 0)
        with pytest.raises(FileError, match=r"/x: .* expected size and filter mask \(32, 0\), found \(32, 1\)"):
            check(found, {origin: (32, 0)})


def test_d20_write_finds_a_chunk_that_was_recorded_otherwise(write_beside: Write, tmp_path: Path) -> None:
    """Somebody else rewrites a chunk with the same size while the dataset is written."""
    with h5py.File(tmp_path / "x.h5", "w") as file:
        source = file.create_dataset("s", data=np.tile(VALUES, 2), chunks=(8,))
        plan = Recode("/v", Pipeline.parse("shuffle"), source.dtype, (8,))

        def interfere(done: int, _: int) -> None:
            if done == 0:
                file["v"].id.write_direct_chunk((8,), SHUFFLED, 1)

        with pytest.raises(FileError, match=r"/v: .* the chunk at \(8,\) .*: expected .* \(32, 0\), found \(32, 1\)"):
            write_beside(plan, source, file, "v", interfere)


def test_d20_a_chunk_missing_or_too_many_is_found(tmp_path: Path) -> None:
    path = tmp_path / "x.h5"
    create(path, [(h5z.FILTER_SHUFFLE, 0, ())])
    write_chunk(path, PLAIN, 1)
    with h5py.File(path) as file:
        with pytest.raises(FileError, match=r"the chunk at \(8,\) .* \(32, 1\), found None"):
            check(file["x"], {(0,): (32, 1), (8,): (32, 1)})
        with pytest.raises(FileError, match=r"the chunk at \(0,\) .* None, found \(32, 1\)"):
            check(file["x"], {})


def test_d20_repack_of_the_confused_file_gives_what_hdf5_reads_with_masks_of_its_own(tmp_path: Path) -> None:
    """Chunks of one size with and without zfp, side by side, each with its mask."""
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        values = np.zeros(32, "f4")
        values[12] = np.nan
        # At this rate a chunk that zfp took has as many bytes as one that it did not.
        file.create_dataset("x", data=values, chunks=(8,))
    tamis.repack(path, tmp_path / "y.h5", {"x": "zfp(rate=32)|shuffle"}, checksum=False)
    with h5py.File(tmp_path / "y.h5") as file:
        infos = [file["x"].id.get_chunk_info(index) for index in range(4)]
        assert [info.size for info in infos] == [32] * 4
        assert [info.filter_mask for info in infos] == [2, 1, 2, 2]
        np.testing.assert_array_equal(file["x"][...], values)


def test_write_chunks_without_another_optional_filter_not_counted_as_stored_without_zfp(
    write_beside: Write, tmp_path: Path
) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        source = file.create_dataset("s", data=np.random.default_rng(0).standard_normal(16), chunks=(8,))
        plan = Recode("/v", Pipeline.parse("zfp(reversible=true)|lzf"), source.dtype, (8,))
        target, written = write_beside(plan, source, file, "v", lambda *_: None)
        assert Hdf5Array.of(target).chunk_index().mask_counts() == {0b10: 2}
        assert (written.outcome.chunks, written.outcome.lossless_chunks) == (2, 0)


@pytest.mark.parametrize("text", ["filter(400,1)", "shuffle|filter(400,1)?", "filter(400)!"])
def test_d17_repack_with_a_filter_that_is_not_there_is_refused(tmp_path: Path, text: str) -> None:
    """Optional filters, too: what was asked for is done, or is an error."""
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["x"] = VALUES
    with pytest.raises(MissingFilterError, match=r"filter \d, filter\(400.*: tamis does not know filter 400"):
        tamis.repack(tmp_path / "x.h5", tmp_path / "y.h5", {"x": text})
    assert not (tmp_path / "y.h5").exists()


# D21


def test_d21_every_chunk_is_decoded_by_its_own_mask(tmp_path: Path) -> None:
    """Filters left out in one chunk and not in the next, as HDF5 itself writes them where a filter fails."""
    path = tmp_path / "x.h5"
    noise = np.random.default_rng(0).integers(0, 256, 4096, dtype="u1")
    values = np.concatenate([np.zeros(4096, "u1"), noise, np.arange(4096).astype("u1")])
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=values, chunks=(4096,), compression="lzf")
    with h5py.File(path) as file:
        found = file["x"]
        infos = [found.id.get_chunk_info(index) for index in range(3)]
        assert [info.filter_mask for info in infos] == [0, 1, 0]
        assert Hdf5Array.of(found).chunk_index().mask_counts() == {0: 2, 1: 1}
        pipeline, chunk = pipeline_of(found), chunk_type(found)
        for info in infos:
            mask, data = found.id.read_direct_chunk(info.chunk_offset)
            assert mask == info.filter_mask
            start = info.chunk_offset[0]
            np.testing.assert_array_equal(pipeline.decode(data, mask, chunk), values[start : start + 4096])


# D26

NETCDF_IDS = r"""
import ctypes, re, sys
from pathlib import Path
import netCDF4
path = re.search(r"/\S*/netcdf4\.libs/libnetcdf-\S+", Path("/proc/self/maps").read_text())[0]
library = ctypes.CDLL(path)
with netCDF4.Dataset(sys.argv[1]) as file:
    variable = file["x"]
    ids, count = (ctypes.c_uint * 32)(), ctypes.c_size_t()
    assert library.nc_inq_var_filter_ids(file._grpid, variable._varid, ctypes.byref(count), ids) == 0
    print(ids[: count.value])
"""
DEFLATE_1, DEFLATE_9 = (1, 1, (1,)), (1, 0, (9,))
SHUFFLE, CHECKSUM = (2, 1, ()), (3, 0, ())


@pytest.mark.parametrize(
    ("filters", "reported"),
    [
        ([SHUFFLE, DEFLATE_1, CHECKSUM], "[3, 2, 1]"),  # h5py's order
        ([CHECKSUM, SHUFFLE, DEFLATE_1], "[3, 2, 1]"),  # netCDF's own, and SWIFT's
        ([DEFLATE_1, SHUFFLE, DEFLATE_9], "[2, 1]"),
        ([DEFLATE_1, DEFLATE_9], "[1]"),
    ],
)
def test_d26_netcdf_reports_other_order_and_no_duplicates_and_tamis_what_is_stored(
    tmp_path: Path, python: Run, filters: list[tuple[int, int, tuple[int, ...]]], reported: str
) -> None:
    path = tmp_path / "x.h5"
    create(path, filters)
    with h5py.File(path, "r+") as file:
        pipeline = pipeline_of(file["x"])
        file["x"].id.write_direct_chunk((0,), *pipeline.encode(VALUES))
    assert [(each.filter.id, int(each.optional), each.filter.requested) for each in pipeline.stages] == filters
    assert python(NETCDF_IDS, path).strip() == reported
    np.testing.assert_array_equal(first_chunk(path)[1], VALUES)


@pytest.mark.parametrize(
    "text", ["fletcher32|deflate(1)", "deflate(1)|fletcher32!|deflate(9)?", "shuffle!|deflate(4)!"]
)
def test_d26_repack_keeps_order_duplicates_and_flags(tmp_path: Path, text: str) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["x"] = VALUES
    tamis.repack(tmp_path / "x.h5", tmp_path / "y.h5", {"x": text}, chunks={"x": (8,)})
    with h5py.File(tmp_path / "y.h5") as file:
        found = pipeline_of(file["x"])
        np.testing.assert_array_equal(file["x"][...], VALUES)
    assert [(each.filter, each.optional) for each in found.stages] == [
        (each.filter, each.optional) for each in Pipeline.parse(text).stages
    ]


# D11


@pytest.mark.parametrize("first", ["shuffle", "deflate(1)", "fletcher32", "filter(5)", "filter(6,2,0)", "filter(400)"])
def test_d11_any_filter_before_zfp_is_refused_when_the_pipeline_is_built(first: str) -> None:
    with pytest.raises(ParameterError, match=r"expected zfp first in a pipeline, got .* before it"):
        Pipeline.parse(f"{first}|zfp(rate=8)")


# D15


def test_d15_other_filters_behind_zfp_add_no_error(tmp_path: Path) -> None:
    """D15: read-modify-write of a lossy chunk compounds the error past the tolerance."""
    values = np.random.default_rng(15).normal(scale=100, size=(64, 64)).astype("f4")
    values[0, 0] = np.nan
    with h5py.File(tmp_path / "0.h5", "w") as file:
        file.create_dataset("x", data=values, chunks=(16, 16))
    for number, rest in enumerate(["", "|fletcher32", "|deflate(9)", "|shuffle|deflate", "|shuffle!|fletcher32!", ""]):
        tamis.repack(tmp_path / f"{number}.h5", tmp_path / f"{number + 1}.h5", {"x": f"zfp(accuracy=9){rest}"})
    found = [np.asarray(tamis.open(tmp_path / f"{number}.h5")["x"][...]) for number in (1, 6)]
    assert found[0].tobytes() == found[1].tobytes()
    assert 0 < np.nanmax(np.abs(found[1].astype("f8") - values)) <= 9
