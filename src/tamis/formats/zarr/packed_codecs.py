"""Floats that are stored as integers, by the registered codecs of Zarr 3, and the attributes of CF that say the same.

Each value is ``code / scale + offset`` by the codec ``scale_offset``, but for missing ones, whose codes ``cast_value``
lists. Where ``code * scale_factor + add_offset`` has the same bits for all codes, an array may have either form; see
`PackedCodecs.is_exact`. So one array of integers becomes the other form, and back, without any change of its chunks.

A finite missing value, such as 1e36, is no number of steps, and may be too large to be scaled. So a first
``cast_value``, from the type to itself, exchanges it with NaN or an infinity, which ``scale_offset`` does not change.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from zarr.dtype import parse_dtype

from tamis import meaning
from tamis.errors import ParameterError, TamisError
from tamis.formats.zarr.array_metadata import json_fill
from tamis.formats.zarr.value_codecs import NEAREST_EVEN, CastValueCodec, ScaleOffsetCodec, cast_values, unscaled
from tamis.rounding import PACKING_ATTRIBUTES
from tamis.rounding.division import divided, exact_steps, is_invertible, scale_of, step_of

Json = dict[str, Any]
Attributes = Mapping[str, Any]

NAMES = ("scale_offset", "cast_value")
"""Names of the codecs."""

_FLOATS = {name: np.dtype(name) for name in ("float32", "float64")}
_INTEGERS = {name: np.dtype(name) for name in ("int8", "int16", "int32", "uint8", "uint16", "uint32")}
_CARRIERS = (math.nan, math.inf, -math.inf)
"""What stands for missing values in ``scale_offset``, which gives them back as they are."""

_LIMITS = ("valid_min", "valid_max", "valid_range")
_FLAGS = ("flag_values", "flag_masks")


class Parts(NamedTuple):
    """The codecs of an array, or of the chunks in its shards."""

    packing: list[Json]  # Those up to the cast to integers
    others: list[Any]  # Those of the integers
    sharding: Json | None  # The codec that has all of them inside; None without shards

    @classmethod
    def of(cls, codecs: Any) -> Parts | None:
        """Return the parts of codecs of which a cast to integers follows a scale; None for others."""
        if not isinstance(codecs, list) or not codecs:
            return None
        first = codecs[0]
        inner = first.get("configuration") if isinstance(first, dict) else None
        if len(codecs) == 1 and isinstance(inner, dict) and first.get("name") == "sharding_indexed":
            inside = cls.of(inner.get("codecs"))
            return None if inside is None else inside._replace(sharding=first)
        for count in (2, 3):
            packing = [codec if isinstance(codec, dict) else {"name": codec} for codec in codecs[:count]]
            if tuple(codec.get("name") for codec in packing) == (*NAMES[1:] * (count - 2), *NAMES):
                return cls(packing, codecs[count:], None)
        return None

    def within(self, codecs: list[Any]) -> list[Any]:
        """Return codecs of chunks where these are: in the codec of shards, if there is one."""
        if self.sharding is None:
            return codecs
        return [{**self.sharding, "configuration": {**self.sharding["configuration"], "codecs": codecs}}]


@dataclass(frozen=True, slots=True)
class PackedCodecs:
    """The codecs of a packed array."""

    stored: np.dtype[Any]  # Type of the codes
    scale: np.floating[Any]  # In the type of the values, as is the offset
    offset: np.floating[Any]
    marks: tuple[tuple[int, np.floating[Any]], ...] = ()  # Codes with a value of their own: of missing values

    @property
    def values(self) -> np.dtype[Any]:
        """Type of the values, in native byte order."""
        return np.dtype(self.scale.dtype)

    @classmethod
    def of(cls, data_type: object, packing: Sequence[Json]) -> Self | None:
        """Return codecs by their metadata; None if some are malformed, or are none between such types."""
        if data_type not in _FLOATS:
            return None
        values = _FLOATS[str(data_type)]
        try:
            *before, cast = (CastValueCodec.from_dict(codec) for codec in packing if codec["name"] == NAMES[1])
            line = next(ScaleOffsetCodec.from_dict(codec) for codec in packing if codec["name"] == NAMES[0])
            if cast.data_type not in _INTEGERS or any(codec.data_type != data_type for codec in before):
                return None
            if any(codec.rounding != NEAREST_EVEN for codec in (*before, cast)):
                return None
            stored = _INTEGERS[cast.data_type]
            offset, scale = line.numbers(values)
            marks = []
            for code, carrier in cast.pairs("decode", stored, values):
                value = unscaled(np.asarray([carrier], values), offset, scale)
                for codec in before:
                    value = cast_values(value, values, entries=codec.pairs("decode", values, values))
                marks.append((int(code), value[0]))
        except (TamisError, ValueError, TypeError, OverflowError):  # zarr-python raises many kinds for scalars
            return None
        first = dict(reversed(marks))  # of equal codes, the first one counts
        return cls(stored, scale, offset, tuple(first.items())[::-1])

    def decoded(self, codes: NDArray[Any]) -> NDArray[Any]:
        """Return the values of codes, as the codecs have them."""
        values = divided(codes, self.scale, self.offset)
        for code, value in self.marks:
            values[codes == code] = value
        return values

    def encoded(self, values: NDArray[Any]) -> NDArray[Any] | None:
        """Return the codes of which decoding gives back these values, bit by bit; None if one has no code."""
        codes = np.empty(values.shape, self.stored)
        rest = np.ones(values.shape, np.bool_)
        for code, value in self.marks:
            here = rest & ((values != values) if value != value else (values == value))
            codes[here] = code
            rest &= ~here
        limits = np.iinfo(self.stored)
        with np.errstate(all="ignore"):
            steps = np.rint((values[rest].astype(np.float64) - float(self.offset)) * float(self.scale))
        if not ((steps >= limits.min) & (steps <= limits.max)).all():
            return None
        codes[rest] = steps.astype(self.stored)
        return codes if _same_bits(self.decoded(codes), values) else None

    @property
    def factors(self) -> tuple[np.floating[Any], np.floating[Any]]:
        """The attributes ``scale_factor`` and ``add_offset`` of the same values, if these are exact."""
        return step_of(self.scale), self.offset

    def is_exact(self, ends: tuple[int, int] | None = None) -> bool:
        """Return whether `factors` give all values, but the missing ones, with the same bits.

        Parameters
        ----------
        ends
            The smallest and the largest code that the array has; None for those that its type has.
        """
        limits = np.iinfo(self.stored)
        first, last = (int(limits.min), int(limits.max)) if ends is None else ends
        if last - first < 1 << 16:
            codes = np.arange(first, last + 1, dtype=np.int64).astype(self.stored)
            factor, offset = self.factors
            with np.errstate(all="ignore"):
                products = np.asarray(codes.astype(self.values) * factor + offset, self.values)
            own = divided(codes, self.scale, self.offset)
            is_marked = np.isin(codes, [code for code, _ in self.marks])
            return bool(np.isfinite(own).all() and _same_bits(own[~is_marked], products[~is_marked]))
        return self._is_exact_by_law(first, last)

    @property
    def may_be_exact(self) -> bool:
        """Whether `is_exact` holds for a byte of codes, so that it is worth while to look which ones an array has."""
        return self._is_exact_by_law(0, (1 << 8) - 1)

    @property
    def inexact_text(self) -> str:
        """Why there are no attributes that say the same, or no codecs."""
        return (
            f"{self.values} values by scale_offset, code / {float(self.scale):.9g} + {float(self.offset):.9g}, have"
            " other last digits than by scale_factor and add_offset"
        )

    def _is_exact_by_law(self, first: int, last: int) -> bool:
        """Return whether all multiples of the step, and their sums with the offset, are numbers of the type."""
        step, offset = (float(number) for number in self.factors)
        if not step or not math.isfinite(offset / step) or not is_invertible(abs(step), self.values):
            return False
        if not (offset / step).is_integer():
            return False
        shift = round(offset / step)
        most = max(map(abs, (first, last, shift, first + shift, last + shift)))
        return most <= exact_steps(self.values, abs(step))

    def metadata(self, *, in_shards: bool = False) -> list[Json]:
        """Return the metadata of the codecs, in the order of encoding.

        In shards, zarr-python 3.4 opens an array only if 0 has a code, whatever its fill value is. A 0 that has none
        gets that of missing values.

        Raises
        ------
        ParameterError
            If it needs such a code, and there is none.
        """
        finite = [value for _, value in self.marks if value == value]
        has_nan = len(finite) < len(self.marks)
        carriers = dict(zip(map(float, finite), _CARRIERS[has_nan:], strict=False))
        name = self.values.name
        pairs = [(code, carriers.get(float(value), math.nan)) for code, value in self.marks]
        codecs: list[Json] = []
        if finite:
            exchanged = [(float(value), carriers[float(value)]) for value in finite]
            codecs.append(_cast(name, exchanged, self.values, self.values))
        codecs.append({"name": NAMES[0], "configuration": {"offset": float(self.offset), "scale": self._json_scale}})
        last = _cast(self.stored.name, [(carrier, code) for code, carrier in pairs], self.values, self.stored)
        if in_shards and not self._casts_zero:
            if not self.marks:
                raise ParameterError("zarr-python opens its shards only if there is a code for 0 or for missing values")
            last["configuration"]["scalar_map"]["encode"].append([float(self._scaled_zero), self.marks[0][0]])
        codecs.append(last)
        return codecs

    @property
    def _scaled_zero(self) -> Any:
        """What ``scale_offset`` makes of 0."""
        with np.errstate(all="ignore"):
            return (self.values.type(0) - self.offset) * self.scale

    @property
    def _casts_zero(self) -> bool:
        """Whether ``cast_value`` has an integer near `_scaled_zero`."""
        limits = np.iinfo(self.stored)
        return bool(limits.min <= np.rint(float(self._scaled_zero)) <= limits.max)

    @property
    def _json_scale(self) -> float:
        """The scale, with the digits of float64 where its own type has the same number by them.

        zarrita.js computes in float64, and rounds at the end.
        """
        wide = scale_of(float(step_of(self.scale)))
        return wide if self.values.type(wide) == self.scale else float(self.scale)

    @classmethod
    def of_attributes(cls, attributes: Attributes, dtype: np.dtype[Any], missing: Mapping[int, float]) -> Self:
        """Return the codecs of integers that attributes of CF pack.

        Parameters
        ----------
        attributes, dtype
            The attributes, and the type of the integers.
        missing
            Values of codes that mark missing ones; NaN for those that are not among them.

        Raises
        ------
        ParameterError
            If the codecs cannot say the same.
        """
        values, factor, offset = _factors(attributes)
        if meaning.is_unsigned(attributes) or dtype.newbyteorder("=") not in _INTEGERS.values():
            raise ParameterError(f"expected packed integers of 8, 16 or 32 bits without _Unsigned, got {dtype}")
        if flags := [name for name in _FLAGS if name in attributes]:
            raise ParameterError(f"its attribute {flags[0]} gives words to integers, which codecs replace by floats")
        with np.errstate(over="ignore"):
            scale = values.type(scale_of(factor))
        marks = [(code, values.type(missing.get(code, math.nan))) for code in _codes_of_missing(attributes, dtype)]
        codecs = cls(dtype.newbyteorder("="), scale, values.type(offset), tuple(marks))
        if tuple(map(float, codecs.factors)) != (factor, offset):  # else they would come back as others
            raise ParameterError(codecs.inexact_text)
        return codecs

    def of_floats(self, attributes: Attributes) -> dict[str, Any]:
        """Return the attributes of the values, from those of the codes."""
        result = {name: value for name, value in attributes.items() if name not in PACKING_ATTRIBUTES}
        own = dict(self.marks)
        for name in meaning.FILL_ATTRIBUTES:
            codes = [int(code) for code in _whole(attributes, name)]
            marks = [own[code] for code in codes if code in own]
            if marks and name == "missing_value" and all(mark != mark for mark in marks):
                del result[name]  # every reader takes NaN for missing, and JSON has no such number
            elif marks:
                result[name] = marks[0] if np.ndim(attributes[name]) == 0 else np.array(marks, self.values)
        for name in _LIMITS:
            limits = np.asarray(attributes.get(name, ""))
            if limits.dtype.kind in "iu":
                result[name] = divided(limits, self.scale, self.offset)[()]
        return result

    def of_codes(self, attributes: Attributes) -> dict[str, Any]:
        """Return the attributes of the codes, from those of the values.

        Raises
        ------
        ParameterError
            If CF has no attributes that say the same.
        """
        if others := [name for name in (*PACKING_ATTRIBUTES, *_FLAGS) if name in attributes]:
            raise ParameterError(f"its attribute {others[0]} is about floats, which integers would not have")
        factor, offset = self.factors
        result = {name: value for name, value in attributes.items() if name not in meaning.FILL_ATTRIBUTES}
        result |= {"scale_factor": factor, "add_offset": offset, **self._codes_of_marks(attributes)}
        for name, is_low in (("valid_min", [True]), ("valid_max", [False]), ("valid_range", [True, False])):
            limits = meaning.numbers(attributes, name)
            if limits.size == len(is_low) and not np.isnan(limits.astype(np.float64)).any():
                codes = [self._limit(float(limit), is_low=low) for limit, low in zip(limits, is_low, strict=True)]
                result[name] = np.array(codes, self.stored).reshape(np.shape(attributes[name]))[()]
        return result

    def _codes_of_marks(self, attributes: Attributes) -> dict[str, Any]:
        """Return ``_FillValue`` and ``missing_value`` of the codes, by which readers know each code in `marks`.

        A mark without a code, which no value can have, is left out.
        """
        result: dict[str, Any] = {}
        rest = [*self.marks]
        for name in meaning.FILL_ATTRIBUTES:
            codes = [self._code_of(value, rest) for value in meaning.numbers(attributes, name)]
            known = [code for code in codes if code is not None]
            if known:
                is_single = np.ndim(attributes[name]) == 0
                result[name] = self.stored.type(known[0]) if is_single else np.array(known, self.stored)
                rest = [(code, value) for code, value in rest if code not in known]
        # NaN needs no attribute, but its code does: one that is free, or that only repeats the other.
        free = [name for name in meaning.FILL_ATTRIBUTES if name not in result or _repeats_fill(name, result)]
        while rest and free and rest[0][1] != rest[0][1]:
            result[free.pop(0)] = self.stored.type(rest.pop(0)[0])
        if rest:
            raise ParameterError(f"code {rest[0][0]} has a value of its own, {rest[0][1]}, that no attribute names")
        return result

    def _limit(self, limit: float, *, is_low: bool) -> int:
        """Return the smallest code whose value is not below a limit, or the largest one that is not above it."""
        step, offset = (float(number) for number in self.factors)
        info = np.iinfo(self.stored)
        upwards = is_low == (step > 0)
        place = min(max((limit - offset) / step, info.min), info.max)
        return math.ceil(place) if upwards else math.floor(place)

    def _code_of(self, value: Any, first: Sequence[tuple[int, Any]]) -> int | None:
        """Return the code that stands for a missing value, one of some rather than others; None without one."""
        for code, mark in (*first, *self.marks):
            if mark == value or (mark != mark and value != value):
                return code
        return None


class PackedMetadata(NamedTuple):
    """What the metadata of a packed array say."""

    codecs: PackedCodecs
    # The metadata of its integers, as of an array of their own; None if the fill value has no code
    integers: Json | None

    @classmethod
    def of(cls, content: Json) -> PackedMetadata | None:
        """Return what metadata of Zarr 3 say; None if no codecs pack floats."""
        parts, data_type = Parts.of(content.get("codecs")), content.get("data_type")
        codecs = None if parts is None else PackedCodecs.of(data_type, parts.packing)
        if parts is None or codecs is None:
            return None
        fill = parse_dtype(codecs.values.name, zarr_format=3).from_json_scalar(content["fill_value"], zarr_format=3)
        codes = codecs.encoded(np.asarray([fill], codecs.values))
        if codes is None:
            return cls(codecs, None)
        own = {"data_type": codecs.stored.name, "fill_value": int(codes[0]), "codecs": parts.within(parts.others)}
        return cls(codecs, {**content, **own})


def _repeats_fill(name: str, codes: Attributes) -> bool:
    """Return whether an attribute is a ``missing_value`` that only says what ``_FillValue`` says."""
    fill, other = (codes.get(known) for known in meaning.FILL_ATTRIBUTES)
    return name == "missing_value" and fill is not None and other is not None and np.array_equal(fill, other)


def is_packed(attributes: Attributes, dtype: np.dtype[Any]) -> bool:
    """Return whether integers are packed by attributes, even in steps of 1 from 0 on: readers get floats."""
    return dtype.kind in "iu" and any(meaning.numbers(attributes, name).size == 1 for name in PACKING_ATTRIBUTES)


def _factors(attributes: Attributes) -> tuple[np.dtype[Any], float, float]:
    """Return the type that readers unpack to, ``scale_factor`` and ``add_offset``."""
    numbers = {name: meaning.numbers(attributes, name) for name in PACKING_ATTRIBUTES}
    known = {name: values for name, values in numbers.items() if values.size == 1}
    factor, offset = (
        float(known[name][0]) if name in known else usual for name, usual in zip(numbers, (1.0, 0.0), strict=True)
    )
    usable = factor and all(map(math.isfinite, (factor, offset))) and math.isfinite(scale_of(factor))
    if not usable:
        raise ParameterError(f"expected a finite scale_factor other than 0, got {factor!r} and add_offset {offset!r}")
    is_narrow = all(values.dtype.newbyteorder("=") == _FLOATS["float32"] for values in known.values())
    return _FLOATS["float32" if is_narrow else "float64"], factor, offset


def _whole(attributes: Attributes, name: str) -> NDArray[Any]:
    """Return the integers of an attribute."""
    values = meaning.numbers(attributes, name)
    return values if values.dtype.kind in "iu" else values[:0]


def _codes_of_missing(attributes: Attributes, dtype: np.dtype[Any]) -> list[int]:
    """Return the codes that attributes mark as missing, the first one first."""
    limits = np.iinfo(dtype)
    named = [int(code) for name in meaning.FILL_ATTRIBUTES for code in _whole(attributes, name)]
    return [*dict.fromkeys(code for code in named if limits.min <= code <= limits.max)]


def _cast(name: str, pairs: Sequence[tuple[Any, Any]], before: np.dtype[Any], after: np.dtype[Any]) -> Json:
    """Return the metadata of a cast, with pairs of values before and after it."""
    configuration: Json = {"data_type": name}
    if pairs:
        both = [[json_fill(one, before), json_fill(other, after)] for one, other in pairs]
        first = {str(one): [one, other] for one, other in reversed(both)}
        encode = [*first.values()][::-1]
        configuration["scalar_map"] = {"encode": encode, "decode": [[other, one] for one, other in both]}
    return {"name": NAMES[1], "configuration": configuration}


def _same_bits(one: NDArray[Any], other: NDArray[Any]) -> bool:
    return one.dtype == other.dtype and one.tobytes() == other.tobytes()
