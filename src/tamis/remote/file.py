"""The bytes of one remote object: ranges in parallel, each checked, and a cache of the parts that hold metadata.

Two ways lead to the store. Values are fetched in threads, by requests that fail if the object changed. What libhdf5
reads is fetched in its own thread (`RemoteFile.fetch_here`), because it waits with h5py's lock: another thread of
Python that the garbage collector makes wait for that lock would never answer (h5py's issue 2019). For the same reason,
threads share lists here, each change of which is one step, and no lock.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import lru_cache, partial
from typing import Generic, NamedTuple, TypeVar
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from tamis import library_lock
from tamis.errors import FileError
from tamis.forks import begin_in_each_process
from tamis.formatting import size_text
from tamis.remote.address import Address
from tamis.remote.object_store import Entry, Objects, Part, Range
from tamis.remote.objects import ChangedError, EncodedError, NoRangesError, check_not_forked, failure, objects_of
from tamis.remote.waiting import watch
from tamis.system.files import write_at

T = TypeVar("T")

MOST_GAP = 64 << 10
"""Largest gap between ranges that one request fetches."""

MOST_NBYTES = 8 << 20
"""Most bytes of one request, unless a single range has more."""

AT_ONCE = 64
"""Most requests at a time."""

ROUND_NBYTES = 3 << 19
"""Bytes that take as long as a round of requests: 30 ms at 50 MB/s."""

REQUEST_NBYTES = 16 << 10
"""Bytes that take as long as the work for a request here: 0.3 ms."""

HEAD_NBYTES = 64 << 10
"""Bytes of the first request, which also tells the size: most headers are there."""

TAIL_NBYTES = 16 << 10
"""Bytes from the end that come with the first request: h5py and tamis write the last metadata there."""

WITH_TAILS = (".nc", ".nc4", ".h5", ".hdf5", ".hdf", ".he5")

MOST_WHOLE_NBYTES = 512 << 20
"""Size of the largest object that is read whole from a server that has no ranges."""

_READ_AHEAD = 16 << 20
_FIRST_AHEAD = 1 << 20
"""Bytes that are read ahead: most, and the first time."""

_STREAM_NBYTES = 2 << 20
"""Most bytes of a request that reads ahead."""

_STREAMS = 16
"""Places from which reads may go on."""

_KEPT_STREAMS = 4
_KEPT_NBYTES = 64 << 20
"""Most windows that were read ahead, and their most bytes; the last one is kept in any case."""


def requests_for(ranges: Sequence[Range], gap: int = MOST_GAP, most: int = MOST_NBYTES) -> list[Range]:
    """Return the requests for ranges of begin and end: near ones together, long ones in parts."""
    joined: list[list[int]] = []
    for begin, end in sorted(ranges):
        if joined and begin <= joined[-1][1] + gap and max(end, joined[-1][1]) - joined[-1][0] <= most:
            joined[-1][1] = max(joined[-1][1], end)
        elif joined and begin < joined[-1][1]:  # overlaps, and is too long together
            if end > joined[-1][1]:
                joined.append([joined[-1][1], end])
        else:
            joined.append([begin, end])
    return [(at, min(at + most, end)) for begin, end in joined for at in range(begin, end, most)]


def in_fewest_rounds(ranges: Sequence[Range], gap: int = MOST_GAP, most: int = MOST_NBYTES) -> list[Range]:
    """Return the requests for ranges, wider gaps read over where that takes less time than another round."""
    requests = requests_for(ranges, gap, most)
    if len(requests) <= AT_ONCE:
        return requests
    over = len(requests) % AT_ONCE
    gaps = sorted(begin - end for (_, end), (begin, _) in itertools.pairwise(requests))
    wider = (requests_for(ranges, wide, most) for wide in (gaps[over - 1], MOST_GAP))
    return min(requests, *wider, key=_cost)


def _cost(requests: Sequence[Range]) -> int:
    """Return the bytes that take as long as requests."""
    rounds_nbytes = -(-len(requests) // AT_ONCE) * ROUND_NBYTES
    return rounds_nbytes + len(requests) * REQUEST_NBYTES + sum(end - begin for begin, end in requests)


class Answer(Generic[T]):
    """The result of a function, called in another thread; a thread that must not wait for others calls it itself."""

    def __init__(self, ask: Callable[[], T]) -> None:
        self._ask = ask
        self._known = list[T]()  # The result, once it is there
        self._future = None if library_lock.is_held() else _threads().submit(self._get)

    def _get(self) -> T:
        if not self._known:
            self._known.append(self._ask())
        return self._known[0]

    def result(self) -> T:
        """Return it; wait for it."""
        return self._get() if self._future is None or library_lock.is_held() else self._future.result()


class Known(NamedTuple):
    """The bytes of a range that are here already."""

    data: memoryview

    def result(self) -> memoryview:
        """Return them."""
        return self.data


class Window:
    """Ranges that are being fetched, or are there, in the order of their offsets and without overlaps."""

    def __init__(
        self, spans: Sequence[Range], parts: Sequence[Answer[memoryview] | Known], *, is_stream: bool = False
    ) -> None:
        self._begins = [begin for begin, _ in spans]
        self._spans = spans
        self._parts = parts
        self.is_stream = is_stream  # Whether it was read ahead, and stays until others are
        self.nbytes = sum(end - begin for begin, end in spans)

    def reach(self, begin: int) -> int:
        """Return how far all bytes from an offset on are here."""
        row = bisect_right(self._begins, begin) - 1
        while 0 <= row < len(self._spans) and self._spans[row][0] <= begin < self._spans[row][1]:
            begin, row = self._spans[row][1], row + 1
        return begin

    def next_begin(self, offset: int) -> int | None:
        """Return where the first range after an offset begins."""
        row = bisect_right(self._begins, offset)
        return self._begins[row] if row < len(self._begins) else None

    def read(self, begin: int, room: memoryview) -> None:
        """Copy the bytes of a range that is covered; wait for them."""
        end = begin + len(room)
        at = begin
        row = bisect_right(self._begins, begin) - 1
        while at < end:
            low, high = self._spans[row]
            last = min(high, end)
            room[at - begin : last - begin] = self._parts[row].result()[at - low : last - low]
            at, row = last, row + 1


class RemoteBytes:
    """Remote bytes by offset, as `tamis.arrays.source.SlowSource`; what `fetch` returns for a range is checked.

    Threads may share it.

    Parameters
    ----------
    address
        The address that messages name.
    """

    nbytes: int
    head: bytes = b""

    def __init__(self, address: Address) -> None:
        self.address = address
        begin_in_each_process(self._begin)

    def _begin(self) -> None:
        self._windows: list[Window] = []  # Their threads do not exist in another process
        self._ends: list[Range] = []  # Ends of the last reads, with how much to read ahead
        self._stops: list[int] = []  # Ends of arrays

    def fetch(self, span: Range) -> memoryview:
        """Return a range by one request."""
        raise NotImplementedError

    def _get(self, address: Address, objects: Objects, key: str, span: Range | None, version: str) -> Part:
        """Make one request; raise FileError for anything but the bytes of the same object."""
        check_not_forked(address)
        try:
            with watch(address):
                part = objects.get(key, span, version)
        except (NoRangesError, FileError):
            raise
        except ChangedError:
            raise _changed(address) from None
        except EncodedError as error:
            raise FileError(
                f"{address}: the server, or a proxy, sent the file encoded ({error}): use an address that "
                "returns it as it is"
            ).at(path=address) from None
        except Exception as error:  # obstore and fsspec raise many kinds
            raise failure(error, address) from None
        if version and part.version != version:
            raise _changed(address)
        return part

    def _get_all(self, address: Address, objects: Objects, key: str, version: str = "") -> Part:
        """Read a whole object into memory, if it is not too large, from a server that has no ranges."""
        part = self._get(address, objects, key, None, version)  # the body is not fetched before it is used
        if part.size > MOST_WHOLE_NBYTES:
            raise FileError(
                f"{address}: the server returns no ranges, only the whole object of {size_text(part.size)}: "
                "download it first"
            ).at(path=address)
        if len(part.data) != part.size:
            raise _short(address, 0, part.size, len(part.data))
        return part

    def _requests(self, spans: Sequence[Range], most: int, gap: int = MOST_GAP) -> list[Range]:
        """Return the requests for ranges."""
        return in_fewest_rounds(spans, gap, most)

    def read(self, offset: int, nbytes: int) -> bytes:
        """Return so many bytes from an offset; fewer only at the end."""
        room = bytearray(max(min(nbytes, self.nbytes - offset), 0))
        self.read_into(offset, memoryview(room))
        return bytes(room)

    def read_into(self, offset: int, room: memoryview) -> int:
        """Fill memory as `read` does, and return the count of bytes."""
        end = min(offset + len(room), self.nbytes)
        if end <= offset:
            return 0
        if end <= len(self.head):
            room[: end - offset] = self.head[offset:end]
            return end - offset
        at = offset
        while at < end:
            window = max([*self._windows], key=lambda window: window.reach(at), default=None)
            last = at if window is None else min(window.reach(at), end)
            if window is None or last == at:
                window = self._stream(at, end) or self._window([(at, end)])
                last = end
            window.read(at, room[at - offset : last - offset])
            at = last
        return end - offset

    def read_many(self, ranges: Iterable[tuple[int, int]]) -> list[bytes]:
        """Return the bytes of several ranges of offset and size, fetched in parallel."""
        wanted = list(ranges)
        with self.ahead(wanted):
            return [self.read(*span) for span in wanted]

    @contextmanager
    def ahead(self, ranges: Iterable[tuple[int, int]], gap: int = MOST_GAP) -> Iterator[None]:
        """Fetch ranges of offset and size in parallel; inside, reads find them."""
        spans = [(begin, min(begin + nbytes, self.nbytes)) for begin, nbytes in ranges if nbytes]
        window = self._window(self.absent(spans), gap=gap)
        self._windows.append(window)
        try:
            yield
        finally:
            self._drop(window)

    def _drop(self, window: Window) -> None:
        with suppress(ValueError):  # another thread has dropped it
            self._windows.remove(window)

    def absent(self, spans: Iterable[Range]) -> list[Range]:
        """Return the ranges of begin and end that are neither here nor on the way."""
        windows = [*self._windows]
        return [span for span in spans if not any(window.reach(span[0]) >= span[1] for window in windows)]

    def copying(self, ranges: Iterable[tuple[int, int]]) -> Callable[[int], None]:
        """Begin to fetch ranges of offset and size, and return what writes them to their places in a file."""
        wanted = [(begin, begin + nbytes) for begin, nbytes in ranges if nbytes]
        absent = self.absent(wanted)
        spans, parts = self._fetching(absent)

        def copy(file: int) -> None:
            for (begin, _), part in zip(spans, parts, strict=True):
                write_at(file, part.result(), begin)
            for begin, end in requests_for([*set(wanted).difference(absent)]):
                write_at(file, self.read(begin, end - begin), begin)

        return copy

    def _window(
        self, spans: Sequence[Range], most: int = MOST_NBYTES, *, gap: int = MOST_GAP, is_stream: bool = False
    ) -> Window:
        """Begin to fetch ranges in threads."""
        return Window(*self._fetching(spans, most, gap), is_stream=is_stream)

    def _fetching(
        self, spans: Sequence[Range], most: int = MOST_NBYTES, gap: int = MOST_GAP
    ) -> tuple[list[Range], list[Answer[memoryview]]]:
        """Return ranges that cover some, and their bytes, which threads fetch."""
        check_not_forked(self.address)
        requests = self._requests([span for span in spans if span[0] < span[1]], most, gap)
        return requests, [Answer(partial(self.fetch, span)) for span in requests]

    def stop_at(self, offset: int) -> None:
        """Read ahead up to an offset; see `SlowSource.stop_at`."""
        if offset not in self._stops:
            insort(self._stops, offset)

    def _most_ahead(self, begin: int, end: int) -> int:
        """Return how far to read ahead: to the end of the array, or to what is being fetched."""
        stop = bisect_left(self._stops, end)
        # Small arrays, such as coordinates, come together.
        limits = [self.nbytes] + [max(limit, begin + HEAD_NBYTES) for limit in self._stops[stop : stop + 1]]
        for window in [*self._windows]:
            following = window.next_begin(begin)
            if following is not None and following >= end:
                limits.append(following)
        return min(limits)

    def _stream(self, begin: int, end: int) -> Window | None:
        """Read ahead, and ever more, if this read goes on where an earlier one ended."""
        match = next((item for item in self._ends if 0 <= begin - item[0] <= MOST_GAP), None)
        ahead = 0 if match is None else min(max(2 * match[1], _FIRST_AHEAD), _READ_AHEAD)
        last = min(max(begin + ahead, end), self._most_ahead(begin, end))
        others = [item for item in self._ends[1 - _STREAMS :] if item is not match]
        self._ends = [*others, (last, ahead)]  # one step: see above
        if match is None or last == end:
            return None
        return self.begin([(begin, last)])

    def begin(self, spans: Sequence[Range]) -> Window:
        """Begin to fetch ranges that will probably be read; they are kept until some others are."""
        stream = self._window(spans, _STREAM_NBYTES, is_stream=True)
        self._windows.append(stream)
        streams = [window for window in [*self._windows] if window.is_stream]
        while len(streams) > 1 and (len(streams) > _KEPT_STREAMS or _nbytes_of(streams) > _KEPT_NBYTES):
            self._drop(streams.pop(0))
        return stream


def _nbytes_of(windows: Sequence[Window]) -> int:
    return sum(window.nbytes for window in windows)


def _changed(address: Address) -> FileError:
    return FileError(f"{address}: the file changed while it was read: open it again").at(path=address)


def _short(address: Address, begin: int, wanted: int, found: int) -> FileError:
    return FileError(f"{address}: expected {wanted} bytes at {begin}, got {found}: the server cut the answer").at(
        path=address
    )


class RemoteFile(RemoteBytes):
    """A remote object. It stays the one that was opened: an error says that it changed.

    Parameters
    ----------
    address
        Its address.
    """

    tail = memoryview(b"")

    def __init__(self, address: Address) -> None:
        super().__init__(address)
        self._objects, self._key = objects_of(address)
        self._whole: memoryview | None = None
        self.version = ""
        self.is_confirmed = True
        has_tail = self._objects.reads_tails and address.lower().endswith(WITH_TAILS)
        tail = Answer(self._last) if has_tail else None
        head = self._first()
        self.nbytes = head.size
        self.version = head.version
        self.head = bytes(head.data)
        last = tail.result() if tail else None
        if last is not None and (last.size, last.version) == (head.size, head.version):
            self.tail = memoryview(last.data)
        if self._whole is None and len(self.head) != min(HEAD_NBYTES, self.nbytes):
            raise _short(self.address, 0, min(HEAD_NBYTES, self.nbytes), len(self.head))

    def _last(self) -> Part | None:
        """Return the last bytes; None if the server does not give them."""
        with suppress(FileError, NoRangesError):
            return self._get(self.address, self._objects, self._key, (-TAIL_NBYTES, 0), "")
        return None

    def _first(self) -> Part:
        """Return the first bytes; all of them if the server has no ranges, or the object has no bytes."""
        try:
            return self._get(self.address, self._objects, self._key, (0, HEAD_NBYTES), "")
        except NoRangesError:
            return self._get_whole()
        except FileError as error:
            if getattr(error, "status", 0) != 416:
                raise
            return self._get(self.address, self._objects, self._key, None, "")

    def _get_whole(self) -> Part:
        """Read the whole object into memory, and keep it."""
        part = self._get_all(self.address, self._objects, self._key)
        self._whole = memoryview(part.data)
        return part

    def fetch(self, span: Range) -> memoryview:
        """Return a range by one request, checked."""
        if self._whole is not None:
            return self._whole[span[0] : span[1]]
        part = self._get(self.address, self._objects, self._key, span, self.version)
        if part.size != self.nbytes:
            raise _changed(self.address)
        data = part.data
        if len(data) != span[1] - span[0]:
            raise _short(self.address, span[0], span[1] - span[0], len(data))
        self.is_confirmed = True
        return memoryview(data)

    def fetch_here(self, spans: Sequence[Range]) -> list[memoryview]:
        """Return ranges in parallel, in this thread, for a caller with h5py's lock; `confirm` says that they are good.

        The first one confirms those of earlier calls.
        """
        first = self.fetch(spans[0])
        if len(spans) == 1 or self._whole is not None:
            return [first, *map(self.fetch, spans[1:])]
        try:
            with watch(self.address):
                others = [memoryview(data) for data in self._objects.get_many(self._key, spans[1:])]
        except Exception as error:  # obstore and fsspec raise many kinds
            raise failure(error, self.address) from None
        for (begin, end), data in zip(spans[1:], others, strict=True):
            if len(data) != end - begin:
                raise _short(self.address, begin, end - begin, len(data))
        self.is_confirmed = False
        return [first, *others]

    def confirm(self) -> None:
        """Raise FileError if the object changed before the last answers of `fetch_here`."""
        if not self.is_confirmed:
            self.fetch((0, 1))


class RemoteObjects(RemoteBytes):
    """Remote objects one after the other, such as chunks in a Zarr store. Each must keep its size, and its version.

    Parameters
    ----------
    folder
        The address that messages name, and that all objects are below.
    sizes
        Their sizes in bytes.
    address_of
        Returns the address of an object by its number.
    """

    _are_whole = True

    def __init__(self, folder: Address, sizes: NDArray[np.int64], address_of: Callable[[int], Address]) -> None:
        super().__init__(folder)
        self._begins = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
        self._address_of = address_of
        self._versions: dict[str, str] = {}
        self._has_ranges = True
        self._wholes: list[tuple[Address, memoryview]] = []  # The last ones of a server that has no ranges
        self.nbytes = int(self._begins[-1])

    def starts(self) -> NDArray[np.int64]:
        """Return the offset of each object."""
        return self._begins[:-1]

    def fetch(self, span: Range) -> memoryview:
        """Return a range of one object."""
        row = int(self._begins.searchsorted(span[0], "right")) - 1
        begin, end = int(self._begins[row]), int(self._begins[row + 1])
        address = self._address_of(row)
        objects, key = objects_of(address)
        within = (span[0] - begin, span[1] - begin)
        inside = None if self._are_whole and span == (begin, end) else within
        if inside is not None and not self._has_ranges:
            return self._whole_of(address, end - begin)[slice(*within)]
        try:
            part = self._get(address, objects, key, inside, self._versions.get(address, ""))
        except NoRangesError:
            self._has_ranges = False
            return self._whole_of(address, end - begin)[slice(*within)]
        self._check_size(address, part.size, end - begin)
        if len(part.data) != span[1] - span[0]:
            raise _short(address, span[0] - begin, span[1] - span[0], len(part.data))
        self._versions.setdefault(address, part.version)
        return memoryview(part.data)

    def _whole_of(self, address: Address, nbytes: int) -> memoryview:
        """Return all bytes of an object, and keep them for its other ranges; only so many of several objects."""
        for known, data in [*self._wholes]:
            if known == address:
                return data
        objects, key = objects_of(address)
        part = self._get_all(address, objects, key, self._versions.get(address, ""))
        self._check_size(address, part.size, nbytes)
        self._versions.setdefault(address, part.version)
        kept = [item for item in self._wholes if item[0] != address]
        kept.append((address, memoryview(part.data)))
        while len(kept) > 1 and sum(len(data) for _, data in kept) > MOST_WHOLE_NBYTES:
            del kept[0]
        self._wholes = kept  # one step: see above
        return memoryview(part.data)

    def keep_ends(self, ends: Sequence[Part]) -> None:
        """Keep the last bytes of all objects, which came with their sizes; the objects must stay these."""
        spans, parts = [], []
        for row, (end, part) in enumerate(zip(self._begins[1:].tolist(), ends, strict=True)):
            if part.version:
                self._versions.setdefault(self._address_of(row), part.version)
            if part.data:
                spans.append((end - len(part.data), end))
                parts.append(Known(memoryview(part.data)))
        self._windows.append(Window(spans, parts, is_stream=True))

    def _check_size(self, address: Address, found: int, expected: int) -> None:
        if found != expected:
            raise _changed(address)

    def _requests(self, spans: Sequence[Range], most: int, gap: int = MOST_GAP) -> list[Range]:
        """Return the requests for ranges, each in one object."""
        by_object: dict[int, list[Range]] = {}
        for begin, end in spans:
            first, last = (int(self._begins.searchsorted(at, "right")) - 1 for at in (begin, end - 1))
            for row in range(first, last + 1):
                low, high = int(self._begins[row]), int(self._begins[row + 1])
                if low < high:
                    by_object.setdefault(row, []).append((max(begin, low), min(end, high)))
        if not self._has_ranges:  # each request gets the whole object
            return [(min(ranges)[0], max(end for _, end in ranges)) for _, ranges in sorted(by_object.items())]
        return [request for row in sorted(by_object) for request in requests_for(by_object[row], gap, most)]


def can_list(folder: Address) -> bool:
    """Return whether the store of a folder can list objects."""
    return objects_of(folder)[0].can_list


def list_below(folder: Address) -> Iterator[Entry]:
    """Yield the objects below a folder, with keys from there on."""
    objects, key = objects_of(folder)
    start = f"{key.strip('/')}/" if key.strip("/") else ""
    try:
        for entry in objects.entries(key):
            if (found := entry.key.lstrip("/")).startswith(start):
                yield Entry(found[len(start) :], entry.size)
    except Exception as error:  # obstore and fsspec raise many kinds
        raise failure(error, folder) from None


def size_of(address: Address) -> int | None:
    """Return the size of an object, by a request for its first byte; None if there is none."""
    objects, key = objects_of(address)
    probe = RemoteBytes(address)
    try:
        return probe._get(address, objects, key, (0, 1), "").size
    except NoRangesError:
        return probe._get(address, objects, key, None, "").size
    except FileError as error:
        status = getattr(error, "status", 0)
        if status not in (404, 416):
            raise
        return None if status == 404 else 0  # an object without bytes has no range


def ends_of(addresses: Sequence[Address], nbytes: int) -> list[Part | None]:
    """Return the size of each object, with so many last bytes if its server gives them; None if there is none."""
    answers = [Answer(partial(_end_of, address, nbytes)) for address in addresses]
    return [answer.result() for answer in answers]


def _end_of(address: Address, nbytes: int) -> Part | None:
    """Return the size of an object, with so many last bytes if its server gives them; None if there is none."""
    objects, key = objects_of(address)
    if nbytes:
        try:
            part = RemoteBytes(address)._get(address, objects, key, (-nbytes, 0), "")
        except NoRangesError:
            pass
        except FileError as error:
            if getattr(error, "status", 0) == 404:
                return None
        else:
            if len(part.data) != min(nbytes, part.size):
                raise _short(address, max(part.size - nbytes, 0), min(nbytes, part.size), len(part.data))
            return part
    size = size_of(address)  # some servers do not like a range that is longer than the object
    return None if size is None else Part(b"", size, "")


def nbytes_below(address: Address) -> int:
    """Return the bytes of an object, or of all below a folder."""
    total = sum(entry.size for entry in list_below(address)) if can_list(address) else 0
    return total or size_of(address) or 0


def remote_identity(address: Address) -> tuple[int, int]:
    """Return the size of a file, or of everything below a folder, and a checksum of its version."""
    try:
        file = RemoteFile(address)
    except FileError as error:
        if getattr(error, "status", 0) != 404:
            raise
    else:
        return file.nbytes, crc32(file.version.encode())
    entries = sorted(list_below(address)) if can_list(address) else []
    return sum(entry.size for entry in entries), crc32(repr(entries).encode())


@lru_cache(maxsize=1)
def _threads() -> ThreadPoolExecutor:
    """Return the threads of all remote files."""
    return ThreadPoolExecutor(AT_ONCE, "tamis-remote")
