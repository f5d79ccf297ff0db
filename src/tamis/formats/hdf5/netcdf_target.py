"""A new netCDF-4 file, which gets the content of a store of another format; see `tamis.rewrite.transfer.Target`."""

from __future__ import annotations

import itertools
import json
import math
import posixpath
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import h5py
import numpy as np
from h5py import h5d, h5ds, h5f, h5g, h5o, h5p, h5s, h5t

from tamis import _native
from tamis.access import NEW_FILE, create_empty
from tamis.arrays.gather import several_chunks
from tamis.arrays.grid import Grid, default_chunks
from tamis.arrays.index import Parts
from tamis.errors import DataError, FileError, ParameterError, located
from tamis.filters import Deflate, Fletcher32, Shuffle, Zfp
from tamis.formats.hdf5.lib import calls
from tamis.formats.hdf5.lib.attributes import name_containers, record_rounding, set_attribute, set_number, set_text
from tamis.formats.hdf5.lib.files import create_file
from tamis.formats.hdf5.lib.new_filters import NewFilter, create_dataset, set_filters
from tamis.formats.hdf5.library_reader import selected
from tamis.formats.hdf5.model.attributes import INTERNAL as RESERVED
from tamis.formats.hdf5.model.attributes import OF_SCALES, is_scale_class, write_attribute
from tamis.formats.hdf5.tree.links import raw_name
from tamis.formats.hdf5.writer import GrowingFile, Hdf5Writer, replace_companions
from tamis.formats.hdf5.writing.creation import as_recorded, filters_of
from tamis.formatting import plural, printable
from tamis.meaning.variables import HISTORY, NON_COORDINATE
from tamis.rewrite.growth import compresses
from tamis.rewrite.nearest import nearest_plan, nearest_text
from tamis.rewrite.plan import ArrayPlan
from tamis.rewrite.streams import as_stored, carry
from tamis.rewrite.transfer import unstorable_text
from tamis.rewrite.write import write
from tamis.stores.data_model import (
    JSON_FORMS,
    JSON_MARK,
    AttributeForm,
    Dimension,
    EnumType,
    NamedArray,
    NamedGroup,
    is_compound,
    is_fixed_text,
)
from tamis.stores.facts import ArrayFacts, size_of, values_nbytes_of
from tamis.stores.translation import own_dimensions

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tamis.rounding import Rounding
    from tamis.stores.protocols import ArrayWriter, StoredArray

_COMPLEX_NAMES = {"f": "_PFNC_FLOAT_COMPLEX_TYPE", "d": "_PFNC_DOUBLE_COMPLEX_TYPE"}
"""Names of complex types by the name of the type of a part, as in netCDF4-python (``auto_complex``)."""


def named_type(file: h5py.File, variable: NamedArray, dtype: np.dtype[Any], taken: Collection[str]) -> Any:
    """Return the named type of a variable's values in its group; None if they have none."""
    if variable.enum is not None:
        return _committed(file, variable, variable.enum.name, _enumeration(variable, variable.enum))
    if not is_compound(dtype):
        return None
    if dtype.kind == "c":
        name = _COMPLEX_NAMES["f" if dtype.itemsize == 8 else "d"]
    else:
        name = f"{posixpath.basename(variable.path)}_t"
        while name in taken:
            name += "_t"
    return _committed(file, variable, name, h5t.py_create(dtype, logical=True))


def _enumeration(variable: NamedArray, enum: EnumType) -> Any:
    datatype = h5t.enum_create(h5t.py_create(np.dtype(variable.dtype.str)))
    for name, value in enum.members.items():
        datatype.enum_insert(name.encode("utf-8", "surrogateescape"), int(value))
    return datatype


def _committed(file: h5py.File, variable: NamedArray, name: str, datatype: Any) -> Any:
    """Return a type by name in the group of a variable; create it if it does not exist."""
    path, lcpl = raw_name(f"{posixpath.dirname(variable.path).rstrip('/')}/{name}")
    if path not in file.id:
        datatype.commit(file.id, path, lcpl)
        return datatype
    is_type = h5o.get_info(file.id, path).type == h5o.TYPE_NAMED_DATATYPE
    if is_type and (known := h5t.open(file.id, path)).equal(datatype):
        return known
    raise FileError(
        f"{variable.path}: its type needs the name {name!r}, which another object has, or a type with other members"
    ).at(dataset=variable.path)


_ORDERED = h5p.CRT_ORDER_TRACKED | h5p.CRT_ORDER_INDEXED

_BARE_NAME = "This is a netCDF dimension but not a netCDF variable.{:10d}"

_MOST_RANK = 32  # H5S_MAX_RANK
_BARE_CHUNK = (1024,)
_GROWING_NBYTES = 4 << 10
"""Smallest useful size of the chunks of a variable that grows."""

_DIMENSION_LIST = h5py.vlen_dtype(h5py.ref_dtype)
_REFERENCE_LIST = np.dtype(
    {"names": ("dataset", "dimension"), "formats": (h5py.ref_dtype, np.int32), "offsets": (0, 8), "itemsize": 16}
)
"""Types of the attributes of HDF5's dimension scales."""

_MOST_LINKS, _MOST_ATTRIBUTES = 64, 64
"""Links of a group, and attributes of an object, up to which they are in its header; more are in a heap of some KiB."""

_SMALL_NBYTES, _SMALL_NODES = 4 << 20, 2
"""Bytes of values up to which chunk indexes get nodes for 4 chunks, of 0.2 KiB, instead of 64, of 2 KiB and more."""

_MOST_FILL_NBYTES = 1 << 15
"""Size from which a fill value of zeros is not stored, because a message of HDF5 has at most 64 KiB."""

_CANDIDATES = ("shuffle|deflate(4)", "deflate(4)")
"""Filters that all programs with HDF5 have."""

_TEXT = h5py.string_dtype()
"""Texts of netCDF. Its library may crash at HDF5's texts of a fixed length; its own have one byte."""

_COPIED_NBYTES = 4 << 20
"""Bytes of an array that are copied at once."""


class NetcdfTarget:
    """A netCDF-4 file that is created; its dimensions become dimension scales as netCDF-C writes them."""

    def __init__(
        self,
        path: Path,
        values_nbytes: int,
        block_nbytes: int | None = None,
        mode: int = NEW_FILE,
        threads: int = 1,
        *,
        is_netcdf: bool = False,
    ) -> None:
        fcpl, fapl = h5p.create(h5p.FILE_CREATE), h5p.create(h5p.FILE_ACCESS)
        _set_order(fcpl)
        if values_nbytes <= _SMALL_NBYTES:
            calls.call("H5Pset_istore_k", fcpl.id, _SMALL_NODES)
        self.notes: list[str] = []
        self._threads, self._is_netcdf = threads, is_netcdf
        self._tight: list[str] = []  # Paths of variables whose chunks are as long as their few present steps
        fcpl.set_obj_track_times(False)  # otherwise bytes would differ from run to run
        fapl.set_fclose_degree(h5f.CLOSE_STRONG)
        fapl.set_file_locking(False, True)  # a process that is forked meanwhile would keep the lock
        if block_nbytes is not None:
            fapl.set_meta_block_size(block_nbytes)
        # The oldest superblock has a field for the size of nodes; newer ones have an object for it, with a time.
        fapl.set_libver_bounds(h5f.LIBVER_EARLIEST, h5f.LIBVER_LATEST)
        create_empty(path, mode)
        self._file = create_file(path, fcpl, fapl)
        with located(str(path), path=path):
            calls.use_format_of_18(self._file.id)
        self._growing = GrowingFile(str(path))
        self._ids = itertools.count()
        self._dimensions: dict[str, _Scale] = {}
        # Paths of the dimensions for axes whose name has other lengths: by group, name and length.
        self._own: dict[tuple[str, str, int], str] = {}
        # By path of a group: names of its variables and dimensions.
        self._names: dict[str, set[str]] = {}
        # By path in the file: datasets of variables, and the paths of their dimensions.
        self._variables: dict[str, h5py.Dataset] = {}
        self._axes: dict[str, tuple[str, ...]] = {}
        self._companions: dict[str, ArrayWriter | None] = {}
        # Path of a variable → its path in the file.
        self._paths: dict[str, str] = {}
        self._root: Mapping[str, Any] = {}
        self._root_forms: Mapping[str, AttributeForm] = {}
        # By path in the file: rounded variables.
        self._roundings: dict[str, Rounding] = {}
        version = f"version=2,tamis={_native.version},hdf5={h5py.version.hdf5_version}"
        set_text(self._file, "_NCProperties", version)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def create_group(self, group: NamedGroup) -> None:
        """Create a group with its dimensions and attributes."""
        path = group.path.rstrip("/")
        self._names[group.path] = {*group.variables, *group.dimensions}
        if path:
            plist = h5p.create(h5p.GROUP_CREATE)
            _set_order(plist)
            plist.set_obj_track_times(False)
            h5g.create(self._file.id, *raw_name(path), gcpl=plist)
        self._set_attributes(self._file[group.path], group.attributes, group.forms)
        if not path:
            self._root, self._root_forms = group.attributes, group.forms
        for name, dimension in group.dimensions.items():
            variable = group.variables.get(name)
            bare = variable is None or variable.dimensions[:1] != (name,)
            dataset = self._create_bare(f"{path}/{name}", dimension) if bare else None
            self._dimensions[f"{path}/{name}"] = _Scale(next(self._ids), dimension, dataset)
        own = own_dimensions(group, lambda name, extent: bool(self._dimension_path(path, name, extent)))
        for (name, extent), other in own.items():
            self._names[group.path].add(other)
            dimension = Dimension(extent, is_unlimited=False)
            dataset = self._create_bare(f"{path}/{other}", dimension)
            self._dimensions[f"{path}/{other}"] = _Scale(next(self._ids), dimension, dataset)
            self._own[path, name, extent] = f"{path}/{other}"

    def create_like(self, variable: NamedArray, array: StoredArray, plan: ArrayPlan) -> Hdf5Writer:
        """Create a variable with dimensions, attributes and fill value, as planned; replace an earlier one."""
        if self._is_netcdf and is_fixed_text(variable.dtype):
            raise ParameterError(
                f"{plan.path}: expected filters for types that netCDF-4 has, got text of a fixed length: ask for no"
                " filters, or store it in Zarr or in a file named .h5"
            ).at(dataset=plan.path)
        self._remove(variable)
        variable = variable.with_attributes(plan.replaced_attributes(array))
        array = plan.source_of(array)
        with located(plan.path):
            filters = filters_of(plan.created, plan.chunk)
        dtype = plan.dtype if plan.dtype.kind != "V" else variable.dtype
        try:
            dataset = self._create(variable, array, dtype, plan.chunk_shape, filters)
        except ValueError as error:
            raise ParameterError(f"{plan.path}: HDF5 cannot create a dataset with {plan.created}: {error}") from error
        if plan.rounding is not None:
            record_rounding(dataset, plan.rounding)
            self._roundings[self._variable_path(variable)] = plan.rounding
        return Hdf5Writer(dataset, plan.grid(array), as_recorded(plan.created, dataset), self._growing)

    def repeat(self, variable: NamedArray, array: StoredArray, path: str) -> None:
        """Copy a variable once more: only HDF5 has links, and HDF5 files are copied in another way."""
        del path
        self.copy(variable, array)

    def copy(self, variable: NamedArray, array: StoredArray) -> None:
        """Copy a variable, replacing one that `create_like` may have begun.

        Chunks stay unchanged if all programs with HDF5 have their filters, or one is zfp or lossy. Other variables have
        no filters, and are contiguous unless an axis can grow.
        """
        self._remove(variable)
        if self._is_netcdf and is_fixed_text(variable.dtype):
            # xarray would decode what is text by now.
            text = replace(variable.with_attributes({"_Encoding": None}), dtype=_TEXT)
            self._copy_values(text, array, fixed=variable.dtype)
            return
        plan = as_stored(array)
        if plan is not None and _is_carried(plan, array):
            self._companions[variable.path] = carry(plan, array, partial(self.create_like, variable, array))
        elif not self._copy_compressed(variable, array):
            self._copy_values(variable, array)

    def _copy_values(self, variable: NamedArray, array: StoredArray, fixed: np.dtype[Any] | None = None) -> None:
        """Copy a variable without filters; `fixed` is the type of texts of a fixed length, which get a varying one."""
        sparse = _chunks_of_sparse(array)
        chunk_shape = self._chunks(variable, array) or sparse
        dataset = self._create(variable, array, variable.dtype, chunk_shape, ())
        if not size_of(array):
            return
        most = max(_COPIED_NBYTES // dataset.dtype.itemsize, 1)
        box = sparse or several_chunks(array.shape, chunk_shape or (1,) * len(array.shape), most)
        with closing(array.open_reader()) as reader:
            grid = Grid(array.shape, box)
            # Texts have no fill value in the file.
            parts = Parts(grid) if dataset.dtype.kind == "O" else array.parts(grid)
            for part in parts:
                values = reader.read(part)
                values = values if fixed is None else np.ascontiguousarray(values).view(fixed)
                values = np.ascontiguousarray(values, object if dataset.dtype.kind == "O" else None)
                if fixed is not None and any(b"\0" in item for item in values.flat):
                    raise FileError(
                        f"{array.label}: expected bytes without zeros inside, which netCDF's text ends at, found some:"
                        " store them in Zarr or in a file named .h5"
                    )
                if values.dtype.kind == "O":
                    _refuse_zeros(variable.path, variable.path, values, [axis.start for axis in part])
                if values.dtype.kind == "V":
                    values = values.view(dataset.dtype)
                else:  # chunks may have another byte order
                    values = values.astype(dataset.dtype, copy=False)
                # Texts are Python objects in memory, and have another type there.
                memory = h5t.py_create(dataset.dtype) if values.dtype.kind == "O" else dataset.id.get_type()
                try:
                    dataset.id.write(*selected(dataset, part), values, memory)
                except UnicodeEncodeError as error:
                    raise unstorable_text(variable.path, error) from None

    def _copy_compressed(self, variable: NamedArray, array: StoredArray) -> bool:
        """Copy a variable if its codecs compress and some programs with HDF5 lack them; return whether it was copied.

        It gets filters that all of them have.
        """
        if array.storage.chunk_shape is None or not size_of(array) or array.type.dtype is None or variable.is_text:
            return False
        if not compresses(array.storage.pipeline):
            return False
        shape = tuple(min(step, extent) for step, extent in zip(array.storage.chunk_shape, array.shape, strict=True))
        plan = nearest_plan(array, np.dtype(array.type.dtype), shape, _CANDIDATES)
        created: list[Hdf5Writer] = []

        def create(plan: ArrayPlan) -> Hdf5Writer:
            created.append(self.create_like(variable, array, plan))
            return created[-1]

        write(plan, array, create, lambda *_: None, self._threads)
        nbytes = created[-1].stored_nbytes
        self.notes.append(printable(nearest_text(variable.path, array, plan.pipeline, nbytes, "HDF5")))
        return True

    def _remove(self, variable: NamedArray) -> None:
        """Remove a variable that was begun, if any, so that it can be created again."""
        path = self._variable_path(variable)
        if (dataset := self._variables.pop(path, None)) is not None:
            self._roundings.pop(path, None)
            del self._file[path]
            dataset.id.close()  # now its space is free

    def set_history(self, text: str) -> None:
        """Set the history of the root group; attributes after it are written again to keep its position."""
        names = list(self._root)
        later = names[names.index(HISTORY) :] if HISTORY in names else []
        for name in later:
            del self._file.attrs[name]
        attributes = {HISTORY: text} | {name: self._root[name] for name in later[1:]}
        self._set_attributes(self._file, attributes, self._root_forms)

    def finish(self, companions: Mapping[str, ArrayWriter | None]) -> None:
        """Attach the dimensions to all variables, and name companions."""
        self._set_scales()
        self._attach_scales()
        self._add_notes()
        named = {
            self._paths[path]: writer.dataset if isinstance(writer, Hdf5Writer) else None
            for path, writer in (self._companions | {**companions}).items()
        }
        replace_companions(self._file, (), named)
        name_containers(self._file, self._roundings)

    def _set_scales(self) -> None:
        """Make the dataset of each dimension a dimension scale."""
        for path, scale in self._dimensions.items():
            dataset = scale.dataset or self._variables[path]
            name = _BARE_NAME.format(scale.dimension.size) if scale.dataset else path.rpartition("/")[2]
            h5ds.set_scale(dataset.id, name.encode("utf-8", "surrogateescape"))
            set_number(dataset, "_Netcdf4Dimid", scale.number)

    def _attach_scales(self) -> None:
        """Let variables refer to the scales of their axes, and scales to these variables."""
        attached: dict[str, list[tuple[Any, int]]] = {}
        for path, dataset in self._variables.items():
            scales = [self._dimensions[dimension] for dimension in self._axes[path]]
            if scales:
                set_attribute(dataset, "_Netcdf4Coordinates", np.array([scale.number for scale in scales], np.int32))
            if scales and path not in self._dimensions:  # a dimension scale must not have others
                axes = np.empty(len(scales), _DIMENSION_LIST)
                for axis, (scale, dimension) in enumerate(zip(scales, self._axes[path], strict=True)):
                    axes[axis] = np.array([(scale.dataset or self._variables[dimension]).ref], h5py.ref_dtype)
                    attached.setdefault(dimension, []).append((dataset.ref, axis))
                dataset.attrs.create("DIMENSION_LIST", axes, dtype=_DIMENSION_LIST)
        # H5DSattach_scale would write the whole list again for each variable, and waste the space of the old one.
        for path, entries in attached.items():
            scale_dataset = self._dimensions[path].dataset or self._variables[path]
            scale_dataset.attrs.create("REFERENCE_LIST", np.array(entries, _REFERENCE_LIST), dtype=_REFERENCE_LIST)

    def _add_notes(self) -> None:
        """Note what readers of the whole file should know."""
        if nameless := [path for path, dataset in self._variables.items() if _has_no_name(dataset.dtype)]:
            self.notes.append(
                f"{plural(len(nameless), 'variable')} such as {nameless[0]} with booleans or opaque values, as h5py"
                " stores them: ncdump and other programs may leave them out"
            )
        if self._tight:
            self.notes.append(
                f"{plural(len(self._tight), 'variable')} such as {self._tight[0]} in chunks as long as the present "
                f"data: give longer ones (-c) if the file will grow"
            )

    def _create_bare(self, path: str, dimension: Dimension) -> h5py.Dataset:
        """Create the dataset without values of a dimension without a variable."""
        plist = _dataset_plist()
        most = h5s.UNLIMITED if dimension.is_unlimited else dimension.size
        if dimension.is_unlimited:
            plist.set_chunk(_BARE_CHUNK)
        space = h5s.create_simple((dimension.size,), (most,))
        name, lcpl = raw_name(path)
        return h5py.Dataset(h5d.create(self._file.id, name, h5t.IEEE_F32BE, space, plist, lcpl))

    def _create(
        self,
        variable: NamedArray,
        array: ArrayFacts,
        dtype: np.dtype[Any],
        chunk_shape: tuple[int, ...] | None,
        filters: Sequence[NewFilter],
    ) -> h5py.Dataset:
        plist = _dataset_plist()
        taken = self._names.get(posixpath.dirname(variable.path), ())
        datatype = named_type(self._file, variable, dtype, taken) or _datatype(dtype, array.label)
        fill = b"" if dtype.kind in "OU" else np.asarray(array.fill.value).astype(dtype).tobytes()
        if fill.strip(b"\0") or 0 < len(fill) < _MOST_FILL_NBYTES:  # zeros are HDF5's own
            calls.set_fill_bytes(plist, datatype, fill)
        if chunk_shape is not None:
            plist.set_chunk(chunk_shape)
            plist.set_alloc_time(h5d.ALLOC_TIME_INCR)
        set_filters(plist, filters)
        axes = self._dimension_paths(variable)
        unlimited = [self._dimensions[axis].dimension.is_unlimited for axis in axes]
        most = tuple(h5s.UNLIMITED if grows else n for grows, n in zip(unlimited, array.shape, strict=True))
        space = h5s.create_simple(array.shape, most) if array.shape else h5s.create(h5s.SCALAR)
        path = self._variable_path(variable)
        name, lcpl = raw_name(path)
        dataset = h5py.Dataset(create_dataset(self._file.id, name, datatype, space, plist, lcpl))
        self._variables[path], self._axes[path], self._paths[variable.path] = dataset, axes, path
        marks = {"dtype": "bool"} if dtype.kind == "b" else {}  # by which xarray reads booleans, whatever the engine
        attributes = marks | {**variable.attributes}
        own = attributes.get("_FillValue")
        if variable.is_text and isinstance(own, str) and "_FillValue" not in variable.forms:
            attributes["_FillValue"] = [own]  # netCDF wants the type of the values, not characters
        self._set_attributes(dataset, attributes, variable.forms)
        return dataset

    def _set_attributes(
        self, owner: h5py.HLObject, attributes: Mapping[str, Any], forms: Mapping[str, AttributeForm]
    ) -> None:
        _check_attributes(str(owner.name), attributes, is_scale=False)
        for name, value in attributes.items():
            form = forms.get(name)
            if isinstance(value, list):
                _refuse_zeros(f"{owner.name}: attribute {name!r}", str(owner.name), np.array(value, object))
            if form is None or form.type in JSON_FORMS or not write_attribute(owner, name, value, form):
                set_attribute(owner, name, value)
        of_json = {name: form.type for name, form in forms.items() if form.type in JSON_FORMS}
        if marked := {name: kind for name, kind in of_json.items() if name in attributes or name in owner.attrs}:
            set_text(owner, JSON_MARK, json.dumps(marked))

    def _variable_path(self, variable: NamedArray) -> str:
        """Return the path of a variable in the file."""
        group, _, name = variable.path.rpartition("/")
        is_other = variable.path in self._dimensions and variable.dimensions[:1] != (name,)
        return f"{group}/{NON_COORDINATE}{name}" if is_other else variable.path

    def _dimension_paths(self, variable: NamedArray) -> tuple[str, ...]:
        """Return the paths of the dimensions of a variable, each from its own group or the nearest enclosing one."""
        group = variable.path.rpartition("/")[0]
        axes = zip(variable.dimensions, variable.shape, strict=True)
        return tuple(self._dimension_path(group, name, extent) for name, extent in axes)

    def _dimension_path(self, group: str, name: str, extent: int) -> str:
        """Return the path of the nearest dimension with a name and a length, for a group; empty if there is none."""
        if (group, name, extent) in self._own:
            return self._own[group, name, extent]
        while True:
            known = self._dimensions.get(path := f"{group}/{name}")
            if known is not None and known.dimension.size == extent:
                return path
            if not group:
                return ""
            group = group.rpartition("/")[0]

    def _chunks(self, variable: NamedArray, array: ArrayFacts) -> tuple[int, ...] | None:
        """Return the chunk shape of a variable without filters; None if no axis can grow, which needs no chunks."""
        unlimited = [self._dimensions[axis].dimension.is_unlimited for axis in self._dimension_paths(variable)]
        if not any(unlimited):
            return None
        others = math.prod(n for n, grows in zip(array.shape, unlimited, strict=True) if not grows)
        steps = max(_GROWING_NBYTES // max(others * variable.dtype.itemsize, 1), 1)
        if any(0 < n < steps for n, grows in zip(array.shape, unlimited, strict=True) if grows):
            self._tight.append(variable.path)
        extents = (n or steps if grows else n for n, grows in zip(array.shape, unlimited, strict=True))
        return default_chunks(tuple(extents), variable.dtype.itemsize, zfp=False)


@dataclass(frozen=True, slots=True)
class _Scale:
    """A dimension: its number in the file, and its dataset if no variable is one."""

    number: int
    dimension: Dimension
    dataset: h5py.Dataset | None


def check_array(variable: NamedArray, array: ArrayFacts, *, is_netcdf: bool = False) -> None:
    """Raise FileError if netCDF-4 cannot have the shape, the type or an attribute of an array.

    `is_netcdf` tells that the name of the target promises netCDF, whose library is to read every type.
    """
    if len(array.shape) > _MOST_RANK:
        raise FileError(f"expected at most {_MOST_RANK} axes, the limit of HDF5, found {len(array.shape)}")
    if variable.enum is None and not is_compound(variable.dtype):
        _datatype(variable.dtype, array.label)
    if is_netcdf and (members := [*_foreign_floats(variable.dtype)]):
        raise FileError(
            f"netCDF's library fails with {members[0]}: store it in Zarr or in a file named .h5, or convert "
            "it to float32 or float64 first"
        )
    is_scale = variable.dimensions == (variable.path.rpartition("/")[2],)
    _check_attributes(variable.path, variable.attributes, is_scale=is_scale or is_netcdf)


def _refuse_zeros(label: str, path: str, texts: NDArray[Any], origin: Sequence[int] = (0,)) -> None:
    """Raise DataError if a text has a zero, which ends it in HDF5."""
    zeros = np.array([_has_zero(text) for text in texts.reshape(-1)], bool)
    if not zeros.any():
        return
    inside = np.unravel_index(int(np.argmax(zeros)), texts.shape)
    index = [start + int(at) for start, at in zip(origin, inside, strict=True)]
    raise DataError(
        f"{label}: expected texts without zeros, which end texts in HDF5, got {texts[inside]!r} at {index}: remove the"
        " character U+0000, or store them in Zarr"
    ).at(dataset=path)


def _has_zero(text: Any) -> bool:
    return "\0" in text if isinstance(text, str) else isinstance(text, bytes) and b"\0" in text


def _foreign_floats(dtype: np.dtype[Any]) -> Iterator[np.dtype[Any]]:
    """Yield the types of floats in a type that netCDF lacks, also in records."""
    if dtype.names:
        for name in dtype.names:
            yield from _foreign_floats(dtype[name].base)
    elif dtype.kind == "f" and dtype.itemsize not in (4, 8):
        yield dtype


def _check_attributes(path: str, attributes: Mapping[str, Any], *, is_scale: bool) -> None:
    """Raise FileError if an attribute has a name that HDF5's scales need, or that netCDF's library hides."""
    reserved = RESERVED if is_scale or is_scale_class(attributes.get("CLASS")) else RESERVED - OF_SCALES
    for name in attributes:
        if name in reserved:
            raise FileError(
                f"{path}: netCDF-4 reserves the attribute name {name!r}: rename the attribute in the source"
            ).at(dataset=path)


def _is_carried(plan: ArrayPlan, array: ArrayFacts) -> bool:
    """Return whether chunks are copied unchanged; a chunk of HDF5 must fit into an array that cannot grow."""
    fits = all(step <= extent for step, extent in zip(plan.chunk_shape, array.shape, strict=True))
    everywhere = all(isinstance(item, (Deflate, Shuffle, Fletcher32, Zfp)) for item in plan.pipeline.filters)
    return fits and bool(plan.pipeline.filters) and (everywhere or plan.pipeline.error_bound != 0)


def _chunks_of_sparse(array: StoredArray) -> tuple[int, ...] | None:
    """Return the chunk shape of a large array of which less than half is stored; None for any other.

    Without chunks, HDF5 would write fill values for all of it.
    """
    if array.storage.chunk_shape is None or values_nbytes_of(array) <= _COPIED_NBYTES:
        return None
    grid = Grid(array.shape, array.storage.chunk_shape)
    if 2 * len(array.parts(grid)) >= grid.chunk_count:
        return None
    return tuple(min(step, extent) for step, extent in zip(array.storage.chunk_shape, array.shape, strict=True))


def _dataset_plist() -> Any:
    plist = h5p.create(h5p.DATASET_CREATE)
    plist.set_attr_creation_order(_ORDERED)
    plist.set_attr_phase_change(_MOST_ATTRIBUTES, 0)
    plist.set_obj_track_times(False)
    return plist


def _set_order(plist: Any) -> None:
    """Make a group record the order of links and attributes, and keep a few of them in its header."""
    plist.set_link_creation_order(_ORDERED)
    plist.set_attr_creation_order(_ORDERED)
    plist.set_attr_phase_change(_MOST_ATTRIBUTES, 0)
    calls.set_link_phase_change(plist, _MOST_LINKS, 0)


def _has_no_name(dtype: np.dtype[Any]) -> bool:
    """Return whether values are booleans or opaque: if their types had names, h5netcdf could not open the file."""
    return dtype.kind == "b" or (dtype.kind == "V" and dtype.names is None)


def _datatype(dtype: np.dtype[Any], label: str) -> Any:
    """Return the HDF5 type for numbers, booleans, bytes, characters or texts of varying length."""
    if dtype.kind in "iuf" or _has_no_name(dtype):
        return h5t.py_create(dtype, logical=True)
    if dtype == np.dtype("S1"):
        kind = h5t.C_S1.copy()
        kind.set_size(1)
        return kind
    if dtype.kind == "U" or h5py.check_string_dtype(dtype) is not None:
        return h5t.py_create(h5py.string_dtype() if dtype.kind == "U" else dtype, logical=True)
    raise FileError(
        f"{label}: netCDF-4 has no type for {dtype}, only for numbers, booleans, complex numbers, bytes, "
        "text and records of numbers"
    )
