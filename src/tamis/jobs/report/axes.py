"""The axes of a variable: names, and edges in degrees where coastlines fit."""

from __future__ import annotations

from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis import meaning
from tamis.errors import TamisError
from tamis.jobs.recipes import dimensions_of
from tamis.jobs.report.maps import Box
from tamis.stores import size_of

if TYPE_CHECKING:
    from tamis.stores import Store

_NORTH = frozenset(("degrees_north", "degree_north", "degrees_n", "degree_n", "degreesn", "degreen"))
_EAST = frozenset(("degrees_east", "degree_east", "degrees_e", "degree_e", "degreese", "degreee"))
_UPWARD = ("lat", "nlat", "y", "j", "eta", "rlat")
"""Names of axes that usually go north on grids that are not regular."""

_MOST_COORDINATES = 1 << 16
_UNEVEN = 0.6
"""By how many steps a coordinate may deviate from even ones."""


class Axes(NamedTuple):
    """The axes of a variable."""

    names: tuple[str, ...]  # Slowest first
    extents: tuple[int, ...]
    box: Box | None = None  # Edges of the last two axes in degrees, if they are even latitudes and longitudes
    flip: bool = False  # Whether the first row is at the bottom of a map


def axes_of(store: Store, path: str, shape: tuple[int, ...]) -> Axes:
    """Return the axes of an array."""
    names = names_of(store, path)
    if len(names) != len(shape):
        return Axes(tuple(f"axis {number}" for number in range(len(shape))), shape)
    if len(shape) < 2:
        return Axes(names, shape)
    group = path.rpartition("/")[0]
    latitudes, longitudes = (
        _degrees(store, group, name, units) for name, units in zip(names[-2:], (_NORTH, _EAST), strict=True)
    )
    upward = names[-2].lower() in _UPWARD
    if latitudes is None or len(latitudes) != shape[-2]:
        return Axes(names, shape, None, upward)
    rises = bool(latitudes[-1] > latitudes[0])
    if longitudes is None or len(longitudes) != shape[-1] or longitudes[-1] < longitudes[0]:
        return Axes(names, shape, None, rises)
    south, north = sorted(_edges(latitudes))
    west, east = _edges(longitudes)
    fits = east - west <= 360.0 + 1e-3 and south >= -91.0 and north <= 91.0 and west >= -361.0 and east <= 721.0
    return Axes(names, shape, Box(west, east, south, north) if fits else None, rises)


def names_of(store: Store, path: str) -> tuple[str, ...]:
    """Return the names of the dimensions of an array, or none where only netCDF would number them."""
    names = dimensions_of(store, path) or ()
    return () if any(name.startswith("phony_dim_") for name in names) else names


def _degrees(store: Store, group: str, name: str, units: frozenset[str]) -> NDArray[Any] | None:
    """Return the values of a coordinate in even degrees; None if it is not one."""
    array = store.arrays.get(f"{group}/{name}") or store.arrays.get(f"/{name}")
    if array is None or array.type.numbers is None or not 2 <= size_of(array) <= _MOST_COORDINATES:
        return None
    if len(array.shape) != 1 or meaning.text(array.attributes, "units").strip().lower() not in units:
        return None
    with suppress(TamisError), closing(array.open_reader()) as reader:
        values = np.asarray(reader.read((slice(0, size_of(array)),)), np.float64)
        even = np.linspace(values[0], values[-1], len(values))
        step = abs(values[-1] - values[0]) / (len(values) - 1)
        if step > 0 and np.isfinite(values).all() and np.abs(values - even).max() <= _UNEVEN * step:
            return values
    return None


def _edges(values: NDArray[Any]) -> tuple[float, float]:
    """Return the outer edges of the cells around values."""
    half = (values[-1] - values[0]) / (len(values) - 1) / 2
    return float(values[0] - half), float(values[-1] + half)
