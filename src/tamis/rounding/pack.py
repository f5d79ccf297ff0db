"""Packing, as CF has it: integers in equal steps, which every reader unpacks by ``scale_factor`` and ``add_offset``."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from tamis import _native
from tamis.errors import DataError, ParameterError
from tamis.filters.base import choice, real, span
from tamis.rounding.division import divided, exact_steps, invertible_step, scale_of
from tamis.rounding.rounding_base import Rounded, Rounding

_STEP_BITS = 8
"""Most bits of a step: with a code of 16 bits, their product is exact in float32."""

PACKING_ATTRIBUTES = ("scale_factor", "add_offset")
"""The attributes of packed values."""

_NARROW = np.dtype(np.float32)
_LEAST_NARROW_BITS = 6
"""Float32 is preferred if a step of this many bits does; such a step is shorter by 3 % at most."""

_TYPES = tuple(np.dtype(name) for name in ("i1", "i2", "i4"))

_NEAR = (0, 7, 11, 13)
"""Codes that are tried for the first missing value: numbers that programs compare or compute with are rarely these."""

_MOST_MARKS = 2
"""Missing values that a file can tell apart: by ``_FillValue`` and ``missing_value``."""

_INFINITIES = (-math.inf, math.inf)
"""In place of missing values that are valid in another file: infinities are refused before."""


class PackingRange(NamedTuple):
    """What packing must have codes for: the smallest and largest valid value, and the missing ones, NaN last."""

    low: float = math.inf
    high: float = -math.inf
    missing: tuple[float, ...] = ()
    alike: bool = False  # Whether all missing values get one code: of several files, none has two different ones

    @classmethod
    def of(cls, values: NDArray[Any], marks: Sequence[Any] | NDArray[Any]) -> Self:
        """Return the range of values, given those that mark missing ones besides NaN.

        Raises
        ------
        DataError
            If a valid value is infinite.
        """
        given = np.ascontiguousarray(values, values.dtype.newbyteorder("="))
        each = np.asarray(marks, given.dtype).reshape(-1)
        low, high, marked, has_nan = _native.extent(given, each)
        missing = [*each[marked].tolist(), *[math.nan] * has_nan]
        if low > high:  # no valid value
            return cls(missing=tuple(missing))
        if not (math.isfinite(low) and math.isfinite(high)):
            raise DataError("expected finite or missing values, found an infinite one: integers have no room for it")
        return cls(low, high, tuple(missing))

    def with_marks(self, marks: Iterable[float]) -> PackingRange:
        """Return the same with further missing values, as far as a file can tell them apart."""
        new = [mark for mark in dict.fromkeys(marks) if mark not in self.missing]
        return self._replace(missing=(*new[: max(_MOST_MARKS - len(self.missing), 0)], *self.missing))

    def plus(self, other: PackingRange) -> PackingRange:
        """Return the range of the values of both."""
        marks = self.missing + other.missing
        missing = sorted({mark for mark in marks if not math.isnan(mark)})
        if any(map(math.isnan, marks)):
            missing.append(math.nan)
        return PackingRange(min(self.low, other.low), max(self.high, other.high), tuple(missing))

    def beside(self, other: PackingRange) -> PackingRange:
        """Return the range of the values of two files, or groups of files, in which missing values may differ."""
        total = self.plus(other)
        alike = all(extent.alike or len(extent.missing) < _MOST_MARKS for extent in (self, other))
        return total._replace(alike=alike and len(total.missing) >= _MOST_MARKS)

    def __repr__(self) -> str:
        """Return a text from which records have a key: it is that of earlier versions where codes are the same."""
        text = f"PackingRange(low={self.low!r}, high={self.high!r}, missing={self.missing!r}"
        return f"{text}, alike=True)" if self.alike else f"{text})"

    @property
    def mark_codes(self) -> int:
        """Number of codes for missing values, the same in all files of a range; more cannot be told apart."""
        return min(len(self.missing), 1 if self.alike else _MOST_MARKS)

    @property
    def has_codes(self) -> bool:
        """Whether there are codes enough for the missing values."""
        return self.alike or len(self.missing) <= _MOST_MARKS

    def own(self, marks: Iterable[float]) -> PackingRange:
        """Return the same for a file with only some of the missing values: those of other files may be values there.

        It has codes for as many, so that all files have the same attributes; no value of the file gets the others.
        """
        own = [*marks]
        found = [mark for mark in self.missing if _is_among(mark, own)]
        lacking = self.mark_codes - len(found)
        if lacking <= 0:
            return self._replace(missing=tuple(found))
        foreign = [] if self.alike else [mark for mark in self.missing if not _is_among(mark, found)]
        no_values = [mark for mark in foreign if not self.low <= mark <= self.high]
        no_values += [math.nan] * (not _is_among(math.nan, self.missing))
        chosen = [*found, *[*no_values, *_INFINITIES][:lacking]]
        return self._replace(missing=tuple(sorted(chosen, key=lambda mark: (mark != mark, mark))))


@dataclass(frozen=True, slots=True)
class Codes:
    """Integers in place of floats: value = code * scale + offset, exactly, in the type that readers unpack to.

    Readers of Zarr's codecs divide instead; if they are to get the same values, the scale is invertible.
    """

    dtype: np.dtype[Any]  # Type of the codes
    unpacked: np.dtype[Any]  # Type of the values: float32 or float64, in native byte order
    scale: float
    offset: float
    low: int  # Code of the smallest valid value
    high: int  # Code of the largest one
    bound: float  # Largest error of a value
    missing: tuple[tuple[float, int], ...] = ()  # Values that mark missing ones, NaN last, with their codes
    # Smallest and largest valid value, with their codes; None without such a limit
    limits: tuple[tuple[float, int] | None, tuple[float, int] | None] = (None, None)
    zeros: bool = False  # Whether no value but 0 may become 0
    asked: Pack | None = None  # The packing that chose them; None for more values of an array
    # Whether readers have codecs of Zarr, which divide: see `tamis.rounding.division`
    is_divided: bool = False
    gives_nan: bool = False  # Whether these readers get NaN for all missing values, as those of a packed source do

    @property
    def origin(self) -> int:
        """The code that 0 has, or would have."""
        return -round(self.offset / self.scale)

    @property
    def used_bits(self) -> int:
        """Bits that the codes differ in at most, those of missing values included."""
        return used_bits(self.low, self.high, *(code for _, code in self.missing))

    def pack(self, values: NDArray[Any]) -> tuple[NDArray[Any], float]:
        """Return the code of each value, in native byte order, and the largest error of a valid value.

        Every value, float32 or float64, is unpacked again in its own type and in float64; both keep the bound. If
        readers divide, they are unpacked by division, too, with the same result.

        Raises
        ------
        DataError
            If no code keeps the bound, the valid range or, where required, zeros; or a missing value is a NaN with bits
            that the codecs of Zarr do not keep.
        """
        given = np.ascontiguousarray(values, values.dtype.newbyteorder("="))
        result = np.empty(given.shape, self.dtype)
        marks = [(mark, code) for mark, code in self.missing if mark == mark]
        nan_code = next((code for mark, code in self.missing if mark != mark), None)
        line = (self.scale, self.offset, float(self.origin))
        codes = (self.low, self.high)
        at, error, _ = _native.pack(given, result, line, codes, self.bound, self.zeros, marks, nan_code, self.limits)
        if at >= 0:
            value = given.reshape(-1)[at].item()
            raise DataError(
                f"expected values that a step of {self.scale:g} from {self.value_of(self.low):g} to"
                f" {self.value_of(self.high):g} keeps within {self.bound:g}{self._also}, found {value!r}"
            )
        if self.is_divided:
            self._check_division(given, result)
        return result, error

    def _check_division(self, values: NDArray[Any], codes: NDArray[Any]) -> None:
        """Raise DataError unless readers that divide get what was proven, and missing values with their bits."""
        kind = self.unpacked.type
        by_division = divided(codes, kind(scale_of(self.scale)), kind(self.offset))
        proven = codes.astype(kind) * kind(self.scale) + kind(self.offset)
        changed = by_division != proven
        if values.dtype != self.unpacked:  # then values were proven in float64
            changed |= proven != codes.astype(np.float64) * self.scale + self.offset
        if changed.any():
            changed &= ~np.isin(codes, [code for _, code in self.missing])
        if changed.any():
            found = values[changed].reshape(-1)[0].item()
            raise DataError(f"expected values that division keeps within {self.bound:g}, found {found!r}")
        if self.gives_nan:
            return
        if values.dtype == self.unpacked and any(mark != mark for mark, _ in self.missing):
            _check_nan(values)
        for mark, code in self.missing:
            if self.value_of(self.low) <= mark <= self.value_of(self.high) and (proven[codes != code] == mark).any():
                raise DataError(
                    f"expected a missing value that no other one becomes by a step of {self.scale:g}, found {mark:g}:"
                    " pack such values with packed_as='attributes' (--packed-as attributes), where its code marks it"
                )

    @property
    def marks_for_codecs(self) -> tuple[tuple[float, int], ...]:
        """What readers of Zarr's codecs get for missing values, with their codes."""
        return tuple((math.nan, code) for _, code in self.missing) if self.gives_nan else self.missing

    @property
    def _also(self) -> str:
        limits = ", on its side of the valid range" if any(self.limits) else ""
        zeros = ", and zeros apart from others" if self.zeros else ""
        return f"{limits}{zeros}"

    def unpack(self, codes: NDArray[Any], dtype: np.dtype[Any] | None = None) -> NDArray[Any]:
        """Return the values that codes stand for, of a type, by default their own; the missing ones as before."""
        values = np.empty(codes.shape, (self.unpacked if dtype is None else dtype).newbyteorder("="))
        stored = np.ascontiguousarray(codes, self.dtype)
        _native.unpack(stored, values, (self.scale, self.offset), self.missing)
        return values

    def value_of(self, code: int) -> float:
        """Return the value that a code stands for."""
        return (code - self.origin) * self.scale

    def code_of(self, value: float, low: int, high: int) -> int:
        """Return the code nearest to a value, from `low` to `high`, within the type."""
        limits = np.iinfo(self.dtype)
        if value == math.inf:
            code = high
        elif value == -math.inf:
            code = low
        else:
            code = round(value / self.scale) + self.origin
        return min(max(code, low, int(limits.min)), high, int(limits.max))

    def fill_code(self, value: float, *, is_read: bool = True) -> int:
        """Return the code of elements that are never written, whose value need not have one.

        If `is_read` is False, because there are no such elements, it is no code of a valid value.
        """
        for mark, code in self.missing:
            if _is_among(mark, (value,)):
                return code
        if is_read and self.value_of(self.low) <= value <= self.value_of(self.high):
            return self.code_of(value, self.low, self.high)
        if self.missing:
            return self.missing[0][1]
        # Readers may take elements of this value for missing ones.
        return self.high + 1 if self.high < np.iinfo(self.dtype).max else self.low - 1

    @property
    def is_full(self) -> bool:
        """True if the type has no other code than those of values."""
        limits = np.iinfo(self.dtype)
        return not self.missing and (self.low, self.high) == (limits.min, limits.max)

    def within(self, low: Any, high: Any) -> Self:
        """Return the same codes for values with a smallest and largest valid one; None for no limit.

        A limit for which the type has no code gets the nearest one, beside those of missing values.
        """
        info = np.iinfo(self.dtype)
        least, most = max((code + 1 for _, code in self.missing), default=int(info.min)), int(info.max)
        if self.is_divided:  # attributes keep the limits in units: a code is only needed for values
            least, most = self.low, self.high
        first = None if low is None else (float(low), self.code_of(float(low), least, self.high + 1))
        last = None if high is None else (float(high), self.code_of(float(high), self.low - 1, most))
        return replace(self, limits=(first, last))

    @property
    def lost_limits(self) -> list[tuple[float, float]]:
        """The limits of valid values for which the type has no code, each with what its code stands for."""
        pairs = [(value, self.value_of(code)) for value, code in filter(None, self.limits)]
        return [] if self.is_divided else [pair for pair in pairs if abs(pair[0] - pair[1]) > self.scale]


def used_bits(*codes: int) -> int:
    """Return the number of bits for all codes from the smallest to the largest of some."""
    return (max(codes) - min(codes)).bit_length()


def codes_in_steps(
    unpacked: np.dtype[Any],
    step: float,
    low: float,
    high: float,
    marks: Sequence[float],
    bound: float,
    *,
    grows: bool = False,
) -> Codes | None:
    """Return the codes of values between two; None if unpacking would not be exact, or 32 bits do not suffice.

    If more values will follow, `grows`, codes are left for them above and below, where there are some.
    """
    if not (math.isfinite(low / step) and math.isfinite(high / step)):
        return None
    first, last = round(low / step), round(high / step)
    info = np.finfo(unpacked)
    most = min(float(info.max) / step, exact_steps(unpacked, step))
    if step < float(info.tiny) or max(abs(first), abs(last)) > most:
        return None
    types = [dtype for dtype in _TYPES if last - first + 1 + len(marks) <= 1 << 8 * dtype.itemsize]
    places = _near_places(types, step, (first, last), len(marks))
    if grows:
        places = chain(_far_places(types, step, (first, last), len(marks), int(most)), places)
    for dtype, begin, low_code in places:
        high_code = low_code + last - first
        shift = first - low_code  # the offset, in steps
        if max(abs(begin), abs(high_code), abs(shift)) <= most:
            missing = tuple((mark, begin + number) for number, mark in enumerate(marks))
            return Codes(dtype, unpacked, step, shift * step, low_code, high_code, bound, missing)
    return None


def _near_places(
    types: Sequence[np.dtype[Any]], step: float, ends: tuple[int, int], mark_count: int
) -> Iterator[tuple[np.dtype[Any], int, int]]:
    """Yield types with the first code for missing values and that of the smallest value, which follows; the best first.

    CDO and NCO compare values, once they are unpacked, with the code of missing ones: no value is that number, unless
    there is no room. szip takes codes as unsigned: they are negative only if they would not fit otherwise.
    """
    first, last = ends
    rest = []
    for dtype in types:
        info = np.iinfo(dtype)
        least, most = int(info.min), int(info.max) - (mark_count + last - first)
        near = [(0 if most >= 0 else least) + distance for distance in _NEAR]
        beyond = (math.floor(last * step) + 1, -mark_count, math.floor(first * step) - mark_count)
        for begin in (*near, *beyond, least):
            if least <= begin <= most:
                place = dtype, begin, begin + mark_count
                if not _is_value(range(begin, begin + mark_count), step, ends):
                    yield place
                rest.append(place)
    yield from rest


def _far_places(
    types: Sequence[np.dtype[Any]], step: float, ends: tuple[int, int], mark_count: int, most: int
) -> Iterator[tuple[np.dtype[Any], int, int]]:
    """Yield types as `_near_places` does, but with missing values at the lower end of the codes, far from the others.

    The values take at most half of the codes, from 0 on, or in the middle if there is less room above than they take.
    8 bits are too few for values that nobody knows yet.
    """
    count = ends[1] - ends[0] + 1
    for dtype in types:
        info = np.iinfo(dtype)
        least, highest = max(int(info.min), -most), min(int(info.max), most)
        free = highest - least + 1 - mark_count - count
        if dtype.itemsize == 1 or free < count or _is_value(range(least, least + mark_count), step, ends):
            continue
        yield dtype, least, 0 if 2 * count <= highest else least + mark_count + free // 2


def _is_value(codes: Iterable[int], step: float, ends: tuple[int, int]) -> bool:
    """Return whether one of some codes is the number of a value, in steps between two."""
    return any((code / step).is_integer() and ends[0] <= code / step <= ends[1] for code in codes)


def codes_of_more(
    dtype: np.dtype[Any],
    unpacked: np.dtype[Any],
    line: tuple[float, float],
    bound: float,
    reserved: Sequence[int],
    limits: tuple[int | None, int | None],
) -> Codes | None:
    """Return the codes of more values for an array that is packed already; None unless it is packed as here.

    Parameters
    ----------
    dtype, unpacked
        Types of the codes and of the values.
    line
        The attributes ``scale_factor`` and ``add_offset``.
    bound
        Largest error of a value.
    reserved
        Codes of missing values, the one for new ones first.
    limits
        Codes of the smallest and largest valid value; None without such a limit.
    """
    scale, offset = line
    if dtype.newbyteorder("=") not in _TYPES or not 0 < scale <= 2 * bound or not (offset / scale).is_integer():
        return None
    most = exact_steps(unpacked, scale)
    shift = round(offset / scale)
    info = np.iinfo(dtype)
    low = max(max(reserved, default=int(info.min) - 1) + 1, -most, -most - shift)
    high = min(int(info.max) - 1, most, most - shift)
    # No value may be the number that is the code of missing ones: see `_near_places`.
    numbers = [round(code / scale) - shift for code in reserved if (code / scale).is_integer()]
    high = min([high] + [code - 1 for code in numbers if low <= code <= high])
    if low > high or shift * scale != offset:
        return None
    codes = Codes(dtype.newbyteorder("="), unpacked, scale, offset, low, high, bound)
    first, last = (None if code is None else (codes.value_of(code), code) for code in limits)
    return replace(codes, missing=tuple((math.nan, code) for code in reserved[:1]), limits=(first, last))


def _check_nan(values: NDArray[Any]) -> None:
    """Raise DataError if some values are NaN with other bits than readers of Zarr's codecs get."""
    bits = f"u{values.dtype.itemsize}"
    own = int(np.array(np.nan, values.dtype).view(bits))
    found = values[np.isnan(values)].view(bits)
    if (changed := found != own).any():
        raise DataError(
            f"expected NaN with the bits {own:#x}, which Zarr's codec cast_value writes and reads, found"
            f" {int(found[changed][0]):#x}: pack such values with packed_as='attributes' (--packed-as attributes),"
            " where any NaN is missing"
        )


def _step(bound: float, bits: int) -> float:
    """Return the largest number up to twice the bound that has only this many bits."""
    fraction, exponent = math.frexp(2 * bound)
    return math.ldexp(math.floor(math.ldexp(fraction, bits)), exponent - bits)


@dataclass(frozen=True, slots=True)
class Pack(Rounding):
    """Store integers of 8, 16 or 32 bits, in equal steps, in place of floats.

    The step is the largest number up to twice the bound that has few bits, so that unpacking is exact in the type of
    the values: the bound holds in float32 and in float64, whatever the order of operations. Missing values get a code
    next to the others, or where more values will follow, at the end of the type.

    Examples
    --------
    >>> packing = Pack(bound=0.1)
    >>> packing.round(np.array([280.3, 281.06, np.nan], "f4"))
    array([280.30078, 281.09766,       nan], dtype=float32)
    """

    name = "pack"
    about = "store integers with scale_factor and add_offset"
    attribute = "quantization_bound"
    in_place = False
    most = {4: 2.0**100, 8: 2.0**900}  # noqa: RUF012 - a class attribute, declared above

    # Largest absolute error of a value in units of the variable, above 0
    bound: float = real("largest absolute error, in units of the variable", math.ulp(0.0), 2.0**900, bounds="above 0")
    # Smallest and largest value that have codes; None for those of the values
    range: tuple[float, float] | None = span("smallest and largest value with a code, such as 200:330")
    # What values outside the range do
    outside: str = choice("values outside the range make it wider, or are an error", ("widen", "error"), "widen")

    @property
    def number(self) -> float:
        """The bound."""
        return self.bound

    @property
    def recorded(self) -> dict[str, NDArray[Any]]:
        """The bound, in an attribute that the CF conventions do not define."""
        return {self.attribute: np.array([self.bound])}

    @property
    def absolute_bound(self) -> float:
        """The bound."""
        return self.bound

    def stored_type(self, dtype: np.dtype[Any]) -> np.dtype[Any]:
        """Return the type of the codes of most values."""
        return np.dtype("i2")

    def _check_number(self, dtype: np.dtype[Any]) -> None:
        if self.bound > (most := self.most[dtype.itemsize]):
            raise ParameterError(f"expected a bound of at most {most:g} for {dtype}, got {self}").at(filter=self)

    def rounded(
        self,
        values: NDArray[Any],
        missing_values: Sequence[Any],
        valid_range: tuple[Any, Any],
        origin: Sequence[int] | None,
        shape: Sequence[int],
    ) -> Rounded:
        """Return the values as readers unpack them; see `round`."""
        self.check(values.dtype)
        extent = PackingRange.of(values, np.array(missing_values, values.dtype).reshape(-1))
        codes = self.codes(values.dtype.newbyteorder("="), extent, limits=valid_range)
        return Rounded(codes.unpack(codes.pack(values)[0]).astype(values.dtype, copy=False), 0)

    def codes(
        self,
        unpacked: np.dtype[Any],
        extent: PackingRange,
        *,
        spare: bool = False,
        bound: float = math.inf,
        is_divided: bool = False,
        grows: bool = False,
        limits: tuple[Any, Any] = (None, None),
    ) -> Codes:
        """Return the codes of values, and of the limits of valid values as far as they take no larger integers.

        Parameters
        ----------
        unpacked
            The type that readers unpack to: float32 or float64, in native byte order.
        extent
            The range of all values.
        spare
            Whether there is a code for missing values even if there are none.
        bound
            Another bound to keep, if it is smaller.
        is_divided
            Whether readers divide.
        grows
            Whether more values will follow, which nobody knows yet: without a range, they get codes above and below
            those of the others, and the code for missing values is at the end of the type.
        limits
            Smallest and largest valid value; None without such a limit. Later values up to them are valid, too.

        Raises
        ------
        ParameterError
            If values are outside the range, more than two different ones are missing, or integers cannot keep the
            bound.
        """
        choose = partial(self._codes, unpacked, spare=spare, bound=bound, is_divided=is_divided, grows=grows)
        ends = self._ends(extent)
        codes = choose(extent, ends)
        low, high = (None if limit is None else float(limit) for limit in limits)
        for wider in () if is_divided else ((low, high), (low, None), (None, high)):
            all_ends = [*ends, *(limit for limit in wider if limit is not None)]
            with suppress(ParameterError):
                with_limits = choose(extent, (min(all_ends), max(all_ends)))
                if (with_limits.dtype, with_limits.scale) == (codes.dtype, codes.scale):
                    return with_limits.within(low, high)
        return codes.within(low, high)

    def _codes(
        self,
        unpacked: np.dtype[Any],
        extent: PackingRange,
        ends: tuple[float, float],
        *,
        spare: bool,
        bound: float,
        is_divided: bool,
        grows: bool,
    ) -> Codes:
        """Return the codes of values between two ends; see `codes`."""
        low, high = ends
        # Files of one range have the same attributes, whether values are missing or not.
        marks = extent.missing or ((math.nan,) if spare or grows or self.range is not None else ())
        if len(marks) > _MOST_MARKS and not extent.alike:
            raise ParameterError(
                f"expected at most {_MOST_MARKS} different missing values, which _FillValue and missing_value tell"
                f" apart, found {', '.join(f'{mark:g}' for mark in marks)}: use absolute({self.bound:g}), or zfp"
            ).at(filter=self)
        with_codes = marks[:1] if extent.alike else marks
        kept = min(bound, self.bound)
        grows = grows and self.range is None
        # Readers may unpack float64 in float32: a step that is a little shorter keeps that exact, too.
        choices = [(_NARROW, bits) for bits in range(_STEP_BITS, _LEAST_NARROW_BITS - 1, -1)]
        choices += [(unpacked, bits) for bits in range(_STEP_BITS, 0, -1)]
        for dtype, bits in choices:
            step = invertible_step(2 * kept, bits, unpacked) if is_divided else _step(kept, bits)
            codes = codes_in_steps(dtype, step, low, high, with_codes, kept, grows=grows)
            if codes is not None:
                missing = tuple((mark, codes.missing[0][1]) for mark in marks) if extent.alike else codes.missing
                return replace(codes, missing=missing, unpacked=unpacked, asked=self, is_divided=is_divided)
        raise ParameterError(
            f"expected a bound that integers of 32 bits can keep and {unpacked} unpacks exactly, got {kept:g} for"
            f" values from {low:g} to {high:g}: allow a larger one, or round the floats, absolute({kept:g})"
        ).at(filter=self)

    def _ends(self, extent: PackingRange) -> tuple[float, float]:
        """Return the smallest and the largest value that get a code."""
        if self.range is None:
            return (extent.low, extent.high) if extent.low <= extent.high else (0.0, 0.0)  # without a valid value
        low, high = self.range
        if self.outside == "error" and extent.low <= extent.high and not low <= extent.low <= extent.high <= high:
            beyond = extent.low if extent.low < low else extent.high
            raise ParameterError(
                f"expected values from {low:g} to {high:g}, found {beyond!r}: give a wider range, or outside=widen"
            ).at(filter=self)
        return min(low, extent.low), max(high, extent.high)

    def __str__(self) -> str:
        ends = f",range={self.range[0]!r}:{self.range[1]!r}" if self.range is not None else ""
        outside = "" if self.outside == "widen" else f",outside={self.outside}"
        return f"pack(bound={self.bound}{ends}{outside})"


def attributes_of(codes: Codes, before: Mapping[str, Any], marks: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    """Return the attributes of packed values that differ from those of the values before; None for one to remove.

    Parameters
    ----------
    codes
        The codes.
    before
        The attributes of the values.
    marks
        The values of ``_FillValue`` and ``missing_value``, by name, where there are such attributes.

    Raises
    ------
    ParameterError
        If the values are flags, which stand for words.
    """
    if flags := [name for name in ("flag_values", "flag_masks") if name in before]:
        raise ParameterError(
            f"packing would change flags (attribute {flags[0]}): use lossless filters, such as shuffle|deflate(4)"
        )
    number = codes.dtype.type
    attributes: dict[str, Any] = {
        "scale_factor": codes.unpacked.type(codes.scale),
        "add_offset": codes.unpacked.type(codes.offset),
        Pack.attribute: np.float64(codes.bound),
    }
    own = [*dict.fromkeys(code for _, code in codes.missing)]
    if own:
        attributes["_FillValue"] = number(codes.missing[_position(codes, marks.get("_FillValue", ()))][1])
    if len(own) > 1 or (own and "missing_value" in before):
        fill = attributes["_FillValue"]
        attributes["missing_value"] = next((number(code) for code in own if code != fill), fill)
    low, high = (None if limit is None else number(limit[1]) for limit in codes.limits)
    info = np.iinfo(codes.dtype)
    # An infinite end of a range is that of the type.
    both = [info.min if low is None else low, info.max if high is None else high]
    whole = None if low is high is None else np.array(both, codes.dtype)
    limits = {"valid_range": whole, "valid_min": low, "valid_max": high}
    attributes |= {name: limit for name, limit in limits.items() if name in before}
    if (ends := _actual_range(codes, before.get("actual_range"))) is not None:
        attributes["actual_range"] = ends
    return attributes


def _actual_range(codes: Codes, before: Any) -> NDArray[Any] | None:
    """Return the ends of the values as readers unpack them, in units of the variable; None if these are not known."""
    ends = np.asarray(before)
    if ends.dtype.kind not in "iuf" or ends.size != 2:
        return None
    with suppress(DataError, ParameterError):
        return codes.unpack(codes.pack(ends.astype(codes.unpacked))[0])
    return None


def _position(codes: Codes, marks: Sequence[float]) -> int:
    """Return which of the codes of missing values belongs to one of some marks; the first one if none does."""
    for position, (mark, _) in enumerate(codes.missing):
        if _is_among(mark, marks):
            return position
    return 0


def _is_among(mark: float, marks: Iterable[float]) -> bool:
    """Return whether a missing value is one of some; NaN is, too."""
    return any(mark == other or (mark != mark and other != other) for other in marks)
