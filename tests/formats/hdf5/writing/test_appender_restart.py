"""Appending goes on from a partial last chunk."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import tamis
from tamis import FileError, ParameterError
from tamis.hdf5 import Appender

Make = Callable[..., Any]
SMALL = "zfp(accuracy=0.1)"
LOSSLESS_REST = f"{SMALL}|shuffle|deflate(4)|fletcher32"


@pytest.mark.parametrize("filters", [SMALL, LOSSLESS_REST])
@pytest.mark.parametrize("chunks", [(4, 8, 8), (4, 9, 10)])
def test_restart_from_partial_chunk_is_exact(
    steps: Make, empty: Make, masks: Make, filters: str, chunks: tuple[int, ...], tmp_path: Path
) -> None:
    for path, stops in ((tmp_path / "once.h5", [11]), (tmp_path / "often.h5", [2, 3, 6, 7, 11])):
        with h5py.File(path, "w") as file:
            empty(file, filters, chunks=chunks)
        done = 0
        for stop in stops:
            with h5py.File(path, "r+") as file, Appender(file["x"]) as appender:
                assert appender.steps == done
                appender.append(steps(11)[done:stop])
                done = stop
    with h5py.File(tmp_path / "once.h5") as once, h5py.File(tmp_path / "often.h5") as often:
        np.testing.assert_array_equal(once["x"], often["x"])
        assert masks(once["x"]) == masks(often["x"])


def by_h5py(steps: Make, file: h5py.File, count: int, **options: Any) -> h5py.Dataset:
    """Make a dataset that ends in a partial chunk with loss, as other writers do."""
    keywords: dict[str, Any] = dict(tamis.Zfp(accuracy=0.1)) | options
    file.create_dataset("x", data=steps(count), chunks=(4, 8, 8), maxshape=(None, 9, 10), **keywords)
    path = file.filename
    file.close()
    return h5py.File(path, "r+")["x"]


def test_restart_from_partial_chunk_with_loss_adds_no_error(steps: Make, masks: Make, file: h5py.File) -> None:
    """D15: values that were encoded twice are off by up to twice the bound."""
    made = by_h5py(steps, file, 6)
    before = made[()]
    assert np.abs(before[4:] - steps(6)[4:]).max() > 0
    with Appender(made) as appender:
        assert appender.partial is not None
        assert not appender.partial.lossless
        appender.append(steps(12)[6:])
    np.testing.assert_array_equal(made[:6], before)
    assert np.abs(made[()] - steps(12)).max() <= 0.1
    assert masks(made) == [0] * 4 + [1] * 4 + [0] * 4  # that chunk stays without loss, those after it need not


def test_restart_with_recode_encodes_again(steps: Make, masks: Make, file: h5py.File) -> None:
    made = by_h5py(steps, file, 6)
    with Appender(made, recode=True) as appender:
        appender.append(steps(12)[6:])
    assert masks(made) == [0] * 12
    assert np.abs(made[()] - steps(12)).max() <= 0.2


def test_restart_from_partial_chunk_with_loss_closed_before_it_is_full_warns(steps: Make, file: h5py.File) -> None:
    made = by_h5py(steps, file, 5)
    before = made[()]
    with pytest.warns(UserWarning, match="the last 2 steps are lossy already"), Appender(made) as appender:
        appender.append(steps(6)[5])
    np.testing.assert_array_equal(made[:5], before)


def test_restart_from_partial_chunk_with_loss_required_refused_unless_recode(
    steps: Make, empty: Make, masks: Make, file: h5py.File
) -> None:
    made = empty(file, f"{SMALL}!")
    with Appender(made) as appender:
        appender.append(steps(6))
        appender.flush()
        assert appender.partial is not None
        assert not appender.partial.lossless
        appender.append(steps(7)[6:])  # in the same run the values themselves are still there
    with pytest.raises(ParameterError, match="cannot continue a partial chunk of 3 steps without more error"):
        Appender(made)
    with Appender(made, recode=True) as appender:
        appender.append(steps(8)[7])
    assert np.abs(made[()] - steps(8)).max() <= 0.2
    assert masks(made) == [0] * 8


def test_restart_where_chunks_were_never_written_goes_on_from_fill_values(
    steps: Make, empty: Make, file: h5py.File
) -> None:
    made = empty(file, fillvalue=3)
    made.resize(5, 0)
    with Appender(made) as appender:
        appender.append(steps(1))
    assert (made[:5] == 3).all()
    assert np.abs(made[5] - steps(1)[0]).max() <= 0.1


def test_restart_damaged_partial_chunk_refused(empty: Make, file: h5py.File) -> None:
    made = empty(file, "deflate")
    made.resize(1, 0)
    made.id.write_direct_chunk((0, 0, 0), b"nonsense", 0)
    with pytest.raises(FileError, match=r"/x: chunk at \(0, 0, 0\) cannot be decoded"):
        Appender(made)
