"""All facts of a small dataset of numbers in one native call, and two such datasets compared in another.

A small dataset costs little else than calls of HDF5, and each takes several times as long from Python. Native code
knows numbers in at most 64 KiB and 16 chunks whose type has no name in the file. It answers only what it knows for
sure: all other datasets, and damaged ones, are left to the general code, which reads fact by fact.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import h5py
from h5py import h5d, h5g, h5p, h5t

from tamis import _native
from tamis.hdf5.lib.calls import lock
from tamis.hdf5.lib.file_facts import driver_of, first_offset, is_plain, is_read_only, once
from tamis.pipeline import Pipeline

Form = tuple[object, ...]
"""Type and creation properties: datasets of equal forms share all facts that follow from these."""


_FORMS = "_tamis_equal_forms"
"""Attribute of h5py's file objects: one of all equal forms, so that many datasets share it."""

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
        Their facts; None if they are known already.
    values
        Bytes of the values, in the type of the file.
    same_attributes
        Whether their attributes are certainly the same.
    """

    source: QuickFacts | None
    target: QuickFacts | None
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


def quick_look(file: h5py.File, group: h5g.GroupID, name: bytes) -> QuickFacts | h5g.GroupID | None:
    """Return the group that is in a group, or the facts of a dataset; None if it is not known for sure."""
    if (place := _place(file)) is None or (library := _library()) is None:
        return None
    with lock:
        item: Any = library.look(group.id, name, place[2])
        if isinstance(item, int):
            return h5g.GroupID(item)
    if item is None:
        return None
    facts = QuickFacts._make(item)
    forms: dict[Form, Form] = vars(file).setdefault(_FORMS, {})
    return facts._replace(form=forms.setdefault(facts.form, facts.form))


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


class QuickCopy(NamedTuple):
    """The copy of a dataset through other filters.

    Parameters
    ----------
    complete
        Whether it has all attributes, and the dataset has no comment.
    chunks
        Offset, size and CRC-32 of each chunk, in the order of their numbers.
    """

    complete: bool
    chunks: tuple[tuple[int, int, int], ...]


class Creation(NamedTuple):
    """What is needed to create a dataset.

    Parameters
    ----------
    datatype, plist
        Its type and creation properties.
    recorded
        The filters that HDF5 then records.
    native
        Their native twin, if they lose nothing and native code can apply them.
    """

    datatype: h5t.TypeID
    plist: h5p.PropDCID
    recorded: Pipeline
    native: _native.ChunkPipeline | None


def rewrite_small(
    file: h5py.File,
    path: str,
    parent: h5g.GroupID,
    name: bytes,
    link_plist: h5p.PropLCID,
    creation: Creation,
    most_nbytes: int,
) -> QuickCopy | None:
    """Store a dataset anew in a group of another file; None, and nothing is written, if more is to be done.

    Encoded chunks are decoded and compared, and HDF5's records of them, too.

    Raises
    ------
    RuntimeError
        If HDF5 cannot write.
    """
    place, library = _place(file), _library()
    if place is None or library is None or creation.native is None:
        return None
    settings = parent.id, link_plist.id, creation.datatype.id, creation.plist.id
    raw_path = path.encode("utf-8", "surrogateescape")
    with lock:
        result: Any = library.rewrite(place, raw_path, settings, name, creation.native, most_nbytes)
    return None if result is None else QuickCopy._make(result)


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
    source: h5py.File,
    target: h5py.File,
    path: str,
    *,
    by_library: bool = False,
    known: tuple[bool, bool] = (False, False),
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
    known
        Whether the facts of each are known already.
    """
    first, second, library = _place(source), _place(target), _library()
    if first is None or second is None or library is None:
        return None
    raw_path = path.encode("utf-8", "surrogateescape")
    with lock:
        result: Any = library.compare(first, second, raw_path, by_library, (not known[0], not known[1]))
    if result is None:
        return None
    before, after, values, same_attributes = result
    first_facts, second_facts = (None if facts is None else QuickFacts._make(facts) for facts in (before, after))
    return QuickComparison(first_facts, second_facts, values, same_attributes)


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
