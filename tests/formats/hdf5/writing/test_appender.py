"""Steps appended as a simulation makes them: partial chunks, restarts, errors."""

from __future__ import annotations

import re
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import netCDF4
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tamis import BoundError, DataError, FileError, MissingFilterError, ParameterError
from tamis.formatting import plural
from tamis.hdf5 import Appender, create_dataset, read_chunk, write

Make = Callable[..., Any]
SMALL = "zfp(accuracy=0.1)"
LOSSLESS_REST = f"{SMALL}|shuffle|deflate(4)|fletcher32"


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("filters", [SMALL, LOSSLESS_REST, "shuffle|deflate", f"{SMALL}!", "zfp(rate=16)", "none"])
def test_append_one_step_at_a_time_along_any_axis(
    steps: Make, filters: str, threads: int, axis: int, file: h5py.File
) -> None:
    values = np.moveaxis(steps(11), 0, axis)
    shape, maxshape, chunks = ([*np.shape(np.take(values, 0, axis))] for _ in range(3))
    at = axis % 3
    shape.insert(at, 0)
    maxshape.insert(at, None)  # type: ignore[arg-type]
    chunks[:] = [8, 8]
    chunks.insert(at, 4)
    made = create_dataset(file, "x", shape, "f4", filters=filters, chunks=chunks, maxshape=maxshape)
    with Appender(made, axis, threads=threads) as appender:
        for number in range(11):
            step = np.take(values, number, axis)
            appender.append(step)
            step[...] = np.nan  # the simulation goes on with its array
            assert (appender.steps, made.shape[at]) == (number + 1, (number + 1) // 4 * 4)
            assert appender.waiting == (number + 1) % 4
    assert made.shape == values.shape
    for found in (made, h5py.File(file.filename)["x"]):
        assert np.abs(found[()] - values).max() <= 0.1


@pytest.mark.check
@given(st.lists(st.integers(0, 9), max_size=6), st.lists(st.booleans(), min_size=6, max_size=6))
def test_append_in_any_portions_and_flushes_same_values_as_at_once(
    steps: Make, portions: list[int], flushes: list[bool]
) -> None:
    """Whatever is flushed in between, full chunks hold what they would hold if they were written once."""
    values = steps(max(sum(portions), 1), (5,))
    with h5py.File("memory", "w", driver="core", backing_store=False) as file:
        made = create_dataset(file, "x", (0, 5), "f4", filters=LOSSLESS_REST, chunks=(4, 5), maxshape=(None, 5))
        done = 0
        appender = Appender(made)
        for portion, flush in zip(portions, flushes, strict=False):
            appender.append(values[done : done + portion])
            done += portion
            if flush:
                appender.close()  # and a restart
                appender = Appender(made)
        appender.close()
        full = done // 4 * 4
        assert made.shape == (done, 5)
        np.testing.assert_array_equal(made[full:], values[full:done])
        if full:
            np.testing.assert_array_equal(made[:full], write(file, "y", values[:full], filters=SMALL, chunks=(4, 5)))


def test_append_bytes_of_the_file_same_for_any_number_of_threads(steps: Make, empty: Make, tmp_path: Path) -> None:
    found = set()
    for threads in (1, 2, 8):
        with h5py.File(tmp_path / f"{threads}.h5", "w") as file, Appender(empty(file), threads=threads) as appender:
            appender.append(steps(10))
        found.add((tmp_path / f"{threads}.h5").read_bytes())
    assert len(found) == 1


def test_partial_chunk_stored_without_loss_and_its_cost_said(
    steps: Make, empty: Make, masks: Make, file: h5py.File
) -> None:
    made = empty(file, LOSSLESS_REST)
    with Appender(made) as appender:
        assert appender.partial is None
        appender.append(steps(6))
        assert appender.partial is None
        appender.flush()
        partial = appender.partial
        assert partial is not None
        assert (partial.steps, partial.full, partial.raw_nbytes, partial.lossless) == (2, 4, 2 * 9 * 10 * 4, True)
        assert str(partial).endswith("bytes for 720 of values, stored without loss until it is full")
        assert str(partial).startswith(f"2 of 4 steps: {partial.nbytes} bytes")
        sizes: dict[tuple[int, ...], int] = {}
        made.id.chunk_iter(lambda each: sizes.update({each.chunk_offset: each.size}))
        assert partial.nbytes == sum(size for origin, size in sizes.items() if origin[0] == 4)
        assert masks(made) == [0b0110] * 4 + [0b0001] * 4
        np.testing.assert_array_equal(made[4:], steps(6)[4:])
        appender.append(steps(8)[6:])
        assert appender.partial is None
    assert masks(made) == [0b0110] * 8


def test_partial_chunk_beyond_the_end_reads_as_fill_value_when_something_else_grows_it(
    steps: Make, empty: Make, file: h5py.File
) -> None:
    made = empty(file, fillvalue=-1)
    with Appender(made) as appender:
        appender.append(steps(2))
    made.resize(4, 0)
    assert (made[2:] == -1).all()


def test_partial_chunk_of_the_same_size_as_the_full_one_gets_its_mask(
    steps: Make, masks: Make, file: h5py.File
) -> None:
    """D20: HDF5 keeps the mask of a chunk that is written over with the same size."""
    made = create_dataset(file, "x", (0, 16), "f4", filters="zfp(rate=32)", chunks=(4, 16), maxshape=(None, 16))
    values = steps(4, (16,))
    for number in range(4):
        with Appender(made) as appender:
            appender.append(values[number])
        assert masks(made) == [1 if number < 3 else 0]
        assert made.id.get_storage_size() == 256
        np.testing.assert_allclose(made[()], values[: number + 1], rtol=1e-5)
    with h5py.File(file.filename) as again:
        np.testing.assert_allclose(again["x"], values, rtol=1e-5)


@pytest.mark.parametrize("chunks", [1, 10], ids=["at the end", "early"])
def test_append_mostly_without_loss_warns_once_and_text_counts(file: h5py.File, chunks: int) -> None:
    steps = np.linspace(0, 1, chunks * 4 * 64, dtype="f4").reshape(-1, 8, 8)
    steps[::4, 0, 0] = np.nan
    target = create_dataset(
        file, "x", (0, 8, 8), "f4", maxshape=(None, 8, 8), chunks=(4, 8, 8), filters="zfp(accuracy=0.1)|deflate(1)"
    )
    said = "stored without zfp, which takes more room"
    with pytest.warns(UserWarning, match=said) as seen, Appender(target) as appender:
        appender.append(steps)
    assert len(seen) == 1
    assert seen[0].filename == __file__
    assert str(appender).endswith(
        f"x: {4 * chunks} steps, {plural(chunks, 'full chunk')} written, {chunks} of them without loss"
    )


def test_append_mostly_with_loss_or_without_lossy_filters_does_not_warn(file: h5py.File) -> None:
    steps = np.linspace(0, 1, 16 * 64, dtype="f4").reshape(-1, 8, 8)
    steps[0, 0, 0] = np.nan
    options = {"maxshape": (None, 8, 8), "chunks": (4, 8, 8)}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name, filters in {"x": "zfp(accuracy=0.1)|deflate(1)", "y": "shuffle|deflate(1)"}.items():
            target = create_dataset(file, name, (0, 8, 8), "f4", filters=filters, **options)
            with Appender(target) as appender:
                appender.append(steps[:15])
                assert str(appender).endswith("3 steps in memory")
            assert ("1 of them without loss" in str(appender)) == (name == "x")


@pytest.mark.parametrize("value", [np.nan, 9e36])
def test_append_values_that_zfp_cannot_keep_go_lossless(
    steps: Make, empty: Make, masks: Make, value: float, file: h5py.File
) -> None:
    made = empty(file)
    values = steps(8)
    values[5, 0, 0] = value
    with Appender(made) as appender:
        appender.append(values)
    assert masks(made) == [0, 0, 0, 0, 1, 0, 0, 0]
    np.testing.assert_array_equal(made[5, 0, 0], values[5, 0, 0])
    assert np.nanmax(np.abs(made[()] - values)) <= 0.1


@pytest.mark.parametrize(("value", "error"), [(np.nan, DataError), (9e36, BoundError)])
def test_append_step_that_a_required_filter_refuses_is_not_taken(
    steps: Make, empty: Make, value: float, error: type[Exception], file: h5py.File
) -> None:
    made = empty(file, f"{SMALL}!")
    good = steps(12)
    bad = good[3].copy()
    bad[1, 1] = value
    with Appender(made) as appender:
        appender.append(good[:3])
        with pytest.raises(error, match=r"/x: chunk at \(0, 0, 0\): .*(expected|cannot keep)"):
            appender.append(bad)
        assert (appender.steps, made.shape[0]) == (3, 0)
        appender.append(good[3:])
    assert np.abs(made[()] - good).max() <= 0.1


def fail_in(appender: Appender, values: NDArray[Any]) -> None:
    with appender:
        appender.append(values)
        raise ZeroDivisionError


def test_append_error_in_the_block_writes_what_was_appended(steps: Make, empty: Make, file: h5py.File) -> None:
    made = empty(file)
    appender = Appender(made)
    with pytest.raises(ZeroDivisionError):
        fail_in(appender, steps(5))
    np.testing.assert_array_equal(made[4], steps(5)[4])
    with pytest.raises(ParameterError, match="the appender is closed"):
        appender.append(steps(1))
    appender.close()


def test_append_error_in_the_block_not_hidden_by_one_on_closing(empty: Make, file: h5py.File) -> None:
    made = empty(file, f"{SMALL}!")
    with pytest.raises(ZeroDivisionError) as raised:
        fail_in(Appender(made), np.full((9, 10), np.nan))
    assert "1 earlier step could not be written" in raised.value.__notes__[0]


def test_append_dataset_changed_by_something_else_refused(steps: Make, empty: Make, file: h5py.File) -> None:
    made = empty(file)
    appender = Appender(made)
    appender.append(steps(3))
    made.resize(2, 0)
    with pytest.raises(FileError, match=r"expected 0 steps in the file, found shape \(2, 9, 10\): something else"):
        appender.append(steps(1))
    made.resize(0, 0)
    appender.close()
    np.testing.assert_array_equal(made, steps(3))


def test_append_file_closed_meanwhile_says_so_and_takes_no_more(steps: Make, empty: Make, tmp_path: Path) -> None:
    file = h5py.File(tmp_path / "a.h5", "w")
    appender = Appender(empty(file))
    appender.append(steps(3))
    file.close()
    with pytest.raises(FileError, match="the file was closed before the appender"):
        appender.close()
    with pytest.raises(ParameterError, match="the appender failed to close, and takes no more steps"):
        appender.append(steps(1))
    assert appender.waiting == 3
    with pytest.warns(UserWarning, match="3 steps appended and never written: close the appender"):
        del appender


def test_append_shapes_and_types_that_do_not_fit_refused(steps: Make, empty: Make, file: h5py.File) -> None:
    with Appender(empty(file, maxshape=(8, 9, 10))) as appender:
        for wrong in (np.zeros((9, 11)), np.zeros((2, 9, 11)), np.zeros(9), np.zeros(()), np.zeros((1, 1, 9, 10))):
            with pytest.raises(ParameterError, match=r"expected a step of shape \(9, 10\), or n .* as \(n, 9, 10\)"):
                appender.append(wrong)
        with pytest.raises(DataError, match="step 0: expected values of float32, got complex128"):
            appender.append(np.zeros((9, 10), "c16"))
        with pytest.raises(DataError, match="step 0: masked values need a fill value"):
            appender.append(np.ma.masked_less(steps(1)[0], 0))
        with pytest.raises(ParameterError, match=r"can have at most 8 steps, and has .*: 9 more do not fit"):
            appender.append(steps(9))
        assert appender.steps == 0
        appender.append(steps(0))
        appender.append(steps(8).astype("f8"))
        assert repr(appender).endswith("/x: 8 steps, 0 waiting>")


def test_append_masked_values_become_the_fill_value(steps: Make, empty: Make, file: h5py.File) -> None:
    made = empty(file, fillvalue=9e36)
    step = np.ma.masked_less(steps(1)[0], 0)
    with Appender(made) as appender:
        appender.append(step)
    np.testing.assert_array_equal(made[0], step.filled(np.float32(9e36)))


def test_append_missing_values_are_what_they_were(steps: Make, empty: Make, masks: Make, file: h5py.File) -> None:
    made = empty(file, fillvalue=-99.9)
    values = steps(8)
    values[5, 0, 0] = np.float32(-99.9)
    with Appender(made) as appender:
        appender.append(values)
    assert made[5, 0, 0] == values[5, 0, 0]
    assert masks(made) == [0, 0, 0, 0, 1, 0, 0, 0]


def test_appender_of_what_cannot_grow_refused(empty: Make, file: h5py.File) -> None:
    made = empty(file)
    for axis in (3, -4, 1.0, True):
        with pytest.raises(ParameterError, match="expected an axis of"):
            Appender(made, axis)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="the dataset cannot grow along axis 1"):
        Appender(made, 1)
    with pytest.raises(ParameterError, match="the dataset has no chunks"):
        Appender(file.create_dataset("y", (4,), "f4"))
    flat = create_dataset(file, "z", (0, 0), "f4", maxshape=(None, None), chunks=(4, 4))
    with pytest.raises(ParameterError, match="expected steps with values"):
        Appender(flat)


@pytest.mark.parametrize("fill", [None, -9.0])
def test_append_through_a_required_filter_that_libhdf5_lacks_goes_unless_it_needs_it(
    fill: float | None, file: h5py.File
) -> None:
    made = create_dataset(file, "x", (0,), "f4", filters="zstd(3)!", chunks=(4,), maxshape=(None,), fillvalue=fill)
    if fill is not None:
        with pytest.raises(MissingFilterError, match=r"HDF5 lacks zstd\(3\), and extends no dataset"):
            Appender(made)
        return
    with Appender(made) as appender:
        appender.append(np.arange(6, dtype="f4"))
    assert read_chunk(made, (4,))[:2].tolist() == [4, 5]


def test_append_scalars_along_the_only_axis(file: h5py.File) -> None:
    made = create_dataset(file, "t", (0,), "f8", maxshape=(None,), chunks=(4,), filters="zfp(reversible=true)")
    with Appender(made) as appender:
        for number in range(6):
            appender.append(0.1 * number)
        appender.append([0.6, 0.7, 0.8])
    np.testing.assert_array_equal(made, [0.1 * n for n in range(6)] + [0.6, 0.7, 0.8])


def test_appender_partial_chunk_reads_right_at_once(steps: Make, file: h5py.File) -> None:
    """HDF5 2.0 takes the chunk that was written last for one with mask 0, as long as the dataset is open."""
    made = create_dataset(file, "x", (0, 8), "f4", maxshape=(None, 8), chunks=(4, 8), filters=SMALL)
    values = steps(6, (8,))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        appender = Appender(made)
        for number, step in enumerate(values, start=1):
            appender.append(step)
            appender.flush()
            assert np.abs(made[()] - values[:number]).max() <= 0.1
        appender.close()


FULL_DISK = """
import resource, sys
import h5py, numpy as np
from tamis.errors import FileError, ParameterError
from tamis.hdf5 import Appender, create_dataset, read_chunk, write
noise = np.random.default_rng(0).standard_normal((64, 64, 64)).astype("f4")
file = h5py.File(sys.argv[1], "w")
made = create_dataset(file, "x", (0, 64, 64), "f4", maxshape=(None, 64, 64), chunks=(4, 64, 64))
appender = Appender(made)
appender.append(noise[:4])
file.flush()
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
try:
    write(file, "y", noise, chunks=(16, 64, 64))
except FileError as error:
    print("write:", *str(error).split())
print("y" in file)
try:
    appender.append(noise)
except FileError as error:
    print("append:", *str(error).split())
try:
    appender.append(noise)
except ParameterError as error:
    print("again:", error)
sys.stdout.flush()
import os; os._exit(0)
"""


def test_full_disk_said_by_write_and_append(tmp_path: Path) -> None:
    command = [sys.executable, "-c", FULL_DISK, str(tmp_path / "a.h5")]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert re.match(r"write: .*a\.h5: y: chunk at \(\d+, 0, 0\): HDF5 cannot write: .*", said[0])
    assert said[1] == "False"
    assert re.match(r"append: .*a\.h5: /x: HDF5 cannot write: .*", said[2])
    assert said[3].endswith("the appender failed to write: the last steps in the file may be incomplete")


def test_append_to_a_file_of_netcdf_read_back_by_it(steps: Make, tmp_path: Path) -> None:
    with netCDF4.Dataset(tmp_path / "a.nc", "w") as made:
        made.createDimension("time", None)
        made.createDimension("x", 90)
        made.createVariable("time", "f8", ("time",), chunksizes=(4,))
        made.createVariable("TS", "f4", ("time", "x"), chunksizes=(4, 90), zlib=True, fill_value=-999.0)
    values = steps(6).reshape(6, 90)
    values[2, 3] = -999
    with h5py.File(tmp_path / "a.nc", "r+") as file, Appender(file["TS"]) as ts, Appender(file["time"]) as time:
        for number, step in enumerate(values):
            ts.append(step)
            time.append(float(number))
    with netCDF4.Dataset(tmp_path / "a.nc") as found:
        assert found["time"][:].tolist() == [0, 1, 2, 3, 4, 5]
        assert np.ma.getmaskarray(found["TS"][:]).sum() == 1
        np.testing.assert_array_equal(found["TS"][:].filled(-999), values)
