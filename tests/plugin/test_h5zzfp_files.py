"""H5Z-ZFP's own test files, written by its versions 0.2 to 1.1 on machines of both byte orders."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest

import tamis

Run = Callable[..., str]
Find = Callable[[str], Path]

# File, dataset, largest error and its unit: absolute, or relative to the original value.
FILES = [
    ("test_zfp_be.h5", "compressed", 0, "absolute"),
    ("test_zfp_le.h5", "compressed", 0, "absolute"),
    ("test_zfp_030040.h5", "default", 0, "absolute"),
    ("test_zfp_030235.h5", "default", 0, "absolute"),
    ("test_zfp_030040.h5", "compressed", 0.025, "relative"),
    ("test_zfp_030235.h5", "compressed", 0.025, "relative"),
    ("test_zfp_110050.h5", "compressed", 0.025, "relative"),
    ("test_zfp_050.h5", "compressed", 3.2e-5, "absolute"),
    ("test_zfp_052.h5", "compressed", 3.2e-5, "absolute"),
    ("test_zfp_054.h5", "compressed", 3.2e-5, "absolute"),
]


@pytest.mark.parametrize(("name", "dataset", "bound", "unit"), FILES)
def test_reading_by_h5py_keeps_error_within_bound(
    h5zzfp: Find, name: str, dataset: str, bound: float, unit: str
) -> None:
    with h5py.File(h5zzfp(name)) as file:
        original, decoded = (file[each][...].astype("f8") for each in ("original", dataset))
    error = np.abs(decoded - original)
    if unit == "relative":
        # Values near zero have no relative error to speak of.
        error, original = error[np.abs(original) > 1], original[np.abs(original) > 1]
        error = error / np.abs(original)
    assert error.size > 900
    assert error.max() <= bound
    assert (error.max() > 0) == (bound > 0)


@pytest.mark.peer
@pytest.mark.parametrize("name", sorted({name for name, *_ in FILES}))
def test_reading_by_h5dump_gives_what_h5py_reads(
    h5zzfp: Find, tool: Run, plugins: Path, tmp_path: Path, name: str
) -> None:
    out = tmp_path / "dumped.bin"
    with h5py.File(h5zzfp(name)) as file:
        values = file["compressed"][...].astype("f8")
    tool("h5dump", "-d", "compressed", "-b", "NATIVE", "-o", out, h5zzfp(name), plugins=plugins)
    assert np.array_equal(np.fromfile(out), values)


@pytest.mark.peer
def test_reading_big_and_little_endian_writers_gives_same_values(h5zzfp: Find, tool: Run, plugins: Path) -> None:
    both = h5zzfp("test_zfp_be.h5"), h5zzfp("test_zfp_le.h5")
    with h5py.File(both[0]) as big, h5py.File(both[1]) as little:
        assert big["compressed"].dtype == ">f8"
        assert little["compressed"].dtype == "<f8"
        assert np.abs(big["compressed"][...] - little["compressed"][...]).max() <= 1e-5
    tool("h5diff", "-d", "1e-5", *both, "compressed", "compressed", plugins=plugins)


def test_reading_codec_7_is_refused_with_message(h5zzfp: Find) -> None:
    with h5py.File(h5zzfp("test_zfp_110xxx.h5")) as file:
        assert file["original"][...].size == 1024
        with pytest.raises(OSError, match="written by ZFP codec 7, this filter reads codec 5"):
            file["compressed"][...]


@pytest.mark.peer
def test_reading_codec_7_by_h5dump_is_refused_with_message(h5zzfp: Find, tool: Run, plugins: Path) -> None:
    path = h5zzfp("test_zfp_110xxx.h5")
    said = tool("h5dump", "--enable-error-stack", "-d", "compressed", path, plugins=plugins, code=1)
    assert "written by ZFP codec 7, this filter reads codec 5" in said


def test_inspecting_codec_7_says_what_it_is(h5zzfp: Find) -> None:
    words = {each.path: each.filters for each in tamis.inspect(h5zzfp("test_zfp_110xxx.h5")).datasets}
    assert "codec 7" in words["/compressed"][0]
    assert words["/original"] == ()
