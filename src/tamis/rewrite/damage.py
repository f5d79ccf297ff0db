"""Find the chunks of an array that cannot be decoded; an array that keeps its bytes is copied with them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import TYPE_CHECKING, NamedTuple

from tamis.arrays.gather import bounded_threads, tasks_of
from tamis.arrays.grid import grid_of
from tamis.arrays.threads import ordered_map
from tamis.errors import MissingFilterError, TamisError
from tamis.filters.unknown import UnknownFilter
from tamis.formatting import plural
from tamis.stores.facts import ELSEWHERE, ArrayFacts, size_of

if TYPE_CHECKING:
    from tamis.arrays.grid import Region
    from tamis.arrays.index import Parts
    from tamis.arrays.reader import ArrayReader
    from tamis.stores.protocols import StoredArray

_FAILURES = (TamisError, OSError, RuntimeError)
"""What reading a damaged chunk raises: h5py has its own errors."""


KEPT = "its values cannot be read, so its bytes are kept, even damaged ones"
"""Why an array is copied as it is stored."""

MAY_KEEP = (
    "keep_damaged (--keep-damaged) copies its bytes as they are, with the damage, to a target of the same format, and"
    " repacks the others; drop (--drop) leaves it out"
)
"""What a user can do about an array that a recipe names, and that cannot be read."""


class Damage(NamedTuple):
    """A dataset with chunks that cannot be decoded."""

    path: str
    reason: str  # How many chunks, and why the first one cannot


def damage_of(array: StoredArray, progress: Callable[[int, int], None], threads: int = 1) -> str:
    """Decode all stored chunks of an array; return how many cannot be decoded and why, empty if all can.

    Nothing is known about filters that are not installed, and about values in other files, which are not opened.
    """
    if array.storage.chunk_shape is None or array.storage.layout in ELSEWHERE:
        return ""
    if not size_of(array) or _lacks_filter(array):
        return ""
    try:
        parts = array.parts(grid_of(array.shape, array.storage.chunk_shape))
        reader = array.open_reader() if array.type.dtype is not None else array.open_values()
    except MissingFilterError:
        return ""
    except _FAILURES as error:
        return str(error)

    def failures(task: Parts) -> tuple[int, list[str]]:
        return len(task), [text for box in task.boxes() for text in _failures(reader, box)]

    nbytes = array.storage.chunk.nbytes
    tasks, threads = tasks_of(parts, nbytes), bounded_threads(nbytes, threads)
    broken: list[str] = []
    done = 0
    progress(0, len(parts))
    with closing(reader), closing(ordered_map(failures, tasks, threads)) as results:
        for count, texts in results:
            broken += texts
            done += count
            progress(done, len(parts))
    if not broken:
        return ""
    first = broken[0].removeprefix(f"{array.label}: ")
    return f"{len(broken)} of {plural(len(parts), 'chunk')} cannot be decoded: {first}"


def _lacks_filter(array: ArrayFacts) -> bool:
    return any(isinstance(item, UnknownFilter) and not item.reason for item in array.storage.pipeline.filters)


def _failures(reader: ArrayReader, chunks: Parts) -> list[str]:
    """Return why chunks cannot be decoded, each by itself only if they cannot be read together."""
    if not (reason := _failure(reader, chunks.bounding())):
        return []
    if len(chunks) == 1:
        return [reason]
    return [text for part in chunks if (text := _failure(reader, part))]


def _failure(reader: ArrayReader, part: Region) -> str:
    try:
        reader.read(part)
    except MissingFilterError:
        return ""
    except _FAILURES as error:
        return str(error)
    return ""
