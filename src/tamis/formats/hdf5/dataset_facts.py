"""Facts of a dataset that never change; each is read only once, because it costs several calls of HDF5."""

from __future__ import annotations

import math
from collections import deque
from contextlib import suppress
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Self
from weakref import ref

import h5py
import numpy as np
from h5py import h5a, h5d, h5p, h5t
from numpy.typing import NDArray

from tamis.errors import MissingFilterError
from tamis.filters import ChunkType, StoredZfp, UnknownFilter, Zfp
from tamis.filters.zfp import is_stored
from tamis.formats.hdf5.lib import calls, datatypes
from tamis.formats.hdf5.lib.attributes import is_bare_dimension, is_known, known_attributes, known_values
from tamis.formats.hdf5.lib.datatypes import type_words
from tamis.formats.hdf5.lib.files import address_nbytes, filename_of, is_read_only, remote_of
from tamis.formats.hdf5.lib.foreign_filters import isolate
from tamis.formats.hdf5.lib.netcdf_names import stored_path
from tamis.formats.hdf5.lib.quick_facts import Form, QuickFacts, listed_pipeline, quick_facts
from tamis.lazy_property import lazy_property
from tamis.stores.arrays import DescribedArray
from tamis.stores.protocols import ELSEWHERE

if TYPE_CHECKING:
    from tamis.pipeline import Pipeline

_LAYOUTS = {h5d.CHUNKED: "chunked", h5d.CONTIGUOUS: "contiguous", h5d.COMPACT: "compact", h5d.VIRTUAL: "virtual"}

_OPEN = "_tamis_open"
"""Attribute of h5py's file objects: weak references to the facts whose datasets are open.

So everything is freed with its last user, without Python's garbage collector, which the command turns off.
"""

_shared: dict[Form, dict[str, Any]] = {}
"""Facts that datasets of any file share, by form."""

_FORMS = "_tamis_forms"
"""Attribute of h5py's file objects: facts that datasets share, by form and attributes of the conventions."""

_MOST_FORMS = 1024

_SHARED = (
    "number_type",
    "numpy_type",
    "dtype",
    "type_text",
    "type_words",
    "byteorder",
    "has_named_type",
    "varies",
    "value_nbytes",
    "layout",
    "chunk_shape",
    "pipeline",
    "chunk",
    "fill_state",
    "is_fill_undefined",
    "fill_value",
    "problem",
)
"""Facts that follow from the form of a dataset."""

_OF_ATTRIBUTES = ("attributes", "missing", "packing")
"""Facts that follow from the form and the attributes of the conventions, if these are known."""

_CONTENTS = "attribute_contents"
"""Name of the fact, if it is known: the attributes of the conventions, as `QuickFacts` has them."""

_MOST_OPEN = 8
"""Limit of open datasets: HDF5 takes 64 KiB or more for each, and a file may have very many."""


class DatasetFacts(DescribedArray):
    """A dataset that is opened on demand; only a few datasets of a file stay open."""

    def __init__(
        self,
        file: h5py.File,
        path: str,
        dataset: h5py.Dataset | None = None,
        *,
        stored_path: str | None = None,
        address: int | None = None,
    ) -> None:
        self.file, self.path = file, path
        self._dataset = dataset
        self.form: Form | None = None
        self._surveyed = False
        if stored_path is not None:
            self.__dict__["stored_path"] = stored_path
        if address is not None:
            self.__dict__["address"] = address

    @classmethod
    def of(cls, dataset: h5py.Dataset) -> Self:
        """Return the facts of an h5py dataset."""
        name = str(dataset.name)
        facts = cls(dataset.file, name, dataset, stored_path=name)
        isolate(stage.filter.id for stage in facts.pipeline.stages)
        return facts

    def survey(self) -> None:
        """Read all facts of a small dataset in one call, unless already read; otherwise facts are read one by one."""
        if not self._surveyed:
            self._surveyed = True
            if (facts := quick_facts(self.file, self.stored_path)) is not None:
                self.take(facts)

    def take(self, facts: QuickFacts, *, with_attributes: bool = True) -> None:
        """Take over facts that were read together; those that follow from form and attributes are shared.

        Without attributes, facts that follow from them are read when they are needed.
        """
        self._surveyed = True
        known = tuple(sorted((entry for entry in facts.attributes if is_known(entry[0])), key=itemgetter(0)))
        own = self.__dict__
        own["shape"], own["maxshape"] = facts.shape, facts.maxshape
        own[_CONTENTS] = known
        names = {name for name, _ in facts.attributes}
        if b"NAME" not in names:
            own["is_bare_dimension"] = False
        own["has_scales"] = b"DIMENSION_LIST" in names
        if facts.stored_nbytes is not None:
            own["stored_nbytes"] = facts.stored_nbytes
        kept = vars(self.file).setdefault(_FORMS, {}) if with_attributes else _shared
        key = (facts.form, known) if with_attributes else facts.form
        if (shared := kept.get(key)) is None:
            try:
                shared = self._shared_facts(facts.form, known if with_attributes else None)
            except Exception:  # raised again when the fact is needed
                return
            _remember(kept, key, shared)
        own.update(shared)
        self.form = facts.form

    def _shared_facts(self, form: Form, known: tuple[tuple[bytes, Any], ...] | None) -> dict[str, Any]:
        """Return facts that follow from a form, and from the attributes of the conventions if all are known."""
        if (shared := _shared.get(form)) is None:
            _remember(_shared, form, shared := {name: getattr(self, name) for name in _SHARED})
        if known is None or any(content is None for _, content in known):
            return shared
        self.__dict__.update(shared)
        return shared | {name: getattr(self, name) for name in _OF_ATTRIBUTES}

    @lazy_property
    def stored_path(self) -> str:
        """Path in HDF5."""
        return stored_path(self.file, self.path)

    @property
    def dataset(self) -> h5py.Dataset:
        """The h5py dataset."""
        if self._dataset is None:
            handle = h5d.open(self.file.id, self.stored_path.encode("utf-8", "surrogateescape"))
            return self.keep(h5py.Dataset(handle, readonly=is_read_only(self.file)))  # lets h5py cache the shape
        return self._dataset

    def keep(self, dataset: h5py.Dataset) -> h5py.Dataset:
        """Return the dataset, just opened by its path, and keep it open until some others are opened."""
        if self._dataset is not None:
            return self._dataset
        self._dataset = dataset
        try:
            isolate(stage.filter.id for stage in self.pipeline.stages)
        except MissingFilterError:
            self._release()
            raise
        others: deque[ref[DatasetFacts]] = vars(self.file).setdefault(_OPEN, deque())
        others.append(ref(self))
        if len(others) > _MOST_OPEN and (oldest := others.popleft()()) is not None:
            oldest._release()
        return dataset

    def _release(self) -> None:
        """Let HDF5 close the dataset as soon as nothing else uses it; keep the facts."""
        self._dataset = None

    @lazy_property
    def label(self) -> str:
        """File and path, for messages."""
        return f"{filename_of(self.file)}: {self.path}"

    @property
    def filename(self) -> str:
        """Path of the file."""
        return filename_of(self.file)

    @lazy_property
    def shape(self) -> Any:
        """Extents; None for a null dataspace."""
        return self.dataset.shape

    @lazy_property
    def maxshape(self) -> Any:
        """Largest extents; None for an unlimited axis."""
        return self.dataset.maxshape

    @property
    def size(self) -> int:
        """Number of values; 0 for a null dataspace."""
        return 0 if self.shape is None else math.prod(self.shape)

    @property
    def datatype(self) -> h5t.TypeID:
        """Type of the values in the file; not cached, because HDF5 cannot close all types and properties at exit."""
        return self.dataset.id.get_type()

    @property
    def creation_list(self) -> h5p.PropDCID:
        """Creation properties of the dataset; not cached, like the type."""
        return self.dataset.id.get_create_plist()

    @lazy_property
    def numpy_type(self) -> np.dtype[Any] | None:
        """Type of the values in h5py; None if NumPy does not have it."""
        return datatypes.numpy_type(self.dataset)

    @lazy_property
    def number_type(self) -> np.dtype[Any] | None:
        """Type of the values, if they are floats or integers in a form that NumPy has."""
        return datatypes.number_type(self.datatype, self.numpy_type)

    @lazy_property
    def dtype(self) -> np.dtype[Any] | None:
        """Type in which chunks are copied to another dataset: numbers or bytes; see `datatypes.stored_type`."""
        return datatypes.stored_type(self.datatype, self.number_type)

    @lazy_property
    def type_text(self) -> str:
        """Type of the values, for people."""
        return datatypes.dtype_text(self.numpy_type)

    @lazy_property
    def type_words(self) -> str:
        """Type of the values in words: equal texts mean equal types, in any byte order."""
        return type_words(self.datatype)

    @lazy_property
    def byteorder(self) -> str:
        """Byte order of the values, ``little`` or ``big``; empty if they have none or several."""
        return datatypes.byteorder(self.datatype)

    @lazy_property
    def has_named_type(self) -> bool:
        """True if the type is an object in the file."""
        return bool(self.datatype.committed())

    @lazy_property
    def varies(self) -> bool:
        """True if values have variable lengths, and are therefore stored outside the chunks."""
        return datatypes.varies(self.datatype)

    @lazy_property
    def value_nbytes(self) -> int:
        """Bytes of a value in the file."""
        return int(self.datatype.get_size())

    @property
    def nbytes(self) -> int:
        """Bytes of all values."""
        return self.size * self.value_nbytes

    @property
    def values_nbytes(self) -> int:
        """Bytes of all values; 0 if their lengths vary, because values outside the chunks are not counted."""
        if self.number_type is not None:
            return self.nbytes
        varying = isinstance(self.datatype, h5t.TypeVlenID) or datatypes.is_variable_text(self.datatype)
        return 0 if varying else self.nbytes

    @lazy_property
    def stored_nbytes(self) -> int:
        """Bytes of the values in the file."""
        self.fetch_index()
        return int(self.dataset.id.get_storage_size())

    def fetch_index(self) -> None:
        """Fetch the chunk index in a file that is elsewhere, before libhdf5 walks over it, node by node."""
        if (remote := remote_of(self.file)) is not None:
            remote.prefetch_index(self.address)

    @lazy_property
    def layout(self) -> str:
        """Layout of the values: chunked, contiguous, compact, external (in other files) or virtual."""
        plist = self.creation_list
        return "external" if plist.get_external_count() else _LAYOUTS[plist.get_layout()]

    @lazy_property
    def chunk_shape(self) -> tuple[int, ...] | None:
        """Chunk shape; None if there are no chunks."""
        return tuple(self.creation_list.get_chunk()) if self.layout == "chunked" else None

    @lazy_property
    def pipeline(self) -> Pipeline:
        """Filters as stored, including order, flags, duplicates and unknown filters."""
        return listed_pipeline(self.creation_list)

    @lazy_property
    def partial_filtered(self) -> bool:
        """True if chunks that extend beyond the array are filtered, which is HDF5's default."""
        return calls.filters_partial_chunks(self.creation_list)

    @lazy_property
    def chunk(self) -> ChunkType:
        """Type and shape of a chunk; types that NumPy does not have, and references, are bytes."""
        dtype = self.numpy_type
        nbytes = datatypes.chunk_value_nbytes(self.datatype, address_nbytes(self.file))
        if dtype is None or dtype.hasobject or dtype.itemsize != nbytes:
            dtype = np.dtype(f"V{nbytes}")
        return ChunkType(dtype, self.chunk_shape or ())

    @lazy_property
    def fill_state(self) -> int:
        """State of the fill value, default, defined by the user or undefined: one of HDF5's constants."""
        return int(self.creation_list.fill_value_defined())

    @lazy_property
    def is_fill_undefined(self) -> bool:
        """True if HDF5 does not define unwritten values: there is no fill value, or it is never used."""
        is_never_used = self.creation_list.get_fill_time() == h5d.FILL_TIME_NEVER
        return bool(self.fill_state == h5d.FILL_VALUE_UNDEFINED or is_never_used)

    @lazy_property
    def fill_value(self) -> NDArray[Any]:
        """Value of unwritten elements, in the type of the dataset; zero, as in h5py, if HDF5 defines none."""
        dtype = self.dataset.dtype
        if self.varies and (base := h5py.check_vlen_dtype(dtype)) is not None:
            sequence = np.empty((), dtype)
            sequence[()] = self._sequence(base)
            return sequence
        # h5py frees texts and sequences in records twice.
        return np.zeros((), dtype) if self.is_fill_undefined or self.varies else self._recorded_fill

    def _sequence(self, base: Any) -> Any:
        """Return the fill value of varying length, of items or characters of a type; empty if there is none."""
        if not self.has_fill or (base not in datatypes.TEXTS and base.hasobject):
            return np.empty(0, base)
        if base in datatypes.TEXTS:
            return self.dataset.fillvalue
        return calls.fill_sequence(self.creation_list, self.datatype, base)

    @property
    def _recorded_fill(self) -> NDArray[Any]:
        """The fill value that the file records, in the type of the dataset."""
        if self.number_type is None:
            return np.asarray(self.dataset.fillvalue)
        value = np.zeros((), self.number_type)
        self.creation_list.get_fill_value(value)
        return value

    @lazy_property
    def is_unreadable_empty(self) -> bool:
        """True if there are neither values nor a fill value: HDF5 then refuses to read, and tamis reads zeros."""
        undefined = self.fill_state == h5d.FILL_VALUE_UNDEFINED
        return undefined and self.layout not in ELSEWHERE and self.stored_nbytes == 0

    @property
    def has_fill(self) -> bool:
        """True if a user chose the value of unwritten elements."""
        return bool(self.fill_state == h5d.FILL_VALUE_USER_DEFINED) and not self.is_fill_undefined

    def fill_as(self, dtype: np.dtype[Any]) -> Any:
        """Return the fill value in the type of chunks, numbers or bytes."""
        if dtype.kind == "V" and not self.has_fill:
            return np.zeros((), dtype)[()]
        return super().fill_as(dtype)

    def fill_bytes(self) -> bytes:
        """Return the bytes of the fill value in the file."""
        return calls.fill_bytes(self.creation_list, self.datatype)

    @property
    def likeness(self) -> object:
        """Key that is equal for datasets that differ only in path, values and location; None if unknown."""
        self.survey()
        contents = self.__dict__.get(_CONTENTS, ())
        if self.form is None or self.is_bare_dimension or any(content is None for _, content in contents):
            return None
        return self.form, self.shape, self.maxshape, contents

    @lazy_property
    def attributes(self) -> dict[str, Any]:
        """The attributes of the conventions, without unreadable ones."""
        contents = self.__dict__.get(_CONTENTS)
        if contents is None:
            return known_attributes(self.dataset, "CLASS")
        return known_values(lambda: self.dataset, contents)

    @lazy_property
    def is_bare_dimension(self) -> bool:
        """True if the dataset only stands for a netCDF-4 dimension without a variable, and has no values."""
        return is_bare_dimension(self.dataset)

    @lazy_property
    def has_scales(self) -> bool:
        """True if dimension scales are attached to axes."""
        return bool(h5a.exists(self.dataset.id, b"DIMENSION_LIST"))

    @property
    def is_enum(self) -> bool:
        """True if the values are of an enumerated type."""
        return self.form is None and isinstance(self.datatype, h5t.TypeEnumID)  # no form describes one

    @lazy_property
    def address(self) -> int:
        """Address in the file, which identifies the dataset under any path."""
        return calls.address_of(self.dataset.id)

    @property
    def fill_marker(self) -> NDArray[Any] | None:
        """The fill value if a user chose it; None otherwise, or if it cannot be read."""
        if self.fill_state == h5d.FILL_VALUE_USER_DEFINED and not self.varies:
            with suppress(Exception):
                return self._recorded_fill
        return None

    def attribute_values(self, name: str) -> NDArray[Any]:
        """Return an attribute with its bits, as stored; a text if there is none, or it cannot be read."""
        with suppress(Exception):
            return np.asarray(self.dataset.attrs[name])
        return np.asarray("")

    @lazy_property
    def problem(self) -> str:
        """A contradiction between stored parameters of zfp and the dataset, or values elsewhere; empty if none."""
        if self.layout in ELSEWHERE and remote_of(self.file) is not None and self._is_in_other_files():
            # HDF5 would open them as the same bytes, because h5py's driver has no names.
            return "its values are in other files, which tamis does not read over a network: download them all"
        return _zfp_problem(self.pipeline, math.prod(self.chunk_shape or ()) * self.value_nbytes)

    def _is_in_other_files(self) -> bool:
        plist = self.creation_list
        names = (plist.get_virtual_filename(index) for index in range(plist.get_virtual_count()))
        return self.layout != "virtual" or any(name != "." for name in names)


def _remember(kept: dict[Any, dict[str, Any]], key: Any, facts: dict[str, Any]) -> None:
    if len(kept) >= _MOST_FORMS:
        kept.clear()
    kept[key] = facts


def _zfp_problem(pipeline: Pipeline, chunk_nbytes: int) -> str:
    """Return how stored parameters of zfp contradict the dataset; empty if they do not."""
    for stage in pipeline.stages:
        if stage.filter.id != Zfp.id:
            continue
        if isinstance(stage.filter, UnknownFilter):
            return stage.filter.reason
        if is_stored(stage.stored or ()):
            stored = StoredZfp.parse(stage.stored or ())
            described = math.prod(stored.shape) * stored.dtype.itemsize
            if described != chunk_nbytes:
                return (
                    f"damaged: its ZFP parameters describe chunks of {described} bytes, but its chunks have "
                    f"{chunk_nbytes}"
                )
    return ""
