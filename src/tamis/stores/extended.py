"""An array that ends before its dimensions do, as readers of netCDF have it: with the fill value up to their end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np
from numpy.typing import NDArray

from tamis.arrays.gather import intersection, whole, within
from tamis.arrays.grid import Grid, Region, shape_of
from tamis.arrays.index import ChunkIndex, Parts, as_array
from tamis.arrays.reader import ArrayReader, viewed
from tamis.errors import FileError
from tamis.stores.arrays import DescribedArray
from tamis.stores.facts import fill_as
from tamis.stores.protocols import StoredArray

if TYPE_CHECKING:
    from tamis.meaning.arrays import Meaning
    from tamis.stores.facts import Elsewhere


def extended(array: StoredArray, shape: tuple[int, ...]) -> StoredArray:
    """Return an array up to the end of its dimensions, whose sizes are `shape`; the array itself if it ends there."""
    if array.shape is None or shape == tuple(array.shape):
        return array
    if array.marks.has_companion:
        raise FileError(
            f"{array.label}: expected as many values as its dimensions have, {shape}, found {array.shape}:"
            " extend the variable in the source, or make it without its missing-value mask"
        ).at(dataset=array.path)
    return cast("StoredArray", ExtendedArray(array, shape))


class ExtendedArray(DescribedArray):
    """An array with more values along some axes; see `tamis.stores.protocols.StoredArray`."""

    can_read_chunks = False  # the chunk at the end has anything after it

    def __init__(self, source: StoredArray, shape: tuple[int, ...]) -> None:
        self.source = source
        self.shape = shape
        self.attributes = source.attributes
        self.type = source.type
        self.fill = source.fill
        self.storage = source.storage._replace(partial_filtered=True)

    def __getattr__(self, name: str) -> Any:
        """Return what more values do not change, such as path and address."""
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.source, name)

    @property
    def meaning(self) -> Meaning:
        """What the attributes say about the values: more values do not change it."""
        return self.source.meaning

    @property
    def elsewhere(self) -> Elsewhere:
        """The other files that the array in the store refers to."""
        return self.source.elsewhere

    def as_values(self) -> Self:
        """See `StoredArray.as_values`."""
        return type(self)(self.source.as_values(), self.shape)

    def parts(self, grid: Grid) -> Parts:
        """Return the parts of a grid that have values in the store."""
        own = self.source.parts(Grid(tuple(self.source.shape), grid.chunk_shape))
        if not len(own):
            return Parts(grid, range(0))
        places = np.unravel_index(as_array(own.numbers), own.grid.counts)
        return Parts(grid, np.ravel_multi_index(places, grid.counts))

    def chunk_index(self) -> ChunkIndex:
        """Return the chunk index of the array in the store."""
        return self.source.chunk_index()

    def open_reader(self, *, independent: bool = False) -> ArrayReader:
        """See `StoredArray.open_reader`."""
        return ExtendedReader(self.source.open_reader(independent=independent), self)

    def open_values(self) -> ArrayReader:
        """See `StoredArray.open_values`."""
        return viewed(ExtendedReader(self.source.open_values(), self), self.type.values)

    def open_witness(self) -> ArrayReader:
        """See `StoredArray.open_witness`."""
        return viewed(ExtendedReader(self.source.open_witness(), self), self.type.values)


class ExtendedReader:
    """The values of another reader, and the fill value after them; see `tamis.arrays.reader.ArrayReader`."""

    def __init__(self, reader: ArrayReader, array: ExtendedArray) -> None:
        self.shape = array.shape
        self.dtype = reader.dtype
        self.chunk_shape = reader.chunk_shape
        self.close = reader.close
        self._reader = reader
        self._stored = whole(array.source.shape)
        self._fill = "" if array.type.varies else fill_as(array.fill, reader.dtype)

    def read(self, part: Region, out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Read a part."""
        shared = intersection(part, self._stored)
        if shared == tuple(part):
            return self._reader.read(part, out)
        values = np.empty(shape_of(part), self.dtype) if out is None else out
        values[...] = self._fill
        if all(span.start < span.stop for span in shared):
            values[within(shared, part)] = self._reader.read(shared)
        return values
