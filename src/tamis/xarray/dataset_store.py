"""Datasets as a store of arrays, from which a file is written; see `tamis.stores.protocols.Store`.

xarray itself encodes times, missing values, packing, text and coordinates.
"""

from __future__ import annotations

import copy
import itertools
import json
import posixpath
import threading
from collections import OrderedDict
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray
from xarray import Dataset, Variable
from xarray.backends import H5NetCDFStore
from xarray.conventions import encode_cf_variable, encode_dataset_coordinates

from tamis import meaning
from tamis.arrays.grid import Region
from tamis.arrays.reader import ArrayReader, put
from tamis.caller import warn_caller
from tamis.errors import FileError, ParameterError
from tamis.filters import ChunkType
from tamis.lazy_property import lazy_property
from tamis.pipeline import Pipeline
from tamis.stores.arrays import ListedStore, UnchunkedArray
from tamis.stores.data_model import (
    JSON_TEXT,
    LIST_OF_ONE,
    AttributeForm,
    Dimension,
    EnumType,
    NamedArray,
    NamedGroup,
    is_compound,
)
from tamis.stores.facts import IN_MEMORY, Fill, Storage, ValueType, array_nbytes, size_of
from tamis.stores.header import Header, header_of
from tamis.xarray.dask_arrays import with_dask

if TYPE_CHECKING:
    from tamis.arrays.chunk_reader import ChunkReader


_UNENCODABLE = (ValueError, TypeError, NotImplementedError, ArithmeticError, LookupError)
"""What xarray raises for values that it cannot encode, such as times outside the range of its nanoseconds."""


@dataclass(frozen=True, slots=True)
class EncodedGroup:
    """A dataset whose variables have the types and attributes of the file."""

    dataset: Dataset  # The dataset, with the encoding of its variables
    variables: Mapping[str, Variable]  # Encoded variables by name; those of dask arrays are lazy
    attributes: Mapping[str, Any]  # Attributes of the group
    notes: Mapping[str, str]  # Other changes of a variable than its encoding, by name
    unlimited: frozenset[str]  # Names of unlimited dimensions
    # Forms of the attributes that are values of JSON: of the group by the name "", of variables by theirs
    forms: Mapping[str, Mapping[str, AttributeForm]] = field(default_factory=dict)


def encode_group(dataset: Dataset, unlimited: Collection[str] | None, *, is_netcdf: bool = True) -> EncodedGroup:
    """Encode a dataset by the conventions of xarray's engine h5netcdf; `is_netcdf` widens types that netCDF lacks."""
    for name in (*dataset.variables, *dataset.dims):
        _check_name(name)
    for name, variable in dataset.variables.items():
        _refuse_sequences(str(name), variable)
    dims = set(map(str, dataset.dims))
    if unlimited is None:
        names = frozenset(map(str, dataset.encoding.get("unlimited_dims", ())))
        if gone := names - dims:
            warn_caller(f"dimensions that are no longer unlimited: {', '.join(sorted(gone))}")
        names &= dims
    else:
        names = frozenset([unlimited] if isinstance(unlimited, str) else unlimited)
        if absent := names - dims:
            known = ", ".join(map(str, dataset.dims)) or "none"
            raise ParameterError(f"expected unlimited_dims among the dimensions {known}, got {min(absent)!r}")
    dataset = with_dask(dataset)
    variables, attributes = encode_dataset_coordinates(dataset)
    try:
        encoded, attributes = _Conventions().encode(variables, attributes)  # type: ignore[no-untyped-call]
    except _UNENCODABLE as error:
        raise _refused(variables, error) from error
    stored = {
        str(name): _stored(str(name), variable, dataset.variables[name].encoding.get("dtype"))
        for name, variable in encoded.items()
    }
    forms = {str(name): attribute_forms(variable.attrs) for name, variable in encoded.items()}
    notes: dict[str, str] = {}
    for name, variable in stored.items() if is_netcdf else ():
        if variable.dtype.kind == "f" and variable.dtype.itemsize == 2:
            stored[name] = _widened(variable)
            notes[name] = "float16, which netCDF lacks, is stored as float32"
    every = forms | {"": attribute_forms(attributes)}
    return EncodedGroup(dataset, stored, attribute_values(attributes), notes, names, every)


def _refused(variables: Mapping[Hashable, Variable], error: Exception) -> ParameterError:
    """Return the error about a dataset that xarray cannot encode, with the name of the variable if one is the cause."""
    for name, variable in variables.items():
        try:
            encode_cf_variable(variable, name=name)
        except _UNENCODABLE as own:
            return ParameterError(f"{name}: xarray cannot encode it: {_cause(own)}").at(dataset=str(name))
    return ParameterError(f"xarray cannot encode the dataset: {_cause(error)}")


def _cause(error: Exception) -> str:
    """Return the message of an error of xarray; a key alone would say nothing."""
    return f"{type(error).__name__} {error}" if isinstance(error, LookupError) else str(error)


def _widened(variable: Variable) -> Variable:
    """Return an encoded variable of float16 as float32, with the fill values in its attributes."""
    attributes = {
        name: np.asarray(value, "f4")[()] if name in meaning.FILL_ATTRIBUTES else value
        for name, value in variable.attrs.items()
    }
    return Variable(variable.dims, variable.astype("f4")._data, attributes, variable.encoding)


class _Conventions(H5NetCDFStore):
    """The changes that xarray's engine h5netcdf makes to variables before storing them."""

    def __init__(self) -> None:
        self.format = "NETCDF4"


def _check_name(name: Hashable) -> None:
    if not isinstance(name, str) or not name or "/" in name:
        raise ParameterError(f"expected names of variables and dimensions as text without slashes, got {name!r}")


def _refuse_sequences(name: str, variable: Variable) -> None:
    """Raise ParameterError if values are sequences or records with sequences, which this engine of xarray lacks."""
    dtype = variable.dtype
    is_of_numpy = isinstance(dtype, np.dtype)
    if not is_of_numpy:  # but of pandas, such as categories
        raise ParameterError(
            f"{name}: expected numbers, times or text, got {dtype}: convert it first, ds[{name!r}].astype(str)"
        ).at(dataset=name)
    kind = (dtype.metadata or {}).get("vlen", str)
    first = variable[(0,) * variable.ndim].values if dtype.kind == "O" and kind is str and variable.size else None
    if (dtype.kind == "O" and kind is not str) or (first is not None and isinstance(first.item(), np.ndarray)):
        words = "sequences" if kind is str else f"sequences of {kind}"
    elif dtype.kind == "V" and dtype.hasobject:
        words = f"records of {dtype}"
    else:
        return
    raise ParameterError(
        f"{name}: expected numbers, times or text, got {words}: leave it out, ds.drop_vars({name!r})"
    ).at(dataset=name)


def _stored(name: str, variable: Variable, asked: object) -> Variable:
    """Return an encoded variable with texts as objects, and with the requested type if it is an enumeration."""
    dtype = variable.dtype
    if dtype.kind in "UT":
        variable = variable.astype(object)
    elif dtype.kind == "S" and variable.encoding.get("dtype") is str:
        variable = variable.astype("U").astype(object)
    elif dtype.kind == "f" and dtype.itemsize > 8:
        raise ParameterError(f"{name}: expected numbers that netCDF-4 has, got {dtype}: convert it, astype('f8')").at(
            dataset=name
        )
    elif dtype.kind not in "iufO" and dtype != np.dtype("S1") and not is_compound(dtype):
        raise ParameterError(
            f"{name}: expected numbers, times, text, enumerations, complex numbers or records of numbers, which"
            f" netCDF-4 has, got {dtype}"
        )
    attributes = attribute_values(variable.attrs)
    if variable.dtype.kind == "O" and isinstance(fill := attributes.get("_FillValue"), str):
        attributes["_FillValue"] = [fill]  # of the type of the values, NC_STRING
    encoding = dict(variable.encoding)
    if isinstance(asked, np.dtype) and asked == variable.dtype and "enum" in (asked.metadata or ()):
        encoding["dtype"] = asked  # conversions lose parts of a type other than the numbers
    return Variable(variable.dims, variable._data, attributes, encoding)


def attribute_values(attributes: Mapping[Any, Any]) -> dict[str, Any]:
    """Return attributes as netCDF-4 has them: text, lists of texts, or numbers."""
    values: dict[str, Any] = {}
    for name, value in attributes.items():
        if not isinstance(name, str) or not name:
            raise ParameterError(f"expected names of attributes as text, got {name!r}")
        if (text := _text_of_json(value)) is not None:
            values[name] = text
            continue
        array = np.asarray(value)
        if isinstance(value, (str, bytes)):
            values[name] = value
        elif isinstance(value, (list, tuple)) and value and all(isinstance(item, str) for item in value):
            values[name] = [str(item) for item in value]  # NumPy's types would lose zeros at the end
        elif array.dtype.kind in "UST":
            texts = [item.decode() if isinstance(item, bytes) else str(item) for item in array.reshape(-1).tolist()]
            values[name] = texts if array.ndim else texts[0]
        elif array.dtype.kind in "iuf" and array.ndim < 2:
            values[name] = array.reshape(-1)[0] if array.size == 1 else array
        else:
            raise ParameterError(
                f"expected the attribute {name!r} to be text, numbers or a list of them, got {value!r}"
            )
    return values


def attribute_forms(attributes: Mapping[Any, Any]) -> dict[str, AttributeForm]:
    """Return the forms of attributes that Zarr's JSON has, and netCDF has not: values in JSON, and lists of one."""
    forms = {}
    for name, value in attributes.items():
        if _text_of_json(value) is not None:
            forms[str(name)] = AttributeForm(JSON_TEXT, ())
        elif isinstance(value, (list, tuple)) and len(value) == 1:
            forms[str(name)] = AttributeForm(LIST_OF_ONE, ())
    return forms


def _text_of_json(value: Any) -> str | None:
    """Return a value in JSON if netCDF has none like it, such as an object or a boolean; None for any other."""
    if isinstance(value, (list, tuple)):
        is_plain = all(isinstance(item, str) for item in value) or all(_is_number(item) for item in value)
    else:
        is_plain = not (isinstance(value, (bool, dict)) or value is None) and (
            not isinstance(value, int) or _is_number(value)
        )
    if is_plain:
        return None
    try:
        return json.dumps(value)
    except (TypeError, ValueError):
        return None


def _is_number(value: Any) -> bool:
    """Return whether a value is a number of netCDF."""
    if isinstance(value, int) and not isinstance(value, bool):
        return -(1 << 63) <= value < 1 << 64
    return isinstance(value, (float, np.integer, np.floating))


_CHARACTER = np.dtype("S1")
_TEXT = np.dtype("O", metadata={"vlen": str})

_KEPT_NBYTES = 64 << 20
"""Bytes of computed blocks of a dask array that are kept, unless a single part needs more."""


def _enum_of(path: str, variable: Variable) -> EnumType | None:
    """Return the enumeration of the values, which xarray's engines keep in the type, or in that of the encoding."""
    for dtype in (variable.dtype, variable.encoding.get("dtype")):
        if dtype == variable.dtype and (known := np.dtype(dtype).metadata or {}).get("enum") is not None:
            return EnumType(known.get("enum_name") or f"{posixpath.basename(path)}_t", known["enum"])
    return None


def _type_of(own: np.dtype[Any], *, is_enum: bool) -> ValueType:
    """Return the type of an encoded variable; text, enumerations, complex numbers and records are no numbers."""
    numbers = own if own.kind in "iuf" and not is_enum else None
    is_bytes = own == _CHARACTER or is_enum or is_compound(own)
    dtype = np.dtype((np.void, own.itemsize)) if is_bytes else numbers
    varies = dtype is None  # only texts do
    text = "enum" if is_enum else "string" if varies or own == _CHARACTER else str(own)
    byteorder = ""
    if numbers is not None and numbers.itemsize > 1:
        byteorder = "big" if numbers == numbers.newbyteorder(">") else "little"
    values = None if varies else own
    return ValueType(numbers, dtype, values, text, text, byteorder, int(own.itemsize), varies, is_counted=not varies)


def _fill_value(dtype: np.dtype[Any], fill: Any, *, varies: bool) -> NDArray[Any]:
    """Return the value of ``_FillValue``; 0, or empty, if there is none."""
    if dtype.kind in "iuf":
        return np.array(0 if fill is None else fill).astype(dtype).reshape(())
    # Texts of varying length have an attribute for it alone.
    if dtype == _CHARACTER and isinstance(fill, bytes) and len(fill) == 1:
        return np.array(fill, dtype)
    return np.array("", object) if varies else np.zeros((), dtype)


class VariableArray(UnchunkedArray):
    """An encoded variable."""

    can_read_independently = False
    _reader: ArrayReader | None = None
    _block_shape: tuple[int, ...] | None = None
    """Of an array that has no values itself."""
    _first_block: NDArray[Any] | None = None
    """Of a dask array, computed for a sample, until a reader takes it."""

    def __init__(
        self,
        path: str,
        variable: Variable,
        number: int,
        unlimited: frozenset[str],
        pipeline: Pipeline,
        forms: Mapping[str, AttributeForm] | None = None,
    ) -> None:
        self.path, self.label, self.address = path, f"dataset: {path}", number
        self.variable, self._forms = variable, forms or {}
        self.shape: tuple[int, ...] = variable.shape
        self.maxshape = tuple(
            None if name in unlimited else extent for name, extent in zip(variable.dims, variable.shape, strict=True)
        )
        self.attributes: Mapping[str, Any] = variable.attrs
        self._enum = _enum_of(path, variable)
        self.type = _type_of(variable.dtype, is_enum=self._enum is not None)
        self.storage = Storage(IN_MEMORY, ChunkType(self.type.dtype or _CHARACTER, ()), pipeline=pipeline)
        value = _fill_value(variable.dtype, variable.attrs.get("_FillValue"), varies=self.type.varies)
        is_chosen = self.type.numbers is not None and "_FillValue" in variable.attrs
        self.fill = Fill(value, is_chosen, b"" if self.type.varies else value.tobytes())

    def open_reader(self, *, independent: bool = False) -> ArrayReader:
        """Return a reader that computes parts of the values."""
        if self._reader is not None:
            return self._reader
        data = self.variable._data
        values = data if hasattr(data, "dask") else np.asarray(self.variable.data)
        first, self._first_block = self._first_block, None
        return _VariableReader(values, self.type.dtype or self.variable.dtype, first)

    def sample(self) -> VariableArray:
        """Return an array for a sample: of a dask array the first block, which is not computed again to be written."""
        own, data = self.variable, cast(Any, self.variable._data)
        if not hasattr(data, "dask") or not size_of(self):
            return self
        try:
            self._first_block = np.asarray(data.blocks[(0,) * own.ndim].compute())
        except Exception:  # of any library, and writing reports why
            values = np.empty((0,) * own.ndim, own.dtype)
        else:
            values = self._first_block
        other = copy.copy(self)
        other.variable, other.shape = Variable(own.dims, values, own.attrs, own.encoding), values.shape
        other._first_block = None
        return other

    @property
    def block_shape(self) -> tuple[int, ...] | None:
        """Shape of the largest block of a dask array; None for others."""
        return self._block_shape or _block_shape(self.variable._data)

    def without_values(self) -> VariableArray:
        """Return an array of a dask array without its graph, to be sent to the workers that compute it."""
        from dask.array import zeros  # late: few datasets are of dask arrays

        own = self.variable
        empty = Variable(own.dims, zeros(own.shape, own.dtype, chunks=-1), own.attrs, own.encoding)
        other = copy.copy(self)
        other.variable, other._block_shape, other._first_block = empty, self.block_shape, None
        return other

    def read_by(self, reader: ArrayReader) -> VariableArray:
        """Return the array with values that a reader has."""
        other = copy.copy(self)
        other._reader = reader
        return other

    def open_chunks(self) -> ChunkReader:
        """Raise FileError: there are no stored chunks."""
        raise FileError(f"{self.label}: expected stored chunks, found values in memory")

    def named(self) -> NamedArray:
        """Return the variable in netCDF's data model."""
        return NamedArray(
            path=self.path,
            dimensions=tuple(map(str, self.variable.dims)),
            shape=self.shape,
            stored_shape=self.shape,
            dtype=_TEXT if self.type.varies else self.variable.dtype,
            fill_value=self.fill.value[()],
            attributes=self.attributes,
            chunk_shape=None,
            pipeline=Pipeline(),
            enum=self._enum,
            forms=self._forms,
        )


class _VariableReader:
    """The values of a NumPy array, or of a dask array, whose blocks are computed when they are needed, mostly once."""

    def __init__(self, values: Any, dtype: np.dtype[Any], first_block: NDArray[Any] | None = None) -> None:
        self.shape, self.dtype = tuple(values.shape), dtype
        self._values = values
        self._is_lazy = hasattr(values, "dask")
        self.chunk_shape = _block_shape(values)
        self._blocks: OrderedDict[tuple[int, ...], NDArray[Any]] = OrderedDict()
        if first_block is not None:
            self._blocks[(0,) * first_block.ndim] = first_block
        self._lock = threading.Lock()

    def read(self, part: Region, out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Read a part, converted to the type of `out`."""
        values = self._gathered(part) if self._is_lazy else self._values[(*part, ...)]
        return put(values.view(self.dtype) if self.dtype.kind == "V" else values, out)

    def close(self) -> None:
        """Drop computed blocks."""
        self._blocks.clear()

    def _gathered(self, part: Region) -> NDArray[Any]:
        """Return a part of a dask array, put together from its blocks."""
        axes = [
            _blocks_of(axis, sizes, extent)
            for axis, sizes, extent in zip(part, self._values.chunks, self.shape, strict=True)
        ]
        result = np.empty([axis.stop - axis.start for axis in part], self._values.dtype)
        for pieces in itertools.product(*axes):
            block = self._block(tuple(number for number, _, _ in pieces))
            result[tuple(to for _, _, to in pieces)] = block[tuple(inside for _, inside, _ in pieces)]
        return result

    def _block(self, number: tuple[int, ...]) -> NDArray[Any]:
        """Return a block; other threads that need one wait, because dask itself computes in threads."""
        with self._lock:
            if number in self._blocks:
                self._blocks.move_to_end(number)
                return self._blocks[number]
            block = np.asarray(self._values.blocks[number].compute())
            self._blocks[number] = block
            while len(self._blocks) > 1 and sum(kept.nbytes for kept in self._blocks.values()) > _KEPT_NBYTES:
                self._blocks.popitem(last=False)
            return block


def _block_shape(values: Any) -> tuple[int, ...] | None:
    return tuple(max(sizes, default=1) for sizes in values.chunks) if hasattr(values, "dask") else None


def _blocks_of(axis: slice, sizes: tuple[int, ...], extent: int) -> list[tuple[int, slice, slice]]:
    """Return the blocks of an axis that a part needs: number, place in the block, place in the part."""
    blocks = []
    for number, (start, stop) in enumerate(itertools.pairwise(itertools.accumulate(sizes, initial=0))):
        first, last = max(axis.start, start), min(axis.stop, stop, extent)
        if first < last:
            blocks.append((number, slice(first - start, last - start), slice(first - axis.start, last - axis.start)))
    return blocks


class DatasetStore(ListedStore[VariableArray]):
    """Encoded datasets by the path of their group."""

    path = "xarray"
    kind = "netCDF-4"
    is_loose = False
    reader_words = "xarray"

    def __init__(
        self, groups: Mapping[str, EncodedGroup], pipelines: Mapping[str, Pipeline], *, keeps_lists: bool = False
    ) -> None:
        self._groups, self._keeps_lists = groups, keeps_lists
        self._arrays: dict[str, VariableArray] = {}
        for group, encoded in groups.items():
            for name, variable in encoded.variables.items():
                path = posixpath.join(group, name)
                pipeline = pipelines.get(path, Pipeline())
                unlimited, forms = self._unlimited(group), self._forms(encoded, name)
                self._arrays[path] = VariableArray(path, variable, len(self._arrays), unlimited, pipeline, forms)

    @property
    def nbytes(self) -> int:
        """Bytes of all values."""
        return sum(array_nbytes(array) for array in self._arrays.values())

    @lazy_property
    def roles(self) -> Mapping[str, meaning.Role]:
        """The role of each variable by path; coordinates of a dataset count as coordinates."""
        variables = [
            meaning.Variable(
                path,
                array.shape,
                array.type.numbers,
                tuple(posixpath.join(posixpath.dirname(path), str(name)) for name in array.variable.dims),
                array.attributes,
                posixpath.basename(path) in array.variable.dims,
            )
            for path, array in self._arrays.items()
        ]
        roles = dict(meaning.roles_of(variables, {path: group.attributes for path, group in self._groups.items()}))
        for path, group in self._groups.items():
            for name in map(str, group.dataset.coords):
                own = posixpath.join(path, name)
                if own in roles and not roles[own].is_exact:
                    roles[own] = meaning.Role("auxiliary coordinate", "coordinate of the dataset")
        return roles

    def header(self) -> Header:
        """Return variables, dimensions and attributes as CDL describes them."""
        return header_of(self, self._arrays)

    def group(self, path: str) -> NamedGroup:
        """Return a group; see `tamis.stores.data_model.DataModel`."""
        if path not in self.group_paths():
            raise FileError(f"expected a group among {', '.join(self.group_paths())}, got {path!r}")
        if path not in self._groups:
            return NamedGroup(path, {}, {}, {}, {})
        group = self._groups[path]
        around, sizes = _sizes(self._around(path)), _sizes([group])
        dimensions = {
            name: Dimension(size, name in group.unlimited) for name, size in sizes.items() if around.get(name) != size
        }
        variables = {name: self._arrays[posixpath.join(path, name)].named() for name in group.variables}
        return NamedGroup(path, dimensions, variables, group.attributes, {}, self._forms(group, ""))

    def _forms(self, group: EncodedGroup, name: str) -> dict[str, AttributeForm]:
        """Return the forms of the attributes of a variable, or of a group; in netCDF, one number is not in a list."""
        forms = group.forms.get(name, {})
        return {key: form for key, form in forms.items() if self._keeps_lists or form.type != LIST_OF_ONE}

    def group_paths(self, path: str = "/") -> list[str]:
        """Return the paths of all groups, each after its enclosing ones."""
        paths: dict[str, None] = {}
        for group in self._groups:
            paths |= dict.fromkeys(_lineage(group))
        return list(paths)

    def _around(self, path: str) -> list[EncodedGroup]:
        """Return the enclosing groups of a group, the outermost first."""
        return [self._groups[outer] for outer in _lineage(path)[:-1] if outer in self._groups]

    def _unlimited(self, path: str) -> frozenset[str]:
        """Return the unlimited dimensions that the variables of a group may have."""
        return frozenset().union(*(group.unlimited for group in (*self._around(path), self._groups[path])))


def _lineage(path: str) -> list[str]:
    """Return the paths of a group and its enclosing ones, the root first."""
    parts = [part for part in path.split("/") if part]
    return ["/" + "/".join(parts[:count]) for count in range(len(parts) + 1)]


def _sizes(groups: Sequence[EncodedGroup]) -> dict[str, int]:
    """Return the sizes of the dimensions of all variables of groups, of which later ones override."""
    variables = (variable for group in groups for variable in group.variables.values())
    return {str(name): size for variable in variables for name, size in variable.sizes.items()}
