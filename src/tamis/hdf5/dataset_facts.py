"""Facts of a dataset that never change, each asked for once: it costs some calls of HDF5."""

from __future__ import annotations

import math
from collections import deque
from contextlib import suppress
from functools import cached_property
from typing import Any, Self

import h5py
import numpy as np
from h5py import h5d, h5o, h5p, h5t
from numpy.typing import NDArray

from tamis import cf
from tamis.filters import ChunkType
from tamis.hdf5.lib import calls, datatypes
from tamis.hdf5.lib.attributes import known_attributes
from tamis.hdf5.lib.file_facts import address_nbytes, filename_of, is_read_only
from tamis.hdf5.lib.filter_list import listed_pipeline
from tamis.hdf5.stored_zfp import zfp_problem
from tamis.missing.definition import Missing
from tamis.pipeline import Pipeline
from tamis.rewrite.padding import Padding

_LAYOUTS = {h5d.CHUNKED: "chunked", h5d.CONTIGUOUS: "contiguous", h5d.COMPACT: "compact", h5d.VIRTUAL: "virtual"}

ELSEWHERE = ("virtual", "external")
"""Layouts whose values are in other files."""

_OPEN = "_tamis_open"
"""Name in h5py's objects of files: datasets that are open."""

_MOST_OPEN = 8
"""HDF5 takes 64 KiB and more for a dataset that is open, and a file may have very many."""


class DatasetFacts:
    """A dataset that is opened when it is needed; few of a file stay open at a time.

    Parameters
    ----------
    file
        Must stay open, and not change meanwhile.
    path
        Of the dataset.
    dataset
        The same, where it is open already.
    address
        Of it, where that is known.
    """

    def __init__(
        self, file: h5py.File, path: str, dataset: h5py.Dataset | None = None, *, address: int | None = None
    ) -> None:
        self.file, self.path = file, path
        self._dataset = dataset
        if address is not None:
            vars(self)["address"] = address

    @classmethod
    def of(cls, dataset: h5py.Dataset) -> Self:
        """Look at a dataset of h5py."""
        return cls(dataset.file, str(dataset.name), dataset)

    @property
    def dataset(self) -> h5py.Dataset:
        """The dataset as h5py has it."""
        if self._dataset is None:
            handle = h5d.open(self.file.id, self.path.encode("utf-8", "surrogateescape"))
            self._dataset = h5py.Dataset(handle, readonly=is_read_only(self.file))  # h5py then asks for its shape once
            others: deque[DatasetFacts] = vars(self.file).setdefault(_OPEN, deque())
            others.append(self)
            if len(others) > _MOST_OPEN:
                others.popleft()._release()
        return self._dataset

    def _release(self) -> None:
        """Let HDF5 close the dataset as soon as nobody uses it; facts stay."""
        self._dataset = None
        for name in ("datatype", "creation_list"):
            vars(self).pop(name, None)

    @cached_property
    def label(self) -> str:
        """File and path, for messages."""
        return f"{filename_of(self.file)}: {self.path}"

    @property
    def filename(self) -> str:
        """Path of the file."""
        return filename_of(self.file)

    @cached_property
    def shape(self) -> Any:
        """Extents; None for a null dataspace."""
        return self.dataset.shape

    @cached_property
    def maxshape(self) -> Any:
        """Extents that it can grow to; None along an axis without end."""
        return self.dataset.maxshape

    @property
    def size(self) -> int:
        """Number of values; 0 for a null dataspace."""
        return 0 if self.shape is None else math.prod(self.shape)

    @cached_property
    def datatype(self) -> h5t.TypeID:
        """Type of the values in the file."""
        return self.dataset.id.get_type()

    @cached_property
    def creation_list(self) -> h5p.PropDCID:
        """Properties that the dataset was created with, which must not be changed."""
        return self.dataset.id.get_create_plist()

    @cached_property
    def numpy_type(self) -> np.dtype[Any] | None:
        """Type of the values as h5py has it; None where NumPy has none."""
        return datatypes.numpy_type(self.dataset)

    @cached_property
    def number_type(self) -> np.dtype[Any] | None:
        """Type of the values where they are floats or integers as NumPy stores them."""
        return datatypes.number_type(self.datatype, self.numpy_type)

    @cached_property
    def dtype(self) -> np.dtype[Any] | None:
        """Type in which chunks go from one dataset to another: numbers, or bytes; see `datatypes.stored_type`."""
        return datatypes.stored_type(self.datatype, self.number_type)

    @cached_property
    def type_text(self) -> str:
        """Type of the values, for people."""
        return datatypes.dtype_text(self.numpy_type)

    @cached_property
    def byteorder(self) -> str:
        """Byte order of the values, ``little`` or ``big``; empty where they have none, or several."""
        return datatypes.byteorder(self.datatype)

    @cached_property
    def has_named_type(self) -> bool:
        """Whether its type is an object of the file of its own."""
        return bool(self.datatype.committed())

    @cached_property
    def varies(self) -> bool:
        """Whether values have varying lengths, and so lie elsewhere in the file than the chunks."""
        return datatypes.varies(self.datatype)

    @cached_property
    def value_nbytes(self) -> int:
        """Bytes of a value in the file."""
        return int(self.datatype.get_size())

    @property
    def nbytes(self) -> int:
        """Bytes of all values."""
        return self.size * self.value_nbytes

    @property
    def values_nbytes(self) -> int:
        """Bytes of all values; 0 where their lengths vary: nothing counts what lies elsewhere in the file."""
        varying = isinstance(self.datatype, h5t.TypeVlenID) or datatypes.is_variable_text(self.datatype)
        return 0 if varying else self.nbytes

    @cached_property
    def stored_nbytes(self) -> int:
        """Bytes that the values take in the file."""
        return int(self.dataset.id.get_storage_size())

    @cached_property
    def layout(self) -> str:
        """Where the values are: chunked, contiguous, compact, external (in other files) or virtual."""
        if self.dataset.is_virtual:
            return "virtual"
        return "external" if self.creation_list.get_external_count() else _LAYOUTS[self.creation_list.get_layout()]

    @cached_property
    def chunk_shape(self) -> tuple[int, ...] | None:
        """Shape of a chunk; None where there are none."""
        return tuple(self.creation_list.get_chunk()) if self.layout == "chunked" else None

    @cached_property
    def pipeline(self) -> Pipeline:
        """Filters as the file has them: order, flags, duplicates and unknown ones included."""
        return listed_pipeline(self.creation_list)

    @cached_property
    def partial_filtered(self) -> bool:
        """Whether chunks that reach beyond the array go through the filters, which is the default of HDF5."""
        return calls.filters_partial_chunks(self.creation_list)

    @cached_property
    def chunk(self) -> ChunkType:
        """Type and shape of a chunk; values of a type that NumPy does not have, and references, are bytes."""
        dtype = self.numpy_type
        nbytes = datatypes.chunk_value_nbytes(self.datatype, address_nbytes(self.file))
        if dtype is None or dtype.hasobject or dtype.itemsize != nbytes:
            dtype = np.dtype(f"V{nbytes}")
        return ChunkType(dtype, self.chunk_shape or ())

    @cached_property
    def fill_state(self) -> int:
        """Whether there is a fill value, and somebody chose it: one of HDF5's constants."""
        return int(self.creation_list.fill_value_defined())

    @cached_property
    def fill_value(self) -> NDArray[Any]:
        """HDF5's fill value, in the type of the dataset.

        Zero where it is undefined, as in files of old C programs: HDF5 then says nothing about values that were never
        written.
        """
        if self.fill_state == h5d.FILL_VALUE_UNDEFINED:
            return np.zeros((), self.dataset.dtype)
        return np.asarray(self.dataset.fillvalue)

    @cached_property
    def is_unreadable_empty(self) -> bool:
        """Whether there is neither a value nor a fill value, which HDF5 refuses to read; tamis reads zeros."""
        undefined = self.fill_state == h5d.FILL_VALUE_UNDEFINED
        return undefined and self.layout not in ELSEWHERE and self.stored_nbytes == 0

    def padding(self, dtype: np.dtype[Any]) -> Padding:
        """Return what chunks hold beyond the end of the array, for chunks of a type that may be bytes alone."""
        growing = tuple(end is None or end > n for n, end in zip(self.shape, self.maxshape, strict=True))
        if not any(growing):
            return Padding()
        chosen = self.fill_state == h5d.FILL_VALUE_USER_DEFINED
        if dtype.kind == "V":
            raw = calls.fill_bytes(self.creation_list, self.datatype) if chosen else bytes(dtype.itemsize)
            return Padding(growing, np.frombuffer(raw, dtype)[0], chosen)
        return Padding(growing, self.fill_value.astype(dtype)[()], chosen)

    @cached_property
    def attributes(self) -> dict[str, Any]:
        """The attributes that conventions give a meaning, as far as they can be read."""
        return known_attributes(self.dataset, "CLASS")

    @cached_property
    def address(self) -> int:
        """Where it is in its file, which tells it from other objects there, whatever path led to it."""
        return int(h5o.get_info(self.dataset.id).addr)

    @cached_property
    def missing(self) -> Missing:
        """What stands for missing values and what is valid, by attributes and the fill value: see `tamis.cf.validity`.

        NaN and the infinities are missing in any case, and not among the values, which are of the dataset's type in
        native byte order. Where values are no numbers, nothing stands for missing ones.
        """
        if self.number_type is None:
            return Missing()
        dtype, fill = self.number_type.newbyteorder("="), None
        if self.fill_state == h5d.FILL_VALUE_USER_DEFINED:
            with suppress(Exception):  # one that cannot be read is none
                fill = self.fill_value
        return Missing(cf.missing_values(self.attributes, dtype, fill), *cf.valid_range(self.attributes, dtype))

    @cached_property
    def missing_nan(self) -> list[NDArray[Any]]:
        """NaN with the bits that attributes and fill value give it."""
        markers = [self.fill_value]
        for name in cf.FILL_ATTRIBUTES:
            with suppress(Exception):  # what cannot be read names no value
                markers.append(np.asarray(self.dataset.attrs[name]))
        return [
            value for marker in markers if marker.dtype.kind == "f" for value in marker.reshape(-1) if value != value
        ]

    @cached_property
    def packing(self) -> cf.Packing | None:
        """How the values are packed, by the attributes."""
        return None if self.number_type is None else cf.packing_of(self.attributes)

    @cached_property
    def zfp_problem(self) -> str:
        """How the stored parameters of zfp contradict the dataset; empty where they do not."""
        return zfp_problem(self.pipeline, math.prod(self.chunk_shape or ()) * self.value_nbytes)
