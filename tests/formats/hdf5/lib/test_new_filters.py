"""Filters of new datasets with the parameters that tamis computes, whatever plugins HDF5 finds or loads later."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import h5py
import pytest
from h5py import h5d, h5p, h5s, h5t, h5z

from tamis.filters._plugin_worker import CLASS_VERSION, Callback, FilterClass, SetLocal
from tamis.formats.hdf5.lib import calls
from tamis.formats.hdf5.lib.new_filters import NewFilter, create_dataset, is_registered, set_filters

BLOSC = (2, 2, 4, 256, 5, 1, 5)
PROTOTYPE = 300  # HDF5 keeps the numbers from 256 to 511 for tests
STORED = [
    [NewFilter(32001, 1, BLOSC, is_stored=True)],
    [NewFilter(32001, 0, BLOSC, is_stored=True)],
    [NewFilter(2, 1, ()), NewFilter(32015, 0, (3,), is_stored=True)],
    [NewFilter(32008, 1, (0, 4, 4, 0, 2), is_stored=True), NewFilter(3, 0, ())],
    [NewFilter(1, 1, (9,), is_stored=True), NewFilter(1, 0, (1,), is_stored=True)],
    [NewFilter(32026, 1, tuple(range(254)), is_stored=True)],
    [NewFilter(1000 + at, 1, (at,) * at, is_stored=True) for at in range(31)],
]


@pytest.fixture
def file(tmp_path: Path) -> Iterator[h5py.File]:
    with h5py.File(tmp_path / "a.h5", "w") as opened:
        yield opened


def created(file: h5py.File, name: str, filters: list[NewFilter]) -> h5d.DatasetID:
    plist = h5p.create(h5p.DATASET_CREATE)
    plist.set_chunk((8, 8))
    set_filters(plist, filters)
    space = h5s.create_simple((16, 16))
    first = create_dataset(file.id, name.encode(), h5t.IEEE_F32LE, space, plist)
    again = create_dataset(file.id, None, h5t.IEEE_F32LE, space, plist)  # a list is not used up
    assert listed(again) == listed(first)
    return first


def listed(dataset: h5d.DatasetID) -> list[tuple[int, int, tuple[int, ...]]]:
    return [entry[:3] for entry in calls.filter_list(dataset.get_create_plist())]


@pytest.mark.parametrize("filters", STORED, ids=lambda filters: str(len(filters)))
def test_set_filters_stored_parameters_are_those_in_the_file(filters: list[NewFilter], tmp_path: Path) -> None:
    expected = [(4,) if entry.id == 2 else entry.values for entry in filters]
    with h5py.File(tmp_path / "a.h5", "w") as file:
        created(file, "x", filters)
    with h5py.File(tmp_path / "a.h5") as file:
        found = listed(file["x"].id)
    assert found == [(entry.id, entry.flags, values) for entry, values in zip(filters, expected, strict=True)]


def test_set_filters_filter_that_hdf5_has_is_asked_only_without_stored_parameters(file: h5py.File) -> None:
    asked = []

    def ask(*identifiers: int) -> int:
        asked.append(identifiers)
        return -1

    entry = FilterClass(CLASS_VERSION, PROTOTYPE, 1, 1, b"fails", None, SetLocal(ask), Callback(lambda *_: 0))
    h5z.register_filter(ctypes.addressof(entry))
    try:
        created(file, "x", [NewFilter(PROTOTYPE, 0, (1, 2), is_stored=True)]).close()
        assert not asked
        with pytest.raises(ValueError, match="error during user callback"):
            created(file, "y", [NewFilter(PROTOTYPE, 0, (1, 2))])
        assert len(asked) == 1
    finally:
        file.close()
        h5z.unregister_filter(PROTOTYPE)


def test_set_filters_replaces_those_of_a_list_and_none_leave_it_plain() -> None:
    plist = h5p.create(h5p.DATASET_CREATE)
    plist.set_chunk((8, 8))
    plist.set_deflate(4)
    set_filters(plist, [NewFilter(3, 0, ())])
    assert [entry.id for entry in calls.filter_list(plist)] == [3]
    set_filters(plist, [])
    assert plist.get_nfilters() == 0


def test_is_registered_says_what_libhdf5_has_and_leaves_it_free_to_load_plugins() -> None:
    assert is_registered(1)
    assert is_registered(32013)
    assert not is_registered(32015)
    assert calls.loads_filters()
    with calls.without_plugins():
        assert not calls.loads_filters()
    with pytest.raises(RuntimeError), calls.without_plugins():
        raise RuntimeError
    assert calls.loads_filters()


def test_datasets_created_in_threads_have_their_own_filters(file: h5py.File) -> None:
    found: dict[int, list[tuple[int, int, tuple[int, ...]]]] = {}

    def create(level: int) -> None:
        for index in range(20):
            name = f"{level}-{index}"
            found[level] = listed(created(file, name, [NewFilter(32015, 1, (level,), is_stored=True)]))

    threads = [threading.Thread(target=create, args=(level,)) for level in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {level: [(32015, 1, (level,))] for level in range(1, 5)}


WRITE = """
import sys, h5py, numpy as np, tamis
from tamis.formats.hdf5.lib.files import open_source
from tamis.formats.hdf5.tree.copy import TreeCopier

how, path = sys.argv[1:]
values = np.arange(4096, dtype="f4").reshape(64, 64)

def write(file):
    tamis.hdf5.write(file, "x", values, filters="zstd(3)", chunks=(32, 32))
    tamis.hdf5.create_group(file, "g", "zstd(3)")["link"] = file["x"]

with h5py.File(path, "w") as file:
    if how == "written":
        write(file)
    else:
        with h5py.File(f"{path}.source", "w") as source:
            write(source)
        with open_source(f"{path}.source", keeps_chunks=False) as source:
            copier = TreeCopier(source, file)
            assert not [*copier.slots()]
            copier.finish()
    import hdf5plugin  # whose label of zstd is longer than the empty one
    for owner in (file["x"], file["g"]):
        owner.attrs["many"] = np.arange(200)
with h5py.File(path) as file:
    assert np.array_equal(file["g/link"][...], values)
    assert len(file["x"].attrs["many"]) == len(file["g"].attrs["many"]) == 200
"""


@pytest.mark.parametrize("how", ["written", "copied"])
def test_objects_are_readable_if_their_filter_is_loaded_before_the_file_is_closed(how: str, tmp_path: Path) -> None:
    if importlib.util.find_spec("hdf5plugin") is None:
        pytest.skip("could not import 'hdf5plugin'")
    command = [sys.executable, "-W", "ignore", "-c", WRITE, how, tmp_path / "a.h5"]
    done = subprocess.run(command, env=os.environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
