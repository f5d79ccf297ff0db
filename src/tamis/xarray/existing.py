"""The file or store to which datasets are appended: what it has of their variables, and how it stores them."""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from xarray import Dataset, Variable

from tamis.arrays.grid import Grid, Region
from tamis.arrays.index import Parts
from tamis.errors import FileError, ParameterError
from tamis.formats.registry import open_store
from tamis.formatting import printable
from tamis.jobs.witness.loss import Misfit, calendar_of, loss_between
from tamis.meaning import FILL_ATTRIBUTES, TIME_ATTRIBUTES, same_times, usual_calendar
from tamis.rounding import PACKING_ATTRIBUTES
from tamis.stores.data_model import NamedArray, NamedGroup
from tamis.stores.facts import ELSEWHERE
from tamis.stores.protocols import StoredArray
from tamis.xarray.backend import FileOfDatasets

_STORED_AS = (*PACKING_ATTRIBUTES, *FILL_ATTRIBUTES, "_Unsigned", "units", "calendar")
"""Attributes that say how values are stored."""

_MEANING = (*TIME_ATTRIBUTES, "standard_name", "cell_methods", "positive", "flag_values", "flag_masks", "flag_meanings")
"""Attributes that say what values mean: with another one, old values in the file would mean something else."""

_SHOWN_LENGTH = 60
"""Characters of an attribute that a message shows."""

_ENCODING_KEYS = ("dtype", "char_dim_name", *_STORED_AS)

_AT_ONCE_NBYTES = 32 << 20
"""Bytes of values that are compared at once."""


@dataclass(frozen=True, slots=True)
class Existing:
    """A variable that the file has, and the one of the dataset by the same name."""

    path: str
    named: NamedArray
    array: StoredArray
    decoded: Variable  # As xarray reads it
    axis: int | None  # The axis along which the values are appended; None if there is none
    count: int  # Number of steps of the dataset along that axis

    @property
    def length(self) -> int:
        """Number of steps that the file has."""
        return 0 if self.axis is None else self.named.shape[self.axis]

    @property
    def new_shape(self) -> tuple[int, ...]:
        """The shape with the appended steps."""
        return tuple(extent + self.count * (number == self.axis) for number, extent in enumerate(self.named.shape))

    @property
    def chunk_length(self) -> int:
        """Length of a chunk along the axis."""
        chunks = self.array.storage.chunk_shape
        return 1 if self.axis is None or chunks is None else chunks[self.axis]

    @property
    def begin(self) -> int:
        """The first step that is written: all of a chunk that also has old steps."""
        return self.length // self.chunk_length * self.chunk_length

    @property
    def head_count(self) -> int:
        """Number of new steps that share a chunk with old ones, of which a new chunk is made; none for texts."""
        return 0 if self.array.type.varies else min(-self.length % self.chunk_length, self.count)

    @property
    def bound(self) -> float:
        """Largest difference, in stored units, that lossy filters of the file may have made; 0 without any."""
        return self.array.storage.pipeline.error_bound or 0.0


class ExistingFile:
    """A file or store as it is before anything is appended."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.store = open_store(path)
        try:
            self.store.check_finished()
            self._datasets = FileOfDatasets(path, "sort", None, True, False)
        except BaseException:
            self.store.close()
            raise
        self.paths = set(self.store.model.group_paths())
        self.group = cache(self._group)
        self.decoded = cache(self._decoded)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._datasets.close()
        self.store.close()

    def _group(self, path: str) -> NamedGroup:
        """Return a group in netCDF's data model; an empty one if the file has none of this path."""
        return self.store.model.group(path) if path in self.paths else NamedGroup(path, {}, {}, {}, {})

    def _decoded(self, path: str) -> Dataset:
        """Return a group as xarray reads it."""
        return self._datasets.dataset(path) if path in self.paths else Dataset()

    def owner_of(self, group: str, dimension: str) -> str:
        """Return the path of a dimension by its name in a group; empty if the file has none."""
        while True:
            if dimension in self.group(group).dimensions:
                return posixpath.join(group, dimension)
            if group == "/":
                return ""
            group = posixpath.dirname(group)

    def with_dimension(self, owner: str) -> Iterator[str]:
        """Yield the paths of all variables that have a dimension, given by its path."""
        name = posixpath.basename(owner)
        for path in self.paths:
            for variable in self.group(path).variables.values():
                if name in variable.dimensions and self.owner_of(path, name) == owner:
                    yield variable.path

    def find(self, group: str, name: str, given: Variable, append_dim: str | None) -> Existing | None:
        """Return the variable of the file that has the place of one of a dataset; None if there is none.

        Raises
        ------
        ParameterError
            If it has other dimensions or extents, or cannot grow or change.
        """
        own, path = self.group(group), posixpath.join(group, name)
        if name in own.left_out:
            raise ParameterError(f"{path}: {self.path} has it, and tamis cannot read it: {own.left_out[name]}").at(
                dataset=path
            )
        if (named := own.variables.get(name)) is None:
            return None
        decoded = self.decoded(group).variables[name]
        _check_dimensions(path, given, decoded, append_dim)
        axis = given.dims.index(append_dim) if append_dim in given.dims else None
        found = Existing(
            path, named, self.store.array(named.path), decoded, axis, 0 if axis is None else given.shape[axis]
        )
        _check_storage(found)
        if axis is not None and self.store.has_objects:
            _check_can_grow(self.path, found, str(append_dim))
        return found


def _check_dimensions(path: str, given: Variable, stored: Variable, append_dim: str | None) -> None:
    """Raise ParameterError unless a variable has the dimensions of the stored one; only one dimension may differ."""
    if given.dims != stored.dims:
        raise ParameterError(
            f"{path}: expected the dimensions that it has in the file, {_names(stored)}, got {_names(given)}"
        ).at(dataset=path)
    for name, extent in stored.sizes.items():
        if name != append_dim and given.sizes[name] != extent:
            advice = "" if append_dim else f": to add steps at its end, give append_dim={str(name)!r}"
            raise ParameterError(
                f"{path}: expected {extent} along {name}, as in the file, got {given.sizes[name]}{advice}"
            ).at(dataset=path)


def _names(variable: Variable) -> str:
    return f"({', '.join(map(str, variable.dims))})"


def _check_storage(found: Existing) -> None:
    """Raise FileError for an array whose values are stored in a way that cannot be continued."""
    storage = found.array.storage
    reason = ""
    if found.array.marks.has_companion:
        reason = "its missing values are in a mask, a variable of its own"
    elif storage.layout in ELSEWHERE:
        reason = f"its values are in other files ({storage.layout})"
    elif storage.packed_to is not None:
        reason = "codecs of Zarr pack its values"
    elif storage.problem:
        reason = storage.problem
    elif found.named.stored_shape != found.named.shape:
        reason = f"it is shorter than its dimensions, {found.named.stored_shape} instead of {found.named.shape}"
    if reason:
        raise FileError(f"{found.path}: cannot be changed in the file: {reason}: write a new file, mode='w'").at(
            dataset=found.path
        )


def _check_can_grow(path: Path, found: Existing, dimension: str) -> None:
    """Raise FileError unless HDF5 can make an array longer."""
    assert found.axis is not None
    most = found.array.maxshape[found.axis]
    if most is None or most >= found.new_shape[found.axis]:
        return
    raise FileError(
        f"{found.path}: cannot grow along {dimension}, which is not unlimited in {path}: write the file once more with"
        f" ds.tamis.to_netcdf(…, unlimited_dims=[{dimension!r}]), or by NCO: ncks --mk_rec_dmn {dimension} in.nc out.nc"
    ).at(dataset=found.path)


def with_stored_encoding(found: Existing, given: Variable, asked: Mapping[str, Any]) -> Variable:
    """Return a variable of a dataset with the encoding that it has in the file.

    Raises
    ------
    ParameterError
        If an encoding that is asked for, or attributes of values that are not decoded, say anything else.
    """
    encoding = {key: found.decoded.encoding[key] for key in _ENCODING_KEYS if key in found.decoded.encoding}
    encoding.setdefault("_FillValue", None)
    if found.decoded.dtype == bool:
        del encoding["dtype"]  # which xarray chooses
    if found.named.is_text:
        encoding["dtype"] = str  # of any length
    for key in asked.keys() & {*_ENCODING_KEYS}:
        if not same_value(asked[key], encoding.get(key)):
            raise ParameterError(
                f"{found.path}: expected the encoding that it has in the file, {key}={encoding.get(key)!s}, got"
                f" {asked[key]!s}: leave it out"
            ).at(dataset=found.path)
    _refuse_other_calendar(found, given, str(encoding.get("calendar", "")))
    for key in given.attrs.keys() & encoding.keys():
        if not same_value(given.attrs[key], encoding[key]):
            raise ParameterError(
                f"{found.path}: expected the attribute {key}={encoding[key]!s} of the file, got {given.attrs[key]!s}:"
                " convert the values to it, or decode them (xarray.decode_cf)"
            ).at(dataset=found.path)
        del encoding[key]
    return Variable(given.dims, given._data, given.attrs, encoding)


def _refuse_other_calendar(found: Existing, given: Variable, stored: str) -> None:
    """Raise ParameterError if times are of a calendar whose dates that of the file cannot say."""
    if not stored or given.dtype.kind not in "MO" or not given.size:
        return
    own, known = (usual_calendar(name) for name in (calendar_of(given[(0,) * given.ndim].values[()]), stored))
    if own in ("", known) or {own, known} == {"standard", "proleptic_gregorian"}:
        return
    raise ParameterError(
        f"{found.path}: expected times of the calendar {stored}, as in the file, got some of the calendar {own}:"
        f" convert the dataset first, ds.convert_calendar({stored!r}, use_cftime=True)"
    ).at(dataset=found.path)


def refuse_other_meaning(found: Existing, given: Mapping[Any, Any], *, may_add: bool) -> None:
    """Raise ParameterError if attributes of a variable say that its values mean something else than those of the file.

    Attributes that the variable lacks are those of the file: xarray drops them from what it computes. With `may_add`,
    it may have some that the file lacks, because all its values are those of the file.
    """
    known = found.decoded.attrs
    for key in _MEANING:
        if key not in given or key in found.decoded.encoding or (key not in known and may_add):
            continue
        if key in known and same_value(given[key], known[key]):
            continue
        name, before = posixpath.basename(found.path), short_text(known.get(key))
        advice = f"delete it, del ds[{name!r}].attrs[{key!r}], or give it to the file first, mode='a'"
        if key in known:
            advice = f"convert the values first; if both mean the same, set ds[{name!r}].attrs[{key!r}] = {before}"
        raise ParameterError(
            printable(
                f"{found.path}: expected the attribute {key} to be as in the file, {before}, because it is also that of"
                f" the values there, got {short_text(given[key])}: {advice}"
            )
        ).at(dataset=found.path)


def short_text(value: Any) -> str:
    """Return the value of an attribute for a message, which is cut if it is long; None is no attribute."""
    text = "none" if value is None else repr(value.tolist() if isinstance(value, np.ndarray | np.generic) else value)
    return text if len(text) <= _SHOWN_LENGTH else f"{text[: _SHOWN_LENGTH - 1]}…"


def same_value(first: Any, second: Any) -> bool:
    """Return whether two values of attributes or encodings are the same for readers."""
    if first is None or second is None or isinstance(first, type) or isinstance(second, type):
        return first is second or (first is str and second is str)
    if isinstance(first, np.dtype) or isinstance(second, np.dtype):
        return bool(np.dtype(first) == np.dtype(second))
    one, other = np.asarray(first), np.asarray(second)
    if one.shape != other.shape:
        one, other = one.reshape(-1), other.reshape(-1)
    if one.dtype.kind in "fc" and other.dtype.kind in "fc":
        return bool(np.array_equal(one, other, equal_nan=True))
    return bool(np.array_equal(one, other))


def as_stored(found: Existing, encoded: Variable, given: Mapping[Any, Any]) -> Variable:
    """Return an encoded variable in exactly the type of the file; it was given with some attributes.

    Raises
    ------
    ParameterError
        If xarray encodes it in another way than the file has it.
    """
    named = found.named
    if encoded.dtype == np.dtype("S1") and encoded.ndim == len(named.shape) and encoded.shape != named.shape:
        encoded = _of_length(found, encoded)
    name = posixpath.basename(found.path)
    expected = tuple(extent for number, extent in enumerate(named.shape) if number != found.axis)
    extents = tuple(extent for number, extent in enumerate(encoded.shape) if number != found.axis)
    if encoded.dims != named.dimensions and encoded.ndim == len(named.dimensions) and encoded.dtype == np.dtype("S1"):
        encoded = Variable(named.dimensions, encoded._data, encoded.attrs, encoded.encoding)
    is_alike = encoded.dtype.newbyteorder("=") == named.dtype.newbyteorder("=") or named.is_text
    if encoded.dims != named.dimensions or extents != expected or not is_alike:
        raise ParameterError(
            f"{found.path}: expected {named.dtype} of {_names_of(named.dimensions)}, as in the file, got"
            f" {encoded.dtype} of {_names(encoded)}"
        ).at(dataset=found.path)
    # Whether times are earlier than their reference time shows when they are read again.
    has_same_times = same_times(named.attributes, encoded.attrs, are_late=True)
    for key in _STORED_AS:
        if key in found.decoded.attrs or (key in given and key in TIME_ATTRIBUTES and key not in named.attributes):
            continue  # an attribute like any other, such as the units of a temperature
        before, after = named.attributes.get(key), encoded.attrs.get(key)
        if not same_value(before, after) and not (key in TIME_ATTRIBUTES and has_same_times):
            raise ParameterError(
                f"{found.path}: expected values that can be stored with {key}={before!s}, as in the file, got some that"
                f" need {after!s}: choose one for all when the file is made, encoding={{{name!r}: {{{key!r}: …}}}}"
            ).at(dataset=found.path)
    numbers = found.array.type.numbers
    if numbers is not None and encoded.dtype != numbers and encoded.dtype.kind in "iuf":
        return Variable(encoded.dims, encoded.astype(numbers)._data, encoded.attrs, encoded.encoding)
    return encoded


def _names_of(dimensions: Collection[str]) -> str:
    return f"({', '.join(dimensions)})"


def _of_length(found: Existing, encoded: Variable) -> Variable:
    """Return characters with as many of them for each text as the file has."""
    length, most = encoded.shape[-1], found.named.shape[-1]
    if length > most:
        raise ParameterError(
            f"{found.path}: expected texts of at most {most} bytes, as the file has room for, got some of {length}"
        ).at(dataset=found.path)
    values = np.asarray(encoded.values)
    padded = np.pad(values, [(0, 0)] * (values.ndim - 1) + [(0, most - length)], constant_values=b"")
    return Variable(encoded.dims, padded, encoded.attrs, encoded.encoding)


def first_difference(found: Existing, encoded: Variable) -> Misfit | None:
    """Return the first stored value that is not that of the dataset, apart from what lossy filters changed."""
    shape = found.named.shape
    reader = found.array.open_reader()
    try:
        for part in parts_of(shape, max(encoded.dtype.itemsize, 8)):
            before = reader.read(part)
            after = np.asarray(encoded[part].values)
            if (misfit := _misfit(before, after, part, found.bound)) is not None:
                return misfit
    finally:
        reader.close()
    return None


def _misfit(before: NDArray[Any], after: NDArray[Any], part: Region, bound: float) -> Misfit | None:
    origin = tuple(axis.start for axis in part)
    if after.dtype.kind in "VS" or before.dtype.kind == "V":
        size = after.dtype.itemsize
        one, other = (np.ascontiguousarray(item).view(f"V{size}") for item in (before, after))
        wrong = np.array(one != other)
        if not wrong.any():
            return None
        at = tuple(int(axis) for axis in np.argwhere(wrong)[0])
        return Misfit(tuple(start + axis for start, axis in zip(origin, at, strict=True)), after[at], before[at])
    return loss_between(after, before, bound, origin).beyond


def parts_of(shape: tuple[int, ...], itemsize: int) -> Iterator[Region]:
    """Yield parts along the first axis that cover an array and take little memory."""
    if not shape:
        yield ()
        return
    row = max(int(np.prod(shape[1:], dtype=np.int64)) * itemsize, 1)
    box = (max(_AT_ONCE_NBYTES // row, 1), *(max(extent, 1) for extent in shape[1:]))
    yield from Parts(Grid(shape, box))


def difference_text(found: Existing, misfit: Misfit, append_dim: str | None) -> str:
    """Return in words how a variable without the dimension differs from that of the file."""
    return printable(
        f"{found.path}: has no dimension {append_dim}, so that it must be as in the file, but at {list(misfit.index)}"
        f" the dataset has {misfit.given!s}, and the file {misfit.found!s}: leave it out, ds.drop_vars("
        f"{posixpath.basename(found.path)!r}), or change it first, mode='a'"
    )
