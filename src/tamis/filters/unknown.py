"""A filter that tamis does not know, kept as it is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import ClassVar, Self

import numpy as np

from tamis.arguments import instance
from tamis.errors import MissingFilterError, ParameterError, StreamError
from tamis.filters.base import ChunkType, Data, Filter

REGISTERED = {
    257: "hzip",
    305: "LZO",
    307: "BZIP2",
    32000: "LZF",
    32001: "Blosc",
    32002: "MAFISC",
    32003: "Snappy",
    32004: "LZ4",
    32005: "APAX",
    32006: "CBF",
    32007: "JPEG-XR",
    32008: "bitshuffle",
    32009: "SPDP",
    32010: "LPC-Rice",
    32011: "CCSDS-123",
    32012: "JPEG-LS",
    32013: "H5Z-ZFP",
    32014: "fpzip",
    32015: "Zstandard",
    32016: "B3D",
    32017: "SZ",
    32018: "FCIDECOMP",
    32019: "JPEG",
    32020: "VBZ",
    32021: "FAPEC",
    32022: "BitGroom",
    32023: "Granular BitRound",
    32024: "SZ3",
    32025: "Delta-Rice",
    32026: "Blosc2",
    32027: "FLAC",
    32028: "H5Z-SPERR",
    32029: "TERSE/PROLIX",
    32030: "FFMPEG",
    32031: "JPEG2000",
    32032: "BitRound",
    32033: "HTJ2K",
}


_LONGEST_LABEL = 30

MAX_ID = 65535
"""HDF5 stores ids in 16 bits."""


_VALUES = instance("whole numbers such as (4, 96)", Iterable)


@dataclass(frozen=True, slots=True)
class UnknownFilter(Filter):
    """A filter by its number. Everything about it is kept; its bytes cannot be encoded or decoded.

    Parameters
    ----------
    id
        HDF5 filter id, 0 to 65535.
    values
        Parameters as stored or requested, 32-bit words.
    label
        The filter's name in the file.
    reason
        Why the parameters of a known id cannot be read; empty if tamis does not know the id.
    """

    id: int  # type: ignore[misc]  # an id for each instance, not for the class
    values: tuple[int, ...] = ()
    label: str = field(default="", compare=False)
    reason: str = field(default="", compare=False)
    name: ClassVar[str] = "filter"
    registered_name: ClassVar[str] = ""
    group_safe: ClassVar[bool] = True  # nothing is known against it

    def __post_init__(self) -> None:
        """Check the numbers."""
        object.__setattr__(self, "id", _whole(self.id, MAX_ID, "a filter id"))
        _VALUES.check("values", self.values)
        subject = f"parameters of filter {self.id}"
        object.__setattr__(self, "values", tuple(_whole(value, 0xFFFFFFFF, subject) for value in self.values))

    @classmethod
    def from_values(cls, values: tuple[int, ...]) -> Self:
        """Refuse: parameters alone do not tell the id."""
        raise ParameterError("expected the id of a filter and its parameters, got only parameters")

    @property
    def requested(self) -> tuple[int, ...]:
        """The values."""
        return self.values

    def unencodable(self) -> str:
        """Return why tamis cannot encode it."""
        return self._refusal()

    def encode(self, data: Data, chunk: ChunkType, stored: tuple[int, ...]) -> Data:
        """Refuse."""
        raise MissingFilterError(self._refusal())

    def decode(self, data: Data, chunk: ChunkType, stored: tuple[int, ...]) -> Data:
        """Refuse."""
        if self.reason:
            raise StreamError(self._refusal())
        raise MissingFilterError(self._refusal())

    @property
    def shown_name(self) -> str:
        """Label in the file, shortened, with the id."""
        # Some labels are whole sentences, or have a web address after a semicolon.
        label = self.label.partition(";")[0].strip()
        if len(label) > _LONGEST_LABEL:
            label = REGISTERED.get(self.id, label)
        return f"{label or 'filter'} [{self.id}]"

    def in_words(self, stored: tuple[int, ...] = ()) -> str:
        """Name, id and parameters."""
        text = f"{self.label or self.name} [{self.id}]"
        if self.reason:
            return f"{text}, not readable: {self.reason}"
        return f"{text} {','.join(map(str, self.values))}".rstrip()

    def _refusal(self) -> str:
        title = f"filter {self.id}" + (f" ({self.label})" if self.label else "")
        if self.reason:
            return f"{title}: {self.reason}"
        return f"tamis does not know {title}: a package can add it (entry points tamis.filters)"

    def __str__(self) -> str:
        return f"filter({','.join(map(str, (self.id, *self.values)))})"


def _whole(value: object, most: int, subject: str) -> int:
    """Return an int, from Python or numpy, of 0 to `most`."""
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or not 0 <= value <= most:
        raise ParameterError(f"expected {subject} of 0 to {most}, got {value!r}")
    return int(value)
