"""A bound of zfp in `write` and `create_appender`: the loosest tolerance of a sample, and every value proven."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import dask.array as da
import h5py
import numpy as np
import pytest

import tamis
import tamis.hdf5
from tamis import ParameterError

TEXT = "zfp(bound=0.1)|shuffle|deflate(4)"


def field(steps: int = 16) -> Any:
    noise = np.random.default_rng(5).standard_normal((steps, 32, 48)).cumsum(1).cumsum(2) / 50
    return (280 + noise).astype("f4")


def tolerance(dataset: Any) -> float:
    bound = tamis.hdf5.pipeline_of(dataset).error_bound
    assert bound is not None
    return bound


def lossless(dataset: Any) -> list[int]:
    masks = [dataset.id.get_chunk_info(at).filter_mask for at in range(dataset.id.get_num_chunks())]
    return [number for number, mask in enumerate(masks) if mask & 1]


def test_write_takes_the_loosest_tolerance_and_proves_each_value(tmp_path: Path) -> None:
    values = field()
    values[5, 6, 7], values[9, 9, 9] = np.nan, 1e20
    attrs = {"_FillValue": np.float32(1e20)}
    with h5py.File(tmp_path / "a.h5", "w") as file:
        bounded = tamis.hdf5.write(file, "v", values, filters=TEXT, chunks=(4, 16, 16), attrs=attrs)
        strict = tamis.hdf5.write(file, "w", values, filters=TEXT.replace("bound", "accuracy"), chunks=(4, 16, 16))
        assert tolerance(strict) == 0.0625
        assert tolerance(bounded) >= 0.125
        assert bounded.id.get_storage_size() < strict.id.get_storage_size()
        read = bounded[...]
        valid = np.isfinite(values) & (values < 1e19)
        assert np.abs(read - values)[valid].max() <= 0.1
        assert read[~valid].tobytes() == values[~valid].tobytes()
        assert len(lossless(bounded)) == 2
        lazy = tamis.hdf5.write(file, "x", da.from_array(values, chunks=(8, 32, 48)), filters=TEXT, chunks=(4, 16, 16))
        assert tolerance(lazy) == tolerance(bounded)
    tamis.repack(tmp_path / "a.h5", tmp_path / "b.h5", {"w": "none"})


def test_a_chunk_that_misses_the_bound_is_stored_without_loss(tmp_path: Path) -> None:
    values = np.repeat(np.arange(0, 256, 4, dtype="f4")[None], 640, 0)  # zfp needs few bits for it
    values[50] += np.random.default_rng(2).uniform(-9, 9, 64)  # the other chunks decide: one in 32 may miss
    with h5py.File(tmp_path / "a.h5", "w") as file:
        dataset = tamis.hdf5.write(file, "v", values, filters=TEXT, chunks=(1, 64))
        assert tolerance(dataset) >= 0.25
        assert np.abs(dataset[...] - values).max() <= 0.1
        assert lossless(dataset) == [50]


def test_other_types_count_towards_the_bound(tmp_path: Path) -> None:
    values = field().astype("f8") * 1e4
    with h5py.File(tmp_path / "a.h5", "w") as file:
        dataset = tamis.hdf5.write(file, "v", values, filters="zfp(bound=0.5)|shuffle|deflate(1)", dtype="f4")
        assert np.abs(dataset[...] - values).max() <= 0.5
        with pytest.raises(tamis.BoundError):
            tamis.hdf5.write(file, "w", values, filters="zfp(bound=0.01)", dtype="f4")
        assert [*file] == ["v"]


def test_an_appender_from_its_first_steps(tmp_path: Path) -> None:
    values = field(19)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        with tamis.hdf5.create_appender(file, "g/v", values[:6], filters=TEXT, chunks=(4, 16, 16)) as appender:
            appender.append(values[6])
            appender.append(values[7:10] + np.float32(0.01))
        assert tolerance(file["g/v"]) >= 0.125
        assert file["g/v"].maxshape == (None, 32, 48)
    with h5py.File(tmp_path / "a.h5", "r+") as file:
        with tamis.hdf5.Appender(file["g/v"], bound=0.1) as appender:
            appender.append(values[10:])
        read = file["g/v"][...]
    values[7:10] += np.float32(0.01)
    assert np.abs(read - values).max() <= 0.1
    with h5py.File(tmp_path / "b.h5", "w") as file:
        few = tamis.hdf5.create_appender(file, "v", values[:, :, :2].T, axis=-1, filters=TEXT, chunks=(2, 32, 4))
        few.close()
        assert file["v"].shape == (2, 32, 19)
        one = tamis.hdf5.create_appender(file, "w", values[:1], filters=TEXT, chunks=(4, 16, 16))
        one.append(values[1:])
        one.close()
        assert tolerance(file["w"]) == 0.0625  # one step says little about four
        plain = tamis.hdf5.create_appender(file, "x", values, filters="absolute(0.1)|deflate(1)")
        plain.close()
        assert np.array_equal(file["x"][...], tamis.Absolute(0.1).round(values))


def test_bounds_that_cannot_be(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        with pytest.raises(ParameterError, match=r"zfp\(accuracy=0.1\)"):
            tamis.hdf5.create_dataset(file, "v", (0, 8), "f4", filters=TEXT, maxshape=(None, 8))
        plain = tamis.hdf5.create_dataset(file, "v", (0, 8), "f4", filters="deflate(1)", maxshape=(None, 8))
        with pytest.raises(ParameterError, match="a bound needs lossy filters"):
            tamis.hdf5.Appender(plain, bound=0.1)
        lossy = tamis.hdf5.create_dataset(file, "w", (0, 8), "f4", filters="zfp(accuracy=1)", maxshape=(None, 8))
        for bound in (0, -1, math.nan, math.inf, "1"):
            with pytest.raises(ParameterError, match="expected a finite bound above 0"):
                tamis.hdf5.Appender(lossy, bound=bound)  # type: ignore[arg-type]
        with pytest.raises(ParameterError, match="expected steps with axis 3"):
            tamis.hdf5.create_appender(file, "x", field(), axis=3)
        names = [*file]
        for filters, values in (
            (TEXT, np.ma.masked_less(field(), 280)),
            ("zfp(bound=0.1)!", field() * np.float32(np.nan)),
        ):
            with pytest.raises(tamis.TamisError):
                tamis.hdf5.create_appender(file, "x", values, filters=filters, chunks=(4, 16, 16))
            assert [*file] == names


def test_later_run_keeps_the_bound_that_the_file_records(tmp_path: Path) -> None:
    quiet = field(8)
    rough = np.random.default_rng(1).normal(280, 3, (8, 32, 48)).astype("f4")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        with tamis.hdf5.create_appender(file, "v", quiet, filters=TEXT, chunks=(4, 16, 16)):
            pass
        assert tolerance(file["v"]) > 0.1
        file.copy("v", "plain")
        del file["plain"].attrs["tamis_error_bound"]
    with h5py.File(tmp_path / "a.h5", "r+") as file:
        for name in ("v", "plain"):
            with tamis.hdf5.Appender(file[name]) as appender:
                appender.append(rough)
        assert np.abs(file["v"][8:] - rough).max() <= 0.1
        assert np.abs(file["plain"][8:] - rough).max() > 0.1  # so the bound was what made the difference
        with pytest.raises(ParameterError, match=r"expected a bound of at most 0\.1, which the file records, got 0\.2"):
            tamis.hdf5.Appender(file["v"], bound=0.2)
        with tamis.hdf5.Appender(file["v"], bound=0.01) as appender:
            appender.append(rough)
        assert np.abs(file["v"][16:] - rough).max() <= 0.01
