"""U56: datasets that are kept are copied as stored; no filter of another package encodes them again."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest

from tamis.hdf5.store import Hdf5Store

COMMAND = Path(sys.executable).parent / "tamis"
WRITE = (
    "import sys, h5py, hdf5plugin, numpy as np\n"
    "file, values = h5py.File(sys.argv[1], 'w'), np.random.default_rng(56).normal(size=(8, 8, 128)).cumsum(2)\n"
    "file.create_dataset('x', data=values.astype('f4'), chunks=(8, 8, 128), **hdf5plugin.SZ(absolute=0.01))\n"
)


def stored(path: Path, origin: tuple[int, ...]) -> tuple[int, bytes]:
    with h5py.File(path) as file:
        return file["x"].id.read_direct_chunk(origin)  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    "words", [("repack", "a.h5", "b.h5", "-f", "*:shuffle|deflate(4)"), ("copy", "a.h5", "b.h5", "-d", "4")]
)
def test_u56_lossy_chunks_of_foreign_plugins_are_kept_as_they_are(
    words: tuple[str, ...], python: Callable[..., str], tmp_path: Path
) -> None:
    spec = importlib.util.find_spec("hdf5plugin")
    if spec is None or spec.origin is None:
        pytest.skip("could not import 'hdf5plugin'")
    python(WRITE, tmp_path / "a.h5")
    env = os.environ | {"HDF5_PLUGIN_PATH": str(Path(spec.origin).parent / "plugins")}
    done = subprocess.run([COMMAND, *words], cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert sorted(os.listdir(tmp_path)) == ["a.h5", "b.h5"]
    origin = (0, 0, 0)
    assert stored(tmp_path / "b.h5", origin) == stored(tmp_path / "a.h5", origin)


def test_u56_chunks_that_hdf5_has_read_are_copied_as_stored(tmp_path: Path) -> None:
    source, target = tmp_path / "a.h5", tmp_path / "b.h5"
    values = np.arange(10_000, dtype="i4").reshape(100, 100) % 77
    with h5py.File(source, "w") as file:
        dataset = file.create_dataset("x", (100, 100), "i4", chunks=(100, 100), compression="gzip", compression_opts=1)
        dataset.id.write_direct_chunk((0, 0), zlib.compress(values.tobytes(), 9))
    with Hdf5Store.open(source) as store:
        array = store.arrays["/x"]
        assert np.array_equal(array.dataset[...], values)
        store.copy_to(target, {}, (), dict, lambda: None)
    assert stored(target, (0, 0)) == stored(source, (0, 0))
