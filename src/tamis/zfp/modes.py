"""The five modes, each of which sets four numbers of the codec."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from tamis import _native
from tamis.arguments import DTYPE, RANK, instance
from tamis.errors import ParameterError

_MAX_BITS, _MAX_PREC, _MIN_EXP = _native.max_bits, _native.max_prec, _native.min_exp
_PARAMS = instance("the parameters of a mode, mode.params(…)", _native.Params)


@dataclass(frozen=True, slots=True)
class Rate:
    """Fixed size: each value takes `rate` bits on average, each block the same number of bits.

    Parameters
    ----------
    rate
        Bits per value, above 0. Rounded to a whole number of bits per block of 4^d values; blocks of floats have at
        least 9 bits, of doubles 12, and all at most 32768, 8192 bits per value with one axis: see `effective`.
    """

    rate: float

    def __post_init__(self) -> None:
        if not _is_positive(self.rate):
            raise ParameterError(f"expected a finite rate above 0 bits per value, got rate={self.rate!r}")
        _make_float(self, "rate")

    def effective(self, dtype: np.dtype[Any], rank: int) -> float:
        """Return the bits per value that blocks of a type and a number of axes have."""
        return self.params(dtype, rank).maxbits / int(4**rank)

    def params(self, dtype: np.dtype[Any], rank: int) -> _native.Params:
        """Return the numbers for the native codec."""
        DTYPE.check("dtype", dtype)
        RANK.check("rank", rank)
        return _checked_params(_native.rate_params(self.rate, native_type(dtype), rank), str(self))

    def __str__(self) -> str:
        return f"rate={_number_text(self.rate)}"


@dataclass(frozen=True, slots=True)
class Precision:
    """A number of bit planes: a bound relative to the largest value of each block.

    Parameters
    ----------
    precision
        Bit planes kept per block, 1 to 64.
    """

    precision: int

    def __post_init__(self) -> None:
        if not (_is_integer(self.precision) and 1 <= self.precision <= 64):
            raise ParameterError(f"expected a precision of 1 to 64 bit planes, got precision={self.precision!r}")
        _make_plain(self, "precision")

    def params(self, dtype: np.dtype[Any], rank: int) -> _native.Params:
        """Return the numbers for the native codec."""
        DTYPE.check("dtype", dtype)
        RANK.check("rank", rank)
        return _checked_params(_native.precision_params(int(self.precision)), str(self))

    def __str__(self) -> str:
        return f"precision={self.precision!r}"


@dataclass(frozen=True, slots=True)
class Accuracy:
    """A bound on the absolute error of every value.

    Parameters
    ----------
    tolerance
        Largest absolute error, in units of the data, above 0 and finite. The codec rounds it down to a power of two.

    Notes
    -----
    Integers: a tolerance below 1 is refused. With a larger one ZFP keeps every bit plane whatever the tolerance, so it
    saves nothing, and the transform itself has errors of a few units (2, 9, 26, 77 observed for 1 to 4 axes), more than
    a small tolerance. `tamis.repack` checks its output and keeps the tolerance; `encode` and the HDF5 filter behave
    like libzfp and H5Z-ZFP. Use precision, rate or reversible for integers.
    """

    tolerance: float

    def __post_init__(self) -> None:
        if _is_number(self.tolerance) and self.tolerance == 0:
            raise ParameterError("expected an accuracy above 0, got accuracy=0: use reversible=True to keep every bit")
        if not (_is_positive(self.tolerance)):
            raise ParameterError(f"expected a finite accuracy above 0, got accuracy={self.tolerance!r}")
        _make_float(self, "tolerance")

    @property
    def effective(self) -> float:
        """The tolerance rounded down to a power of two, which the codec uses."""
        return math.ldexp(1.0, math.frexp(self.tolerance)[1] - 1)

    def params(self, dtype: np.dtype[Any], rank: int) -> _native.Params:
        """Return the numbers for the native codec."""
        DTYPE.check("dtype", dtype)
        RANK.check("rank", rank)
        return _checked_params(_native.accuracy_params(self.tolerance), str(self))

    def __str__(self) -> str:
        return f"accuracy={_number_text(self.tolerance)}"


@dataclass(frozen=True, slots=True)
class Expert:
    """All four numbers of the codec.

    Parameters
    ----------
    minbits, maxbits
        Bits per block, at least and at most; maxbits must hold the header of a block (9 bits for float32, 12 for
        float64, more where minexp makes the stream reversible).
    maxprec
        Bit planes per block at most, 1 to 64.
    minexp
        Exponent of the lowest bit plane that is kept; below -1074 the reversible transform is used, and the stream is
        lossless if maxbits and maxprec do not truncate it.
    """

    minbits: int = 1
    maxbits: int = _MAX_BITS
    maxprec: int = _MAX_PREC
    minexp: int = _MIN_EXP

    def __post_init__(self) -> None:
        numbers = (self.minbits, self.maxbits, self.maxprec, self.minexp)
        if not all(_is_integer(number) for number in numbers):
            raise ParameterError(f"expected whole numbers in expert mode, got {self}")
        if not (
            0 <= self.minbits <= self.maxbits < 1 << 32
            and self.minbits <= _native.header_max_bits
            and self.maxbits > 0
            and 1 <= self.maxprec <= _MAX_PREC
            and -(1 << 31) <= self.minexp < 1 << 31
        ):
            raise ParameterError(
                "expected 0 <= minbits <= maxbits, minbits <= 32768, maxbits >= 1, maxprec 1 to 64 and a 32-bit minexp,"
                f" got {self}"
            )
        _make_plain(self, "minbits", "maxbits", "maxprec", "minexp")

    def params(self, dtype: np.dtype[Any], rank: int) -> _native.Params:
        """Return the numbers for the native codec."""
        DTYPE.check("dtype", dtype)
        RANK.check("rank", rank)
        return _checked_params(_native.expert_params(self.minbits, self.maxbits, self.maxprec, self.minexp), str(self))

    def __str__(self) -> str:
        return f"minbits={self.minbits}, maxbits={self.maxbits}, maxprec={self.maxprec}, minexp={self.minexp}"


@dataclass(frozen=True, slots=True)
class Reversible:
    """Lossless: every bit is kept, including NaN, infinities and -0.0."""

    def params(self, dtype: np.dtype[Any], rank: int) -> _native.Params:
        """Return the numbers for the native codec."""
        DTYPE.check("dtype", dtype)
        RANK.check("rank", rank)
        return _native.reversible_params()

    def __str__(self) -> str:
        return "reversible=True"


Mode = Rate | Precision | Accuracy | Expert | Reversible


def mode(
    *,
    rate: float | None = None,
    precision: int | None = None,
    accuracy: float | None = None,
    reversible: bool = False,
    minbits: int | None = None,
    maxbits: int | None = None,
    maxprec: int | None = None,
    minexp: int | None = None,
) -> Mode:
    """Return the mode for the arguments.

    Parameters
    ----------
    rate, precision, accuracy, reversible
        See `Rate`, `Precision`, `Accuracy` and `Reversible`.
    minbits, maxbits, maxprec, minexp
        Any of these; see `Expert` for the defaults of the others.

    Raises
    ------
    ParameterError
        If there is no mode or more than one, or its numbers are out of range.
    """
    expert = {"minbits": minbits, "maxbits": maxbits, "maxprec": maxprec, "minexp": minexp}
    expert_given = {name: value for name, value in expert.items() if value is not None}
    if not (isinstance(reversible, (int, np.bool_)) and reversible in (True, False)):
        raise ParameterError(f"expected reversible=True or False, got reversible={reversible!r}")
    modes: list[tuple[str, Any]] = []
    if rate is not None:
        modes.append(("rate", lambda: Rate(rate)))
    if precision is not None:
        modes.append(("precision", lambda: Precision(precision)))
    if accuracy is not None:
        modes.append(("accuracy", lambda: Accuracy(accuracy)))
    if reversible:
        modes.append(("reversible", Reversible))
    if expert_given:
        modes.append((f"expert ({', '.join(expert_given)})", lambda: Expert(**expert_given)))
    if len(modes) != 1:
        got = " and ".join(name for name, _ in modes) or "none"
        modes_in_words = "rate, precision, accuracy, reversible, or minbits, maxbits, maxprec and minexp"
        raise ParameterError(f"expected exactly one ZFP mode, got {got}: give one of {modes_in_words}")
    result: Mode = modes[0][1]()
    return result


def as_mode(value: Any) -> Mode:
    """Return a mode unchanged, or the mode of a filter such as `tamis.Zfp`.

    Raises
    ------
    ParameterError
        If the value is neither.
    """
    result = value if isinstance(value, Mode) else getattr(value, "mode", None)
    if not isinstance(result, Mode):
        raise ParameterError(f"expected a mode such as tamis.zfp.Rate(8) or tamis.Zfp(rate=8), got {value!r}")
    return result


def mode_of(params: _native.Params, rank: int) -> Mode:
    """Return the mode of the codec's four numbers, as libzfp classifies them."""
    _PARAMS.check("params", params)
    RANK.check("rank", rank)
    numbers = Expert(params.minbits, params.maxbits, params.maxprec, params.minexp)
    any_size = params.minbits <= 1 and params.maxbits >= _MAX_BITS
    if any_size and params.maxprec == _MAX_PREC and params.minexp < _MIN_EXP:
        return Reversible()
    if numbers == Expert():
        return numbers
    if params.minbits == params.maxbits and params.maxprec == _MAX_PREC and params.minexp == _MIN_EXP:
        return Rate(params.maxbits / 4**rank)
    if any_size and params.minexp == _MIN_EXP:
        return Precision(params.maxprec)
    if any_size and params.maxprec == _MAX_PREC and params.minexp <= 1023:
        return Accuracy(math.ldexp(1.0, params.minexp))
    return numbers


def is_lossless(mode: Mode) -> bool:
    """Return whether a mode keeps every bit of every value, whatever the type."""
    if isinstance(mode, Expert):
        return mode.minexp < _MIN_EXP and mode.maxbits >= _MAX_BITS and mode.maxprec == _MAX_PREC
    return isinstance(mode, Reversible)


def native_type(dtype: np.dtype[Any]) -> _native.Type:
    """Return the codec's type for a dtype; unsigned integers count as signed."""
    return _native.Type[dtype.name.removeprefix("u")]


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


def _is_positive(value: object) -> bool:
    try:
        return _is_number(value) and 0 < float(value) < math.inf  # type: ignore[arg-type]
    except OverflowError:
        return False


def _is_integer(value: object) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _make_plain(mode: object, *names: str) -> None:
    """Convert numpy's numbers to Python's, whose repr can be parsed again."""
    for name in names:
        value = getattr(mode, name)
        if isinstance(value, np.generic):
            object.__setattr__(mode, name, value.item())


def _make_float(mode: object, name: str) -> None:
    """Convert any number to Python's float: equal modes have the same text."""
    object.__setattr__(mode, name, float(getattr(mode, name)))


def _number_text(number: float) -> str:
    return repr(number).removesuffix(".0")


def _checked_params(params: _native.Params | _native.Failure, text: str) -> _native.Params:
    if isinstance(params, _native.Failure):
        raise ParameterError(f"expected parameters that give 1 to 32768 bits per block, got {text}")
    return params
