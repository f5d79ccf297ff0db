"""U1: steps that other programs append come back within the tolerance; those that they leave out read as missing."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import h5py
import netCDF4
import numpy as np
import pytest
import xarray as xr
from numpy.typing import NDArray

import tamis
from tamis.hdf5 import Appender, write

Run = Callable[..., str]

ACCURACY = 0.1
FILTERS = f"zfp(accuracy={ACCURACY})|shuffle|deflate(4)|fletcher32"
EXTENTS = (0, 5, 8, 6)
FILLS = (-999.0, 9.969209968386869e36, float("nan"), None)
STEPS = ((4, 8), (5, 8), (6, 4), (6, 1))
"""Steps that are there at first, and steps of a chunk."""

WRITE = """
import json, sys
import numpy as np
netcdf = sys.argv[1] == "netCDF4"
if netcdf:
    import netCDF4
else:
    import h5py
for path, axis, later, end in json.loads(open(sys.argv[2]).read()):
    for step in later:
        if netcdf:
            with netCDF4.Dataset(path, "a") as nc:
                nc.set_auto_maskandscale(False)
                v = nc["T"]
                v[(slice(None),) * axis + (step,)] = np.float32(300 + step)
        else:
            with h5py.File(path, "a") as file:
                v = file["T"]
                v.resize(max(v.shape[axis], step + 1), axis)
                v[(slice(None),) * axis + (step,)] = np.float32(300 + step)
    if not netcdf:
        with h5py.File(path, "a") as file:
            file["T"].resize(end)
assert "tamis" not in sys.modules
"""

READ = """
import json, sys
import h5py, hdf5plugin, numpy as np
for path, *_ in json.loads(open(sys.argv[1]).read()):
    with h5py.File(path) as file:
        np.save(path + ".npy", file["T"][()])
assert "tamis" not in sys.modules
"""


class Case(NamedTuple):
    """A variable that is made longer, and what it should hold in the end."""

    path: Path
    axis: int
    later: tuple[int, ...]
    expected: NDArray[Any]
    known: NDArray[np.bool_]
    exact: bool

    def job(self) -> tuple[Any, ...]:
        return str(self.path), self.axis, self.later, self.expected.shape


def field(shape: tuple[int, ...], fill: float | None) -> NDArray[Any]:
    """Return values near 280, some of them missing where a fill value is there."""
    values = (280 + 10 * np.sin(np.arange(np.prod(shape)) / 9)).reshape(shape).astype("f4")
    if fill is not None:
        values.reshape(-1)[::7] = fill
    return values


def make_netcdf(path: Path, values: NDArray[Any], axis: int, chunks: tuple[int, ...], fill: float | None) -> None:
    names = "tzyx"[: values.ndim]
    with netCDF4.Dataset(path, "w") as nc:
        nc.set_auto_mask(False)
        for at, (name, extent) in enumerate(zip(names, values.shape, strict=True)):
            nc.createDimension(name, None if at == axis else extent)
        v = nc.createVariable("T", "f4", tuple(names), chunksizes=chunks, zlib=True, fill_value=fill)
        if values.size:
            v[:] = values


def make_hdf5(path: Path, values: NDArray[Any], axis: int, chunks: tuple[int, ...], fill: float | None) -> None:
    with h5py.File(path, "w") as file:
        most = [None if at in (axis, values.ndim - 1) else extent for at, extent in enumerate(values.shape)]
        kind = {} if fill is None else {"fillvalue": np.float32(fill)}
        file.create_dataset("T", data=values, chunks=chunks, maxshape=most, compression=1, **kind)


def by_repack(missing: Any) -> Callable[..., None]:
    def store(make: Callable[..., None], path: Path, values: NDArray[Any], axis: int, *rest: Any) -> None:
        make(path.with_suffix(".in"), values, axis, *rest)
        result = tamis.repack(path.with_suffix(".in"), path, {"/T": FILTERS}, missing=missing)
        assert result.datasets[0].largest_error <= ACCURACY

    return store


def empty(make: Callable[..., None], path: Path, values: NDArray[Any], axis: int, *rest: Any) -> None:
    """Make a variable without steps, with the filters of the others."""
    make(path.with_suffix(".in"), values.take([], axis), axis, *rest)
    tamis.repack(path.with_suffix(".in"), path, {"/T": FILTERS})


def by_write(make: Callable[..., None], path: Path, values: NDArray[Any], axis: int, *rest: Any) -> None:
    empty(make, path, values, axis, *rest)
    with h5py.File(path, "r+") as file:
        file["T"].resize(values.shape)
        write(file["T"], values)


def by_appender(make: Callable[..., None], path: Path, values: NDArray[Any], axis: int, *rest: Any) -> None:
    empty(make, path, values, axis, *rest)
    with h5py.File(path, "r+") as file, Appender(file["T"], axis=axis) as appender:
        appender.append(values)


STORES = {
    "repack-exact": by_repack("exact"),
    "repack-companion": by_repack("mask"),
    "write": by_write,
    "Appender": by_appender,
}


def cases(folder: Path, store: Callable[..., None], netcdf: bool) -> list[Case]:
    """Make every second combination of rank, fill value and steps, which has all pairs; other stores have the rest."""
    found = []
    orders = itertools.cycle(itertools.permutations(range(3)))
    number = [*STORES.values()].index(store)
    every = itertools.product(range(1, 5), enumerate(FILLS), enumerate(STEPS))
    for rank, (at_fill, fill), (at_steps, (steps, step)) in every:
        if (rank == step == 1) or (rank + at_fill + at_steps + number) % 2:  # zfp has no block of one
            continue
        axis = 0 if netcdf or rank != 3 else 1
        shape = [steps if at == axis else EXTENTS[at] or 5 for at in range(rank)]
        chunks = tuple(step if at == axis else min(4, extent) for at, extent in enumerate(shape))
        values = field(tuple(shape), fill)
        path = folder / f"{rank}-{fill}-{steps}-{step}.nc"
        store(make_netcdf if netcdf else make_hdf5, path, values, axis, chunks, fill)
        # In any order; some lie in the last chunk and others beyond it, and all leave steps out.
        later = tuple(steps + each * step + 1 for each in next(orders))
        end = [max(later) + 1 if at == axis else extent for at, extent in enumerate(shape)]
        if not netcdf:
            end[-1] += 2
        # netCDF has a fill value for variables that name none.
        rest = fill if fill is not None else netCDF4.default_fillvals["f4"] if netcdf else 0
        expected = np.full(end, rest, "f4")
        known = np.zeros(end, bool)
        inside = tuple(map(slice, shape))
        expected[inside], known[inside] = values, True
        for each in later:
            at = (*inside[:axis], each, *inside[axis + 1 :]) if rank > 1 or netcdf else (each,)
            expected[at], known[at] = 300 + each, True
        found.append(Case(path, axis, later, expected, known, fill is not None or netcdf))
    return found


@pytest.mark.matrix
@pytest.mark.peer
@pytest.mark.parametrize("program", ["netCDF4", "h5py"])
@pytest.mark.parametrize("store", STORES)
def test_u01_steps_that_are_left_out_read_as_missing(tmp_path: Path, python: Run, store: str, program: str) -> None:
    made = cases(tmp_path, STORES[store], netcdf=program == "netCDF4")
    jobs = tmp_path / "jobs.json"
    jobs.write_text(json.dumps([each.job() for each in made]))
    python(WRITE, program, jobs, env={"HDF5_PLUGIN_PATH": str(tamis.plugin_path())})
    python(READ, jobs)
    for each in made:
        found = np.load(f"{each.path}.npy")
        assert found.shape == each.expected.shape, each.path
        # Where a companion knows of missing values, all other readers see values that fill the gaps.
        filled = is_missing(each.expected) & each.known if "companion" in store else np.zeros(found.shape, bool)
        assert_as_expected(each, found, ~filled)
        with tamis.open(each.path) as file:
            assert_as_expected(each, file["T"][()], np.ones(found.shape, bool))


def is_missing(values: NDArray[Any]) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = ~(np.abs(values) < 900)
    return found


def assert_as_expected(case: Case, found: NDArray[Any], looked_at: NDArray[np.bool_]) -> None:
    left_out = ~case.known if case.exact else np.zeros(found.shape, bool)
    bits = [values[left_out].view("u4") for values in (found, case.expected)]
    np.testing.assert_array_equal(*bits, err_msg=f"{case.path}")
    gaps = is_missing(case.expected)
    np.testing.assert_array_equal(is_missing(found)[looked_at], gaps[looked_at], err_msg=f"{case.path}")
    # Chunks that are written again go through zfp at each of the writes.
    valid = looked_at & ~gaps
    assert np.abs(found[valid] - case.expected[valid]).max() <= 4 * ACCURACY, case.path


PIPELINES = (
    FILTERS,
    "zfp(rate=9)|shuffle|deflate(1)",
    "zfp(precision=14)",
    "zfp(reversible=true)",
    "shuffle|deflate(1)",
    "none",
)


@pytest.mark.matrix
@pytest.mark.parametrize("seed", range(60))
def test_u01_any_array_that_is_made_longer_reads_as_its_fill_value(tmp_path: Path, seed: int) -> None:
    """Arrays of any type, rank, chunks and room to grow, stored by repack and by write."""
    random = np.random.default_rng(seed)
    rank = int(random.integers(1, 5))
    shape = random.integers(1, 11, rank)
    room = random.integers(0, 12, rank)
    most = tuple(None if random.random() < 0.4 else int(n + more) for n, more in zip(shape, room, strict=True))
    chunks = tuple(
        int(min(random.integers(2, 9), n if end is None else end)) for n, end in zip(shape, most, strict=True)
    )
    chunks = tuple(max(step, 2) if end is None or end > 1 else 1 for step, end in zip(chunks, most, strict=True))
    dtype = np.dtype(random.choice(["f4", "f8", "i4", "i8"]))
    fill = random.choice([None, -999, 0, 12345, float("nan") if dtype.kind == "f" else 7])
    text = str(random.choice(PIPELINES))
    if dtype.kind == "i":
        text = text.replace("accuracy=0.1", "accuracy=4")
    values = (280 + 9 * np.sin(np.arange(np.prod(shape)) / 7)).reshape(shape).astype(dtype)
    kind = {} if fill is None else {"fillvalue": np.array(fill, dtype)[()]}
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", data=values, chunks=chunks, maxshape=most, **kind)
        write(file, "y", values, filters=text, chunks=chunks, maxshape=most, **kind)
    tamis.repack(tmp_path / "a.h5", tmp_path / "b.h5", {"x": text})
    longer = [int(n + random.integers(0, 10)) if end is None else end for n, end in zip(shape, most, strict=True)]
    for path, name in ((tmp_path / "b.h5", "x"), (tmp_path / "a.h5", "y")):
        with h5py.File(path, "r+") as file:
            file[name].resize(longer)
        with h5py.File(path) as file:
            found = file[name][()]
        beyond = np.ones(longer, bool)
        beyond[tuple(map(slice, shape))] = False
        expected = np.full(int(beyond.sum()), 0 if fill is None else fill, dtype)
        if fill is None and "accuracy" in text:
            assert np.abs(found[beyond]).max(initial=0) <= (0.1 if dtype.kind == "f" else 4)
        else:
            assert found[beyond].tobytes() == expected.tobytes(), (text, fill, shape, most, chunks)
        inside = found[tuple(map(slice, shape))]
        if "rate" not in text and "precision" not in text:
            bound = 0 if "accuracy" not in text else 0.1 if dtype.kind == "f" else 4
            assert np.abs(inside.astype("f8") - values).max() <= bound


@pytest.mark.parametrize("dtype", [[("a", "i2"), ("b", "f8")], "S7", ">f4", "?", "u1"], ids=str)
def test_u01_values_of_any_type_that_are_left_out_read_as_the_fill_value(tmp_path: Path, dtype: Any) -> None:
    values = np.zeros((5, 3), dtype)
    fill = np.ones((), dtype)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for name, kind in (("x", {"fillvalue": fill}), ("y", {})):
            file.create_dataset(name, data=values, chunks=(4, 3), maxshape=(None, 3), **kind)
    tamis.repack(tmp_path / "a.h5", tmp_path / "b.h5", {"*": "shuffle|deflate(4)"}, min_size=0, larger=True)
    with h5py.File(tmp_path / "b.h5", "r+") as file:
        for name, rest in (("x", fill), ("y", np.zeros((), dtype))):
            file[name].resize((8, 3))
            np.testing.assert_array_equal(file[name][:5], values)
            assert (file[name][5:] == rest).all()


MIXTURES = Path(__file__).with_name("mixtures.py")
COUNT, CHUNK = 8, 4
SHAPE = (COUNT, 16, 24)

APPEND = """
import sys
import netCDF4, numpy as np
path, values, order = sys.argv[1], np.load(sys.argv[2]), [int(each) for each in sys.argv[3].split(",")]
for step in order:
    with netCDF4.Dataset(path, "a") as nc:
        nc.set_auto_maskandscale(False)
        nc["T"][8 + step] = values[step]
assert "tamis" not in sys.modules
"""


def appended(dtype: str) -> np.ndarray:
    return (280 + 10 * np.random.default_rng(0).normal(size=SHAPE)).astype(dtype)


def make(path: Path, dtype: str, fill: Any) -> None:
    with netCDF4.Dataset(path, "w") as nc:
        for name, extent in zip(("time", "y", "x"), (None, *SHAPE[1:]), strict=True):
            nc.createDimension(name, extent)
        v = nc.createVariable("T", dtype, ("time", "y", "x"), chunksizes=(CHUNK, 16, 24), zlib=True, fill_value=fill)
        v[:] = appended(dtype)


def append(python: Run, path: Path, values: np.ndarray, order: str) -> None:
    np.save(path.with_suffix(".npy"), values)
    plugins = {"HDF5_PLUGIN_PATH": str(tamis.plugin_path())}
    python(APPEND, path, path.with_suffix(".npy"), order, env=plugins)


def assert_appended(path: Path, values: np.ndarray, bound: float, fill: Any = None) -> None:
    with h5py.File(path) as file:
        found = file["T"][COUNT:]
    assert np.abs(found.astype("f8") - values.astype("f8")).max() <= bound
    if fill is not None:
        np.testing.assert_array_equal(found == fill, values == fill)


@pytest.mark.matrix
@pytest.mark.parametrize("order", ["0,1,2,3,4,5,6,7", "7,3,6,2,5,1,4,0"])
@pytest.mark.parametrize(
    ("dtype", "fill", "accuracy"),
    [("f4", None, 0.01), ("f4", -999, 0.5), ("f4", 1e20, 0.1), ("f8", 0, 0.5), ("i4", None, 300), ("i4", -99, 300)],
)
def test_u01_steps_appended_by_netcdf4_to_a_repacked_file_are_kept(
    tmp_path: Path, python: Run, dtype: str, fill: Any, accuracy: float, order: str
) -> None:
    make(tmp_path / "a.nc", dtype, fill)
    tamis.repack(tmp_path / "a.nc", tmp_path / "b.nc", {"/T": f"zfp(accuracy={accuracy})|shuffle|deflate(4)"})
    values = appended(dtype)[::-1] + 1
    if fill is not None:
        values[:, 3:9, 5:20] = fill
    append(python, tmp_path / "b.nc", values, order)
    # Chunks whose other steps are of like size go through zfp at each of the writes.
    assert_appended(tmp_path / "b.nc", values, CHUNK * accuracy, fill)


@pytest.mark.matrix
@pytest.mark.parametrize("rechunked", [False, True])
@pytest.mark.parametrize("program", ["h5repack", "nccopy"])
def test_u01_steps_appended_after_another_copy_are_kept(
    tmp_path: Path, python: Run, tool: Run, program: str, rechunked: bool
) -> None:
    make(tmp_path / "a.nc", "f4", -999)
    # nccopy of netCDF-C 4.9.0 passes on zfp where it is alone.
    tamis.repack(tmp_path / "a.nc", tmp_path / "b.nc", {"/T": "zfp(accuracy=0.5)"}, checksum=False)
    chunks = {"h5repack": ["-l", "T:CHUNK=4x8x24"], "nccopy": ["-c", "T:4,8,24"]}[program] if rechunked else []
    tool(program, *chunks, tmp_path / "b.nc", tmp_path / "c.nc")
    values = appended("f4") + 1
    values[:, 3:9, 5:20] = -999
    append(python, tmp_path / "c.nc", values, "1,0,3,2,5,4,7,6")
    with h5py.File(tmp_path / "c.nc") as file:
        words = file["T"].id.get_create_plist().get_filter(0)[2]
    # nccopy (4.9.0) leaves HDF5's fill value as it is, and writes the attribute only.
    fill = -999 if program == "h5repack" else None
    assert_appended(tmp_path / "c.nc", values, CHUNK * 0.5, fill)
    assert tamis.filters.StoredZfp.parse(tuple(words)).fill == fill, "h5repack passes the note on"


def test_u01_xarray_writes_within_the_bound(tmp_path: Path) -> None:
    values = appended("f4")
    values[5, 3, 7] = 3e8
    dataset = xr.Dataset({"T": (("time", "y", "x"), values)})
    encoding = tamis.encoding(dataset, {"T": "zfp(accuracy=0.1)"})
    dataset.to_netcdf(tmp_path / "a.nc", engine="h5netcdf", encoding=encoding)
    with xr.open_dataset(tmp_path / "a.nc", engine="h5netcdf") as back:
        assert np.abs(back["T"].values.astype("f8") - values.astype("f8")).max() <= 0.1


@pytest.mark.check
@pytest.mark.peer
def test_u01_mixtures_of_values_by_every_writer_are_kept(python: Run) -> None:
    """A small part of what `tests/plugin/mixtures.py` does."""
    printed = python(MIXTURES, "200000", "7")
    assert "no value over the bound, no valid value missing, no missing one valid" in printed
    done = dict(re.findall(r"^(\w.*?) +([0-9,]+)$", printed, re.MULTILINE))
    assert min(int(done[name].replace(",", "")) for name in ("chunks by zfp", "chunks without zfp")) > 20
