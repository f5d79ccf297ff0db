"""An ordered chain of filters with their flags, and what it does to one chunk."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from tamis.errors import MissingFilterError, ParameterError, StreamError, TamisError
from tamis.filters import ChunkType, Data, Filter, Stage, UnknownFilter, Zfp
from tamis.notation.text import NONE, parse_filters

MAX_FILTERS = 32
"""A chunk's filter mask has 32 bits."""


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Filters in the order in which they run on writing; reading undoes them from the last to the first.

    Parameters
    ----------
    stages
        Stages, or filters, which take their own flag. What codes values, such as zfp, may only be the first, unless
        all of it was read from a file.

    Attributes
    ----------
    filters
        The filters of the stages.
    error_bound
        Largest absolute error of a value, in units of the data; 0 where lossless, None where there is no bound.

    Raises
    ------
    ParameterError
        If such a pipeline cannot be right.

    Examples
    --------
    >>> Pipeline.parse("zfp(accuracy=0.1)|fletcher32")
    Pipeline.parse('zfp(accuracy=0.1)|fletcher32')
    """

    stages: tuple[Stage, ...]

    # Asked for each chunk, several times.
    filters: tuple[Filter, ...] = field(init=False, repr=False, compare=False)
    error_bound: float | None = field(init=False, repr=False, compare=False)
    _hash: int = field(init=False, repr=False, compare=False)

    def __init__(self, stages: Iterable[Stage | Filter] = ()) -> None:
        made = tuple(_stage(each) for each in stages)
        object.__setattr__(self, "stages", made)
        object.__setattr__(self, "filters", tuple(each.filter for each in made))
        bounds = [each.error_bound for each in self.filters]
        object.__setattr__(self, "error_bound", None if None in bounds else sum(filter(None, bounds)))
        object.__setattr__(self, "_hash", hash(made))
        if len(made) > MAX_FILTERS:
            raise ParameterError(f"expected at most {MAX_FILTERS} filters, which a chunk's mask has, got {len(made)}")
        if not all(each.stored is not None for each in made):
            self._refuse_values_after_bytes()

    @classmethod
    def parse(cls, text: str) -> Pipeline:
        """Read tamis text, such as ``zfp(accuracy=0.1)|shuffle|deflate(4)|fletcher32``.

        Raises
        ------
        ParameterError
            If it is malformed, says where; or if such a pipeline cannot be right.
        """
        if not isinstance(text, str):
            raise ParameterError(f"expected the text of filters such as 'shuffle|deflate(4)', got {text!r}")
        return cls(parse_filters(text))

    @property
    def zfp(self) -> Zfp | None:
        """The zfp filter, if there is one."""
        return next((each for each in self.filters if isinstance(each, Zfp)), None)

    def check(self, chunk: ChunkType) -> None:
        """Raise ParameterError where a filter, optional or not, cannot take such chunks."""
        for each in self.filters:
            each.check(chunk)
            count = sum(other.id == each.id for other in self.filters)
            if count > 1 and each.stored(chunk) != each.requested:
                raise ParameterError(
                    f"expected {each.name} once in a pipeline, got it {count} times in {self}: HDF5 completes the"
                    " parameters of the first only"
                )

    def check_encodable(self) -> None:
        """Raise MissingFilterError where a filter, optional or not, cannot be encoded here; says how to get it."""
        for i, stage in enumerate(self.stages):
            if reason := stage.filter.unencodable():
                _fail(stage, i, MissingFilterError(reason))

    def encode(
        self, values: NDArray[Any], *, skip: Sequence[type[Filter]] = (), prove: bool = True
    ) -> tuple[bytes, int]:
        """Encode the values of one chunk, as HDF5 would.

        Parameters
        ----------
        values
            A whole chunk, of the type that the file has.
        skip
            Filters to leave out, which the mask then says.
        prove
            Whether zfp in accuracy mode compares what it does not keep for sure, as the plugin does; False for callers
            that compare by themselves.

        Returns
        -------
        bytes, int
            What to store, and the chunk's filter mask: bit i is set where filter i was left out, on demand or because
            it is optional and could not be applied.

        Raises
        ------
        DataError, MissingFilterError, ParameterError, StreamError
            If a required filter cannot be applied, to such chunks at all (see `check`) or to these values; names it.
        """
        # numpy takes long to import numpy.ma, which it does when that is first named.
        if type(values) is not np.ndarray and isinstance(values, np.ma.MaskedArray):
            raise ParameterError("expected plain values, got a masked array: fill it first, values.filled(…)")
        values = np.asarray(values)
        if values.dtype.hasobject:
            raise ParameterError(f"expected values as a file has them, got Python objects of {values.dtype}")
        chunk = ChunkType(values.dtype, values.shape)
        data: Data = np.ascontiguousarray(values).reshape(-1).view(np.uint8).data
        return self._encoded(data, chunk, 0, skip, prove=prove)

    def encode_rest(self, data: Data, chunk: ChunkType, *, skip: Sequence[type[Filter]] = ()) -> tuple[bytes, int]:
        """Encode what the first filter made of a chunk by those behind it: see `encode`."""
        return self._encoded(data, chunk, 1, skip)

    def _encoded(
        self, data: Data, chunk: ChunkType, begin: int, skip: Sequence[type[Filter]], *, prove: bool = True
    ) -> tuple[bytes, int]:
        mask = 0
        skipped = tuple(skip)
        for i, stage in enumerate(self.stages[begin:], begin):
            if isinstance(stage.filter, skipped):
                mask |= 1 << i
                continue
            try:
                data = _encoded(stage, data, chunk, prove=prove)
            except TamisError as error:
                if not stage.optional:
                    _fail(stage, i, error)
                mask |= 1 << i
        return bytes(data), mask

    def decode(self, data: Data, mask: int, chunk: ChunkType) -> NDArray[Any]:
        """Undo `encode`.

        Parameters
        ----------
        data
            Bytes of the chunk in the file.
        mask
            Its filter mask: filters whose bit is set were left out.
        chunk
            Type and shape of the chunk.

        Returns
        -------
        array
            Of that type and shape; it may be read-only.

        Raises
        ------
        StreamError
            If the bytes are damaged; names the filter that found it.
        MissingFilterError
            If a filter that was applied is not here; says how to get it.
        ParameterError
            If the type is none that a file has.
        """
        if not isinstance(mask, (int, np.integer)):
            raise ParameterError(f"expected a whole number as the filter mask, got {mask!r}")
        for i in range(len(self.stages) - 1, -1, -1):
            if not mask >> i & 1:
                stage = self.stages[i]
                try:
                    data = stage.filter.decode(data, chunk, _parameters(stage, chunk))
                except (StreamError, MissingFilterError, ParameterError) as error:
                    _fail(stage, i, error)
        if chunk.dtype.hasobject:
            raise ParameterError(f"expected the type that a file has, got Python objects of {chunk.dtype}")
        if len(data) != chunk.nbytes:
            raise StreamError(f"expected a chunk of {chunk.nbytes} bytes, got {len(data)} after decoding {self}")
        return np.frombuffer(data, np.uint8).view(chunk.dtype).reshape(chunk.shape)

    def missing(self) -> tuple[str, ...]:
        """Return for each filter that could not be decoded here what is missing."""
        found = []
        for each in dict.fromkeys(self.filters):
            if isinstance(each, UnknownFilter):
                found.append(each.in_words())
            elif absent := each.undecodable():
                found.append(absent)
        return tuple(found)

    def _refuse_values_after_bytes(self) -> None:
        names = [each.name for each in self.filters]
        for at, each in enumerate(self.filters):
            if at and each.needs_values:
                if each.name in names[:at]:
                    raise ParameterError(
                        f"expected {each.name} once in a pipeline, got it {names.count(each.name)} times"
                    )
                rest = [name for i, name in enumerate(names) if i != at]
                raise ParameterError(
                    f"expected {each.name} first in a pipeline, got {names[at - 1]} before it: {each.name} needs the"
                    f" values themselves; write {'|'.join([f'{each.name}(…)', *rest])}"
                )

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        return _text(self)

    def __repr__(self) -> str:
        return f"Pipeline.parse({str(self)!r})"


def _stage(each: object) -> Stage:
    if isinstance(each, Filter):
        return Stage.of(each)
    if isinstance(each, Stage):
        return each
    raise ParameterError(f"expected filters in a row, or Pipeline.parse and their text, got {each!r}")


def as_pipeline(value: object) -> Pipeline:
    """Take a pipeline as it is, a filter as a pipeline of one, and text as tamis text.

    Raises
    ------
    ParameterError
        If it is anything else, or text that cannot be read.
    """
    if isinstance(value, Pipeline):
        return value
    if isinstance(value, (Filter, Stage)):
        return Pipeline([value])
    if isinstance(value, str):
        return Pipeline.parse(value)
    raise ParameterError(f"expected a pipeline, a filter or their text, got {value!r}")


@lru_cache(maxsize=1024)  # asked for each dataset, of which most have the same
def _text(pipeline: Pipeline) -> str:
    return "|".join(str(each) for each in pipeline.stages) or NONE


@lru_cache(maxsize=1024)
def _derived(each: Filter, chunk: ChunkType) -> tuple[int, ...]:
    return each.stored(chunk)


def _parameters(stage: Stage, chunk: ChunkType) -> tuple[int, ...]:
    return _derived(stage.filter, chunk) if stage.stored is None else stage.stored


def _encoded(stage: Stage, data: Data, chunk: ChunkType, *, prove: bool) -> Data:
    if reason := stage.filter.unencodable():
        raise MissingFilterError(reason)
    if not prove and isinstance(stage.filter, Zfp):
        return stage.filter.encode_unproven(data, chunk)
    return stage.filter.encode(data, chunk, _parameters(stage, chunk))


def _fail(stage: Stage, index: int, error: TamisError) -> NoReturn:
    raise type(error)(f"filter {index + 1}, {stage.filter} ({stage.flag}): {error}") from error
