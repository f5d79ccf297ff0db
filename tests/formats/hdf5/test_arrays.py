"""Arrays of files against h5py: selections, types, layouts, errors, threads; and what dask, xarray and pickle do."""

from __future__ import annotations

import multiprocessing
import pickle
import subprocess
import sys
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import dask
import dask.array
import h5py
import needs
import numpy as np
import pytest
import xarray
from hypothesis import given
from hypothesis import strategies as st

import tamis
from tamis import ParameterError
from tamis.formats.hdf5.reader import DatasetArray as Array

KEYWORDS: dict[str, dict[str, Any]] = {
    "raw": {},
    "deflate": {"shuffle": True, "compression": "gzip", "fletcher32": True},
    "accuracy": dict(tamis.Zfp(accuracy=1e-3)),
    "rate": dict(tamis.Zfp(rate=9)),
    "checked": {**tamis.Zfp(rate=9), "fletcher32": True},
}
SHAPES = {
    "1": ((50,), (7,)),
    "2": ((23, 17), (8, 5)),
    "3": ((9, 10, 11), (4, 5, 8)),
    "5": ((3, 5, 4, 6, 2), (1, 4, 4, 6, 1)),
}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with each pipeline on each shape."""
    made = tmp_path_factory.mktemp("arrays") / "a.h5"
    random = np.random.default_rng(0)
    with h5py.File(made, "w") as file:
        for rank, (shape, chunks) in SHAPES.items():
            values = random.standard_normal(shape).astype("f4").cumsum(axis=-1, dtype="f4")
            for name, keywords in KEYWORDS.items():
                file.create_dataset(f"{name}{rank}", data=values, chunks=chunks, **keywords)
        file.create_dataset("none", (0, 4), "f4", chunks=(2, 2), maxshape=(None, 4))
        file.attrs["region"] = file["deflate2"].regionref[2:5, 3:9]
    return made


@pytest.fixture(scope="module")
def both(path: Path) -> Iterator[Callable[[str], tuple[Array, h5py.Dataset]]]:
    """A dataset by its name as tamis and as h5py have it."""
    with h5py.File(path) as theirs, tamis.open(path, threads=2) as ours:
        arrays = {name: ours[name] for name in ours}
        yield lambda name: (arrays[name], theirs[name])


def outcome(array: Any, key: Any) -> Any:
    """What a selection gives: values, or the kind of error."""
    try:
        return array[key]
    except (IndexError, ValueError, TypeError) as error:
        return next(kind for kind in (IndexError, ValueError, TypeError) if isinstance(error, kind))


def same(ours: Any, theirs: Any) -> bool:
    if isinstance(theirs, type):
        return ours is theirs
    return type(ours) is type(theirs) and ours.dtype == theirs.dtype and np.array_equal(ours, theirs)


@st.composite
def keys(draw: st.DrawFn, shape: tuple[int, ...]) -> Any:
    """Anything that may stand in brackets, right or wrong, but what h5py itself has a hole for (see below)."""
    if draw(st.integers(0, 7)) == 0:
        density = draw(st.sampled_from([0.01, 0.3, 1]))
        return np.random.default_rng(draw(st.integers(0, 99))).random(shape) < density
    found: list[Any] = []
    for extent in shape:
        number = st.integers(-extent - 1, extent)
        bounds = st.none() | st.integers(-extent - 2, extent + 2)
        found.append(
            draw(
                st.one_of(
                    number,
                    number.map(np.int16),
                    st.builds(slice, bounds, bounds, st.none() | st.integers(-1, 9)),
                    st.just(slice(None)),
                )
            )
        )
    for axis in draw(st.lists(st.integers(0, len(shape) - 1), max_size=2)):
        extent = shape[axis]
        some = draw(st.lists(st.integers(-extent, extent - 1), max_size=6))
        arrays = [some, sorted(set(some)), np.array(sorted(set(some)), "i4")]
        if len(shape) > 1:
            arrays += [np.arange(extent) % 3 == 0, (np.arange(extent + 1) % 2 == 0)]
        found[axis] = draw(st.sampled_from(arrays))
    change = draw(st.integers(0, 5))
    if change == 0:
        start, stop = sorted(draw(st.integers(0, len(shape))) for _ in range(2))
        found[start:stop] = [...]
    elif change == 1:
        found = found[: draw(st.integers(0, len(shape)))]
    elif change == 2:
        found.insert(draw(st.integers(0, len(found))), draw(st.sampled_from([0, ..., 1.5, None, slice(None)])))
    return found[0] if len(found) == 1 and draw(st.booleans()) else tuple(found)


@pytest.mark.matrix
@pytest.mark.parametrize("rank", list(SHAPES))
@given(st.data())
def test_getitem_any_key_as_h5py(
    both: Callable[[str], tuple[Array, h5py.Dataset]], rank: str, data: st.DataObject
) -> None:
    ours, theirs = both(data.draw(st.sampled_from(list(KEYWORDS))) + rank)
    key = data.draw(keys(SHAPES[rank][0]))
    assert same(outcome(ours, key), outcome(theirs, key)), (ours, key)


ODD: list[Any] = [
    *[(), ..., 0, -1, 23, -24, True, np.True_, np.int8(3), np.array(3), np.array([3]), 2.0, np.float64(2), None],
    *[(0, 0, 0), (..., ...), (0, ..., 0), (0, 0, ...), slice(5, 2), slice(None, None, -1), slice(None, None, 0)],
    *[slice(100, 200), [], [3, 1], [1, 1], [-1], [-1, 2], [30], [1.0], [True, False], ([0, 1], [0, 1]), ([0], 0)],
    *[((1, 2), 0), range(3), np.array([], int), np.array([], float), np.array([], bool), [[1, 2]], np.array([[1, 2]])],
    *[10**30, [2**70], np.zeros((23, 17), bool), np.zeros((17, 23), bool), np.zeros(23, bool), np.zeros(17, bool)],
    *[[False] * 23, "name", (slice(None), np.ones(17, bool)), slice(1.5, 2), ("name", 0)],
    h5py.MultiBlockSlice(1, 4, 3, 2),
]


@pytest.mark.parametrize("key", ODD, ids=repr)
@pytest.mark.parametrize("name", ["raw2", "deflate2", "rate2"])
def test_getitem_odd_key_as_h5py(both: Callable[[str], tuple[Array, h5py.Dataset]], name: str, key: Any) -> None:
    ours, theirs = both(name)
    assert same(outcome(ours, key), outcome(theirs, key))


@pytest.mark.parametrize("key", [(), ..., 0, slice(None), [], np.zeros(0, bool), (slice(None), 0), (slice(None), [1])])
def test_getitem_of_no_values_as_h5py(both: Callable[[str], tuple[Array, h5py.Dataset]], key: Any) -> None:
    ours, theirs = both("none")
    assert same(outcome(ours, key), outcome(theirs, key))


def test_getitem_region_reference_as_h5py(both: Callable[[str], tuple[Array, h5py.Dataset]]) -> None:
    ours, theirs = both("deflate2")
    assert np.array_equal(ours[theirs.file.attrs["region"]], theirs[2:5, 3:9])


def test_getitem_where_h5py_has_holes(both: Callable[[str], tuple[Array, h5py.Dataset]]) -> None:
    ours, theirs = both("raw1")
    flags = np.arange(50) % 7 == 0
    assert np.array_equal(ours[flags.tolist()], theirs[flags])  # h5py takes arrays of booleans only, with one axis
    with pytest.raises(IndexError, match="got 50"):
        ours[[50]]  # h5py lets HDF5 fail


@pytest.mark.parametrize("name", ["deflate3", "rate3", "none"])
def test_array_what_it_says_of_itself_as_h5py(both: Callable[[str], tuple[Array, h5py.Dataset]], name: str) -> None:
    ours, theirs = both(name)
    for what in ("shape", "dtype", "chunks", "ndim", "size", "nbytes", "name"):
        assert getattr(ours, what) == getattr(theirs, what), what
    assert len(ours) == len(theirs)
    assert name in repr(ours)
    assert all(np.array_equal(a, b) for a, b in zip(ours, theirs, strict=True))


@pytest.mark.parametrize("name", [f"{name}{rank}" for name in KEYWORDS for rank in SHAPES])
def test_read_all_and_into_out_as_h5py(both: Callable[[str], tuple[Array, h5py.Dataset]], name: str) -> None:
    ours, theirs = both(name)
    expected = theirs[()]
    assert np.array_equal(ours.read(), expected)
    assert np.array_equal(np.asarray(ours), expected)
    out = np.zeros(ours.shape, ours.dtype)
    assert ours.read(out) is out
    assert np.array_equal(out, expected)
    strided = np.zeros((*ours.shape[:-1], 2 * ours.shape[-1]), "f8")[..., ::2]
    assert np.array_equal(ours.read(strided), expected)
    fortran = np.zeros(ours.shape, ours.dtype, order="F")
    assert np.array_equal(ours.read(fortran), expected)
    unaligned = np.zeros(ours.size * 4 + 1, "u1")[1:].view("f4").reshape(ours.shape)
    assert np.array_equal(ours.read(unaligned), expected)
    assert np.array_equal(ours.read(np.zeros(ours.shape, ">f4")), expected)


def test_read_out_that_does_not_fit_refused(both: Callable[[str], tuple[Array, h5py.Dataset]]) -> None:
    ours, _ = both("deflate2")
    for out in (np.zeros((17, 23), "f4"), np.zeros((23, 17), "f2"), np.zeros((23, 17), "i4")):
        with pytest.raises(ParameterError, match=r"expected out of float32 and shape \(23, 17\), got"):
            ours.read(out)
    locked = np.zeros((23, 17), "f4")
    locked.flags.writeable = False
    with pytest.raises(ParameterError, match="expected out to be writeable"):
        ours.read(locked)


def test_array_without_copy_refused(both: Callable[[str], tuple[Array, h5py.Dataset]]) -> None:
    with pytest.raises(ValueError, match="copy=False"):
        np.array(both("raw1")[0], copy=False)
    assert np.asarray(both("raw1")[0], "f8").dtype == "f8"


# What is not numbers in chunks is h5py's.


# Threads, memory, and what is not decoded.


def test_array_many_threads_right_values(both: Callable[[str], tuple[Array, h5py.Dataset]]) -> None:
    ours, theirs = both("deflate3")
    expected = theirs[()]
    random = np.random.default_rng(1)
    keys = [tuple(slice(*sorted(random.integers(0, extent + 1, 2))) for extent in ours.shape) for _ in range(300)]
    with ThreadPoolExecutor(8) as pool:
        for key, found in zip(keys, pool.map(lambda key: ours[key], keys), strict=True):
            assert np.array_equal(found, expected[key])


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_read_any_number_of_threads_same_values_and_no_thread_left(path: Path, threads: int) -> None:
    with tamis.open(path, threads=threads) as file, h5py.File(path) as theirs:
        assert np.array_equal(file["accuracy3"][1:, ::2], theirs["accuracy3"][1:, ::2])
    assert not [each.name for each in threading.enumerate() if each.name.startswith("tamis_")]


@pytest.mark.matrix
@pytest.mark.parametrize("keywords", [KEYWORDS["deflate"], KEYWORDS["accuracy"]], ids=["deflate", "zfp"])
@pytest.mark.parametrize("threads", [1, 3])
def test_read_memory_beyond_the_result_a_few_chunks_for_each_job(
    tmp_path: Path, keywords: dict[str, Any], threads: int
) -> None:
    chunk_nbytes = 64 * 1024 * 4
    values = np.random.default_rng(0).standard_normal((64 * 100, 1024), dtype="f4")
    with h5py.File(tmp_path / "m.h5", "w") as file:
        file.create_dataset("x", data=values, chunks=(64, 1024), **keywords)
    out = np.empty_like(values)
    with tamis.open(tmp_path / "m.h5", threads=threads) as file:
        array = file["x"]
        assert array[0, 0] == pytest.approx(values[0, 0], abs=1e-3)
        tracemalloc.start()
        try:
            array.read(out)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert peak < (4 * threads + 1) * chunk_nbytes


# Others that take arrays.


def test_array_pickled_reads_the_same(path: Path) -> None:
    with tamis.open(path, threads=1) as file, h5py.File(path) as theirs:
        again = pickle.loads(pickle.dumps(file["rate3"]))
        assert np.array_equal(again[2:5], theirs["rate3"][2:5])
        assert repr(again) == repr(file["rate3"])


def test_array_in_a_process_of_its_own_reads_the_same(path: Path) -> None:
    needs.need_shared_memory()
    with tamis.open(path) as file, multiprocessing.get_context("spawn").Pool(1) as pool:
        assert np.array_equal(pool.apply(np.asarray, (file["rate3"],)), file["rate3"].read())


@pytest.mark.matrix
@pytest.mark.parametrize("scheduler", ["sync", "threads", "processes"])
def test_dask_from_array_as_h5py(path: Path, scheduler: str) -> None:
    with (
        tamis.open(path, threads=1) as file,
        h5py.File(path) as theirs,
        dask.config.set(scheduler=scheduler, num_workers=2),
    ):
        lazy = dask.array.from_array(file["accuracy3"], chunks=file["accuracy3"].chunks)
        assert lazy.chunksize == SHAPES["3"][1]
        assert np.array_equal(lazy[1:, ::3].compute(), theirs["accuracy3"][1:, ::3])
        assert np.allclose(lazy.sum().compute(), theirs["accuracy3"][()].sum())


def test_dask_name_of_an_array_the_same_until_the_file_changes(tmp_path: Path) -> None:
    def name() -> str:
        with tamis.open(tmp_path / "d.h5") as file:
            return str(dask.array.from_array(file["x"]).name)

    names = []
    for count in (5, 6):
        with h5py.File(tmp_path / "d.h5", "w") as file:
            file["x"] = np.zeros(count)
        names += [name(), name()]
    assert names[0] == names[1] != names[2] == names[3]


def test_xarray_variable_and_dataarray_as_h5py(path: Path) -> None:
    with tamis.open(path) as file, h5py.File(path) as theirs:
        array, expected = file["deflate3"], theirs["deflate3"][()]
        variable = xarray.Variable(("t", "y", "x"), array)
        assert np.array_equal(variable.values, expected)
        data = xarray.DataArray(array, dims=("t", "y", "x"))
        assert np.allclose(data.mean("t"), expected.mean(0), rtol=1e-5)
        lazy = xarray.DataArray(dask.array.from_array(array, chunks=array.chunks), dims=("t", "y", "x"))
        assert np.array_equal(lazy.isel(t=slice(2, 5), x=3).values, expected[2:5, :, 3])


def test_numpy_functions_take_an_array(path: Path) -> None:
    with tamis.open(path) as file, h5py.File(path) as theirs:
        assert np.array_equal(np.add(file["deflate2"], 1), theirs["deflate2"][()] + 1)
        assert np.concatenate([file["deflate2"], file["raw2"]]).shape == (46, 17)


WITHOUT_PLUGINS = """
import sys, h5py, numpy as np, tamis
from h5py import h5z
h5z.unregister_filter(32013)
with h5py.File(sys.argv[1]) as file:
    try:
        file["rate2"][0]
        sys.exit("h5py has the filter")
    except OSError:
        pass
with tamis.open(sys.argv[1]) as file:
    for rank in "1235":
        assert abs(file["accuracy" + rank][()] - file["raw" + rank][()]).max() <= 1e-3
        assert np.array_equal(file["rate" + rank][()], file["checked" + rank][()])
print("read")
"""


def test_read_where_hdf5_lacks_the_filter(path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT_PLUGINS, path], capture_output=True, text=True, check=False)
    assert done.stdout == "read\n", done.stderr
