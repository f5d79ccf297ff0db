"""The facts of an HDF5 dataset that follow from its type and creation properties, in one record.

`facts_of` reads the record of an open dataset through h5py. Native code knows most datasets by their form
(`tamis.formats.hdf5.lib.quick_facts`): all datasets of a form share the record of the first one.
"""

from __future__ import annotations

import hashlib
import math
from typing import TYPE_CHECKING, Any, NamedTuple

import h5py
import numpy as np
from h5py import h5d, h5p, h5t
from numpy.typing import NDArray

from tamis.filters import ChunkType, StoredZfp, UnknownFilter, Zfp
from tamis.filters.zfp import is_stored
from tamis.formats.hdf5.lib import calls, datatypes
from tamis.formats.hdf5.lib.files import address_nbytes, has_tree_indexes, remote_of
from tamis.stores.facts import ELSEWHERE, Fill, Storage, ValueType

if TYPE_CHECKING:
    from tamis.pipeline import Pipeline

_LAYOUTS = {h5d.CHUNKED: "chunked", h5d.CONTIGUOUS: "contiguous", h5d.COMPACT: "compact", h5d.VIRTUAL: "virtual"}


class DatasetFacts(NamedTuple):
    """What follows from type and creation properties of a dataset."""

    type: ValueType
    storage: Storage
    fill: Fill
    numpy_type: np.dtype[Any] | None  # Type of the values in h5py; None if NumPy does not have it
    fill_state: int  # State of the fill value, default, defined by the user or undefined: one of HDF5's constants
    is_enum: bool  # Whether the values are of an enumerated type


def facts_of(dataset: h5py.Dataset, file: h5py.File, pipeline: Pipeline) -> DatasetFacts:
    """Return the facts of an open dataset of a file, whose filters are listed already."""
    # Neither is kept: HDF5 cannot close all types and properties at exit.
    datatype, plist = dataset.id.get_type(), dataset.id.get_create_plist()
    problem = ""
    try:
        numpy_type = datatypes.numpy_type(dataset)
        kind = _value_type(datatype, numpy_type, datatypes.number_type(datatype, numpy_type))
        stored = _stored_type(datatype, numpy_type, file)
    except RecursionError:  # the other datasets of the file can be described
        numpy_type, kind, stored = None, _nested_type(datatype), np.dtype(f"V{datatype.get_size()}")
        problem = "its types are nested too deeply: leave it out (drop)"
    state = int(plist.fill_value_defined())
    return DatasetFacts(
        kind,
        _storage(plist, pipeline, kind.nbytes, stored, file, problem),
        _fill(dataset, plist, datatype, kind, numpy_type, state),
        numpy_type,
        state,
        isinstance(datatype, h5t.TypeEnumID),
    )


def _value_type(datatype: h5t.TypeID, numpy_type: np.dtype[Any] | None, numbers: np.dtype[Any] | None) -> ValueType:
    dtype = datatypes.stored_type(datatype, numbers)
    has_values = dtype is not None and numpy_type is not None and numpy_type.subdtype is None
    return ValueType(
        numbers=numbers,
        dtype=dtype,
        values=numpy_type if has_values else None,
        text=datatypes.dtype_text(numpy_type),
        words=datatypes.type_words(datatype),
        byteorder=datatypes.byteorder(datatype),
        nbytes=int(datatype.get_size()),
        varies=datatypes.varies(datatype),
        is_counted=not isinstance(datatype, h5t.TypeVlenID) and not datatypes.is_variable_text(datatype),
        is_named=bool(datatype.committed()),
    )


def _nested_type(datatype: h5t.TypeID) -> ValueType:
    """Return a type whose members are nested too deeply for Python: nothing can be done with its values."""
    text = "a type nested too deeply"
    bytes_of_type = hashlib.sha256(datatype.encode()).hexdigest()
    return ValueType(
        numbers=None,
        dtype=None,
        values=None,
        text=text,
        words=f"{text} ({bytes_of_type[:16]})",
        byteorder="",
        nbytes=int(datatype.get_size()),
        is_named=bool(datatype.committed()),
    )


def _stored_type(datatype: h5t.TypeID, numpy_type: np.dtype[Any] | None, file: h5py.File) -> np.dtype[Any]:
    """Return the type of the values in chunks; types that NumPy does not have, and references, are bytes."""
    nbytes = datatypes.chunk_value_nbytes(datatype, address_nbytes(file))
    if numpy_type is None or numpy_type.hasobject or numpy_type.itemsize != nbytes:
        return np.dtype(f"V{nbytes}")
    return numpy_type


def _storage(
    plist: h5p.PropDCID,
    pipeline: Pipeline,
    value_nbytes: int,
    stored: np.dtype[Any],
    file: h5py.File,
    problem: str,
) -> Storage:
    """Return how the values are stored; `problem` is what is wrong with their type."""
    layout = "external" if plist.get_external_count() else _LAYOUTS[plist.get_layout()]
    chunk_shape = tuple(plist.get_chunk()) if layout == "chunked" else None
    problem = problem or _zfp_problem(pipeline, math.prod(chunk_shape or ()) * value_nbytes)
    if layout in ELSEWHERE and remote_of(file) is not None and _is_in_other_files(plist, layout):
        # HDF5 would open them as the same bytes, because h5py's driver has no names.
        problem = "its values are in other files, which tamis does not read over a network: download them all"
    return Storage(
        layout,
        ChunkType(stored, chunk_shape or ()),
        chunk_shape,
        pipeline,
        # Without chunks, as HDF5 does unless it is asked not to
        partial_filtered=chunk_shape is None or calls.filters_partial_chunks(plist),
        chunk_records="tree" if has_tree_indexes(file) else "array",
        problem=problem,
    )


def _is_in_other_files(plist: h5p.PropDCID, layout: str) -> bool:
    if layout != "virtual":
        return True
    return any(plist.get_virtual_filename(index) != "." for index in range(plist.get_virtual_count()))


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


def _fill(
    dataset: h5py.Dataset,
    plist: h5p.PropDCID,
    datatype: h5t.TypeID,
    kind: ValueType,
    numpy_type: np.dtype[Any] | None,
    state: int,
) -> Fill:
    """Return the fill value: zero, as in h5py, if HDF5 defines none, or never uses it."""
    is_recorded = state == h5d.FILL_VALUE_USER_DEFINED
    is_undefined = state == h5d.FILL_VALUE_UNDEFINED or plist.get_fill_time() == h5d.FILL_TIME_NEVER
    is_chosen = is_recorded and not is_undefined
    stored = calls.fill_bytes(plist, datatype) if is_chosen and kind.dtype is not None else b""
    if kind.numbers is None:
        return Fill(_other_value(dataset, plist, datatype, numpy_type, is_chosen, is_undefined), is_chosen, stored)
    recorded = np.zeros((), kind.numbers)
    if state != h5d.FILL_VALUE_UNDEFINED:
        plist.get_fill_value(recorded)
    value = np.zeros((), kind.numbers) if is_undefined else recorded
    return Fill(value, is_chosen, stored, recorded if is_recorded else None)


def _other_value(
    dataset: h5py.Dataset,
    plist: h5p.PropDCID,
    datatype: h5t.TypeID,
    dtype: np.dtype[Any] | None,
    is_chosen: bool,
    is_undefined: bool,
) -> NDArray[Any]:
    """Return a fill value that is no number, as h5py has it, or its bytes if h5py cannot read it."""
    if dtype is None:
        return np.zeros((), f"V{datatype.get_size()}")
    if (base := h5py.check_vlen_dtype(dtype)) is not None:
        sequence = np.empty((), dtype)
        sequence[()] = _sequence(dataset, plist, datatype, base, is_chosen)
        return sequence
    # h5py frees texts and sequences in records twice, and takes references for objects of Python.
    if is_undefined or dtype.hasobject:
        return np.zeros((), dtype)
    try:
        return np.asarray(dataset.fillvalue)
    except (OSError, RuntimeError, TypeError, ValueError):
        return np.frombuffer(calls.fill_bytes(plist, datatype), f"V{datatype.get_size()}").reshape(())


def _sequence(dataset: h5py.Dataset, plist: h5p.PropDCID, datatype: h5t.TypeID, base: Any, is_chosen: bool) -> Any:
    """Return the fill value of varying length, of items or characters of a type; empty if there is none."""
    if not is_chosen or (base not in datatypes.TEXTS and base.hasobject):
        return np.empty(0, base)
    return dataset.fillvalue if base in datatypes.TEXTS else calls.fill_sequence(plist, datatype, base)
