"""Chunks read outside of HDF5: where they lie, what they went through, and what damage says."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import Any

import h5py
import needs
import numpy as np
import pytest
from h5py import h5d, h5p, h5s, h5t

import tamis
from tamis import FileError, Pipeline
from tamis.arrays.chunk_reader import ChunkReader
from tamis.formats.hdf5.lib import files
from tamis.formats.hdf5.stored_array import Hdf5Array

VALUES = np.random.default_rng(0).standard_normal((23, 17)).cumsum(0)


def put_together(source: ChunkReader) -> Any:
    """The array of all chunks of a source, by `values`."""
    out = np.zeros(source.shape, source.chunk.dtype)
    grid = [range(0, extent, step) for extent, step in zip(source.shape, source.chunk.shape, strict=True)]
    for origin in np.array(np.meshgrid(*grid, indexing="ij")).reshape(len(grid), -1).T.tolist():
        part = tuple(map(slice, origin, [a + b for a, b in zip(origin, source.extents(tuple(origin)), strict=True)]))
        inside = tuple(slice(0, each) for each in source.extents(tuple(origin)))
        out[part] = source.values(tuple(origin))[inside]
    return out


def check(path: Path, name: str = "x") -> None:
    """Compare all of a dataset, and `tamis.open` of it, with h5py."""
    with h5py.File(path) as file:
        assert Hdf5Array.of(file[name]).can_read_chunks
        expected = file[name][()]
        assert np.array_equal(put_together(Hdf5Array.of(file[name]).open_chunks()), expected)
    with tamis.open(path) as file:
        found = file[name][()]
    assert found.dtype == expected.dtype
    assert np.array_equal(found, expected)


INDEXES: dict[str, dict[str, Any]] = {
    "single chunk": {"chunks": (23, 17)},
    "fixed array": {"chunks": (4, 4)},
    "extensible array": {"chunks": (4, 4), "maxshape": (None, 17)},
    "second b-tree": {"chunks": (4, 4), "maxshape": (None, None)},
}


@pytest.mark.parametrize("user_block", [0, 1024])
@pytest.mark.parametrize("libver", ["earliest", "latest"])
@pytest.mark.parametrize("compression", [None, "gzip"])
@pytest.mark.parametrize("keywords", list(INDEXES.values()), ids=list(INDEXES))
def test_values_any_chunk_index_and_user_block_as_h5py(
    tmp_path: Path, keywords: dict[str, Any], compression: str | None, libver: str, user_block: int
) -> None:
    with h5py.File(tmp_path / "a.h5", "w", libver=libver, userblock_size=user_block) as file:
        file.create_dataset("x", data=VALUES, compression=compression, **keywords)
    check(tmp_path / "a.h5")


def plist_of(chunks: tuple[int, ...], fill: Any = 7, options: int = 0) -> Any:
    plist = h5p.create(h5p.DATASET_CREATE)
    plist.set_chunk(chunks)
    plist.set_fill_value(np.array(fill, "f8"))
    if options:
        library = ctypes.CDLL(h5p.__file__)
        assert library.H5Pset_chunk_opts(ctypes.c_int64(plist.id), ctypes.c_uint(options)) >= 0
    return plist


def create(file: h5py.File, plist: Any, shape: tuple[int, ...] = VALUES.shape) -> h5py.Dataset:
    space = h5s.create_simple(shape, (h5s.UNLIMITED, *shape[1:]))
    return h5py.Dataset(h5d.create(file.id, b"x", h5t.NATIVE_DOUBLE, space, plist))


@pytest.mark.parametrize("libver", ["earliest", "latest"])
def test_values_early_allocation_without_filters_as_h5py(tmp_path: Path, libver: str) -> None:
    plist = plist_of((5, 5))
    plist.set_alloc_time(h5d.ALLOC_TIME_EARLY)
    with h5py.File(tmp_path / "a.h5", "w", libver=libver) as file:
        space = h5s.create_simple(VALUES.shape)  # of fixed shape: an index that is not stored
        dataset = h5py.Dataset(h5d.create(file.id, b"x", h5t.NATIVE_DOUBLE, space, plist))
        dataset[:4] = VALUES[:4]
    check(tmp_path / "a.h5")


@pytest.mark.parametrize("options", [0, 2], ids=["all chunks filtered", "partial chunks not"])
def test_values_partial_chunks_as_h5py(tmp_path: Path, options: int) -> None:
    plist = plist_of((5, 5), options=options)
    plist.set_shuffle()
    plist.set_deflate(4)
    with h5py.File(tmp_path / "a.h5", "w", libver="latest") as file:
        create(file, plist)[...] = VALUES
    check(tmp_path / "a.h5")


def test_values_partial_chunks_of_zfp_left_unfiltered_as_h5py(tmp_path: Path) -> None:
    plist = plist_of((8, 8), options=2)
    plist.set_filter(32013, 0, tamis.Zfp(rate=16).requested)
    with h5py.File(tmp_path / "a.h5", "w", libver="latest") as file:
        create(file, plist)[...] = VALUES
    check(tmp_path / "a.h5")
    with tamis.open(tmp_path / "a.h5") as file:
        assert file["x"][22, 16] == VALUES[22, 16]
        assert file["x"][0, 0] != VALUES[0, 0]


def test_values_chunks_not_stored_fill_value(tmp_path: Path) -> None:
    plist = plist_of((5, 5))
    plist.set_deflate(1)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        create(file, plist)[6:8, 3] = 1
    with h5py.File(tmp_path / "a.h5") as file:
        source = Hdf5Array.of(file["x"]).open_chunks()
        assert [*source.index.parts.origins()] == [(5, 0)]
        assert np.all(source.values((0, 0)) == 7)
        out = np.zeros((5, 5))
        assert source.values((0, 5), out=out) is out
        assert np.all(out == 7)
    check(tmp_path / "a.h5")


@pytest.mark.parametrize("fill", [None, 0, -1.5])
def test_values_of_a_dataset_never_written_as_h5py(tmp_path: Path, fill: float | None) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", (7, 7), ">f4", chunks=(3, 3), fillvalue=fill)
    check(tmp_path / "a.h5")


def test_values_never_filled_zero_as_h5py(tmp_path: Path) -> None:
    plist = plist_of((5, 5))
    plist.set_fill_time(h5d.FILL_TIME_NEVER)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        create(file, plist)
    with tamis.open(tmp_path / "a.h5") as file, h5py.File(tmp_path / "a.h5") as peer:
        assert np.array_equal(file["x"][3:9], peer["x"][3:9])
        assert not file["x"][3:9].any()


def test_values_shrunk_and_grown_again_as_h5py(tmp_path: Path) -> None:
    plist = plist_of((5, 5))
    plist.set_deflate(1)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        dataset = create(file, plist)
        dataset[...] = VALUES
        dataset.resize((7, 17))
        dataset.resize((31, 17))
    check(tmp_path / "a.h5")


@pytest.mark.parametrize("dtype", ["<i2", ">i2", "<f8", ">f8", ">u4", "<i8", ">f4", "u1", "f2"])
@pytest.mark.parametrize("text", ["none", "shuffle|deflate(4)", "nbit", "fletcher32"])
def test_values_any_byte_order_as_h5py(tmp_path: Path, dtype: str, text: str) -> None:
    plist = h5p.create(h5p.DATASET_CREATE)
    plist.set_chunk((5, 4))
    for stage in Pipeline.parse(text).stages:
        plist.set_filter(stage.filter.id, 0, stage.filter.requested)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        kind = h5t.py_create(np.dtype(dtype))
        found = h5d.create(file.id, b"x", kind, h5s.create_simple(VALUES.shape), plist)
        h5py.Dataset(found)[...] = (100 + VALUES).astype(dtype)
    check(tmp_path / "a.h5")


@pytest.mark.parametrize("digits", [0, 2])
def test_values_scaleoffset_with_fill_value_as_h5py(tmp_path: Path, digits: int) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        kind = "i4" if digits == 0 else "f4"
        dataset = file.create_dataset("x", (23, 17), kind, chunks=(5, 5), scaleoffset=digits, fillvalue=-99)
        dataset[:9] = (10 * VALUES[:9]).astype(kind)
        dataset[3:5] = -99
    check(tmp_path / "a.h5")


@pytest.mark.parametrize("mode", [tamis.Zfp(rate=9), tamis.Zfp(accuracy=1e-3), tamis.Zfp(reversible=True)], ids=str)
@pytest.mark.parametrize("rest", [{}, {"fletcher32": True}, {"shuffle": True, "compression": None}], ids=str)
@pytest.mark.parametrize("chunks", [(8, 8), (1, 17), (23, 17), (5, 3)], ids=str)
def test_values_zfp_and_other_filters_as_h5py(
    tmp_path: Path, mode: tamis.Zfp, rest: dict[str, Any], chunks: tuple[int, ...]
) -> None:
    plist = plist_of(chunks)
    # Optional: a chunk that is padded with the fill value, which zfp would change by a little, goes without it.
    plist.set_filter(32013, h5py.h5z.FLAG_OPTIONAL, mode.requested)
    if "shuffle" in rest:
        plist.set_shuffle()
        plist.set_deflate(3)
    if "fletcher32" in rest:
        plist.set_fletcher32()
    with h5py.File(tmp_path / "a.h5", "w") as file:
        create(file, plist)[...] = VALUES
    check(tmp_path / "a.h5")


def test_values_masks_that_differ_by_chunk_each_honoured(tmp_path: Path) -> None:
    pipeline = Pipeline.parse("zfp(rate=20)|shuffle|deflate(4)|fletcher32")
    plist = plist_of((8,))
    for stage in pipeline.stages:
        plist.set_filter(stage.filter.id, h5py.h5z.FLAG_OPTIONAL, stage.filter.requested)
    values = VALUES.ravel()[:64].copy()
    with h5py.File(tmp_path / "a.h5", "w") as file:
        dataset = create(file, plist, (64,))
        whole = Hdf5Array.of(dataset).storage.pipeline
        for number, mask in enumerate((0b0000, 0b0001, 0b0110, 0b0111, 0b1110, 0b1111, 0b1000, 0b0010)):
            skip = [type(stage.filter) for i, stage in enumerate(whole.stages) if mask >> i & 1]
            data, made = whole.encode(values[8 * number : 8 * number + 8], skip=skip)
            assert made == mask
            dataset.id.write_direct_chunk((8 * number,), data, mask)
    check(tmp_path / "a.h5")
    with tamis.open(tmp_path / "a.h5") as file:
        assert np.array_equal(file["x"][8:16], values[8:16])
        assert np.allclose([file["x"][i] for i in range(64)], values, atol=1e-2)


FILES = ["bigendian.h5", "test_zfp_be.h5", "test_zfp_le.h5", "test_zfp_030040.h5", "test_zfp_050.h5", "mesh.h5"]


@pytest.mark.parametrize("name", FILES)
def test_values_files_of_h5z_zfp_as_h5py(name: str) -> None:
    path = needs.real(f"h5zzfp/{name}")
    with h5py.File(path) as theirs, tamis.open(path) as ours:
        for each in ours:
            try:
                expected = theirs[each][()]
            except OSError:
                continue  # a filter that HDF5 lacks here
            assert np.array_equal(ours[each][()], expected)
            if theirs[each].ndim == 1:
                assert np.array_equal(ours[each][7:11], expected[7:11])


def test_records_offsets_are_where_the_bytes_lie(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w", userblock_size=2048) as file:
        file.create_dataset("x", data=VALUES, chunks=(5, 5), shuffle=True, compression="gzip")
    with h5py.File(tmp_path / "a.h5") as file:
        records, data = dict(Hdf5Array.of(file["x"]).chunk_index().records()), (tmp_path / "a.h5").read_bytes()
        assert list(records) == sorted(records)
        assert len(records) == 5 * 4
        for origin, (offset, nbytes, mask) in records.items():
            assert file["x"].id.read_direct_chunk(origin) == (mask, data[offset : offset + nbytes])


def test_records_user_block_not_counted_by_the_library_added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other versions of HDF5 count from the end of the user block: what this one says is taken for theirs."""
    assert files._offsets_count_user_block() in (True, False)
    with h5py.File(tmp_path / "a.h5", "w", userblock_size=1024) as file:
        file.create_dataset("x", data=VALUES, chunks=(23, 17))
        counted = int(Hdf5Array.of(file["x"]).chunk_index().offsets[0])
        file.flush()
    with h5py.File(tmp_path / "a.h5") as file:
        before = files._offsets_count_user_block()
        monkeypatch.setattr(files, "_offsets_count_user_block", lambda: not before)
        other = int(Hdf5Array.of(file["x"]).chunk_index().offsets[0])
    assert abs(other - counted) == 1024
    assert (tmp_path / "a.h5").read_bytes()[counted : counted + 8] == VALUES[0, 0].tobytes()


# Where the file is


def test_source_reads_on_after_the_file_is_renamed_replaced_and_closed(tmp_path: Path) -> None:
    for name, factor in (("a.h5", 1), ("b.h5", 2)):
        with h5py.File(tmp_path / name, "w") as file:
            file.create_dataset("x", data=factor * VALUES, chunks=(5, 5), compression="gzip")
    file = h5py.File(tmp_path / "a.h5")
    dataset = file["x"]
    os.replace(tmp_path / "b.h5", tmp_path / "a.h5")
    source = Hdf5Array.of(dataset).open_chunks()
    file.close()
    assert np.array_equal(put_together(source), VALUES)


def test_source_of_an_external_link_reads_the_other_file(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "b.h5", "w") as file:
        file.create_dataset("x", data=VALUES, chunks=(5, 5), compression="gzip")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["there"] = h5py.ExternalLink("b.h5", "/x")
    check(tmp_path / "a.h5", "there")


def test_source_closed_file_error(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", data=VALUES, chunks=(5, 5))
        source = Hdf5Array.of(file["x"]).open_chunks()
    source.close()
    source.close()
    with pytest.raises(FileError, match=r"a\.h5: /x: the file is closed: open it again"):
        source.values((0, 0))


def test_sources_of_a_file_share_one_descriptor_and_give_it_back(tmp_path: Path) -> None:
    def descriptors() -> int:
        return len(os.listdir("/proc/self/fd"))

    with h5py.File(tmp_path / "a.h5", "w") as file:
        for i in range(20):
            file.create_dataset(f"x{i}", data=VALUES, chunks=(5, 5))
    before = descriptors()
    with h5py.File(tmp_path / "a.h5") as file:
        sources = [Hdf5Array.of(file[name]).open_chunks() for name in file]
        assert descriptors() <= before + 2
        assert all(np.array_equal(put_together(each), VALUES) for each in sources)
    del sources
    assert descriptors() == before


def test_source_of_a_file_that_is_being_written_what_was_written(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        dataset = file.create_dataset("x", data=VALUES, chunks=(5, 5), compression="gzip")
        assert np.array_equal(put_together(Hdf5Array.of(dataset).open_chunks()), VALUES)


# Damage
