"""How arrays are read, as people say it, ``series=0.7,map=0.3``, and how long such reads take by a model."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

from tamis.errors import ParameterError
from tamis.formatting import did_you_mean
from tamis.jobs.recipes.dimension_chunks import as_chunks

SERIES, MAP, WHOLE, BOX = "series", "map", "whole", "box"
_BY_NAME = (SERIES, MAP, WHOLE)
_EXPECTED = "series, map, whole, weights such as series=0.7,map=0.3, or a box such as box:time=10,lat=96"

StorageName = Literal["disk", "lustre", "s3"]
STORAGES = get_args(StorageName)


class Storage(NamedTuple):
    """What reading from a kind of storage costs.

    Parameters
    ----------
    latency
        Seconds until the first byte of a chunk.
    bandwidth
        Bytes a second.
    parallel
        Chunks that are asked for at a time.
    """

    latency: float
    bandwidth: float
    parallel: int


MODELS: Mapping[str, Storage] = {
    "disk": Storage(0.3e-3, 500e6, 1),
    "lustre": Storage(1e-3, 1e9, 4),
    "s3": Storage(30e-3, 200e6, 16),
}


class Axes(NamedTuple):
    """The axes of an array.

    Parameters
    ----------
    names
        Names of the dimensions; empty if they have none.
    time
        The axis of series.
    horizontal
        The axes of maps.
    """

    names: tuple[str, ...]
    time: int
    horizontal: tuple[int, ...]

    @classmethod
    def of(cls, names: Sequence[str], rank: int, times: Sequence[str] = ()) -> Axes:
        """Return axes by their names: time is one of `times`, or named so, or the first; maps are of the last two."""
        named = [
            axis for axis, name in enumerate(names) if name in times or name == "t" or name.lower().startswith("time")
        ]
        time = named[0] if named else 0
        others = [axis for axis in range(rank) if axis != time]
        return cls(tuple(names), time, tuple(others[-2:]))


@dataclass(frozen=True, slots=True)
class Access:
    """Reads of an array, each with its share.

    Parameters
    ----------
    reads
        Kind of each read and its share; shares add up to 1.
    extents
        Extents of a box by dimension.
    """

    reads: tuple[tuple[str, float], ...]
    extents: tuple[tuple[str, int], ...] = ()

    def selections(self, shape: Sequence[int], axes: Axes) -> list[tuple[str, float, tuple[int, ...]]]:
        """Return kind, share and extents of each read of an array; a box has all along what it does not name."""
        return [(kind, share, self._extents(kind, shape, axes)) for kind, share in self.reads]

    def check(self, dimensions: Collection[str]) -> None:
        """Raise ParameterError if a dimension of a box is none of these, which the planned variables have."""
        for name, _ in self.extents:
            if name not in dimensions:
                raise ParameterError(
                    f"expected a box along the dimensions {', '.join(dimensions) or '(none)'}, got {name}"
                    f"{did_you_mean(name, dimensions)}"
                )

    def _extents(self, kind: str, shape: Sequence[int], axes: Axes) -> tuple[int, ...]:
        if kind == WHOLE:
            return tuple(shape)
        if kind == SERIES:
            return tuple(extent if axis == axes.time else 1 for axis, extent in enumerate(shape))
        if kind == MAP:
            return tuple(extent if axis in axes.horizontal else 1 for axis, extent in enumerate(shape))
        box = dict(self.extents)
        names = axes.names or ("",) * len(shape)
        return tuple(min(box.get(name, extent), extent) for name, extent in zip(names, shape, strict=True))

    def __str__(self) -> str:
        if self.extents:
            return f"{BOX}:" + ",".join(f"{name}={extent}" for name, extent in self.extents)
        if len(self.reads) == 1:
            return self.reads[0][0]
        return ",".join(f"{kind}={share!r}" for kind, share in self.reads)


def as_access(value: object) -> Access:
    """Return reads from their text, or from shares by kind.

    Raises
    ------
    ParameterError
        If it is anything else.
    """
    if isinstance(value, Access):
        return value
    if isinstance(value, str):
        kind, colon, extents = value.strip().partition(":")
        if kind == BOX and colon:
            return Access(((BOX, 1.0),), _box(extents))
        value = {kind: 1.0} if kind in _BY_NAME and not colon else _shares(value)
    if not isinstance(value, Mapping) or not value:
        raise ParameterError(f"expected access as {_EXPECTED}, got {value!r}")
    shares = {}
    for kind, share in value.items():
        if kind not in _BY_NAME:
            raise ParameterError(f"expected access as {_EXPECTED}, got {kind!r}{did_you_mean(str(kind), _BY_NAME)}")
        if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 < share < math.inf:
            raise ParameterError(f"expected a share above 0 of {kind}, got {share!r}")
        shares[kind] = float(share)
    total = sum(shares.values())
    return Access(tuple((kind, share / total) for kind, share in shares.items()))


def _shares(text: str) -> dict[str, float]:
    shares = {}
    for part in text.split(","):
        kind, _, number = (piece.strip() for piece in part.partition("="))
        try:
            shares[kind] = float(number)
        except ValueError:
            raise ParameterError(f"expected access as {_EXPECTED}, got {text[:80]!r}") from None
    return shares


def _box(text: str) -> tuple[tuple[str, int], ...]:
    parts = [[piece.strip() for piece in part.partition("=")] for part in text.split(",")]
    if not all(name and number.isdecimal() and int(number) for name, _, number in parts):
        raise ParameterError(f"expected a box such as box:time=10,lat=96, got 'box:{text[:80]}'")
    extents = {name: int(number) for name, _, number in parts}
    as_chunks(extents)
    return tuple(extents.items())


def read_seconds(
    selection: Sequence[int],
    shape: Sequence[int],
    chunk_shape: Sequence[int],
    chunk_nbytes: int,
    storage: Storage,
    *,
    ratio: float,
    read_mbs: float,
) -> float:
    """Return how long a read takes that begins anywhere: what it waits for, then bytes, then decoding.

    Parameters
    ----------
    selection, shape, chunk_shape
        Extents of what is read, of the array, and of a chunk.
    chunk_nbytes
        Bytes of the values of a chunk.
    storage
        Where the array is.
    ratio
        Bytes of values for each stored byte.
    read_mbs
        Megabytes of values a second that are decoded.
    """
    count = math.prod(map(_touched, selection, shape, chunk_shape))
    nbytes = count * chunk_nbytes
    return (
        math.ceil(count / storage.parallel) * storage.latency
        + nbytes / ratio / storage.bandwidth
        + nbytes / (read_mbs * 1e6)
    )


def _touched(selected: int, extent: int, step: int) -> float:
    """Return the mean number of chunks along an axis that a selection overlaps, wherever it begins."""
    most = math.ceil(extent / step)
    return most if selected >= extent else min((selected - 1) / step + 1, most)
