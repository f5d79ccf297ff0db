"""The registered codecs ``scale_offset`` and ``cast_value`` of Zarr 3, for reading.

zarr-python has them since version 3.2, and needs the package cast-value-rs for the second one. tamis reads with its
own, so that any version of zarr-python reads such arrays, without that package.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from zarr.abc.codec import ArrayArrayCodec
from zarr.dtype import parse_dtype

from tamis.errors import DataError, ParameterError, located

if TYPE_CHECKING:
    from zarr.core.array_spec import ArraySpec
    from zarr.core.buffer import NDBuffer

NEAREST_EVEN = "nearest-even"
_ROUNDINGS = (NEAREST_EVEN, "towards-zero", "towards-positive", "towards-negative", "nearest-away")
_NUMBERS = frozenset(f"{kind}{nbits}" for kind in ("int", "uint") for nbits in (8, 16, 32, 64)) | frozenset(
    ("float16", "float32", "float64")
)
"""Data types of both codecs that NumPy has."""


@dataclass(frozen=True)
class ScaleOffsetCodec(ArrayArrayCodec):
    """Values that are stored as (value - offset) * scale, in their own type.

    Parameters
    ----------
    offset, scale
        The numbers as JSON of the type of the values.

    References
    ----------
    https://github.com/zarr-developers/zarr-extensions/tree/main/codecs/scale_offset
    """

    is_fixed_size = True

    offset: Any = 0
    scale: Any = 1

    @classmethod
    def from_dict(cls, data: Any) -> Self:
        """Read the codec's metadata; raises ParameterError if they are malformed."""
        with located("Zarr codec scale_offset"):
            codec = cls(**_configuration(data, ("offset", "scale")))
            if codec.scale == 0:  # texts are numbers only in the type of the values
                raise ParameterError("expected a scale other than 0, got 0")
        return codec

    def to_dict(self) -> dict[str, Any]:
        """Return the codec's metadata."""
        pairs = (("offset", self.offset, 0), ("scale", self.scale, 1))
        return {"name": "scale_offset", "configuration": {name: own for name, own, usual in pairs if own != usual}}

    def resolve_metadata(self, chunk_spec: ArraySpec) -> ArraySpec:
        """Return the specification of stored chunks, whose fill value is scaled, too."""
        with located("Zarr codec scale_offset"):
            offset, scale = self.numbers(chunk_spec.dtype.to_native_dtype())
            fill = scaled(np.asarray(chunk_spec.fill_value, offset.dtype), offset, scale)
        return replace(chunk_spec, fill_value=fill[()])

    def compute_encoded_size(self, input_byte_length: int, _chunk_spec: ArraySpec) -> int:
        """Return the same number of bytes."""
        return input_byte_length

    async def _decode_single(self, chunk_data: NDBuffer, chunk_spec: ArraySpec) -> NDBuffer:
        return self._decode_sync(chunk_data, chunk_spec)

    def _decode_sync(self, chunk_data: NDBuffer, chunk_spec: ArraySpec) -> NDBuffer:
        with located("Zarr codec scale_offset"):
            values = unscaled(_native(chunk_data.as_numpy_array()), *self.numbers(chunk_spec.dtype.to_native_dtype()))
        return chunk_spec.prototype.nd_buffer.from_numpy_array(values)

    def numbers(self, dtype: np.dtype[Any]) -> tuple[Any, Any]:
        """Return offset and scale in the type of the values."""
        offset, scale = (_scalar(number, dtype) for number in (self.offset, self.scale))
        if scale == 0:
            raise ParameterError(f"expected a scale other than 0, got {self.scale!r}")
        return offset, scale


def scaled(values: NDArray[Any], offset: np.generic, scale: np.generic) -> NDArray[Any]:
    """Return (value - offset) * scale; raises DataError for integers that their type cannot hold."""
    if values.dtype.kind == "f":
        with np.errstate(all="ignore"):
            return np.asarray((values - offset) * scale, values.dtype)
    results = [(int(value) - int(offset)) * int(scale) for value in values.reshape(-1)]
    _check_range(results, values.dtype)
    return np.array(results, values.dtype).reshape(values.shape)


def unscaled(values: NDArray[Any], offset: np.generic, scale: np.generic) -> NDArray[Any]:
    """Return value / scale + offset; raises DataError for integers that are no multiples, or become too large."""
    if values.dtype.kind == "f":
        with np.errstate(all="ignore"):
            return np.asarray(values / scale + offset, values.dtype)
    if not values.size:
        return values
    _check_range([int(values.min()) // int(scale), int(values.max()) // int(scale)], values.dtype)
    quotients, rests = np.divmod(values, scale)
    if rests.any():
        wrong = values[rests != 0].reshape(-1)[0]
        raise DataError(f"expected integers that {scale} divides, found {wrong}")
    _check_range([int(quotients.min()) + int(offset), int(quotients.max()) + int(offset)], values.dtype)
    return np.asarray(quotients + offset, values.dtype)


def _check_range(results: Sequence[int], dtype: np.dtype[Any]) -> None:
    limits = np.iinfo(dtype)
    wrong = [result for result in results if not limits.min <= result <= limits.max]
    if wrong:
        raise DataError(f"expected values that {dtype} can hold, from {limits.min} to {limits.max}, got {wrong[0]}")


@dataclass(frozen=True)
class CastValueCodec(ArrayArrayCodec):
    """Values that are stored in another type.

    Parameters
    ----------
    data_type
        Name of the type that is stored.
    rounding
        How a value is rounded that the other type lacks.
    out_of_range
        What becomes of values beyond the other type: ``"clamp"``, ``"wrap"``, or None for an error.
    scalar_map
        Values with their counterparts, by direction: ``"encode"``, ``"decode"``.

    References
    ----------
    https://github.com/zarr-developers/zarr-extensions/tree/main/codecs/cast_value
    """

    is_fixed_size = True

    data_type: str
    rounding: str = NEAREST_EVEN
    out_of_range: str | None = None
    scalar_map: Mapping[str, Any] | None = None
    # Whether a codec of shards has this one inside
    in_shards: bool = field(default=False, repr=False, compare=False)

    @classmethod
    def from_dict(cls, data: Any) -> Self:
        """Read the codec's metadata; raises ParameterError if they are malformed."""
        with located("Zarr codec cast_value"):
            configuration = _configuration(data, ("data_type", "rounding", "out_of_range", "scalar_map"))
            codec = cls(**{"data_type": None, **configuration})
            if codec.data_type not in _NUMBERS:
                known = ", ".join(sorted(_NUMBERS))
                raise ParameterError(f"expected data_type to be one of {known}, got {codec.data_type!r}")
            if codec.rounding not in _ROUNDINGS:
                raise ParameterError(f"expected rounding to be one of {', '.join(_ROUNDINGS)}, got {codec.rounding!r}")
            if codec.out_of_range not in (None, "clamp", "wrap"):
                raise ParameterError(f"expected out_of_range to be clamp or wrap, got {codec.out_of_range!r}")
        return codec

    def to_dict(self) -> dict[str, Any]:
        """Return the codec's metadata."""
        configuration = {
            "data_type": self.data_type,
            "rounding": None if self.rounding == NEAREST_EVEN else self.rounding,
            "out_of_range": self.out_of_range,
            "scalar_map": self.scalar_map,
        }
        known = {name: value for name, value in configuration.items() if value is not None}
        return {"name": "cast_value", "configuration": known}

    def can_cast(self, dtype: np.dtype[Any]) -> bool:
        """Return whether `cast_values` has the rounding in both directions between a type and the stored one."""
        pair = (dtype, np.dtype(self.data_type))
        return self.rounding == NEAREST_EVEN or all(map(_rounds_to_wholes, pair, pair[::-1]))

    def resolve_metadata(self, chunk_spec: ArraySpec) -> ArraySpec:
        """Return the specification of stored chunks, whose fill value is cast, too."""
        dtype = chunk_spec.dtype.to_native_dtype()
        stored = parse_dtype(self.data_type, zarr_format=3)
        with located("Zarr codec cast_value"):
            fill = np.asarray(chunk_spec.fill_value, dtype).reshape(1)
            entries = self.pairs("encode", dtype, stored.to_native_dtype())
            try:
                fill = cast_values(fill, stored.to_native_dtype(), self.rounding, self.out_of_range, entries)
            except DataError:
                if not self.in_shards:
                    raise
                # zarr-python 3.4 asks for 0, too, and chunks that a shard does not have are not made from codes.
                fill = np.zeros(1, stored.to_native_dtype())
        return replace(chunk_spec, dtype=stored, fill_value=fill[0])

    def compute_encoded_size(self, input_byte_length: int, chunk_spec: ArraySpec) -> int:
        """Return the bytes of as many values of the stored type."""
        own = chunk_spec.dtype.to_native_dtype().itemsize
        return input_byte_length // own * np.dtype(self.data_type).itemsize

    async def _decode_single(self, chunk_data: NDBuffer, chunk_spec: ArraySpec) -> NDBuffer:
        return self._decode_sync(chunk_data, chunk_spec)

    def _decode_sync(self, chunk_data: NDBuffer, chunk_spec: ArraySpec) -> NDBuffer:
        dtype = chunk_spec.dtype.to_native_dtype().newbyteorder("=")
        with located("Zarr codec cast_value"):
            entries = self.pairs("decode", np.dtype(self.data_type), dtype)
            stored = _native(chunk_data.as_numpy_array())
            values = cast_values(stored, dtype, self.rounding, self.out_of_range, entries)
        return chunk_spec.prototype.nd_buffer.from_numpy_array(values)

    def pairs(self, direction: str, before: np.dtype[Any], after: np.dtype[Any]) -> list[tuple[Any, Any]]:
        """Return the pairs of a direction, ``"encode"`` or ``"decode"``, in the types of values before and after."""
        pairs = (self.scalar_map or {}).get(direction, ())
        return [(_scalar(one, before), _scalar(other, after)) for one, other in pairs]


def _scalar(value: Any, dtype: np.dtype[Any]) -> Any:
    """Return a number in JSON in a type."""
    return parse_dtype(dtype.newbyteorder("=").name, zarr_format=3).from_json_scalar(value, zarr_format=3)


def _rounds_to_wholes(before: np.dtype[Any], after: np.dtype[Any]) -> bool:
    """Return whether values of a type become values of another exactly, or by rounding to whole numbers."""
    if after.kind in "iu":
        return True
    digits = np.iinfo(before).bits if before.kind in "iu" else np.finfo(before).nmant
    return bool(digits <= np.finfo(after).nmant)


def cast_values(
    values: NDArray[Any],
    dtype: np.dtype[Any],
    rounding: str = NEAREST_EVEN,
    out_of_range: str | None = None,
    entries: Sequence[tuple[Any, Any]] = (),
) -> NDArray[Any]:
    """Return values as those of another type.

    Parameters
    ----------
    values
        Integers or floats in native byte order.
    dtype
        The other type.
    rounding
        How values are rounded to whole numbers; floats are rounded to the nearest one.
    out_of_range
        What becomes of values beyond the type.
    entries
        Values with their counterparts, which take precedence; of equal values the first one.

    Raises
    ------
    DataError
        If a value is beyond the type and `out_of_range` is None, or the type has no such value: NaN, infinities.
    """
    if not entries:
        return np.asarray(_cast(values, dtype, rounding, out_of_range))
    result = np.empty(values.shape, dtype)
    rest = np.ones(values.shape, np.bool_)
    for before, after in entries:
        here = rest & ((values != values) if before != before else (values == before))
        result[here] = after
        rest &= ~here
    result[rest] = _cast(values[rest], dtype, rounding, out_of_range)
    return result


def _cast(values: NDArray[Any], dtype: np.dtype[Any], rounding: str, out_of_range: str | None) -> NDArray[Any]:
    if dtype.kind == "f":
        with np.errstate(all="ignore"):
            result = values.astype(dtype)
        beyond = np.isinf(result) & np.isfinite(values)
        if out_of_range is None and beyond.any():
            raise _beyond(values, beyond, dtype)
        return result
    if values.dtype.kind == "f":
        return _wholes(values, dtype, rounding, out_of_range)
    limits = np.iinfo(dtype)
    own = np.iinfo(values.dtype)
    least, most = max(limits.min, own.min), min(limits.max, own.max)
    beyond = (values < least) | (values > most)
    if out_of_range is None and beyond.any():
        raise _beyond(values, beyond, dtype)
    return (values.clip(least, most) if out_of_range == "clamp" else values).astype(dtype)


def _wholes(values: NDArray[Any], dtype: np.dtype[Any], rounding: str, out_of_range: str | None) -> NDArray[Any]:
    """Return floats as integers."""
    if not (finite := np.isfinite(values)).all():
        raise _beyond(values, ~finite, dtype)
    wholes = _rounded(values.astype(np.float64), rounding)
    limits = np.iinfo(dtype)
    # Both are powers of 2, or 0, so that floats have them.
    below, above = wholes < float(limits.min), wholes >= float(limits.max + 1)
    if out_of_range is None and (beyond := below | above).any():
        raise _beyond(values, beyond, dtype)
    if out_of_range == "wrap":
        rest = np.fmod(wholes, 2.0 ** (8 * dtype.itemsize))
        magnitude = np.abs(rest).astype(np.uint64)
        wrapped: NDArray[Any] = np.where(rest < 0, np.uint64(0) - magnitude, magnitude)
        return wrapped.astype(dtype)
    result = np.where(below | above, 0.0, wholes).astype(dtype)
    result[below], result[above] = limits.min, limits.max
    return result


def _rounded(values: NDArray[Any], rounding: str) -> NDArray[Any]:
    """Return floats rounded to whole numbers."""
    wholes: NDArray[Any] = np.trunc(values)
    if rounding == "nearest-away":
        wholes += np.copysign(np.abs(values - wholes) >= 0.5, values)
    elif rounding == NEAREST_EVEN:
        wholes = np.rint(values)
    elif rounding == "towards-positive":
        wholes = np.ceil(values)
    elif rounding == "towards-negative":
        wholes = np.floor(values)
    return wholes


def _beyond(values: NDArray[Any], beyond: NDArray[Any], dtype: np.dtype[Any]) -> DataError:
    return DataError(f"expected values that {dtype} can hold, found {values[beyond].reshape(-1)[0]}")


def _configuration(data: Any, names: Sequence[str]) -> dict[str, Any]:
    """Return the configuration in a codec's metadata, which may be absent."""
    configuration = data.get("configuration", {}) if isinstance(data, dict) else {}
    if not isinstance(configuration, dict) or not configuration.keys() <= set(names):
        raise ParameterError(f"expected an object with {', '.join(names)}, got {configuration!r:.80}")
    return configuration


def _native(values: Any) -> NDArray[Any]:
    native: NDArray[Any] = values.astype(values.dtype.newbyteorder("="), copy=False)
    return native


def with_own_codecs(codecs: Any, data_type: Any, *, in_shards: bool = False) -> Any:
    """Return the codecs of an array's metadata, with those of this module instead of zarr-python's where they can read.

    Parameters
    ----------
    codecs
        Metadata of the codecs, in any form: what is malformed is left to zarr-python.
    data_type
        Name of the type of the values.
    in_shards
        Whether they are those of the chunks in shards.
    """
    if not isinstance(codecs, list):
        return codecs
    result: list[Any] = []
    for codec in codecs:
        name = codec.get("name") if isinstance(codec, dict) else codec
        inner = codec.get("configuration") if isinstance(codec, dict) else None
        if name == "sharding_indexed" and isinstance(inner, dict):
            codecs_inside = with_own_codecs(inner.get("codecs"), data_type, in_shards=True)
            result.append({**codec, "configuration": {**inner, "codecs": codecs_inside}})
        elif name == "scale_offset" and data_type in _NUMBERS:
            result.append(ScaleOffsetCodec.from_dict(codec))
        elif name == "cast_value" and data_type in _NUMBERS:
            own = replace(CastValueCodec.from_dict(codec), in_shards=in_shards)
            result.append(own if own.can_cast(np.dtype(data_type)) else codec)
            data_type = own.data_type
        else:
            result.append(codec)
    return result
