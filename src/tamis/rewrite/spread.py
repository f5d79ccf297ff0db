"""Warn, before anything is written, about bounds that are too large for the values, judging by a sample."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.accuracy.reasonable import LARGE_SHARE, ZEROED_SHARE
from tamis.arrays.grid import default_chunks, grid_of
from tamis.errors import TamisError
from tamis.filters import Zfp
from tamis.meaning import text
from tamis.rewrite.new_chunk import make_chunk
from tamis.rewrite.packed_array import as_floats, in_units
from tamis.rewrite.plan import ArrayPlan, Recode
from tamis.rewrite.steps import PackStep
from tamis.rewrite.values import Padding
from tamis.stores.facts import ELSEWHERE, size_of

if TYPE_CHECKING:
    from tamis.arrays.grid import Region
    from tamis.stores.protocols import StoredArray

_UNLIKE = 100
"""How many times the standard deviation of a variable may be that of another one with the same bound."""
_MOST_BLOCKS, _MOST_VALUES = 8, 1 << 15
"""Limits of a sample: blocks of a variable, each of another chunk, and values of a block."""

Change = Callable[["Region", NDArray[Any]], NDArray[Any]]
"""Returns what the stored values of a part become, in units of the variable."""


class Warned(NamedTuple):
    """A warning about a bound."""

    path: str  # Path of the dataset, or a pattern for several ones
    text: str


class Spread(NamedTuple):
    """How the values of a variable differ, judging by a sample, and how many of them become 0."""

    deviation: float  # Standard deviation, in units of the variable
    nonzero: int
    zeroed: int = 0
    units: str = ""

    def warning(self, bound: float) -> str:
        """Return why a bound is too large for the values; empty if it is not."""
        facts = []
        if self.deviation > 0 and bound > LARGE_SHARE * self.deviation:
            times = _number(bound / self.deviation)
            facts.append(f"is {times} times the standard deviation, {self.deviation_text}")
        if self.nonzero and self.zeroed > ZEROED_SHARE * self.nonzero:
            facts.append(f"makes {_number(100 * self.zeroed / self.nonzero)} % of the values other than 0 to 0")
        return f"the bound {bound:g} {', and '.join(facts)}" if facts else ""

    @property
    def deviation_text(self) -> str:
        """The standard deviation with its units."""
        return f"{self.deviation:.2g} {self.units}".rstrip()


def _number(value: float) -> str:
    """Return a number with two digits, large ones without an exponent while they can be read."""
    return f"{value:.2g}" if value < 10 or value >= 1e6 else f"{float(f'{value:.2g}'):.0f}"


def spread_of(source: StoredArray, bound: float, change: Change) -> Spread | None:
    """Return the spread of a sample of an array; None if it has no valid values, or they cannot be read."""
    values: list[NDArray[Any]] = []
    nonzero = zeroed = 0
    try:
        for block, stored, units, valid in _sampled(source):
            values.append(units[valid])
            small = valid & (units != 0) & (abs(units) <= bound)
            nonzero += int(np.count_nonzero(valid & (units != 0)))
            if small.any():
                zeroed += int(np.count_nonzero(small & (change(block, stored) == 0)))
    except (TamisError, OSError, RuntimeError):
        return None  # writing reports why
    every = np.concatenate(values) if values else np.empty(0)
    if not every.size:
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        deviation = float(np.std(every))
    return Spread(deviation if math.isfinite(deviation) else 0.0, nonzero, zeroed, text(source.attributes, "units"))


def _sampled(source: StoredArray) -> Iterator[tuple[Region, NDArray[Any], NDArray[Any], NDArray[np.bool_]]]:
    """Yield blocks of an array: their place, stored values, values in units, and which of these are valid."""
    dtype = source.type.numbers
    if dtype is None or not size_of(source) or source.storage.layout in ELSEWHERE:
        return
    with closing(source.open_reader()) as reader:
        for block in _sample(source, dtype):
            stored = np.ascontiguousarray(reader.read(block))
            units = in_units(source, stored).astype(np.float64)
            valid = np.isfinite(units)
            if (missing := source.meaning.missing.find(stored)) is not None:
                valid &= ~missing
            yield block, stored, units, valid


def _sample(source: StoredArray, dtype: np.dtype[Any]) -> Iterator[Region]:
    """Yield blocks of an array, each in another one of its chunks, so that none is decoded twice."""
    shape = source.storage.chunk_shape or default_chunks(source.shape, dtype.itemsize, zfp=False)
    parts = source.parts(grid_of(source.shape, shape))
    count = min(_MOST_BLOCKS, len(parts))
    for place in range(count):
        part = parts[(2 * place + 1) * len(parts) // (2 * count)]
        extents = [axis.stop - axis.start for axis in part]
        while math.prod(extents) > _MOST_VALUES:
            longest = extents.index(max(extents))
            extents[longest] = -(-extents[longest] // 2)
        yield tuple(slice(axis.start, axis.start + extent) for axis, extent in zip(part, extents, strict=True))


def spread_for(plan: ArrayPlan, source: StoredArray) -> Spread | None:
    """Return the spread of an array under a plan; None if the plan has no absolute bound or changes nothing."""
    bound = plan.unpacked_bound
    if not bound or not math.isfinite(bound) or not isinstance(plan, Recode):
        return None

    def change(block: Region, values: NDArray[Any]) -> NDArray[Any]:
        if plan.step(PackStep) is not None:
            return plan.as_read(plan.as_stored(as_floats(source, values))).astype(np.float64)
        return _encoded_alone(plan, source, block, values)

    return spread_of(source, bound, change)


def _encoded_alone(plan: Recode, source: StoredArray, block: Region, values: NDArray[Any]) -> NDArray[Any]:
    """Return what a block becomes as a chunk of its own, in units of the variable."""
    alone = replace(plan, chunk_shape=values.shape, padding=Padding())
    chunk = make_chunk(alone, block, values.astype(plan.dtype, copy=False))
    return in_units(source, alone.pipeline.decode(chunk.data, chunk.mask, alone.chunk)).astype(np.float64)


def _flattened(plan: ArrayPlan, source: StoredArray) -> str:
    """Return a warning if zfp without a bound makes one value of all values of a sample, which differ; else empty."""
    zfp = plan.pipeline.bounded
    if not isinstance(plan, Recode) or not isinstance(zfp, Zfp) or zfp.error_bound is not None or plan.codes:
        return ""
    before: set[float] = set()
    after: set[float] = set()
    try:
        for block, stored, units, valid in _sampled(source):
            before.update(np.unique(units[valid])[:2].tolist())
            after.update(np.unique(_encoded_alone(plan, source, block, stored)[valid])[:2].tolist())
            if len(after) > 1:
                return ""
    except (TamisError, OSError, RuntimeError):
        return ""  # writing reports why
    if len(before) < 2 or len(after) != 1:
        return ""
    return (
        f"{zfp} makes all values {after.pop():g}, judging by a sample in which they differ: give more bits or a bound"
    )


def rounded_spread(source: StoredArray, bound: float) -> Spread | None:
    """Return the spread of an array whose values would become multiples of twice a bound."""
    return spread_of(source, bound, lambda _, values: _rounded(in_units(source, values), bound))


def _rounded(values: NDArray[Any], bound: float) -> NDArray[Any]:
    with np.errstate(invalid="ignore", over="ignore"):
        return np.rint(values.astype(np.float64) / (2 * bound))


def coarse_bounds(
    plans: Mapping[str, ArrayPlan], arrays: Mapping[str, StoredArray], patterns: Mapping[str, str]
) -> tuple[Warned, ...]:
    """Return warnings about bounds that do not suit the values, and about zfp without a bound that levels them.

    Patterns that give one bound to unlike variables are among them.

    `patterns` has the pattern that matched each path, where no exact name did.
    """
    spreads = {path: (plan.unpacked_bound, spread_for(plan, arrays[path])) for path, plan in plans.items()}
    flattened = {path: _flattened(plan, arrays[path]) for path, plan in plans.items()}
    return (
        *(Warned(path, text) for path, text in flattened.items() if text),
        *warnings_of(
            {path: (bound, spread) for path, (bound, spread) in spreads.items() if bound and spread}, patterns
        ),
    )


def rounded_bounds(
    bounds: Mapping[str, float], arrays: Mapping[str, StoredArray], patterns: Mapping[str, str]
) -> tuple[Warned, ...]:
    """Return the warnings of `coarse_bounds` about arrays whose values would become multiples of twice a bound."""
    spreads = {path: (bound, rounded_spread(arrays[path], bound)) for path, bound in bounds.items()}
    return warnings_of({path: (bound, spread) for path, (bound, spread) in spreads.items() if spread}, patterns)


def warnings_of(spreads: Mapping[str, tuple[float, Spread]], patterns: Mapping[str, str]) -> tuple[Warned, ...]:
    """Return the warnings of `coarse_bounds`, by the bound and the spread of each variable."""
    warnings: list[Warned] = []
    alike: dict[tuple[str, float], dict[str, Spread]] = {}
    for path, (bound, spread) in spreads.items():
        if reason := spread.warning(bound):
            warnings.append(Warned(path, reason))
        if path in patterns and spread.deviation:
            alike.setdefault((patterns[path], bound), {})[path] = spread
    return (*warnings, *_unlike(alike.items()))


def _unlike(groups: Iterable[tuple[tuple[str, float], Mapping[str, Spread]]]) -> Iterable[Warned]:
    for (pattern, bound), spreads in groups:
        ordered = sorted(spreads, key=lambda path: spreads[path].deviation)
        low, high = spreads[ordered[0]], spreads[ordered[-1]]
        if high.deviation >= _UNLIKE * low.deviation:
            both = ", ".join(f"{path} ({spreads[path].deviation_text})" for path in (ordered[0], ordered[-1]))
            words = f"gives the bound {bound:g} to unlike variables, with standard deviations such as {both}"
            yield Warned(pattern, f"{words}: give each its own bound")
