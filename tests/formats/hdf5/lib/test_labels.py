"""Lists of filters without labels, which their writer did not know, where their plugins are loaded by now."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import h5py
import numpy as np
import pytest

import tamis
from tamis.formats.hdf5.lib.labels import Labels

VALUES = np.arange(9 * 14 * 22, dtype="f4").reshape(9, 14, 22)
FILTERS = ("zstd(3)", "lz4", "bzip2", "blosc", "shuffle|zstd(3)|fletcher32")

_COPY = """
import sys
import h5py, tamis
import hdf5plugin  # registers its filters, whose labels HDF5 then gives to lists that have none
source, target = sys.argv[1:]
tamis.repack(source, target, {})
"""

_READ = """
import sys
import h5py, hdf5plugin
import numpy as np
before, after = (h5py.File(path) for path in sys.argv[1:])
assert [*before] == [*after]
for name in before:
    assert np.array_equal(before[name][:], after[name][:]), name
    assert dict(before[name].attrs) == dict(after[name].attrs), name
    first, second = before[name].id, after[name].id
    assert first.get_num_chunks() == second.get_num_chunks(), name
    for index in range(first.get_num_chunks()):
        offset = first.get_chunk_info(index).chunk_offset
        assert first.read_direct_chunk(offset) == second.read_direct_chunk(offset), name
"""


def written(path: Path, libver: str, attributes: int) -> Path:
    """Write datasets with filters that h5py's libhdf5 does not have here."""
    with h5py.File(path, "w", libver=libver) as file:
        for number, filters in enumerate(FILTERS):
            dataset = tamis.hdf5.write(file, f"x{number}", VALUES, filters=filters, chunks=(3, 7, 11))
            for count in range(attributes):  # with some, the header goes on elsewhere
                dataset.attrs[f"a{count}"] = f"{count}" * 40
    return path


@pytest.mark.matrix
@pytest.mark.parametrize("libver", ["earliest", "latest"])
@pytest.mark.parametrize("attributes", [0, 7])
def test_copy_in_a_process_that_knows_the_filters_by_now(libver: str, attributes: int, tmp_path: Path) -> None:
    if find_spec("hdf5plugin") is None:
        pytest.skip("no hdf5plugin here: pip install hdf5plugin")
    source, target = written(tmp_path / "a.h5", libver, attributes), tmp_path / "b.h5"
    for script in (_COPY, _READ):
        words = [sys.executable, "-c", script, str(source), str(target)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("libver", ["earliest", "latest"])
def test_labels_of_a_registered_filter_are_found(libver: str, tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w", libver=libver) as file:
        for count in range(7):
            tamis.hdf5.write(file, f"x{count}", VALUES, filters="zfp(accuracy=0.1)", chunks=(3, 7, 11))
            file[f"x{count}"].attrs["long"] = "text" * 30 * count
    with h5py.File(tmp_path / "a.h5") as file:
        for name in file:
            dataset = file[name].id
            address = h5py.h5o.get_info(dataset).addr
            assert not Labels().are_lacking(file, address, dataset.get_create_plist())
            assert Labels().are_lacking(file, address + 8, dataset.get_create_plist())  # no header begins there


def test_filters_that_are_not_registered_need_no_labels(tmp_path: Path) -> None:
    with h5py.File(written(tmp_path / "a.h5", "earliest", 0)) as file:
        for dataset in file.values():
            address = h5py.h5o.get_info(dataset.id).addr
            assert not Labels().are_lacking(file, address, dataset.id.get_create_plist())
