"""Chunk shapes that suit how an array is read: ranked by a model, the best ones measured, one chosen."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from tamis.arrays import LARGE_AXES, MOST_OBJECT_VALUES_NBYTES, OBJECT_NBYTES, whole_blocks
from tamis.errors import ParameterError
from tamis.formatting import did_you_mean, ratio_text, shape_text
from tamis.jobs.plan.costs import cost_class
from tamis.jobs.recipes import as_chunks
from tamis.zfp import BLOCK_SIDE

if TYPE_CHECKING:
    from tamis.jobs.plan.candidates import VariableToPlan
    from tamis.jobs.plan.planned import PlannedVariable

SERIES, MAP, WHOLE, BOX = "series", "map", "whole", "box"
_BY_NAME = (SERIES, MAP, WHOLE)
_EXPECTED = "series, map, whole, weights such as series=0.7,map=0.3, or a box such as box:time=10,lat=96"


class Storage(NamedTuple):
    """The costs of reading from a kind of storage."""

    latency: float  # Seconds until the first byte of a chunk
    bandwidth: float
    parallel: int  # Chunks that are requested at a time
    stored_nbytes: tuple[int, int] | None = None  # Least and most of a chunk; None if its values alone matter


MODELS: Mapping[str, Storage] = {
    "disk": Storage(0.3e-3, 500e6, 1),
    "lustre": Storage(1e-3, 1e9, 4),
    "s3": Storage(30e-3, 200e6, 16, OBJECT_NBYTES),
}


class Axes(NamedTuple):
    """The axes of an array."""

    names: tuple[str, ...]  # Names of the dimensions; empty if they have none
    time: int  # The axis of series
    horizontal: tuple[int, ...]  # The axes of maps

    @classmethod
    def of(cls, names: Sequence[str], rank: int, times: Sequence[str] = ()) -> Axes:
        """Return axes by their names: time is one of `times`, or named so, or the first; maps use the last two."""
        named = [
            axis for axis, name in enumerate(names) if name in times or name == "t" or name.lower().startswith("time")
        ]
        time = named[0] if named else 0
        others = [axis for axis in range(rank) if axis != time]
        return cls(tuple(names), time, tuple(others[-2:]))


@dataclass(frozen=True, slots=True)
class Access:
    """Reads of an array, each with its share."""

    reads: tuple[tuple[str, float], ...]  # Kind of each read and its share; shares add up to 1
    extents: tuple[tuple[str, int], ...] = ()  # Extents of a box by dimension

    def selections(self, shape: Sequence[int], axes: Axes) -> list[tuple[str, float, tuple[int, ...]]]:
        """Return kind, share and extents of each read of an array; a box has the full extent of unnamed dimensions."""
        return [(kind, share, self._extents(kind, shape, axes)) for kind, share in self.reads]

    def check(self, dimensions: Collection[str]) -> None:
        """Raise ParameterError if a dimension of a box is not one of these, the dimensions of the planned variables."""
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
    """Return reads from their text, or from shares by kind."""
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
            raise ParameterError(f"expected a share above 0 for {kind}, got {share!r}")
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
    """Return the mean duration of a read that may begin anywhere: latency, transfer and decoding."""
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


Shape = tuple[int, ...]

_MOST_NBYTES = 4 << 20
_LIMITS = 16 << 10, _MOST_NBYTES
_COLUMN_NBYTES, _BOX_NBYTES = 128 << 10, 1 << 20
_MEASURED = 4
"""Number of shapes that are measured, in addition to that of the source."""
_USUAL_RATIO, _USUAL_MBS = 4.0, 800.0
_NEAR = 1.5
"""The best ratio is chosen among shapes whose reads take at most this many times as long as the fastest."""
SAME_RATIO = 0.99
"""Ratios that differ by less do not make up for other chunks."""
_SHARES = range(2, 9)


class Reads(NamedTuple):
    """How an array is read, and where it is stored."""

    access: Access
    axes: Axes  # The axes of the array
    storage: Storage

    def seconds(self, shape: Shape, chunk_shape: Shape, itemsize: int, ratio: float, mbs: float) -> dict[str, float]:
        """Return the seconds of each kind of read according to the model."""
        nbytes = math.prod(chunk_shape) * itemsize
        return {
            kind: read_seconds(selection, shape, chunk_shape, nbytes, self.storage, ratio=ratio, read_mbs=mbs)
            for kind, _, selection in self.access.selections(shape, self.axes)
        }

    def mean(self, seconds: dict[str, float]) -> float:
        """Return the mean duration of a read."""
        return sum(share * seconds[kind] for kind, share in self.access.reads)


class _Measured(NamedTuple):
    """A chunk shape, its plan, and the seconds of each read."""

    shape: Shape
    planned: PlannedVariable
    seconds: dict[str, float]


def with_best_shape(
    variable: VariableToPlan, reads: Reads, plan: Callable[[VariableToPlan, bool], PlannedVariable]
) -> PlannedVariable:
    """Return the plan for a variable in the chunk shape that suits its reads best."""
    extents, itemsize = variable.extents, variable.itemsize

    def measured(shape: Shape, *, little: bool = True) -> _Measured:
        planned = plan(variable._replace(chunk_shape=shape), little)
        mbs = _USUAL_MBS if planned.chosen is None else cost_class(planned.chosen.pipeline).read_mbs
        candidate = _Measured(shape, planned, {})
        return candidate._replace(seconds=reads.seconds(extents, shape, itemsize, _ratio(candidate), mbs))

    own = measured(variable.chunk_shape)
    limits = _LIMITS
    if (stored := reads.storage.stored_nbytes) is not None:
        least, most = (min(int(nbytes * _ratio(own)), MOST_OBJECT_VALUES_NBYTES) for nbytes in stored)
        limits = least // 2 if least == most else least, most
    others = [measured(shape) for shape in _best(extents, itemsize, reads, limits) if shape != own.shape]
    own_fits = stored is None or limits[0] <= math.prod(own.shape) * itemsize <= limits[1]
    best = _chosen(own, [other for other in others if other.planned.chosen is not None], reads, own_fits=own_fits)
    whole = measured(best.shape, little=False)
    return whole.planned if best is own else whole.planned.with_note(_note(whole, own))


def shapes_of_kinds(extents: Shape, itemsize: int) -> Iterator[Shape]:
    """Yield a map, columns along the slowest axis, and boxes of two sizes along the last three axes."""
    longer = [axis for axis, extent in enumerate(extents) if extent > 1]
    yield _cut(extents, longer[-2:], _MOST_NBYTES // itemsize)
    if len(longer) > 2:
        others = longer[-min(len(longer) - 1, LARGE_AXES) :]
        columns = _cut(extents, others, _COLUMN_NBYTES // itemsize // extents[longer[0]])
        if math.prod(columns) * extents[longer[0]] * itemsize <= _MOST_NBYTES:
            yield tuple(extent if axis == longer[0] else columns[axis] for axis, extent in enumerate(extents))
        for nbytes in (_BOX_NBYTES, _MOST_NBYTES):
            yield _cut(extents, longer[-LARGE_AXES:], nbytes // itemsize)


def _cut(extents: Shape, axes: Sequence[int], count: int) -> Shape:
    """Return a shape of at most about this many values, with some axes cut into equally many parts."""
    for parts in itertools.count(1):
        steps = {axis: _share(extents[axis], parts) for axis in axes}
        if math.prod(steps.values()) <= count or all(step <= BLOCK_SIDE for step in steps.values()):
            break
    return tuple(steps.get(axis, 1) for axis in range(len(extents)))


def _share(extent: int, parts: int) -> int:
    """Return a part of an extent, in whole blocks of zfp if these fill it, because most filters encode padding, too."""
    step = -(-extent // parts)
    blocks = whole_blocks(step)
    return blocks if extent % blocks == 0 else step


def _chosen(own: _Measured, others: Sequence[_Measured], reads: Reads, *, own_fits: bool) -> _Measured:
    """Return the shape with the best ratio among those with fast reads; that of the source, if it is as good."""
    measured = (own, *others) if own_fits or not others else others
    fastest = min(reads.mean(shape.seconds) for shape in measured)
    near = [shape for shape in measured if reads.mean(shape.seconds) <= _NEAR * fastest]
    best = max(near, key=_ratio)
    return own if own in near and _ratio(own) >= SAME_RATIO * _ratio(best) else best


def _ratio(measured: _Measured) -> float:
    chosen = measured.planned.chosen
    return chosen.ratio if chosen is not None else measured.planned.source_ratio or 1.0


def _note(best: _Measured, own: _Measured) -> str:
    reads = ", ".join(
        f"{'all values' if kind == WHOLE else f'a {kind}'} in {_time(seconds)} ({_time(own.seconds[kind])})"
        for kind, seconds in best.seconds.items()
    )
    return (
        f"; its chunks are {shape_text(best.shape)} instead of {shape_text(own.shape)}, where the ratio is"
        f" {ratio_text(_ratio(own))}: by the model, readers get {reads}"
    )


def _time(seconds: float) -> str:
    return f"{seconds:.3g} s" if seconds >= 1 else f"{seconds * 1e3:.3g} ms"


def _best(extents: Shape, itemsize: int, reads: Reads, limits: tuple[int, int] = _LIMITS) -> list[Shape]:
    """Return the best shapes between two sizes according to the model, all sufficiently different."""

    def cost(shape: Shape) -> float:
        padded = math.prod(-(-step // BLOCK_SIDE) * BLOCK_SIDE / step for step in shape if step > 1)
        return reads.mean(reads.seconds(extents, shape, itemsize, _USUAL_RATIO / padded, _USUAL_MBS))

    best: list[Shape] = []
    for shape in sorted(_shapes(extents, itemsize, limits), key=cost):
        if not any(_alike(shape, other) for other in best):
            best.append(shape)
        if len(best) == _MEASURED:
            break
    return best


def _alike(shape: Shape, other: Shape) -> bool:
    return all(step < 2 * other_step and other_step < 2 * step for step, other_step in zip(shape, other, strict=True))


def _shapes(extents: Shape, itemsize: int, limits: tuple[int, int] = _LIMITS) -> Iterator[Shape]:
    """Yield shapes between two sizes, of whole blocks of zfp where extents allow that."""
    least, most = min(limits[0], math.prod(extents) * itemsize), limits[1]
    for shape in itertools.product(*map(_steps, extents)):
        if least <= math.prod(shape) * itemsize <= most:
            yield shape


def _steps(extent: int) -> list[int]:
    """Return extents of chunks along an axis: single values, powers of two, equal shares, all."""
    doubled = itertools.takewhile(lambda step: step < extent, (BLOCK_SIDE << power for power in range(40)))
    shares = (-(-extent // (count * BLOCK_SIDE)) * BLOCK_SIDE for count in _SHARES)
    return sorted({1, extent, *doubled, *(step for step in shares if step < extent)})
