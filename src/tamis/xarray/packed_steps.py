"""More values for a variable that a file has packed: limits of valid values, and the range of its packing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xarray import Variable

from tamis import meaning
from tamis.arrays.grid import Region, grid_of
from tamis.errors import DataError, ParameterError
from tamis.formatting import printable
from tamis.rewrite.packed_array import packing_range_of, unpacked_type, valid_limits
from tamis.rounding import PACKING_ATTRIBUTES, Pack, PackingRange
from tamis.xarray.existing import Existing, parts_of, same_value

LIMITS = ("valid_range", "valid_min", "valid_max")
"""Attributes with limits of valid values."""

IN_CODES = (*LIMITS, *meaning.FILL_ATTRIBUTES, "flag_values", "flag_masks")
"""Attributes that a packed variable has in the units of its codes, which a dataset has in those of its values."""

_Limits = tuple[float | None, float | None]


def is_packed(found: Existing) -> bool:
    """Return whether a file has the values of a variable as the codes of a packing."""
    return found.array.meaning.packing is not None


def with_stored_limits(found: Existing, stored: Variable) -> Variable:
    """Return the codes of new values with the attributes in the units of codes that the file has."""
    attributes = {name: value for name, value in stored.attrs.items() if name not in IN_CODES}
    kept = {name: value for name, value in found.named.attributes.items() if name in IN_CODES}
    return Variable(stored.dims, stored._data, attributes | kept, stored.encoding)


def _given_limits(found: Existing, given: Variable) -> _Limits | None:
    """Return the limits of valid values of a dataset, in units of the variable; None if they are those of the file.

    Those that xarray read from a packed file are codes of that file, whose packing is in the encoding.
    """
    attributes = {name: given.attrs[name] for name in LIMITS if name in given.attrs}
    if all(same_value(value, found.named.attributes.get(name)) for name, value in attributes.items()):
        return None
    packing = meaning.packing_of({**given.encoding, **given.attrs})
    is_codes = packing is not None and all(np.asarray(value).dtype.kind in "iu" for value in attributes.values())
    dtype = np.dtype(np.int64 if is_codes else np.float64)
    ends = [None if end is None else float(end) for end in meaning.valid_range(attributes, dtype)]
    if is_codes and packing is not None:
        ends = [None if end is None else float(packing.unpacked(end)) for end in ends]
        ends = ends if packing.scale > 0 else ends[::-1]
    low, high = ends
    return low, high


def limits_note(found: Existing, given: Variable) -> str:
    """Return a note if a dataset has other limits of valid values than the file, which keeps its own; else nothing."""
    if not any(name in given.attrs for name in LIMITS) or (limits := _given_limits(found, given)) is None:
        return ""
    step = abs(found.array.meaning.packing.scale) if found.array.meaning.packing else 0.0
    own = valid_limits(found.array)
    if all(one == other or _is_near(one, other, step) for one, other in zip(own, limits, strict=True)):
        return ""
    return printable(f"{found.path}: keeps the valid values of the file, {_text(own)}; the dataset has {_text(limits)}")


def _is_near(one: float | None, other: float | None, step: float) -> bool:
    return one is not None and other is not None and abs(one - other) <= step


def _text(limits: _Limits) -> str:
    low, high = (None if end is None else f"{end:g}" for end in limits)
    if low is None and high is None:
        return "without limits"
    return " ".join(f"{word} {end}" for word, end in (("from", low), ("to", high)) if end is not None)


def check_limits(found: Existing, given: Variable, stored: Variable) -> None:
    """Raise DataError if new values that are valid in the dataset are not in the file, or the other way round.

    Without limits in the dataset, those of the file hold.
    """
    if set(PACKING_ATTRIBUTES) & set(given.attrs) or given.dtype.kind not in "fiu":
        return
    if not set(LIMITS) & set(given.attrs) or (limits := _given_limits(found, given)) is None:
        return
    missing, own = found.array.meaning.missing, valid_limits(found.array)
    if own == (None, None):
        return
    for _, values, codes in _parts(given, stored):
        is_missing = missing.find(codes)
        is_valid, is_kept = _within(values, limits), _within(codes, (missing.low, missing.high))
        wrong = (is_valid != is_kept) & ~np.isnan(values)
        if is_missing is not None:
            wrong &= ~is_missing
        if wrong.any():
            words = [f"{'' if has[wrong][0] else 'not '}valid" for has in (is_valid, is_kept)]
            raise DataError(
                f"{found.path}: {values[wrong][0]!s} is {words[0]} in the dataset, but {words[1]} in the file, whose"
                f" valid values are {_text(own)}: write the file anew, mode='w', with limits that fit all values"
            ).at(dataset=found.path)


def _within(values: NDArray[Any], limits: tuple[Any, Any]) -> NDArray[np.bool_]:
    """Return which values are between two limits; None for no limit."""
    low, high = limits
    result = np.ones(values.shape, bool)
    if low is not None:
        result &= values >= low
    if high is not None:
        result &= values <= high
    return result


def _parts(given: Variable, stored: Variable) -> Iterator[tuple[Region, NDArray[Any], NDArray[Any]]]:
    """Yield parts of new values with their places, the values in units of the variable, and their codes."""
    for part in parts_of(given.shape, 8):
        yield part, np.asarray(given[part].values), np.asarray(stored[part].values)


def check_range(found: Existing, pack: Pack) -> None:
    """Raise ParameterError if a packing has a range that is not the one by which the file is packed.

    A file does not record the range: it follows from the codes. Ranges that give the same codes are not told apart, and
    a file whose first values made its range wider has others.
    """
    array, packing = found.array, found.array.meaning.packing
    if pack.range is None or packing is None or array.type.numbers is None:
        return
    marks = (float(np.finfo(np.float32).max), np.nan)
    count = min(len(array.meaning.missing.values), len(marks))
    extent = PackingRange(missing=marks[len(marks) - count :])
    limits = valid_limits(found.array)
    codes = pack.codes(unpacked_type(array), extent, spare=True, limits=limits)
    own = array.type.numbers.newbyteorder("=")
    if (codes.dtype, codes.scale, codes.offset) == (own, packing.scale, packing.offset):
        return
    info = np.iinfo(own)
    first = max((int(mark) + 1 for mark in array.meaning.missing.values), default=int(info.min))
    low, high = packing.unpacked(first), packing.unpacked(int(info.max))
    if low <= pack.range[0] and pack.range[1] <= high and pack.outside == "widen":
        grid = grid_of(array.shape, array.storage.chunk_shape or tuple(max(extent, 1) for extent in array.shape))
        values = packing_range_of(array, grid)
        is_lower = values.low < pack.range[0] and values.low <= low + packing.scale / 2
        if is_lower or (values.high > pack.range[1] and own.itemsize > codes.dtype.itemsize):
            return
    raise ParameterError(
        f"{found.path}: expected the range by which the file is packed, which has codes for values from {low:g} to"
        f" {high:g} by scale_factor {packing.scale:g} and add_offset {packing.offset:g}, got {pack}, which would have"
        f" add_offset {codes.offset:g} and {codes.dtype}: leave out the recipe, or write the file anew, mode='w'"
    ).at(dataset=found.path)


def check_outside(found: Existing, given: Variable, stored: Variable, pack: Pack) -> None:
    """Raise DataError if new values are outside the range of a packing that takes none."""
    if pack.range is None or pack.outside != "error" or found.array.meaning.packing is None:
        return
    low, high = pack.range
    has_codes = bool(set(PACKING_ATTRIBUTES) & set(given.attrs))
    for part, values, codes in _parts(given, stored):
        own = found.array.meaning.packing.unpacked(codes.astype(np.float64)) if has_codes else values
        missing = found.array.meaning.missing.find(codes)
        with np.errstate(invalid="ignore"):
            wrong = (own < low) | (own > high)
        if missing is not None:
            wrong &= ~missing
        if wrong.any():
            at = [int(axis) + step.start for axis, step in zip(np.argwhere(wrong)[0], part, strict=True)]
            raise DataError(
                f"{found.path}: expected values from {low:g} to {high:g}, by {pack}, found {own[wrong][0]!s} at {at} of"
                " the dataset: correct the values, or use outside=widen, which stores all values that have a code"
            ).at(dataset=found.path)
