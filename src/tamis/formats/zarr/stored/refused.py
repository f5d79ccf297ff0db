"""An array of a Zarr hierarchy whose metadata zarr-python does not know: it has a name and a problem, but no values."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NoReturn

import numpy as np

from tamis.errors import FileError, TamisError
from tamis.filters import ChunkType
from tamis.formats.zarr.stored.attributes import netcdf_attributes
from tamis.formats.zarr.stored.hierarchy import Document
from tamis.formatting import shortened
from tamis.meaning.arrays import Meaning
from tamis.stores.arrays import UnchunkedArray
from tamis.stores.facts import Fill, Storage, ValueType


class RefusedArray(UnchunkedArray):
    """An array that is listed with the reason why nobody here can read it; see `tamis.stores.protocols.StoredArray`.

    Parameters
    ----------
    store_path, path, number, dimensions
        As for `tamis.formats.zarr.stored.array.ZarrArray`.
    document
        Its metadata.
    error
        What is wrong with them, as zarr-python says, or tamis.
    """

    numpy_type = np.dtype("V1")
    can_read_independently = is_text = False

    def __init__(
        self,
        store_path: str,
        path: str,
        number: int,
        dimensions: tuple[str, ...],
        document: Document,
        error: Exception,
    ) -> None:
        self.path, self.label, self.address, self.dimensions = path, f"{store_path}: {path}", number, dimensions
        self.zarr_format, self._document = document.zarr_format, document
        self.shape: Any = document.shape
        self.maxshape = self.shape
        text = self._type_text()
        self.type = ValueType(None, None, None, text, text, "", nbytes=0)
        self.storage = Storage("unknown", ChunkType(self.numpy_type, ()), problem=problem_of(document, error))

    @property
    def attributes(self) -> Mapping[str, Any]:
        """Attributes as readers of netCDF have them; none if they are damaged."""
        known = self._document.attributes
        return netcdf_attributes(known, None, self.zarr_format, {}) if isinstance(known, dict) else {}

    def _type_text(self) -> str:
        """Return the type of the values as the metadata have it."""
        content = self._document.content if isinstance(self._document.content, dict) else {}
        known = content.get("data_type" if self.zarr_format == 3 else "dtype", "unknown")
        return known if isinstance(known, str) else shortened(json.dumps(known))

    @property
    def meaning(self) -> Meaning:
        """Nothing is known of the values."""
        return Meaning()

    @property
    def fill(self) -> Fill:
        """Raise FileError."""
        self.check_readable()

    def check_readable(self) -> NoReturn:
        """Raise FileError."""
        raise FileError(f"{self.label}: {self.storage.problem}").at(dataset=self.path)

    def open_reader(self, *, independent: bool = False) -> NoReturn:
        """Raise FileError."""
        self.check_readable()

    def open_chunks(self) -> NoReturn:
        """Raise FileError."""
        self.check_readable()


def problem_of(document: Document, error: Exception) -> str:
    """Return why an array cannot be read, with the place of its metadata."""
    import zarr  # late: zarr is optional, and there is an array of it here

    if isinstance(error, TamisError):
        return f"its Zarr metadata cannot be read ({document.file}): {error}"
    reason = str(error).splitlines()[0][:_LONGEST] if str(error) else type(error).__name__
    if isinstance(error, KeyError):
        reason = f"expected {reason} among them"
    version = tuple(int(part) for part in zarr.__version__.split(".")[:2])
    newer = "" if version >= _NEWEST_KNOWN else "; a newer zarr, which needs Python 3.12, may read them"
    return f"its Zarr metadata cannot be read by zarr {zarr.__version__} ({document.file}): {reason}{newer}"


_LONGEST = 300
"""Limit of the letters of a message of zarr-python, which may show whole documents."""

_NEWEST_KNOWN = (3, 4)
"""The version of zarr-python that reads all that tamis knows of."""
