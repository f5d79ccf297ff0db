"""Kinds of arguments, which public functions check first: ``PATH.check("source", source)``."""

from __future__ import annotations

import io
import numbers
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tamis.errors import ParameterError
from tamis.formatting import shortened


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of argument: its words in messages, and whether a value is one."""

    words: str
    fits: Callable[[Any], bool]

    def such_as(self, example: str) -> Kind:
        """Return the kind with an example in its words."""
        return Kind(f"{self.words} such as {example}", self.fits)

    def check(self, name: str, value: Any) -> None:
        """Raise ParameterError if an argument is of another kind."""
        if not self.fits(value):
            raise self.error(name, value)

    def error(self, name: str, value: Any) -> ParameterError:
        """Return the error about an argument of another kind."""
        return ParameterError(f"expected {name} to be {self.words}, got {shortened(repr(value))}")

    def check_optional(self, name: str, value: Any) -> None:
        """Raise ParameterError if an argument is of another kind; None, the default, stands for no argument."""
        if value is not None:
            self.check(name, value)


# Types of most values, as tuples: a union is made anew in each call, and abstract classes take longer to ask.
_LISTS = (tuple, list)
_BYTES = (bytes, bytearray, memoryview)
_FLAGS = (bool, np.bool_)


def _is_path(value: Any) -> bool:
    return isinstance(value, os.PathLike) or (isinstance(value, str | bytes) and len(value) > 0)


def _are(value: Any, fits: Callable[[Any], bool]) -> bool:
    """Return whether a value yields items that fit; an iterator is not examined, because that would use it up."""
    if type(value) in _LISTS:
        return all(map(fits, value))
    if isinstance(value, Mapping | io.IOBase) or not isinstance(value, Iterable):
        return False
    return iter(value) is value or all(map(fits, value))


def _is_type(value: Any) -> bool:
    try:
        return value is not None and np.dtype(value).itemsize > 0
    except (AttributeError, TypeError, ValueError):
        return False


def _has_bytes(value: Any) -> bool:
    """Return whether another object, such as an array or a mapped file, gives access to a row of bytes."""
    try:
        view = memoryview(value)
    except TypeError:
        return False
    return view.itemsize == view.ndim == 1 and view.contiguous


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def _is_whole(value: Any) -> bool:
    return type(value) is int or (isinstance(value, numbers.Integral) and not isinstance(value, bool))


def _is_stored(value: Any) -> bool:
    """Return whether a value is a tuple of whole numbers, as stored parameters of filters are."""
    if not isinstance(value, tuple):
        return False
    for word in value:  # noqa: SIM110 - faster, for each chunk
        if type(word) is not int and not _is_whole(word):
            return False
    return True


PATH = Kind("a path such as 'a.nc'", _is_path)
PATHS = Kind("a path or several such as ['a.nc', 'b.nc']", lambda value: _is_path(value) or _are(value, _is_path))
LOCATION = Kind(
    "a path such as 'a.nc', or an address such as 's3://bucket/a.nc'",
    lambda value: _is_path(value) or (hasattr(value, "fs") and hasattr(value, "path")),
)
TEXT = Kind("text", _is_text)
BYTES = Kind("bytes", lambda value: isinstance(value, _BYTES) or _has_bytes(value))
NAMES = Kind("a name or several such as ['TS', '/group/*']", lambda value: _is_text(value) or _are(value, _is_text))
MAPPING = Kind("a mapping", lambda value: type(value) is dict or isinstance(value, Mapping))
NUMBER = Kind("a number", _is_number)
WHOLE = Kind("a whole number", _is_whole)
COUNT = Kind("a whole number, 1 or more", lambda value: WHOLE.fits(value) and value >= 1)
WHOLES = Kind("whole numbers such as (4, 96)", lambda value: _are(value, WHOLE.fits))
STORED = Kind("a tuple of 32-bit whole numbers such as (4,)", _is_stored)
RANK = Kind("a number of axes from 1 to 4", lambda value: WHOLE.fits(value) and 1 <= value <= 4)
ATTRIBUTES = Kind(
    "a mapping of names to values such as {'units': 'K'}",
    lambda value: MAPPING.fits(value) and _are(list(value), _is_text),
)
DTYPE = Kind("a type such as numpy.dtype('float32')", lambda value: isinstance(value, np.dtype))
DTYPE_LIKE = Kind("a type such as 'float32'", _is_type)
ARRAY = Kind("an array of NumPy", lambda value: isinstance(value, np.ndarray))
FLAG = Kind("True or False", lambda value: isinstance(value, _FLAGS))
CLIENT = Kind("a client of Dask", lambda value: hasattr(value, "submit"))
CALLBACK = Kind("a function", lambda value: callable(value) and not isinstance(value, type))


def whole_within(least: int, most: int | None = None) -> Kind:
    """Return the kind of whole numbers within bounds."""
    words = f"a whole number, {least} or more" if most is None else f"a whole number of {least} to {most}"
    return Kind(words, lambda value: WHOLE.fits(value) and least <= value and (most is None or value <= most))


def instance(words: str, *types: type) -> Kind:
    """Return the kind of the instances of classes."""
    return Kind(words, lambda value: isinstance(value, types))
