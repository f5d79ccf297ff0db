"""Filters that only hdf5plugin has, which runs in separate processes: sz3 and sperr."""

from __future__ import annotations

import math
import struct
import sys
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from tamis.arguments import STORED
from tamis.errors import DataError, MissingFilterError, ParameterError, StreamError
from tamis.filters import plugin_client
from tamis.filters.base import CHUNK, ChunkType, Data, Filter, check_arguments, choice, positive, real
from tamis.old_names import takes_old_parameters

_MOST_GROWTH, _MOST_ADDED = 2, 1 << 20
"""Limits of an encoded chunk: times its bytes, and bytes beside them."""


class Foreign(Filter):
    """The base class of filters that hdf5plugin runs; who writes with them must decode the chunks and compare."""

    __slots__ = ()

    needs_values: ClassVar[bool] = True
    is_foreign: ClassVar[bool] = True
    bounds_errors: ClassVar[bool] = True
    needs: ClassVar[tuple[str, ...]] = ("hdf5plugin",)
    install: ClassVar[str] = "pip install 'tamis[hdf5plugin]'"
    plugin: ClassVar[str]

    def encode(self, data: Data, chunk: ChunkType, stored: tuple[int, ...]) -> Data:
        """Encode with hdf5plugin, in a separate process.

        Raises
        ------
        MissingFilterError
            If hdf5plugin is not installed.
        DataError
            If it cannot encode the values.
        """
        check_arguments(data, chunk, stored)
        if absent := self.missing():
            raise MissingFilterError(absent)
        if not chunk.dtype.isnative:
            raise DataError(f"expected native byte order for {self.name}, got {chunk.dtype.str!r}")
        if len(data) != chunk.nbytes:
            raise ParameterError(f"expected the {chunk.nbytes} bytes of a chunk, got {len(data)}")
        self._check_values(np.frombuffer(data, chunk.dtype))
        return plugin_client.encode(self.plugin, stored, data, _MOST_GROWTH * chunk.nbytes + _MOST_ADDED)

    def check(self, chunk: ChunkType) -> None:
        """Raise ParameterError if the filter cannot encode such chunks."""
        CHUNK.check("chunk", chunk)
        if not chunk.dtype.isnative:
            raise ParameterError(
                f"expected native byte order for {self.name}, got {chunk.dtype.str!r}: use"
                f" {chunk.dtype.newbyteorder('=').str!r}"
            )
        self.stored(chunk)

    @abstractmethod
    def _check_values(self, values: NDArray[Any]) -> None:
        """Raise DataError for values on which the plugin ends its process, or takes minutes."""

    def _decoded(self, data: Data, chunk: ChunkType, stored: tuple[int, ...]) -> bytes:
        if absent := self.missing():
            raise MissingFilterError(absent)
        return plugin_client.decode(self.plugin, stored, data, chunk.nbytes)


def _check_nbytes(name: str, shape: tuple[int, ...], itemsize: int, chunk: ChunkType) -> None:
    nbytes = math.prod(shape) * itemsize
    if nbytes != chunk.nbytes:
        raise StreamError(f"parameters of {name} describe chunks of {nbytes} bytes, but its chunks have {chunk.nbytes}")


_SZ3_MODES = ("absolute", "relative", "norm2", "psnr")
_SZ3_TYPES = ("f4", "f8", "u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8")
_SZ3_AMOUNTS = 9  # words of a mode and four doubles
_SZ3_IN_WORDS = {
    "absolute": "largest error {}",
    "relative": "largest error {} of the range of a chunk",
    "norm2": "2-norm of the error {}",
    "psnr": "peak signal-to-noise ratio {} dB",
}


@dataclass(frozen=True, slots=True)
class Sz3(Foreign):
    """Filter 32024: SZ3, which hdf5plugin encodes and decodes.

    Versions of SZ3 do not read each other's chunks.

    Parameters
    ----------
    mode
        The quantity that is bounded.
    bound
        The bound: in units of the data, as a share of the range, or in dB; 0 lets SZ3 decide.
    """

    mode: str = choice("what is bounded", _SZ3_MODES, "absolute")
    bound: float = real("in units of the data, a fraction of the range, or dB; 0 lets SZ3 decide", 0, default=1e-4)
    id: ClassVar[int] = 32024
    name: ClassVar[str] = "sz3"
    registered_name: ClassVar[str] = "SZ3"
    about: ClassVar[str] = "floats and integers, lossy"
    plugin: ClassVar[str] = "libh5sz3"
    stable: ClassVar[bool] = False

    @classmethod
    def from_values(cls, values: tuple[int, ...]) -> Self:
        """Read requested parameters, a mode and four doubles, or stored ones, where rank, type and shape come first."""
        STORED.check("values", values)
        amounts = values if len(values) in (0, _SZ3_AMOUNTS) else values[len(_sz3_head(values)) :]
        if not amounts:
            return cls(bound=0)
        if amounts[0] >= len(_SZ3_MODES):
            raise ParameterError(f"expected 0 to {len(_SZ3_MODES) - 1} as the mode of sz3, got {amounts[0]}")
        at = 1 + 2 * amounts[0]
        return cls(_SZ3_MODES[amounts[0]], struct.unpack(">d", struct.pack(">II", *amounts[at : at + 2]))[0])

    @property
    def requested(self) -> tuple[int, ...]:
        """Mode, then four doubles with their high words first, one for each mode."""
        if not self.bound:
            return ()
        at = _SZ3_MODES.index(self.mode)
        doubles = [0, 0] * at + [*struct.unpack(">II", struct.pack(">d", self.bound))]
        return (at, *doubles, *[0] * (_SZ3_AMOUNTS - 1 - len(doubles)))

    def stored(self, chunk: ChunkType) -> tuple[int, ...]:
        """Return rank, type and shape, fastest axis first, without unit axes, then the requested parameters."""
        CHUNK.check("chunk", chunk)
        shape = tuple(n for n in chunk.shape if n > 1) or (1,)
        code = f"{chunk.dtype.kind}{chunk.dtype.itemsize}"
        if code not in _SZ3_TYPES or len(shape) > 4:
            raise ParameterError(f"expected numbers in 1 to 4 axes for sz3, got {chunk.dtype} of shape {chunk.shape}")
        # The extent of a single axis takes two words.
        extents = shape[::-1] if len(shape) > 1 else (shape[0] >> 32, shape[0] & 0xFFFFFFFF)
        return (len(shape), _SZ3_TYPES.index(code), *extents, *self.requested)

    def unencodable(self) -> str:
        """Return why it cannot be encoded here: hdf5plugin's SZ3 keeps no bound of the last two modes (tried)."""
        if self.mode in ("norm2", "psnr"):
            return (
                f"tamis does not encode with {self}, because SZ3 does not keep such a bound: use mode=absolute "
                "or relative"
            )
        return self.missing()

    @property
    def error_bound(self) -> float | None:
        """The bound, if it is absolute."""
        return self.bound if self.mode == "absolute" and self.bound else None

    def with_error(self, error: float) -> Self:
        """Return the filter with an absolute bound."""
        return type(self)("absolute", error)

    def check(self, chunk: ChunkType) -> None:
        """Raise ParameterError if the filter cannot encode such chunks: for uint32, SZ3 may not come to an end."""
        Foreign.check(self, chunk)
        if chunk.dtype.kind == "u" and chunk.dtype.itemsize == 4:
            raise ParameterError(
                "expected other values than uint32 for sz3, because its library never returns for some of these: use"
                " pack or zfp"
            )

    def _check_values(self, values: NDArray[Any]) -> None:
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            raise DataError(
                "sz3 takes minutes for a chunk with NaN or infinity: use zfp or lossless filters for such values"
            )

    def decode(self, data: Data, chunk: ChunkType, stored: tuple[int, ...]) -> Data:
        """Decode with hdf5plugin, in a separate process."""
        check_arguments(data, chunk, stored)
        rank, code, *extents = _sz3_head(stored)
        shape = (extents[0] << 32 | extents[1],) if rank == 1 else tuple(extents)
        _check_nbytes(self.name, shape, int(_SZ3_TYPES[code][1]), chunk)
        return self._decoded(data, chunk, stored)

    def in_words(self, stored: tuple[int, ...] = ()) -> str:
        """Return the bound in words."""
        return f"sz3, {_SZ3_IN_WORDS[self.mode].format(f'{self.bound:g}')}" if self.bound else "sz3, its own bound"


def _sz3_head(stored: tuple[int, ...]) -> tuple[int, ...]:
    """Return rank, type and shape from the start of stored parameters."""
    head = stored[: 2 + max(2, stored[0] if stored else 0)]
    if len(head) < 4 or not 1 <= head[0] <= 4 or head[1] >= len(_SZ3_TYPES):
        raise ParameterError(
            f"expected mode and four doubles of sz3, or rank, type and shape before them, got {stored}"
        )
    if len(stored) - len(head) not in (0, _SZ3_AMOUNTS):
        raise ParameterError(f"expected mode and four doubles of sz3 after rank, type and shape, got {stored}")
    return head


_SPERR_MODES = ("rate", "psnr", "absolute")
_SPERR_MISSING = ("none", "nan", "1e35")
_FRACTION = 16  # bits of the quality below 1
_SIGN = 1 << 27
_MODE_AT = 28
_SWAP = 1 << 31
_SPERR_VERSION = 1 << 10
_SPERR_DEFAULTS = {"mode": "rate", "quality": 16.0, "missing_values": "none", "order": "kept"}
_SPERR_RANGE = 2.0**60
_FLOAT32 = 1 << 4
_SPERR_IN_WORDS = {
    "rate": "{} bits per value",
    "psnr": "peak signal-to-noise ratio {} dB",
    "absolute": "largest error {}",
}


@takes_old_parameters
@dataclass(frozen=True, slots=True)
class Sperr(Foreign):
    """Filter 32028: SPERR, which hdf5plugin encodes and decodes.

    Parameters
    ----------
    mode
        The quantity that is bounded.
    quality
        Bits per value, dB, or the largest error in units of the data; stored in 28 bits.
    missing_values
        Marker of missing values: none, NaN, or any number of 1e35 or more.
    order
        ``swapped`` for the shape of HDF5, whose last axis is the fastest; ``kept`` reads chunks as if the first was.
    bound
        Given alone: the largest absolute error, in units of the data. `tamis.repack` and `tamis.hdf5.write` find the
        other parameters from the values, and functions without the values refuse it.
    """

    mode: str = choice("what is bounded", _SPERR_MODES, "rate")
    quality: float = real(
        "bits per value, dB, or the largest error in units of the data",
        sys.float_info.min,
        2.0**1023,
        default=16.0,
        bounds="above 0; below 2048 except for absolute",
    )
    missing_values: str = choice("the value that marks missing ones", _SPERR_MISSING, "none")
    order: str = choice("of the axes", ("kept", "swapped"), "kept")
    bound: float | None = positive("largest absolute error, for repack, which finds the rest")
    id: ClassVar[int] = 32028
    name: ClassVar[str] = "sperr"
    registered_name: ClassVar[str] = "H5Z-SPERR"
    about: ClassVar[str] = "floats in 2 or 3 axes, lossy"
    plugin: ClassVar[str] = "libh5sperr"
    least_missing: ClassVar[float] = 1e35
    """SPERR takes numbers of at least this size as missing values."""

    def __post_init__(self) -> None:
        """Check that the quality fits into its 28 bits, and that a bound is alone."""
        Filter.__post_init__(self)
        others = [name for name, default in _SPERR_DEFAULTS.items() if getattr(self, name) != default]
        if self.bound is not None and others:
            raise ParameterError(f"bound of sperr cannot be combined with {' and '.join(others)}")
        # In absolute mode its exponent is stored, which always fits.
        whole = round(min(self.quality, _SIGN) * (1 << _FRACTION))
        if self.mode != "absolute" and not 0 < whole < _SIGN:
            raise ParameterError(
                f"expected quality of 2^-{_FRACTION} to below 2048 for {self.mode} of sperr, got"
                f" quality={self.quality!r}"
            )

    @classmethod
    def from_values(cls, values: tuple[int, ...]) -> Self:
        """Read requested parameters, quality and optionally missing values, or stored ones, with the shape, too."""
        STORED.check("values", values)
        if len(values) <= 2:
            word, missing = (*values, 0, 0)[:2]
        else:
            head, word = values[:2]
            missing = head >> 6 & 15
        mode = word >> _MODE_AT & 3
        if not mode or missing >= len(_SPERR_MISSING):
            raise ParameterError(
                f"expected quality and missing values of sperr, or stored parameters with a shape, got {values}"
            )
        quality = (word & (_SIGN - 1)) / (1 << _FRACTION)
        if mode == 3:
            exponent = -quality if word & _SIGN else quality
            if not sys.float_info.min_exp - 1 <= exponent <= 1023:
                raise ParameterError(f"expected an error of sperr that fits a float64, got 2^{exponent:g}")
            quality = 2.0**exponent
        order = "swapped" if word & _SWAP else "kept"
        return cls(_SPERR_MODES[mode - 1], quality, _SPERR_MISSING[missing], order)

    @property
    def error_bound(self) -> float | None:
        """The bound, or the quality of absolute mode; None in other modes."""
        return self.quality if self.bound is None and self.mode == "absolute" else self.bound

    @property
    def open_bound(self) -> float | None:
        """The same as `bound`."""
        return self.bound

    def with_error(self, error: float) -> Self:
        """Return the filter with another bound, or with another absolute error."""
        return replace(self, mode="absolute", quality=error) if self.bound is None else self.with_bound(error)

    def with_tolerance(self, tolerance: float, missing: Sequence[Any] = ()) -> Self:
        """Return the filter with an absolute error, the order of HDF5's axes, and markers of these missing values."""
        marker = "1e35" if any(abs(float(value)) >= self.least_missing for value in missing) else "none"
        return type(self)("absolute", tolerance, marker, "swapped")

    def check(self, chunk: ChunkType) -> None:
        """Raise ParameterError for chunks other than of floats in two or three axes."""
        CHUNK.check("chunk", chunk)
        if chunk.dtype.kind != "f":
            raise ParameterError(f"expected float32 or float64 for sperr, got {chunk.dtype}: use zfp or sz3")
        Foreign.check(self, chunk)

    def _check_values(self, values: NDArray[Any]) -> None:
        sizes = np.abs(values)
        if self.missing_values == "1e35":
            sizes = sizes[~(sizes >= self.least_missing)]  # keeps NaN
        elif self.missing_values == "nan":
            sizes = sizes[~np.isnan(sizes)]
        # It also ends for a range of more than 2^64 tolerances.
        most = min(self.least_missing, self.quality * _SPERR_RANGE) if self.mode == "absolute" else self.least_missing
        if not sizes.size or not float(sizes.max()) < most:
            raise DataError(
                f"sperr takes chunks with some valid values, all of them below {most:g} in size: it marks "
                "missing values of one kind only"
            )

    @property
    def requested(self) -> tuple[int, ...]:
        """Quality and mode in one word, then the marker of missing values."""
        if self.bound is not None:
            raise ParameterError(
                f"{self} cannot be recorded as it is: only tamis.repack, ds.tamis.to_netcdf, and write and "
                "create_appender of tamis.hdf5 find its parameters from the values: use one of these, or "
                f"{self.with_tolerance(self.bound)}"
            )
        word = _SPERR_MODES.index(self.mode) + 1 << _MODE_AT | (_SWAP if self.order == "swapped" else 0)
        if self.mode == "absolute":
            # Rounded towards smaller errors, but a quality that was read from a file stays the same.
            scaled = math.log2(self.quality) * (1 << _FRACTION)
            near = round(scaled)
            scaled = near if abs(scaled - near) < 1e-6 else math.floor(scaled)
            word |= -scaled | _SIGN if scaled < 0 else scaled
        else:
            word |= round(self.quality * (1 << _FRACTION))
        return (word, _SPERR_MISSING.index(self.missing_values))

    def stored(self, chunk: ChunkType) -> tuple[int, ...]:
        """Return rank, type and missing values in one word, quality, and the shape without unit axes."""
        CHUNK.check("chunk", chunk)
        word, missing = self.requested
        shape = tuple(n for n in chunk.shape if n > 1)
        if len(shape) not in (2, 3) or chunk.dtype.kind not in "fiu" or chunk.dtype.itemsize not in (4, 8):
            raise ParameterError(
                f"expected float32 or float64 in 2 or 3 axes for sperr, got {chunk.dtype} of shape {chunk.shape}"
            )
        kind = _FLOAT32 if chunk.dtype.itemsize == 4 else 0
        return (_SPERR_VERSION | missing << 6 | kind | len(shape), word, *shape)

    def decode(self, data: Data, chunk: ChunkType, stored: tuple[int, ...]) -> Data:
        """Decode with hdf5plugin, in a separate process."""
        check_arguments(data, chunk, stored)
        rank = stored[0] & 15 if stored else 0
        if rank not in (2, 3) or len(stored) != 2 + rank:
            raise StreamError(f"expected a word with the rank, quality and shape of sperr as stored, got {stored}")
        _check_nbytes(self.name, stored[2:], 4 if stored[0] & _FLOAT32 else 8, chunk)
        return self._decoded(data, chunk, stored)

    def __repr__(self) -> str:
        values = _SPERR_DEFAULTS if self.bound is None else ("bound",)
        return f"Sperr({', '.join(f'{name}={getattr(self, name)!r}' for name in values)})"

    def __str__(self) -> str:
        if self.bound is not None:
            return f"sperr(bound={self.bound})"
        return f"sperr({','.join(f'{name}={getattr(self, name)}' for name in _SPERR_DEFAULTS)})"

    def in_words(self, stored: tuple[int, ...] = ()) -> str:
        """Return the bound in words."""
        if self.bound is not None:
            return f"sperr, largest error {self.bound:g}"
        text = f"sperr, {_SPERR_IN_WORDS[self.mode].format(f'{self.quality:g}')}"
        return text if self.missing_values == "none" else f"{text}, missing values {self.missing_values}"
