"""Whether the coordinate of steps that are appended continues that of the file: in order, and each value once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xarray import Variable

from tamis.arrays.gather import whole
from tamis.xarray.existing import Existing


def order_warnings(found: Existing, given: Variable, stored: Variable) -> Iterator[str]:
    """Yield what is unusual about the appended values of a coordinate, of each kind the first one.

    Parameters
    ----------
    found
        The coordinate in the file.
    given
        The values that are appended, which a person reads.
    stored
        The same values as the file stores them, so that they can be compared with those there.
    """
    with closing(found.array.open_reader()) as reader:
        old = reader.read(whole(found.named.shape))
    shown = [*found.decoded.values, *given.values]
    values = np.concatenate([old, stored.values.astype(old.dtype, copy=False)])
    present = np.flatnonzero(~np.concatenate([variable.isnull().values for variable in (found.decoded, given)]))
    if (missing := np.setdiff1d(np.arange(len(old), len(values)), present)).size:
        yield f"{shown[missing[0]]} at {_place(missing[0], len(old))}: a step without a {given.dims[0]}"
    _, first, number = np.unique(values[present], return_index=True, return_inverse=True)
    earlier = present[first[number]]  # where each value is for the first time
    is_new = present >= len(old)
    if (twice := np.flatnonzero(is_new & (earlier != present))).size:
        at = present[twice[0]]
        yield (
            f"{_text(shown[at])} at {_place(at, len(old))} is there twice, first at"
            f" {_place(earlier[twice[0]], len(old))}"
        )
    wrong, word = _out_of_order(values[present], int((~is_new).sum()), is_time=given.dtype.kind in "MO")
    wrong = wrong[is_new[wrong] & (earlier[wrong] == present[wrong])]
    if wrong.size:
        at, before = present[wrong[0]], _text(shown[present[wrong[0] - 1]])
        yield f"{_text(shown[at])} at {_place(at, len(old))} is {word} the value that it follows, {before}"


def _out_of_order(values: NDArray[Any], old: int, *, is_time: bool) -> tuple[NDArray[np.intp], str]:
    """Return which values do not rise, or fall if the `old` ones do, and where they are instead, in a word.

    Times that follow a single one must rise; of other values, the new ones may say in which order they are.
    """
    rises, falls = values[1:] > values[:-1], values[1:] < values[:-1]
    known = falls[: old - 1] if old > 1 else falls[:0] if is_time else falls
    if known.size and known.all():
        return np.flatnonzero(rises) + 1, "after" if is_time else "above"
    if old > 1 and known.any():
        return np.empty(0, np.intp), ""  # the file has no order
    return np.flatnonzero(falls) + 1, "before" if is_time else "below"


def _place(index: Any, old: int) -> str:
    """Return where a value is, in words."""
    return f"[{index - old}] of what is appended" if index >= old else f"[{index}] of the file"


def _text(value: Any) -> str:
    """Return a value for people: a time without the zeros of NumPy's nanoseconds."""
    if not isinstance(value, np.datetime64):
        return str(value)
    day, _, clock = str(value).partition("T")
    return f"{day} {clock.rstrip('0').rstrip('.') if '.' in clock else clock}".rstrip()
