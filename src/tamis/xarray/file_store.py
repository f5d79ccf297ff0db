"""A group of a file as xarray's stores have it: variables with their encoding."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from xarray import Variable
from xarray.backends import AbstractDataStore, CachingFileManager
from xarray.core import indexing

from tamis import cf
from tamis.store.data_model import NamedArray, NamedGroup
from tamis.xarray.encoding_filters import filter_encoding
from tamis.xarray.lazy_array import ComplexArray, LazyArray

_COMPLEX_DIMENSIONS = ("_pfnc_complex", "complex", "ri")
"""Names of the dimension of real and imaginary parts that netCDF4 knows (``auto_complex``)."""


class FileStore(AbstractDataStore):
    """A group of an open file.

    Parameters
    ----------
    path
        Absolute path of the file.
    manager
        xarray's manager of the file.
    group
        The group.
    auto_complex
        Whether a last dimension of complex numbers, as netCDF4 has them, is no dimension.
    masked
        Whether xarray masks fill values.
    """

    def __init__(
        self,
        path: str,
        manager: CachingFileManager[Any],
        group: NamedGroup,
        auto_complex: bool = False,
        masked: bool = True,
    ) -> None:
        self._path, self._manager, self._group = path, manager, group
        self._auto_complex, self._masked = auto_complex, masked

    def get_variables(self) -> dict[str, Variable]:
        """Return the variables by name."""
        for name, reason in self._group.left_out.items():
            warnings.warn(f"{self._path}: {self._group.path}: {name} is left out: {reason}", UserWarning, stacklevel=5)
        return {name: self._variable(item) for name, item in self._group.variables.items()}

    def _variable(self, item: NamedArray) -> Variable:
        data, encoding = LazyArray(self._manager, item), self._encoding(item)
        if self._auto_complex and _has_parts(item):
            return self._complex_variable(item, ComplexArray(data), encoding)
        attributes = dict(item.attributes)
        # xarray compares values with these one by one, which opaque ones and records refuse.
        if self._masked and item.dtype.kind == "V":
            encoding |= {name: attributes.pop(name) for name in cf.FILL_ATTRIBUTES if name in attributes}
        return Variable(item.dimensions, indexing.LazilyIndexedArray(data), attributes, encoding)

    def _complex_variable(self, item: NamedArray, data: ComplexArray, encoding: dict[str, Any]) -> Variable:
        dimensions, chunks = item.dimensions[:-1], item.chunk_shape
        encoding |= {"dtype": data.dtype, "original_shape": data.shape}
        if chunks is not None:
            encoding["chunksizes"] = chunks[:-1]
            encoding["preferred_chunks"] = dict(zip(dimensions, chunks[:-1], strict=True))
        return Variable(dimensions, indexing.LazilyIndexedArray(data), dict(item.attributes), encoding)

    def get_attrs(self) -> dict[str, Any]:
        """Return the attributes of the group."""
        return dict(self._group.attributes)

    def get_dimensions(self) -> dict[str, int]:
        """Return the sizes of the group's own dimensions."""
        return {name: dimension.size for name, dimension in self._group.dimensions.items()}

    def get_encoding(self) -> dict[str, Any]:
        """Return which dimensions are unlimited."""
        return {"unlimited_dims": {name for name, own in self._group.dimensions.items() if own.is_unlimited}}

    def close(self) -> None:
        """Close the file."""
        self._manager.close()

    def _encoding(self, item: NamedArray) -> dict[str, Any]:
        """Return how a variable is stored."""
        encoding: dict[str, Any] = {"source": self._path, "original_shape": item.shape}
        if item.dtype.kind not in "mM":  # times of h5py, which xarray stores as numbers with units
            encoding["dtype"] = _dtype(item)
        chunks = item.chunk_shape
        encoding |= {"contiguous": chunks is None, "chunksizes": chunks}
        if chunks is not None:
            encoding["preferred_chunks"] = dict(zip(item.dimensions, chunks, strict=True))
        return encoding if chunks is None else encoding | filter_encoding(item.pipeline)


def _has_parts(item: NamedArray) -> bool:
    """Return whether the last axis of a variable has the real and imaginary parts of complex numbers."""
    is_pair = item.shape[-1:] == (2,) and item.dimensions[-1] in _COMPLEX_DIMENSIONS
    return is_pair and item.dtype.kind == "f" and item.dtype.itemsize in (4, 8)


def _dtype(item: NamedArray) -> Any:
    """Return the type that an engine of xarray is to store."""
    if item.enum is not None:
        return np.dtype(item.dtype, metadata={"enum": dict(item.enum.members), "enum_name": item.enum.name})
    return str if item.is_text else item.dtype
