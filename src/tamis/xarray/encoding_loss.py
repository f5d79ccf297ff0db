"""What the encodings of variables do to their values: given ones are compared with those that xarray will read.

An encoding says how values are stored: type, packing, fill value, units of times. One that a variable has from the file
that it was opened from may not fit values that were joined, computed or set since.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xarray import Variable
from xarray.coders import CFDatetimeCoder
from xarray.conventions import decode_cf_variable

from tamis.errors import DataError
from tamis.meaning import FILL_ATTRIBUTES
from tamis.rounding import PACKING_ATTRIBUTES

VALUE_KEYS = ("dtype", *PACKING_ATTRIBUTES, *FILL_ATTRIBUTES, "_Unsigned")
"""Keys of an encoding that determine how numbers are stored."""

_TIME_KEYS = (*VALUE_KEYS, "units", "calendar")

_SLAB_NBYTES = 32 << 20

_DECODED_BY = (*PACKING_ATTRIBUTES, *FILL_ATTRIBUTES, "_Unsigned", "units", "dtype")
"""Attributes that change what xarray reads."""


@dataclass(frozen=True, slots=True)
class Misfit:
    """A value that a reader gets otherwise than it was given."""

    index: tuple[int, ...]
    given: Any
    found: Any

    def __str__(self) -> str:
        return f"{self.given!s} at {list(self.index)}, which reads as {self.found!s}"


@dataclass(frozen=True, slots=True)
class Loss:
    """What an encoding does to values; nothing by default."""

    largest: float = 0.0  # Largest absolute error; infinite if a value is lost, as a time, or a missing value is
    relative: float = 0.0  # Largest error relative to a value
    first: Misfit | None = None  # The first value that changes
    beyond: Misfit | None = None  # The first one that changes by more than rounding to the stored type does

    def plus(self, later: Loss) -> Loss:
        """Return the loss of both of two parts."""
        return Loss(
            max(self.largest, later.largest),
            max(self.relative, later.relative),
            self.first or later.first,
            self.beyond or later.beyond,
        )


def may_change_type(given: Variable, encoded: Variable) -> bool:
    """Return whether values are stored in another type or packed, so that they may change."""
    if given.dtype.kind not in "biufmMO" or encoded.dtype.kind not in "iuf":
        return False
    return (
        given.dtype.kind not in "iuf"
        or encoded.dtype.newbyteorder("=") != given.dtype.newbyteorder("=")
        or any(name in encoded.attrs for name in (*PACKING_ATTRIBUTES, "_Unsigned"))
    )


def may_seem_missing(given: Variable, encoded: Variable) -> bool:
    """Return whether values of the stored type may be equal to one that marks missing ones."""
    if given.dtype.kind not in "iuf" or encoded.dtype.kind not in "iuf":
        return False
    marks = [np.asarray(encoded.attrs[name]) for name in FILL_ATTRIBUTES if name in encoded.attrs]
    return any(mark.dtype.kind not in "iuf" or not np.isnan(mark).all() for mark in marks)


def loss_of(name: str, given: Variable, encoded: Variable) -> Loss:
    """Return what an encoding does to all values; blocks of dask arrays are compared where dask computes them."""
    compare = _Comparison(name, given, encoded)
    data, stored = _data(given), _data(encoded)
    if hasattr(data, "dask"):
        from dask.base import compute  # late: few datasets are of dask arrays
        from dask.delayed import delayed

        if stored.chunks != data.chunks:
            stored = stored.rechunk(data.chunks)
        # Not optimized each by itself, so that both need each block of the values once.
        before, after = (array.to_delayed(optimize_graph=False) for array in (data, stored))
        parts = [delayed(compare)(before[number], after[number], origin) for number, origin in _blocks(data.chunks)]
        losses: Any = compute(*parts)  # type: ignore[no-untyped-call]
    else:
        values, codes = np.asarray(given.values), np.asarray(encoded.values)
        losses = (
            compare(values[part], codes[part], tuple(axis.start for axis in part))
            for part in _slabs(values.shape, values.dtype.itemsize)
        )
    total = Loss()
    for loss in losses:
        total = total.plus(loss)
    return total


def with_units_of_bounds(name: str, variable: Variable, others: Mapping[str, Variable]) -> Variable:
    """Return an encoded variable with the units and calendar of the times whose bounds it has, as xarray decodes it."""
    for other in others.values():
        if name in (other.attrs.get("bounds"), other.attrs.get("climatology")) and "units" in other.attrs:
            shared = {key: other.attrs[key] for key in ("units", "calendar") if key in other.attrs}
            return Variable(variable.dims, variable._data, {**shared, **variable.attrs}, variable.encoding)
    return variable


def checked_data(name: str, given: Variable, encoded: Variable) -> Any:
    """Return the encoded values of a dask array, of which each block is compared when it is computed."""
    from dask.array import map_blocks  # late: few datasets are of dask arrays

    compare = _Comparison(name, given, encoded)
    data = _data(encoded)
    return map_blocks(compare.checked, _data(given), data, dtype=data.dtype, meta=data._meta)  # type: ignore[no-untyped-call]


def _data(variable: Variable) -> Any:
    """Return the values of a variable, which may be a dask array."""
    return variable._data


def without_value_keys(variable: Variable) -> dict[str, Any]:
    """Return the encoding of a variable without what determines how its values are stored."""
    is_time = variable.dtype.kind in "mMO"
    return {
        key: value for key, value in variable.encoding.items() if key not in (_TIME_KEYS if is_time else VALUE_KEYS)
    }


class _Comparison:
    """Compares parts of a variable with what xarray reads of their encoded values."""

    def __init__(self, name: str, given: Variable, encoded: Variable) -> None:
        self._name, self._dims, self._dtype = name, given.dims, encoded.dtype
        self._attributes = dict(encoded.attrs)
        # Attributes of an undecoded variable have the same meaning before and after.
        self._own = {key: value for key, value in given.attrs.items() if key in _DECODED_BY}
        # A coder of dates would also make xarray read durations otherwise than it does by default.
        self._coder: Any = CFDatetimeCoder(use_cftime=True) if given.dtype.kind == "O" else True

    def __call__(self, given: Any, encoded: Any, origin: tuple[int, ...] = ()) -> Loss:
        """Return the loss of a part that begins at an index."""
        # xarray's blocks of times may have another type than it says, which they get when they are written.
        with np.errstate(all="ignore"):
            expected, codes = np.asarray(given), np.asarray(encoded).astype(self._dtype, copy=False)
        found = self._decoded(codes, self._attributes)
        if self._own:
            expected = self._decoded(expected, self._own)
        step = self._step(codes, found) if expected.dtype.kind == "f" else 0.0
        return loss_between(expected, found, step, origin or (0,) * expected.ndim)

    def checked(self, given: Any, encoded: Any) -> Any:
        """Return an encoded part, or raise DataError if it reads otherwise than it was given."""
        if (first := self(given, encoded).first) is not None:
            raise DataError(
                f"{self._name}: its encoding does not keep {first.given!s}, which reads as {first.found!s}: "
                "delete _FillValue and missing_value from its encoding"
            )
        return encoded

    def _decoded(self, codes: NDArray[Any], attributes: dict[str, Any]) -> NDArray[Any]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            variable = Variable(self._dims, codes, attributes)
            try:
                return np.asarray(decode_cf_variable(self._name, variable, decode_times=self._coder).values)
            except (ValueError, OverflowError) as error:  # times that xarray writes, and cannot read
                raise DataError(f"{self._name}: xarray cannot read its stored values: {error}").at(
                    dataset=self._name
                ) from error

    def _step(self, codes: NDArray[Any], found: NDArray[Any]) -> Any:
        """Return how much rounding to the stored type may change each value: half a step, and what arithmetic adds."""
        scale, offset = (
            abs(float(np.asarray(self._attributes[key]).reshape(-1)[0])) if key in self._attributes else None
            for key in PACKING_ATTRIBUTES
        )
        if found.dtype.kind != "f" or (codes.dtype.kind in "iu" and scale is None and offset is None):
            return 0.0
        with np.errstate(all="ignore"):
            step = np.abs(np.spacing(codes)).astype(np.float64) if codes.dtype.kind == "f" else 1.0
            size = np.abs(found.astype(np.float64)) + (offset or 0.0)
            noise = 0.0 if scale is None and offset is None else 8 * float(np.finfo(found.dtype).eps) * size
            return step * (1.0 if scale is None else scale) * (0.5 + 1e-6) + noise


def loss_between(expected: NDArray[Any], found: NDArray[Any], step: Any, origin: tuple[int, ...]) -> Loss:
    """Return the loss between values as given and as found, of which rounding explains a step."""
    if expected.dtype.kind in "mMO":
        wrong = ~_same_times(expected, found)
        first = _first(wrong, expected, found, origin)
        return Loss() if first is None else Loss(np.inf, np.inf, first, first)
    if found.dtype.kind == "f" and expected.dtype.kind == "f" and found.dtype.itemsize > expected.dtype.itemsize:
        # A wider value that the given type cannot tell from the given one is the same.
        with np.errstate(over="ignore"):
            found = found.astype(expected.dtype)
    # float64 does not hold all whole numbers of 64 bits.
    wide: Any = np.longdouble if {expected.dtype.kind, found.dtype.kind} & set("iu") else np.float64
    with np.errstate(all="ignore"):
        before, after = expected.astype(wide), found.astype(wide)
        same = (before == after) | (np.isnan(before) & np.isnan(after))
        error = np.where(same, 0, np.abs(after - before))
        error = np.where(np.isnan(error), np.inf, error)
        changed = error > 0
        if not changed.any():
            return Loss()
        relative = np.where(changed, error / np.abs(before), 0)
        relative = np.where(np.isnan(relative), np.inf, relative)
    return Loss(
        float(error.max()),
        float(relative.max()),
        _first(changed, expected, found, origin),
        _first(changed & ~(error <= step), expected, found, origin),
    )


def _same_times(expected: NDArray[Any], found: NDArray[Any]) -> NDArray[np.bool_]:
    if expected.dtype.kind in "mM" and expected.dtype.kind == found.dtype.kind:
        return np.asarray((expected == found) | (np.isnat(expected) & np.isnat(found)))
    if expected.dtype.kind != "O":
        return np.zeros(expected.shape, bool)
    pairs = zip(expected.reshape(-1), found.reshape(-1), strict=True)
    return np.array([_same_time(one, other) for one, other in pairs], bool).reshape(expected.shape)


def _same_time(one: Any, other: Any) -> bool:
    """Return whether two times of cftime are equal, or both missing; those of different calendars never are."""
    if one is None or one != one:
        return bool(other is None or other != other)
    return getattr(one, "calendar", "") == getattr(other, "calendar", "") and bool(one == other)


def _first(
    wrong: NDArray[np.bool_], expected: NDArray[Any], found: NDArray[Any], origin: tuple[int, ...]
) -> Misfit | None:
    if not wrong.any():
        return None
    inside = tuple(int(index) for index in np.unravel_index(int(np.argmax(wrong)), wrong.shape))
    index = tuple(start + step for start, step in zip(origin, inside, strict=True))
    return Misfit(index, expected[inside], found[inside])


def _blocks(chunks: tuple[tuple[int, ...], ...]) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Yield the number and the first index of each block of a dask array."""
    starts = [[0, *itertools.accumulate(sizes)][:-1] for sizes in chunks]
    for number in np.ndindex(*map(len, chunks)):
        yield number, tuple(axis[at] for axis, at in zip(starts, number, strict=True))


def _slabs(shape: tuple[int, ...], itemsize: int) -> Iterator[tuple[slice, ...]]:
    """Yield parts along the first axis that cover an array and take little memory."""
    if not shape:
        yield ()
        return
    row = max(int(np.prod(shape[1:])) * itemsize, 1)
    step = max(_SLAB_NBYTES // row, 1)
    for start in range(0, shape[0], step):
        yield (slice(start, min(start + step, shape[0])), *(slice(0, extent) for extent in shape[1:]))
