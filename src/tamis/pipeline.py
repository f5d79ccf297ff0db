"""A pipeline: filters with their flags, in order, which encode and decode one chunk."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.errors import MissingFilterError, ParameterError, StreamError, TamisError, located
from tamis.filters import ChunkType, Data, Filter, Stage, UnknownFilter, Zfp
from tamis.notation.text import NONE, parse_filters

MAX_FILTERS = 32
"""Limit of filters: a chunk's filter mask has 32 bits."""


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Filters in the order in which they run on writing; reading undoes them from the last to the first.

    Parameters
    ----------
    stages
        Stages, or filters, which get their default flag. A filter that encodes values, such as zfp, must be the
        first, unless the whole pipeline was read from a file.

    Attributes
    ----------
    filters
        The filters of the stages.
    error_bound
        Largest absolute error of a value, in units of the data; 0 if lossless, None if there is no bound.

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

    # Stored, because they are needed several times for each chunk.
    filters: tuple[Filter, ...] = field(init=False, repr=False, compare=False)
    error_bound: float | None = field(init=False, repr=False, compare=False)
    _hash: int = field(init=False, repr=False, compare=False)

    def __init__(self, stages: Iterable[Stage | Filter] = ()) -> None:
        all_stages = tuple(_stage(stage) for stage in stages)
        object.__setattr__(self, "stages", all_stages)
        object.__setattr__(self, "filters", tuple(stage.filter for stage in all_stages))
        bounds = [kind.error_bound for kind in self.filters]
        object.__setattr__(self, "error_bound", None if None in bounds else sum(filter(None, bounds)))
        object.__setattr__(self, "_hash", hash(all_stages))
        if len(all_stages) > MAX_FILTERS:
            raise ParameterError(
                f"expected at most {MAX_FILTERS} filters, one for each bit of a chunk's mask, got {len(all_stages)}"
            )
        if not all(stage.stored is not None for stage in all_stages):
            self._refuse_values_after_bytes()

    @classmethod
    def parse(cls, text: str) -> Pipeline:
        """Read tamis text, such as ``zfp(accuracy=0.1)|shuffle|deflate(4)|fletcher32``.

        Raises
        ------
        ParameterError
            If it is malformed, with the position; or if the pipeline is invalid.
        """
        if not isinstance(text, str):
            raise ParameterError(f"expected the text of filters such as 'shuffle|deflate(4)', got {text!r}")
        return cls(parse_filters(text))

    @property
    def zfp(self) -> Zfp | None:
        """The zfp filter, if there is one."""
        return next((candidate for candidate in self.filters if isinstance(candidate, Zfp)), None)

    def check(self, chunk: ChunkType) -> None:
        """Raise ParameterError if a filter, optional or not, cannot encode such chunks."""
        for checked in self.filters:
            with located(filter=checked):
                checked.check(chunk)
            count = sum(other.id == checked.id for other in self.filters)
            if count > 1 and checked.stored(chunk) != checked.requested:
                raise ParameterError(
                    f"expected {checked.name} once in a pipeline, got it {count} times in {self}: HDF5 completes the"
                    " parameters of the first only"
                ).at(filter=checked)

    def check_encodable(self) -> None:
        """Raise MissingFilterError, with advice, if a filter, optional or not, cannot be encoded here."""
        for i, stage in enumerate(self.stages):
            if reason := stage.filter.unencodable():
                raise self.name_filter(i, MissingFilterError(reason))

    def encode(
        self, values: NDArray[Any], *, skip: Sequence[type[Filter]] = (), prove: bool = True
    ) -> tuple[bytes, int]:
        """Encode the values of one chunk, as HDF5 does.

        Parameters
        ----------
        values
            A whole chunk, of the type of the file.
        skip
            Filters to skip, recorded in the mask.
        prove
            Whether zfp in accuracy mode decodes and compares chunks whose bound is in doubt, as the plugin does; False
            for callers that compare themselves.

        Returns
        -------
        bytes, int
            The encoded chunk and its filter mask: bit i is set if filter i was skipped, on demand or because it is
            optional and failed.

        Raises
        ------
        DataError, MissingFilterError, ParameterError, StreamError
            If a required filter fails for such chunks (see `check`) or for these values; names the filter.
        """
        # np.ma is named last, because numpy imports it on first use, which takes long.
        if type(values) is not np.ndarray and isinstance(values, np.ma.MaskedArray):
            raise ParameterError("expected plain values, got a masked array: fill it first, values.filled(…)")
        values = np.asarray(values)
        if values.dtype.hasobject:
            raise ParameterError(f"expected values that a file can hold, got Python objects of {values.dtype}")
        chunk = ChunkType(values.dtype, values.shape)
        data: Data = np.ascontiguousarray(values).reshape(-1).view(np.uint8).data
        return self._run(data, chunk, 0, skip, prove=prove)

    def encode_rest(self, data: Data, chunk: ChunkType, *, skip: Sequence[type[Filter]] = ()) -> tuple[bytes, int]:
        """Encode the output of the first filter by the filters after it; see `encode`."""
        return self._run(data, chunk, 1, skip)

    def _run(
        self, data: Data, chunk: ChunkType, begin: int, skip: Sequence[type[Filter]], *, prove: bool = True
    ) -> tuple[bytes, int]:
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

    def decode(self, data: Data, mask: int, chunk: ChunkType) -> NDArray[Any]:
        """Undo `encode`.

        Parameters
        ----------
        data
            The encoded chunk.
        mask
            Its filter mask: filters whose bit is set were skipped.
        chunk
            Type and shape of the chunk.

        Returns
        -------
        array
            An array of that type and shape; may be read-only.

        Raises
        ------
        StreamError
            If the bytes are damaged; names the filter that noticed.
        MissingFilterError
            If an applied filter is not installed, with advice.
        ParameterError
            If no file can have this type.
        """
        if not isinstance(mask, (int, np.integer)):
            raise ParameterError(f"expected a whole number as the filter mask, got {mask!r}")
        data = self._undo(data, mask, chunk, 0)
        if chunk.dtype.hasobject:
            raise ParameterError(f"expected the type that a file has, got Python objects of {chunk.dtype}")
        if len(data) != chunk.nbytes:
            raise StreamError(f"expected a chunk of {chunk.nbytes} bytes, got {len(data)} after decoding {self}")
        return np.frombuffer(data, np.uint8).view(chunk.dtype).reshape(chunk.shape)

    def decode_rest(self, data: Data, mask: int, chunk: ChunkType) -> Data:
        """Undo `encode_rest`: return what the first filter made of a chunk, which must not be skipped."""
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
        stage = self.stages[index]
        return error.at(f"filter {index + 1}, {stage.filter} ({stage.flag})", filter=stage.filter)

    def missing(self) -> tuple[str, ...]:
        """Return for each filter that cannot be decoded here what is missing."""
        reasons = []
        for candidate in dict.fromkeys(self.filters):
            if isinstance(candidate, UnknownFilter):
                reasons.append(candidate.in_words())
            elif reason := candidate.undecodable():
                reasons.append(reason)
        return tuple(reasons)

    def _refuse_values_after_bytes(self) -> None:
        names = [member.name for member in self.filters]
        for index, member in enumerate(self.filters):
            if index and member.needs_values:
                if member.name in names[:index]:
                    raise ParameterError(
                        f"expected {member.name} once in a pipeline, got it {names.count(member.name)} times"
                    )
                rest = [name for i, name in enumerate(names) if i != index]
                raise ParameterError(
                    f"expected {member.name} first in a pipeline, got {names[index - 1]} before it: {member.name} needs"
                    f" the values themselves; write {'|'.join([f'{member.name}(…)', *rest])}"
                )

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        return _text(self)

    def __repr__(self) -> str:
        return f"Pipeline.parse({str(self)!r})"


def _stage(value: object) -> Stage:
    if isinstance(value, Filter):
        return Stage.of(value)
    if isinstance(value, Stage):
        return value
    raise ParameterError(f"expected a sequence of filters, or text for Pipeline.parse, got {value!r}")


def as_pipeline(value: object) -> Pipeline:
    """Return a pipeline as it is, a filter as a pipeline of one filter, and tamis text parsed.

    Raises
    ------
    ParameterError
        If the value is anything else, or text that cannot be read.
    """
    if isinstance(value, Pipeline):
        return value
    if isinstance(value, (Filter, Stage)):
        return Pipeline([value])
    if isinstance(value, str):
        return Pipeline.parse(value)
    raise ParameterError(f"expected a pipeline, a filter or their text, got {value!r}")


@lru_cache(maxsize=1024)  # needed for each dataset, and most datasets share a pipeline
def _text(pipeline: Pipeline) -> str:
    return "|".join(str(stage) for stage in pipeline.stages) or NONE


@lru_cache(maxsize=1024)
def _derived(member: Filter, chunk: ChunkType) -> tuple[int, ...]:
    return member.stored(chunk)


def _parameters(stage: Stage, chunk: ChunkType) -> tuple[int, ...]:
    return _derived(stage.filter, chunk) if stage.stored is None else stage.stored


def _encode_stage(stage: Stage, data: Data, chunk: ChunkType, *, prove: bool) -> Data:
    if reason := stage.filter.unencodable():
        raise MissingFilterError(reason)
    if not prove and isinstance(stage.filter, Zfp):
        return stage.filter.encode_unproven(data, chunk)
    return stage.filter.encode(data, chunk, _parameters(stage, chunk))
