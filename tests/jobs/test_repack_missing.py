"""Missing values: each as it was, or refused with their number; and the chunks that leave more to zfp."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import tamis
from tamis import BoundError, DataError, ParameterError, Pipeline
from tamis.formats.hdf5.stored_array import Hdf5Array
from tamis.rewrite.plan import Checks, Recode
from tamis.rewrite.prove import verify

Real = Callable[[str], Path]
Run = Callable[..., str]

RECIPE = {"v": "zfp(accuracy=0.5)|shuffle|deflate"}


def field() -> Any:
    return (100 * np.sin(np.arange(32 * 64) / 17)).reshape(32, 64).astype("f4")


def make(path: Path, data: Any, attributes: dict[str, Any] | None = None, **options: Any) -> Path:
    with h5py.File(path, "w") as file:
        made = file.create_dataset("v", data=data, **{"chunks": (8, 16)} | options)
        for name, value in (attributes or {}).items():
            made.attrs[name] = value
    return path


def values(path: Path) -> Any:
    with h5py.File(path) as file:
        return file["v"][()]


@pytest.mark.parametrize("recipe", ["zfp(accuracy=0.5)|shuffle|deflate", "zfp(rate=12)", "zfp(precision=14)|deflate"])
@pytest.mark.parametrize("attribute", ["_FillValue", "missing_value"])
def test_repack_fill_value_within_reach_of_the_bound_stays_exact(attribute: str, recipe: str, tmp_path: Path) -> None:
    """zfp would keep -99 within 0.5: and nobody would know it for a missing value any more."""
    data = field()
    data[3, 5:9] = -99
    data[20, 40] = -99
    source = make(tmp_path / "a.h5", data, {attribute: np.float32(-99)})
    (found,) = tamis.repack(source, tmp_path / "b.h5", {"v": recipe}).datasets
    read = values(tmp_path / "b.h5")
    assert np.array_equal(read == -99, data == -99)
    assert (found.missing_values, found.lossless_for_missing, found.lossless_chunks) == (5, 2, 2)
    assert "5 missing values kept exactly; 2 of 16 chunks stored without zfp because of them" in found.notes
    plain = tamis.repack(make(tmp_path / "c.h5", data), tmp_path / "d.h5", {"v": recipe}).datasets[0]
    assert (plain.missing_values, plain.lossless_chunks) == (0, 0)  # otherwise this would show nothing


def test_repack_valid_value_never_becomes_the_fill_value(tmp_path: Path) -> None:
    """Values near the fill value may be decoded to it, and would then be missing."""
    data = np.full((32, 64), 1, "f4") + np.random.default_rng(0).choice([0, 1 / 1024], (32, 64)).astype("f4")
    data[data == 1] = np.nextafter(np.float32(1), np.float32(2))
    source = make(tmp_path / "a.h5", data, {"_FillValue": np.float32(1)})
    (found,) = tamis.repack(source, tmp_path / "b.h5", RECIPE).datasets
    assert not (values(tmp_path / "b.h5") == 1).any()
    assert found.missing_values == 0
    tamis.repack(make(tmp_path / "c.h5", data), tmp_path / "d.h5", RECIPE)
    assert (values(tmp_path / "d.h5") == 1).any()  # without the attribute it does happen


def test_repack_chunk_of_fill_values_only_goes_through_zfp(tmp_path: Path) -> None:
    data = field()
    data[:8, :16] = 9.96921e36
    source = make(tmp_path / "a.h5", data, {"_FillValue": np.float32(9.96921e36)})
    (found,) = tamis.repack(source, tmp_path / "b.h5", RECIPE).datasets
    assert (found.missing_values, found.lossless_for_missing, found.lossless_chunks) == (128, 0, 0)
    assert np.array_equal(values(tmp_path / "b.h5")[:8, :16], data[:8, :16])


@pytest.mark.parametrize(
    ("attributes", "fill", "expected"),
    [
        ({}, None, ()),
        ({}, 0, ()),
        ({}, -5, (-5,)),
        ({}, np.nan, ()),
        ({"_FillValue": np.float32(0)}, 0, (0,)),
        ({"_FillValue": np.float32(1e20), "missing_value": 1e20}, 1e20, (np.float32(1e20),)),
        ({"missing_value": [1.0, 2.0]}, None, (1, 2)),
        ({"_FillValue": "none", "missing_value": h5py.Empty("f4")}, None, ()),
    ],
    ids=str,
)
def test_missing_of_attributes_and_fill_value(
    attributes: dict[str, Any], fill: Any, expected: tuple[float, ...], tmp_path: Path
) -> None:
    with h5py.File(make(tmp_path / "a.h5", field(), attributes, fillvalue=fill)) as file:
        assert Hdf5Array.of(file["v"]).meaning.missing.values == expected


def test_missing_of_integers_takes_exact_values_only(tmp_path: Path) -> None:
    with h5py.File(make(tmp_path / "a.h5", field().astype("i2"), {"_FillValue": [-9.0, 1.5, 1e9]})) as file:
        assert Hdf5Array.of(file["v"]).meaning.missing.values == (-9,)


def test_repack_missing_refuse_counts_what_it_found_and_writes_nothing(tmp_path: Path) -> None:
    data = field()
    data[0, 0], data[1, 1], data[2, 2], data[3, 3:6] = np.nan, np.inf, -np.inf, -99
    source = make(tmp_path / "a.h5", data, {"_FillValue": np.float32(-99)})
    said: list[str] = []
    with pytest.raises(DataError, match=r"/v: 6 of 2048 \(1 NaN, 2 infinite, 3 -99\): keep each of them as it is"):
        tamis.repack(source, tmp_path / "b.h5", RECIPE, missing="refuse", progress=lambda what, *_: said.append(what))
    assert set(said) == {"counting missing values of /v"}
    assert os.listdir(tmp_path) == ["a.h5"]
    # What is not lossy harms none.
    tamis.repack(source, tmp_path / "b.h5", {"v": "shuffle|deflate"}, missing="refuse")
    assert np.array_equal(values(tmp_path / "b.h5"), data, equal_nan=True)


def test_repack_missing_refuse_without_any_does_the_job(tmp_path: Path) -> None:
    source = make(tmp_path / "a.h5", field(), {"_FillValue": np.float32(1e20)})
    (found,) = tamis.repack(source, tmp_path / "b.h5", RECIPE, missing="refuse", threads=2).datasets
    assert 0 < found.largest_error <= 0.5


def test_repack_missing_refuse_leaves_out_what_stays_lossless(tmp_path: Path) -> None:
    """Small datasets, coordinates, and what would grow: patterns leave them as they are."""
    source, target = make(tmp_path / "a.h5", field(), {"coordinates": "lat"}), tmp_path / "b.h5"
    gaps = np.where(np.arange(2000) % 2, np.float32(np.nan), np.float32(1))
    with h5py.File(source, "r+") as file:
        file["small"] = gaps[:100]
        file["lat"] = gaps
        file.create_dataset("grows", data=gaps, chunks=(500,), compression=9)
    recipes, options = {"*": "zfp(accuracy=0.5)"}, {"missing": "refuse", "checksum": False}
    result = tamis.repack(source, target, recipes, **options)
    assert [each.path for each in result.datasets] == ["/v"]
    assert set(dict(result.kept)) == {"/small", "/lat", "/grows"}
    for name in ("small", "lat", "grows"):
        with pytest.raises(DataError, match=rf"missing='refuse' \(--missing refuse\) does not allow: /?{name}: "):
            tamis.repack(source, target, {**recipes, name: "zfp(accuracy=0.5)"}, overwrite=True, **options)
    with pytest.raises(DataError, match=r"missing values found, .*: /grows: 1000 of 2000"):
        tamis.repack(source, target, recipes, overwrite=True, larger=True, **options)


def test_repack_missing_policy_unknown_refused(tmp_path: Path) -> None:
    unknown: Any = "beside"
    with pytest.raises(ParameterError, match="expected missing to be one of exact, mask, refuse, got 'beside'"):
        tamis.repack(make(tmp_path / "a.h5", field()), tmp_path / "b.h5", RECIPE, missing=unknown)


def test_verify_missing_value_that_is_another_refused(tmp_path: Path) -> None:
    data = field()
    data[3, 3] = -99
    other = data.copy()
    other[3, 3] = -98.75
    with h5py.File(make(tmp_path / "a.h5", data)) as old, h5py.File(make(tmp_path / "b.h5", other)) as new:
        missing = Hdf5Array.of(old["v"]).meaning.missing
        plan = Recode(
            "/v", Pipeline.parse("zfp(accuracy=0.5)"), np.dtype("f4"), (8, 16), checks=Checks(missing=missing)
        )
        assert verify(plan, Hdf5Array.of(old["v"]), Hdf5Array.of(new["v"]), lambda *_: None).largest_error == 0.25
    with h5py.File(make(tmp_path / "a.h5", data, {"_FillValue": np.float32(-99)})) as old:
        missing = Hdf5Array.of(old["v"]).meaning.missing
        plan = Recode(
            "/v", Pipeline.parse("zfp(accuracy=0.5)"), np.dtype("f4"), (8, 16), checks=Checks(missing=missing)
        )
        with (
            h5py.File(tmp_path / "b.h5") as new,
            pytest.raises(
                BoundError,
                match=r"/v: missing values differ from those of the source in the chunk at \(0, 0\)",
            ),
        ):
            verify(plan, Hdf5Array.of(old["v"]), Hdf5Array.of(new["v"]), lambda *_: None)


def test_repack_ocean_in_the_chunks_that_are_advised_keeps_all_and_gets_smaller(
    real: Real, tmp_path: Path, python: Run
) -> None:
    """CESM POP SST: plain ZFP misses the bound in 10.6 % of the ocean."""
    source, recipe = real("pop_sst_60days.nc"), {"SST": "zfp(accuracy=0.1)|shuffle|deflate(4)"}
    (first,) = tamis.repack(source, tmp_path / "a.nc", recipe).datasets
    assert first.lossless_chunks == first.chunks == 60
    (advice,) = (note for note in first.notes if "chunks smaller than 1x384x320 help" in note)
    name, _, shape = advice.split("'")[1].rpartition(":")
    assert name == "/SST"
    chunks = tuple(int(step) for step in shape.split("x"))
    (found,) = tamis.repack(source, tmp_path / "b.nc", recipe, chunks={"SST": chunks}).datasets
    assert found.lossless_chunks < 0.5 * found.chunks
    assert found.ratio > 3.5 > 1.5 * first.ratio
    with h5py.File(source) as file:
        old = file["SST"][()]
    read = "import sys, h5py, hdf5plugin, numpy; numpy.save(sys.argv[2], h5py.File(sys.argv[1])['SST'][()])"
    python(read, tmp_path / "b.nc", tmp_path / "read.npy")
    new = np.load(tmp_path / "read.npy")
    gone = old > 1e30
    assert gone.sum() == found.missing_values > 0
    assert np.array_equal(old[gone].view("u4"), new[gone].view("u4"))
    assert 0 < np.abs(old.astype("f8") - new)[~gone].max() == found.largest_error <= 0.1


def test_repack_missing_values_everywhere_advises_no_shape(tmp_path: Path) -> None:
    data = field()
    data[::3, ::3] = np.nan
    (found,) = tamis.repack(make(tmp_path / "a.h5", data), tmp_path / "b.h5", RECIPE).datasets
    assert any("chunks smaller than 8x16 would not help much" in note for note in found.notes)


def test_repack_bound_below_the_precision_of_the_type_is_said_to_be_small(tmp_path: Path) -> None:
    data = (1e20 * field()) * np.exp(np.random.default_rng(0).normal(0, 5, (32, 64))).astype("f4")
    source = make(tmp_path / "a.h5", data)
    (found,) = tamis.repack(source, tmp_path / "b.h5", {"v": "zfp(accuracy=1e-30)"}).datasets
    assert found.lossless_chunks == found.chunks
    assert any("is the bound too small for such values?" in note for note in found.notes)
