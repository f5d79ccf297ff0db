"""What every filter has: an HDF5 id, names, parameters, and a way to encode and decode one chunk's bytes."""

from __future__ import annotations

import importlib
import importlib.util
import math
import operator
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, NamedTuple, Self, TypeAlias

import numpy as np

from tamis.errors import MissingFilterError, ParameterError

_LARGEST = sys.float_info.max

Data: TypeAlias = bytes | bytearray | memoryview
"""Bytes of a chunk, on their way through filters."""


class Request(NamedTuple):
    """A filter as H5Pset_filter gets it: requested parameters, as 32-bit words."""

    id: int
    values: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ChunkType:
    """Type and shape of the values of a chunk, which some parameters are derived from.

    Parameters
    ----------
    dtype
        As in the file.
    shape
        Of the chunk, slowest axis first, unit axes included.
    fill
        Bytes of the dataset's fill value as in the file, which scaleoffset sets apart; empty for zeros.
    """

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    fill: bytes = b""
    # Equal types may differ here alone: numpy does not compare metadata, and what a filter stores depends on it.
    _enums: tuple[bool, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Take what numpy takes for a type, and any sequence of whole numbers as the shape."""
        try:
            object.__setattr__(self, "dtype", np.dtype(self.dtype))
            object.__setattr__(self, "shape", tuple(map(operator.index, self.shape)))
        except (TypeError, ValueError) as error:
            raise ParameterError(
                f"expected type and shape of a chunk, got {self.dtype!r} and {self.shape!r}"
            ) from error
        if min(self.shape, default=0) < 0:
            raise ParameterError(f"expected extents of 0 or more of a chunk, got shape={self.shape}")
        object.__setattr__(self, "_enums", tuple(_enums(self.dtype)))

    @property
    def size(self) -> int:
        """Values of the chunk."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of the unfiltered chunk."""
        return self.dtype.itemsize * self.size

    @property
    def most_nbytes(self) -> int:
        """More bytes than any filter makes of such a chunk: what says that it decodes to more is damaged."""
        # A block of zfp takes up to 4096 bytes, for four values or more.
        return 1024 * self.nbytes + 4096


def is_enum(dtype: np.dtype[Any]) -> bool:
    """Return whether a type is an enumeration of HDF5, which h5py marks by the names of its integers."""
    return bool(dtype.metadata) and "enum" in dtype.metadata  # type: ignore[operator]


def _enums(dtype: np.dtype[Any]) -> Iterator[bool]:
    """Return for each member of a type whether it is an enumeration."""
    if dtype.subdtype is not None:
        yield from _enums(dtype.subdtype[0])
    elif dtype.names:
        for name in dtype.names:
            yield from _enums(dtype.fields[name][0])  # type: ignore[index]
    else:
        yield is_enum(dtype)


@dataclass(frozen=True, slots=True)
class Parameter:
    """What a parameter of a filter means, and what it may be.

    Parameters
    ----------
    about
        Meaning, with the unit.
    low, high
        Bounds of a number, both included.
    choices
        Words, where it is one of them.
    bounds
        What it may be, where that is neither of these.
    real
        Whether it is a number with a fraction.
    """

    about: str
    low: float = 0
    high: float = 0
    choices: tuple[str, ...] = ()
    bounds: str = ""
    real: bool = False

    @property
    def range(self) -> str:
        """What it may be, in words."""
        return self.bounds or ", ".join(self.choices) or f"{self.low} to {self.high}"

    def checked(self, name: str, value: object) -> float | str:
        """Return the value as int, float or str; raise ParameterError where it is out of range."""
        if self.choices:
            if value not in self.choices:
                raise ParameterError(f"expected {name} to be one of {self.range}, got {name}={value!r}")
            return str(value)
        kinds = (int, float, np.integer, np.floating) if self.real else (int, np.integer)
        if isinstance(value, kinds) and not isinstance(value, bool):
            number = int(value) if isinstance(value, (int, np.integer)) else float(value)
            # A number that is none, NaN, is in no range.
            if self.low <= number <= self.high:
                return float(number) if self.real else number
        raise ParameterError(f"expected {name} of {self.range}, got {name}={value!r}")

    def nearest(self, number: int) -> int:
        """Return what is nearest to a whole number, and in range."""
        return int(min(max(number, self.low), self.high))


def number(about: str, low: int, high: int, default: int | None = None) -> Any:
    """Field of a filter for a whole number within bounds, both included; required where it has no default."""
    metadata = {"parameter": Parameter(about, low, high)}
    return field(metadata=metadata) if default is None else field(default=default, metadata=metadata)


def real(about: str, low: float, high: float = _LARGEST, default: float | None = None, bounds: str = "") -> Any:
    """Field of a filter for a number with a fraction, bounds included; `bounds` says them in words."""
    words = bounds or (f"{low:g} or more" if high == _LARGEST else f"{low:g} to {high:g}")
    metadata = {"parameter": Parameter(about, low, high, bounds=words, real=True)}
    return field(metadata=metadata) if default is None else field(default=default, metadata=metadata)


def choice(about: str, choices: tuple[str, ...], default: str | None = None) -> Any:
    """Field of a filter for one of some words; required where it has no default."""
    metadata = {"parameter": Parameter(about, choices=choices)}
    return field(metadata=metadata) if default is None else field(default=default, metadata=metadata)


class Filter(ABC):
    """An entry of HDF5's registry with its parameters. Frozen; equal where id and parameters are.

    A subclass is a frozen dataclass whose fields are made by `number`, `real` and `choice`, which checks them.

    Attributes
    ----------
    id
        Registered HDF5 filter id.
    name
        How tamis writes it down.
    registered_name
        How HDF5 or the registry calls it.
    about
        What it does, in a few words.
    optional
        Whether HDF5's own calls let a chunk go without it where it fails.
    group_safe
        Whether it works on the links of a group, which have neither type nor chunk shape.
    needs_values
        Whether it codes values, not just bytes, so that nothing may come before it.
    decode_only
        Whether tamis can only read it.
    needs
        Modules that encoding and decoding import.
    install
        The command that installs them.
    """

    __slots__ = ()

    id: ClassVar[int]
    name: ClassVar[str]
    registered_name: ClassVar[str]
    about: ClassVar[str] = ""
    optional: ClassVar[bool] = True
    group_safe: ClassVar[bool] = False
    needs_values: ClassVar[bool] = False
    decode_only: ClassVar[bool] = False
    needs: ClassVar[tuple[str, ...]] = ()
    install: ClassVar[str] = "pip install 'tamis[codecs]'"

    def __post_init__(self) -> None:
        """Check every field that `number`, `real` or `choice` made."""
        for name, each in self.parameters().items():
            object.__setattr__(self, name, each.checked(name, getattr(self, name)))

    @classmethod
    def parameters(cls) -> Mapping[str, Parameter]:
        """Return what the filter is made with, by name."""
        found = {each.name: each.metadata.get("parameter") for each in fields(cls)}  # type: ignore[arg-type]
        return {name: each for name, each in found.items() if each is not None}

    @classmethod
    @abstractmethod
    def from_values(cls, values: tuple[int, ...]) -> Self:
        """Read requested or stored parameters, of any version of the filter.

        What decoding does not need is taken for the nearest that can be, and words too many are left alone: chunks
        can be read all the same.

        Raises
        ------
        ParameterError, StreamError
            If they are none of it.
        """

    @classmethod
    def from_stored(cls, values: tuple[int, ...]) -> Self:
        """Read parameters that come from a file; as `from_values`, where nothing else is known of them."""
        return cls.from_values(values)

    @classmethod
    def from_requested(cls, values: tuple[int, ...]) -> Self:
        """Read parameters that are asked for, and refuse those that the filter would refuse to encode with."""
        return cls.from_values(values)

    @property
    @abstractmethod
    def requested(self) -> tuple[int, ...]:
        """Parameters for H5Pset_filter."""

    @property
    def error_bound(self) -> float | None:
        """Largest absolute error of a value, in units of the data; 0 where lossless, None where there is no bound."""
        return 0.0

    def stored(self, chunk: ChunkType) -> tuple[int, ...]:
        """Parameters that the filter leaves in a file for such chunks.

        Raises
        ------
        ParameterError
            If the filter cannot take such chunks; says what to use instead.
        """
        return self.requested

    def check(self, chunk: ChunkType) -> None:
        """Raise ParameterError where the filter cannot take such chunks."""
        self.stored(chunk)

    @abstractmethod
    def encode(self, data: Data, chunk: ChunkType, stored: tuple[int, ...]) -> Data:
        """Filter the bytes of a chunk.

        Raises
        ------
        DataError
            If these bytes cannot be filtered, or would not get smaller where the filter makes that a condition.
        MissingFilterError
            If a package is not installed; names it.
        """

    @abstractmethod
    def decode(self, data: Data, chunk: ChunkType, stored: tuple[int, ...]) -> Data:
        """Undo `encode`, with the parameters that the file has.

        Raises
        ------
        StreamError
            If the bytes are damaged.
        MissingFilterError
            If a package is not installed; names it.
        """

    def in_words(self, stored: tuple[int, ...] = ()) -> str:
        """Return what the filter does with such parameters.

        Parameters
        ----------
        stored
            As a file has them; they may say more than the object, such as who wrote it.
        """
        return " ".join([self.name, *(f"{name} {getattr(self, name)}" for name in self.parameters())])

    @classmethod
    def missing(cls) -> str:
        """Return what is not installed that the filter needs with any parameters; empty where nothing is missing."""
        return cls._without(cls.needs)

    def undecodable(self) -> str:
        """Return why this filter, with its parameters, cannot be decoded here; empty where it can."""
        return self.missing()

    def unencodable(self) -> str:
        """Return why this filter cannot be encoded here; empty where it can."""
        if self.decode_only:
            return f"tamis can decode {self.name} but not encode it"
        return self.missing()

    @classmethod
    def _without(cls, needs: tuple[str, ...]) -> str:
        absent = [name for name in needs if importlib.util.find_spec(name.partition(".")[0]) is None]
        return f"{cls.name} needs {' and '.join(absent)}, not installed here: {cls.install}" if absent else ""

    @classmethod
    def module(cls, name: str) -> Any:
        """Import a module that the filter needs.

        Raises
        ------
        MissingFilterError
            If it is not installed.
        """
        try:
            return importlib.import_module(name)
        except ImportError as error:
            raise MissingFilterError(f"{cls.name} needs {name}, not installed here: {cls.install}") from error

    def __str__(self) -> str:
        names = list(self.parameters())
        if len(names) == 1:
            return f"{self.name}({getattr(self, names[0])})"
        given = ",".join(f"{name}={getattr(self, name)}" for name in names)
        return f"{self.name}({given})" if given else self.name
