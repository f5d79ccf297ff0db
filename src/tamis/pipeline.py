"""An ordered chain of filters, and what it does to one chunk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tamis.errors import ParameterError, StreamError
from tamis.filters import ChunkType, Filter, Zfp
from tamis.notation.text import NONE, parse_filters


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Filters in the order in which they run on writing; reading undoes them from the last to the first.

    Parameters
    ----------
    filters
        zfp, which needs the values themselves, may only be the first.

    Examples
    --------
    >>> Pipeline.parse("zfp(accuracy=0.1)|fletcher32")
    Pipeline.parse('zfp(accuracy=0.1)|fletcher32')
    """

    filters: tuple[Filter, ...]

    def __post_init__(self) -> None:
        names = [each.name for each in self.filters]
        if "zfp" in names[1:]:
            at = names.index("zfp", 1)
            raise ParameterError(
                f"expected zfp first in a pipeline, got {names[at - 1]} before it: zfp needs the values themselves;"
                f" write {'|'.join(['zfp(…)', *(name for name in names if name != 'zfp')])}"
            )

    @classmethod
    def parse(cls, text: str) -> Pipeline:
        """Read tamis text, such as ``zfp(accuracy=0.1)|shuffle|deflate(4)|fletcher32``.

        Raises
        ------
        ParameterError
            If it is malformed, says where; or if such a pipeline cannot be right.
        """
        return cls(tuple(parse_filters(text)))

    @property
    def zfp(self) -> Zfp | None:
        """The zfp filter, if there is one."""
        return next((each for each in self.filters if isinstance(each, Zfp)), None)

    def check(self, chunk: ChunkType) -> None:
        """Raise ParameterError where such chunks cannot be written: a filter cannot take them, or is there twice."""
        for each in self.filters:
            count = sum(other.id == each.id for other in self.filters)
            if count > 1:
                raise ParameterError(
                    f"expected each filter once in a pipeline, got {each.name} {count} times in {self}"
                )
        for each in self.filters:
            each.check(chunk)

    def encode(self, data: bytes, chunk: ChunkType, *, skip: Sequence[type[Filter]] = ()) -> tuple[bytes, int]:
        """Encode the bytes of one chunk.

        Parameters
        ----------
        data
            Values of the chunk in C order, in the byte order of `chunk`.
        chunk
            Their type and the shape of the chunk.
        skip
            Filters to leave out, which the mask then says.

        Returns
        -------
        bytes, int
            What to store, and the chunk's filter mask: bit i is set where filter i was left out.
        """
        mask = 0
        for i, each in enumerate(self.filters):
            if isinstance(each, tuple(skip)):
                mask |= 1 << i
            else:
                data = each.encode(data, chunk)
        return data, mask

    def decode(self, data: bytes, mask: int, chunk: ChunkType) -> bytes:
        """Undo `encode`.

        Raises
        ------
        StreamError
            If the bytes are damaged; names the filter that found it.
        """
        for i, each in reversed(list(enumerate(self.filters))):
            if not mask >> i & 1:
                data = each.decode(data, chunk)
        if len(data) != chunk.nbytes:
            raise StreamError(f"expected a chunk of {chunk.nbytes} bytes, got {len(data)} after decoding {self}")
        return data

    def __str__(self) -> str:
        return "|".join(str(each) for each in self.filters) or NONE

    def __repr__(self) -> str:
        return f"Pipeline.parse({str(self)!r})"
