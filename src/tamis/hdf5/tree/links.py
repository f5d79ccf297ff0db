"""Links of a group, for copying."""

from __future__ import annotations

from typing import Any, NamedTuple

from h5py import h5, h5p


class Link(NamedTuple):
    """A link of a group, copied from h5py's record, which h5py reuses; hard links have the object's address."""

    name: bytes
    kind: int
    address: int
    charset: int


def links_of(group: Any) -> list[Link]:
    """Return a group's links, in creation order if it is tracked, else by name."""
    tracked = group.get_create_plist().get_link_creation_order() & h5p.CRT_ORDER_TRACKED
    links: list[Link] = []

    def add(name: bytes, info: Any) -> None:
        links.append(Link(name, info.type, info.u, info.cset))

    group.links.iterate(add, info=True, idx_type=h5.INDEX_CRT_ORDER if tracked else h5.INDEX_NAME, order=h5.ITER_INC)
    return links


def link_plist(link: Link) -> Any:
    """Return creation properties for a link of the same name."""
    lcpl = h5p.create(h5p.LINK_CREATE)
    lcpl.set_char_encoding(link.charset)
    return lcpl
