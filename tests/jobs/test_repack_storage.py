"""Sources stored in every way: scales, links, virtual, external, partly or never written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from numpy.typing import NDArray

import tamis

Run = Callable[..., str]


def values(path: Path, name: str) -> NDArray[Any]:
    with h5py.File(path) as file:
        found: NDArray[Any] = file[name][()]
    return found


def masks(path: Path, name: str) -> list[int]:
    with h5py.File(path) as file:
        dataset = file[name].id
        return [dataset.get_chunk_info(index).filter_mask for index in range(dataset.get_num_chunks())]


def make(path: Path, **data: Any) -> Path:
    with h5py.File(path, "w") as file:
        for name, value in data.items():
            options = value if isinstance(value, dict) else {"data": value}
            file.create_dataset(name, **options)
    return path


def field(shape: tuple[int, ...], dtype: str = "f4") -> NDArray[Any]:
    return (100 * np.sin(np.arange(np.prod(shape)) / 17)).reshape(shape).astype(dtype)


def test_repack_dimension_scale_keeps_scale_and_attachments(sample: Path, tmp_path: Path, tool: Run) -> None:
    target = tmp_path / "cam_ts.nc"
    tamis.repack(sample, target, {"lat": "zfp(accuracy=1e-3)", "lon": "shuffle|deflate(9)"}, history=False)
    with h5py.File(target) as file:
        assert file["lat"].is_scale
        assert file["TS"].dims[1][0] == file["lat"]
    assert tool("ncdump", "-h", sample) == tool("ncdump", "-h", target)
    assert 0 < np.abs(values(sample, "lat") - values(target, "lat")).max() <= 1e-3


def test_repack_dataset_with_several_links_is_one_dataset_still(tmp_path: Path) -> None:
    source = make(tmp_path / "a.h5", v={"data": field((8, 8)), "chunks": (4, 4)})
    with h5py.File(source, "a") as file:
        file["w"], file["soft"] = file["v"], h5py.SoftLink("/v")
    assert len(tamis.repack(source, tmp_path / "b.h5", {"*": "zfp(accuracy=0.1)"}).datasets) == 1
    with h5py.File(tmp_path / "b.h5") as file:
        assert file["w"] == file["v"] == file["soft"]


def test_repack_chunks_that_were_never_written_stay_so(tmp_path: Path) -> None:
    """A file of one chunk must not become one of nine hundred."""
    source = make(
        tmp_path / "a.h5", v={"shape": (300, 300), "dtype": "f4", "chunks": (10, 10), "fillvalue": 9.96921e36}
    )
    with h5py.File(source, "a") as file:
        file["v"][:10, :10] = field((10, 10))
    tamis.repack(source, tmp_path / "b.h5", {"v": "shuffle|deflate(4)"})
    assert np.array_equal(values(source, "v"), values(tmp_path / "b.h5", "v"))
    assert len(masks(tmp_path / "b.h5", "v")) == len(masks(source, "v")) == 1


def test_repack_virtual_dataset_gets_the_values_that_it_shows(tmp_path: Path) -> None:
    """It takes no bytes in its own file, and is full of values all the same."""
    make(tmp_path / "part.h5", d=field((10, 10)))
    with h5py.File(tmp_path / "a.h5", "w") as file:
        layout = h5py.VirtualLayout((10, 10), "f4")
        layout[:] = h5py.VirtualSource("part.h5", "d", (10, 10))
        file.create_virtual_dataset("v", layout, fillvalue=-7)
    assert np.array_equal(values(tmp_path / "a.h5", "v"), field((10, 10)))
    (found,) = tamis.repack(tmp_path / "a.h5", tmp_path / "b.h5", {"v": "shuffle|deflate(4)"}).datasets
    assert np.array_equal(values(tmp_path / "b.h5", "v"), field((10, 10)))
    assert found.chunks == 1


@pytest.mark.parametrize("chunks", [(8, 8), (5, 5), (7, 9), (41, 43)], ids=str)
@pytest.mark.parametrize("dtype", ["f4", ">f4"])
def test_repack_partly_written_dataset_is_the_same_in_any_chunks(
    dtype: str, chunks: tuple[int, ...], tmp_path: Path
) -> None:
    source = make(tmp_path / "a.h5", v={"shape": (41, 43), "dtype": dtype, "chunks": (8, 8), "fillvalue": 9.96921e36})
    with h5py.File(source, "a") as file:
        file["v"][9:20, 9:20], file["v"][40:, 40:] = 4, 5
    for recipe in ("shuffle|deflate(4)", "zfp(accuracy=0.1)"):
        tamis.repack(source, tmp_path / "b.h5", {"v": recipe}, chunks={"v": chunks}, overwrite=True)
        assert np.abs(values(source, "v") - values(tmp_path / "b.h5", "v")).max() <= (0.1 if "zfp" in recipe else 0)


def test_repack_values_in_an_external_file_are_taken_in(tmp_path: Path) -> None:
    make(
        tmp_path / "a.h5",
        v={"shape": (10, 10), "dtype": "f4", "external": [(str(tmp_path / "raw.bin"), 0, 400)]},
    )
    field((10, 10)).tofile(tmp_path / "raw.bin")
    tamis.repack(tmp_path / "a.h5", tmp_path / "b.h5", {"v": "deflate(4)"})
    (tmp_path / "raw.bin").unlink()
    assert np.array_equal(values(tmp_path / "b.h5", "v"), field((10, 10)))
