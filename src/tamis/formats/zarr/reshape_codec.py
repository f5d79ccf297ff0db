"""The registered Zarr 3 codec ``reshape``: the same values in the same order, with other axes."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

from zarr.abc.codec import ArrayArrayCodec

from tamis.errors import ParameterError, located
from tamis.formats.zarr.zfp_codec import SPEC, configuration_of
from tamis.kinds import WHOLES, explained
from tamis.notation.zarr import squeezed_axes

if TYPE_CHECKING:
    from zarr.core.array_spec import ArraySpec
    from zarr.core.buffer import NDBuffer

Axis = int | tuple[int, ...]


@dataclass(frozen=True, init=False)
class ReshapeCodec(ArrayArrayCodec):
    """The axes of a chunk joined or split, registered under the name ``reshape``.

    A chunk with unit axes, or with more than 4 axes, needs this codec before ZFP.

    Parameters
    ----------
    shape
        For each axis of the result, an extent, a list of the input axes that are joined, or once -1 for the rest.

    Raises
    ------
    ParameterError
        If an item is none of these, or input axes are not in increasing order.

    References
    ----------
    https://github.com/zarr-developers/zarr-extensions/tree/main/codecs/reshape
    """

    is_fixed_size = True

    shape: tuple[Axis, ...]

    def __init__(self, shape: Iterable[int | Iterable[int]]) -> None:
        with located("Zarr codec reshape"):
            object.__setattr__(self, "shape", _parse(shape))

    @classmethod
    @explained(chunk_shape=WHOLES)
    def squeezing(cls, chunk_shape: tuple[int, ...]) -> Self | None:
        """Return the codec that joins unit axes with others; None if there are none, or no others."""
        axes = squeezed_axes(chunk_shape)
        return None if axes is None else cls(axes)

    @classmethod
    def from_dict(cls, data: Any) -> Self:
        """Read the codec's metadata; raises ParameterError if it is malformed."""
        with located("Zarr codec reshape"):
            configuration = configuration_of(data)
            if configuration.keys() != {"shape"}:
                raise ParameterError(f"expected a configuration of shape alone, got {sorted(configuration)}")
        return cls(configuration["shape"])

    def to_dict(self) -> dict[str, Any]:
        """Return the codec's metadata."""
        shape = [axis if isinstance(axis, int) else [*axis] for axis in self.shape]
        return {"name": "reshape", "configuration": {"shape": shape}}

    @explained(chunk_spec=SPEC)
    def resolve_metadata(self, chunk_spec: ArraySpec) -> ArraySpec:
        """Return the specification of reshaped chunks."""
        return replace(chunk_spec, shape=self.reshaped(chunk_spec.shape))

    def compute_encoded_size(self, input_byte_length: int, _chunk_spec: ArraySpec) -> int:
        """Return the same number of bytes."""
        return input_byte_length

    @explained(shape=WHOLES)
    def reshaped(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of the result for a shape of the input.

        Raises
        ------
        ParameterError
            If the values do not fit, or joined axes are not those of the input.
        """
        with located("Zarr codec reshape"):
            joined = [axis for axis in self.shape if isinstance(axis, tuple)]
            if any(member >= len(shape) for axis in joined for member in axis):
                raise ParameterError(f"expected input axes below {len(shape)}, got {self.shape} for chunks of {shape}")
            sizes = [axis if isinstance(axis, int) else math.prod(shape[i] for i in axis) for axis in self.shape]
            known = math.prod(size for size in sizes if size != -1)
            result = tuple(math.prod(shape) // max(known, 1) if size == -1 else size for size in sizes)
            if math.prod(result) != math.prod(shape):
                raise ParameterError(f"expected as many values as chunks of {shape} have, got {self.shape}")
            for i, axis in enumerate(self.shape):
                if isinstance(axis, tuple) and axis and math.prod(result[:i]) != math.prod(shape[: axis[0]]):
                    raise ParameterError(
                        f"expected axis {i} to begin where the input axis {axis[0]} does, got {self.shape}"
                    )
            return result

    async def _encode_single(self, chunk_data: NDBuffer, chunk_spec: ArraySpec) -> NDBuffer | None:
        return self._encode_sync(chunk_data, chunk_spec)

    async def _decode_single(self, chunk_data: NDBuffer, chunk_spec: ArraySpec) -> NDBuffer:
        return self._decode_sync(chunk_data, chunk_spec)

    def _encode_sync(self, chunk_data: NDBuffer, chunk_spec: ArraySpec) -> NDBuffer:
        return chunk_data.reshape(self.reshaped(chunk_spec.shape))

    def _decode_sync(self, chunk_data: NDBuffer, chunk_spec: ArraySpec) -> NDBuffer:
        return chunk_data.reshape(chunk_spec.shape)


def _parse(shape: object) -> tuple[Axis, ...]:
    if not isinstance(shape, Iterable) or isinstance(shape, str):
        raise ParameterError(f"expected a list of extents and of lists of input axes, got {shape!r}")
    axes = tuple(tuple(axis) if isinstance(axis, Iterable) and not isinstance(axis, str) else axis for axis in shape)
    for axis in axes:
        numbers = axis if isinstance(axis, tuple) else (axis,)
        least = 0 if isinstance(axis, tuple) else -1
        if any(type(number) is not int or number < least or (number == 0 and least) for number in numbers):
            raise ParameterError(f"expected extents above 0, -1, or lists of input axes, got {axis!r}")
    members = [member for axis in axes if isinstance(axis, tuple) for member in axis]
    if members != sorted(set(members)):
        raise ParameterError(f"expected input axes in increasing order, got {[*axes]}: reshape does not transpose")
    if axes.count(-1) > 1:
        raise ParameterError(f"expected -1 at most once, got {[*axes]}")
    return axes
