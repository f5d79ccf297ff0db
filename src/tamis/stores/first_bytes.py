"""The kind of a file, from its first bytes, and what to do with it if tamis does not read it."""

from __future__ import annotations

import os
import string
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tamis.errors import FileError
from tamis.formatting import shortened
from tamis.library_lock import imported
from tamis.remote.address import Address
from tamis.system.files import read_at

if TYPE_CHECKING:
    from tamis.remote.file import RemoteFile

READABLE = "an HDF5, netCDF-4 or netCDF classic file, a Zarr store, or references (kerchunk)"
"""The formats that tamis reads."""

CLASSIC_KINDS = {1: "classic", 2: "64-bit offset", 5: "cdf5"}
"""Kinds of netCDF classic, as ``ncdump -k`` calls them, by the number after the letters CDF that begin a file."""

_CLASSIC_HEADS = tuple(b"CDF" + bytes([number]) for number in CLASSIC_KINDS)
_HDF5_HEAD = b"\x89HDF\r\n\x1a\n"
_LEAST_USER_BLOCK = 512
_ZARR_METADATA = ("zarr.json", ".zgroup", ".zarray", ".zmetadata")
_HEAD_NBYTES = 1024
_SHOWN_NBYTES = 16


class _Signature(NamedTuple):
    """Bytes at an offset, the kind of file that has them, and advice; empty if nothing helps."""

    start: bytes
    words: str
    advice: str = ""
    offset: int = 0


_UNPACK = "unpack it first"
_MANGLED = "copy it again, in binary mode"
_SIGNATURES = (
    _Signature(_HDF5_HEAD, "the beginning of an HDF5 file", "copy it again, it is truncated or damaged"),
    _Signature(b"\x89HDF\n\x1a\n", "an HDF5 file that was transferred as text", _MANGLED),
    _Signature(b"\x89HDF\r\r\n", "an HDF5 file that was transferred as text", _MANGLED),
    _Signature(b"\xc2\x89HDF", "an HDF5 file that was converted as text", _MANGLED),
    _Signature(b"\xef\xbf\xbdHDF", "an HDF5 file that was converted as text", _MANGLED),
    _Signature(b"CDF", "a netCDF classic file of an unknown version", "copy it again"),
    _Signature(b"\x0e\x03\x13\x01", "an HDF4 file", "convert it first, with h4toh5 or gdal_translate -of netCDF"),
    _Signature(b"GRIB", "GRIB data", "convert it first, with grib_to_netcdf, cdo -f nc4 copy or cfgrib"),
    _Signature(b"BUFR", "BUFR data", "convert it first, with bufr_dump or pdbufr"),
    _Signature(b"II*\0", "a TIFF image, as GeoTIFF", "convert it first, with gdal_translate -of netCDF"),
    _Signature(b"MM\0*", "a TIFF image, as GeoTIFF", "convert it first, with gdal_translate -of netCDF"),
    _Signature(b"II+\0", "a BigTIFF image, as GeoTIFF", "convert it first, with gdal_translate -of netCDF"),
    _Signature(b"MM\0+", "a BigTIFF image, as GeoTIFF", "convert it first, with gdal_translate -of netCDF"),
    _Signature(b"SIMPLE  =", "a FITS file", "convert it first, with gdal_translate -of netCDF or astropy"),
    _Signature(b"\xcd\xf3\x00\x01", "a NASA CDF file, which is not netCDF", "convert it first, with cdf-to-netcdf"),
    _Signature(b"\xcd\xf2\x60\x02", "a NASA CDF file, which is not netCDF", "convert it first, with cdf-to-netcdf"),
    _Signature(b"MATLAB 5.0", "a MATLAB file of version 5 to 7", "save it in MATLAB with -v7.3, which is HDF5"),
    _Signature(b"\x93NUMPY", "a NumPy array", "write it to a dataset: tamis.hdf5.write"),
    _Signature(b"zfp", "a stream of zfp without a file around it", "decode it with zfp"),
    _Signature(b"\x1f\x8b", "gzip data", f"{_UNPACK} (gunzip)"),
    _Signature(b"BZh", "bzip2 data", f"{_UNPACK} (bunzip2)"),
    _Signature(b"\xfd7zXZ\0", "xz data", f"{_UNPACK} (unxz)"),
    _Signature(b"\x28\xb5\x2f\xfd", "zstd data", f"{_UNPACK} (unzstd)"),
    _Signature(b"\x04\x22\x4d\x18", "lz4 data", f"{_UNPACK} (unlz4)"),
    _Signature(b"\x1f\x9d", "compress data", f"{_UNPACK} (uncompress)"),
    _Signature(b"7z\xbc\xaf\x27\x1c", "a 7-zip archive", f"{_UNPACK} (7z x)"),
    _Signature(b"PK\x03\x04", "a zip archive", f"{_UNPACK} (unzip), also a zipped Zarr store"),
    _Signature(b"PK\x05\x06", "an empty zip archive"),
    _Signature(b"ustar", "a tar archive", f"{_UNPACK} (tar xf)", 257),
    _Signature(b"version https://git-lfs", "a Git LFS pointer, not the file itself", "get the file with git lfs pull"),
    _Signature(b"/annex/objects/", "a git-annex pointer, not the file itself", "get the file with git annex get"),
    _Signature(b"PAR1", "a Parquet file"),
    _Signature(b"ARROW1", "an Arrow file"),
    _Signature(b"SQLite format 3\0", "an SQLite database"),
    _Signature(b"\xff\xd8\xff", "a JPEG image"),
    _Signature(b"\x89PNG", "a PNG image"),
    _Signature(b"GIF8", "a GIF image"),
    _Signature(b"%PDF", "a PDF document"),
    _Signature(b"\x7fELF", "a program"),
)

_DOWNLOAD = "the download is a message instead of the file: read it, and download again"
_TEXT_SIGNATURES = (
    _Signature(b"<!doctype html", "an HTML page", _DOWNLOAD),
    _Signature(b"<html", "an HTML page", _DOWNLOAD),
    _Signature(b"<?xml", "XML text", _DOWNLOAD),
    _Signature(b"<error", "XML text", _DOWNLOAD),
    _Signature(b"netcdf ", "CDL text", "make a file of it with ncgen -k nc4"),
    _Signature(b"{", "JSON text", "of JSON, tamis reads only references (kerchunk), by their own path"),
)
"""In small letters, after blanks and a byte-order mark."""

_PAGES = tuple(item.start for item in _TEXT_SIGNATURES if item.words == "an HTML page")

_REFERENCE_MARKS = (b'"refs"', b'"templates"', b'.zgroup"', b'.zattrs"', b'.zarray"', b'zarr.json"')


def is_classic(path: str | os.PathLike[str]) -> bool:
    """Return whether a path leads to a netCDF classic file; False if it cannot be read."""
    return _head_of(path, 4)[:4] in _CLASSIC_HEADS


def is_references(path: str | os.PathLike[str]) -> bool:
    """Return whether a path leads to references in JSON, as kerchunk writes them; False if it cannot be read."""
    head = _head_of(path, _HEAD_NBYTES)[:_HEAD_NBYTES]
    return head.lstrip().startswith(b"{") and any(mark in head for mark in _REFERENCE_MARKS)


def _head_of(path: str | os.PathLike[str], nbytes: int) -> bytes:
    """Return the first bytes of a file; none if it cannot be read."""
    try:
        if isinstance(path, Address):
            return _remote_head(path)
        place = Path(os.fsdecode(path))
        if not place.is_file():  # a pipe would block
            return b""
        with place.open("rb") as stream:
            return stream.read(nbytes)
    except (OSError, FileError):
        return b""


def zarr_format_of(path: str | os.PathLike[str]) -> int:
    """Return the version of a Zarr store that is a folder."""
    return 3 if os.path.exists(os.path.join(path, "zarr.json")) else 2


def is_zarr(path: str | os.PathLike[str]) -> bool:
    """Return whether a path leads to a folder with Zarr metadata."""
    if isinstance(path, Address):
        return _is_remote_zarr(path)
    try:
        return os.path.isdir(path) and any(os.path.isfile(os.path.join(path, name)) for name in _ZARR_METADATA)
    except (OSError, ValueError):
        return False


FOLDERS = {"Zarr": is_zarr}
"""Formats whose stores are folders, and how each is recognized."""


def is_folder_store(path: str | os.PathLike[str]) -> bool:
    """Return whether a path leads to a folder that is one store, such as Zarr's, and no folder of files."""
    return any(recognizes(path) for recognizes in FOLDERS.values())


def is_folder(path: str | os.PathLike[str]) -> bool:
    """Return whether a path leads to a folder of files here, which is no store."""
    return os.path.isdir(path) and not is_folder_store(path)


def format_of(path: str | os.PathLike[str]) -> str:
    """Return the format of a file that tamis reads, or would read, by its first bytes; empty for any other."""
    if is_classic(path):
        return "netCDF classic"
    folder = next((name for name, recognizes in FOLDERS.items() if recognizes(path)), "")
    return folder or ("HDF5" if is_read(path) else "")


_opened: dict[tuple[str, str], tuple[RemoteFile, float]] = {}
"""The remote file that was last opened to find out what it is, and when: opening it right away needs no request."""

_LOOKED_SECONDS = 2.0
"""How long that file may be opened without a request."""


def opened_remote(address: Address) -> RemoteFile:
    """Open a file that is elsewhere, or return the one that was just opened to find out what it is."""
    known = _opened.pop(_key(address), None)
    if known and time.monotonic() - known[1] < _LOOKED_SECONDS:
        return known[0]
    opened: RemoteFile = imported("tamis.remote.file").RemoteFile(address)  # late: most files are here
    return opened


def _key(address: Address) -> tuple[str, str]:
    return address.url, repr((address.store, *sorted(address.options.items())))


def _remote_head(address: Address) -> bytes:
    """Return the first bytes of a file that is elsewhere, and keep it open for the next caller of `opened_remote`."""
    remote = opened_remote(address)
    _opened.clear()
    _opened[_key(address)] = remote, time.monotonic()
    return remote.head


def _is_remote_zarr(address: Address) -> bool:
    """Return whether an address has Zarr metadata below it; asked first if its name says so."""
    size_of = imported("tamis.remote.file").size_of
    if address.name.endswith(".zarr") or address.endswith("/"):
        return any(size_of(address / name) is not None for name in _ZARR_METADATA)
    try:
        head = _remote_head(address)
    except FileError as error:
        is_absent = getattr(error, "status", 0) == 404
        if is_absent and any(size_of(address / name) is not None for name in _ZARR_METADATA):
            return True
        raise
    # Web servers return a page for a folder
    is_page = head.lstrip()[:_HEAD_NBYTES].lower().startswith(_PAGES)
    return is_page and any(size_of(address / name) is not None for name in _ZARR_METADATA)


def is_read(path: str | os.PathLike[str]) -> bool:
    """Return whether tamis reads files and folders of this kind; they may still be damaged.

    Raises
    ------
    OSError
        If the file cannot be read.
    """
    if isinstance(path, Address):
        return _remote_head(path).startswith((_HDF5_HEAD, *_CLASSIC_HEADS))
    if not os.path.isfile(path):  # a pipe would block
        os.stat(path)
        return is_folder_store(path)
    with open(path, "rb", buffering=0) as stream:
        head = stream.read(len(_HDF5_HEAD))
        if head.startswith((_HDF5_HEAD, *_CLASSIC_HEADS)):
            return True
        handle = stream.fileno()
        return any(read_at(handle, len(_HDF5_HEAD), offset) == _HDF5_HEAD for offset in _user_blocks(handle))


def _user_blocks(handle: int) -> Iterator[int]:
    """Yield the offsets at which the content of an HDF5 file may begin after a user block."""
    offset, end = _LEAST_USER_BLOCK, os.fstat(handle).st_size
    while offset < end:
        yield offset
        offset *= 2


def kind_of(path: str | os.PathLike[str]) -> str:
    """Return what is at a path and, after a colon, what to do; for messages about files that tamis does not read."""
    if isinstance(path, Address):
        return _head_kind(_remote_head(path)[:_HEAD_NBYTES])
    place = Path(os.fsdecode(path))
    if place.is_dir():
        return _folder_kind(place)
    if not place.is_file():
        return "a device or pipe: copy it to a file first"
    with place.open("rb") as stream:
        return _head_kind(stream.read(_HEAD_NBYTES))


def _head_kind(head: bytes) -> str:
    """Return what begins with these bytes and, after a colon, what to do."""
    if not head:
        return "an empty file: copy or download it again"
    if not any(head):
        return "a file that begins with zeros: copy or download it again"
    signature = _match(_SIGNATURES, head)
    if signature is None:
        signature = _match(_TEXT_SIGNATURES, head.removeprefix(b"\xef\xbb\xbf").lstrip().lower())
    if signature is not None:
        return f"{signature.words}: {signature.advice}" if signature.advice else signature.words
    line = _first_line(head)
    if line is not None:
        return f"text that begins with {shortened(line)!r}"
    return f"a file that begins with {head[:_SHOWN_NBYTES]!r}"


def _match(signatures: tuple[_Signature, ...], head: bytes) -> _Signature | None:
    return next((item for item in signatures if head.startswith(item.start, item.offset)), None)


def _first_line(head: bytes) -> str | None:
    """Return the first line that is not blank; None if it is not printable."""
    try:
        text = head.decode("utf-8") if len(head) < _HEAD_NBYTES else head.decode("utf-8", "ignore")
    except UnicodeDecodeError:
        return None
    if not all(character.isprintable() or character in string.whitespace for character in text):
        return None
    return next((line.strip() for line in text.splitlines() if line.strip()), "")


def _folder_kind(place: Path) -> str:
    """Describe a folder without Zarr metadata, with any Zarr stores in it."""
    if (place / "snapshots").is_dir() and any((place / name).exists() for name in ("refs", "repo")):
        return "an Icechunk repository: open it with icechunk and xarray.open_zarr, and save the dataset elsewhere"
    if (place / "attributes.json").is_file():
        return "an N5 container: convert it first, with zarr 2's zarr.copy_all or z5py"
    words = "a folder without Zarr metadata (zarr.json, .zgroup or .zarray)"
    try:
        items = sorted(place.iterdir())
    except OSError as error:
        raise FileError(f"{place}: cannot be listed: {error.strerror}").at(path=place) from error
    if not items:
        return "an empty folder"
    stores = [item.name for item in items if is_zarr(item)]
    if stores:
        return f"{words}: name the store in it, such as {place / stores[0]}"
    return f"{words}: name a file in it, or copy the store again"
