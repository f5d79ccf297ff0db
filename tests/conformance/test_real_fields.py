"""Byte identity with zfpy on the fields of real files, cropped so that blocks at the edges are partial."""

from __future__ import annotations

from typing import Any

import h5py
import needs
import numpy as np
import pytest
import zfpy

from tamis import zfp

# Slowest axis first; of five axes the first is left out.
CROPS = {1: (301,), 2: (91, 119), 3: (6, 39, 51), 4: (3, 6, 26, 37)}


def fields() -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for path in sorted(needs.DATA.glob("*.nc")):
        with h5py.File(path) as file:
            file.visititems(
                lambda name, item, file_name=path.name: (
                    found.append((file_name, name))
                    if isinstance(item, h5py.Dataset) and item.dtype.kind in "if" and item.shape
                    else None
                )
            )
    return found


FIELDS = fields()
pytestmark = [
    pytest.mark.usefixtures("kernel"),
    pytest.mark.skipif(not FIELDS, reason=needs.NO_DATA),
]


@pytest.fixture(params=FIELDS or [None], ids=lambda field: "/".join(field or ("absent",)))
def values(request: pytest.FixtureRequest) -> np.ndarray[Any, Any]:
    file_name, name = request.param
    with h5py.File(needs.DATA / file_name) as file:
        dataset = file[name]
        first = (0,) * max(dataset.ndim - 4, 0)
        crop = CROPS[dataset.ndim - len(first)]
        # From the middle of the long axes, where there is land and sea.
        starts = [max((n - size) // 2, 0) for n, size in zip(dataset.shape[len(first) :], crop, strict=True)]
        part = dataset[(*first, *(slice(start, start + size) for start, size in zip(starts, crop, strict=True)))]
    return np.ascontiguousarray(part, part.dtype.newbyteorder("="))


def lossy_modes(values: np.ndarray[Any, Any]) -> list[tuple[zfp.Mode, dict[str, Any]]]:
    spread = float(np.ptp(values)) or 1.0
    tolerance = max(spread * 1e-3, 1.0) if values.dtype.kind == "i" else spread * 1e-3
    return [
        (zfp.Rate(4.5), {"rate": 4.5}),
        (zfp.Rate(16), {"rate": 16}),
        (zfp.Precision(14), {"precision": 14}),
        (zfp.Precision(values.itemsize * 8), {"precision": values.itemsize * 8}),
        (zfp.Accuracy(tolerance), {"tolerance": tolerance}),
    ]


def test_codec_real_field_lossy_same_bytes_and_values_as_zfpy(values: np.ndarray[Any, Any]) -> None:
    assert np.isfinite(values).all(), "the codec refuses such: compare the finite part"
    for mode, arguments in lossy_modes(values):
        theirs = zfpy.compress_numpy(values, write_header=True, **arguments)
        assert zfp.encode_with_header(values, mode) == theirs, mode
        decoded = zfp.decode_with_header(theirs)
        assert decoded.tobytes() == zfpy.decompress_numpy(theirs).tobytes(), mode
        # Fill values take the precision of their neighbours, and integers have no bound.
        if isinstance(mode, zfp.Accuracy) and values.dtype.kind == "f" and np.abs(values).max() < 1e30:
            assert np.abs(decoded.astype("f8") - values.astype("f8")).max() <= mode.tolerance


def test_codec_real_field_reversible_same_bytes_as_zfpy_and_exact(values: np.ndarray[Any, Any]) -> None:
    theirs = zfpy.compress_numpy(values, write_header=True)
    assert zfp.encode_with_header(values, zfp.Reversible()) == theirs
    assert zfp.decode_with_header(theirs).tobytes() == values.tobytes()
