"""Kinds of arguments of public functions, checked before anything is done."""

from __future__ import annotations

import functools
import inspect
import io
import numbers
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

import numpy as np

from tamis.errors import ParameterError, TamisError
from tamis.formatting import shortened

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of argument: its words in messages, and whether a value is one."""

    words: str
    fits: Callable[[Any], bool]

    def such_as(self, example: str) -> Kind:
        """Return the kind with an example in its words."""
        return Kind(f"{self.words} such as {example}", self.fits)

    def or_none(self) -> Kind:
        """Return the kind that also allows None."""
        return Kind(f"{self.words} or None", lambda value: value is None or self.fits(value))

    def check(self, name: str, value: Any) -> None:
        """Raise ParameterError if an argument is of another kind."""
        if not self.fits(value):
            raise ParameterError(f"expected {name} to be {self.words}, got {shortened(repr(value))}")


def _is_path(value: Any) -> bool:
    return isinstance(value, str | bytes | os.PathLike)


def _are(value: Any, fits: Callable[[Any], bool]) -> bool:
    """Return whether a value yields items that fit; an iterator is not examined, because that would use it up."""
    if isinstance(value, Mapping | io.IOBase) or not isinstance(value, Iterable):
        return False
    return iter(value) is value or all(map(fits, value))


def _is_type(value: Any) -> bool:
    try:
        return value is not None and np.dtype(value).itemsize > 0
    except (AttributeError, TypeError, ValueError):
        return False


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


PATH = Kind("a path such as 'a.nc'", _is_path)
PATHS = Kind("a path or several such as ['a.nc', 'b.nc']", lambda value: _is_path(value) or _are(value, _is_path))
LOCATION = Kind(
    "a path such as 'a.nc', or an address such as 's3://bucket/a.nc'",
    lambda value: _is_path(value) or (hasattr(value, "fs") and hasattr(value, "path")),
)
TEXT = Kind("text", _is_text)
BYTES = Kind("bytes", lambda value: isinstance(value, bytes | bytearray | memoryview))
NAMES = Kind("a name or several such as ['TS', '/group/*']", lambda value: _is_text(value) or _are(value, _is_text))
MAPPING = Kind("a mapping", lambda value: isinstance(value, Mapping))
NUMBER = Kind("a number", _is_number)
WHOLE = Kind("a whole number", lambda value: _is_number(value) and isinstance(value, numbers.Integral))
COUNT = Kind("a whole number, 1 or more", lambda value: WHOLE.fits(value) and value >= 1)
WHOLES = Kind("whole numbers such as (4, 96)", lambda value: _are(value, WHOLE.fits))
STORED = Kind(
    "a tuple of 32-bit whole numbers such as (4,)", lambda value: isinstance(value, tuple) and WHOLES.fits(value)
)
RANK = Kind("a number of axes from 1 to 4", lambda value: WHOLE.fits(value) and 1 <= value <= 4)
ATTRIBUTES = Kind(
    "a mapping of names to values such as {'units': 'K'}",
    lambda value: MAPPING.fits(value) and _are(list(value), _is_text),
)
DTYPE = Kind("a type such as numpy.dtype('float32')", lambda value: isinstance(value, np.dtype))
DTYPE_LIKE = Kind("a type such as 'float32'", _is_type)
ARRAY = Kind("an array of NumPy", lambda value: isinstance(value, np.ndarray))
FLAG = Kind("True or False", lambda value: isinstance(value, bool | np.bool_))
CLIENT = Kind("a client of Dask", lambda value: hasattr(value, "submit"))
CALLBACK = Kind("a function", lambda value: callable(value) and not isinstance(value, type))


def instance(words: str, *types: type) -> Kind:
    """Return the kind of the instances of classes."""
    return Kind(words, lambda value: isinstance(value, types))


def checked(**kinds: Kind) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator that raises ParameterError for arguments of other kinds; a default of None is allowed.

    Each kind is for the parameter of its name. There is one more frame between the function and its caller, which
    counts for the ``stacklevel`` of its warnings.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        check = _checker(function, kinds)

        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            check(*args, **kwargs)
            return function(*args, **kwargs)

        return call

    return decorate


def explained(**kinds: Kind) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator like `checked` for functions without effects, which checks arguments only after a failure."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        check = _checker(function, kinds)

        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                return function(*args, **kwargs)
            except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
                if not isinstance(error, TamisError):
                    check(*args, **kwargs)
                raise

        return call

    return decorate


def _checker(function: Callable[P, R], kinds: dict[str, Kind]) -> Callable[P, None]:
    """Return a function that raises ParameterError for arguments of other kinds than those of the parameters."""
    signature = functools.cache(lambda: inspect.signature(function))  # late: it takes time, and many are never called

    def check(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            arguments = signature().bind(*args, **kwargs).arguments
        except TypeError as error:
            raise TypeError(f"{function.__name__}() {error}") from None
        for name, value in arguments.items():
            if name in kinds and not (value is None and signature().parameters[name].default is None):
                kinds[name].check(name, value)

    return check
