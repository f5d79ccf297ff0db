"""A store of zarr-python 3.4 is read as zarr-python 3.4 read it, or refused array by array where it is too old."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import zarr

import tamis

HERE = Path(__file__).parent
NAMES = (
    *("characters", "directed", "opaque", "packed", "packed_absent", "packed_shards", "plain", "records"),
    *(
        "records_big",
        "rectilinear",
        "rectilinear_absent",
        "rectilinear_shards",
        "rounded",
        "scaled_integers",
        "scaled_uint64",
    ),
    *("single", "texts", "times", "transposed"),
)
IS_OLD = not hasattr(zarr.codecs, "CastValue")
REFUSED = {
    "directed": "cast_value",
    "records": "struct",
    "records_big": "struct",
    "rectilinear": r"several shapes \(a rectilinear chunk grid\)",
    "rectilinear_absent": "rectilinear",
    "rectilinear_shards": "rectilinear",
}
"""Arrays that zarr before 3.2 does not read, with what its message names."""
NOT_IN_HDF5 = ("times", "records", "records_big")


@pytest.fixture(scope="module")
def frozen(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("frozen")
    shutil.unpack_archive(HERE / "zarr-3.4.zip", folder)
    return folder


@pytest.fixture(scope="module")
def values(frozen: Path) -> dict[str, bytes]:
    with np.load(frozen / "values.npz") as stored:
        return {name: stored[name].tobytes() for name in stored.files}


@pytest.mark.parametrize("name", NAMES)
def test_frozen_array_has_the_values_of_zarr_python(name: str, frozen: Path, values: dict[str, bytes]) -> None:
    assert set(values) == set(NAMES)
    with tamis.open(frozen / "a.zarr") as file:
        assert sorted(file) == sorted(NAMES)
        if IS_OLD and name in REFUSED:
            with pytest.raises(tamis.FileError, match=f"{REFUSED[name]}.*; a newer zarr, which needs Python 3.12"):
                file[name]
            return
        assert file[name][...].tobytes() == values[name]


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_frozen_store_is_inspected_repacked_and_verified(frozen: Path, tmp_path: Path) -> None:
    store = frozen / "a.zarr"
    inspected = tamis.inspect(store)
    refused = {item.path.strip("/") for item in inspected.datasets if item.problem}
    assert refused == (set(REFUSED) if IS_OLD else set())
    everything = tmp_path / "all.zarr"
    tamis.repack(store, everything, {}, drop=sorted(refused))
    assert tamis.verify(store, everything, drop=sorted(refused)).ok
    drop = sorted({*refused, *NOT_IN_HDF5})
    tamis.repack(store, tmp_path / "b.h5", {}, drop=drop)
    assert tamis.verify(store, tmp_path / "b.h5", drop=drop).ok
