"""A pipeline: filters with flags, in order, which encode and decode one chunk, possibly after a rounding."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.arguments import FLAG, NUMBER, WHOLE, Kind, instance
from tamis.errors import MissingFilterError, ParameterError, StreamError, TamisError, located
from tamis.filters import ChunkType, Data, Filter, Stage, UnknownFilter, Zfp
from tamis.filters.base import CHUNK, check_arguments
from tamis.filters.registry import NONE
from tamis.library_lock import imported
from tamis.rounding import Rounding

MAX_FILTERS = 32
"""Limit of filters: a chunk's filter mask has 32 bits."""


_STAGES = instance("filters such as [tamis.Shuffle(), tamis.Deflate(4)]", Iterable)
_ERROR = instance("an error of tamis", TamisError)
_FILTERS = Kind(
    "classes of filters such as (tamis.Zfp,)",
    lambda value: (
        (type(value) is tuple and not value)
        or (isinstance(value, Collection) and all(isinstance(item, type) for item in value))
    ),
)


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Filters in the order in which they run on writing; reading undoes them in reverse order.

    Parameters
    ----------
    stages
        Stages, or filters, which get their default flag. A filter that encodes values, such as zfp, must be the
        first, unless the whole pipeline was read from a file. A rounding may come before all filters, which must then
        be lossless.
    bound
        The largest allowed error, instead of the sum of the filters' own; None to use that. zfp, whose errors are a
        fraction of its tolerance, can keep a smaller bound, which must be proven for each chunk.

    Attributes
    ----------
    stages
        The stages, without a rounding, which is not a filter of the file.
    rounding
        Rounding of the values before the filters; None if there is none.
    filters
        The filters of the stages.
    bound
        The bound that was given.
    error_bound
        Largest allowed absolute error of a value, in units of the data: the given bound, or that of the filters and the
        rounding; 0 if lossless, None if there is no bound, or only a relative one of the rounding.

    Raises
    ------
    ParameterError
        If the pipeline is invalid.

    Examples
    --------
    >>> Pipeline.parse("zfp(accuracy=0.1)|fletcher32")
    Pipeline.parse('zfp(accuracy=0.1)|fletcher32')
    """

    stages: tuple[Stage, ...]
    rounding: Rounding | None
    bound: float | None

    # Stored, because they are needed several times for each chunk.
    filters: tuple[Filter, ...] = field(init=False, repr=False, compare=False)
    error_bound: float | None = field(init=False, repr=False, compare=False)
    _hash: int = field(init=False, repr=False, compare=False)

    def __init__(self, stages: Iterable[Stage | Filter | Rounding] = (), *, bound: float | None = None) -> None:
        _STAGES.check("stages", stages)
        NUMBER.check_optional("bound", bound)
        steps = [step if isinstance(step, Rounding) else _stage(step) for step in stages]
        rounding, all_stages = _divided(steps)
        object.__setattr__(self, "stages", all_stages)
        object.__setattr__(self, "rounding", rounding)
        object.__setattr__(self, "filters", tuple(stage.filter for stage in all_stages))
        object.__setattr__(self, "bound", bound)
        object.__setattr__(self, "error_bound", _own_bound(all_stages, rounding) if bound is None else bound)
        object.__setattr__(self, "_hash", hash((rounding, all_stages, bound)))
        if len(all_stages) > MAX_FILTERS:
            raise ParameterError(
                f"expected at most {MAX_FILTERS} filters, one for each bit of a chunk's mask, got {len(all_stages)}"
            )
        if not all(stage.stored is not None for stage in all_stages):
            self._refuse_values_after_bytes()

    @classmethod
    def parse(cls, text: str) -> Pipeline:
        """Read tamis text, such as ``zfp(accuracy=0.1)|fletcher32`` or ``bitround(keepbits=7)|shuffle|deflate(4)``.

        Raises
        ------
        ParameterError
            If it is malformed, with the position; or if the pipeline is invalid.
        """
        if not isinstance(text, str):
            raise ParameterError(f"expected the text of filters such as 'shuffle|deflate(4)', got {text!r}")
        return cls(imported("tamis.notation.text").parse_filters(text))  # late: most pipelines come from files

    @property
    def zfp(self) -> Zfp | None:
        """The zfp filter, if there is one."""
        return next((candidate for candidate in self.filters if isinstance(candidate, Zfp)), None)

    @property
    def bounded(self) -> Filter | None:
        """The filter that encodes values with an error that it can bound, such as zfp, if there is one."""
        return next((candidate for candidate in self.filters if candidate.bounds_errors), None)

    @property
    def without_rounding(self) -> Pipeline:
        """The filters alone."""
        return self if self.rounding is None else Pipeline(self.stages)

    def within(self, bound: float | None) -> Pipeline:
        """Return the filters with another allowed error, or their own for None; see `bound`."""
        NUMBER.check_optional("bound", bound)
        return self if bound == self.bound else Pipeline(self.stages, bound=bound)

    def check(self, chunk: ChunkType) -> None:
        """Raise ParameterError if a filter, optional or not, cannot encode such chunks, or values cannot be rounded."""
        CHUNK.check("chunk", chunk)
        if self.rounding is not None:
            self.rounding.check(chunk.dtype)
            chunk = ChunkType(self.rounding.stored_type(chunk.dtype), chunk.shape)
        for checked in self.filters:
            with located(filter=checked):
                checked.check(chunk)
            count = sum(other.id == checked.id for other in self.filters)
            if count > 1 and checked.stored(chunk) != checked.requested:
                raise ParameterError(
                    f"expected {checked.name} once in a pipeline, got it {count} times in {self}: HDF5 completes the"
                    " parameters of the first only"
                ).at(filter=checked)

    def refuse_bound(self) -> None:
        """Raise ParameterError if a bound stands for parameters; an optional filter would just be left out."""
        for item in self.filters[:1]:
            if item.open_bound is not None:
                item.requested  # noqa: B018  # raises

    def check_encodable(self) -> None:
        """Raise MissingFilterError, with advice, if a filter, optional or not, cannot be encoded here."""
        for i, stage in enumerate(self.stages):
            if reason := stage.filter.unencodable():
                raise self.name_filter(i, MissingFilterError(reason))

    def encode(
        self, values: NDArray[Any], *, skip: Sequence[type[Filter]] = (), prove: bool = True
    ) -> tuple[bytes, int]:
        """Encode the values of one chunk, like HDF5.

        Parameters
        ----------
        values
            A whole chunk, of the type of the file.
        skip
            Filters to skip, recorded in the mask.
        prove
            Whether zfp in accuracy mode decodes and compares chunks whose bound is in doubt, like the plugin; False for
            callers that compare themselves.

        Returns
        -------
        bytes, int
            The encoded chunk and its filter mask: bit i is set if filter i was skipped, on request or because it is
            optional and failed.

        Raises
        ------
        DataError, MissingFilterError, ParameterError, StreamError
            If a required filter fails for such chunks (see `check`) or for these values; names the filter.
        """
        _FILTERS.check("skip", skip)
        FLAG.check("prove", prove)
        self.refuse_bound()
        if self.rounding is not None:
            raise ParameterError(
                f"expected filters alone, got {self}: rounding depends on missing values and positions in the array, so"
                " round them first, pipeline.rounding.round(values, …), and encode them by pipeline.without_rounding"
            )
        # np.ma is named last, because numpy imports it on first use, which takes long.
        if type(values) is not np.ndarray and isinstance(values, np.ma.MaskedArray):
            raise ParameterError("expected plain values, got a masked array: fill it first, values.filled(…)")
        values = np.asarray(values)
        if values.dtype.hasobject:
            raise ParameterError(f"expected values that a file can hold, got Python objects of {values.dtype}")
        return self._run(_bytes_of(values), ChunkType(values.dtype, values.shape), 0, skip, prove=prove)

    def encode_rest(self, data: Data, chunk: ChunkType, *, skip: Sequence[type[Filter]] = ()) -> tuple[bytes, int]:
        """Encode the output of the first filter with the filters after it; see `encode`."""
        check_arguments(data, chunk, ())
        _FILTERS.check("skip", skip)
        return self._run(data, chunk, 1, skip)

    def _run(
        self, data: Data, chunk: ChunkType, begin: int, skip: Sequence[type[Filter]], *, prove: bool = True
    ) -> tuple[bytes, int]:
        """Run the filters of a chunk from the one at `begin` on; return the encoded chunk and its mask."""
        mask = 0
        skipped = tuple(skip)
        for i, stage in enumerate(self.stages[begin:], begin):
            if isinstance(stage.filter, skipped):
                mask |= 1 << i
                continue
            try:
                data = _encode_stage(stage, data, chunk, prove=prove)
            except TamisError as error:
                if not stage.optional:
                    self.name_filter(i, error)
                    raise
                mask |= 1 << i
        return bytes(data), mask

    def decode(self, data: Data, mask: int, chunk: ChunkType, least_nbytes: int | None = None) -> NDArray[Any]:
        """Undo `encode`.

        Parameters
        ----------
        data
            The encoded chunk.
        mask
            Its filter mask: filters whose bit is set were skipped.
        chunk
            Type and shape of the chunk.
        least_nbytes
            Bytes that must be there if the end of a partial chunk is not stored, which is zeros then; by default all.

        Returns
        -------
        array
            An array of that type and shape; may be read-only.

        Raises
        ------
        StreamError
            If the bytes are damaged; names the filter that failed.
        MissingFilterError
            If an applied filter is not installed, with advice.
        ParameterError
            If the type cannot be in a file.
        """
        check_arguments(data, chunk, ())
        if not isinstance(mask, (int, np.integer)):
            raise ParameterError(f"expected a whole number as the filter mask, got {mask!r}")
        data = self._undo(data, mask, chunk, 0)
        if chunk.dtype.hasobject:
            raise ParameterError(f"expected the type that a file has, got Python objects of {chunk.dtype}")
        if len(data) != chunk.nbytes:
            least = chunk.nbytes if least_nbytes is None else least_nbytes
            if not least <= len(data) < chunk.nbytes:
                raise StreamError(f"expected a chunk of {chunk.nbytes} bytes, got {len(data)} after decoding {self}")
            data = b"".join((data, bytes(chunk.nbytes - len(data))))
        return np.frombuffer(data, np.uint8).view(chunk.dtype).reshape(chunk.shape)

    def decoded_nbytes(self, data: Data, mask: int, chunk: ChunkType) -> int:
        """Return the bytes of a decoded chunk, which are fewer than its values where the file stores a part of it."""
        return len(self._undo(data, mask, chunk, 0))

    def encode_with(self, values: NDArray[Any], mask: int) -> bytes:
        """Encode the values of a chunk by the filters that a mask does not skip; raise the error of one that fails."""
        chunk = ChunkType(values.dtype, values.shape)
        data = _bytes_of(values)
        for i, stage in enumerate(self.stages):
            if not mask >> i & 1:
                data = stage.filter.encode_required(data, chunk, _parameters(stage, chunk))
        return bytes(data)

    def decode_rest(self, data: Data, mask: int, chunk: ChunkType) -> Data:
        """Undo `encode_rest`: return the output of the first filter, which must not be skipped."""
        check_arguments(data, chunk, ())
        WHOLE.check("mask", mask)
        return self._undo(data, mask, chunk, 1)

    def _undo(self, data: Data, mask: int, chunk: ChunkType, end: int) -> Data:
        """Undo the filters of a chunk from the last one back to the one at `end`."""
        for i in range(len(self.stages) - 1, end - 1, -1):
            if not mask >> i & 1:
                stage = self.stages[i]
                try:
                    data = stage.filter.decode(data, chunk, _parameters(stage, chunk))
                except (StreamError, MissingFilterError, ParameterError) as error:
                    self.name_filter(i, error)
                    raise
        return data

    def name_filter(self, index: int, error: TamisError) -> TamisError:
        """Add to an error which filter it is about, and return the error."""
        WHOLE.check("index", index)
        _ERROR.check("error", error)
        if not 0 <= index < len(self.stages):
            raise ParameterError(f"expected the index of a filter in {self}, got {index}")
        stage = self.stages[index]
        return error.at(f"filter {index + 1}, {stage.filter} ({stage.flag})", filter=stage.filter)

    def missing(self) -> tuple[str, ...]:
        """Return what is missing for each filter that cannot be decoded here."""
        reasons = []
        for candidate in dict.fromkeys(self.filters):
            if isinstance(candidate, UnknownFilter):
                reasons.append(candidate.in_words())
            elif reason := candidate.undecodable():
                reasons.append(reason)
        return tuple(reasons)

    def _refuse_values_after_bytes(self) -> None:
        """Raise ParameterError if a filter that needs values gets the bytes of another one."""
        names = [member.name for member in self.filters]
        for index, member in enumerate(self.filters):
            if index and member.needs_values:
                if member.name in names[:index]:
                    raise ParameterError(
                        f"expected {member.name} once in a pipeline, got it {names.count(member.name)} times"
                    )
                rest = [name for i, name in enumerate(names) if i != index]
                raise ParameterError(
                    f"expected {member.name} first in a pipeline, got {names[index - 1]} before it: {member.name} "
                    f"needs unfiltered values; write {'|'.join([f'{member.name}(…)', *rest])}"
                )

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        return _text(self)

    def __repr__(self) -> str:
        return f"Pipeline.parse({str(self)!r})"


def _divided(steps: Sequence[Stage | Rounding]) -> tuple[Rounding | None, tuple[Stage, ...]]:
    """Return the rounding and the filters of a pipeline, whose order and kinds are checked."""
    roundings = [step for step in steps if isinstance(step, Rounding)]
    stages = tuple(step for step in steps if isinstance(step, Stage))
    if not roundings:
        return None, stages
    rounding, *others = roundings
    if others:
        raise ParameterError(
            f"expected one rounding, got {rounding} and {others[0]}: their errors would add up; give the coarser one"
        ).at(filter=others[0])
    rest = "|".join(map(str, stages))
    if steps[0] is not rounding:
        raise ParameterError(
            f"expected {rounding} before all filters, got {stages[0].filter.name} before it: filters give bytes, and it"
            f" rounds values; write {rounding}|{rest}"
        ).at(filter=rounding)
    for stage in stages:
        if stage.filter.error_bound != 0:
            raise ParameterError(
                f"expected lossless filters after {rounding}, got {stage.filter}: its error would add to that of the "
                f"rounding; use one of the two, with shuffle|deflate(4) or the like after a rounding"
            ).at(filter=stage.filter)
    return rounding, stages


def _own_bound(stages: Iterable[Stage], rounding: Rounding | None) -> float | None:
    """Return the largest absolute error that filters and a rounding allow; None if one of them has no such bound."""
    bounds = [stage.filter.error_bound for stage in stages]
    if rounding is not None:
        bounds.append(rounding.absolute_bound)
    return None if None in bounds else sum(filter(None, bounds))


def _bytes_of(values: NDArray[Any]) -> Data:
    """Return the bytes of values, in C order."""
    return np.ascontiguousarray(values).reshape(-1).view(np.uint8).data


def _stage(value: object) -> Stage:
    if isinstance(value, Filter):
        return Stage.of(value)
    if isinstance(value, Stage):
        return value
    raise ParameterError(f"expected a sequence of filters, or text for Pipeline.parse, got {value!r}")


def as_pipeline(value: object) -> Pipeline:
    """Return a pipeline unchanged, a filter or rounding as a pipeline of one, and tamis text parsed."""
    if isinstance(value, Pipeline):
        return value
    if isinstance(value, (Filter, Stage, Rounding)):
        return Pipeline([value])
    if isinstance(value, str):
        return Pipeline.parse(value)
    raise ParameterError(f"expected a pipeline, a filter or their text, got {value!r}")


def with_rounding(rounding: object, filters: Pipeline) -> Pipeline:
    """Return filters after a rounding, which is an object or its text."""
    first = as_pipeline(rounding)
    if first.rounding is None or first.stages:
        raise ParameterError(f"expected a rounding such as absolute(0.125), got {rounding}")
    if filters.rounding is not None:
        raise ParameterError(f"expected only filters after the rounding {first}, got {filters}")
    return Pipeline((first.rounding, *filters.stages))


@lru_cache(maxsize=1024)  # needed for each dataset, and most datasets share a pipeline
def _text(pipeline: Pipeline) -> str:
    steps = pipeline.stages if pipeline.rounding is None else (pipeline.rounding, *pipeline.stages)
    return "|".join(map(str, steps)) or NONE


@lru_cache(maxsize=1024)
def _derived(member: Filter, chunk: ChunkType) -> tuple[int, ...]:
    return member.stored(chunk)


def _parameters(stage: Stage, chunk: ChunkType) -> tuple[int, ...]:
    """Return the stored parameters of a filter, derived from type and shape of the chunk if no file has them."""
    return _derived(stage.filter, chunk) if stage.stored is None else stage.stored


def _encode_stage(stage: Stage, data: Data, chunk: ChunkType, *, prove: bool) -> Data:
    if reason := stage.filter.unencodable():
        raise MissingFilterError(reason)
    if not prove and isinstance(stage.filter, Zfp):
        return stage.filter.encode_unproven(data, chunk)
    encode = stage.filter.encode if stage.optional else stage.filter.encode_required
    return encode(data, chunk, _parameters(stage, chunk))
