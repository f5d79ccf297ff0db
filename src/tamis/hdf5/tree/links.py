"""Links of a group, as they are copied."""

from __future__ import annotations

from typing import Any, NamedTuple

from h5py import h5, h5p


class Link(NamedTuple):
    """What h5py's record of a link says, which it reuses for the next link; a hard link has the object's address."""

    name: bytes
    kind: int
    address: int
    charset: int


def links_of(group: Any) -> list[Link]:
    """List a group's links, in creation order where it is tracked, else by name."""
    tracked = group.get_create_plist().get_link_creation_order() & h5p.CRT_ORDER_TRACKED
    found: list[Link] = []

    def note(name: bytes, info: Any) -> None:
        found.append(Link(name, info.type, info.u, info.cset))

    group.links.iterate(note, info=True, idx_type=h5.INDEX_CRT_ORDER if tracked else h5.INDEX_NAME, order=h5.ITER_INC)
    return found


def link_plist(link: Link) -> Any:
    """Return the properties with which a link of the same name is created."""
    lcpl = h5p.create(h5p.LINK_CREATE)
    lcpl.set_char_encoding(link.charset)
    return lcpl
