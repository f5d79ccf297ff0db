"""One chunk on its way into a file: padded, encoded, and decoded again where a bound is to be kept."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.accuracy.difference import Comparison, compare
from tamis.errors import BoundError, DataError, ParameterError
from tamis.filters import Bitshuffle, ChunkType, Filter, Fletcher32, Shuffle, Zfp
from tamis.missing.definition import Missing
from tamis.missing.fill import fill_gaps
from tamis.missing.table import Flags
from tamis.pipeline import Pipeline
from tamis.rewrite.padding import Padding

# Of the largest value: a tolerance above it leaves room for all that zfp and one conversion round.
_SPARED = {4: 2.0**-18, 8: 2.0**-44}

_NONE_MISSING = Missing()
_REPEATED = Padding()


class Encoded(NamedTuple):
    """What is stored of a chunk.

    Parameters
    ----------
    data
        Its bytes.
    mask
        Its filter mask: bit i is set where filter i was left out.
    """

    data: bytes
    mask: int


def is_lossy(pipeline: Pipeline, mask: int = 0) -> bool:
    """Return whether a chunk with such a mask may have other values than were written."""
    return any(each.error_bound != 0 and not mask >> i & 1 for i, each in enumerate(pipeline.filters))


def absorbs_rounding(bound: float, largest: float, dtype: np.dtype[Any]) -> bool:
    """Return whether zfp and rounding to its type together keep a bound for sure, with float32 or float64 values."""
    return largest * _SPARED[dtype.itemsize] <= bound


def can_skip_loss(pipeline: Pipeline) -> bool:
    """Return whether a chunk may be stored without loss: every filter that loses something is optional."""
    return all(each.optional or each.filter.error_bound == 0 for each in pipeline.stages)


def encode_chunk(
    pipeline: Pipeline,
    values: NDArray[Any],
    chunk: ChunkType,
    *,
    lossless: bool = False,
    padding: Padding = _REPEATED,
    missing: Missing = _NONE_MISSING,
    rounding: float = 0.0,
) -> Encoded:
    """Encode a chunk so that every value keeps the bound of the pipeline, and missing values are what they were.

    What was encoded is decoded and compared, unless it is known to keep them. Where zfp, or another filter of values,
    cannot take the values or does not keep them so, it is left out, which the mask says, if it is optional. Where it is
    applied, an optional shuffle and what follows it are left out but for checksums: they are there for the chunks that
    go without it.

    Parameters
    ----------
    pipeline
        As the file has it, so that its stages decode by stored parameters.
    values
        The part of the chunk that lies in the array, of the type that the file has.
    chunk
        Type and shape of all of it.
    lossless
        Leave out every filter that loses something.
    padding
        What the part beyond the array gets; where others may read it later, it is proven as values are. A required
        filter that cannot keep it gets repeated values instead.
    missing
        What stands for missing values, and which others are valid: those stay valid.
    rounding
        Error that values have already, since they were rounded to the type of the file. It is part of the bound.

    Raises
    ------
    BoundError
        If a required filter does not keep the bound, missing values, or the valid range.
    DataError
        If a required filter cannot take the values.
    ParameterError
        If a chunk cannot be stored without loss, since a filter that loses something is required.
    MissingFilterError
        If a required filter cannot be encoded here.
    """
    if lossless:
        if not can_skip_loss(pipeline):
            raise ParameterError(f"expected filters without loss or optional ones, got {pipeline}")
        return Encoded(*pipeline.encode(padding.pad(values, chunk.shape), skip=_lossy_types(pipeline)))
    return _encoded(pipeline, values, chunk, padding, missing, rounding=rounding).stored


def encode_compared(
    pipeline: Pipeline,
    values: NDArray[Any],
    chunk: ChunkType,
    padding: Padding = _REPEATED,
    missing: Missing = _NONE_MISSING,
) -> tuple[Encoded, Comparison]:
    """Encode a chunk as `encode_chunk` does, and compare it with what it decodes to in any case.

    Parameters and errors are those of `encode_chunk`. Where nothing is lossy, the comparison is one of bits. Its
    `crossed` counts the values for which the first filter is left out, since it would move them across a limit.
    """
    made = _encoded(pipeline, values, chunk, padding, missing, compared=True)
    comparison = made.comparison or _compared(pipeline, made.stored, values, chunk, missing)[0]
    return made.stored, comparison._replace(crossed=made.crossed)


def encode_filled(
    pipeline: Pipeline,
    values: NDArray[Any],
    flags: NDArray[np.uint8],
    chunk: ChunkType,
    table: Flags,
    missing: Missing,
    padding: Padding = _REPEATED,
) -> Encoded:
    """Encode a chunk whose gaps are filled, so that valid values keep the bound of the pipeline.

    Where its first filter is left out nevertheless, or a missing value has no flag of its own, the values are stored as
    they are, missing ones included.

    Parameters
    ----------
    pipeline, values, chunk, missing, padding
        As for `encode_chunk`.
    flags
        Of the values, by `table`; at least one is not 0.
    table
        What the flags stand for.

    Raises
    ------
    BoundError, DataError, ParameterError, MissingFilterError
        As `encode_chunk`.
    """
    if table.stored_flag and (flags == table.stored_flag).any():
        return encode_chunk(pipeline, values, chunk, padding=padding, missing=missing)
    filled = fill_gaps(values, flags != 0, chunk.shape)
    found = encode_chunk(pipeline, filled, chunk, padding=padding, missing=missing)
    if found.mask & 1 and can_skip_loss(pipeline):
        return encode_chunk(pipeline, values, chunk, lossless=True, padding=padding)
    return found


def is_rejected(found: Comparison, pipeline: Pipeline, rounding: float = 0.0) -> bool:
    """Return whether values differ by more than a pipeline allows, with an error that they had before."""
    bound = pipeline.error_bound
    return not found.kept or not (bound is None or found.error <= (bound - rounding if bound else bound))


class _Encoding(NamedTuple):
    """A chunk that is encoded: how its bytes compare, if they were compared, and why its first filter is left out."""

    stored: Encoded
    comparison: Comparison | None = None
    crossed: int = 0


def _encoded(
    pipeline: Pipeline,
    values: NDArray[Any],
    chunk: ChunkType,
    padding: Padding,
    missing: Missing,
    *,
    compared: bool = False,
    rounding: float = 0.0,
) -> _Encoding:
    required = bool(pipeline.stages) and not pipeline.stages[0].optional
    if required and padding.is_read(values.shape, chunk.shape):
        try:
            return _proven(pipeline, values, chunk, padding, missing, compared=compared, rounding=rounding)
        except (BoundError, DataError):
            padding = _REPEATED  # values come first: the filter cannot be left out of this chunk
    return _proven(pipeline, values, chunk, padding, missing, compared=compared, rounding=rounding)


def _proven(
    pipeline: Pipeline,
    values: NDArray[Any],
    chunk: ChunkType,
    padding: Padding,
    missing: Missing,
    *,
    compared: bool,
    rounding: float,
) -> _Encoding:
    whole = padding.pad(values, chunk.shape)
    first = pipeline.stages[0] if pipeline.stages else None
    if first is None or not first.filter.needs_values:
        return _Encoding(Encoded(*pipeline.encode(whole)))
    idle = idle_types(pipeline)
    # A bound is proven below: as it was asked for, with the missing values that are known, and what may be read later.
    found = Encoded(*pipeline.encode(whole, skip=idle, prove=pipeline.error_bound is None))
    if found.mask & 1:  # it could not take these values, and the filters behind it are there for that
        return _Encoding(found if not idle else Encoded(*pipeline.encode(whole, skip=(type(first.filter),))))
    if not compared and _kept_for_sure(pipeline, values, chunk, padding, missing, rounding):
        return _Encoding(found)
    comparison, decoded = _compared(pipeline, found, values, chunk, missing)
    rejected = is_rejected(comparison, pipeline, rounding)
    if not rejected and padding.is_kept(whole, decoded, values.shape, pipeline.error_bound):
        return _Encoding(found, comparison)
    if not first.optional:
        bound = pipeline.error_bound
        wanted = "missing values" if bound is None else f"an error of at most {bound:g} and missing values"
        wanted += f", beside {rounding:g} by rounding to {values.dtype}" if rounding else ""
        raise BoundError(
            f"expected {first.filter} to keep {'the valid range' if comparison.crossed else wanted}, which it cannot;"
            f" as an optional filter, {first.filter}?, it is left out of such a chunk"
        ).at(filter=first.filter)
    return _Encoding(Encoded(*pipeline.encode(whole, skip=(type(first.filter),))), crossed=comparison.crossed)


def encode_stream(pipeline: Pipeline, stream: bytes, chunk: ChunkType) -> Encoded:
    """Encode what the first filter made of a chunk, as `encode_chunk` does with what it makes itself."""
    return Encoded(*pipeline.encode_rest(stream, chunk, skip=idle_types(pipeline)))


def _compared(
    pipeline: Pipeline, found: Encoded, values: NDArray[Any], chunk: ChunkType, missing: Missing
) -> tuple[Comparison, NDArray[Any]]:
    """Compare values with what a chunk decodes to, and return all of that, too."""
    decoded = pipeline.decode(found.data, found.mask, chunk)
    after = decoded[tuple(map(slice, values.shape))]
    return compare(values, after, None if pipeline.error_bound == 0 else missing), decoded


def _kept_for_sure(
    pipeline: Pipeline,
    values: NDArray[Any],
    chunk: ChunkType,
    padding: Padding,
    missing: Missing,
    rounding: float,
) -> bool:
    """Return whether a chunk that could be encoded, and so has no NaN, needs no comparison.

    Nothing is decoded to a missing value, nor across a limit of the valid range, where they all are further away than
    the bound.
    """
    bound, first = pipeline.error_bound, pipeline.filters[0]
    if bound is None:
        no_limits = missing.low is None and missing.high is None
        return not missing.values and no_limits and not padding.is_read(values.shape, chunk.shape)
    if not isinstance(first, Zfp) or values.dtype.kind != "f" or bound == 0:
        return False
    if padding.exact and padding.is_read(values.shape, chunk.shape):
        return False
    largest = missing.survey(values).largest
    if not first.keeps_for_sure(chunk, largest):
        return False
    if rounding and not absorbs_rounding(bound - rounding, largest, values.dtype):
        return False
    limits = [each for each in (missing.low, missing.high) if each is not None]
    return all(abs(float(each)) > largest + bound for each in (*missing.values, *limits))


def _lossy_types(pipeline: Pipeline) -> tuple[type[Filter], ...]:
    return tuple({type(each) for each in pipeline.filters if each.error_bound != 0})


@lru_cache(maxsize=64)  # all chunks of a dataset have the same
def idle_types(pipeline: Pipeline) -> tuple[type[Filter], ...]:
    """Return the filters that are of no use on the stream of the first: an optional shuffle, and what follows it."""
    kinds = [type(each) for each in pipeline.filters]
    begin = next((at for at, kind in enumerate(kinds) if at and kind in (Shuffle, Bitshuffle)), len(kinds))
    required = {type(each.filter) for each in pipeline.stages if not each.optional}
    return tuple(set(kinds[begin:]) - required - {Fletcher32, kinds[0]})
