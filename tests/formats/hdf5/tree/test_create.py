"""New files and datasets that follow others."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest
from h5py import h5t

from tamis.formats.hdf5.lib.new_filters import NewFilter
from tamis.formats.hdf5.tree.create import create_like, create_target

SHUFFLE = NewFilter(2, 1, ())
DEFLATE = NewFilter(1, 1, (4,))


def test_create_target_follows_the_file(odd: Path, tmp_path: Path) -> None:
    with h5py.File(odd) as old, create_target(old, tmp_path / "new.h5") as new:
        assert new.userblock_size == 1024
        assert new.id.get_create_plist().get_version()[0] == old.id.get_create_plist().get_version()[0]
        old_root, new_root = (file["/"].id.get_create_plist() for file in (old, new))
        assert new_root.get_link_creation_order() == old_root.get_link_creation_order()
        assert new_root.get_attr_creation_order() == old_root.get_attr_creation_order()
        with pytest.raises(FileExistsError):
            create_target(old, tmp_path / "new.h5")
    assert (tmp_path / "new.h5").read_bytes().startswith(b"#!user block")


def test_create_like_takes_over_properties(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        old = file.create_dataset("a", (4, 6), ">f8", maxshape=(None, 6), chunks=(2, 3), fillvalue=2.5, fletcher32=True)
        new = create_like(old, file, "b", chunk_shape=(4, 2), filters=[SHUFFLE, DEFLATE])
        assert (new.dtype, new.shape, new.maxshape, new.chunks) == (old.dtype, old.shape, old.maxshape, (4, 2))
        assert (new.fillvalue, new.fletcher32, new.shuffle, new.compression) == (2.5, False, True, "gzip")
        native = create_like(old, file, "c", chunk_shape=(4, 2), filters=[], dtype=h5t.NATIVE_FLOAT)
        assert (native.dtype, native.fillvalue) == (np.float32, 2.5)


def test_create_like_of_external_raw_data_is_chunked(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        old = file.create_dataset("a", (4,), "f4", external=str(tmp_path / "raw"), fillvalue=7)
        new = create_like(old, file, "b", chunk_shape=(2,), filters=[])
        assert new.external is None
        np.testing.assert_array_equal(new[...], np.full(4, 7))
