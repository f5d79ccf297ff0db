"""D16: what was asked of zfp, and what became of it, can be read back from a file in words."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import tamis
from tamis.filters import StoredZfp

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
        ({"precision": 1}, "zfp precision, 1 bit plane"),
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


@pytest.mark.matrix
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
    assert "chunks   7 of 8 chunks: zfp; 1: no filter (zfp skipped)" in said


def test_d16_files_of_hdf5plugin_are_called_what_they_are(tmp_path: Path, python: Run) -> None:
    """D1, D2, D5, D11: what was done silently is said of the files that have it."""
    code = """
import sys, h5py, hdf5plugin, numpy as np
data = np.sin(np.arange(65536) / 99).reshape(64, 32, 32)
zfp = hdf5plugin.Zfp(accuracy=1e-3)
with h5py.File(sys.argv[1], "w") as file:
    file.create_dataset("order", data=data, chunks=(16, 32, 32), shuffle=True, **zfp)
    file.create_dataset("byte-order", data=data.astype(">f8"), chunks=(16, 32, 32), **zfp)
    rate = (1, 0, 0, 0xBFF00000)  # -1.0
    file.create_dataset("larger", data=data, chunks=(16, 32, 32), compression=32013, compression_opts=rate)
    file.create_dataset("unused", data=data.reshape(4, 16, 8, 4, 32), chunks=(2, 4, 8, 4, 32), **zfp)
    file.create_dataset("unused bool", data=data > 0, chunks=(16, 32, 32), **hdf5plugin.Zfp(reversible=True))
"""
    python(code, tmp_path / "a.h5")
    found = {each.path: each for each in tamis.inspect(tmp_path / "a.h5").datasets}
    for path, each in found.items():
        assert path[1:].split(" ")[0] in [note.code for note in each.notes]
    assert "use (1, 4, 8, 4, 32)" in found["/unused"].notes[0].text
    assert "got bool" in found["/unused bool"].notes[0].text
    assert [str(found[path].readers) for path in ("/unused", "/unused bool")] == ["any HDF5"] * 2


def test_d26_order_duplicates_and_flags_are_shown_as_stored(tmp_path: Path) -> None:
    """D26: netCDF reports h5py's shuffle, deflate, fletcher32 as fletcher32, shuffle, deflate, and duplicates once."""
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("h5py", data=FIELD, chunks=(8, 8, 8), compression=4, shuffle=True, fletcher32=True)
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_chunk((8,))
        for number, flags, values in ((1, 1, (4,)), (2, 0, ()), (1, 1, (9,)), (3, 1, ())):
            plist.set_filter(number, flags, values)
        space = h5py.h5s.create_simple((16,))
        h5py.h5d.create(file.id, b"twice", h5py.h5t.IEEE_F64LE, space, plist)
    found = {each.path: each for each in tamis.inspect(tmp_path / "a.h5").datasets}
    assert found["/h5py"].filters == ("shuffle", "deflate level 4", "fletcher32")
    assert found["/twice"].filters == (
        "deflate level 4",
        "shuffle, required",
        "deflate level 9",
        "fletcher32, optional",
    )
    assert str(found["/twice"].pipeline) == "deflate(4)|shuffle!|deflate(9)|fletcher32?"
