"""The base class of filters: HDF5 id, names, parameters, and how to encode and decode the bytes of one chunk."""

from __future__ import annotations

import math
import operator
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, NamedTuple, Self, TypeAlias

import numpy as np

from tamis.arguments import BYTES, NUMBER, STORED, instance
from tamis.errors import ParameterError, located
from tamis.optional import optional

_LARGEST = sys.float_info.max

Data: TypeAlias = bytes | bytearray | memoryview
"""Bytes of a chunk, on their way through filters."""


class Request(NamedTuple):
    """A filter as H5Pset_filter gets it: its id and requested parameters, as 32-bit words."""

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
    # numpy ignores metadata when it compares types, but what a filter stores depends on it: this field tells
    # an enumeration from its integers.
    _enums: tuple[bool, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Convert type and shape: anything that numpy accepts as a dtype, and any sequence of whole numbers."""
        try:
            object.__setattr__(self, "dtype", np.dtype(self.dtype))
            object.__setattr__(self, "shape", tuple(map(operator.index, self.shape)))
        except (TypeError, ValueError) as error:
            raise ParameterError(
                f"expected type and shape of a chunk, got {self.dtype!r} and {self.shape!r}"
            ) from error
        if min(self.shape, default=0) < 0:
            raise ParameterError(f"expected a chunk shape of 0 or more along each axis, got shape={self.shape}")
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
        """Upper limit of the bytes after any filter: a stream that claims to decode to more is damaged."""
        # A block of zfp takes up to 4096 bytes and holds at least four values.
        return 1024 * self.nbytes + 4096


def is_enum(dtype: np.dtype[Any]) -> bool:
    """Return whether a type is an HDF5 enumeration, which h5py marks in the metadata of an integer type."""
    return bool(dtype.metadata) and "enum" in dtype.metadata  # type: ignore[operator]


def _enums(dtype: np.dtype[Any]) -> Iterator[bool]:
    """Yield for each member of a type whether it is an enumeration."""
    if dtype.subdtype is not None:
        yield from _enums(dtype.subdtype[0])
    elif dtype.names:
        for name in dtype.names:
            yield from _enums(dtype.fields[name][0])  # type: ignore[index]
    else:
        yield is_enum(dtype)


@dataclass(frozen=True, slots=True)
class Parameter:
    """The meaning of a filter parameter and its allowed values.

    Parameters
    ----------
    about
        Meaning, with the unit.
    low, high
        Bounds of a number, both included.
    choices
        Allowed names, if the parameter is one of a few names.
    bounds
        Allowed values in words, if neither `low` and `high` nor `choices` say it.
    real
        Whether the number may have a fraction.
    ends
        Whether it is two numbers, the smaller one first.
    absent
        Whether it may be None.
    """

    about: str
    low: float = 0
    high: float = 0
    choices: tuple[str, ...] = ()
    bounds: str = ""
    real: bool = False
    ends: bool = False
    absent: bool = False

    @property
    def range(self) -> str:
        """Allowed values, in words."""
        return self.bounds or ", ".join(self.choices) or f"{self.low} to {self.high}"

    def checked(self, name: str, value: object) -> Any:
        """Return the value as int, float, str or two floats; raise ParameterError where it is out of range."""
        if value is None and self.absent:
            return None
        if self.ends:
            return self._both(name, value)
        if self.choices:
            if isinstance(value, float):  # 1e35 is a name of sperr
                value = f"{value:g}".replace("+", "")
            if value not in self.choices:
                raise ParameterError(f"expected {name} to be one of {self.range}, got {name}={value!r}")
            return str(value)
        kinds = (int, float, np.integer, np.floating) if self.real else (int, np.integer)
        if isinstance(value, kinds) and not isinstance(value, bool):
            number = int(value) if isinstance(value, (int, np.integer)) else float(value)
            # NaN also fails this comparison.
            if self.low <= number <= self.high:
                return float(number) if self.real else number
        link = "" if self.range.startswith("above") else "of "
        raise ParameterError(f"expected {name} {link}{self.range}, got {name}={value!r}")

    def _both(self, name: str, value: object) -> tuple[float, float]:
        with suppress(TypeError, ValueError):
            low, high = map(float, value.split(":") if isinstance(value, str) else value)  # type: ignore[call-overload]
            if -math.inf < low <= high < math.inf:
                return low, high
        raise ParameterError(f"expected {name} of two numbers such as 200:330, the smaller one first, got {value!r}")

    def nearest(self, number: int) -> int:
        """Return the allowed whole number nearest to the given one."""
        return int(min(max(number, self.low), self.high))


def number(about: str, low: int, high: int, default: int | None = None) -> Any:
    """Return a dataclass field for a whole number within bounds, both included; required if there is no default."""
    return _field(Parameter(about, low, high), default)


def real(about: str, low: float, high: float = _LARGEST, default: float | None = None, bounds: str = "") -> Any:
    """Return a dataclass field for a number with a fraction, bounds included; `bounds` describes them."""
    NUMBER.check("low", low)
    NUMBER.check("high", high)
    text = bounds or (f"{low:g} or more" if high == _LARGEST else f"{low:g} to {high:g}")
    return _field(Parameter(about, low, high, bounds=text, real=True), default)


def positive(about: str) -> Any:
    """Return a dataclass field for a number above 0, or None, the default."""
    parameter = Parameter(about, sys.float_info.min, _LARGEST, bounds="above 0", real=True, absent=True)
    return field(default=None, metadata={"parameter": parameter})


def span(about: str) -> Any:
    """Return a dataclass field for two numbers, the smaller one first, or None, the default."""
    return field(default=None, metadata={"parameter": Parameter(about, bounds="LOW:HIGH", ends=True, absent=True)})


def choice(about: str, choices: tuple[str, ...], default: str | None = None) -> Any:
    """Return a dataclass field for one of a few names; required if there is no default."""
    return _field(Parameter(about, choices=choices), default)


def _field(parameter: Parameter, default: object) -> Any:
    metadata = {"parameter": parameter}
    return field(metadata=metadata) if default is None else field(default=default, metadata=metadata)


class Parameterized:
    """A frozen dataclass whose fields are made by `number`, `real` and `choice`, which check them.

    Attributes
    ----------
    name
        The name that tamis uses.
    about
        What it does, in a few words.
    """

    __slots__ = ()

    name: ClassVar[str]
    about: ClassVar[str] = ""

    def __post_init__(self) -> None:
        """Check every field that `number`, `real` or `choice` made."""
        with located(filter=self.name):
            for name, parameter in self.parameters().items():
                object.__setattr__(self, name, parameter.checked(name, getattr(self, name)))

    @classmethod
    def parameters(cls) -> Mapping[str, Parameter]:
        """Return the parameters by name."""
        parameters = {member.name: member.metadata.get("parameter") for member in fields(cls)}  # type: ignore[arg-type]
        return {name: parameter for name, parameter in parameters.items() if parameter is not None}


CHUNK = instance("a tamis.filters.ChunkType", ChunkType)


def check_arguments(data: object, chunk: object, stored: object) -> None:
    """Raise ParameterError if arguments of `Filter.encode` or `Filter.decode` are of other kinds than theirs."""
    if BYTES.fits(data) and isinstance(chunk, ChunkType) and STORED.fits(stored):
        return  # at once, because each filter of each chunk comes here
    BYTES.check("data", data)
    CHUNK.check("chunk", chunk)
    STORED.check("stored", stored)


class Filter(Parameterized, ABC):
    """An entry of HDF5's registry with its parameters. Frozen; equal where id and parameters are.

    Attributes
    ----------
    id
        Registered HDF5 filter id.
    registered_name
        The name in HDF5 or in the HDF Group's registry.
    optional
        Whether HDF5 stores a chunk without this filter if the filter fails.
    group_safe
        Whether it can be used on the links of a group, which have neither type nor chunk shape.
    needs_values
        Whether it encodes values, not bytes, and must therefore be the first filter.
    decode_only
        Whether tamis can only read it.
    is_foreign
        Whether hdf5plugin runs it, in a separate process, because its library may end the process.
    bounds_errors
        Whether it encodes values with an absolute error that its parameters can bound.
    stable
        Whether later versions of the filter read its chunks.
    zarr_only
        Whether it is a codec of Zarr that HDF5 has no filter for; its id is then none of HDF5's.
    needs
        Modules that encoding and decoding import.
    install
        The command that installs these modules.
    """

    __slots__ = ()

    id: ClassVar[int]
    registered_name: ClassVar[str]
    optional: ClassVar[bool] = True
    group_safe: ClassVar[bool] = False
    needs_values: ClassVar[bool] = False
    decode_only: ClassVar[bool] = False
    is_foreign: ClassVar[bool] = False
    bounds_errors: ClassVar[bool] = False
    stable: ClassVar[bool] = True
    zarr_only: ClassVar[bool] = False
    needs: ClassVar[tuple[str, ...]] = ()
    install: ClassVar[str] = "pip install 'tamis[codecs]'"

    @classmethod
    @abstractmethod
    def from_values(cls, values: tuple[int, ...]) -> Self:
        """Read requested or stored parameters, of any version of the filter.

        A parameter that decoding does not need is replaced by the nearest allowed value, and surplus words are ignored,
        so the chunks stay readable.

        Raises
        ------
        ParameterError, StreamError
            If the words are not parameters of this filter.
        """

    @classmethod
    def from_stored(cls, values: tuple[int, ...]) -> Self:
        """Read parameters that come from a file; the same as `from_values` unless a filter overrides it."""
        return cls.from_values(values)

    @classmethod
    def from_requested(cls, values: tuple[int, ...]) -> Self:
        """Read requested parameters, and refuse those that the filter cannot encode with."""
        return cls.from_values(values)

    @property
    @abstractmethod
    def requested(self) -> tuple[int, ...]:
        """Parameters for H5Pset_filter."""

    @property
    def hdf5_id(self) -> int:
        """The id, for HDF5; raises ParameterError for codecs of Zarr that it has no filter for."""
        if self.zarr_only:
            raise ParameterError(
                f"{self} exists only in Zarr: write to Zarr (a name that ends in .zarr), or use other filters"
            )
        return self.id

    @property
    def error_bound(self) -> float | None:
        """Largest absolute error of a value, in units of the data; 0 if lossless, None if there is no bound."""
        return 0.0

    @property
    def open_bound(self) -> float | None:
        """The error for which parameters must be found from the values; None if the filter has its parameters."""
        return None

    @property
    def setting(self) -> str:
        """What an error of the filter is called in a message."""
        return str(self)

    def with_bound(self, bound: float) -> Self:
        """Return the filter with a bound: every filter that bounds errors takes it alone."""
        return type(self)(bound=bound)  # type: ignore[call-arg]

    def with_error(self, error: float) -> Self:
        """Return the filter with another largest error, in units of the data; an open bound stays open."""
        raise ParameterError(f"expected a filter that bounds the error of each value, got {self}")

    def with_tolerance(self, tolerance: float, missing: Sequence[Any] = ()) -> Self:
        """Return the filter with parameters for a tolerance, in units of the data, and for these missing values."""
        return self.with_error(tolerance)

    def stored(self, chunk: ChunkType) -> tuple[int, ...]:
        """Return the parameters that the filter stores in a file for such chunks.

        Raises
        ------
        ParameterError
            If the filter cannot encode such chunks; names an alternative.
        """
        return self.requested

    def check(self, chunk: ChunkType) -> None:
        """Raise ParameterError if the filter cannot encode such chunks."""
        self.stored(chunk)

    @abstractmethod
    def encode(self, data: Data, chunk: ChunkType, stored: tuple[int, ...]) -> Data:
        """Filter the bytes of a chunk.

        Raises
        ------
        DataError
            If these bytes cannot be filtered, or if they do not get smaller and the filter requires that.
        MissingFilterError
            If a package is not installed; names the package.
        """

    def encode_required(self, data: Data, chunk: ChunkType, stored: tuple[int, ...]) -> Data:
        """Filter the bytes of a chunk that cannot skip the filter: some have a form for bytes that do not get smaller.

        Raises the errors of `encode`.
        """
        return self.encode(data, chunk, stored)

    @abstractmethod
    def decode(self, data: Data, chunk: ChunkType, stored: tuple[int, ...]) -> Data:
        """Undo `encode`, with the parameters that the file has.

        Raises
        ------
        StreamError
            If the bytes are damaged.
        MissingFilterError
            If a package is not installed; names the package.
        """

    @property
    def shown_name(self) -> str:
        """Name for people; of a filter that tamis does not know, the label in the file and the id."""
        return self.name

    def in_words(self, stored: tuple[int, ...] = ()) -> str:
        """Return a description of the filter with its parameters.

        Parameters
        ----------
        stored
            Parameters as a file has them; they may hold more than the object, such as the version that wrote it.
        """
        return " ".join([self.name, *(f"{name} {getattr(self, name)}" for name in self.parameters())])

    @classmethod
    def missing(cls) -> str:
        """Return which required packages are not installed, whatever the parameters; empty if none is missing."""
        return cls._without(cls.needs)

    def undecodable(self) -> str:
        """Return why this filter, with its parameters, cannot be decoded here; empty if it can."""
        return self.missing()

    def unencodable(self) -> str:
        """Return why this filter cannot be encoded here; empty if it can."""
        if self.decode_only:
            return f"tamis can decode {self.name} but not encode it"
        return self.missing()

    @classmethod
    def _without(cls, needs: tuple[str, ...]) -> str:
        if not needs:
            return ""
        from importlib.util import find_spec  # late: few filters need a package

        absent = [name for name in needs if find_spec(name.partition(".")[0]) is None]
        return f"{cls.name} needs {' and '.join(absent)}, not installed here: {cls.install}" if absent else ""

    @classmethod
    def module(cls, name: str) -> Any:
        """Import a module that the filter needs.

        Raises
        ------
        MissingFilterError
            If it is not installed.
        """
        with located(filter=cls.name):
            return optional(name, f"{cls.name} needs {name}, not installed here: {cls.install}")

    def __str__(self) -> str:
        names = list(self.parameters())
        if len(names) == 1:
            return f"{self.name}({getattr(self, names[0])})"
        arguments = ",".join(f"{name}={getattr(self, name)}" for name in names)
        return f"{self.name}({arguments})" if arguments else self.name


class Wordless(Filter):
    """A filter without requested parameters; those in a file were filled in on writing and are ignored."""

    __slots__ = ()

    @classmethod
    def from_values(cls, values: tuple[int, ...]) -> Self:
        """Return the filter, ignoring the values."""
        return cls()

    @property
    def requested(self) -> tuple[int, ...]:
        """None."""
        return ()


class OneNumber(Filter):
    """A filter with one parameter, the first word, which decoding does not need; the default if there is no word.

    Attributes
    ----------
    signed
        Whether the word is a number with a sign, in two's complement.
    """

    __slots__ = ()

    signed: ClassVar[bool] = False

    @classmethod
    def from_values(cls, values: tuple[int, ...]) -> Self:
        """Read the first word and ignore others, which PyTables, for example, adds."""
        STORED.check("values", values)
        (parameter,) = cls.parameters().values()
        return cls(*(parameter.nearest(cls._number(word)) for word in values[:1]))

    @classmethod
    def from_requested(cls, values: tuple[int, ...]) -> Self:
        """Read the number, within its bounds, or none."""
        STORED.check("values", values)
        if len(values) > 1:
            raise ParameterError(f"expected one parameter of {cls.name}, got {values}")
        return cls(*map(cls._number, values))

    @property
    def requested(self) -> tuple[int, ...]:
        """The number."""
        (name,) = self.parameters()
        return (getattr(self, name) & 0xFFFFFFFF,)

    @classmethod
    def _number(cls, word: int) -> int:
        return word - (word >> 31 << 32) if cls.signed else word


def named(name: str, subject: str, names: tuple[str, ...], word: int) -> str:
    """Return the name that a number stands for."""
    if word >= len(names) or not names[word]:
        allowed = ", ".join(f"{i} ({text})" for i, text in enumerate(names) if text)
        raise ParameterError(f"expected the {subject} of {name} to be one of {allowed}, got {word}")
    return names[word]
