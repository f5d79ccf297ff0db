"""An array of floats as the integers that it is packed to: what a target gets, and is compared with."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from tamis import meaning
from tamis.arrays.gather import each_result
from tamis.arrays.grid import grid_of, origin_of
from tamis.arrays.reader import ConvertedReader, put
from tamis.errors import ParameterError, located
from tamis.filters import ChunkType
from tamis.lazy_property import lazy_property
from tamis.meaning.arrays import Meaning, missing_nan
from tamis.pipeline import Pipeline
from tamis.rounding import Absolute, Pack
from tamis.rounding.pack import PackingRange, attributes_of
from tamis.stores.arrays import DescribedArray
from tamis.stores.facts import ArrayFacts, Fill, Storage, ValueType
from tamis.stores.losses import recorded_loss

if TYPE_CHECKING:
    from tamis.arrays.grid import Grid, Region
    from tamis.arrays.reader import ArrayReader
    from tamis.rounding import Codes
    from tamis.stores.protocols import StoredArray


Convert = Callable[[NDArray[Any]], NDArray[Any]]


class ConvertedArray(DescribedArray):
    """An array whose values are converted when they are read; see `tamis.stores.protocols.StoredArray`.

    Everything else is as in the array.
    """

    can_read_chunks = False  # no chunk is stored like this

    def __init__(self, source: StoredArray, dtype: np.dtype[Any], convert: Convert) -> None:
        self.source, self._dtype, self._convert = source, dtype, convert

    def __getattr__(self, name: str) -> Any:
        """Return what conversion does not change: path, shape, …."""
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.source, name)

    @property
    def attributes(self) -> Mapping[str, Any]:
        """See `StoredArray.attributes`."""
        return self.source.attributes

    @lazy_property
    def type(self) -> ValueType:
        """Type of the converted values."""
        return self.source.type._replace(numbers=self._dtype, dtype=self._dtype, values=self._dtype)

    @lazy_property
    def storage(self) -> Storage:
        """See `StoredArray.storage`."""
        return self.source.storage._replace(partial_filtered=False)

    @lazy_property
    def fill(self) -> Fill:
        """The converted value of elements that were never written."""
        value = self._convert(self.source.fill.value.reshape(1)).reshape(())
        return Fill(value, self.source.fill.is_chosen, value.tobytes())

    def open_reader(self, *, independent: bool = False) -> ArrayReader:
        """Open the converted values."""
        return ConvertedReader(self.source.open_reader(independent=independent), self._dtype, self._convert)


class PackedArray(ConvertedArray):
    """The codes of an array's values.

    Every value that is read is packed and unpacked again; its error is within the bound, or reading fails.
    """

    def __init__(self, source: StoredArray, codes: Codes) -> None:
        super().__init__(source, codes.dtype, self.packed)
        self.codes = codes
        self.largest_error = 0.0  # of all values that were read
        self.worst: Region | None = None  # The part with that error, if this process read it
        self._lock = threading.Lock()
        marks = _named_marks(source)
        self.new_attributes = attributes_of(codes, source.attributes, marks) | _whole_bound(source, codes)
        if "_Unsigned" in source.attributes:
            self.new_attributes["_Unsigned"] = None  # codes are signed

    @property
    def attributes(self) -> dict[str, Any]:
        """See `StoredArray.attributes`."""
        attributes = {**self.source.attributes, **self.new_attributes}
        return {name: value for name, value in attributes.items() if value is not None}

    @lazy_property
    def storage(self) -> Storage:
        """Chunks of codes without filters: the stored ones have floats."""
        chunk = ChunkType(self.codes.dtype, self.source.storage.chunk.shape)
        return super().storage._replace(chunk=chunk, pipeline=Pipeline())

    @lazy_property
    def fill(self) -> Fill:
        """The code of elements that were never written."""
        code = self.codes.fill_code(fill_of(self.source).item(), is_read=has_unwritten(self.source))
        value = np.array(code, self.codes.dtype)
        return Fill(value, self.source.fill.is_chosen, value.tobytes())

    @lazy_property
    def meaning(self) -> Meaning:
        """No missing values: codes do not change any more."""
        return Meaning(packing=meaning.packing_of(self.attributes))

    def open_reader(self, *, independent: bool = False) -> ArrayReader:
        """Open the codes; the error of a value without a code says where it is."""
        return _PackingReader(self.source.open_reader(independent=independent), self)

    def packed(self, values: NDArray[Any], part: Region | None = None) -> NDArray[Any]:
        """Return the codes of stored values of the source, or of a part of them."""
        codes, error = self.codes.pack(as_floats(self.source, values))
        self.note(error, part)
        return codes

    def note(self, error: float, part: Region | None = None) -> None:
        """Note the error of values, also of those that another process read."""
        with self._lock:
            if error > self.largest_error:
                self.largest_error, self.worst = error, part


def _named_marks(source: ArrayFacts) -> dict[str, list[float]]:
    """Return the values of ``_FillValue`` and ``missing_value``, by name, in units of the variable."""
    numbers = {name: meaning.numbers(source.attributes, name) for name in meaning.FILL_ATTRIBUTES}
    return {name: as_floats(source, values).tolist() for name, values in numbers.items()}


class _PackingReader:
    """The codes of the values of another reader; see `tamis.arrays.reader.ArrayReader`."""

    def __init__(self, reader: ArrayReader, array: PackedArray) -> None:
        self.shape, self.dtype, self.chunk_shape = reader.shape, array.codes.dtype, reader.chunk_shape
        self.close = reader.close
        self._reader, self._array = reader, array

    def read(self, part: Region, out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Read and pack a part."""
        values = self._reader.read(part)
        path, origin = self._array.source.path, origin_of(part)
        with located(f"{path}: from {origin} on", dataset=path, chunk=origin):
            return put(self._array.packed(values, part), out)


def pack_array(
    source: StoredArray,
    packing: Pack,
    extent: PackingRange,
    *,
    bound: float,
    zeros: bool,
    is_divided: bool = False,
    will_grow: bool = False,
) -> PackedArray:
    """Return an array packed within a bound, from the range of all of its values; whether readers divide.

    If it `will_grow`, there are codes for later values, where it can grow and nothing says their range.

    Raises
    ------
    ParameterError
        If integers cannot keep the bound; see `tamis.rounding.Pack.codes`.
    """
    _check_integers(source, packing, extent)
    extent = extent.own(possible_marks(source))
    if is_divided and source.meaning.packing is None:
        named = [mark for marks in _named_marks(source).values() for mark in marks if mark == mark]
        extent = extent.with_marks(np.array(named, unpacked_type(source)).tolist())
    fill_has_code = bool(extent.low <= fill_of(source).item() <= extent.high)
    has_marks = bool(source.meaning.missing.values or missing_nan(source.attributes, source.fill.value))
    # A code for missing values that attributes name, and for elements that are written later or never.
    spare = has_marks or (can_grow(source) and not fill_has_code)
    # Readers of Zarr's codecs may write NaN later, and have a fill value that no other value equals.
    grows = will_grow and can_grow(source) and not is_divided  # what codecs pack is never appended to
    choose = partial(
        packing.codes,
        *(unpacked_type(source), extent),
        bound=bound,
        is_divided=is_divided,
        grows=grows,
        limits=valid_limits(source),
    )
    codes = choose(spare=spare or is_divided)
    if codes.is_full and not (has_unwritten(source) and fill_has_code):
        codes = choose(spare=True)
    gives_nan = source.meaning.packing is not None
    return PackedArray(source, replace(codes, zeros=zeros, gives_nan=gives_nan))


_EXACT = 1 << 53
"""Integers up to this one are exact in float64."""


def _check_integers(source: ArrayFacts, pack: Pack, extent: PackingRange) -> None:
    """Raise ParameterError if integers lose nothing by a bound, or are too large for the floats that prove it."""
    if source.type.numbers is None or source.type.numbers.kind not in "iu":
        return
    if source.meaning.packing is None and pack.bound < 1:
        raise ParameterError(
            f"expected a bound of 1 or more for {source.type.text}, whose values are whole numbers, got {pack}: use"
            " lossless filters, such as shuffle|deflate(4)"
        )
    if source.type.numbers.itemsize < 8 or extent.low > extent.high:
        return
    packing = source.meaning.packing or meaning.Packing()
    largest = max(abs(end - packing.offset) for end in (extent.low, extent.high)) / abs(packing.scale)
    if largest > _EXACT:
        raise ParameterError(
            f"expected integers up to 2^53 for packing, which are exact in float64, found {largest:.17g}: use lossless"
            " filters, such as shuffle|deflate(4)"
        )


def valid_limits(source: ArrayFacts) -> tuple[float | None, float | None]:
    """Return the smallest and largest valid value, in units of the variable; None without a limit."""
    low, high = (None if end is None else float(in_units(source, np.asarray(end))) for end in _limits(source))
    if source.meaning.packing is not None and source.meaning.packing.scale < 0:
        low, high = high, low
    return low, high


def _limits(source: ArrayFacts) -> tuple[Any, Any]:
    """Return the smallest and largest valid stored value; None without a limit.

    A store knows no limits of integers that are unsigned by ``_Unsigned``, because their order is another one.
    """
    if source.type.numbers is None or not meaning.is_unsigned(source.attributes):
        return source.meaning.missing.low, source.meaning.missing.high
    unsigned = np.dtype(f"u{source.type.numbers.itemsize}")
    attributes = {
        name: as_unsigned(source, np.asarray(value)) if isinstance(value, np.ndarray | np.generic) else value
        for name, value in source.attributes.items()
        if name != "_Unsigned"
    }
    return meaning.valid_range(attributes, unsigned)


def packing_range_of(
    source: StoredArray, grid: Grid, progress: Callable[[int, int], None] = lambda *_: None, threads: int = 1
) -> PackingRange:
    """Return the range of all values of an array, read in threads by the chunks of a grid."""
    source.check_readable()
    parts = source.parts(grid)
    marks = marks_of(source)
    total = PackingRange()

    def range_of(part: Region, values: NDArray[Any]) -> PackingRange:
        with located(f"{source.path}: chunk at {origin_of(part)}", dataset=source.path):
            return PackingRange.of(as_floats(source, values), marks)

    reader = source.open_reader()
    for extent in each_result(reader, parts, reader.dtype.newbyteorder("="), range_of, threads, progress):
        total = total.plus(extent)
    return total if parts.are_all else total.plus(PackingRange.of(fill_of(source).reshape(1), marks))


def keeps_values(source: ArrayFacts, codes: Codes) -> bool:
    """Return whether an array is packed in the same steps from 0 on already, so that no value changes."""
    packing = source.meaning.packing
    if packing is None or packing.scale != codes.scale:
        return False
    return (packing.offset / codes.scale).is_integer() and (codes.offset / codes.scale).is_integer()


def _whole_bound(source: ArrayFacts, codes: Codes) -> dict[str, Any]:
    """Return the attributes that record the bound together with that of all earlier losses, if there were any."""
    before = recorded_loss(source).bound
    if not before:
        return {}
    removed = {Absolute.attribute: None} if Absolute.attribute in source.attributes else {}
    return {**removed, Pack.attribute: np.float64(before + (0 if keeps_values(source, codes) else codes.bound))}


class ArrayInUnits(ConvertedArray):
    """An array as its readers have it: values in units of the variable, in float64, missing ones as NaN."""

    def __init__(self, source: StoredArray) -> None:
        super().__init__(source, np.dtype(np.float64), self._unpacked)

    @property
    def attributes(self) -> Mapping[str, Any]:
        """No attributes: those of packing and of missing values have done their work."""
        return {}

    def _unpacked(self, values: NDArray[Any]) -> NDArray[Any]:
        missing = self.source.meaning.missing.find(values)
        units = as_floats(self.source, values).astype(np.float64, copy=False)
        return units if missing is None else np.where(missing, np.nan, units)


def in_units_of(source: StoredArray) -> StoredArray:
    """Return an array with its values in units of the variable."""
    return cast("StoredArray", ConvertedArray(source, float_type(source), partial(as_floats, source)))


def unpacked(target: StoredArray, codes: Codes, dtype: np.dtype[Any]) -> StoredArray:
    """Return an array of codes with its values unpacked to a type, missing ones as before."""
    return cast("StoredArray", ConvertedArray(target, dtype, partial(codes.unpack, dtype=dtype)))


def unpacked_type(array: ArrayFacts) -> np.dtype[Any]:
    """Return the type of an array's values in units of the variable, once they are packed: float32 or float64.

    It is in native byte order. Integers that are not packed get the smaller one that holds all of their type.

    Raises
    ------
    ParameterError
        If it has no real numbers of a common size.
    """
    dtype = array.type.numbers
    if dtype is not None and dtype.kind in "iu":
        factors = {name: value for name, value in array.attributes.items() if name != "_Unsigned"}
        plain = np.dtype(np.float32 if dtype.itemsize <= 2 else np.float64)
        return meaning.unpacked_type(factors, dtype) or plain
    if dtype is None or dtype.kind != "f" or dtype.itemsize not in (4, 8):
        raise ParameterError(
            f"expected float32, float64 or integers, got {array.type.text}: use lossless filters, such as"
            " shuffle|deflate(4)"
        )
    return dtype.newbyteorder("=")


def float_type(array: ArrayFacts) -> np.dtype[Any]:
    """Return the type of `as_floats`."""
    is_float = array.meaning.packing is None and array.type.numbers is not None and array.type.numbers.kind == "f"
    return unpacked_type(array) if is_float else np.dtype(np.float64)


def as_floats(array: ArrayFacts, values: NDArray[Any]) -> NDArray[Any]:
    """Return stored values in units of the variable: floats as they are, integers and packed ones as float64.

    The codes of missing values of a packed array are no values in these units, and differ from file to file: the first
    one becomes NaN, as readers have it, and a second one, which stays apart, a number that no packed value is.
    """
    units = in_units(array, values)
    floats = units if units.dtype.kind == "f" else units.astype(np.float64)
    if array.meaning.packing is None:
        return floats
    for code, value in zip(array.meaning.missing.values, _UNPACKED_MARKS, strict=False):
        floats = np.where(values == code, value, floats)
    return floats


_UNPACKED_MARKS = (math.nan, float(np.finfo(np.float32).max))


def in_units(array: ArrayFacts, values: NDArray[Any]) -> NDArray[Any]:
    """Return stored values in units of the variable: packed ones unpacked to float64, others as they are."""
    native = as_unsigned(array, values.astype(values.dtype.newbyteorder("="), copy=False))
    if array.meaning.packing is None:
        return native
    unpacked: NDArray[Any] = array.meaning.packing.unpacked(native.astype(np.float64))
    return unpacked


def as_unsigned(array: ArrayFacts, values: NDArray[Any]) -> NDArray[Any]:
    """Return integers that are unsigned by ``_Unsigned`` as such; others as they are."""
    dtype = array.type.numbers
    is_stored = dtype is not None and values.dtype.kind == "i" and values.dtype.itemsize == dtype.itemsize
    if not is_stored or not meaning.is_unsigned(array.attributes):
        return values
    return values.view(f"u{values.dtype.itemsize}")


def can_grow(array: ArrayFacts) -> bool:
    """Return whether an array can get more elements."""
    return any(most is None or most > extent for extent, most in zip(array.shape, array.maxshape, strict=True))


def has_unwritten(array: StoredArray) -> bool:
    """Return whether an array has elements that were never written, or can get some."""
    return can_grow(array) or not array.parts(grid_of(array.shape, array.storage.chunk_shape or array.shape)).are_all


def marks_of(array: ArrayFacts) -> list[Any]:
    """Return the values that mark missing ones, in units of the variable."""
    return [as_floats(array, np.asarray(value))[()] for value in array.meaning.missing.values]


def possible_marks(array: ArrayFacts) -> list[float]:
    """Return the values that may be missing ones of an array: those that mark them, and NaN."""
    return [*map(float, marks_of(array)), math.nan]


def fill_of(array: ArrayFacts) -> NDArray[Any]:
    """Return the value of elements that were never written, in units of the variable."""
    return as_floats(array, array.fill.value)
