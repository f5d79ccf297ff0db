"""Chunk shapes by the names of dimensions: ``{"time": 10, "lat": 96}``."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import dataclass

from tamis.errors import ParameterError, TamisError
from tamis.formatting import did_you_mean
from tamis.jobs.recipe import chunk_shape
from tamis.store.array import Store, StoredArray


@dataclass(frozen=True, slots=True)
class DimensionChunks:
    """Extents of chunks along named dimensions.

    Parameters
    ----------
    extents
        Name and extent of each dimension. Along others, chunks stay as long as they are, or become as long as the
        dimension if the dataset has no chunks.
    """

    extents: tuple[tuple[str, int], ...]

    def of(self, store: Store, array: StoredArray) -> tuple[int, ...]:
        """Return the chunk shape of an array; no chunk is longer than a dimension that cannot grow.

        Raises
        ------
        ParameterError
            If the array has no dimensions with such names.
        """
        names = dimensions_of(store, array.path)
        if names is None or array.shape is None:
            raise ParameterError("expected dimensions with names for chunks by dimension, found none: use a list")
        wanted = dict(self.extents)
        if unknown := [name for name in wanted if name not in names]:
            raise ParameterError(
                f"expected chunks for the dimensions {', '.join(names) or '(none)'}, got {', '.join(unknown)}"
                f"{did_you_mean(unknown[0], names)}"
            )
        own = array.chunk_shape or tuple(max(extent, 1) for extent in array.shape)
        return tuple(
            step if (extent := wanted.get(name)) is None else extent if most is None else min(extent, max(most, 1))
            for name, step, most in zip(names, own, array.maxshape, strict=True)
        )

    def __str__(self) -> str:
        return ", ".join(f"{name}={extent}" for name, extent in self.extents)


Chunks = tuple[int, ...] | DimensionChunks


def as_chunks(value: object) -> Chunks:
    """Return a chunk shape, or extents by dimension as `DimensionChunks`.

    Raises
    ------
    ParameterError
        If extents are no whole numbers above 0.
    """
    if isinstance(value, DimensionChunks):
        return value
    if not isinstance(value, Mapping):
        return chunk_shape(value)
    try:
        extents = tuple((name, operator.index(extent)) for name, extent in value.items())
    except TypeError:
        extents = ()
    if not extents or not all(isinstance(name, str) and 0 < extent < 10**18 for name, extent in extents):
        raise ParameterError(f"expected whole numbers above 0 by dimension such as {{'time': 10}}, got {value!r}")
    return DimensionChunks(extents)


def dimensions_of(store: Store, path: str) -> tuple[str, ...] | None:
    """Return the names of an array's dimensions; None if it has none."""
    group, _, name = path.rpartition("/")
    try:
        return store.model.group(group or "/").variables[name].dimensions
    except (TamisError, KeyError):
        return None


def units_along(store: Store, path: str) -> dict[str, str]:
    """Return the units of the coordinate of each dimension, of the array's group or the root; empty without any."""
    group = path.rpartition("/")[0]
    units = {}
    for name in dimensions_of(store, path) or ():
        coordinate = store.arrays.get(f"{group}/{name}") or store.arrays.get(f"/{name}")
        text = "" if coordinate is None else coordinate.attributes.get("units", "")
        units[name] = text if isinstance(text, str) else ""
    return units
