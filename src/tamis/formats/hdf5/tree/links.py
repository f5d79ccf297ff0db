"""Groups and their links: listed as they are stored, in words, with the filters of groups."""

from __future__ import annotations

from typing import Any, NamedTuple

import h5py
from h5py import h5, h5g, h5l, h5o, h5p, h5t

from tamis.arguments import Kind
from tamis.errors import FileError, MissingFilterError, TamisError
from tamis.formats.hdf5.lib import calls
from tamis.formats.hdf5.lib.foreign_filters import is_available
from tamis.formats.hdf5.lib.quick_facts import bare_address, listed_pipeline, quick_links
from tamis.pipeline import Pipeline

GROUP = Kind("an h5py file or group", lambda value: isinstance(value, h5py.Group))


INSTALL = "set HDF5_PLUGIN_PATH to the folder of its plugin, or import hdf5plugin first in Python"


_OLD_HEADER = 1


class Link(NamedTuple):
    """A copy of h5py's record of a link, which h5py reuses for the next link; `address` is for hard links."""

    name: bytes
    kind: int
    address: int
    charset: int
    order: int | None
    """Number in creation order; None if the group does not track it."""
    place: tuple[h5py.File, str] | None = None
    """File of the object, and its path there, if the link counts as a hard one; see `Scope`."""

    @property
    def text(self) -> str:
        """The name in h5py."""
        return self.name.decode("utf-8", "surrogateescape")


def links_of(group: h5g.GroupID) -> list[Link]:
    """List a group's links, in the order in which they are stored.

    Other orders are not safe: HDF5 1.14.2 then builds a table of links, frees it wrongly on failure, and corrupts the
    memory of the process.
    """
    if (listed := quick_links(group)) is not None:
        return [Link(*fields) for fields in listed]
    links: list[Link] = []

    def note(name: bytes, info: Any) -> None:
        links.append(Link(name, info.type, info.u, info.cset, info.corder if info.corder_valid else None))

    try:
        group.links.iterate(note, info=True, order=h5.ITER_NATIVE)
    except (ValueError, OSError, RuntimeError) as error:
        raise _listing_error(h5py.Group(group), error) from error
    return links


def _listing_error(group: h5py.Group, error: Exception) -> TamisError:
    filters = calls.filter_list(group.id.get_create_plist())
    missing = [filter_text(entry.id, entry.label) for entry in filters if not is_available(entry.id)]
    if missing:
        return MissingFilterError(f"links of {group.name} cannot be read without {' and '.join(missing)}: {INSTALL}")
    return FileError(f"{group.file.filename}: {group.name}: damaged or incomplete: links cannot be read: {error}")


def filter_text(code: int, label: str) -> str:
    """Return a filter's number and the beginning of its label, which may have whole sentences."""
    short = label.partition(";")[0]
    return f"HDF5 filter {code} ({short})" if short else f"HDF5 filter {code}"


def link_words(group: h5py.Group, link: Link) -> str:
    """Return a link that is no hard one in words."""
    if link.kind not in (h5l.TYPE_SOFT, h5l.TYPE_EXTERNAL):
        return f"link of the type {link.kind}"
    place = group.id.links.get_val(link.name)
    names = [place] if link.kind == h5l.TYPE_SOFT else place
    kind = "soft" if link.kind == h5l.TYPE_SOFT else "external"
    return f"{kind} link to {' '.join(name.decode('utf-8', 'backslashreplace') for name in names)}"


def in_order(links: list[Link]) -> list[Link]:
    """Sort links in creation order if it is tracked, otherwise by name."""
    if any(link.order is None for link in links):
        return sorted(links, key=lambda link: link.name)
    return sorted(links, key=lambda link: link.order or 0)


def link_plist(charset: int) -> h5p.PropLCID | None:
    """Return the creation properties of a link for a name in this character set; None, HDF5's default, for ASCII."""
    if charset == h5t.CSET_ASCII:
        return None
    lcpl = h5p.create(h5p.LINK_CREATE)
    lcpl.set_char_encoding(charset)
    return lcpl


def raw_name(path: str) -> tuple[bytes, h5p.PropLCID | None]:
    """Return a path as HDF5 takes it, and the properties of its link."""
    raw = path.encode("utf-8", "surrogateescape")
    return raw, link_plist(h5t.CSET_ASCII if raw.isascii() else h5t.CSET_UTF8)


def group_filters(group: h5py.Group) -> Pipeline:
    """Return the filters of a group's links, with the parameters in the file.

    Parameters
    ----------
    group
        A group of any file; the filters need not be installed. A file means its root group.
    """
    GROUP.check("group", group)
    item = group_id(group)
    return Pipeline() if is_old_group(item) else listed_pipeline(item.get_create_plist())


def is_old_group(group: h5g.GroupID) -> bool:
    """Return whether a group and its header have formats before HDF5 1.8; False if h5py's libhdf5 cannot tell.

    Most groups do, and have no settings; asking for a property list takes 6 µs.
    """
    if bare_address(group) is not None:
        return True
    if not calls.has("H5Gget_info") or calls.link_storage(group) != calls.SYMBOL_TABLE:
        return False
    info = h5o.get_info(group)  # which must live as long as its parts: h5py's point into it
    return bool(info.hdr.version == _OLD_HEADER)


def group_id(group: h5py.Group) -> h5g.GroupID:
    """Return the identifier of a group; for a file, that of its root group, because h5py has the file's."""
    return h5g.open(group.id, b"/") if isinstance(group, h5py.File) else group.id
