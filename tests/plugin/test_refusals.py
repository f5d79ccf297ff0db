"""What the filter refuses when a dataset or group is created: other byte orders, other types, groups."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest
from h5py import h5d, h5g, h5p, h5s, h5t

import tamis

Run = Callable[..., str]


def filtered_group(file: h5py.File, flags: int, values: tuple[int, ...]) -> h5py.Group:
    """Create a group whose list of links goes through ZFP, which h5py has no call for."""
    gcpl = h5p.create(h5p.GROUP_CREATE)
    plist = h5p.PropDCID(gcpl.id)
    plist.locked = True
    plist.set_filter(32013, flags, values)
    return h5py.Group(h5g.create(file.id, b"group", gcpl=gcpl))


@pytest.mark.parametrize("flags", [0, 1], ids=["required", "optional"])
@pytest.mark.parametrize("values", [(), (5,), (3, 0, 0, 0x3FF00000)], ids=str)
def test_filter_on_group_is_refused_when_links_get_many(tmp_path: Path, flags: int, values: tuple[int, ...]) -> None:
    with h5py.File(tmp_path / "group.h5", "w") as file:
        group = filtered_group(file, flags, values)
        for i in range(8):
            group.create_group(f"member {i}")
        with pytest.raises(ValueError, match="zfp: filters values of a dataset, and cannot be used on a group"):
            group.create_group("member 8")
        file["after"] = np.arange(3)
    with h5py.File(tmp_path / "group.h5") as file:
        # The first eight are kept without a heap, and so without filters.
        assert list(file["group"]) == [f"member {i}" for i in range(8)]
        assert list(file["after"]) == [0, 1, 2]


@pytest.mark.parametrize("dtype", [">f4", ">f8", ">i4", ">i8", ">u4", ">u8"])
def test_creating_with_foreign_byte_order_is_refused(tmp_path: Path, dtype: str) -> None:
    expected = r"endian targeting is refused: expected little-endian .* got big-endian; create .* with the native type"
    with h5py.File(tmp_path / "foreign.h5", "w") as file:
        with pytest.raises(ValueError, match=expected):
            file.create_dataset("v", (64,), dtype, chunks=(16,), **tamis.Zfp(reversible=True))
        assert list(file) == []


@pytest.mark.parametrize("dtype", ["u1", "i2", "f2", "S4", "S8", "c8", "V8", bool])
def test_creating_with_type_of_other_values_is_refused(tmp_path: Path, dtype: object) -> None:
    with h5py.File(tmp_path / "type.h5", "w") as file:
        with pytest.raises(
            (ValueError, OSError),
            match=r"zfp: requires datatype (class of H5T_FLOAT or H5T_INTEGER|size of 4 or 8), got",
        ):
            file.create_dataset("v", (64,), dtype, chunks=(16,), **tamis.Zfp(reversible=True))
        assert list(file) == []


def test_writing_strings_of_any_length_leaves_chunks_unfiltered(tmp_path: Path) -> None:
    # HDF5 does not ask the filter about such types (hdf5 issue 5942), and calls it all the same.
    words = np.array(["drum", "sieve"] * 32, dtype=object)
    with h5py.File(tmp_path / "strings.h5", "w") as file:
        file.create_dataset("v", data=words, dtype=h5py.string_dtype(), chunks=(16,), **tamis.Zfp(reversible=True))
    with h5py.File(tmp_path / "strings.h5") as file:
        assert list(file["v"].asstr()) == list(words)
        assert file["v"].id.get_chunk_info(0).filter_mask == 1


def test_creating_with_four_bytes_that_are_no_ieee_float_is_refused(tmp_path: Path) -> None:
    kind = h5t.IEEE_F32LE.copy()
    kind.set_fields(31, 20, 11, 0, 20)
    kind.set_ebias(1023)
    plist = h5p.create(h5p.DATASET_CREATE)
    plist.set_chunk((16,))
    plist.set_filter(32013, 1, (5,))
    with (
        h5py.File(tmp_path / "type.h5", "w") as file,
        pytest.raises(ValueError, match="zfp: expected 4- or 8-byte IEEE floats"),
    ):
        h5d.create(file.id, b"v", kind, h5s.create_simple((64,)), plist)


@pytest.mark.peer
def test_creating_with_tools_in_foreign_byte_order_leaves_values_right(
    tmp_path: Path, tool: Run, plugins: Path
) -> None:
    # h5repack goes on without the filter where it is refused; the values must not suffer.
    values = np.linspace(0, 52, 640).astype(">f8")
    with h5py.File(tmp_path / "plain.h5", "w") as file:
        file.create_dataset("v", data=values, chunks=(64,))
    tool("h5repack", "-f", "v:UD=32013,1,1,5", tmp_path / "plain.h5", tmp_path / "out.h5", plugins=plugins)
    with h5py.File(tmp_path / "out.h5") as file:
        assert np.array_equal(file["v"][...], values)
        assert file["v"].id.get_create_plist().get_nfilters() == 0
