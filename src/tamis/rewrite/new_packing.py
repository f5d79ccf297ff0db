"""Packing of values that come from no store: the codes of new arrays, and of more values for existing ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from tamis import meaning
from tamis.errors import DataError, ParameterError
from tamis.rounding import PACKING_ATTRIBUTES, Codes, Pack, PackingRange, still_needed
from tamis.rounding.pack import attributes_of, codes_of_more

if TYPE_CHECKING:
    from tamis.stores.facts import ArrayFacts


@dataclass(frozen=True, slots=True)
class NewPacking:
    """How a new array is packed."""

    codes: Codes
    fill: NDArray[Any]  # Code of elements that are never written
    attributes: Mapping[str, Any]  # Those of the array that packing changes; None for one to remove


def of_range(pack: Pack, dtype: DTypeLike, fillvalue: Any, attrs: Mapping[str, Any]) -> NewPacking:
    """Return the packing of values that come later: all that the integers for a range have room for.

    Raises
    ------
    ParameterError
        If the packing has no range, or does not take values outside of it.
    """
    if pack.range is None or pack.outside != "widen":
        raise ParameterError(
            f"expected pack with range=LOW:HIGH, and without outside=error, for values that come later, got {pack}:"
            f" write, for example, pack(bound={pack.bound},range=200:330)"
        ).at(filter=pack)
    packing = _new(pack, dtype, fillvalue, attrs, PackingRange(), spare=True)
    for name, limit in zip(("smallest", "largest"), packing.codes.limits, strict=True):
        if limit is not None and packing.codes.value_of(limit[1]) != limit[0]:
            raise ParameterError(
                f"expected a {name} valid value that is a multiple of the step {packing.codes.scale:g}, because later"
                f" values find its code only, got {limit[0]:g}: use {packing.codes.value_of(limit[1])!r}"
            )
    codes, reserved = packing.codes, [code for _, code in packing.codes.missing]
    first, last = (limit and limit[1] for limit in codes.limits)
    more = codes_of_more(codes.dtype, codes.unpacked, (codes.scale, codes.offset), codes.bound, reserved, (first, last))
    return packing if more is None else replace(packing, codes=more)


def of_values(
    pack: Pack,
    dtype: DTypeLike,
    fillvalue: Any,
    attrs: Mapping[str, Any],
    parts: Iterable[NDArray[Any]],
    *,
    grows: bool,
) -> NewPacking:
    """Return the packing of values, all of which are read; whether later ones can follow."""
    unpacked = _unpacked_type(pack, dtype)
    marks = _marks(fillvalue, attrs, unpacked)
    extent = PackingRange()
    for values in parts:
        extent = extent.plus(PackingRange.of(np.ma.compressed(values) if np.ma.isMA(values) else values, marks))
        if np.ma.is_masked(values):
            extent = extent.plus(PackingRange(missing=(_number(fillvalue, unpacked),)))
    spare = bool(marks.size) or any(name in attrs for name in _FILLS)
    return _new(pack, dtype, fillvalue, attrs, extent, spare=spare, grows=grows)


def _new(
    pack: Pack,
    dtype: DTypeLike,
    fillvalue: Any,
    attrs: Mapping[str, Any],
    extent: PackingRange,
    *,
    spare: bool,
    grows: bool = False,
) -> NewPacking:
    unpacked = _unpacked_type(pack, dtype)
    still_needed(pack, attrs)  # only for its error: attributes of new values may record another rounding
    if twice := [name for name in PACKING_ATTRIBUTES if name in attrs]:
        raise ParameterError(f"leave {twice[0]} out of attrs, because {pack} determines it").at(filter=pack)
    codes = pack.codes(unpacked, extent, spare=spare, grows=grows, limits=meaning.valid_range(attrs, unpacked))
    names = {name: [_number(value, unpacked) for value in meaning.numbers(attrs, name)] for name in _FILLS}
    fill = codes.fill_code(_number(fillvalue, unpacked) if fillvalue is not None or codes.missing else 0.0)
    return NewPacking(codes, np.array(fill, codes.dtype), attributes_of(codes, attrs, names))


_FILLS = meaning.FILL_ATTRIBUTES


def _unpacked_type(pack: Pack, dtype: DTypeLike) -> np.dtype[Any]:
    unpacked = np.dtype(dtype).newbyteorder("=")
    pack.check(unpacked)
    return unpacked


def _marks(fillvalue: Any, attrs: Mapping[str, Any], unpacked: np.dtype[Any]) -> NDArray[Any]:
    """Return the values that mark missing ones, NaN aside, and 0 only if an attribute names it."""
    numbers = [value for name in _FILLS for value in meaning.numbers(attrs, name)]
    if fillvalue:
        numbers.append(fillvalue)
    marks = np.array(numbers).astype(unpacked)
    return np.unique(marks[~np.isnan(marks)])


def _number(value: Any, unpacked: np.dtype[Any]) -> float:
    """Return a value in the type of the values; NaN for None."""
    try:
        return float("nan") if value is None else float(unpacked.type(value))
    except (TypeError, ValueError) as error:
        raise ParameterError(f"expected a fill value that {unpacked} can hold, got {value!r}") from error


def codes_of_array(array: ArrayFacts, bound: float) -> Codes | None:
    """Return the codes of more values for a packed array; None if its steps are not those of a packing by tamis."""
    packing, dtype = array.meaning.packing, array.type.numbers
    unpacked = None if dtype is None else meaning.unpacked_type(array.attributes, dtype)
    if packing is None or dtype is None or unpacked is None:
        return None
    missing = array.meaning.missing
    low, high = (None if end is None else int(end) for end in (missing.low, missing.high))
    return codes_of_more(
        dtype,
        unpacked,
        (packing.scale, packing.offset),
        bound,
        [int(mark) for mark in missing.values],
        (low, high),
    )


def packed(codes: Codes, values: NDArray[Any]) -> NDArray[Any]:
    """Return the codes of floats, of which masked ones are missing.

    Raises
    ------
    DataError
        If a value has no code, or some are masked but none may be missing.
    """
    if values.dtype.itemsize not in (4, 8):
        raise DataError(f"expected values of float32 or float64 for a packed dataset, got {values.dtype}")
    if isinstance(values, np.ma.MaskedArray):
        if np.ma.is_masked(values) and not codes.missing:
            raise DataError("masked values need a fill value, and the dataset has no _FillValue")
        values = values.filled(codes.missing[0][0]) if codes.missing else values.data
    return codes.pack(values)[0].reshape(values.shape)
