"""What reading a file over a network costs: requests and bytes, counted for its opening, and planned from its index."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from tamis.arrays.gather import whole
from tamis.arrays.reader import ContiguousReader
from tamis.arrays.selection import Selection
from tamis.errors import FileError
from tamis.formats.registry import open_store
from tamis.formatting import size_text
from tamis.library_lock import unless_held
from tamis.remote.address import Address, place_of
from tamis.remote.file import AT_ONCE, in_fewest_rounds
from tamis.remote.object_store import Entry, LocalObjects, Objects, Part, Range
from tamis.remote.objects import objects_of
from tamis.stores.facts import array_nbytes

if TYPE_CHECKING:
    from tamis.arrays.grid import Region
    from tamis.stores.protocols import StoredArray

_BANDWIDTH = 50e6  # bytes in a second
_ANSWER_SECONDS = 0.003


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


class _Counted:
    """A store that counts what is asked of it."""

    protocol = "file"

    def __init__(self, objects: Objects) -> None:
        self._objects, self.requests, self.nbytes, self.rounds = objects, 0, 0, 0
        self.can_list, self.reads_tails = objects.can_list, objects.reads_tails
        self._lock, self.waiting = threading.Lock(), 0
        self.spans: list[Range] = []  # that were asked for

    def get(self, key: str, span: Range | None, version: str) -> Part:
        """Return a range; see `Objects.get`."""
        with unless_held(self._lock):
            self.rounds += not self.waiting
            self.waiting += 1
            self.spans += [] if span is None else [span]
        time.sleep(_ANSWER_SECONDS)  # so that requests at the same time are seen to be
        try:
            part = self._objects.get(key, span, version)
            self._count([part.data])
        finally:
            with unless_held(self._lock):
                self.waiting -= 1
        return part._replace(version="")  # without one, no metadata are kept on disk, or taken from there

    def get_many(self, key: str, spans: Sequence[Range]) -> list[bytes | memoryview]:
        """Return ranges; see `Objects.get_many`."""
        self.rounds += 1
        found = self._objects.get_many(key, spans)
        self._count(found)
        return found

    def entries(self, prefix: str) -> Iterator[Entry]:
        """Yield the objects below a folder."""
        self.requests += 1
        yield from self._objects.entries(prefix)

    def _count(self, parts: Sequence[bytes | memoryview]) -> None:
        with unless_held(self._lock):
            self.requests += len(parts)
            self.nbytes += sum(map(len, parts))


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
    if isinstance(place, Address):
        objects, key = objects_of(place)
        counted = _Counted(objects)
    else:
        if not place.is_file():
            raise FileError(f"{place}: not a file, and the cost is only of files: in Zarr, each chunk is a request")
        counted, key = _Counted(LocalObjects()), str(place.absolute())
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
        return max(store.arrays, key=lambda name: array_nbytes(store.arrays[name]))


def _of_selection(name: str, array: StoredArray, region: Region, counted: _Counted, latency: float) -> Access:
    """Return the cost of a part of a variable, with what finding the values takes."""
    before = counted.requests, counted.nbytes, counted.rounds
    wanted = _chunks_of(array, region) if array.can_read_chunks else _runs_of(array)(region)
    while counted.waiting:  # values may come with the index
        time.sleep(_ANSWER_SECONDS)
    known = counted.spans
    spans = in_fewest_rounds([(at, end) for at, end in wanted if not any(a <= at and end <= b for a, b in known)])
    requests, nbytes, rounds = (
        now - then for now, then in zip((counted.requests, counted.nbytes, counted.rounds), before, strict=True)
    )
    nbytes += sum(end - begin for begin, end in spans)
    rounds += -(-len(spans) // AT_ONCE)
    return Access(name, requests + len(spans), nbytes, rounds * latency + nbytes / _BANDWIDTH)


def _selections(shape: tuple[int, ...]) -> Iterator[tuple[str, Region]]:
    """Yield a map and a series in the middle of an array, and all of it."""
    middle = tuple(slice(extent // 2, extent // 2 + 1) for extent in shape)
    if len(shape) > 1:
        yield "map", (*middle[:1], *whole(shape[1:]))
        yield "series", (*whole(shape[:1]), *middle[1:])
    yield "whole", whole(shape)


def _chunks_of(array: StoredArray, region: Region) -> list[Range]:
    """Return the ranges of the chunks that a region touches; reads the chunk index as far as a reader would."""
    selection = Selection(tuple(range(axis.start, axis.stop) for axis in region), frozenset())
    index = (array.open_few(selection) or array.open_chunks()).index
    rows = index.positions_of(selection.numbers(index.grid))
    begins, sizes = index.offsets[rows[rows >= 0]], index.sizes[rows[rows >= 0]]
    return [*zip(begins.tolist(), (begins + sizes).tolist(), strict=True)]


def _runs_of(array: StoredArray) -> Callable[[Region], list[Range]]:
    """Return what gives the ranges of values that are in one run, or in records; none for values elsewhere."""
    with closing(array.open_reader()) as reader:
        if not isinstance(reader, ContiguousReader):
            raise FileError(f"{array.label}: expected chunks, or values in one run, found {array.storage.layout} ones")
        return reader.spans
