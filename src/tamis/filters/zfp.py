"""Filter 32013: ZFP, as H5Z-ZFP registered it."""

from __future__ import annotations

import ctypes
import math
import struct
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, ClassVar, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from tamis import _native, zfp
from tamis.arguments import STORED, TEXT
from tamis.errors import DataError, ParameterError, StreamError, located
from tamis.filters.base import CHUNK, ChunkType, Data, Filter, Parameter, check_arguments
from tamis.formatting import plural
from tamis.system.libraries import plugin_in
from tamis.zfp.header import refuse
from tamis.zfp.modes import native_type


@dataclass(frozen=True, slots=True)
class Bound:
    """The largest absolute error that values may have, however ZFP keeps it."""

    bound: float  # Above 0 and finite

    def __post_init__(self) -> None:
        try:
            bound = zfp.Accuracy(self.bound).tolerance
        except ParameterError as error:
            raise ParameterError(
                f"expected a finite bound above 0, got bound={self.bound!r}: use reversible=True to keep every bit"
            ) from error
        object.__setattr__(self, "bound", bound)

    def refuse(self) -> NoReturn:
        """Raise ParameterError: this is not a mode of the codec, and only a search on values turns it into one."""
        raise ParameterError(
            f"zfp({self}) cannot be recorded as it is: only tamis.repack, ds.tamis.to_netcdf, and write and "
            f"create_appender of tamis.hdf5 find its tolerance from the values: use one of these, or "
            f"zfp({zfp.Accuracy(self.bound)}), which is stricter"
        )

    def __str__(self) -> str:
        return str(zfp.Accuracy(self.bound)).replace("accuracy", "bound")


def mode_or_bound(bound: float | None, **modes: Any) -> zfp.Mode | Bound:
    """Return the mode for the arguments of `tamis.zfp.mode`, or the bound if it is given alone."""
    if bound is None:
        return zfp.mode(**modes)
    if others := [name for name, value in modes.items() if value is not None and value is not False]:
        raise ParameterError(f"bound cannot be combined with {' and '.join(others)}")
    return Bound(bound)


def chunk_values(data: Data, chunk: ChunkType) -> NDArray[Any]:
    """Return the bytes of a chunk as an array without unit axes; a view."""
    if len(data) != chunk.nbytes:
        raise ParameterError(f"expected the {chunk.nbytes} bytes of a chunk, got {len(data)}")
    return np.frombuffer(data, chunk.dtype).reshape(squeezed(chunk))


def squeezed(chunk: ChunkType) -> tuple[int, ...]:
    """Return the shape of a chunk without unit axes, as ZFP encodes it."""
    shape = tuple(extent for extent in chunk.shape if extent > 1)
    if not shape:
        raise ParameterError(
            f"expected a chunk of more than one value, got {chunk.shape}: use chunks of at least 4 values along an axis"
        )
    if len(shape) > zfp.MAX_RANK:
        instead, surplus = list(chunk.shape), len(shape) - zfp.MAX_RANK
        for axis, extent in enumerate(chunk.shape):
            if extent > 1 and surplus:
                instead[axis], surplus = 1, surplus - 1
        raise ParameterError(
            f"expected a chunk with 1 to 4 axes longer than 1, got {chunk.shape} with {len(shape)}:"
            f" use {tuple(instead)}"
        )
    return shape


_PARAMETERS = {
    "rate": Parameter("bits per value", bounds="above 0"),
    "precision": Parameter("bit planes of each block", 1, 64),
    "accuracy": Parameter("largest absolute error, in units of the data", bounds="above 0"),
    "bound": Parameter("largest absolute error, for repack, which finds the loosest accuracy", bounds="above 0"),
    "reversible": Parameter("every bit is kept", choices=("true",)),
    "minbits": Parameter("expert: bits per block, at least", 0, 32768),
    "maxbits": Parameter("expert: bits per block, at most", bounds="9 or more (float32), 12 or more (float64)"),
    "maxprec": Parameter("expert: bit planes per block, at most", 1, 64),
    "minexp": Parameter("expert: exponent of the lowest bit plane kept", bounds="below -1074: reversible"),
}


class Zfp(Filter, Mapping[str, Any]):
    """ZFP with exactly one mode.

    A mapping of h5py's ``compression`` and ``compression_opts``: unpack it into ``create_dataset(..., **Zfp(...))``.

    Parameters
    ----------
    rate
        Bits per value, above 0: every chunk takes the same number of bytes.
    precision
        Bit planes, 1 to 64: a bound relative to the largest value of each block.
    accuracy
        Largest absolute error, in units of the data, above 0.
    bound
        The same promise, with the loosest accuracy that the values allow: `tamis.repack` and `tamis.hdf5.write` find
        it, and functions without the values refuse it.
    reversible
        True keeps every bit.
    minbits, maxbits, maxprec, minexp
        Expert mode, all four numbers of the codec; see `tamis.zfp.Expert`.
    mode
        The name of the mode, such as ``"accuracy"``, as in the HDF Group's notation; checked against the other
        arguments.

    Raises
    ------
    ParameterError
        If there is no mode or more than one, or a number is out of range.

    Examples
    --------
    >>> Zfp(accuracy=0.1)
    Zfp(accuracy=0.1)
    >>> dict(Zfp(precision=16))
    {'compression': 32013, 'compression_opts': (2, 0, 16)}
    """

    __slots__ = ("_mode",)

    id: ClassVar[int] = 32013
    name: ClassVar[str] = "zfp"
    registered_name: ClassVar[str] = "ZFP"
    about: ClassVar[str] = "floats and integers, lossy or not"
    needs_values: ClassVar[bool] = True
    bounds_errors: ClassVar[bool] = True
    _mode: zfp.Mode | Bound

    def __init__(
        self,
        *,
        rate: float | None = None,
        precision: int | None = None,
        accuracy: float | None = None,
        bound: float | None = None,
        reversible: bool = False,
        minbits: int | None = None,
        maxbits: int | None = None,
        maxprec: int | None = None,
        minexp: int | None = None,
        mode: str | None = None,
    ) -> None:
        with located(filter=self.name):
            expert = {"minbits": minbits, "maxbits": maxbits, "maxprec": maxprec, "minexp": minexp}
            zfp_mode = mode_or_bound(
                bound, rate=rate, precision=precision, accuracy=accuracy, reversible=reversible, **expert
            )
            mode_name = type(zfp_mode).__name__.lower()
            if mode not in (None, mode_name):
                raise ParameterError(f"expected the parameters of mode {mode!r}, got those of mode {mode_name!r}")
        object.__setattr__(self, "_mode", zfp_mode)

    @classmethod
    def of(cls, mode: zfp.Mode | Bound) -> Self:
        """Return the filter of a mode."""
        result = cls.__new__(cls)
        object.__setattr__(result, "_mode", mode)
        return result

    @classmethod
    def parameters(cls) -> Mapping[str, Parameter]:
        """Return the parameters of all modes; a filter has those of exactly one."""
        return _PARAMETERS

    @classmethod
    def from_values(cls, values: tuple[int, ...]) -> Self:
        """Read requested or stored parameters; a stored tolerance is the power of two below the requested one."""
        return cls.from_requested(values)

    @classmethod
    def from_requested(cls, values: tuple[int, ...]) -> Self:
        """Read requested parameters, as `requested` returns them, or stored ones, which the plugin takes, too.

        Raises
        ------
        ParameterError
            If the words are not parameters of ZFP, too few, or out of range.
        """
        STORED.check("values", values)
        if is_stored(values):
            return cls.of(StoredZfp.parse(values).filter.mode)
        needed = {1: 4, 2: 3, 3: 4, 4: 6, 5: 1}
        if not values:
            return cls.of(zfp.Expert())
        if values[0] not in needed or len(values) < needed[values[0]]:
            raise ParameterError(
                f"expected ZFP parameters 1,0,A,B or 2,0,N or 3,0,A,B or 4,0,N,N,N,N or 5, got {tuple(values)}"
            )
        match values[0]:
            case 1:
                return cls(rate=_double(values))
            case 2:
                return cls(precision=min(values[2], 64) or 64)
            case 3:
                return cls(accuracy=tolerance) if (tolerance := _double(values)) != 0 else cls.of(zfp.Expert())
            case 4:
                minexp = struct.unpack("=i", struct.pack("=I", values[5]))[0]
                return cls(minbits=values[2], maxbits=values[3], maxprec=values[4], minexp=minexp)
        return cls(reversible=True)

    @property
    def mode(self) -> zfp.Mode:
        """The mode; raises ParameterError for a bound, which is not one."""
        if isinstance(self._mode, Bound):
            self._mode.refuse()
        return self._mode

    @property
    def bound(self) -> float | None:
        """The bound for which an accuracy must be found; None for a mode."""
        return self._mode.bound if isinstance(self._mode, Bound) else None

    @property
    def open_bound(self) -> float | None:
        """The same as `bound`."""
        return self.bound

    def with_error(self, error: float) -> Self:
        """Return the filter with another bound, or in accuracy mode with another accuracy."""
        return type(self)(accuracy=error) if self.bound is None else self.with_bound(error)

    def with_tolerance(self, tolerance: float, missing: Sequence[Any] = ()) -> Self:
        """Return the filter in accuracy mode."""
        return type(self)(accuracy=tolerance)

    @property
    def setting(self) -> str:
        """The mode or the bound as text, such as ``accuracy=0.1``."""
        return str(self._mode)

    @property
    def requested(self) -> tuple[int, ...]:
        """Parameters for H5Pset_filter: mode, an unused word, the numbers of the mode."""
        match self.mode:
            case zfp.Rate(rate):
                return (1, 0, *_words(rate))
            case zfp.Precision(precision):
                return (2, 0, int(precision))
            case zfp.Accuracy(tolerance):
                return (3, 0, *_words(tolerance))
            case zfp.Expert(minbits, maxbits, maxprec, minexp):
                return (4, 0, int(minbits), int(maxbits), int(maxprec), int(minexp) & 0xFFFFFFFF)
        return (5,)

    @property
    def error_bound(self) -> float | None:
        """The bound, or the tolerance in accuracy mode; 0 in lossless modes, None in others."""
        if isinstance(self._mode, Bound):
            return self._mode.bound
        if zfp.is_lossless(self._mode):
            return 0.0
        return float(self._mode.tolerance) if isinstance(self._mode, zfp.Accuracy) else None

    def stored(self, chunk: ChunkType) -> tuple[int, ...]:
        """Return the parameters that the filter stores for such chunks: a version word and the ZFP header."""
        CHUNK.check("chunk", chunk)
        dtype, shape = chunk.dtype, squeezed(chunk)
        if not dtype.isnative:
            raise ParameterError(
                f"expected native byte order, got {dtype.str!r}: ZFP would misread the bytes;"
                f" use {dtype.newbyteorder('=').str!r}"
            )
        zfp.check_encodable(dtype, self.mode)
        self.mode.params(dtype, len(shape))  # raises for a rate that no block can have
        fill = int.from_bytes(chunk.fill, sys.byteorder) if any(chunk.fill) else None
        cd_values = _native.stored_values(self.requested, native_type(dtype), shape, fill)
        return (
            refuse(cd_values, dtype, shape, self.mode) if isinstance(cd_values, _native.Failure) else tuple(cd_values)
        )

    def encode(self, data: Data, chunk: ChunkType, stored: tuple[int, ...]) -> Data:
        """Encode the values of a chunk, and in accuracy mode prove the tolerance, as the plugin does.

        Raises
        ------
        DataError
            If the mode cannot represent a value, exceeds its tolerance, or changes the fill value of the stored
            parameters; names the index of the first such value.
        """
        check_arguments(data, chunk, stored)
        stream = self.encode_unproven(data, chunk)
        header = _parsed(stored) if is_stored(stored) else None
        if header is None or header.proven:
            values = chunk_values(data, chunk)
            zfp.prove(values, stream, self.mode, None if header is None else header.fill_bits)
        return stream

    def encode_unproven(self, data: Data, chunk: ChunkType) -> bytes:
        """Encode the values of a chunk without a proof. Raises DataError if the mode cannot represent them."""
        if not chunk.dtype.isnative:  # as in files from other machines; ZFP would misread the values
            raise DataError(f"expected native byte order for zfp, got {chunk.dtype.str!r}")
        return zfp.encode(chunk_values(data, chunk), self.mode)

    def keeps_for_sure(self, chunk: ChunkType, largest: float) -> bool:
        """Return whether any finite values up to magnitude `largest` certainly keep the tolerance of accuracy mode."""
        rank = len(squeezed(chunk))
        params = self.mode.params(chunk.dtype, rank)
        return _native.keeps_for_sure(native_type(chunk.dtype), rank, params, largest)

    def decode(self, data: Data, chunk: ChunkType, stored: tuple[int, ...]) -> Data:
        """Decode the values of a chunk, with the type and shape of the stored parameters."""
        check_arguments(data, chunk, stored)
        header = _parsed(stored)
        nbytes = math.prod(header.shape) * header.dtype.itemsize
        if nbytes != chunk.nbytes:
            raise StreamError(
                f"its ZFP parameters describe chunks of {nbytes} bytes, but its chunks have {chunk.nbytes}"
            )
        values = zfp.decode(data, header.shape, header.dtype, header.filter.mode)
        # The file's type has the byte order of the machine that wrote it.
        return (values.byteswap(inplace=True) if header.swapped else values).data.cast("B")

    def in_words(self, stored: tuple[int, ...] = ()) -> str:
        """Return the mode in words, and the versions that wrote the chunks."""
        STORED.check("stored", stored)
        text = f"zfp {_mode_in_words(self.mode)}"
        if not stored:
            return text
        if not is_stored(stored):
            return f"{self} as requested, not set up by the filter: chunks are stored unfiltered"
        header = StoredZfp.parse(stored)
        order = ", written on a machine of the other byte order" if header.swapped else ""
        fill = "" if header.fill is None else f", fill value {header.fill} kept exactly"
        proof = "" if header.proven else ", not proven on writing"
        return f"{text}{fill}{proof} ({header.versions}{order})"

    def __getitem__(self, key: str) -> Any:
        TEXT.check("key", key)
        if key == "compression":
            return self.id
        if key == "compression_opts":
            return self.requested
        raise KeyError(key)

    def __iter__(self) -> Iterator[str]:
        return iter(("compression", "compression_opts"))

    def __len__(self) -> int:
        return 2

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"Zfp is immutable: make a new one instead of setting {name}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"Zfp is immutable: cannot delete {name}")

    def __eq__(self, other: object) -> bool:
        return self._mode == other._mode if isinstance(other, Zfp) else NotImplemented

    def __hash__(self) -> int:
        return hash((type(self), self._mode))

    def __repr__(self) -> str:
        return f"Zfp({self.setting})"

    def __str__(self) -> str:
        return f"zfp({self.setting})"

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self).of, (self._mode,))


@dataclass(frozen=True, slots=True)
class StoredZfp:
    """The stored parameters of filter 32013, parsed.

    Parameters
    ----------
    filter
        The filter in the stored mode: a tolerance is rounded down to a power of two.
    dtype, shape
        Of the chunks, without unit axes, as in the ZFP header.
    swapped
        Whether the writer's machine had the other byte order.
    version_word
        The first parameter.
    proven
        Whether the writer compared chunks in accuracy mode before writing them; False if told to behave like H5Z-ZFP.
    fill_bits
        Bits of the fill value, if an error within the tolerance could change it; None if there is no such fill value
        or none was recorded.
    """

    filter: Zfp
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    swapped: bool
    version_word: int
    proven: bool = True
    fill_bits: int | None = None

    @classmethod
    def parse(cls, values: tuple[int, ...]) -> StoredZfp:
        """Read stored parameters of any version of H5Z-ZFP.

        Raises
        ------
        StreamError
            If the words hold no ZFP header, or one of another codec version.
        """
        fields = _native.parse_stored([value & 0xFFFFFFFF for value in values])
        if isinstance(fields, _native.Failure):
            if fields.code == "codec_version":
                raise StreamError(f"expected ZFP codec 5, got parameters of codec {fields.where}")
            raise StreamError(f"expected stored ZFP parameters, got {tuple(values)}: {fields.code}")
        native_type, shape, params, swapped, proven, fill = fields
        mode = zfp.mode_of(params, len(shape))
        word = values[0] & 0xFFFFFFFF
        return cls(Zfp.of(mode), np.dtype(native_type.name), tuple(shape), swapped, word, proven, fill)

    @property
    def fill(self) -> float | None:
        """The fill value, from `fill_bits`."""
        if self.fill_bits is None:
            return None
        value: float = np.array([self.fill_bits], f"u{self.dtype.itemsize}").view(self.dtype)[0]
        return value

    @property
    def of_other_plugin(self) -> bool:
        """Whether certainly another plugin wrote it; H5Z-ZFP 1.1.1 with zfp 1.0.1 writes the versions of tamis."""
        return self.version_word != _own_version_word()

    @property
    def versions(self) -> str:
        """The H5Z-ZFP and zfp versions that wrote it."""
        word = self.version_word
        if word & 0xFFF >= 0x110:
            library, plugin = word >> 20, word & 0xFFF
        else:
            library, plugin = word >> 16, word & 0xFFFF
        return f"H5Z-ZFP {_dotted(plugin)}, zfp {_dotted(library)}"


def is_stored(values: tuple[int, ...]) -> bool:
    """Return whether parameters are stored, not requested."""
    return _native.is_stored([value & 0xFFFFFFFF for value in values])


@lru_cache(maxsize=1024)  # all chunks of a dataset share their parameters
def _parsed(stored: tuple[int, ...]) -> StoredZfp:
    return StoredZfp.parse(stored)


@cache
def _own_version_word() -> int:
    stored = _native.stored_values((5,), native_type(np.dtype("f8")), (4,))
    assert not isinstance(stored, _native.Failure)
    return stored[0]


def _mode_in_words(mode: zfp.Mode) -> str:
    match mode:
        case zfp.Accuracy():
            exponent = math.frexp(mode.effective)[1] - 1
            return f"accuracy, effective tolerance 2^{exponent} = {mode.effective:g}"
        case zfp.Rate(rate):
            return f"rate, {rate:g} bits per value"
        case zfp.Precision(64):
            return "precision, all 64 bit planes, which cd_values with a precision of 0 also mean"
        case zfp.Precision(precision):
            return f"precision, {plural(precision, 'bit plane')}"
        case zfp.Reversible():
            return "reversible (lossless)"
    return f"expert, {mode}"


def _dotted(digits: int) -> str:
    return ".".join(f"{digits:03x}")


def _words(number: float) -> tuple[int, int]:
    first, second = struct.unpack("=II", struct.pack("=d", number))
    return first, second


def _double(values: tuple[int, ...]) -> float:
    return float(struct.unpack("=d", struct.pack("=II", values[2], values[3]))[0])


def plugin_path() -> Path:
    """Return the folder of the plugin, for HDF5_PLUGIN_PATH.

    With it h5repack, h5dump, nccopy, ncdump and MATLAB read and write ZFP; h5py and netCDF4 do after ``import tamis``.
    """
    return Path(_native.__file__).parent / "hdf5_plugin"


def filter_class() -> int:
    """Return the address of the H5Z_class2_t of filter 32013, for H5Zregister."""
    function = _library().H5PLget_plugin_info
    function.restype = ctypes.c_void_p
    return int(function())


def has_nczarr_codec() -> bool:
    """Return whether NCZarr can also use the plugin."""
    return hasattr(_library(), "NCZ_get_codec_info")


@cache
def _library() -> ctypes.CDLL:
    return ctypes.CDLL(str(plugin_in(plugin_path(), "libh5ztamis")), mode=ctypes.RTLD_LOCAL)
