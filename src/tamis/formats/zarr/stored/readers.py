"""What zarr-python needs to read the codecs of an array, as tests/formats/zarr/test_stock_readers.py finds it."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec
from typing import Any

_NUMCODECS = frozenset(
    {"adler32", "astype", "bitround", "blosc", "bz2", "crc32", "crc32c", "delta", "fixedscaleoffset", "fletcher32"}
    | {"gzip", "jenkins_lookup3", "lz4", "lzma", "packbits", "quantize", "shuffle", "zlib", "zstd"}
)
"""Codecs that numcodecs has without other packages, in Zarr 2 by these names, in Zarr 3 after ``numcodecs.``."""
_OF_ZARR_3 = frozenset(
    {"blosc", "bytes", "crc32c", "endian", "gzip", "sharding_indexed", "transpose", "vlen-bytes", "vlen-utf8", "zstd"}
)
"""Codecs of Zarr 3 that zarr-python has."""
_STOCK = {
    2: _NUMCODECS | {"base64", "categorize", "json2", "pickle", "vlen-array", "vlen-bytes", "vlen-utf8"},
    3: _OF_ZARR_3 | {f"numcodecs.{name}" for name in _NUMCODECS},
}
"""Codecs that zarr-python reads by itself, by version of the format."""
_TAMIS, _ZFPY = "tamis", "zfpy or tamis"
_PACKAGES = {
    "cast_value": "cast-value-rs",
    "scale_offset": "zarr 3.2",
    "h5z_zfp": _TAMIS,
    "msgpack2": "msgpack",
    "numcodecs.pcodec": "pcodec",
    "numcodecs.zfpy": "zfpy",
    "pcodec": "pcodec",
    "reshape": _TAMIS,
    "tamis.pipeline": _TAMIS,
    "zfp": _TAMIS,
    "zfpy": _ZFPY,
}
"""Packages that zarr-python needs for other codecs."""
OF_TAMIS = frozenset(name for name, package in _PACKAGES.items() if package == _TAMIS)
"""Codecs that no other package for Python has."""
_REPAIR = "corrected metadata (tamis repair)"
OF_VALUE_CODECS = "zarr 3.2 and cast-value-rs"
"""What the codecs of packed values need: the codec cast_value came with zarr 3.2, too."""


def package_for(codecs: Iterable[dict[str, Any]], zarr_format: int) -> str:
    """Return the package that zarr-python needs to read codecs; empty if it needs none.

    For a codec of no known package, this is ``the codec`` with its name, and for netCDF-C's shuffle, which zarr-python
    reads incorrectly, what to do about it.
    """
    codecs = [*codecs]
    needed = dict.fromkeys(
        _PACKAGES.get(name, f"the codec {name}") for name in unknown_to_zarr_python(codecs, zarr_format)
    )
    if "cast-value-rs" in needed:
        both = {OF_VALUE_CODECS: None}
        needed = both | {name: None for name in needed if name not in OF_VALUE_CODECS}
    if _TAMIS in needed:
        needed.pop(_ZFPY, None)
    if zarr_format == 2 and has_wrong_shuffle(codecs):
        needed[_REPAIR] = None
    return " and ".join(needed)


def unknown_to_zarr_python(codecs: Iterable[dict[str, Any]], zarr_format: int) -> list[str]:
    """Return the names of codecs that zarr-python does not know without other packages."""
    return [name for name in map(_name, codecs) if name not in _STOCK[zarr_format]]


def _name(codec: dict[str, Any]) -> str:
    return str(codec.get("id", codec.get("name")))


def has_wrong_shuffle(codecs: Iterable[dict[str, Any]]) -> bool:
    """Return whether a shuffle of Zarr 2 does not say the size of its elements."""
    return any(_name(codec) == "shuffle" and not shuffle_size(codec) for codec in codecs)


def shuffle_size(codec: dict[str, Any]) -> int:
    """Return the bytes of an element of Zarr 2's shuffle; 0 if netCDF-C wrote it, which does not say."""
    size = codec.get("elementsize", 4)  # numcodecs' default
    return size if isinstance(size, int) and not isinstance(size, bool) and size > 0 else 0


def has_value_codecs() -> bool:
    """Return whether zarr-python reads the codecs of packed values here, without those of tamis."""
    has_codecs = find_spec("zarr") is not None and find_spec("zarr.codecs.cast_value") is not None
    return has_codecs and find_spec("cast_value_rs") is not None


def unread_text() -> str:
    """Return the note that zarr-python could not confirm the floats of packed values; empty if it could."""
    if has_value_codecs():
        return ""
    return "its floats are proven by tamis' own decoding: zarr-python here lacks the codecs, and read the integers"
