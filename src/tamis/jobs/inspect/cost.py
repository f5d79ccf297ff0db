"""What reading a file over a network costs: requests and bytes, counted for its opening, and planned from its index."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from tamis.arrays import ContiguousReader, Selection, whole
from tamis.errors import FileError
from tamis.formats import open_store
from tamis.formatting import size_text
from tamis.remote import Address, CountedObjects, counted_at, place_of
from tamis.stores import values_nbytes_of

if TYPE_CHECKING:
    from tamis.arrays import Region
    from tamis.stores import StoredArray

_BANDWIDTH = 50e6  # bytes in a second


@dataclass(frozen=True)
class Access:
    """What one way of reading costs."""

    name: str  # What is read
    requests: int
    nbytes: int
    seconds: float


@dataclass(frozen=True)
class ReadingCost:
    """What reading a file over a network costs: opening it, and a map, a series and all of a variable.

    Parameters
    ----------
    path
        Path or address of the file.
    latency
        Seconds before the server answers.
    price
        Price of a million requests.
    accesses
        What is read, in order; the index of a variable is counted with its first values.
    """

    path: str
    latency: float
    price: float
    accesses: tuple[Access, ...]

    def lines(self) -> Iterator[str]:
        """Yield the table."""
        width = max(len(access.name) for access in self.accesses)
        yield f"{self.path} over a network that answers after {self.latency * 1000:g} ms, with 50 MB/s"
        yield f"{'read':<{width}}  requests      bytes  seconds  price of 1000"
        for access in self.accesses:
            price = 1000 * access.requests * self.price / 1e6
            columns = f"{access.requests:>8}  {size_text(access.nbytes):>9}  {access.seconds:>7.2f}  {price:>13.4f}"
            yield f"{access.name:<{width}}  {columns}"

    def to_dict(self) -> dict[str, Any]:
        """Return everything as a mapping for JSON."""
        return asdict(self)


def reading_cost(path: Any, variables: Sequence[str] = (), *, latency: float = 0.03, price: float = 0.4) -> ReadingCost:
    """Return what reading an HDF5, netCDF-4 or classic file over a network would cost, or costs.

    Parameters
    ----------
    path
        Path or address; a local file is read as if it were elsewhere.
    variables
        Paths of the variables; by default the largest one.
    latency
        Seconds before an answer.
    price
        Price of a million requests.

    Raises
    ------
    FileError
        If the file cannot be read, or is a Zarr store, whose objects are its chunks.
    """
    place = place_of(path)
    if not isinstance(place, Address) and not place.is_file():
        raise FileError(f"{place}: not a file, and the cost is only of files: in Zarr, each chunk is a request")
    counted, key = counted_at(place)
    names = [*variables] or [_largest(path)]
    accesses = []
    with open_store(Address(key, counted)) as store:
        seconds = counted.rounds * latency + counted.nbytes / _BANDWIDTH
        accesses.append(Access("open", counted.requests, counted.nbytes, seconds))
        shapes = {name: tuple(store.array(f"/{name.lstrip('/')}").shape or ()) for name in names}
    for name, shape in shapes.items():
        for word, region in _selections(shape):
            with open_store(Address(key, counted)) as store:  # anew, because what one read finds, others know
                array = store.array(f"/{name.lstrip('/')}")
                accesses.append(_of_selection(f"{array.path} {word}", array, region, counted, latency))
    return ReadingCost(str(place), latency, price, tuple(accesses))


def _largest(path: Any) -> str:
    """Return the path of the largest array of a file."""
    with open_store(path) as store:
        if not store.arrays:
            raise FileError(f"{store.path}: has no arrays").at(path=store.path)
        return max(store.arrays, key=lambda name: values_nbytes_of(store.arrays[name]))


def _of_selection(name: str, array: StoredArray, region: Region, counted: CountedObjects, latency: float) -> Access:
    """Return the cost of a part of a variable, with what finding the values takes."""
    before = counted.requests, counted.nbytes, counted.rounds
    wanted = _chunks_of(array, region) if array.can_read_chunks else _runs_of(array)(region)
    counted.finish()  # values may come with the index
    counted.count_unread(wanted)
    requests, nbytes, rounds = (
        now - then for now, then in zip((counted.requests, counted.nbytes, counted.rounds), before, strict=True)
    )
    return Access(name, requests, nbytes, rounds * latency + nbytes / _BANDWIDTH)


def _selections(shape: tuple[int, ...]) -> Iterator[tuple[str, Region]]:
    """Yield a map and a series in the middle of an array, and all of it."""
    middle = tuple(slice(extent // 2, extent // 2 + 1) for extent in shape)
    if len(shape) > 1:
        yield "map", (*middle[:1], *whole(shape[1:]))
        yield "series", (*whole(shape[:1]), *middle[1:])
    yield "whole", whole(shape)


def _chunks_of(array: StoredArray, region: Region) -> list[tuple[int, int]]:
    """Return the ranges of the chunks that a region touches; reads the chunk index as far as a reader would."""
    selection = Selection(tuple(range(axis.start, axis.stop) for axis in region), frozenset())
    index = (array.open_few(selection) or array.open_chunks()).index
    rows = index.positions_of(selection.numbers(index.grid))
    begins, sizes = index.offsets[rows[rows >= 0]], index.sizes[rows[rows >= 0]]
    return [*zip(begins.tolist(), (begins + sizes).tolist(), strict=True)]


def _runs_of(array: StoredArray) -> Callable[[Region], list[tuple[int, int]]]:
    """Return what gives the ranges of values that are in one run, or in records; none for values elsewhere."""
    with closing(array.open_reader()) as reader:
        if not isinstance(reader, ContiguousReader):
            raise FileError(f"{array.label}: expected chunks, or values in one run, found {array.storage.layout} ones")
        return reader.spans
