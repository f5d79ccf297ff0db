"""The kind of a file that tamis does not read, by its first bytes."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest

from tamis.stores import is_zarr, kind_of


def zipped(data: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("a.nc", data)
    return buffer.getvalue()


def tarred(data: bytes) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        member = tarfile.TarInfo("a.nc")
        member.size = len(data)
        archive.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


def saved(_: bytes) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.arange(3))
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("pack", "words"),
    [
        (gzip.compress, "gzip data: unpack it first (gunzip)"),
        (bz2.compress, "bzip2 data: unpack it first (bunzip2)"),
        (lzma.compress, "xz data: unpack it first (unxz)"),
        (zipped, "a zip archive: unpack it first (unzip), also a zipped Zarr store"),
        (tarred, "a tar archive: unpack it first (tar xf)"),
        (saved, "a NumPy array: "),
    ],
)
def test_kind_of_packed_hdf5_says_how_to_unpack(pack: Callable[[bytes], bytes], words: str, tmp_path: Path) -> None:
    path = tmp_path / "a.nc"
    with h5py.File(path, "w") as file:
        file["v"] = np.arange(10)
    path.write_bytes(pack(path.read_bytes()))
    assert kind_of(path).startswith(words)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "an empty file: copy or download it again"),
        (bytes(4096), "a file that begins with zeros: copy or download it again"),
        (b"\x0e\x03\x13\x01" + bytes(60), "an HDF4 file: convert it first"),
        (b"GRIB" + bytes(60), "GRIB data: convert it first"),
        (b"II*\0" + bytes(60), "a TIFF image, as GeoTIFF: convert it first"),
        (b"SIMPLE  =                    T", "a FITS file: convert it first"),
        (b"\xff\xd8\xff\xe0\x00\x10JFIF", "a JPEG image"),
        (b"CDF\x03" + bytes(60), "a netCDF classic file of an unknown version"),
        (b"\x89HDF\n\x1a\n" + bytes(60), "an HDF5 file that was transferred as text: copy it again, in binary mode"),
        (
            b"\n <!DOCTYPE html><title>404</title>",
            "an HTML page: the download is a message instead of",
        ),
        (b"\xef\xbb\xbf<HTML>", "an HTML page: "),
        (b'<?xml version="1.0"?><Error><Code>NoSuchKey</Code></Error>', "XML text: the download is a message"),
        (
            b"version https://git-lfs.github.com/spec/v1\noid",
            "a Git LFS pointer, not the file itself: get the file with",
        ),
        (b"netcdf a {\ndimensions:", "CDL text: make a file of it with ncgen -k nc4"),
        (b'{"version": 1}', "JSON text: of JSON, tamis reads only references (kerchunk)"),
        (b"\r\nyear, TS\n2000, 288\n", "text that begins with 'year, TS'"),
        ("Zürich 1,2".encode(), "text that begins with 'Zürich 1,2'"),
        (b"\x01\x02abc\xff" + bytes(60), r"a file that begins with b'\x01\x02abc\xff"),
    ],
)
def test_kind_of_first_bytes(data: bytes, words: str, tmp_path: Path) -> None:
    (tmp_path / "a.nc").write_bytes(data)
    assert kind_of(tmp_path / "a.nc").startswith(words)


def test_kind_of_text_that_ends_within_a_character(tmp_path: Path) -> None:
    (tmp_path / "a.nc").write_bytes(b"a" + 600 * "ü".encode())
    assert kind_of(tmp_path / "a.nc").startswith("text that begins with 'aüü")


def test_kind_of_folder_names_the_store_in_it(tmp_path: Path) -> None:
    (tmp_path / "b.zarr").mkdir()
    assert kind_of(tmp_path).endswith("name a file in it, or copy the store again")
    (tmp_path / "b.zarr" / ".zgroup").write_text('{"zarr_format": 2}')
    assert kind_of(tmp_path) == (
        "a folder without Zarr metadata (zarr.json, .zgroup or .zarray): name the store in it, such as"
        f" {tmp_path / 'b.zarr'}"
    )


def test_kind_of_folder_names_icechunk_and_n5(tmp_path: Path) -> None:
    (tmp_path / "ice" / "snapshots").mkdir(parents=True)
    (tmp_path / "ice" / "refs").mkdir()
    assert kind_of(tmp_path / "ice").startswith("an Icechunk repository: ")
    (tmp_path / "a.n5").mkdir()
    (tmp_path / "a.n5" / "attributes.json").write_text('{"n5": "2.0.0"}')
    assert kind_of(tmp_path / "a.n5").startswith("an N5 container: ")


def test_is_zarr_by_metadata(tmp_path: Path) -> None:
    assert not is_zarr(tmp_path)
    (tmp_path / "zarr.json").write_text("{}")
    assert is_zarr(tmp_path)
    assert not is_zarr(tmp_path / "zarr.json")
    assert not is_zarr("a\0b")
