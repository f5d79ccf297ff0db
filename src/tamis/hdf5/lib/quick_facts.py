"""All facts of a small dataset of numbers in one native call, and two such datasets compared in another.

A small dataset costs little else than calls of HDF5, and each takes several times as long from Python. Native code
knows numbers in at most 64 KiB and 16 chunks whose type has no name in the file. It answers only what it knows for
sure: all other datasets, and damaged ones, are left to the general code, which reads fact by fact.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import h5py
from h5py import h5d, h5g, h5p

from tamis import _native
from tamis.hdf5.lib.calls import lock
from tamis.hdf5.lib.file_facts import driver_of, first_offset, is_plain, is_read_only, once

Form = tuple[object, ...]
"""Type and creation properties: datasets of equal forms share all facts that follow from these."""


Columns = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...]]
"""Numbers, offsets, sizes and filter masks of chunks, in the order of their numbers."""


class QuickFacts(NamedTuple):
    """The facts of a dataset.

    Parameters
    ----------
    form
        What it shares with other datasets.
    shape, maxshape
        Extents, and largest extents with None for unlimited axes.
    stored_nbytes
        Bytes of the values in the file.
    chunks
        The chunk index.
    attributes
        Name of each attribute; and its text, if it is one.
    """

    form: Form
    shape: tuple[int, ...]
    maxshape: tuple[int | None, ...]
    stored_nbytes: int
    chunks: Columns
    attributes: tuple[tuple[bytes, bytes | None], ...]


class QuickComparison(NamedTuple):
    """Two datasets that have the same type, extents, fill value and values, bit by bit.

    Parameters
    ----------
    source, target
        Their facts.
    values
        Bytes of the values, in the type of the file.
    same_attributes
        Whether their attributes are certainly the same.
    """

    source: QuickFacts
    target: QuickFacts
    values: bytes
    same_attributes: bool


def quick_facts(file: h5py.File, path: str) -> QuickFacts | None:
    """Return the facts of a dataset that is open for reading; None if they are not known for sure."""
    if (place := _place(file)) is None or (library := _library()) is None:
        return None
    number, _, base = place
    with lock:
        facts: Any = library.survey(number, path.encode("utf-8", "surrogateescape"), base)
    return None if facts is None else QuickFacts._make(facts)


def quick_chunks(dataset: h5d.DatasetID) -> Columns | None:
    """Return the chunk index of an open dataset, which may be new; None if it is not known for sure."""
    if (library := _library()) is None:
        return None
    with lock:
        facts: Any = library.survey(dataset.id, b".", 0)
    return None if facts is None else QuickFacts._make(facts).chunks


def small_values(file: h5py.File, path: str) -> bytes | None:
    """Return the values of a dataset, decoded by tamis, in the type of the file; None if it is not a small one."""
    if (place := _place(file)) is None or (library := _library()) is None:
        return None
    with lock:
        values: Any = library.values(place, path.encode("utf-8", "surrogateescape"))
    return None if values is None else bytes(values)


def copy_plain_attributes(source: h5g.GroupID, target: h5g.GroupID, name: bytes) -> bool:
    """Copy the attributes of an object to its copy of the same name in another group, which has none.

    Returns False, without having copied any, if more is to be done: there are references or named types among them, or
    references in the values, or the object has a comment.

    Raises
    ------
    RuntimeError
        If HDF5 cannot write an attribute.
    """
    if (library := _library()) is None:
        return False
    with lock:
        return library.copy_attributes(source.id, target.id, name)


def compare_small(
    source: h5py.File, target: h5py.File, path: str, *, by_library: bool = False
) -> QuickComparison | None:
    """Compare the datasets at one path of two files; None if they differ, or it is not known for sure.

    Parameters
    ----------
    source, target
        Files that are open for reading.
    path
        Path of both.
    by_library
        Whether HDF5 itself must read the same values, too, after tamis has decoded them.
    """
    first, second, library = _place(source), _place(target), _library()
    if first is None or second is None or library is None:
        return None
    with lock:
        result: Any = library.compare(first, second, path.encode("utf-8", "surrogateescape"), by_library)
    if result is None:
        return None
    before, after, values, same_attributes = result
    return QuickComparison(QuickFacts._make(before), QuickFacts._make(after), values, same_attributes)


@cache
def _library() -> _native.Libhdf5 | None:
    """Return h5py's libhdf5; None if it is older than these calls."""
    library = _native.Libhdf5(h5p.__file__)
    return library if library.complete else None


@once
def _place(file: h5py.File) -> tuple[int, int, int] | None:
    """Return identifier, descriptor and first offset of an ordinary file that does not change; None for others."""
    if not is_read_only(file) or not is_plain(file) or driver_of(file) != "sec2":
        return None
    # HDF5's own descriptor: a duplicate would hold its lock on the file for longer.
    return file.id.id, file.id.get_vfd_handle(), first_offset(file)
