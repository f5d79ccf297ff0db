"""D3: stored parameters that come back as a request, as when h5repack, nccopy or ncgen copy a dataset."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import netCDF4
import numpy as np
import pytest
from h5py import h5d, h5p, h5s, h5t
from numpy.typing import NDArray

import tamis
from tamis.filters import StoredZfp

Run = Callable[..., str]

SHAPE = (10, 20, 24)
FIELD = 20 * np.sin(np.arange(4800) / 90).reshape(SHAPE) + np.random.default_rng(3).normal(0, 0.01, SHAPE)
CHUNKS = (5, 10, 6)
# What each mode may do to FIELD when it acts twice, on blocks of at least two axes.
MODES = [
    (tamis.Zfp(reversible=True), 0.0),
    (tamis.Zfp(accuracy=1e-3), 2e-3),
    (tamis.Zfp(precision=24), 1e-3),
    (tamis.Zfp(rate=20), 1e-2),
    (tamis.Zfp(minbits=1, maxbits=16658, maxprec=50, minexp=-12), 2e-3),
]
PROMISE = pytest.mark.parametrize(("zfp", "bound"), MODES, ids=[str(zfp) for zfp, _ in MODES])
# Other extents, and other numbers of axes that ZFP sees.
RECHUNKED = [(10, 20, 24), (3, 7, 5), (1, 20, 24), (10, 1, 8), (1, 1, 24)]


def stored(path: Path, name: str = "v") -> StoredZfp:
    with h5py.File(path) as file:
        plist = file[name].id.get_create_plist()
        assert b"tamis" in plist.get_filter(0)[3]
        assert all(file[name].id.get_chunk_info(i).filter_mask == 0 for i in range(file[name].id.get_num_chunks()))
        return StoredZfp.parse(plist.get_filter(0)[2])


def squeezed(chunks: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(extent for extent in chunks if extent > 1)


def error(path: Path, expected: NDArray[Any], name: str = "v") -> float:
    with h5py.File(path) as file:
        return float(np.abs(file[name][...].astype("f8") - expected).max())


@pytest.fixture
def written(tmp_path: Path) -> Callable[[tamis.Zfp], Path]:
    def write(zfp: tamis.Zfp, dtype: str = "f8") -> Path:
        with h5py.File(tmp_path / "in.h5", "w") as file:
            file.create_dataset("v", data=FIELD.astype(dtype), chunks=CHUNKS, **zfp)
        return tmp_path / "in.h5"

    return write


def netcdf(path: Path) -> Path:
    with netCDF4.Dataset(path, "w") as file:
        for name, extent in zip("tyx", SHAPE, strict=True):
            file.createDimension(name, extent)
        file.createVariable("v", "f8", ("t", "y", "x"), chunksizes=SHAPE, fill_value=False)[:] = FIELD
    return path


def like(source: Path, target: Path, dtype: str, chunks: tuple[int, ...], data: NDArray[Any]) -> None:
    """Create a dataset with the filters that another has in its file."""
    with h5py.File(source) as old, h5py.File(target, "w") as new:
        plist = h5p.create(h5p.DATASET_CREATE)
        plist.set_chunk(chunks)
        number, flags, values, _ = old["v"].id.get_create_plist().get_filter(0)
        plist.set_filter(number, flags, values)
        made = h5d.create(new.id, b"v", h5t.py_create(np.dtype(dtype)), h5s.create_simple(data.shape), plist)
        h5py.Dataset(made)[...] = data


@pytest.mark.peer
@PROMISE
@pytest.mark.parametrize("chunks", RECHUNKED, ids=str)
def test_d03_h5repack_to_other_chunks_keeps_values(
    tmp_path: Path, tool: Run, written: Callable[..., Path], zfp: tamis.Zfp, bound: float, chunks: tuple[int, ...]
) -> None:
    """D3: set_local recognises a stored header given as request and derives the header anew; values right."""
    source, target = written(zfp), tmp_path / "out.h5"
    tool("h5repack", "-l", f"v:CHUNK={'x'.join(map(str, chunks))}", source, target)
    found = stored(target)
    assert found.shape == squeezed(chunks)
    assert found.filter == stored(source).filter
    # One axis has fewer values to share the bits of a rate, and more is lost.
    assert error(target, FIELD) <= (bound * 50 if len(found.shape) == 1 and "rate" in str(zfp) else bound)


@pytest.mark.peer
@PROMISE
def test_d03_nccopy_to_other_chunks_keeps_values(tmp_path: Path, tool: Run, zfp: tamis.Zfp, bound: float) -> None:
    """D3: values right through nccopy."""
    source, filtered, target = netcdf(tmp_path / "in.nc"), tmp_path / "zfp.nc", tmp_path / "out.nc"
    tool("nccopy", "-F", f"v,32013,{','.join(map(str, zfp.requested))}", source, filtered)
    assert stored(filtered).shape == SHAPE
    tool("nccopy", "-M", "0", "-c", "v:1,10,24", filtered, target)
    found = stored(target)
    assert found.shape == (10, 24)
    assert found.filter == stored(filtered).filter
    assert error(target, FIELD) <= bound


@pytest.mark.peer
@PROMISE
def test_d03_ncdump_to_ncgen_keeps_values(tmp_path: Path, tool: Run, zfp: tamis.Zfp, bound: float) -> None:
    """D3: values right through `ncdump -s | ncgen`, with the chunk sizes of the text changed too."""
    source, filtered = netcdf(tmp_path / "in.nc"), tmp_path / "zfp.nc"
    tool("nccopy", "-F", f"v,32013,{','.join(map(str, zfp.requested))}", source, filtered)
    text = tool("ncdump", "-s", "-p", "9,17", filtered)
    for sizes, shape in (("10, 20, 24", SHAPE), ("5, 20, 6", (5, 20, 6)), ("1, 20, 24", (20, 24))):
        assert "_ChunkSizes = 10, 20, 24 ;" in text
        (tmp_path / "a.cdl").write_text(text.replace("_ChunkSizes = 10, 20, 24 ;", f"_ChunkSizes = {sizes} ;"))
        tool("ncgen", "-4", "-o", tmp_path / "out.nc", tmp_path / "a.cdl")
        assert stored(tmp_path / "out.nc").shape == shape
        assert stored(tmp_path / "out.nc").filter == stored(filtered).filter
        assert error(tmp_path / "out.nc", FIELD) <= bound


@PROMISE
@pytest.mark.parametrize(("before", "after"), [("f8", "f4"), ("f4", "f8")])
def test_d03_stored_header_given_as_request_is_derived_anew(
    tmp_path: Path, written: Callable[..., Path], zfp: tamis.Zfp, bound: float, before: str, after: str
) -> None:
    """D3: set_local recognises a stored header given as request and derives the header anew for chunk and type."""
    source, target = written(zfp, before), tmp_path / "out.h5"
    like(source, target, after, (2, 20, 24), FIELD.astype(after))
    found = stored(target)
    assert (found.dtype, found.shape) == (np.dtype(after), (2, 20, 24))
    assert found.filter == stored(source).filter
    assert error(target, FIELD.astype(after)) <= bound


def test_d03_stored_header_given_for_integers_is_derived_anew(tmp_path: Path, written: Callable[..., Path]) -> None:
    """D3: … for the new chunk and type: reversible holds, a tolerance below 1 does not."""
    numbers = np.arange(4800, dtype="i8").reshape(SHAPE) ** 4
    like(written(tamis.Zfp(reversible=True)), tmp_path / "out.h5", "i8", (4, 5, 6), numbers)
    assert stored(tmp_path / "out.h5").dtype == np.dtype("i8")
    assert error(tmp_path / "out.h5", numbers) == 0
    with pytest.raises(ValueError, match="accuracy below 1 does not make integers exact"):
        like(written(tamis.Zfp(accuracy=1e-3)), tmp_path / "other.h5", "i8", (4, 5, 6), numbers)


def test_d03_stored_header_of_big_endian_writer_is_derived_anew(tmp_path: Path, written: Callable[..., Path]) -> None:
    """D3: a stored header is recognised in the other byte order too."""
    source, target = written(tamis.Zfp(accuracy=1e-3)), tmp_path / "out.h5"
    with h5py.File(source) as file:
        words = file["v"].id.get_create_plist().get_filter(0)[2]
    swapped = (words[0], *(int(word) for word in np.array(words[1:], "<u4").byteswap()))
    with h5py.File(target, "w") as file:
        file.create_dataset("v", data=FIELD, chunks=(2, 20, 24), compression=32013, compression_opts=swapped)
    assert not stored(target).swapped
    assert stored(target).filter == stored(source).filter
    assert 0 < error(target, FIELD) <= 1e-3


def test_d03_stored_header_of_other_codec_given_as_request_is_refused(tmp_path: Path) -> None:
    """D3: what cannot be derived anew is refused before anything is written."""
    header = tamis.zfp.Header(np.dtype("f8"), CHUNKS, tamis.zfp.Reversible()).pack()
    words = (0x05007110, *np.frombuffer(header, "<u4").tolist())
    with h5py.File(tmp_path / "out.h5", "w") as file:
        with pytest.raises(ValueError, match="written by ZFP codec 7"):
            file.create_dataset("v", data=FIELD, chunks=CHUNKS, compression=32013, compression_opts=words)
        assert list(file) == []
