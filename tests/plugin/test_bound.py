"""U1: whoever writes through the plugin, no value is further off than the tolerance, and missing values stay apart."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import needs
import numpy as np
import pytest
from h5py import h5d, h5p, h5s, h5t
from numpy.typing import NDArray

import tamis
from tamis import DataError
from tamis.filters import ChunkType, StoredZfp

Run = Callable[..., str]

CHUNKS = (4, 32, 32)
SHORT, MARKED, WITH_FILL = 4, 5, 6  # words that the filter stores


def field(dtype: str = "f4", shape: tuple[int, ...] = (8, 32, 32)) -> NDArray[Any]:
    smooth = 280 + 10 * np.sin(np.linspace(0, 9, int(np.prod(shape))).reshape(shape))
    return (smooth + np.random.default_rng(0).normal(size=shape)).astype(dtype)


def stored(dataset: h5py.Dataset) -> tuple[int, ...]:
    return tuple(value & 0xFFFFFFFF for value in dataset.id.get_create_plist().get_filter(0)[2])


def masks(dataset: h5py.Dataset) -> list[int]:
    return [dataset.id.get_chunk_info(i).filter_mask for i in range(dataset.id.get_num_chunks())]


def assert_kept(before: NDArray[Any], after: NDArray[Any], bound: float, fill: float | None = None) -> None:
    assert np.abs(before.astype("f8") - after.astype("f8")).max() <= bound
    if fill is not None:
        np.testing.assert_array_equal(before == fill, after == fill)


@pytest.mark.parametrize(
    ("filters", "bound"),
    [(tamis.Zfp(accuracy=0.1), 2.0**-4), (tamis.Zfp(minbits=0, maxbits=16658, maxprec=64, minexp=-4), 2.0**-4)],
    ids=["accuracy", "expert"],
)
@pytest.mark.parametrize("spike", [3e8, 1e20, -9.96921e36])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_u01_chunk_that_zfp_does_not_keep_is_left_to_the_rest(
    tmp_path: Path, dtype: str, spike: float, filters: tamis.Zfp, bound: float
) -> None:
    values = field(dtype)
    values[5, 10, 20] = spike
    if dtype == "f8":
        values[5, 10, 20] = spike * 1e9
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("v", data=values, chunks=CHUNKS, **filters)
    with h5py.File(tmp_path / "a.h5") as file:
        assert_kept(values, file["v"][...], bound)
        assert masks(file["v"]) == [0, 1]


@pytest.mark.parametrize("dtype", ["i4", "i8"])
def test_u01_integers_keep_an_accuracy_that_their_transform_does_not(tmp_path: Path, dtype: str) -> None:
    values = np.random.default_rng(0).integers(-(2**29), 2**29, (8, 32, 32)).astype(dtype)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("small", data=values, chunks=CHUNKS, **tamis.Zfp(accuracy=2))
        file.create_dataset("large", data=values, chunks=CHUNKS, **tamis.Zfp(accuracy=64))
        assert (masks(file["small"]), masks(file["large"])) == ([1, 1], [0, 0])
    with h5py.File(tmp_path / "a.h5") as file:
        assert_kept(values, file["small"][...], 2)
        assert_kept(values, file["large"][...], 64)


REQUIRED = """
import os, sys
import h5py, numpy as np, tamis
values = np.full((16, 16), 280.3, "f4")
values[9, 3] = 3e8
file = h5py.File(sys.argv[1], "w")
plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
plist.set_chunk((16, 16))
plist.set_filter(32013, 0, tamis.Zfp(accuracy=0.1).requested)
space = h5py.h5s.create_simple((16, 16))
data = h5py.Dataset(h5py.h5d.create(file.id, b"v", h5py.h5t.NATIVE_FLOAT, space, plist))
try:
    data[...] = values
    data.flush()
except Exception as error:
    print("failed:", error, flush=True)
os._exit(0)
"""


def test_u01_required_filter_names_the_value_its_index_and_the_error(tmp_path: Path, python: Run) -> None:
    said = python(REQUIRED, tmp_path / "a.h5")
    # Block (8, 0) is the first that holds the spike; 128 is the index of its first value.
    assert "failed: " in said
    assert "zfp: 280.299988 at value 128 of the chunk would be read as" in said
    assert "but the tolerance is 0.0625; use reversible mode, or an optional filter" in said


@pytest.mark.parametrize(
    ("dtype", "accuracy", "fill"),
    [("f4", 0.5, -999), ("f8", 0.5, -99), ("f4", 0.01, 1e3), ("f8", 1.0, 0), ("i4", 300, -999), ("i8", 300, 5)],
)
def test_u01_fill_value_of_ordinary_size_stays_apart(tmp_path: Path, dtype: str, accuracy: float, fill: float) -> None:
    values = field(dtype)
    values[:2, 3:17, 5:30] = fill
    # Beside the fill value, within the tolerance of it: valid.
    near = (np.nextafter(fill, fill + 1, dtype=dtype) if dtype[0] == "f" else fill + 1) if fill else 0.25
    values[6, 7, 8] = near
    with h5py.File(tmp_path / "a.h5", "w") as file:
        v = file.create_dataset("v", data=values, chunks=CHUNKS, fillvalue=fill, **tamis.Zfp(accuracy=accuracy))
        words = stored(v)
    assert len(words) == WITH_FILL
    assert StoredZfp.parse(words).fill == fill
    with h5py.File(tmp_path / "a.h5") as file:
        assert_kept(values, file["v"][...], accuracy, fill)
    assert f"fill value {float(fill) if dtype[0] == 'f' else fill} kept exactly" in str(
        tamis.inspect(tmp_path / "a.h5")
    )


@pytest.mark.parametrize(
    ("filters", "fill"),
    [
        (tamis.Zfp(accuracy=0.5), None),
        (tamis.Zfp(accuracy=0.5), 9.96921e36),
        (tamis.Zfp(accuracy=0.5), np.nan),
        (tamis.Zfp(accuracy=1e-6), -999),
        (tamis.Zfp(rate=8), -999),
        (tamis.Zfp(reversible=True), -999),
    ],
)
def test_u01_stored_parameters_are_those_of_h5zzfp_where_no_fill_value_is_at_stake(
    tmp_path: Path, filters: tamis.Zfp, fill: float | None
) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        words = stored(file.create_dataset("v", (8, 32, 32), "f4", chunks=CHUNKS, fillvalue=fill, **filters))
    assert words == filters.stored(ChunkType(np.dtype("f4"), CHUNKS))
    assert len(words) == SHORT


def test_u01_fill_value_that_the_header_leaves_no_room_for_is_refused(tmp_path: Path) -> None:
    expert = tamis.Zfp(minbits=9, maxbits=16658, maxprec=64, minexp=-4)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        with pytest.raises(ValueError, match=r"long ZFP header, which leaves no room .* use accuracy mode"):
            file.create_dataset("v", (8, 32, 32), "f4", chunks=CHUNKS, fillvalue=-999, **expert)
        file.create_dataset("v", (8, 32, 32), "f4", chunks=CHUNKS, fillvalue=1e20, **expert)


READ = """
import sys
import h5py, numpy as np
if sys.argv[3] == "hdf5plugin": import hdf5plugin
with h5py.File(sys.argv[1]) as file: np.savez(sys.argv[2], **{name: data[...] for name, data in file.items()})
assert "tamis" not in sys.modules
"""


@pytest.mark.peer
@pytest.mark.parametrize("reader", ["hdf5plugin", "debian"])
def test_u01_other_readers_pass_over_the_words_behind_the_header(tmp_path: Path, python: Run, reader: str) -> None:
    expected = {}
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for dtype in ("f4", "f8", "i4", "i8"):
            accuracy = 0.5 if dtype[0] == "f" else 300
            values = field(dtype) if dtype[0] == "f" else (1000 * field("f8")).astype(dtype)
            file.create_dataset(dtype, data=values, chunks=CHUNKS, fillvalue=-999, **tamis.Zfp(accuracy=accuracy))
            unproven(file, f"{dtype}-unproven", values, tamis.Zfp(accuracy=accuracy))
        for name, data in file.items():
            assert len(stored(data)) == (MARKED if "unproven" in name else WITH_FILL)
            assert masks(data) == [0, 0], "each chunk goes through zfp"
            expected[name] = data
        if reader == "debian":
            needs.need(needs.PLUGIN)
        env = {"HDF5_PLUGIN_PATH": str(needs.debian_plugins())} if reader == "debian" else {}
        file.flush()
        file.close()
    python(READ, tmp_path / "a.h5", tmp_path / "a.npz", reader, env=env)
    with np.load(tmp_path / "a.npz") as found, h5py.File(tmp_path / "a.h5") as file:
        assert set(found) == set(expected)
        for name, values in found.items():
            assert values.tobytes() == file[name][...].tobytes(), name


def libhdf5() -> ctypes.CDLL:
    """Give the libhdf5 of h5py."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    paths = sorted({line.split()[-1] for line in lines if "/h5py" in line and "/libhdf5-" in line})
    return ctypes.CDLL(paths[0])


def unproven(file: h5py.File, name: str, values: NDArray[Any], zfp: tamis.Zfp, *, optional: int = 1) -> h5py.Dataset:
    """Write values with the property that asks for H5Z-ZFP's behaviour."""
    plist = h5p.create(h5p.DATASET_CREATE)
    plist.set_chunk(CHUNKS)
    plist.set_fill_value(np.asarray(-999, values.dtype))
    plist.set_filter(32013, optional, zfp.requested)
    insert = libhdf5().H5Pinsert2
    insert.argtypes = [ctypes.c_int64, ctypes.c_char_p, ctypes.c_size_t, *[ctypes.c_void_p] * 7]
    assert insert(plist.id, b"tamis_zfp_unproven", 0, *[None] * 7) == 0
    space = h5s.create_simple(values.shape)
    made = h5py.Dataset(h5d.create(file.id, name.encode(), h5t.py_create(values.dtype), space, plist))
    made[...] = values
    return made


def with_spike() -> NDArray[Any]:
    values = field()
    values[5, 10, 20] = 3e8
    return values


def test_u01_property_gives_the_chunks_of_h5zzfp(tmp_path: Path) -> None:
    values, zfp = with_spike(), tamis.Zfp(accuracy=0.1)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        v = unproven(file, "v", values, zfp)
        assert stored(v)[:SHORT] == zfp.stored(ChunkType(values.dtype, CHUNKS))
        assert len(stored(v)) == MARKED
        assert masks(v) == [0, 0]
        assert v.id.read_direct_chunk((4, 0, 0))[1] == tamis.zfp.encode(values[4:], zfp.mode)
        assert "not proven on writing" in str(tamis.inspect(file.filename))
    # Whoever writes to it later, in another process, leaves it so.
    with h5py.File(tmp_path / "a.h5", "r+") as file:
        file["v"][4:] = values[4:] + 1
        file.flush()
        assert masks(file["v"]) == [0, 0]


OFF = """
import sys
import h5py, numpy as np, tamis
values = np.load(sys.argv[2])
with h5py.File(sys.argv[1], "w") as file:
    v = file.create_dataset("v", data=values, chunks=(4, 32, 32), fillvalue=-999, **tamis.Zfp(accuracy=0.1))
    print(v.id.get_create_plist().get_filter(0)[2], [v.id.get_chunk_info(i).filter_mask for i in range(2)])
"""


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("setting", "words", "masks", "warned"),
    [
        ("off", SHORT, [0, 0], False),
        ("on", WITH_FILL, [0, 1], False),
        ("", WITH_FILL, [0, 1], False),
        ("no", WITH_FILL, [0, 1], True),
    ],
)
def test_u01_variable_gives_the_behaviour_of_h5zzfp(
    tmp_path: Path, python: Run, setting: str, words: int, masks: list[int], warned: bool
) -> None:
    np.save(tmp_path / "v.npy", with_spike())
    said = python(OFF, tmp_path / "a.h5", tmp_path / "v.npy", env={"TAMIS_ZFP_PROOF": setting})
    printed = said.splitlines()[0]
    assert printed.count(",") == words  # one of them between the masks
    assert printed.endswith(str(masks))
    assert ("tamis: expected TAMIS_ZFP_PROOF to be on or off, got 'no'; using on" in said) == warned


def test_u01_pipeline_encodes_as_the_plugin_does() -> None:
    values = with_spike()[4:]
    data, mask = tamis.Pipeline.parse("zfp(accuracy=0.1)|shuffle").encode(values)
    assert mask == 1
    with pytest.raises(DataError, match=r"accuracy=0.1 cannot keep the tolerance at index \(\d, \d+, \d+\) next to"):
        tamis.Pipeline.parse("zfp(accuracy=0.1)!").encode(values)
    assert tamis.Pipeline.parse("zfp(accuracy=0.1)").encode(field()[:4])[1] == 0
    assert tamis.Pipeline.parse("zfp(accuracy=0.1)").encode(values, prove=False)[1] == 0
    assert len(data) == values.nbytes
