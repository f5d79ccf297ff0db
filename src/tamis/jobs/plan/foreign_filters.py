"""SZ3 and SPERR on the sample of a variable: hdf5plugin runs them in a separate process, and nothing is proven."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.accuracy import Tally, compare
from tamis.errors import DataError, MissingFilterError, ParameterError, TamisError
from tamis.filters import ChunkType, Data, Filter, Sperr, Sz3
from tamis.formatting import plural
from tamis.jobs.plan.candidates import VariableToPlan, rungs_to_try
from tamis.jobs.plan.measure import (
    absolute_bound,
    absolute_errors,
    facts_of,
    failures,
    loosest,
    loss_of,
    ratio_and_range,
)
from tamis.jobs.plan.planned import Compared
from tamis.jobs.plan.requirements import RELATIVE
from tamis.pipeline import Pipeline

if TYPE_CHECKING:
    from tamis.jobs.plan.sample import Piece, Sample
    from tamis.rewrite import ArrayPlan

FOREIGN = ("sz3", "sperr")
_LOSSLESS = Pipeline.parse("shuffle|deflate(4)")
_ANY = ChunkType(np.dtype("f4"), (8, 8))


def foreign_names(names: str | Collection[str]) -> tuple[str, ...]:
    """Check names of filters to compare with, as text with commas or as items; return them."""
    given = [name.strip() for name in names.split(",")] if isinstance(names, str) else [*names]
    for name in given:
        if name not in FOREIGN:
            raise ParameterError(f"expected filters to compare with from {', '.join(FOREIGN)}, got {name!r}")
        if absent := Sz3.missing():
            raise MissingFilterError(absent)
    return tuple(name for name in FOREIGN if name in given)


class _Measured(NamedTuple):
    """Bytes of the chunks before and after, errors, seconds, and how many values are missing on one side only."""

    raw: list[int]
    stored: list[int]
    tally: Tally
    write_seconds: float
    read_seconds: float
    unlike: int

    def compared(self, name: str, sample: Sample, scale: float, bound: float | None) -> Compared:
        """Return the result in units of the variable, with any problem."""
        largest, nbytes = float(self.tally.error) * scale, sum(self.raw)
        problems = []
        if bound is not None and largest > bound:
            problems.append(f"errs by {largest:.7g}, but {bound:g} is required")
        if self.unlike:
            mixed = plural(self.unlike, "missing value")
            problems.append(f"reads {mixed} of {self.tally.count} as valid, or the reverse")
        if self.tally.crossed:
            problems.append(f"moves {plural(self.tally.crossed, 'value')} across the valid range")
        return Compared(
            name,
            *ratio_and_range(self.raw, self.stored, sample),
            largest,
            nbytes / self.write_seconds / 1e6,
            nbytes / self.read_seconds / 1e6,
            "; ".join(problems) or None,
        )


def compared_with(
    names: Collection[str], variable: VariableToPlan, sample: Sample, few: Sample, advance: Callable[[int], None]
) -> Iterator[Compared]:
    """Yield the results of foreign filters on a sample, with the absolute error that meets the requirement."""
    requirement = variable.requirement
    facts = facts_of(
        sample, [array.meaning.missing for array in variable.arrays], variable.arrays[0].meaning.packing, requirement
    )
    plans = variable.plans(_LOSSLESS)
    if any(name in requirement.limits for name in RELATIVE):
        yield from (Compared(name, problem="it cannot bound errors relative to each value") for name in names)
        return
    errors = [error / facts.scale for error in absolute_errors(requirement, facts)][: rungs_to_try(requirement)]
    bound, marker = absolute_bound(requirement, facts), _marker(sample)
    for name in names:
        codecs = {str(codec): codec for codec in (_filter(name, error, marker) for error in errors)}

        def keeps(text: str, codecs: Mapping[str, Filter] = codecs) -> bool:
            loss = loss_of(plans, sample, requirement, _change(codecs[text]))
            return not failures(requirement, loss, facts, stored_relative=False, rounds=False)

        try:
            for codec in [*codecs.values()][:1]:
                _encoded(
                    codec, np.zeros(_ANY.shape, _ANY.dtype)
                )  # starts the process, which measured times must not include
            chosen = next(iter(codecs)) if len(codecs) == 1 else loosest([*codecs], keeps)
            if chosen is None:
                yield Compared(name, problem="none of the errors tried meets the requirement")
            else:
                yield _measured(codecs[chosen], plans, few, advance).compared(chosen, few, facts.scale, bound)
        except (DataError, ParameterError) as error:
            yield Compared(name, problem=str(error))


def _filter(name: str, error: float, marker: str) -> Filter:
    """Return a filter with a largest error in stored units."""
    return Sz3("absolute", error) if name == "sz3" else Sperr("absolute", error, marker, "swapped")


def _marker(sample: Sample) -> str:
    """Return the markers of missing values in a sample that SPERR supports; it fails on other non-finite ones."""
    large = False
    for piece in (piece for pieces in sample.chunks for piece in pieces if piece.values.dtype.kind == "f"):
        if np.isnan(piece.values).any():
            return "nan"
        large = large or bool((np.abs(piece.values) >= Sperr.least_missing).any())
    return "1e35" if large else "none"


def _change(codec: Filter) -> Callable[[ArrayPlan, Piece, NDArray[Any]], NDArray[Any]]:
    def change(plan: ArrayPlan, piece: Piece, values: NDArray[Any]) -> NDArray[Any]:
        values = values.astype(values.dtype.newbyteorder("="), copy=False)
        chunk = ChunkType(values.dtype, values.shape)
        return _decoded(codec, _encoded(codec, values), chunk)

    return change


def _encoded(codec: Filter, values: NDArray[Any]) -> Data:
    chunk = ChunkType(values.dtype, values.shape)
    return codec.encode(values.tobytes(), chunk, codec.stored(chunk))


def _decoded(codec: Filter, data: Data, chunk: ChunkType) -> NDArray[Any]:
    try:
        plain = codec.decode(data, chunk, codec.stored(chunk))
    except TamisError as error:
        raise DataError(f"it cannot decode its own output: {error}") from error
    return np.frombuffer(plain, chunk.dtype).reshape(chunk.shape)


def _measured(codec: Filter, plans: Sequence[ArrayPlan], sample: Sample, advance: Callable[[int], None]) -> _Measured:
    """Return bytes, errors and seconds of the chunks of a sample."""
    raw, stored, tally, unlike = list[int](), list[int](), Tally(), 0
    write_seconds = read_seconds = 0.0
    for plan, pieces in zip(plans, sample.chunks, strict=True):
        for piece in pieces:
            values = piece.values.astype(plan.dtype.newbyteorder("="), copy=False)
            chunk = ChunkType(values.dtype, values.shape)
            begin = time.perf_counter()
            data = _encoded(codec, values)
            middle = time.perf_counter()
            after = _decoded(codec, data, chunk)
            read_seconds += time.perf_counter() - middle
            write_seconds += middle - begin
            tally = tally.plus(compare(values, after, piece.origin, plan.checks.missing))
            unlike += int(np.count_nonzero(_is_missing(plan, values) != _is_missing(plan, after)))
            raw.append(values.nbytes)
            stored.append(len(data))
            advance(values.nbytes)
    return _Measured(raw, stored, tally, write_seconds, read_seconds, unlike)


def _is_missing(plan: ArrayPlan, values: NDArray[Any]) -> NDArray[np.bool_]:
    absent = plan.checks.missing.find(values)
    return np.zeros(values.shape, bool) if absent is None else absent
