"""D16: what was asked of zfp, and what became of it, can be read back from a file in words."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import tamis
from tamis.filters.zfp import StoredZfp

Run = Callable[..., str]

FIELD = np.sin(np.arange(4096) / 90).reshape(16, 16, 16)
VERSIONS = "(H5Z-ZFP 1.1.1, zfp 1.0.1)"


def words(path: Path, name: str = "/v") -> str:
    found = {each.path: each.filters for each in tamis.inspect(path).datasets}
    assert len(found[name]) == 1
    return found[name][0]


@pytest.mark.parametrize(
    ("keywords", "expected"),
    [
        ({"accuracy": 0.1}, "zfp accuracy, effective tolerance 2^-4 = 0.0625"),
        ({"accuracy": 0.125}, "zfp accuracy, effective tolerance 2^-3 = 0.125"),
        ({"accuracy": 1e6}, "zfp accuracy, effective tolerance 2^19 = 524288"),
        ({"precision": 1}, "zfp precision, 1 bit planes"),
        ({"precision": 17}, "zfp precision, 17 bit planes"),
        ({"reversible": True}, "zfp reversible (lossless)"),
        (
            {"minbits": 40, "maxbits": 700, "maxprec": 22, "minexp": -9},
            "zfp expert, minbits=40, maxbits=700, maxprec=22, minexp=-9",
        ),
    ],
    ids=str,
)
def test_d16_stored_mode_is_shown_in_words(tmp_path: Path, keywords: dict[str, Any], expected: str) -> None:
    """D16: `inspect` decodes stored forms in words."""
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("v", data=FIELD, chunks=(8, 8, 8), **tamis.Zfp(**keywords))
    assert words(tmp_path / "a.h5") == f"{expected} {VERSIONS}"


@pytest.mark.parametrize("rate", [4, 8, 9, 16, 40])
@pytest.mark.parametrize("chunks", [(1, 1, 16), (1, 8, 8), (8, 8, 8)], ids=["1d", "2d", "3d"])
@pytest.mark.parametrize("dtype", ["f8", "i4"])
def test_d16_stored_rate_is_the_requested_one(tmp_path: Path, rate: int, chunks: tuple[int, ...], dtype: str) -> None:
    """D16: hdf5plugin shows rate off by one."""
    with h5py.File(tmp_path / "a.h5", "w") as file:
        made = file.create_dataset("v", data=(FIELD * 1e6).astype(dtype), chunks=chunks, **tamis.Zfp(rate=rate))
        stored = StoredZfp.parse(made.id.get_create_plist().get_filter(0)[2])
        assert made.id.get_chunk_info(0).size == rate * int(np.prod(chunks)) // 8
    assert stored.filter == tamis.Zfp(rate=rate)
    assert words(tmp_path / "a.h5") == f"zfp rate, {rate} bits per value {VERSIONS}"


@pytest.mark.parametrize(
    ("zfp", "expected"),
    [
        (tamis.Zfp(accuracy=0.1), "zfp(accuracy=0.1)"),
        (tamis.Zfp(rate=8.5), "zfp(rate=8.5)"),
        (tamis.Zfp(precision=17), "zfp(precision=17)"),
        (tamis.Zfp(reversible=True), "zfp(reversible=True)"),
        (tamis.Zfp(minbits=1, maxbits=900, maxprec=20, minexp=-10), "minbits=1, maxbits=900, maxprec=20, minexp=-10"),
    ],
    ids=str,
)
def test_d16_requested_form_in_a_file_is_shown_in_words(
    tmp_path: Path, craft: Callable[..., None], zfp: tamis.Zfp, expected: str
) -> None:
    """D16: `inspect` decodes request forms in words, and says that the filter was not applied."""
    values = np.arange(64.0).reshape(2, 2, 2, 2, 4)
    craft(tmp_path / "a.h5", "f8", values.shape, zfp.requested, values.tobytes(), mask=1)
    assert expected in words(tmp_path / "a.h5")
    assert "as requested, not set up by the filter" in words(tmp_path / "a.h5")
    info = tamis.inspect(tmp_path / "a.h5").datasets[0]
    assert (info.unfiltered_chunks, info.stored_chunks) == (1, 1)
    with h5py.File(tmp_path / "a.h5") as file:
        assert np.array_equal(file["v"][...], values)


def test_d16_files_of_hdf5plugin_are_shown_in_words(tmp_path: Path, python: Run) -> None:
    """D16: a file's mode, tolerance, rate can be read back, whoever wrote it."""
    code = """
import sys, h5py, hdf5plugin, numpy as np
with h5py.File(sys.argv[1], "w") as file:
    data = np.ones((8, 8))
    for name, keywords in {"a": {"accuracy": 1e-3}, "r": {"rate": 8}, "n": {"reversible": True}}.items():
        file.create_dataset(name, data=data, chunks=(4, 8), **hdf5plugin.Zfp(**keywords))
"""
    python(code, tmp_path / "a.h5")
    assert words(tmp_path / "a.h5", "/a") == f"zfp accuracy, effective tolerance 2^-10 = {2**-10:g} {VERSIONS}"
    assert words(tmp_path / "a.h5", "/r") == f"zfp rate, 8 bits per value {VERSIONS}"
    assert words(tmp_path / "a.h5", "/n") == f"zfp reversible (lossless) {VERSIONS}"


def test_d16_chunks_left_raw_are_counted(tmp_path: Path, python: Run) -> None:
    """D16: what the filter was not applied to is shown too, by the command as well."""
    values = FIELD.copy()
    values[9, 1, 1] = np.nan
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("v", data=values, chunks=(8, 8, 8), **tamis.Zfp(accuracy=0.1))
    info = tamis.inspect(tmp_path / "a.h5").datasets[0]
    assert (info.unfiltered_chunks, info.stored_chunks) == (1, 8)
    said = python("import sys; from tamis.cli import main; main(['inspect', sys.argv[1]])", tmp_path / "a.h5")
    assert "effective tolerance 2^-4" in said
    assert re.search(r"not applied to all: 1 of 8 chunks", said)
