"""Files repacked with every filter, whether libhdf5 has it or not, read by libhdf5 with the filters of hdf5plugin."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from numpy.typing import NDArray

from tamis.filters import by_id
from tamis.formats.hdf5.chunk_access import chunk_type, pipeline_of

pytestmark = pytest.mark.xdist_group("interop repack")  # its files are made once

HERE = Path(__file__).resolve().parent
TEXTS = [
    "deflate(1)",
    "fletcher32|shuffle|deflate(4)",
    "szip",
    "szip(coding=ec,pixels=16)|fletcher32",
    "nbit",
    "scaleoffset",
    "scaleoffset|deflate(4)",
    "bzip2(9)",
    "lzf",
    "shuffle|lzf|fletcher32",
    "lz4",
    "bitshuffle",
    "bitshuffle(compressor=zstd)",
    "bitshuffle(compressor=none)|deflate(1)",
    "blosc",
    "blosc(compressor=zstd,shuffle=bit)|fletcher32",
    "blosc2",
    "shuffle|zstd(5)|fletcher32",
    "zfp(reversible=true)",
    "zfp(reversible=true)|zstd",
]
MODULES = pytest.mark.parametrize("module", ["", "hdf5plugin"], ids=["HDF5's own", "hdf5plugin's too"])


def data() -> dict[str, NDArray[Any]]:
    smooth = np.sin(np.arange(40 * 50) / 50).reshape(40, 50) * 1000
    found = {dtype: smooth.astype(dtype) for dtype in ("i1", "i2", "i4", "i8", "f4", "f8")}
    for values in found.values():
        values[3:5] = -9
    noise = np.random.default_rng(0).integers(-(2**31), 2**31, (40, 50), dtype="i4")
    return {**found, "noise": noise}


DATA = data()


def run(*command: str | Path, code: int = 0) -> str:
    env = {name: value for name, value in os.environ.items() if not name.startswith("HDF5_PLUGIN")}
    done = subprocess.run([sys.executable, *map(str, command)], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr[-3000:]
    return done.stderr


@pytest.fixture(scope="session")
def repacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of files repacked for each text, without and with hdf5plugin, and what the peer reads beside each."""
    folder = tmp_path_factory.mktemp("repacked")
    source = folder / "source.h5"
    with h5py.File(source, "w") as file:
        for name, values in DATA.items():
            file.create_dataset(name, data=values, chunks=(16, 16), fillvalue=-9)
    tasks = folder / "tasks.json"
    for module in ("", "hdf5plugin"):
        recipes = {str(folder / f"{module}{at}.h5"): text for at, text in enumerate(TEXTS)}
        tasks.write_text(json.dumps({"source": str(source), "recipes": recipes}))
        run(HERE / "interop_repack.py", tasks, *filter(None, [module]))
    made = [str(folder / f"{module}{at}.h5") for module in ("", "hdf5plugin") for at in range(len(TEXTS))]
    tasks.write_text(json.dumps({"plain": str(source), "write": {}, "read": made}))
    run(HERE / "interop_peer.py", tasks)
    return folder


def test_repack_texts_have_every_filter_that_tamis_encodes() -> None:
    named = "|".join(TEXTS)
    assert [kind.name for kind in by_id().values() if not kind.is_foreign and kind.name not in named] == []


@pytest.mark.matrix
@MODULES
@pytest.mark.parametrize("text", TEXTS)
def test_repack_with_any_filter_libhdf5_reads_the_source_s_values(text: str, module: str, repacked: Path) -> None:
    path = repacked / f"{module}{TEXTS.index(text)}.h5"
    count = 0
    with h5py.File(path) as file, h5py.File(f"{path}.values") as read:
        for name, values in DATA.items():
            pipeline = pipeline_of(file[name])
            if not pipeline.stages:  # a type that a filter of the recipe cannot take: kept as it was
                continue
            assert read[name][...].tobytes() == values.tobytes(), f"{name}: {pipeline}"
            data = file[name].id.read_direct_chunk((0, 0))
            np.testing.assert_array_equal(pipeline.decode(data[1], data[0], chunk_type(file[name])), values[:16, :16])
            count += 1
    assert count >= 4


@pytest.mark.matrix
@pytest.mark.parametrize("text", TEXTS)
def test_repack_same_file_whether_libhdf5_has_the_filter_or_not(text: str, repacked: Path) -> None:
    at = TEXTS.index(text)
    with h5py.File(repacked / f"{at}.h5") as file, h5py.File(repacked / f"hdf5plugin{at}.h5") as other:
        for name in DATA:
            plists = [each[name].id.get_create_plist() for each in (file, other)]
            assert [p.get_nfilters() for p in plists] == [len(pipeline_of(file[name]).stages)] * 2
            for index in range(plists[0].get_nfilters()):
                assert plists[0].get_filter(index)[:3] == plists[1].get_filter(index)[:3]
            assert file[name].id.read_direct_chunk((0, 0)) == other[name].id.read_direct_chunk((0, 0))


def test_repack_required_filter_that_libhdf5_has_not_written(tmp_path: Path) -> None:
    source, target, tasks = tmp_path / "x.h5", tmp_path / "y.h5", tmp_path / "tasks.json"
    with h5py.File(source, "w") as file:
        file["x"] = DATA["f4"]
    tasks.write_text(json.dumps({"source": str(source), "recipes": {str(target): "bzip2!"}}))
    for names in ((), ("hdf5plugin",)):
        target.unlink(missing_ok=True)
        run(HERE / "interop_repack.py", tasks, *names)
        with h5py.File(target) as file:
            assert not pipeline_of(file["x"]).stages[0].optional


def test_repack_of_a_source_whose_filter_libhdf5_has_not_is_decoded_by_tamis(repacked: Path, tmp_path: Path) -> None:
    tasks, source = tmp_path / "tasks.json", repacked / f"{TEXTS.index('bitshuffle')}.h5"
    tasks.write_text(json.dumps({"source": str(source), "recipes": {str(tmp_path / "y.h5"): "deflate(1)"}}))
    run(HERE / "interop_repack.py", tasks)
    with h5py.File(tmp_path / "y.h5") as file:
        np.testing.assert_array_equal(file["f4"][...], DATA["f4"])
