"""What the encodings of variables do to their values: given ones are compared with those that xarray will read.

An encoding says how values are stored: type, packing, fill value, units of times. One that a variable has from the file
that it was opened from may not fit values that were joined, computed or set since.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from xarray import Variable
from xarray.coders import CFDatetimeCoder
from xarray.conventions import decode_cf_variable

from tamis.errors import DataError
from tamis.jobs.witness.loss import Loss, loss_between
from tamis.meaning import FILL_ATTRIBUTES
from tamis.rounding import PACKING_ATTRIBUTES

VALUE_KEYS = ("dtype", *PACKING_ATTRIBUTES, *FILL_ATTRIBUTES, "_Unsigned")
"""Keys of an encoding that determine how numbers are stored."""

_TIME_KEYS = (*VALUE_KEYS, "units", "calendar")

_SLAB_NBYTES = 32 << 20

_DECODED_BY = (*PACKING_ATTRIBUTES, *FILL_ATTRIBUTES, "_Unsigned", "units", "dtype")
"""Attributes that change what xarray reads."""


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
    if hasattr(data, "dask") and hasattr(stored, "dask"):
        from dask.base import compute  # late: few datasets are of dask arrays
        from dask.delayed import delayed

        inner = stored.shape[data.ndim :]  # the axis of characters, which is in one piece
        if stored.chunks != (chunks := (*data.chunks, *((extent,) for extent in inner))):
            stored = stored.rechunk(chunks)
        # Not optimized each by itself, so that both need each block of the values once.
        before, after = (array.to_delayed(optimize_graph=False) for array in (data, stored))
        parts = [
            delayed(compare)(before[number], after[(*number, *(0 for _ in inner))], origin)
            for number, origin in _blocks(data.chunks)
        ]
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


class ComparedPart(NamedTuple):
    """A part of a variable, as it was given, stored, and is read."""

    given: NDArray[Any]
    stored: NDArray[Any]
    found: NDArray[Any]
    attributes: Mapping[str, Any]  # Of the stored variable


def compared_parts(name: str, given: Variable, encoded: Variable) -> Iterator[ComparedPart]:
    """Yield parts of a variable along its first axis, with whole fields, which are its last two axes."""
    compare = _Comparison(name, given, encoded)
    slabs = _slabs(given.shape, given.dtype.itemsize) if given.ndim > 2 else iter([(slice(None),) * given.ndim])
    for part in slabs:
        values, codes = (np.asarray(variable[part].values) for variable in (given, encoded))
        expected, found, codes = compare.read(values, codes)
        yield ComparedPart(expected, codes, found, encoded.attrs)


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
        # Characters have an axis of their own.
        self._name, self._dims, self._dtype = name, encoded.dims, encoded.dtype
        self._attributes = dict(encoded.attrs)
        # Attributes of an undecoded variable have the same meaning before and after.
        self._own = {key: value for key, value in given.attrs.items() if key in _DECODED_BY}
        # A coder of dates would also change how xarray reads durations.
        self._coder: Any = CFDatetimeCoder(use_cftime=True) if given.dtype.kind == "O" else True
        self._is_text, self._is_time = encoded.dtype.kind in "OS", given.dtype.kind == "M"

    def __call__(self, given: Any, encoded: Any, origin: tuple[int, ...] = ()) -> Loss:
        """Return the loss of a part that begins at an index."""
        expected, found, codes = self.read(given, encoded)
        step = self._step(codes, found, expected.dtype) if expected.dtype.kind == "f" else 0.0
        return loss_between(expected, found, step, origin or (0,) * expected.ndim)

    def read(self, given: Any, encoded: Any) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Return a part as it is given, as it is read, and as it is stored."""
        # xarray's blocks of times may have another type than it says, which they get when they are written.
        with np.errstate(all="ignore"):
            expected, codes = np.asarray(given), np.asarray(encoded).astype(self._dtype, copy=False)
        found = self._decoded(codes, self._attributes, self._dims)
        if self._own:
            expected = self._decoded(expected, self._own, self._dims[: expected.ndim])
        return expected, found, codes

    def checked(self, given: Any, encoded: Any) -> Any:
        """Return an encoded part, or raise DataError if it reads differently from how it was given."""
        if (first := self(given, encoded).first) is not None:
            raise DataError(
                f"{self._name}: its encoding does not keep {first.given!s}, which reads as {first.found!s}: "
                "delete _FillValue and missing_value from its encoding"
            )
        return encoded

    def _decoded(self, codes: NDArray[Any], attributes: dict[str, Any], dims: tuple[Any, ...]) -> NDArray[Any]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            variable = Variable(dims, codes, attributes)
            times = self._coder if not self._is_text else False
            try:
                return np.asarray(decode_cf_variable(self._name, variable, decode_times=times).values)
            except (ValueError, OverflowError) as error:  # times that xarray writes, and cannot read
                advice = ": it reads no dates outside 1678 to 2262 beside missing ones" if self._is_time else ""
                raise DataError(f"{self._name}: xarray cannot read its stored values: {error}{advice}").at(
                    dataset=self._name
                ) from error

    def _step(self, codes: NDArray[Any], found: NDArray[Any], given: np.dtype[Any]) -> Any:
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
            noise: Any = 0.0
            if scale is not None or offset is not None:
                noise = 8 * float(np.finfo(found.dtype).eps) * size
                if given.itemsize < found.dtype.itemsize:  # in which they are compared
                    noise = noise + float(np.finfo(given).eps) * size
            return step * (1.0 if scale is None else scale) * (0.5 + 1e-6) + noise


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
