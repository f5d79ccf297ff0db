"""All of a small dataset of numbers in one native call: facts and, on request, values and attributes.

The cost of a small dataset is mostly calls of HDF5, and each takes several times as long from Python. Native code
supports numbers in at most 64 KiB and 16 chunks whose type has no name in the file. It only answers if it is certain:
other datasets, and damaged ones, are left to the general code, which reads fact by fact.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import h5py
from h5py import h5d, h5g, h5p, h5t, h5z

from tamis import _native
from tamis.filters import Request, Stage
from tamis.formats.hdf5.lib import calls
from tamis.formats.hdf5.lib.calls import id_of, lock
from tamis.formats.hdf5.lib.files import driver_of, first_offset, is_plain, is_read_only, once
from tamis.pipeline import Pipeline

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tamis.meaning.missing import Missing
    from tamis.rewrite.new_chunk import NativeEncoder


def listed_pipeline(plist: Any) -> Pipeline:
    """Return the filters of creation properties that came from a file: order, flags, duplicates, unknown ones."""
    return _pipeline(tuple(calls.filter_list(plist)))


@lru_cache(maxsize=1024)  # most datasets of a file have the same filters
def _pipeline(listed: tuple[calls.ListedFilter, ...]) -> Pipeline:
    return Pipeline(map(_stage, listed))


def _stage(listed: calls.ListedFilter) -> Stage:
    optional = bool(listed.flags & h5z.FLAG_OPTIONAL)
    return Stage.listed(Request(listed.id, listed.values), listed.label, optional=optional, total=listed.total)


Form = tuple[Any, ...]
"""Type and creation properties: datasets of equal forms share all facts that follow from these."""

Content = tuple[bytes, bytes, bytes, bytes]
"""Name, type, dataspace and values of an attribute."""

Depth = _native.Depth

_FILL = slice(4, 6)
"""Of a form: whether there is a fill value, and its bytes."""

_FORMS = "_tamis_equal_forms"
"""Attribute of h5py's file objects: one of all equal forms, so that many datasets share it."""

Columns = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...]]
"""Numbers, offsets, sizes and filter masks of chunks, in the order of their numbers."""


class QuickFacts(NamedTuple):
    """The facts of a dataset."""

    form: Form  # What it shares with other datasets
    # Extents, and largest extents with None for unlimited axes
    shape: tuple[int, ...]
    maxshape: tuple[int | None, ...]
    stored_nbytes: int | None  # Bytes of the values in the file; None if they are not known
    chunks: Columns | None  # None if they are not known
    # Name of each attribute; and its text if it is one, otherwise all of it; None if that is not known
    attributes: tuple[tuple[bytes, bytes | Content | None], ...]
    values: bytes | None  # Bytes of the values, in the type of the file, if they were requested and could be decoded
    # Each attribute in full, if requested: name, type, dataspace and values; None if one is unusual
    contents: tuple[Content | None, ...] | None

    @property
    def nbytes(self) -> int:
        """Approximate memory of values and attributes, if present."""
        contents = self.contents or ()
        return 256 + len(self.values or b"") + sum(256 + len(content[-1]) for content in contents if content)

    def is_like(self, other: QuickFacts) -> bool:
        """Return whether type, extents and fill value are certainly the same."""
        if (self.shape, self.maxshape) != (other.shape, other.maxshape):
            return False
        return bool(self.form[0] == other.form[0] and self.form[_FILL] == other.form[_FILL])

    def new_attributes(self, other: QuickFacts) -> tuple[str, ...] | None:
        """Return the attributes that only the other one has, if all others are certainly the same; else None."""
        own, others = self.contents, other.contents
        if own is None or others is None or None in own or not {*own} <= {*others}:
            return None
        names = {name for name, _ in other.attributes} - {name for name, _ in self.attributes}
        return tuple(name.decode("utf-8", "surrogateescape") for name in sorted(names))


def quick_facts(file: h5py.File, path: str, depth: _native.Depth = Depth.facts) -> QuickFacts | None:
    """Return the facts of a dataset that is open for reading; None if they are uncertain."""
    place = _place(file)
    facts = None if place is None else ask("survey", place, path.encode("utf-8", "surrogateescape"), depth)
    return None if facts is None else QuickFacts._make(facts)


def quick_look(
    file: h5py.File, group: h5g.GroupID, name: bytes, depth: _native.Depth = Depth.facts
) -> QuickFacts | h5g.GroupID | None:
    """Return the group that is in a group, or the facts of a dataset; None if uncertain."""
    place = _place(file)
    if (item := None if place is None else ask("look", place, group.id, name, depth)) is None:
        return None
    if isinstance(item, int):
        return h5g.GroupID(item)
    form, *rest = item
    forms: dict[Form, Form] = vars(file).setdefault(_FORMS, {})
    return QuickFacts(forms.setdefault(form, form), *rest)


class Attributes(NamedTuple):
    """The attributes of an object, and its part in dimensions."""

    names: tuple[bytes, ...]
    contents: tuple[Content | None, ...]  # None for unusual types
    scales: tuple[int | None, ...] | None  # Address of the dimension scale of each axis; None if they are not known
    user_count: int  # Number of axes that have this dimension scale


class QuickHeader(NamedTuple):
    """A dataset of any size, without its chunk index."""

    form: Form
    shape: tuple[int, ...]
    maxshape: tuple[int | None, ...]
    attributes: Attributes

    @property
    def facts(self) -> QuickFacts:
        """The same as facts."""
        names, contents, *_ = self.attributes
        known = tuple((name, content) for name, content in zip(names, contents, strict=True))
        return QuickFacts(self.form, self.shape, self.maxshape, None, None, known, None, contents)


def quick_attributes(owner: h5g.GroupID | h5d.DatasetID) -> Attributes | None:
    """Return the attributes of an open object; None if they cannot be listed."""
    found = ask("attributes", owner.id)
    return None if found is None else Attributes._make(found)


def quick_headers(group: h5g.GroupID, names: Sequence[bytes]) -> dict[bytes, QuickHeader | bool]:
    """Return the headers of datasets of a group, and True for groups in it; without all that are uncertain."""
    found = ask("headers", group.id, names) or ()
    return {
        name: item if item is True else QuickHeader(item[0], item[1], item[2], Attributes._make(item[3]))
        for name, item in zip(names, found)  # noqa: B905 - all or none
        if item is not None
    }


def quick_chunks(dataset: h5d.DatasetID) -> Columns | None:
    """Return the chunk index of an open dataset, which may be new; None if uncertain."""
    facts = ask("survey", (dataset.id, -1, 0), b".", Depth.facts)
    return None if facts is None else QuickFacts._make(facts).chunks


class QuickCopy(NamedTuple):
    """The copy of a dataset through other filters."""

    complete: bool  # Whether it has all attributes, and the dataset has no comment
    # Offset, size, CRC-32, number of missing values and largest error of each chunk, in the order of their numbers
    chunks: tuple[tuple[int, int, int, int, float], ...]


class Creation(NamedTuple):
    """Everything needed to create a dataset."""

    # Its type and creation properties
    datatype: h5t.TypeID
    plist: h5p.PropDCID
    recorded: Pipeline  # The filters that HDF5 then records
    encoder: NativeEncoder | None  # Their native twin, if native code can apply them


def rewrite_small(
    file: h5py.File,
    path: str,
    parent: h5g.GroupID,
    name: bytes,
    link_plist: h5p.PropLCID | None,
    creation: Creation,
    missing: Missing,
    most_nbytes: int,
    changed: tuple[bytes, list[tuple[bytes, int, int, bytes]]] | None = None,
) -> QuickCopy | None:
    """Store a dataset anew in a group of another file; None, without writing anything, if this code cannot do it.

    Encoded chunks are decoded and compared, and so are HDF5's records of them: `missing` values stay unchanged, others
    are within the bound of the filters and the valid range.

    `changed` are other values, with attributes that record why, for filters that lose nothing.
    """
    place, encoder = _place(file), creation.encoder
    if place is None or encoder is None or (changed and encoder.has_zfp):
        return None
    settings = parent.id, id_of(link_plist), creation.datatype.id, creation.plist.id
    raw_path = path.encode("utf-8", "surrogateescape")
    loss = encoder.loss(missing) if encoder.has_zfp else None
    result = ask("rewrite", place, raw_path, settings, name, encoder.native, most_nbytes, loss, changed)
    return None if result is None else QuickCopy._make(result)


def quick_links(group: h5g.GroupID) -> tuple[tuple[bytes, int, int, int, int | None], ...] | None:
    """Return name, kind, address, character set and number of each link of a group; None if they cannot be listed."""
    return ask("links", group.id)  # type: ignore[no-any-return]


def bare_address(group: h5g.GroupID) -> int | None:
    """Return the address of a group that certainly has no attributes, comment or settings; None for other groups.

    Its format is that before HDF5 1.8, which has no settings.
    """
    return ask("bare_address", group.id)  # type: ignore[no-any-return]


def copy_empty_group(
    source: h5g.GroupID, target: h5g.GroupID, name: bytes, lcpl: h5p.PropLCID | None, plist: h5p.PropGCID
) -> bool:
    """Copy a group by its name, if `bare_address` knows it and it has no links; return whether it was copied."""
    return bool(ask("copy_empty_group", source.id, target.id, name, id_of(lcpl), plist.id))


def copy_plain_attributes(source: h5g.GroupID, target: h5g.GroupID, name: bytes) -> bool:
    """Copy the attributes of an object to its copy of the same name in another group, which has none.

    Returns False, without copying any, if they include references or named types, or if the values have references or
    the object a comment.
    """
    return bool(ask("copy_attributes", source.id, target.id, name))


@cache
def libhdf5() -> _native.Libhdf5 | None:
    """Return h5py's libhdf5; None if it is older than these calls."""
    library = _native.Libhdf5(h5p.__file__)
    return library if library.complete else None


def ask(call: str, *arguments: Any) -> Any:
    """Return what a native call finds, with h5py's lock; None if it is uncertain or h5py's libhdf5 is older."""
    if (library := libhdf5()) is None:
        return None
    with lock:
        return getattr(library, call)(*arguments)


@once
def _place(file: h5py.File) -> tuple[int, int, int] | None:
    """Return identifier, descriptor and first offset of an ordinary file that does not change; None for others."""
    if not is_read_only(file) or not is_plain(file) or driver_of(file) != "sec2":
        return None
    # HDF5's own descriptor: a duplicate would hold its lock on the file for longer.
    return file.id.id, file.id.get_vfd_handle(), first_offset(file)
